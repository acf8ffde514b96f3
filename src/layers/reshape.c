/* reshape.c - the same numbers in another shape: no layer. */
#include "model/builder.h"

ls_value *(ls_flatten)(ls_model *m, ls_value *x) {
    if (!ls_build_is_good(m)) return ls_build_failed(m);
    if (!x) return ls_build_fail(m, "flatten: the input is NULL");
    return ls_build_view(m, x, LS_DIMS(ls_value_count(x)));
}

/* The dimension that is -1, and the product of the others. False: a dimension is not possible. */
static bool look(ls_dims dims, int *open_p, int64_t *others_p) {
    *open_p = -1;
    *others_p = 1;
    for (int i = 0; i < LS_MAX_DIMS && dims.of[i]; i++) {
        if (dims.of[i] < -1 || (dims.of[i] == -1 && *open_p >= 0)) return false;
        if (dims.of[i] == -1) *open_p = i;
        if (dims.of[i] != -1 && __builtin_mul_overflow(*others_p, dims.of[i], others_p))
            return false;
    }
    return true;
}

ls_value *(ls_reshape)(ls_model *m, ls_value *x, ls_dims dims) {
    int open = -1;
    int64_t others = 1;
    if (!ls_build_is_good(m)) return ls_build_failed(m);
    if (!x) return ls_build_fail(m, "reshape: the input is NULL");
    int64_t count = ls_value_count(x);
    bool fits = look(dims, &open, &others);
    fits = fits && (open < 0 ? others == count : count % others == 0);
    if (!fits)
        return ls_build_fail(m, "reshape: %s has %lld numbers, which don't fit into %s",
                             ls_dims_write(x->dims).text, (long long)count,
                             ls_dims_write(dims).text);
    if (open >= 0) dims.of[open] = count / others;
    return ls_build_view(m, x, dims);
}
