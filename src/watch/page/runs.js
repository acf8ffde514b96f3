/* runs.js - the runs that are watched, and windows of their curves. */
/* Hues that the colour-blind can tell (after M. Okabe, K. Ito 2008), at 3:1 or more; dashes are a second sign. */
const hues = {light: ["#0072b2", "#c24e00", "#007a5a", "#a8457f", "#5b5b5b", "#946200", "#2a7fb8", "#7a3fc2"],
    dark: ["#5ab4ef", "#ff8a3d", "#2cc99a", "#e79ac6", "#d0d0d0", "#e9b44c", "#9ad5ff", "#c4a3ff"]};
const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3], [14, 4]];
const darkness = matchMedia("(prefers-color-scheme: dark)");
const colourOf = run => hues[darkness.matches ? "dark" : "light"][run.id % 8];
const dashOf = run => dashes[run.id % dashes.length];

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

let waiting = [], asking = 0;

/* Four at once: a browser opens six connections, and one of them is the stream. */
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
