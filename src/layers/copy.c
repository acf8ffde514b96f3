/* copy.c - see copy.h. */
#include "layers/copy.h"

#include <string.h>

#include "model/row_ops.h"

static size_t size_of(const ls_copy *c) { return c->bf16 ? 2 : sizeof(float); }

/* n numbers of row r, from column j on. */
static void move(const ls_copy *c, int64_t r, int64_t j, int64_t n) {
    size_t size = size_of(c), nbytes = (size_t)n * size;
    char *to = (char *)c->to + (size_t)(r * c->to_stride + j) * size;
    if (c->from)
        memcpy(to, (const char *)c->from + (size_t)(r * c->from_stride + j) * size, nbytes);
    else
        memset(to, 0, nbytes);
}

void ls_copy_in_thread(const ls_copy *c) {
    for (int64_t r = 0; c->width > 0 && r < c->rows; r++) move(c, r, 0, c->width);
}

typedef struct job {
    const ls_kernels *k;
    const ls_copy *c;
} job;

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_copy *c = j->c;
    ls_matrix from = {c->from, c->from_stride, 1, c->bf16};
    ls_numbers to = {c->to, c->bf16};
    int64_t at = 0, end = 0;
    ls_pool_share(c->rows * c->width, 16, thread, nthreads, &at, &end);
    for (int64_t n; at < end; at += n) {
        int64_t r = at / c->width, i = at % c->width;
        n = end - at < c->width - i ? end - at : c->width - i;
        ls_numbers sum = ls_numbers_at(to, r * c->to_stride + i);
        if (!c->adds)
            move(c, r, i, n);
        else if (c->from)
            ls_part_add(j->k, n, sum.p, ls_matrix_from(from, r, i).p, sum);
    }
}

static void launch(const ls_compute *compute, const ls_copy *c) {
    enum { ITEMS = 256 };
    if (c->adds && !c->from) return;
    LS_LAUNCH(compute, LS_KERNEL_copy_rows, ls_device_groups(c->rows * c->width, ITEMS), 1,
              {.l = c->rows}, {.l = c->width}, {.from = c->from}, {.l = c->from_stride},
              {.p = c->to}, {.l = c->to_stride}, {.l = c->adds});
}

void ls_copy_run(const ls_compute *compute, const ls_copy *c) {
    if (compute->device) {
        launch(compute, c);
        return;
    }
    ls_pool_run_sized(compute->pool, c->rows * c->width, run, &(job){compute->k, c});
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
