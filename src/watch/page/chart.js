/* chart.js - a curve of all visible runs. */
class Chart {
    constructor(parent, title, series, points) {
        Object.assign(this, {title, series, points, parent});
        this.name = series.concat(points)[0] || "loss";
        this.format = formats[this.name] || compact;
        this.canvas = make("canvas", {className: "plot", tabIndex: 0, role: "img", "aria-label": title});
        this.log = make("button", {type: "button", onclick: () => this.toggleLog(), "aria-label": title + ": logarithmic axis"}, "log");
        this.key = make("ul", {className: "key"});
        this.table = make("details", {ontoggle: () => this.drawTable()}, make("summary", {}, "Table"));
        this.box = make("figure", {className: "chart"}, make("div", {className: "head"}, make("h3", {}, title), this.log), this.canvas, this.key, this.table);
        this.listen();
    }
    isOpen() { return this.parent.id === "charts" || $("more").open; }
    toggleLog() {
        if (!view.log.delete(this.name)) view.log.add(this.name);
        writeUrl();
        redraw();
    }

    xAt(px) { const [x0, x1] = range(); return x0 + (x1 - x0) * Math.min(1, Math.max(0, (px - this.left) / (this.right - this.left))); }
    listen() {
        const c = this.canvas, at = e => e.clientX - c.getBoundingClientRect().left;
        let from = null;
        c.onpointerdown = e => { if (e.button === 0) { from = at(e); c.setPointerCapture(e.pointerId); } };
        c.onpointermove = e => { cursor = this.xAt(at(e)); this.band = from === null ? null : [from, at(e)]; redraw(); };
        c.onpointerup = e => {
            const to = at(e), start = from;
            from = this.band = null;
            if (start !== null && Math.abs(to - start) > 6) zoom(this.xAt(Math.min(start, to)), this.xAt(Math.max(start, to)));
            redraw();
        };
        c.onpointercancel = () => { from = this.band = null; };
        c.onpointerleave = () => { cursor = null; redraw(); };
        c.ondblclick = () => zoom(null, null);
        c.onblur = () => { cursor = null; redraw(); };
        c.onkeydown = e => {
            if (e.ctrlKey || e.metaKey || e.altKey) return;
            const [x0, x1] = range(), width = x1 - x0, here = cursor === null ? x1 : cursor;
            const arrow = {ArrowLeft: -1, ArrowRight: 1}[e.key];
            if (arrow && e.shiftKey) zoom(x0 + arrow * width / 4, x1 + arrow * width / 4);
            else if (arrow) cursor = Math.min(x1, Math.max(x0, here + arrow * Math.max(width / (this.right - this.left), view.x === "step" ? 1 : 0)));
            else if (e.key === "Home") cursor = x0;
            else if (e.key === "End") cursor = x1;
            else if (e.key === "+" || e.key === "=") zoom(here - width / 4, here + width / 4);
            else if (e.key === "-") zoom(here - width, here + width);
            else if (e.key === "Escape" || e.key === "0") zoom(null, null);
            else if (e.key === "l" || e.key === "L") this.toggleLog();
            else return;
            e.preventDefault();
            redraw();
            this.say();
        };
    }
    say() {
        clearTimeout(Chart.saying);
        Chart.saying = setTimeout(() => {
            if (cursor === null) return;
            $("news").textContent = `${this.title}, ${axisNames[view.x]} ${xText(cursor)}: ` +
                visible().slice(0, 6).map(r => `${r.name} ${this.valueText(r)}`).join("; ");
            saidAt = performance.now();
        }, 300);
    }

    seriesOf(run) {
        const w = run.window;
        for (const s of this.series) if (w && w.series[s]) return w.series[s];
        return null;
    }
    pointsOf(run) {
        const w = run.window;
        return w && this.points.length ? w.points[this.points[0]] || null : null;
    }
    /* The value under the cursor, or the last one. */
    valueText(run) {
        const s = this.seriesOf(run), p = this.pointsOf(run), parts = [];
        if (s) {
            const xs = firsts(run.window.x[view.x]);
            let i = cursor === null ? xs.length - 1 : indexAt(xs, cursor);
            const low = Array.isArray(s) ? s : s.low, high = Array.isArray(s) ? s : s.high;
            if (cursor === null) while (i > 0 && lasts(s)[i] === null) i--;
            if (i < 0 || low[i] === null || low[i] === undefined) parts.push("–");
            else if (cursor === null) parts.push(this.format(lasts(s)[i]));
            else parts.push(low[i] === high[i] ? this.format(low[i]) : `${this.format(low[i])} to ${this.format(high[i])}`);
        }
        if (p && p.y.length) {
            const i = cursor === null ? p.y.length - 1 : indexAt(p[view.x], cursor);
            if (i >= 0) parts.push((s ? "validation " : "") + this.format(p.y[i]));
        }
        return parts.join(", ") || "–";
    }

    /* What happened under the cursor. */
    markText(run) {
        const near = cursor === null || visible().length > 3 ? [] : marksOf(run).filter(m => m.kind !== "gap" && Math.abs(this.px(m[view.x]) - this.px(cursor)) < 4);
        return near.length ? "  – " + markSaid(run, near[0]) : "";
    }

    /* What the y axis shows: every value in the range. */
    extent(x0, x1, log) {
        let low = Infinity, high = -Infinity;
        const see = v => { if (v !== null && v !== undefined && (!log || v > 0)) { if (v < low) low = v; if (v > high) high = v; } };
        for (const run of visible()) {
            const s = this.seriesOf(run), p = this.pointsOf(run);
            if (s) {
                const a = firsts(run.window.x[view.x]), b = lasts(run.window.x[view.x]);
                const lows = Array.isArray(s) ? s : s.low, highs = Array.isArray(s) ? s : s.high;
                for (let i = 0; i < a.length; i++) if (b[i] >= x0 && a[i] <= x1) { see(lows[i]); see(highs[i]); }
            }
            if (p) for (let i = 0; i < p.y.length; i++) if (p[view.x][i] >= x0 && p[view.x][i] <= x1) see(p.y[i]);
        }
        if (low > high) return null;
        if (log) { low = Math.log10(low); high = Math.log10(high); }
        const pad = high - low > Math.abs(high) * 1e-6 ? (high - low) * .05 : Math.abs(high) * .05 || 1;
        return [low - pad, high + pad];
    }

    draw() {
        const c = this.canvas, g = c.getContext("2d"), scale = devicePixelRatio || 1, W = c.clientWidth, H = c.clientHeight;
        if (!W) return;
        if (c.width !== Math.round(W * scale) || c.height !== Math.round(H * scale)) { c.width = Math.round(W * scale); c.height = Math.round(H * scale); }
        g.setTransform(scale, 0, 0, scale, 0, 0);
        g.clearRect(0, 0, W, H);
        const log = view.log.has(this.name), [x0, x1] = range(), y = this.extent(x0, x1, log);
        this.log.setAttribute("aria-pressed", String(log));
        Object.assign(this, {left: 58, right: W - 8, top: 8, bottom: H - 22});
        const style = getComputedStyle(document.documentElement), ink = style.getPropertyValue("--soft"), grid = style.getPropertyValue("--grid");
        this.px = x => this.left + (this.right - this.left) * (x - x0) / ((x1 - x0) || 1);
        this.py = v => this.bottom - (this.bottom - this.top) * ((log ? Math.log10(v) : v) - (y ? y[0] : 0)) / (y ? y[1] - y[0] : 1);
        this.drawAxes(g, x0, x1, y, log, ink, grid);
        g.save();
        g.beginPath(); g.rect(this.left - 1, this.top - 4, this.right - this.left + 6, this.bottom - this.top + 8); g.clip();
        if (y) { this.drawMarks(g, ink); for (const run of visible()) this.drawRun(g, run, log); }
        g.restore();
        if (this.band) { g.globalAlpha = .18; g.fillStyle = style.getPropertyValue("--accent"); g.fillRect(Math.min(...this.band), this.top, Math.abs(this.band[1] - this.band[0]), this.bottom - this.top); g.globalAlpha = 1; }
        if (cursor !== null && cursor >= x0 && cursor <= x1) {
            g.strokeStyle = style.getPropertyValue("--ink"); g.lineWidth = 1; g.setLineDash([]);
            g.beginPath(); g.moveTo(this.px(cursor), this.top); g.lineTo(this.px(cursor), this.bottom); g.stroke();
        }
        if (!y) { g.fillStyle = ink; g.fillText("no values yet", this.left + 12, this.top + 20); }
        this.drawKey();
        c.setAttribute("aria-label", `${this.title} by ${axisNames[view.x]}, ${xText(x0)} to ${xText(x1)}. ` +
            visible().slice(0, 8).map(r => `${r.name}: ${this.valueText(r)}`).join("; "));
        if (this.table.open && !this.tabling) this.tabling = setTimeout(() => { this.tabling = null; this.drawTable(); }, 500);
    }

    drawAxes(g, x0, x1, y, log, ink, grid) {
        g.font = "12px system-ui, sans-serif";
        g.fillStyle = ink; g.strokeStyle = grid; g.lineWidth = 1; g.setLineDash([]);
        g.textAlign = "right"; g.textBaseline = "middle";
        for (const v of !y ? [] : log ? logTicks(...y) : ticks(y[0], y[1], 5)) {
            const at = Math.round(this.py(v)) + .5;
            g.beginPath(); g.moveTo(this.left, at); g.lineTo(this.right, at); g.stroke();
            g.fillText(this.format(v), this.left - 6, at);
        }
        g.textAlign = "center"; g.textBaseline = "top";
        for (const v of ticks(x0, x1, Math.max(2, (this.right - this.left) / 110))) {
            const at = Math.round(this.px(v)) + .5;
            g.beginPath(); g.moveTo(at, this.top); g.lineTo(at, this.bottom); g.stroke();
            if (at > this.left + 8 && at < this.right - 14) g.fillText(xText(v), at, this.bottom + 5);
        }
        g.textAlign = "left";
        g.fillText(view.x === "units" ? $("x").options[1].textContent : axisNames[view.x], 6, this.bottom + 5);
    }

    drawMarks(g, ink) {
        const few = visible();
        if (few.length > 3) return;
        for (const run of few) for (const m of marksOf(run)) {
            const x = Math.round(this.px(m[view.x])) + .5;
            if (m.kind === "started" && m.step === 0) continue;
            if (m.kind === "gap" && view.x === "step") {
                g.globalAlpha = .2; g.fillStyle = ink;
                g.fillRect(this.px(m.line.gap[0]), this.top, Math.max(2, this.px(m.line.gap[1]) - this.px(m.line.gap[0])), this.bottom - this.top);
                g.globalAlpha = 1;
                continue;
            }
            g.strokeStyle = g.fillStyle = ink; g.lineWidth = 1; g.setLineDash([2, 3]);
            const quiet = isQuiet(run, m);
            g.beginPath(); g.moveTo(x, quiet ? this.bottom - 6 : this.top); g.lineTo(x, this.bottom); g.stroke();
            if (quiet) continue;
            g.textAlign = "center"; g.textBaseline = "top";
            g.fillText(markSign(run, m), x, this.top);
        }
    }

    /* A stretch goes from its first value over its lowest and highest to its last. */
    drawRun(g, run, log) {
        const s = this.seriesOf(run), p = this.pointsOf(run), ok = v => v !== null && v !== undefined && (!log || v > 0);
        g.strokeStyle = g.fillStyle = colourOf(run);
        g.setLineDash(dashOf(run));
        g.lineJoin = "round";
        if (s) {
            const a = firsts(run.window.x[view.x]), b = lasts(run.window.x[view.x]), smooth = view.smooth && s.smooth;
            const bands = visible().length > 8 && a.length > 100;
            g.globalAlpha = smooth ? .3 : 1;
            g.lineWidth = smooth ? 1 : 1.6;
            g.beginPath();
            let pen = false, alone = 0;
            if (bands) this.drawBands(g, s, a, b, ok);
            else for (let i = 0; i < a.length; i++) {
                const f = Array.isArray(s) ? s[i] : s.first[i];
                if (!ok(f)) continue; /* not every line has every number */
                const x = this.px(a[i]);
                if (pen) g.lineTo(x, this.py(f)); else g.moveTo(x, this.py(f));
                if (!Array.isArray(s) && s.low[i] !== s.high[i] && ok(s.low[i])) {
                    const end = this.px(b[i]), middle = (x + end) / 2;
                    g.lineTo(middle, this.py(s.low[i])); g.lineTo(middle, this.py(s.high[i])); g.lineTo(end, this.py(s.last[i]));
                }
                pen = true;
                alone++;
            }
            g.stroke();
            if (alone === 1) g.fillRect(this.px(a[0]) - 2, this.py(firsts(s).find(ok)) - 2, 4, 4);
            g.globalAlpha = 1;
            if (smooth) this.drawSmooth(g, s.smooth, b, ok);
        }
        g.setLineDash([]);
        if (p) for (let i = 0; i < p.y.length; i++) if (ok(p.y[i])) {
            g.beginPath(); g.arc(this.px(p[view.x][i]), this.py(p.y[i]), p.y.length > 200 ? 2 : 3.5, 0, 7); g.fill();
        }
        if (p && !s) { g.lineWidth = 1.2; g.beginPath(); p.y.forEach((v, i) => ok(v) && g.lineTo(this.px(p[view.x][i]), this.py(v))); g.stroke(); }
    }
    /* The same of many runs, as rectangles: long lines up and down take a browser without a GPU 20 s. */
    drawBands(g, s, a, b, ok) {
        const firstOf = firsts(s), lastOf = lasts(s), low = s.low || s, high = s.high || s;
        let from = null;
        for (let i = 0; i < a.length; i++) {
            if (!ok(firstOf[i])) continue;
            const all = [from, low[i], high[i]].filter(ok).map(v => this.py(v)), x = this.px(a[i]), top = Math.min(...all);
            g.fillRect(x, top - .8, Math.max(1.6, this.px(i + 1 < a.length ? a[i + 1] : b[i]) - x), Math.max(...all) - top + 1.6);
            from = lastOf[i];
        }
    }
    drawSmooth(g, values, xs, ok) {
        g.lineWidth = 2.2;
        g.beginPath();
        values.forEach((v, i) => ok(v) && g.lineTo(this.px(xs[i]), this.py(v)));
        g.stroke();
    }

    drawKey() {
        const list = visible().slice(0, 40);
        if (this.key.children.length !== list.length || this.keyOf !== list.map(r => r.id).join() + darkness.matches) {
            this.key.replaceChildren(...list.map(run => make("li", {}, swatch(run), make("span", {}))));
            this.keyOf = list.map(r => r.id).join() + darkness.matches;
        }
        list.forEach((run, i) => { this.key.children[i].lastChild.textContent = `${run.name}  ${this.valueText(run)}${this.markText(run)}`; });
    }

    /* About 20 rows, for those who can't see the curve. */
    drawTable() {
        if (!this.table.open) return;
        const [x0, x1] = range(), before = cursor, list = visible().slice(0, 8), rows = [];
        for (let i = 0; i <= 20; i++) {
            cursor = x0 + (x1 - x0) * i / 20;
            rows.push(make("tr", {}, make("th", {scope: "row"}, xText(cursor)), ...list.map(r => make("td", {}, this.valueText(r)))));
        }
        cursor = before;
        const head = make("tr", {}, make("th", {scope: "col"}, axisNames[view.x]), ...list.map(r => make("th", {scope: "col"}, r.name)));
        while (this.table.children.length > 1) this.table.lastChild.remove();
        this.table.append(make("div", {className: "scroll", tabIndex: 0, role: "region", "aria-label": this.title + " as a table"},
            make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows))));
    }
}
