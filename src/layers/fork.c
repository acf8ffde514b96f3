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

/* A fork for slices 0, step, 2 step and so on of `all`; 0: all copies are where the value is. */
typedef struct forking {
    ls_model *m;
    int all, step;
    ls_value **out;
} forking;

/* For n of these from number `first` on. */
static void fork_part(const forking *f, ls_value *x, int first, int n) {
    if (n == 1) {
        f->out[first * f->step] = x;
        return;
    }
    if (f->all) ls_build_slice(f->m, first * f->step, f->all);
    ls_value *low = ls_layers_copy(f->m, x), *high = ls_layers_copy(f->m, x);
    fork_part(f, low, first, n / 2);
    fork_part(f, high, first + n / 2, n - n / 2);
}

void ls_layers_fork_among(ls_model *m, ls_value *x, int all, int first, int n, ls_value **out) {
    fork_part(&(forking){m, all, 1, out}, x, first, n);
    ls_build_slice(m, first, all);
}

void ls_layers_fork_every(ls_model *m, ls_value *x, int all, int step, ls_value **out) {
    fork_part(&(forking){m, all, step, out}, x, 0, all / step);
    ls_build_slice(m, 0, all);
}

void ls_layers_fork(ls_model *m, ls_value *x, int n, ls_value **out) {
    ls_layers_fork_every(m, x, n, 1, out);
}

void ls_layers_copies(ls_model *m, ls_value *x, int n, ls_value **out) {
    fork_part(&(forking){m, 0, 1, out}, x, 0, n);
}

/* all: slices; 0: all values are where the sum is. */
static ls_value *join_part(ls_model *m, ls_value **x, int all, int first, int n) {
    if (n == 1) return x[first];
    ls_value *low = join_part(m, x, all, first, n / 2);
    ls_value *high = join_part(m, x, all, first + n / 2, n - n / 2);
    if (all) ls_build_slice(m, first, all);
    return (ls_add)(m, low, high);
}

ls_value *ls_layers_join(ls_model *m, ls_value **x, int n) {
    ls_value *sum = join_part(m, x, n, 0, n);
    ls_build_slice(m, 0, n);
    return sum;
}

ls_value *ls_layers_sum(ls_model *m, ls_value **x, int n) { return join_part(m, x, 0, 0, n); }
