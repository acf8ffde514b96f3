/* workers.js - what each worker does now, and where its time goes. */
const parts = [["compute", "computes", "#0072b2"], ["communicate", "communicates, or waits for others", "#c24e00"], ["between", "between steps: data, evaluations, saving", "#b9a26a"]];
let processorTimes = new Map();

/* Stacked shares of a time, each with its colour and its number. */
function stack(shares, colours, names) {
    const said = shares.map((s, i) => `${names[i]} ${Math.round(100 * s)}%`).join(", "), bar = make("span", {className: "stack", role: "img", "aria-label": said, title: said});
    shares.forEach((s, i) => { const e = make("i"); e.style.width = 100 * s + "%"; e.style.background = colours[i]; bar.append(e); });
    return bar;
}
const legend = list => make("ul", {className: "kinds"}, ...list.map(([name, colour]) => { const i = make("i"); i.style.background = colour; return make("li", {}, i, name); }));

/* The one that the others wait for computes while they communicate. */
function straggler(workers) {
    const waits = workers.map(w => w.communicate), least = Math.min(...waits);
    return workers.length > 1 && Math.max(...waits) - least > .15 ? waits.indexOf(least) : -1;
}

function loadOf(w, time) {
    const old = processorTimes.get(w.pid);
    if (!old || time > old.time) processorTimes.set(w.pid, {time, cpu: w.cpu_s, load: old ? (w.cpu_s - old.cpu) / (time - old.time) : null});
    const load = processorTimes.get(w.pid).load;
    return load === null ? "–" : load.toFixed(2) + " cores";
}

async function showWorkers(run) {
    const d = await ask("workers?run=" + run.id);
    if (d.error) return [make("p", {}, d.error)];
    const slow = straggler(d.workers), share = d.workers.reduce((n, w) => n + w.virtual, 0);
    const rows = d.workers.map((w, i) => [`worker ${w.worker}` + (i === slow ? " – the others wait for it" : ""), `step ${w.step}: ${w.doing}`,
        `${w.first_virtual} to ${w.first_virtual + w.virtual - 1}` + (w.virtual * d.workers.length === share ? "" : ` (${w.virtual})`),
        stack(parts.map(p => w[p[0]]), parts.map(p => p[2]), parts.map(p => p[1])), `${Math.round(100 * w.compute)}%`, bytes(w.memory_bytes < 0 ? null : w.memory_bytes),
        loadOf(w, d.time_s), `${d.host}, ${w.pid}` + (w.beat_s > 2 ? ` – no sign of life for ${duration(w.beat_s)}` : "")]);
    const old = d.age_s > 10 ? `, ${duration(d.age_s)} ago` : "";
    return [make("p", {className: "hint"}, `View ${d.view}: ${d.workers.length} of ${d.of} workers are on ${d.host}${old}. Planned memory: ${bytes(d.planned_bytes)} at most. Time: of about the last minute.`),
        legend(parts.map(p => [p[1], p[2]])), table(["", "now", "virtual workers", "time", "computes", "memory", "processor", "host, process"], rows)];
}
