/* live.js - the stream of what is new. */
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
