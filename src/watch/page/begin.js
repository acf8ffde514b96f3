/* begin.js - the controls, and the beginning. */
function applyView() {
    $("x").value = view.x;
    if (![...$("smooth").options].some(o => +o.value === view.smooth)) $("smooth").append(make("option", {value: view.smooth}, view.smooth + " steps"));
    $("smooth").value = String(view.smooth);
}
$("x").onchange = () => { view.x = $("x").value; view.from = view.to = cursor = null; loadAll(); };
$("smooth").onchange = () => { view.smooth = +$("smooth").value; loadAll(); };
$("whole").onclick = () => zoom(null, null);
$("pause").onclick = () => {
    paused = !paused;
    $("pause").setAttribute("aria-pressed", String(paused));
    redraw();
};
$("more").ontoggle = loadSoon;
$("which").onchange = () => { chosen = runs[+$("which").value]; showPanel(); };
makeTabs();
onresize = () => { redraw(); loadSoon(); };
onhashchange = () => { readUrl(); applyView(); drawList(); loadAll(); };
darkness.addEventListener("change", () => { drawList(); redraw(); });
readUrl();
applyView();
if (exported) { for (const id of ["pause", "smooth"]) $(id).disabled = true; loadList(); }
else { listen(); setInterval(() => { watchConnection(); showAgain(); if (runs.some(isSilent)) drawList(); }, 1000); }
