/* fork.c - see fork.h. A fork is a copy: the sum of one value. */
#include "layers/fork.h"

#include "layers/layers.h"

ls_value *ls_layers_copy(ls_model *m, ls_value *x) {
    ls_layer *l = ls_build_layer(m, "fork", NULL, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t T = x->ndims == 2 ? x->dims.of[0] : 1;
    ls_add_declare(l, T, ls_value_count(x) / T, 1);
    return ls_build_value(m, x->dims);
}

/* For the slices [first, first + n) of `all`. */
static void fork_part(ls_model *m, ls_value *x, int all, int first, int n, ls_value **out) {
    if (n == 1) {
        out[first] = x;
        return;
    }
    ls_build_slice(m, first, all);
    ls_value *low = ls_layers_copy(m, x), *high = ls_layers_copy(m, x);
    fork_part(m, low, all, first, n / 2, out);
    fork_part(m, high, all, first + n / 2, n - n / 2, out);
}

void ls_layers_fork_among(ls_model *m, ls_value *x, int all, int first, int n, ls_value **out) {
    fork_part(m, x, all, first, n, out);
    ls_build_slice(m, first, all);
}

void ls_layers_fork(ls_model *m, ls_value *x, int n, ls_value **out) {
    fork_part(m, x, n, 0, n, out);
    ls_build_slice(m, 0, n);
}

static ls_value *join_part(ls_model *m, ls_value **x, int all, int first, int n) {
    if (n == 1) return x[first];
    ls_value *low = join_part(m, x, all, first, n / 2);
    ls_value *high = join_part(m, x, all, first + n / 2, n - n / 2);
    ls_build_slice(m, first, all);
    return (ls_add)(m, low, high);
}

ls_value *ls_layers_join(ls_model *m, ls_value **x, int n) {
    ls_value *sum = join_part(m, x, n, 0, n);
    ls_build_slice(m, 0, n);
    return sum;
}
