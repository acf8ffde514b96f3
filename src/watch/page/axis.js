/* axis.js - the x axis of all charts, and round numbers on any axis. */
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
