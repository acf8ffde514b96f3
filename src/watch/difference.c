/* difference.c - see difference.h. */
#include "watch/difference.h"

#include <math.h>
#include <stdlib.h>

#include "base/lines.h"
#include "report/history.h"
#include "watch/pyramid.h"
#include "watch/step_line.h"
#include "watch/window.h"

enum { MOST_STEPS = 8 << 20 };

typedef struct curve {
    double *steps, *values; /* [n] */
    size_t n;
} curve;

static void add(curve *c, double step, double value) {
    while (c->n && c->steps[c->n - 1] >= step) c->n--; /* taken back */
    c->steps = ls_grow(c->steps, c->n, sizeof *c->steps);
    c->values = ls_grow(c->values, c->n, sizeof *c->values);
    c->steps[c->n] = step;
    c->values[c->n++] = value;
}

static ls_status read_curve(const char *run, const char *name, curve *c, ls_error *e) {
    char *path = ls_metrics_path(run);
    ls_lines *l = NULL;
    ls_line line;
    bool there = true;
    ls_status s = ls_lines_open(path, false, &l, e);
    while (s == LS_OK && (s = ls_lines_next(l, &line, &there, e)) == LS_OK && there) {
        ls_step_line x;
        if (!line.whole || line.too_long || !ls_step_line_read(line.text, line.nbytes, &x))
            continue;
        double step = ls_step_line_get(&x, "step"), value = ls_step_line_get(&x, name);
        if (!isnan(step) && !isnan(value)) add(c, step, value);
        if (c->n > MOST_STEPS)
            s = ls_fail(e, LS_EINVAL, "%s has more than %d steps", run, MOST_STEPS);
    }
    if (l) ls_lines_close(l);
    free(path);
    return s;
}

/* The steps that both have: *n_p of them in d, which has room for them. */
static void subtract(const curve *a, const curve *b, curve *d) {
    size_t most = a->n < b->n ? a->n : b->n;
    d->steps = LS_NEW_ARRAY(double, most + 1);
    d->values = LS_NEW_ARRAY(double, most + 1);
    for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
        if (a->steps[i] < b->steps[k]) {
            i++;
        } else if (a->steps[i] > b->steps[k]) {
            k++;
        } else {
            d->steps[d->n] = a->steps[i];
            d->values[d->n++] = a->values[i++] - b->values[k++];
        }
    }
}

static void put_list(const char *name, const double *values, size_t n, ls_buf *out) {
    ls_buf_printf(out, ",\"%s\":", name);
    ls_window_put_numbers(out, values, n);
}

static void put(const curve *d, int columns, ls_buf *out) {
    size_t every = (d->n + (size_t)columns - 1) / (size_t)columns, n = 0, first = 0;
    if (every < 1) every = 1;
    double *x = LS_NEW_ARRAY(double, 3 * ((size_t)columns + 1)), *low = x + columns + 1,
           *high = low + columns + 1;
    for (size_t at = 0; at < d->n; at += every, n++) {
        ls_extent extent = ls_no_extent;
        for (size_t i = at; i < at + every && i < d->n; i++) ls_extent_add(&extent, d->values[i]);
        x[n] = d->steps[at];
        low[n] = extent.low;
        high[n] = extent.high;
    }
    while (first < d->n && d->values[first] == 0) first++;
    ls_buf_printf(out, "{\"steps\":%zu,\"every\":%zu,\"first\":", d->n, every);
    if (first < d->n)
        ls_buf_printf(out, "%.17g", d->steps[first]);
    else
        ls_buf_printf(out, "null");
    put_list("x", x, n, out);
    put_list("low", low, n, out);
    put_list("high", high, n, out);
    ls_buf_printf(out, "}");
    free(x);
}

static void curve_free(curve *c) {
    free(c->steps);
    free(c->values);
}

ls_status ls_difference_write(const ls_difference_query *q, ls_buf *out, ls_error *e) {
    curve a = {0}, b = {0}, d = {0};
    ls_status s = read_curve(q->run, q->name, &a, e);
    if (s == LS_OK) s = read_curve(q->base, q->name, &b, e);
    if (s == LS_OK) subtract(&a, &b, &d);
    if (s == LS_OK && !d.n) s = ls_fail(e, LS_EINVAL, "no step of both runs has '%.60s'", q->name);
    if (s == LS_OK) put(&d, q->columns, out);
    curve_free(&a);
    curve_free(&b);
    curve_free(&d);
    return s;
}
