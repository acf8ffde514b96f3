/* copy.c - see copy.h. */
#include "layers/copy.h"

#include <string.h>

void ls_copy_in_thread(const ls_copy *c) {
    size_t nbytes = (size_t)c->width * sizeof(float);
    for (int64_t r = 0; nbytes > 0 && r < c->rows; r++) {
        if (c->from)
            memcpy(c->to + r * c->to_stride, c->from + r * c->from_stride, nbytes);
        else
            memset(c->to + r * c->to_stride, 0, nbytes);
    }
}

static void run(void *arg, int thread, int nthreads) {
    ls_copy c = *(const ls_copy *)arg;
    int64_t r = 0, end = 0;
    ls_pool_share(c.rows, 1, thread, nthreads, &r, &end);
    c.rows = end - r;
    c.to += r * c.to_stride;
    if (c.from) c.from += r * c.from_stride;
    ls_copy_in_thread(&c);
}

void ls_copy_run(const ls_compute *compute, const ls_copy *c) {
    ls_copy copy = *c;
    ls_pool_run(compute->pool, run, &copy);
}

bool ls_around_dim(ls_model *m, const ls_value *x, int dim, ls_around *a_p) {
    ls_around a = {.dim = dim < 0 ? dim + x->ndims : dim, .outer = 1, .inner = 1};
    if (a.dim < 0 || a.dim >= x->ndims) {
        ls_build_fail(m, "%s has no dimension %d", ls_dims_write(x->dims).text, dim);
        return false;
    }
    for (int i = 0; i < a.dim; i++) a.outer *= x->dims.of[i];
    for (int i = a.dim + 1; i < x->ndims; i++) a.inner *= x->dims.of[i];
    a.size = x->dims.of[a.dim];
    *a_p = a;
    return true;
}
