/* page.js - the page of `lockstep watch`: what it is sent, what it draws.
 *
 * The list of runs and windows of their curves come from the paths beside the page; what is new comes as
 * server-sent events. An exported page has the same objects inside, in #export. Names and texts of runs are
 * put into the page as text only.
 */
"use strict";
(() => {
const $ = id => document.getElementById(id);

/* An element with properties and children; a text child is only text. */
const make = (tag, properties, ...children) => {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(properties || {}))
        if (k.includes("-") || k === "role" || k === "scope") e.setAttribute(k, v); else e[k] = v;
    e.append(...children);
    return e;
};

/* ---- numbers as people read them ---- */

const compact = x => {
    if (x === null || x === undefined || !isFinite(x)) return "–";
    const a = Math.abs(x);
    if (a !== 0 && (a < 1e-3 || a >= 1e15)) return x.toExponential(2);
    if (a >= 1e4) return x.toLocaleString("en", {notation: "compact", maximumFractionDigits: 2});
    return String(+x.toPrecision(5));
};
const bytes = x => {
    if (x === null || x === undefined) return "–";
    for (const unit of ["B", "kB", "MB", "GB"]) { if (Math.abs(x) < 1000) return +x.toPrecision(3) + " " + unit; x /= 1000; }
    return +x.toPrecision(3) + " TB";
};
const duration = s => {
    if (s === null || s === undefined || !isFinite(s)) return "–";
    if (s < 1) return compact(s * 1000) + " ms";
    if (s < 120) return +s.toPrecision(3) + " s";
    if (s < 7200) return Math.round(s / 60) + " min";
    if (s < 172800) return (s / 3600).toFixed(1) + " h";
    return (s / 86400).toFixed(1) + " days";
};
const formats = {memory_bytes: bytes, seconds: duration, data_wait_s: duration};

/* ---- the view, which is in the URL ---- */

const view = {x: "step", from: null, to: null, smooth: 0, log: new Set(), hidden: new Set(), solo: null};

function readUrl() {
    const q = new URLSearchParams(location.hash.slice(1));
    const number = k => q.has(k) && isFinite(+q.get(k)) ? +q.get(k) : null;
    const names = k => new Set((q.get(k) || "").split(",").filter(Boolean).map(decodeURIComponent));
    view.x = ["units", "hours"].includes(q.get("x")) ? q.get("x") : "step";
    view.from = number("from");
    view.to = number("to");
    view.smooth = number("smooth") || 0;
    view.log = names("log");
    view.hidden = names("hide");
    view.solo = q.get("solo");
}

function writeUrl() {
    const q = new URLSearchParams();
    const names = set => [...set].map(encodeURIComponent).join(",");
    if (view.x !== "step") q.set("x", view.x);
    if (view.from !== null) q.set("from", +view.from.toPrecision(8));
    if (view.to !== null) q.set("to", +view.to.toPrecision(8));
    if (view.smooth) q.set("smooth", view.smooth);
    if (view.log.size) q.set("log", names(view.log));
    if (view.hidden.size) q.set("hide", names(view.hidden));
    if (view.solo !== null) q.set("solo", view.solo);
    history.replaceState(null, "", "#" + q);
    $("link").href = "#" + q;
}

/* ---- runs ---- */

/* Hues that people who confuse colours can tell (after M. Okabe, K. Ito 2008), each at 3:1 or more on its
 * background; further runs have dashes. */
const hues = {light: ["#0072b2", "#c24e00", "#007a5a", "#a8457f", "#5b5b5b", "#946200", "#2a7fb8", "#7a3fc2"],
    dark: ["#5ab4ef", "#ff8a3d", "#2cc99a", "#e79ac6", "#d0d0d0", "#e9b44c", "#9ad5ff", "#c4a3ff"]};
const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3], [14, 4]];
const darkness = matchMedia("(prefers-color-scheme: dark)");
const colourOf = run => hues[darkness.matches ? "dark" : "light"][run.id % 8];
const dashOf = run => dashes[(run.id >> 3) % dashes.length];

const exported = $("export") ? JSON.parse($("export").textContent) : null;
let runs = [], differences = {runs: [], keys: []}, boot = null, lastId = null, paused = false;
const shown = run => view.solo !== null ? run.name === view.solo : !view.hidden.has(run.name);
const visible = () => runs.filter(shown);

async function ask(path) {
    const answer = await fetch(path);
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
}

async function loadList() {
    const list = exported || await ask("runs");
    const old = new Map(runs.map(r => [r.id, r]));
    if (boot !== list.boot) old.clear();
    boot = list.boot;
    differences = list.differences;
    runs = list.runs.map(info => Object.assign(old.get(info.id) || {id: info.id, name: info.name, window: null,
        request: 0}, {info, name: info.name, heard: performance.now()}));
    drawList();
    makeCharts();
    loadAll();
    listRuns();
}

/* What a run's config has that others do not. */
function differencesOf(run) {
    const at = differences.runs.indexOf(run.id);
    return at < 0 ? [] : differences.keys.map(k => [k.key, k.values[at]]);
}

/* ---- windows of curves ---- */

let waiting = [], asking = 0;

/* One after the other, since a browser opens six connections only, and one of them is the stream. */
function load(run) {
    if (exported) {
        run.window = exported.windows[run.id];
        run.window.tail = 0;
        redraw();
        return;
    }
    if (!waiting.includes(run)) waiting.push(run);
    pump();
}

function pump() {
    while (asking < 4 && waiting.length) {
        const run = waiting.shift(), mine = ++run.request;
        asking++;
        ask(`series?run=${run.id}&x=${view.x}&columns=${columns()}&smooth=${view.smooth}&names=${encodeURIComponent(names())}` +
            (view.from === null ? "" : `&from=${view.from}`) + (view.to === null ? "" : `&to=${view.to}`))
            .then(w => {
                if (mine !== run.request || w.reading) return;
                run.window = w;
                w.tail = 0; /* steps that came since, one by one */
                run.loaded = performance.now();
                redraw();
            }).catch(() => {}).finally(() => { asking--; pump(); });
    }
}

function loadAll() { for (const run of visible()) load(run); writeUrl(); redraw(); }
let later = null;
const loadSoon = () => { clearTimeout(later); later = setTimeout(loadAll, 80); };

/* A run that is read again, at most once a second. */
function loadAgain(run) {
    if (run.again || !shown(run)) return;
    const since = performance.now() - (run.loaded || 0);
    run.again = setTimeout(() => { run.again = null; load(run); }, Math.max(0, 1000 - since));
}

const columns = () => {
    const wide = Math.max(200, ...charts.filter(c => c.isOpen()).map(c => c.canvas.clientWidth));
    return Math.min(1500, Math.max(80, Math.round(wide / Math.max(1, Math.sqrt(visible().length / 6)))));
};
const names = () => charts.filter(c => c.isOpen()).flatMap(c => c.series.concat(c.points)).join(",");

/* Adds steps that came as an event. */
function addRows(d) {
    const run = runs[d.run], w = run && run.window;
    if (!run) return;
    run.info.rows = d.begin + d.count;
    if (!w || !shown(run)) return;
    const have = w.begin + w.count + w.tail;
    if (view.to === null) {
        if (d.begin > have || w.tail > 1000) return loadAgain(run);
        for (let i = Math.max(0, have - d.begin); i < d.count; i++) {
            for (const k in w.x) push(w.x[k], d.x[k][i], w.every > 1);
            for (const k in w.series) push(w.series[k], d.series[k] ? d.series[k][i] : null, w.every > 1);
            w.tail++;
        }
        if (view.smooth) loadAgain(run);
    }
    for (const p of d.points) {
        const q = w.points[p.name] || (w.points[p.name] = {step: [], units: [], hours: [], y: []});
        if (q.step.length && q.step[q.step.length - 1] >= p.step) continue;
        for (const k in q) q[k].push(p[k]);
    }
    const last = w.marks.length ? w.marks[w.marks.length - 1].step : -1;
    w.marks.push(...d.marks.filter(m => m.step > last || !w.marks.some(o => o.step === m.step && o.kind === m.kind)));
    redraw();
}
function push(s, v, wide) {
    if (Array.isArray(s)) s.push(v); else for (const k in s) s[k].push(k === "smooth" ? null : v);
}

/* ---- the list ---- */

const swatch = run => {
    const c = make("canvas", {className: "swatch", width: 52, height: 24, "aria-hidden": "true"}), g = c.getContext("2d");
    g.strokeStyle = colourOf(run);
    g.lineWidth = 5;
    g.setLineDash(dashOf(run).map(x => x * 2));
    g.beginPath(); g.moveTo(0, 12); g.lineTo(52, 12); g.stroke();
    return c;
};

function age(run) { return run.info.age_s === null ? null : run.info.age_s + (exported ? 0 : (performance.now() - run.heard) / 1000); }
function isSilent(run) {
    return run.info.state === "running" && age(run) > 60 + 5 * (run.info.step_s || 0);
}

function stateText(run) {
    const i = run.info;
    if (i.reading !== null) return `reading its lines, ${Math.round(100 * i.reading)}%`;
    if (isSilent(run)) return "running, but no step for " + duration(age(run));
    if (i.state === "stopped" && i.checkpoint !== null) return "stopped; checkpoint of step " + i.checkpoint;
    return i.state;
}

function hide(run, alone) {
    if (alone) view.solo = view.solo === run.name ? null : run.name;
    else if (view.solo !== null) { view.solo = null; view.hidden.delete(run.name); }
    else if (!view.hidden.delete(run.name)) view.hidden.add(run.name);
    drawList();
    loadAll();
    if (!exported) showPanel();
}

function drawList() {
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : null;
    $("list").tBodies[0].replaceChildren(...runs.map(run => {
        const i = run.info, on = shown(run), what = differencesOf(run).slice(0, 6).map(([k, v]) => `${k}: ${v}`).join("  ");
        const name = make("button", {className: "run", type: "button", title: i.run + " – click: hide or show; Alt-click: this one alone",
            "aria-pressed": String(on), onclick: e => hide(run, e.altKey)}, swatch(run), make("span", {className: "label"}, run.name));
        const solo = make("button", {className: "solo", type: "button", "aria-pressed": String(view.solo === run.name),
            "aria-label": "show " + run.name + " alone", onclick: () => hide(run, true)}, "solo");
        name.dataset.key = "run" + run.id;
        solo.dataset.key = "solo" + run.id;
        const cell = (...c) => make("td", {}, ...c);
        const step = cell(i.steps ? `${i.step} / ${i.steps}` : String(i.step));
        if (i.steps) step.append(make("progress", {max: i.steps, value: Math.min(i.step, i.steps), "aria-label": "steps done"}));
        const title = make("td", {className: "name"}, name);
        if (runs.length > 1) title.append(solo);
        if (what) title.append(make("span", {className: "what"}, what));
        const state = cell(make("span", {className: isSilent(run) ? "silent" : i.state}, stateText(run)));
        if (i.note && !isSilent(run)) state.append(make("span", {className: "what"}, i.note));
        return make("tr", {className: on ? "" : "off"}, title, state, step, cell(compact(i.loss)),
            cell(i.val_loss === null ? "–" : `${compact(i.val_loss)} (step ${i.val_step})`),
            cell(i.rate === null ? "–" : `${compact(i.rate)} ${i.unit}/s`), cell(duration(i.left_s)),
            cell(i.workers === null ? "–" : String(i.workers)), cell(bytes(i.memory_bytes)));
    }));
    if (focused) { const e = document.querySelector(`[data-key="${focused}"]`); if (e) e.focus(); }
    news();
}

/* ---- what is said aloud, and in the title ---- */

let saidAt = -1e9;
function news() {
    const going = runs.filter(r => r.info.state === "running"), run = going[0] || runs[0];
    if (!run) { $("news").textContent = "no runs yet"; return; }
    const silent = runs.filter(isSilent), i = run.info;
    const step = i.steps ? `step ${i.step} of ${i.steps}` : `step ${i.step}`;
    const text = silent.length ? `${silent[0].name}: no step for ${duration(age(silent[0]))}`
        : going.length > 1 ? `${going.length} of ${runs.length} runs are running`
            : `${run.name}: ${stateText(run)}, ${step}` + (i.left_s === null ? "" : `, ${duration(i.left_s)} left`);
    document.title = (silent.length ? "stalled: " : i.state === "running" ? "" : i.state + ": ") + `${step} – ${run.name}`;
    const now = performance.now();
    if (text !== $("news").textContent && (now - saidAt > 5000 || silent.length)) { $("news").textContent = text; saidAt = now; }
    const units = runs.some(r => r.info.unit === "tokens") ? "tokens" : "samples";
    $("x").options[1].textContent = units;
}

/* ---- charts ---- */

let charts = [], cursor = null, drawing = false;
const redraw = () => {
    if (drawing || paused) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; for (const c of charts) if (c.isOpen()) c.draw(); });
};

/* The main curves, in this order; others follow. */
const main = [["Loss", ["loss"], ["val_loss"]], ["Learning rate", ["lr"], []], ["Gradient norm", ["grad_norm"], []],
    ["Throughput (a second)", ["tokens_per_s", "samples_per_s"], []], ["Time of a step", ["seconds"], []]];
const titles = {memory_bytes: "Memory of this host's processes", mfu: "Share of the processor's peak", data_wait_s: "Wait for data",
    workers: "Workers", val_bits_per_byte: "Bits per byte, validation"};

function makeCharts() {
    const has = new Set(runs.flatMap(r => r.info.series)), evaluated = new Set(runs.flatMap(r => r.info.evaluations));
    const specs = main.map(m => [m[0], m[1].filter(s => has.has(s)), m[2].filter(s => evaluated.has(s))])
        .filter((m, i) => i === 0 || m[1].length);
    const used = new Set(specs.flatMap(s => s[1].concat(s[2])));
    const rest = [...has].filter(s => !used.has(s)).map(s => [titles[s] || s, [s], []])
        .concat([...evaluated].filter(s => !used.has(s)).map(s => [titles[s] || s, [], [s]]));
    const want = JSON.stringify([specs, rest]);
    if (makeCharts.have === want) return;
    makeCharts.have = want;
    charts = specs.map(s => new Chart($("charts"), ...s)).concat(rest.map(s => new Chart($("others"), ...s)));
    $("charts").replaceChildren(...charts.slice(0, specs.length).map(c => c.box));
    $("others").replaceChildren(...charts.slice(specs.length).map(c => c.box));
    $("more").hidden = !rest.length;
}

/* Round numbers, about n of them. */
function ticks(low, high, n) {
    const rough = (high - low) / n, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(k => k * power).find(k => k >= rough) || 10 * power;
    const list = [];
    for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9 && list.length < 50; i++) list.push(+(i * step).toPrecision(12));
    return list;
}
function logTicks(low, high) {
    const list = [], few = high - low < 1.2;
    for (let p = Math.floor(low); p <= Math.ceil(high); p++)
        for (const k of few ? [1, 2, 3, 5, 7] : [1]) {
            const v = p + Math.log10(k);
            if (v >= low && v <= high) list.push(10 ** v);
        }
    const skip = Math.ceil(list.length / 8);
    return list.length > 1 ? list.filter((_, i) => i % skip === 0) : [10 ** low, 10 ** high];
}

const firsts = s => Array.isArray(s) ? s : s.first, lasts = s => Array.isArray(s) ? s : s.last;

/* The whole extent on the x axis, of visible runs. */
function wholeRange() {
    let low = Infinity, high = -Infinity;
    for (const run of visible()) {
        const end = view.x === "step" ? run.info.step : run.info[view.x];
        const w = run.window, last = w && view.to === null ? lasts(w.x[view.x]) : [];
        if (run.info.rows) low = 0;
        high = Math.max(high, end || 0, last.length ? last[last.length - 1] : 0);
    }
    return low < high ? [low, high] : [0, 1];
}
function range() {
    const [low, high] = wholeRange();
    return [view.from === null ? low : view.from, view.to === null ? high : Math.max(view.to, view.from === null ? -Infinity : view.from)];
}

/* The index of the last x at or before `x`. */
function indexAt(xs, x) {
    let low = 0, high = xs.length;
    while (low < high) { const m = (low + high) >> 1; if (xs[m] <= x) low = m + 1; else high = m; }
    return low - 1;
}

const axisNames = {step: "step", units: "tokens", hours: "hours"};
const xText = x => view.x === "step" ? Math.round(x).toLocaleString("en") : compact(x);

class Chart {
    constructor(parent, title, series, points) {
        Object.assign(this, {title, series, points, parent});
        this.name = series.concat(points)[0] || "loss";
        this.format = formats[this.name] || compact;
        this.canvas = make("canvas", {className: "plot", tabIndex: 0, role: "img", "aria-label": title});
        this.log = make("button", {type: "button", onclick: () => this.toggleLog(), "aria-label": title + ": logarithmic axis"}, "log");
        this.key = make("ul", {className: "key"});
        this.table = make("details", {ontoggle: () => this.drawTable()}, make("summary", {}, "Table"));
        this.box = make("figure", {className: "chart"}, make("div", {className: "head"}, make("h3", {}, title), this.log), this.canvas, this.key, this.table);
        this.listen();
    }
    isOpen() { return this.parent.id === "charts" || $("more").open; }
    toggleLog() {
        if (!view.log.delete(this.name)) view.log.add(this.name);
        writeUrl();
        redraw();
    }

    /* ---- the pointer and the keyboard ---- */

    xAt(px) { const [x0, x1] = range(); return x0 + (x1 - x0) * Math.min(1, Math.max(0, (px - this.left) / (this.right - this.left))); }
    listen() {
        const c = this.canvas, at = e => e.clientX - c.getBoundingClientRect().left;
        let from = null;
        c.onpointerdown = e => { if (e.button === 0) { from = at(e); c.setPointerCapture(e.pointerId); } };
        c.onpointermove = e => { cursor = this.xAt(at(e)); this.band = from === null ? null : [from, at(e)]; redraw(); };
        c.onpointerup = e => {
            const to = at(e), start = from;
            from = this.band = null;
            if (start !== null && Math.abs(to - start) > 6) zoom(this.xAt(Math.min(start, to)), this.xAt(Math.max(start, to)));
            redraw();
        };
        c.onpointercancel = () => { from = this.band = null; };
        c.onpointerleave = () => { cursor = null; redraw(); };
        c.ondblclick = () => zoom(null, null);
        c.onblur = () => { cursor = null; redraw(); };
        c.onkeydown = e => {
            if (e.ctrlKey || e.metaKey || e.altKey) return;
            const [x0, x1] = range(), width = x1 - x0, here = cursor === null ? x1 : cursor;
            const arrow = {ArrowLeft: -1, ArrowRight: 1}[e.key];
            if (arrow && e.shiftKey) zoom(x0 + arrow * width / 4, x1 + arrow * width / 4);
            else if (arrow) cursor = Math.min(x1, Math.max(x0, here + arrow * Math.max(width / (this.right - this.left), view.x === "step" ? 1 : 0)));
            else if (e.key === "Home") cursor = x0;
            else if (e.key === "End") cursor = x1;
            else if (e.key === "+" || e.key === "=") zoom(here - width / 4, here + width / 4);
            else if (e.key === "-") zoom(here - width, here + width);
            else if (e.key === "Escape" || e.key === "0") zoom(null, null);
            else if (e.key === "l" || e.key === "L") this.toggleLog();
            else return;
            e.preventDefault();
            redraw();
            this.say();
        };
    }
    say() {
        if (cursor === null) return;
        clearTimeout(Chart.saying);
        Chart.saying = setTimeout(() => {
            $("news").textContent = `${this.title}, ${axisNames[view.x]} ${xText(cursor)}: ` +
                visible().slice(0, 6).map(r => `${r.name} ${this.valueText(r)}`).join("; ");
            saidAt = performance.now();
        }, 300);
    }

    /* ---- values ---- */

    seriesOf(run) {
        const w = run.window;
        for (const s of this.series) if (w && w.series[s]) return w.series[s];
        return null;
    }
    pointsOf(run) {
        const w = run.window;
        return w && this.points.length ? w.points[this.points[0]] || null : null;
    }
    /* The value under the cursor, or the last one. */
    valueText(run) {
        const s = this.seriesOf(run), p = this.pointsOf(run), parts = [];
        if (s) {
            const xs = firsts(run.window.x[view.x]);
            let i = cursor === null ? xs.length - 1 : indexAt(xs, cursor);
            const low = Array.isArray(s) ? s : s.low, high = Array.isArray(s) ? s : s.high;
            if (cursor === null) while (i > 0 && lasts(s)[i] === null) i--;
            if (i < 0 || low[i] === null || low[i] === undefined) parts.push("–");
            else if (cursor === null) parts.push(this.format(lasts(s)[i]));
            else parts.push(low[i] === high[i] ? this.format(low[i]) : `${this.format(low[i])} to ${this.format(high[i])}`);
        }
        if (p && p.y.length) {
            const i = cursor === null ? p.y.length - 1 : indexAt(p[view.x], cursor);
            if (i >= 0) parts.push((s ? "validation " : "") + this.format(p.y[i]));
        }
        return parts.join(", ") || "–";
    }

    /* ---- drawing ---- */

    /* What the y axis shows: every value in the range, so that none is cut off. */
    extent(x0, x1, log) {
        let low = Infinity, high = -Infinity;
        const see = v => { if (v !== null && v !== undefined && (!log || v > 0)) { if (v < low) low = v; if (v > high) high = v; } };
        for (const run of visible()) {
            const s = this.seriesOf(run), p = this.pointsOf(run);
            if (s) {
                const a = firsts(run.window.x[view.x]), b = lasts(run.window.x[view.x]);
                const lows = Array.isArray(s) ? s : s.low, highs = Array.isArray(s) ? s : s.high;
                for (let i = 0; i < a.length; i++) if (b[i] >= x0 && a[i] <= x1) { see(lows[i]); see(highs[i]); }
            }
            if (p) for (let i = 0; i < p.y.length; i++) if (p[view.x][i] >= x0 && p[view.x][i] <= x1) see(p.y[i]);
        }
        if (low > high) return null;
        if (log) { low = Math.log10(low); high = Math.log10(high); }
        const pad = high > low ? (high - low) * .05 : Math.abs(high) * .05 || 1;
        return [low - pad, high + pad];
    }

    draw() {
        const c = this.canvas, g = c.getContext("2d"), scale = devicePixelRatio || 1, W = c.clientWidth, H = c.clientHeight;
        if (!W) return;
        if (c.width !== Math.round(W * scale) || c.height !== Math.round(H * scale)) { c.width = Math.round(W * scale); c.height = Math.round(H * scale); }
        g.setTransform(scale, 0, 0, scale, 0, 0);
        g.clearRect(0, 0, W, H);
        const log = view.log.has(this.name), [x0, x1] = range(), y = this.extent(x0, x1, log);
        this.log.setAttribute("aria-pressed", String(log));
        Object.assign(this, {left: 58, right: W - 8, top: 8, bottom: H - 22});
        const style = getComputedStyle(document.documentElement), ink = style.getPropertyValue("--soft"), grid = style.getPropertyValue("--grid");
        this.px = x => this.left + (this.right - this.left) * (x - x0) / ((x1 - x0) || 1);
        this.py = v => this.bottom - (this.bottom - this.top) * ((log ? Math.log10(v) : v) - (y ? y[0] : 0)) / (y ? y[1] - y[0] : 1);
        this.drawAxes(g, x0, x1, y, log, ink, grid);
        g.save();
        g.beginPath(); g.rect(this.left - 1, this.top - 4, this.right - this.left + 6, this.bottom - this.top + 8); g.clip();
        if (y) { this.drawMarks(g, ink); for (const run of visible()) this.drawRun(g, run, log); }
        g.restore();
        if (this.band) { g.globalAlpha = .18; g.fillStyle = style.getPropertyValue("--accent"); g.fillRect(Math.min(...this.band), this.top, Math.abs(this.band[1] - this.band[0]), this.bottom - this.top); g.globalAlpha = 1; }
        if (cursor !== null && cursor >= x0 && cursor <= x1) {
            g.strokeStyle = style.getPropertyValue("--ink"); g.lineWidth = 1; g.setLineDash([]);
            g.beginPath(); g.moveTo(this.px(cursor), this.top); g.lineTo(this.px(cursor), this.bottom); g.stroke();
        }
        if (!y) { g.fillStyle = ink; g.fillText("no values yet", this.left + 12, this.top + 20); }
        this.drawKey();
        c.setAttribute("aria-label", `${this.title} by ${axisNames[view.x]}, ${xText(x0)} to ${xText(x1)}. ` +
            visible().slice(0, 8).map(r => `${r.name}: ${this.valueText(r)}`).join("; "));
        if (this.table.open && !this.tabling) this.tabling = setTimeout(() => { this.tabling = null; this.drawTable(); }, 500);
    }

    drawAxes(g, x0, x1, y, log, ink, grid) {
        g.font = "12px system-ui, sans-serif";
        g.fillStyle = ink; g.strokeStyle = grid; g.lineWidth = 1; g.setLineDash([]);
        g.textAlign = "right"; g.textBaseline = "middle";
        for (const v of !y ? [] : log ? logTicks(...y) : ticks(y[0], y[1], 5)) {
            const at = Math.round(this.py(v)) + .5;
            g.beginPath(); g.moveTo(this.left, at); g.lineTo(this.right, at); g.stroke();
            g.fillText(this.format(v), this.left - 6, at);
        }
        g.textAlign = "center"; g.textBaseline = "top";
        for (const v of ticks(x0, x1, Math.max(2, (this.right - this.left) / 110))) {
            const at = Math.round(this.px(v)) + .5;
            g.beginPath(); g.moveTo(at, this.top); g.lineTo(at, this.bottom); g.stroke();
            if (at > this.left + 8 && at < this.right - 14) g.fillText(xText(v), at, this.bottom + 5);
        }
        g.textAlign = "left";
        g.fillText(view.x === "units" ? $("x").options[1].textContent : axisNames[view.x] === "step" ? "step" : axisNames[view.x], 6, this.bottom + 5);
    }

    drawMarks(g, ink) {
        const few = visible();
        if (few.length > 3) return;
        for (const run of few) for (const m of run.window ? run.window.marks : []) {
            const x = Math.round(this.px(m[view.x])) + .5;
            if (m.kind === "started" && m.step === 0) continue;
            if (m.kind === "gap" && view.x === "step") {
                g.globalAlpha = .2; g.fillStyle = ink;
                g.fillRect(this.px(m.line.gap[0]), this.top, Math.max(2, this.px(m.line.gap[1]) - this.px(m.line.gap[0])), this.bottom - this.top);
                g.globalAlpha = 1;
                continue;
            }
            g.strokeStyle = g.fillStyle = ink; g.lineWidth = 1; g.setLineDash([2, 3]);
            g.beginPath(); g.moveTo(x, this.top); g.lineTo(x, this.bottom); g.stroke();
            g.textAlign = "center"; g.textBaseline = "top";
            g.fillText({started: "▸", view: "⇄", changed: "✎", diverged: "✕", ended: "■"}[m.kind] || "|", x, this.top);
        }
    }

    /* A stretch is drawn from its first value over its lowest and highest to its last: the same pixels as all of its steps. */
    drawRun(g, run, log) {
        const s = this.seriesOf(run), p = this.pointsOf(run), ok = v => v !== null && v !== undefined && (!log || v > 0);
        g.strokeStyle = g.fillStyle = colourOf(run);
        g.setLineDash(dashOf(run));
        g.lineJoin = "round";
        if (s) {
            const a = firsts(run.window.x[view.x]), b = lasts(run.window.x[view.x]), smooth = view.smooth && s.smooth;
            g.globalAlpha = smooth ? .3 : 1;
            g.lineWidth = smooth ? 1 : 1.6;
            g.beginPath();
            let pen = false, alone = 0;
            for (let i = 0; i < a.length; i++) {
                const f = Array.isArray(s) ? s[i] : s.first[i];
                if (!ok(f)) continue; /* not every line has every number */
                const x = this.px(a[i]);
                if (pen) g.lineTo(x, this.py(f)); else g.moveTo(x, this.py(f));
                if (!Array.isArray(s) && s.low[i] !== s.high[i] && ok(s.low[i])) {
                    const end = this.px(b[i]), middle = (x + end) / 2;
                    g.lineTo(middle, this.py(s.low[i])); g.lineTo(middle, this.py(s.high[i])); g.lineTo(end, this.py(s.last[i]));
                }
                pen = true;
                alone++;
            }
            g.stroke();
            if (alone === 1) g.fillRect(this.px(a[0]) - 2, this.py(firsts(s).find(ok)) - 2, 4, 4);
            g.globalAlpha = 1;
            if (smooth) this.drawSmooth(g, s.smooth, b, ok);
        }
        g.setLineDash([]);
        if (p) for (let i = 0; i < p.y.length; i++) if (ok(p.y[i])) {
            g.beginPath(); g.arc(this.px(p[view.x][i]), this.py(p.y[i]), p.y.length > 200 ? 2 : 3.5, 0, 7); g.fill();
        }
        if (p && !s) { g.lineWidth = 1.2; g.beginPath(); p.y.forEach((v, i) => ok(v) && g.lineTo(this.px(p[view.x][i]), this.py(v))); g.stroke(); }
    }
    drawSmooth(g, values, xs, ok) {
        g.lineWidth = 2.2;
        g.beginPath();
        values.forEach((v, i) => ok(v) && g.lineTo(this.px(xs[i]), this.py(v)));
        g.stroke();
    }

    drawKey() {
        const list = visible().slice(0, 40);
        if (this.key.children.length !== list.length || this.keyOf !== list.map(r => r.id).join() + darkness.matches) {
            this.key.replaceChildren(...list.map(run => make("li", {}, swatch(run), make("span", {}))));
            this.keyOf = list.map(r => r.id).join() + darkness.matches;
        }
        list.forEach((run, i) => { this.key.children[i].lastChild.textContent = `${run.name}  ${this.valueText(run)}`; });
    }

    /* For those who can't see the curve: about 20 rows of it. */
    drawTable() {
        if (!this.table.open) return;
        const [x0, x1] = range(), before = cursor, list = visible().slice(0, 8), rows = [];
        for (let i = 0; i <= 20; i++) {
            cursor = x0 + (x1 - x0) * i / 20;
            rows.push(make("tr", {}, make("th", {scope: "row"}, xText(cursor)), ...list.map(r => make("td", {}, this.valueText(r)))));
        }
        cursor = before;
        const head = make("tr", {}, make("th", {scope: "col"}, axisNames[view.x]), ...list.map(r => make("th", {scope: "col"}, r.name)));
        while (this.table.children.length > 1) this.table.lastChild.remove();
        this.table.append(make("div", {className: "scroll", tabIndex: 0, role: "region", "aria-label": this.title + " as a table"},
            make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows))));
    }
}

function zoom(from, to) {
    if (from !== null) {
        const [low, high] = wholeRange(), least = view.x === "step" ? 4 : (high - low) / 1e6;
        from = Math.max(low, from);
        to = Math.max(to, from + least);
        if (from <= low && to >= high) from = to = null;
        else if (to >= high) to = null;
    }
    view.from = from;
    view.to = to;
    redraw();
    loadSoon();
}

/* ---- one run: what is asked for when someone looks ---- */

const tabs = [["what it writes", showSamples], ["time of a step", showTimeline], ["same bits?", showComparison], ["ledger", showLedger], ["config", showConfig]];
let tab = 0, chosen = null, asked = 0;

function makeTabs() {
    $("tabs").replaceChildren(...tabs.map(([name], i) => make("button", {type: "button", role: "tab", id: "tab" + i, "aria-selected": String(i === tab),
        "aria-controls": "panel", tabIndex: i === tab ? 0 : -1, onclick: () => choose(i), onkeydown: e => {
            const step = {ArrowLeft: -1, ArrowRight: 1}[e.key];
            if (step) { choose((tab + step + tabs.length) % tabs.length); $("tab" + tab).focus(); e.preventDefault(); }
        }}, name)));
    $("panel").setAttribute("aria-labelledby", "tab" + tab);
}
function choose(i) { tab = i; makeTabs(); showPanel(); }

function listRuns() {
    if (!runs.includes(chosen)) chosen = runs.find(r => r.info.state === "running") || runs[0] || null;
    $("which").replaceChildren(...runs.map(r => make("option", {value: r.id, selected: r === chosen}, r.name)));
    $("details").hidden = !runs.length || !!exported;
    if (chosen && !exported) showPanel();
}

async function showPanel() {
    const mine = ++asked;
    let parts;
    try { parts = await tabs[tab][1](chosen); } catch (e) { parts = [String(e.message)]; }
    if (mine === asked) $("panel").replaceChildren(...parts);
}
const plain = d => [d.error ? make("p", {}, d.error) : make("pre", {}, d.text)];
const table = (head, rows, kind) => make("table", {className: kind || ""}, make("thead", {}, make("tr", {}, ...head.map(h => make("th", {scope: "col"}, h)))),
    make("tbody", {}, ...rows.map(r => make("tr", {}, ...r.map((c, i) => make(i ? "td" : "th", i ? {} : {scope: "row"}, c))))));

/* A row a step, a column a prompt; of the visible runs, so that they can be compared. */
async function showSamples(run) {
    const list = [run, ...visible().filter(r => r !== run)].slice(0, 4), prompts = new Set(), steps = new Map();
    for (const r of list) for (const x of (await ask("samples?run=" + r.id)).samples) {
        const key = `${r.name}: ${x.prompt}`;
        prompts.add(key);
        if (!steps.has(x.step)) steps.set(x.step, {});
        steps.get(x.step)[key] = x.text;
    }
    if (!prompts.size) return [make("p", {}, "No samples: train.sample_prompts makes a run write after each evaluation.")];
    const rows = [...steps].sort((a, b) => b[0] - a[0]);
    return [table(["step", ...prompts], rows.map(([step, x]) => [String(step), ...[...prompts].map(p => x[p] || "")]), "texts")];
}

async function showComparison(run) {
    const others = visible().filter(r => r !== run).slice(0, 7);
    if (!others.length) return [make("p", {}, "Show another run beside this one: then this says up to which step both have the same bits.")];
    return plain(await ask("compare?runs=" + [run, ...others].map(r => r.id).join(",")));
}
async function showLedger(run) { return plain(await ask("ledger?run=" + run.id)); }
async function showConfig(run) {
    const keys = differencesOf(run), i = run.info;
    const facts = [["directory", i.run], ["started", i.started || "–"], ["command", i.command || "–"], ["host", i.host ? `${i.host}, process ${i.pid}` : "–"], ["checkpoint", i.checkpoint === null ? "none" : "step " + i.checkpoint]];
    return [table(["", "this run"], facts, "texts"), make("h3", {}, "Keys in which runs differ"), keys.length ? table(["key", "value"], keys, "texts") : make("p", {}, "none")];
}

/* What the time of each worker went to, and the actions of one traced step. */
const kinds = [["computes", "#0072b2"], ["communicates, and computes nothing", "#c24e00"], ["waits for others", "#b9a26a"], ["nothing", "transparent"]];
function merged(spans) {
    const list = [];
    for (const [a, b] of spans.filter(s => s[1] > s[0]).sort((x, y) => x[0] - y[0])) {
        const last = list[list.length - 1];
        if (last && a <= last[1]) last[1] = Math.max(last[1], b); else list.push([a, b]);
    }
    return list;
}
const length = list => list.reduce((n, [a, b]) => n + b - a, 0);
function timesOf(d, worker) {
    const own = d.events.filter(e => e[0] === worker), compute = own.filter(e => e[1] === 0).map(e => [e[2], e[4]]);
    const moving = own.filter(e => e[1] === 1).map(e => [e[3], e[4]]), waits = own.filter(e => e[1] === 1).map(e => [e[2], e[3]]);
    const c = length(merged(compute)), cm = length(merged(compute.concat(moving))), all = length(merged(compute.concat(moving, waits)));
    return [c, cm - c, all - cm, Math.max(0, d.step_s * 1e6 - all)];
}

async function showTimeline(run, step = 0) {
    const d = await ask(`timeline?run=${run.id}&step=${step}`);
    if (d.error) return [make("p", {}, d.error)];
    const whole = d.step_s * 1e6, times = [...Array(d.workers).keys()].map(w => timesOf(d, w));
    const wait = times.map(t => t[2]), slow = d.workers > 1 && Math.max(...wait) > .1 * whole ? wait.indexOf(Math.min(...wait)) : -1;
    const share = x => duration(x / 1e6) + ` (${Math.round(100 * x / whole)}%)`;
    const rows = times.map((t, w) => [`worker ${w}` + (w === slow ? " – the others wait for it" : ""), ...t.map(share)]);
    const pick = make("select", {onchange: async () => $("panel").replaceChildren(...await showTimeline(run, +pick.value))},
        ...[...Array(d.steps).keys()].map(i => make("option", {value: i, selected: i === d.step}, `step ${d.first_step + i}`)));
    const canvas = make("canvas", {className: "lanes", tabIndex: 0, role: "img", "aria-label": `actions of ${d.workers} workers in a step of ${duration(d.step_s)}; the table below has their sums`});
    const said = make("p", {className: "hint", role: "status"}, "Drag to zoom, double-click for the whole step; arrows, + and − do the same.");
    drawLanes(canvas, said, d);
    return [make("label", {}, "traced ", pick), make("ul", {className: "kinds"}, ...kinds.slice(0, 3).map(([name, colour]) => { const i = make("i"); i.style.background = colour; return make("li", {}, i, name); })),
        canvas, said, table(["", ...kinds.map(k => k[0])], rows)];
}

function drawLanes(canvas, said, d) {
    const rowHeight = 15, height = d.workers * (2 * rowHeight + 8) + 24, left = 74;
    let from = 0, to = d.step_s * 1e6, start = null, end = null, here = null;
    canvas.style.height = height + "px";
    const draw = () => {
        const scale = devicePixelRatio || 1, W = canvas.clientWidth, g = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
        if (!W) return;
        canvas.width = W * scale; canvas.height = height * scale;
        g.scale(scale, scale);
        g.font = "12px system-ui, sans-serif"; g.textBaseline = "middle";
        const px = t => left + (W - left) * (t - from) / (to - from);
        for (let w = 0; w < d.workers; w++) { g.fillStyle = style.getPropertyValue("--ink"); g.fillText("worker " + w, 0, w * (2 * rowHeight + 8) + rowHeight); }
        g.save(); g.beginPath(); g.rect(left, 0, W - left, height); g.clip();
        for (const [w, lane, a, b, c] of d.events) {
            if (c < from || a > to) continue;
            const y = w * (2 * rowHeight + 8) + lane * rowHeight;
            if (b > a) { g.fillStyle = kinds[2][1]; g.fillRect(px(a), y, Math.max(.5, px(b) - px(a)), rowHeight - 2); }
            g.fillStyle = kinds[lane][1]; g.fillRect(px(b), y, Math.max(.7, px(c) - px(b) - .3), rowHeight - 2);
        }
        g.fillStyle = g.strokeStyle = style.getPropertyValue("--soft"); g.textAlign = "center";
        for (const t of ticks(from, to, W / 130)) g.fillText(duration(t / 1e6), px(t), height - 9);
        if (start !== null && end !== null) { g.globalAlpha = .2; g.fillRect(Math.min(start, end), 0, Math.abs(end - start), height - 20); g.globalAlpha = 1; }
        if (here !== null) { g.beginPath(); g.moveTo(px(here), 0); g.lineTo(px(here), height - 20); g.stroke(); }
        g.restore();
    };
    const at = e => e.clientX - canvas.getBoundingClientRect().left, time = x => from + (to - from) * Math.max(0, x - left) / (canvas.clientWidth - left);
    const say = () => { const on = d.events.filter(e => e[2] <= here && e[4] >= here); said.textContent = duration(here / 1e6) + ": " + (on.map(e => `worker ${e[0]} ${here < e[3] ? "waits for" : "runs"} ${e[5]}`).join("; ") || "nothing runs"); };
    const part = (a, b) => { const whole = d.step_s * 1e6; from = Math.max(0, a); to = Math.min(whole, Math.max(b, from + whole / 1e5)); draw(); };
    canvas.onpointerdown = e => { start = at(e); canvas.setPointerCapture(e.pointerId); };
    canvas.onpointermove = e => { if (start !== null) end = at(e); here = time(at(e)); say(); draw(); };
    canvas.onpointerup = e => { const a = start, b = at(e); start = end = null; if (a !== null && Math.abs(b - a) > 6) part(time(Math.min(a, b)), time(Math.max(a, b))); else draw(); };
    canvas.ondblclick = () => part(0, Infinity);
    canvas.onkeydown = e => {
        const step = {ArrowLeft: -1, ArrowRight: 1}[e.key], wide = to - from;
        if (here === null) here = (from + to) / 2;
        if (step && e.shiftKey) part(from + step * wide / 4, to + step * wide / 4);
        else if (step) { here = Math.min(to, Math.max(from, here + step * wide / 200)); say(); draw(); }
        else if (e.key === "+" || e.key === "=") part(here - wide / 4, here + wide / 4);
        else if (e.key === "-") part(here - wide, here + wide);
        else if (e.key === "Escape") part(0, Infinity);
        else return;
        e.preventDefault();
    };
    new ResizeObserver(draw).observe(canvas);
}

/* ---- live ---- */

let stream = null, lostAt = null;

function listen() {
    if (exported || stream) return;
    stream = new EventSource("events" + (lastId ? "?after=" + encodeURIComponent(lastId) : ""));
    const on = (name, f) => stream.addEventListener(name, e => {
        if (e.lastEventId) lastId = e.lastEventId;
        lostAt = null;
        $("banner").hidden = true;
        f(JSON.parse(e.data));
    });
    on("hello", d => { if (!d.resumed || d.boot !== boot) loadList(); });
    on("list", () => loadList());
    on("status", d => {
        const run = runs[d.id];
        if (!run) return;
        const known = run.info.series.length + run.info.evaluations.length, arrived = run.info.reading !== null && d.reading === null;
        run.info = d;
        run.heard = performance.now();
        if (arrived) { makeCharts(); if (shown(run)) load(run); }
        else if (known !== d.series.length + d.evaluations.length) { makeCharts(); loadAgain(run); }
        listSoon();
    });
    on("rows", addRows);
    on("stale", d => { if (runs[d.run]) { runs[d.run].info.rows = d.rows; if (view.to === null) loadAgain(runs[d.run]); } });
    on("back", d => { if (runs[d.run]) loadAgain(runs[d.run]); });
    stream.onerror = () => { if (lostAt === null) lostAt = performance.now(); };
}
let listing = null;
function listSoon() { if (!listing) listing = setTimeout(() => { listing = null; drawList(); redraw(); }, 250); }

function watchConnection() {
    if (lostAt === null || performance.now() - lostAt < 3000) return;
    $("banner").textContent = "The connection to lockstep watch is lost; it is tried again.";
    $("banner").hidden = false;
    if (stream && stream.readyState === EventSource.CLOSED) { stream = null; listen(); }
}

/* A tab that nobody sees needs no stream; it gets what it has missed. */
let leaving = null;
document.addEventListener("visibilitychange", () => {
    clearTimeout(leaving);
    if (document.hidden) leaving = setTimeout(() => { if (stream) { stream.close(); stream = null; } }, 20000);
    else { listen(); redraw(); }
});

/* ---- the beginning ---- */

function applyView() {
    $("x").value = view.x;
    if (![...$("smooth").options].some(o => +o.value === view.smooth)) $("smooth").append(make("option", {value: view.smooth}, view.smooth + " steps"));
    $("smooth").value = String(view.smooth);
}
$("x").onchange = () => { view.x = $("x").value; view.from = view.to = cursor = null; loadAll(); };
$("smooth").onchange = () => { view.smooth = +$("smooth").value; loadAll(); };
$("whole").onclick = () => zoom(null, null);
$("pause").onclick = () => {
    paused = !paused;
    $("pause").setAttribute("aria-pressed", String(paused));
    redraw();
};
$("more").ontoggle = loadSoon;
$("which").onchange = () => { chosen = runs[+$("which").value]; showPanel(); };
makeTabs();
onresize = () => { redraw(); loadSoon(); };
onhashchange = () => { readUrl(); applyView(); drawList(); loadAll(); };
darkness.addEventListener("change", () => { drawList(); redraw(); });
readUrl();
applyView();
if (exported) { for (const id of ["pause", "smooth"]) $(id).disabled = true; loadList(); }
else { listen(); setInterval(() => { watchConnection(); if (runs.some(isSilent)) drawList(); }, 1000); }
})();
