/* timeline.js - the actions of a traced step. */
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
    const rows = times.map((t, w) => [`worker ${w}` + (w === slow ? " – the others wait for it" : ""), stack(t.map(x => x / whole), kinds.map(k => k[1]), kinds.map(k => k[0])), ...t.map(share)]);
    const pick = make("select", {onchange: async () => $("panel").replaceChildren(...await showTimeline(run, +pick.value))},
        ...[...Array(d.steps).keys()].map(i => make("option", {value: i, selected: i === d.step}, `step ${d.first_step + i}`)));
    const canvas = make("canvas", {className: "lanes", tabIndex: 0, role: "img", "aria-label": `actions of ${d.workers} workers in a step of ${duration(d.step_s)}; the table below has their sums`});
    const said = make("p", {className: "hint", role: "status"}, "Drag to zoom, double-click for the whole step; arrows, + and − do the same.");
    drawLanes(canvas, said, d);
    return [make("label", {}, "traced ", pick), legend(kinds.slice(0, 3)),
        canvas, said, table(["", "time", ...kinds.map(k => k[0])], rows)];
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
