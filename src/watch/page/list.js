/* list.js - the table of runs; what is said aloud, and in the title. */
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
