/* details.js - one run: what is asked for when someone looks. */
/* name, what shows it, again each second? */
const tabs = [["workers", showWorkers, true], ["what it writes", showSamples], ["time of a step", showTimeline], ["same bits?", showComparison],
    ["difference", showDifference], ["checkpoints", showCheckpoints], ["events", showEvents], ["ledger", showLedger], ["config", showConfig]];
let tab = 0, chosen = null, asked = 0, shownLast = 0;

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
    let found;
    try { found = await tabs[tab][1](chosen); } catch (e) { found = [String(e.message)]; }
    if (mine !== asked) return;
    shownLast = mine;
    $("panel").replaceChildren(...found);
}
/* Once a second, of a run that goes on, while someone looks. */
function showAgain() {
    if (tabs[tab][2] && chosen && chosen.info.state === "running" && !paused && !document.hidden && asked === shownLast) showPanel();
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
    if (!others.length) return [make("p", {}, "Show another run, too: this says up to which step both have the same bits.")];
    return plain(await ask("compare?run=" + [run, ...others].map(r => r.id).join(",")));
}
async function showCheckpoints(run) {
    const list = (await ask("checkpoints?run=" + run.id)).checkpoints;
    if (!list.length) return [make("p", {}, "No checkpoint yet.")];
    return [table(["step", "validation loss", "size", "written"], list.map(c => [String(c.step) + (c.best ? " – best" : ""), compact(c.val_loss), bytes(c.bytes), new Date(c.written_s * 1000).toLocaleString()]))];
}
async function showLedger(run) { return plain(await ask("ledger?run=" + run.id)); }
async function showConfig(run) {
    const keys = differencesOf(run), i = run.info;
    const facts = [["directory", i.run], ["started", i.started || "–"], ["command", i.command || "–"], ["host", i.host ? `${i.host}, process ${i.pid}` : "–"], ["checkpoint", i.checkpoint === null ? "none" : "step " + i.checkpoint]];
    return [table(["", "this run"], facts, "texts"), make("h3", {}, "Keys in which runs differ"), keys.length ? table(["key", "value"], keys, "texts") : make("p", {}, "none")];
}
