/* marks.js - what happened to a run, as marks on its curves. */
const marksOf = run => run.window ? run.window.marks.filter(m => m.kind !== "started" || m.step > 0) : [];

/* Why a view ended is in the run's log; it is asked for when there is a view with another number. */
function lostOf(run, m) {
    const views = run.window.marks.filter(o => o.kind === "view").length;
    if (!exported && run.askedLost !== views) {
        run.askedLost = views;
        ask("lost?run=" + run.id).then(d => { run.lost = new Map(d.lost.map(x => [x.view, x.text])); redraw(); }).catch(() => {});
    }
    return run.lost && run.lost.get(m.view - 1);
}

/* A view of as many workers as before has other ranges of virtual workers, and nobody was lost. */
function isQuiet(run, m) {
    const before = run.window.marks.filter(o => o.step < m.step && (o.workers || o.line && o.line.workers)).pop();
    return m.kind === "view" && before && (before.workers || before.line.workers) === m.workers && !lostOf(run, m);
}

const markSign = (run, m) => m.kind === "view" && lostOf(run, m) ? "†" : {started: "▸", view: "⇄", changed: "✎", diverged: "✕", ended: "■"}[m.kind] || "|";

function markSaid(run, m) {
    const line = m.line || {};
    if (m.kind === "view") return `view ${m.view}, ${m.workers} workers` + (lostOf(run, m) ? ": " + lostOf(run, m) : "");
    if (m.kind === "started") return `resumed after step ${m.step}` + (line.host ? " on " + line.host : "");
    if (m.kind === "changed") return "changed: " + Object.entries(line.changed).map(([k, v]) => `${k} from ${v[0]} to ${v[1]}`).join(", ");
    if (m.kind === "gap") return `lines of steps ${line.gap[0]} to ${line.gap[1]} are lost`;
    return m.kind;
}

async function showEvents(run) {
    const rows = marksOf(run).map(m => [String(m.step), markSaid(run, m)]).reverse();
    return [rows.length ? table(["after step", "what"], rows, "texts") : make("p", {}, "Nothing but steps.")];
}
