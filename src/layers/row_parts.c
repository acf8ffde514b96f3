/* row_parts.c - see row_parts.h. A layer has a few inputs: more values are joined by halves. */
#include "layers/row_parts.h"

#include <stdio.h>
#include <string.h>

#include "layers/fork.h"
#include "layers/layers.h"

typedef ls_value *join_fn(ls_model *, ls_value *const *x, int n, const char *name);

/* All of x [n] by one layer, called `name`, or by several. */
static ls_value *join(ls_model *m, ls_value *const *x, int n, const char *name, join_fn *fn) {
    char low[24], high[24];
    if (n <= LS_LAYER_MAX_INPUTS) return fn(m, x, n, name);
    snprintf(low, sizeof low, "%.20s.a", name);
    snprintf(high, sizeof high, "%.20s.b", name);
    ls_value *halves[] = {join(m, x, n / 2, low, fn), join(m, x + n / 2, n - n / 2, high, fn)};
    return fn(m, halves, 2, name);
}

/* The sum of x [n]; of one value: a copy. */
static ls_value *sum(ls_model *m, ls_value *const *x, int n, const char *name) {
    ls_layer *l = ls_build_layer(m, n > 1 ? "add" : "fork", name, x, n);
    if (!l) return ls_build_failed(m);
    ls_add_declare(l, x[0]->dims.of[0], x[0]->dims.of[1], n);
    return ls_build_value(m, x[0]->dims);
}

static ls_value *stack(ls_model *m, ls_value *const *x, int n, const char *name) {
    ls_values all = {{0}};
    (void)name;
    for (int i = 0; i < n; i++) all.of[i] = x[i];
    return (ls_concat)(m, 0, all);
}

void ls_layers_gather_rows(ls_model *m, ls_value *const *part, int n, ls_value **out) {
    ls_value *copies[LS_SLICES_MOST][LS_SLICES_MOST];
    char name[40];
    m->gathers = true;
    for (int k = 0; k < n; k++) {
        ls_build_slice(m, k, n);
        for (int j = 0; j < n; j++) {
            snprintf(name, sizeof name, "gather.%d.%d", k, j);
            copies[j][k] = j == k ? part[k] : sum(m, &part[k], 1, name);
        }
    }
    for (int j = 0; j < n; j++) {
        ls_build_slice(m, j, n);
        out[j] = join(m, copies[j], n, "", stack);
    }
    ls_build_slice(m, 0, n);
}

void ls_layers_scatter_rows(ls_model *m, ls_value *const *x, int n, ls_value **out) {
    ls_value *rows[LS_SLICES_MOST][LS_SLICES_MOST];
    int64_t count = x[0]->dims.of[0] / n;
    char name[40];
    for (int j = 0; j < n; j++) {
        ls_build_slice(m, j, n);
        for (int k = 0; k < n; k++) {
            ls_slice_options o = {.name = name, .first = k * count, .count = count};
            snprintf(name, sizeof name, "scatter.%d.%d", j, k);
            rows[k][j] = (ls_slice)(m, x[j], o);
        }
    }
    for (int k = 0; k < n; k++) {
        ls_build_slice(m, k, n);
        snprintf(name, sizeof name, "scatter.%d", k);
        out[k] = join(m, rows[k], n, name, sum);
    }
    ls_build_slice(m, 0, n);
}
