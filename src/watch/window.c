/* window.c - see window.h. */
#include "watch/window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const axes[LS_NX] = {"step", "units", "hours"};

/* ---- JSON ---- */

static void put_digits(ls_buf *out, bool negative, uint64_t whole, uint64_t part, int nparts) {
    char text[40];
    int at = sizeof text;
    while (nparts && part % 10 == 0) {
        part /= 10;
        nparts--;
    }
    for (int i = 0; i < nparts; i++, part /= 10) text[--at] = (char)('0' + part % 10);
    if (nparts) text[--at] = '.';
    do text[--at] = (char)('0' + whole % 10);
    while (whole /= 10);
    if (negative) text[--at] = '-';
    ls_buf_append(out, text + at, sizeof text - (size_t)at);
}

/* Nine digits; in the usual range by a product, since formats take most of the time of a window. */
static void put_number(ls_buf *out, double x) {
    static const double tens[] = {1e0, 1e1, 1e2, 1e3,  1e4,  1e5, 1e6,
                                  1e7, 1e8, 1e9, 1e10, 1e11, 1e12};
    double a = fabs(x);
    if (!isfinite(x)) {
        ls_buf_append(out, "null", 4);
    } else if (a >= 1e-4 && a < 999999999) {
        int places = 12; /* behind the point */
        while (places > 0 && a * tens[places] >= 999999999.5) places--;
        uint64_t digits = (uint64_t)(a * tens[places] + 0.5), one = (uint64_t)tens[places];
        put_digits(out, x < 0, digits / one, digits % one, places);
    } else if (x == 0) {
        ls_buf_append(out, "0", 1);
    } else {
        ls_buf_printf(out, "%.9g", x);
    }
}

void ls_window_put_numbers(ls_buf *out, const double *values, size_t n) {
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

/* The extents of a series: from its stretches, or from single rows. rows [p->to - p->from], or
 * NULL. */
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
    ls_window_put_numbers(out, space, n);
}

/* ---- smoothed ---- */

typedef struct mean {
    double decay; /* in a step */
    double sum, weight;
} mean;

/* Adds `rows` rows of this mean value. */
static void mean_add(mean *m, double value, int64_t rows) {
    if (isnan(value)) return;
    double old = rows == 1 ? m->decay : pow(m->decay, (double)rows);
    m->sum = old * m->sum + (1 - old) * value;
    m->weight = old * m->weight + (1 - old);
}

static double mean_of(const ls_extent *x) { return x->n ? x->sum / (double)x->n : NAN; }

/* The mean after each stretch of the part, from row 0 on. */
static void put_smooth(ls_buf *out, const ls_pyramid *values, const part *p, const double *rows,
                       double steps, double *space) {
    mean m = {.decay = 1 - 1 / steps};
    int64_t at = 0, from = p->from / LS_STRETCH * LS_STRETCH;
    size_t n = 0;
    for (; at < from; at += LS_STRETCH) {
        ls_extent x = ls_pyramid_extent(values, at, at + LS_STRETCH);
        mean_add(&m, mean_of(&x), LS_STRETCH);
    }
    for (at = p->from; at < p->to; at += p->every) {
        int64_t end = at + p->every < p->to ? at + p->every : p->to;
        for (int64_t i = at; rows && i < end; i++) mean_add(&m, rows[i - p->from], 1);
        for (int64_t i = at; !rows && i < end; i += LS_STRETCH) {
            int64_t stop = i + LS_STRETCH < end ? i + LS_STRETCH : end;
            ls_extent x = ls_pyramid_extent(values, i, stop);
            mean_add(&m, mean_of(&x), stop - i);
        }
        space[n++] = m.weight > 0 ? m.sum / m.weight : NAN;
    }
    ls_window_put_numbers(out, space, n);
}

/* ---- all series ---- */

typedef struct picture {
    const ls_watched *w;
    const ls_window *q;
    part p;
    int series[LS_WATCHED_SERIES + LS_NX], n; /* the axes, and those that are wanted */
    double *rows;                             /* single rows [n][nrows], or NULL */
    size_t nrows;
    ls_extent *extents;
    double *space;
} picture;

static void put_one(const picture *v, int i, ls_buf *out) {
    const ls_pyramid *values = &v->w->series[v->series[i]]->values;
    const double *rows = v->rows ? v->rows + (size_t)i * v->nrows : NULL;
    size_t n = extents_of(values, &v->p, rows, v->extents);
    bool smooth = v->q->smooth > 1 && i >= LS_NX;
    if (v->p.every == 1 && !smooth) {
        put_extents(out, v->extents, n, FIRST, v->space);
        return;
    }
    ls_buf_printf(out, "{");
    for (int which = values->rises ? FIRST : LOW; which <= LAST; which++) {
        static const char *const names[] = {"low", "high", "first", "last"};
        ls_buf_printf(out, "\"%s\":", names[which]);
        put_extents(out, v->extents, n, which, v->space);
        ls_buf_printf(out, which < LAST ? "," : "");
    }
    if (smooth) ls_buf_printf(out, ",\"smooth\":");
    if (smooth) put_smooth(out, values, &v->p, rows, v->q->smooth, v->space);
    ls_buf_printf(out, "}");
}

static void put_rows(const ls_watched *w, const ls_window *q, ls_buf *out) {
    picture v = {.w = w, .q = q, .p = part_of(w, q), .n = LS_NX};
    for (int i = 0; i < LS_NX; i++) v.series[i] = i;
    v.n += wanted_series(w, q->names, v.series + LS_NX);
    v.nrows = (size_t)(v.p.to - v.p.from);
    bool reads = v.p.every < LS_STRETCH && v.nrows;
    if (reads) v.rows = LS_NEW_ARRAY(double, (size_t)v.n *v.nrows);
    if (reads && ls_watched_rows(w, v.series, v.n, v.p.from, v.p.to, v.rows) < (int64_t)v.nrows)
        v.p.to = v.p.from; /* the file changes: what follows will say so */
    size_t most = v.nrows / (size_t)v.p.every + 2;
    v.extents = LS_NEW_ARRAY(ls_extent, most);
    v.space = LS_NEW_ARRAY(double, most);
    ls_buf_printf(out, "\"every\":%lld,\"begin\":%lld,\"count\":%lld,\"x\":{", (long long)v.p.every,
                  (long long)v.p.from, (long long)(v.p.to - v.p.from));
    for (int i = 0; i < v.n; i++) {
        if (i == LS_NX) ls_buf_printf(out, "},\"series\":{");
        put_comma(out);
        put_name(out, w->series[v.series[i]]->name);
        put_one(&v, i, out);
    }
    ls_buf_printf(out, v.n > LS_NX ? "}" : "},\"series\":{}");
    free(v.rows);
    free(v.extents);
    free(v.space);
}

/* ---- evaluations ---- */

/* Lowest and highest of each group of points [n], in their order, if there are more than a picture
 * shows. */
static size_t thin(const ls_watched_point **p, size_t n, size_t groups) {
    if (n <= 4 * groups) return n;
    size_t kept = 0;
    for (size_t g = 0; g < groups; g++) {
        size_t from = n * g / groups, to = n * (g + 1) / groups, low = from, high = from;
        for (size_t i = from; i < to; i++) {
            if (p[i]->value < p[low]->value) low = i;
            if (p[i]->value > p[high]->value) high = i;
        }
        size_t first = low < high ? low : high, second = low < high ? high : low;
        const ls_watched_point *next = p[second];
        p[kept++] = p[first];
        if (first != second) p[kept++] = next;
    }
    return kept;
}

static void put_points_of(const ls_watched_point *const *list, size_t n, double *space,
                          ls_buf *out) {
    ls_buf_printf(out, "{");
    for (int k = 0; k < LS_NX; k++) {
        for (size_t i = 0; i < n; i++) space[i] = list[i]->x[k];
        ls_buf_printf(out, "\"%s\":", axes[k]);
        ls_window_put_numbers(out, space, n);
        ls_buf_printf(out, ",");
    }
    for (size_t i = 0; i < n; i++) space[i] = list[i]->value;
    ls_buf_printf(out, "\"y\":");
    ls_window_put_numbers(out, space, n);
    ls_buf_printf(out, "}");
}

static void put_points(const ls_watched *w, const ls_window *q, ls_buf *out) {
    const ls_watched_point **list = LS_NEW_ARRAY(const ls_watched_point *, w->npoints + 1);
    double *space = LS_NEW_ARRAY(double, w->npoints + 1);
    ls_buf_printf(out, "\"points\":{");
    for (int k = 0; k < w->nnames; k++) {
        if (!is_wanted(q->names, w->names[k])) continue;
        size_t n = 0;
        for (size_t i = 0; i < w->npoints; i++) {
            const ls_watched_point *p = &w->points[i];
            bool outside = p->x[q->x] < q->from || p->x[q->x] > q->to;
            if (p->series == k && !outside) list[n++] = p;
        }
        n = thin(list, n, (size_t)q->columns);
        put_comma(out);
        put_name(out, w->names[k]);
        put_points_of(list, n, space, out);
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
        if (!m->line) ls_buf_printf(out, ",\"workers\":%d,\"view\":%d", m->workers, m->view);
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
        ls_window_put_numbers(out, rows + (size_t)i * (size_t)(to - from), nrows);
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
