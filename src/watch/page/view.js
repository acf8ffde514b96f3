/* view.js - what is shown, which is in the URL. */
const view = {x: "step", from: null, to: null, smooth: 0, log: new Set(), hidden: new Set(), solo: null};

function readUrl() {
    const q = new URLSearchParams(location.hash.slice(1));
    const number = k => q.has(k) && isFinite(+q.get(k)) ? +q.get(k) : null;
    const names = k => new Set((q.get(k) || "").split(",").filter(Boolean).map(decodeURIComponent));
    view.x = ["units", "hours"].includes(q.get("x")) ? q.get("x") : "step";
    view.from = number("from");
    view.to = number("to");
    view.smooth = number("smooth") || 0;
    view.log = names("log");
    view.hidden = names("hide");
    view.solo = q.get("solo");
}

function writeUrl() {
    const q = new URLSearchParams();
    const names = set => [...set].map(encodeURIComponent).join(",");
    if (view.x !== "step") q.set("x", view.x);
    if (view.from !== null) q.set("from", +view.from.toPrecision(8));
    if (view.to !== null) q.set("to", +view.to.toPrecision(8));
    if (view.smooth) q.set("smooth", view.smooth);
    if (view.log.size) q.set("log", names(view.log));
    if (view.hidden.size) q.set("hide", names(view.hidden));
    if (view.solo !== null) q.set("solo", view.solo);
    history.replaceState(null, "", "#" + q);
    $("link").href = "#" + q;
}
