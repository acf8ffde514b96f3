/* difference.js - by how much a curve of one run is above that of another. */
let differs = {name: "loss", base: null};

async function showDifference(run) {
    const others = runs.filter(r => r !== run);
    if (!others.length) return [make("p", {}, "There is no other run.")];
    const base = others.find(r => r.name === differs.base) || others.find(shown) || others[0];
    const names = run.info.series.filter(s => base.info.series.includes(s));
    const name = names.includes(differs.name) ? differs.name : names[0];
    const d = await ask(`difference?run=${run.id},${base.id}&name=${encodeURIComponent(name)}&columns=600`);
    const pick = (label, list, value, key) => {
        const s = make("select", {onchange: () => { differs[key] = s.value; showPanel(); }}, ...list.map(x => make("option", {value: x, selected: x === value}, x)));
        return make("label", {}, label, s, " ");
    };
    const head = make("p", {}, pick("", names, name, "name"), pick(`of ${run.name} minus that of `, others.map(r => r.name), base.name, "base"));
    if (d.error) return [head, make("p", {}, d.error)];
    const same = d.first === null ? `identical in all ${d.steps.toLocaleString("en")} steps that both have` : `first different in step ${d.first}`;
    const canvas = make("canvas", {className: "plot", role: "img", "aria-label": `${name} of ${run.name} minus ${base.name}: ${same}`});
    new ResizeObserver(() => drawDifference(canvas, d)).observe(canvas);
    return [head, make("p", {}, same), canvas];
}

function drawDifference(canvas, d) {
    const scale = devicePixelRatio || 1, W = canvas.clientWidth, H = canvas.clientHeight, g = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    if (!W) return;
    canvas.width = W * scale; canvas.height = H * scale;
    g.scale(scale, scale);
    const ok = d.low.filter(v => v !== null), top = Math.max(0, ...d.high.filter(v => v !== null)), bottom = Math.min(0, ...ok), pad = (top - bottom) * .06 || 1;
    const x0 = d.x[0], x1 = d.x[d.x.length - 1] + d.every, left = 70;
    const px = x => left + (W - left - 8) * (x - x0) / ((x1 - x0) || 1), py = y => 8 + (H - 30) * (top + pad - y) / (top - bottom + 2 * pad);
    g.font = "12px system-ui, sans-serif"; g.fillStyle = style.getPropertyValue("--soft"); g.strokeStyle = style.getPropertyValue("--grid");
    g.textAlign = "right"; g.textBaseline = "middle";
    for (const v of ticks(bottom - pad, top + pad, 5)) { g.fillText(compact(v), left - 6, py(v)); g.beginPath(); g.moveTo(left, py(v)); g.lineTo(W - 8, py(v)); g.stroke(); }
    g.textAlign = "center";
    for (const v of ticks(x0, x1, W / 130)) g.fillText(v.toLocaleString("en"), px(v), H - 10);
    g.strokeStyle = style.getPropertyValue("--ink");
    g.beginPath(); g.moveTo(left, py(0)); g.lineTo(W - 8, py(0)); g.stroke();
    g.fillStyle = style.getPropertyValue("--accent");
    d.x.forEach((x, i) => { if (d.low[i] !== null) g.fillRect(px(x), py(d.high[i]) - .75, Math.max(1, px(x + d.every) - px(x)), py(d.low[i]) - py(d.high[i]) + 1.5); });
}
