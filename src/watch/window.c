/* window.c - see window.h. */
#include "watch/window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const axes[LS_NX] = {"step", "units", "hours"};

/* ---- JSON ---- */

static void put_number(ls_buf *out, double x) {
    if (isfinite(x))
        ls_buf_printf(out, "%.9g", x);
    else
        ls_buf_printf(out, "null");
}

static void put_numbers(ls_buf *out, const double *values, size_t n) {
    ls_buf_printf(out, "[");
    for (size_t i = 0; i < n; i++) {
        if (i) ls_buf_append(out, ",", 1);
        put_number(out, values[i]);
    }
    ls_buf_printf(out, "]");
}

/* A name of metrics.jsonl, which may be anything. */
static void put_name(ls_buf *out, const char *name) {
    ls_json *j = ls_json_new_bytes(name, strlen(name));
    ls_json_write(j, 0, out);
    ls_json_free(j);
    ls_buf_printf(out, ":");
}

static void put_comma(ls_buf *out) {
    char last = out->len ? out->data[out->len - 1] : '{';
    if (last != '{' && last != '[') ls_buf_printf(out, ",");
}

static bool is_wanted(const char *names, const char *name) {
    size_t n = strlen(name);
    for (const char *at = names; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && memcmp(at, name, n) == 0) return true;
    return !names;
}

static int wanted_series(const ls_watched *w, const char *names, int series[LS_WATCHED_SERIES]) {
    int n = 0;
    for (int i = LS_NX; i < w->nseries; i++)
        if (is_wanted(names, w->series[i]->name)) series[n++] = i;
    return n;
}

/* ---- rows ---- */

/* Stretches of `every` rows of [from, to), or single rows. */
typedef struct part {
    int64_t from, to, every;
} part;

static part part_of(const ls_watched *w, const ls_window *q) {
    const ls_pyramid *x = &w->series[q->x]->values;
    part p = {0, w->nrows, 1};
    if (!isnan(q->from)) p.from = ls_pyramid_find(x, q->from) - LS_STRETCH;
    if (!isnan(q->to)) p.to = ls_pyramid_find(x, q->to) + 2 * LS_STRETCH;
    if (p.from < 0) p.from = 0;
    if (p.to > w->nrows) p.to = w->nrows;
    if (p.to < p.from) p.to = p.from;
    p.every = (p.to - p.from + q->columns - 1) / q->columns;
    if (p.every < 1) p.every = 1;
    if (p.every >= LS_STRETCH) p.every = p.every / LS_STRETCH * LS_STRETCH;
    p.from = p.from / p.every * p.every;
    return p;
}

/* The extents of a series: from its stretches, or from single rows. rows [p->to - p->from], or NULL. */
static size_t extents_of(const ls_pyramid *values, const part *p, const double *rows,
                         ls_extent *extents) {
    size_t n = 0;
    for (int64_t at = p->from; at < p->to; at += p->every) {
        int64_t end = at + p->every < p->to ? at + p->every : p->to;
        ls_extent x = ls_no_extent;
        if (!rows) x = ls_pyramid_extent(values, at, end);
        for (int64_t i = at; rows && i < end; i++) ls_extent_add(&x, rows[i - p->from]);
        extents[n++] = x;
    }
    return n;
}

enum { LOW, HIGH, FIRST, LAST };

static void put_extents(ls_buf *out, const ls_extent *x, size_t n, int which, double *space) {
    for (size_t i = 0; i < n; i++)
        space[i] = which == LOW    ? x[i].low
                   : which == HIGH ? x[i].high
                   : which == LAST ? x[i].last
                                   : x[i].first;
    put_numbers(out, space, n);
}

static void put_series(ls_buf *out, const ls_extent *x, size_t n, bool single, double *space) {
    static const char *const names[] = {"low", "high", "first", "last"};
    if (single) {
        put_extents(out, x, n, FIRST, space);
        return;
    }
    ls_buf_printf(out, "{");
    for (int i = 0; i < 4; i++) {
        ls_buf_printf(out, "%s\"%s\":", i ? "," : "", names[i]);
        put_extents(out, x, n, i, space);
    }
    ls_buf_printf(out, "}");
}

static void put_rows(const ls_watched *w, const ls_window *q, ls_buf *out) {
    part p = part_of(w, q);
    int series[LS_WATCHED_SERIES + 1], n = 1 + wanted_series(w, q->names, series + 1);
    series[0] = q->x;
    size_t nrows = (size_t)(p.to - p.from);
    bool reads = p.every < LS_STRETCH && nrows;
    double *rows = reads ? LS_NEW_ARRAY(double, (size_t)n *nrows) : NULL;
    if (reads && ls_watched_rows(w, series, n, p.from, p.to, rows) < (int64_t)nrows)
        p.to = p.from; /* the file changes: what follows will say so */
    size_t most = nrows / (size_t)p.every + 2;
    ls_extent *extents = LS_NEW_ARRAY(ls_extent, most);
    double *space = LS_NEW_ARRAY(double, most);
    ls_buf_printf(out, "\"every\":%lld,\"begin\":%lld,", (long long)p.every, (long long)p.from);
    for (int i = 0; i < n; i++) {
        const ls_watched_series *s = w->series[series[i]];
        const double *own = reads ? rows + (size_t)i * nrows : NULL;
        size_t got = extents_of(&s->values, &p, own, extents);
        if (i) put_comma(out);
        if (i) put_name(out, s->name);
        if (!i) ls_buf_printf(out, "\"x\":");
        put_series(out, extents, got, p.every == 1, space);
        if (!i) ls_buf_printf(out, ",\"series\":{");
    }
    ls_buf_printf(out, "}");
    free(rows);
    free(extents);
    free(space);
}

/* ---- evaluations ---- */

typedef struct place_of_point {
    double x, y;
} place_of_point;

/* Lowest and highest of each group, in their order, if there are more than a picture shows. */
static size_t thin(place_of_point *p, size_t n, size_t groups) {
    if (n <= 4 * groups) return n;
    size_t kept = 0;
    for (size_t g = 0; g < groups; g++) {
        size_t from = n * g / groups, to = n * (g + 1) / groups, low = from, high = from;
        for (size_t i = from; i < to; i++) {
            if (p[i].y < p[low].y) low = i;
            if (p[i].y > p[high].y) high = i;
        }
        p[kept++] = p[low < high ? low : high];
        if (low != high) p[kept++] = p[low < high ? high : low];
    }
    return kept;
}

static void put_points(const ls_watched *w, const ls_window *q, ls_buf *out) {
    place_of_point *list = LS_NEW_ARRAY(place_of_point, w->npoints + 1);
    double *space = LS_NEW_ARRAY(double, w->npoints + 1);
    ls_buf_printf(out, "\"points\":{");
    for (int k = 0; k < w->nnames; k++) {
        if (!is_wanted(q->names, w->names[k])) continue;
        size_t n = 0;
        for (size_t i = 0; i < w->npoints; i++) {
            const ls_watched_point *p = &w->points[i];
            bool outside = p->x[q->x] < q->from || p->x[q->x] > q->to;
            if (p->series == k && !outside) list[n++] = (place_of_point){p->x[q->x], p->value};
        }
        n = thin(list, n, (size_t)q->columns);
        put_comma(out);
        put_name(out, w->names[k]);
        for (size_t i = 0; i < n; i++) space[i] = list[i].x;
        ls_buf_printf(out, "{\"x\":");
        put_numbers(out, space, n);
        for (size_t i = 0; i < n; i++) space[i] = list[i].y;
        ls_buf_printf(out, ",\"y\":");
        put_numbers(out, space, n);
        ls_buf_printf(out, "}");
    }
    ls_buf_printf(out, "}");
    free(list);
    free(space);
}

static void put_marks(const ls_watched *w, uint64_t at, ls_buf *out) {
    ls_buf_printf(out, "\"marks\":[");
    for (size_t i = 0; i < w->nmarks; i++) {
        const ls_watched_mark *m = &w->marks[i];
        if (m->at < at) continue;
        put_comma(out);
        ls_buf_printf(out, "{\"kind\":\"%s\"", m->kind);
        for (int k = 0; k < LS_NX; k++) {
            ls_buf_printf(out, ",\"%s\":", axes[k]);
            put_number(out, m->x[k]);
        }
        if (m->workers) ls_buf_printf(out, ",\"workers\":%d", m->workers);
        if (m->line) ls_buf_printf(out, ",\"line\":");
        if (m->line) ls_json_write(m->line, 0, out);
        ls_buf_printf(out, "}");
    }
    ls_buf_printf(out, "]");
}

void ls_window_write(const ls_watched *w, const ls_window *q, ls_buf *out) {
    ls_buf_printf(out, "{\"generation\":%llu,\"rows\":%lld,\"units\":\"%s\",",
                  (unsigned long long)w->generation, (long long)w->nrows,
                  w->counts_tokens ? "tokens" : "samples");
    put_rows(w, q, out);
    ls_buf_printf(out, ",");
    put_points(w, q, out);
    ls_buf_printf(out, ",");
    put_marks(w, 0, out);
    ls_buf_printf(out, "}");
}

/* ---- what is new ---- */

void ls_window_write_rows(const ls_watched *w, int64_t from, int64_t to, uint64_t at, ls_buf *out) {
    int series[LS_WATCHED_SERIES], n = w->nseries;
    for (int i = 0; i < n; i++) series[i] = i;
    size_t nrows = (size_t)(to - from);
    double *rows = LS_NEW_ARRAY(double, (size_t)n *nrows + 1);
    if (ls_watched_rows(w, series, n, from, to, rows) < to - from) nrows = 0;
    ls_buf_printf(out, "\"begin\":%lld,\"count\":%zu,\"x\":{", (long long)from, nrows);
    for (int i = 0; i < n; i++) {
        if (i == LS_NX) ls_buf_printf(out, "},\"series\":{");
        put_comma(out);
        put_name(out, w->series[i]->name);
        put_numbers(out, rows + (size_t)i * (size_t)(to - from), nrows);
    }
    ls_buf_printf(out, n > LS_NX ? "},\"points\":[" : "},\"series\":{},\"points\":[");
    for (size_t i = 0; i < w->npoints; i++) {
        const ls_watched_point *p = &w->points[i];
        if (p->at < at) continue;
        put_comma(out);
        ls_buf_printf(out, "{\"name\":");
        ls_json *name = ls_json_new_bytes(w->names[p->series], strlen(w->names[p->series]));
        ls_json_write(name, 0, out);
        ls_json_free(name);
        for (int k = 0; k < LS_NX; k++) {
            ls_buf_printf(out, ",\"%s\":", axes[k]);
            put_number(out, p->x[k]);
        }
        ls_buf_printf(out, ",\"y\":");
        put_number(out, p->value);
        ls_buf_printf(out, "}");
    }
    ls_buf_printf(out, "],");
    put_marks(w, at, out);
    free(rows);
}
