/* shapes.c - layers that move numbers, and products of rows with each other. */
#include <stdlib.h>

#include "onnx/kinds.h"

static ls_onnx_shape around(const ls_facts *f) {
    return (ls_onnx_shape){3, {f->outer, f->size, f->inner}};
}

void ls_onnx_write_slice(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    const char *x = ls_onnx_read(w, l, 0, around(f));
    const char *y = ls_onnx_slice(w, x, 2, f->first, f->first + f->count);
    ls_onnx_set(w, l, y, (ls_onnx_shape){3, {f->outer, f->count, f->inner}});
}

void ls_onnx_write_mean(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    const char *x = ls_onnx_read(w, l, 0, around(f));
    const char *y = ls_onnx_reduce(w, "ReduceMean", x, 2, false);
    ls_onnx_set(w, l, y, (ls_onnx_shape){2, {f->outer, f->inner}});
}

/* Images that are joined by their channels, and at least one is there with channels first. */
static bool joins_planes(const ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape y = ls_onnx_output_dims(l);
    bool planes = false;
    if (y.n != 3 || f->outer != y.of[0] * y.of[1]) return false;
    for (int k = 0; k < l->ninputs; k++)
        planes = planes ||
                 ls_onnx_has_planes(w, l, k, (ls_onnx_shape){3, {y.of[0], y.of[1], f->widths[k]}});
    return planes;
}

void ls_onnx_write_concat(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    const char *x[LS_LAYER_MAX_INPUTS + 1] = {NULL};
    ls_onnx_shape y = ls_onnx_output_dims(l);
    bool planes = joins_planes(w, l, f);
    int64_t width = 0;
    for (int k = 0; k < l->ninputs; k++) {
        width += f->widths[k];
        x[k] = planes ? ls_onnx_read_planes(w, l, k,
                                            (ls_onnx_shape){3, {y.of[0], y.of[1], f->widths[k]}})
                      : ls_onnx_read(w, l, k, (ls_onnx_shape){2, {f->outer, f->widths[k]}});
    }
    const char *all = ls_onnx_add(w->g, "Concat", x);
    ls_onnx_set_int(w->g, "axis", planes ? 1 : 2);
    if (planes)
        ls_onnx_set_planes(w, l, all);
    else
        ls_onnx_set(w, l, all, (ls_onnx_shape){2, {f->outer, width}});
}

/* `outer` patches down, `inner` across, of size x size pixels of `count` channels. */
void ls_onnx_write_patches(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    int64_t down = f->outer, across = f->inner, p = f->size, c = f->count;
    ls_onnx_shape pixels = {3, {down * p, across * p, c}};
    const char *x = ls_onnx_read(w, l, 0, pixels);
    x = ls_onnx_reshape(w, x, (ls_onnx_shape){6, {-1, down, p, across, p, c}});
    x = ls_onnx_transpose(w, x, 6, (const int64_t[]){0, 1, 3, 2, 4, 5});
    ls_onnx_shape y = ls_onnx_output_dims(l);
    ls_onnx_set(w, l, ls_onnx_reshape(w, x, (ls_onnx_shape){3, {-1, y.of[0], y.of[1]}}), y);
}

/* a [N, C] and b [N, rows, C]: b . a */
void ls_onnx_write_dot(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    int64_t rows = (int64_t)l->y_floats, C = l->C;
    (void)f;
    const char *a = ls_onnx_read(w, l, 0, (ls_onnx_shape){2, {C, 1}});
    const char *b = ls_onnx_read(w, l, 1, (ls_onnx_shape){2, {rows, C}});
    ls_onnx_set(w, l, LS_ONNX_ADD(w->g, "MatMul", b, a), (ls_onnx_shape){2, {rows, 1}});
}

/* All products of rows x [N, rows, C], and of these each pair once. */
void ls_onnx_write_interaction(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    int64_t rows = l->V, pairs = (int64_t)l->y_floats, n = 0;
    int64_t *places = LS_NEW_ARRAY(int64_t, (size_t)pairs);
    (void)f;
    for (int64_t r = 1; r < rows; r++)
        for (int64_t k = 0; k < r; k++) places[n++] = r * rows + k;
    const char *x = ls_onnx_read(w, l, 0, (ls_onnx_shape){2, {rows, l->C}});
    const char *across = ls_onnx_transpose(w, x, 3, (const int64_t[]){0, 2, 1});
    const char *all = LS_ONNX_ADD(w->g, "MatMul", x, across);
    all = ls_onnx_reshape(w, all, (ls_onnx_shape){2, {-1, rows * rows}});
    const char *y = LS_ONNX_ADD(w->g, "Gather", all, ls_onnx_integers(w->g, (int)pairs, places));
    ls_onnx_set_int(w->g, "axis", 1);
    free(places);
    ls_onnx_set(w, l, y, (ls_onnx_shape){1, {pairs}});
}
