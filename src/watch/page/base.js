/* base.js - elements, and numbers as people read them.
 *
 * page/*.js are one script, in the order of page_text.c. What is new comes as server-sent events; an exported page has all
 * in #export. Names and texts of runs are only ever text. */
const $ = id => document.getElementById(id);

/* An element with properties and children; a text child is only text. */
const make = (tag, properties, ...children) => {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(properties || {}))
        if (k.includes("-") || k === "role" || k === "scope") e.setAttribute(k, v); else e[k] = v;
    e.append(...children);
    return e;
};

const compact = x => {
    if (x === null || x === undefined || !isFinite(x)) return "–";
    const a = Math.abs(x);
    if (a !== 0 && (a < 1e-3 || a >= 1e15)) return x.toExponential(2);
    if (a >= 1e4) return x.toLocaleString("en", {notation: "compact", maximumFractionDigits: 2});
    return String(+x.toPrecision(5));
};
const bytes = x => {
    if (x === null || x === undefined) return "–";
    for (const unit of ["B", "kB", "MB", "GB"]) { if (Math.abs(x) < 1000) return +x.toPrecision(3) + " " + unit; x /= 1000; }
    return +x.toPrecision(3) + " TB";
};
const duration = s => {
    if (s === null || s === undefined || !isFinite(s)) return "–";
    if (s < 1) return compact(s * 1000) + " ms";
    if (s < 120) return +s.toPrecision(3) + " s";
    if (s < 7200) return Math.round(s / 60) + " min";
    if (s < 172800) return (s / 3600).toFixed(1) + " h";
    return (s / 86400).toFixed(1) + " days";
};
const formats = {memory_bytes: bytes, seconds: duration, data_wait_s: duration};
