/* charts.js - which charts there are, and the part that they show. */
let charts = [], cursor = null, drawing = false, again = false;
/* What takes long to draw rests as long before it is drawn again. */
const redraw = () => {
    again = drawing;
    if (drawing || paused) return;
    drawing = true;
    requestAnimationFrame(began => {
        for (const c of charts) if (c.isOpen()) c.draw();
        requestAnimationFrame(now => setTimeout(() => { drawing = false; if (again) redraw(); }, now - began > 100 ? now - began : 0));
    });
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
