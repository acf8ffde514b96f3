/* lora_merge.c - see lora_merge.h. */
#include "layers/lora_merge.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "layers/linear.h"
#include "tensor/gemm.h"

/* Rows [first, first + n) of the weight, which are in rows [n, in]. */
typedef struct lora_rows {
    const ls_compute *compute;
    int thread; /* that computes, alone */
    int64_t first, n;
    float *rows, *room; /* room [n * rank] */
} lora_rows;

/* Adds scale b . a to the rows, one chain an element. */
static void add_to(const ls_lora_values *v, const lora_rows *r) {
    const ls_linear_own *o = &LS_LAYER_OWN_OF(ls_linear_own, v->layer);
    int64_t in = v->layer->C;
    r->compute->k->affine(r->n * o->rank, v->b + r->first * o->rank, o->scale, 0, r->room);
    ls_gemm_in_thread(r->compute, r->thread,
                      &(ls_gemm_job){.M = r->n,
                                     .N = in,
                                     .K = o->rank,
                                     .a = ls_matrix_of(r->room, o->rank),
                                     .b = ls_matrix_of(v->a, in),
                                     .c = r->rows,
                                     .ldc = in,
                                     .start = LS_GEMM_ADD});
}

/* ---- norms ---- */

enum { NORM_ROWS = 48 }; /* rows of w whose norms a thread computes at a time */

size_t ls_lora_norms_scratch(int64_t in, int64_t rank) { return (size_t)(NORM_ROWS * (in + rank)); }

typedef struct norms {
    const ls_lora_values *v;
    const ls_compute *compute;
    ls_stored w;
    float *inverse, *g;
} norms;

static void norms_run(void *arg, int thread, int nthreads) {
    const norms *f = arg;
    const ls_kernels *k = f->compute->k;
    int64_t in = f->v->layer->C, j = 0, end = 0;
    float *sum = ls_compute_scratch(f->compute, thread), *b = sum + NORM_ROWS * in;
    ls_pool_share(ls_linear_outputs(f->v->layer), NORM_ROWS, thread, nthreads, &j, &end);
    for (int64_t n; j < end; j += n) {
        n = end - j < NORM_ROWS ? end - j : NORM_ROWS;
        ls_stored_read(k, f->w, j * in, n * in, sum);
        add_to(f->v, &(lora_rows){f->compute, thread, j, n, sum, b});
        for (int64_t i = 0; i < n; i++) {
            float norm = sqrtf(k->sum_squares(in, sum + i * in));
            f->inverse[j + i] = norm > 0 ? 1 / norm : 0;
            f->g[j + i] = f->v->magnitude[j + i] * f->inverse[j + i];
        }
    }
}

void ls_lora_norms_find(const ls_lora_values *v, const ls_compute *c, ls_stored w, float *inverse,
                        float *g) {
    ls_pool_run(c->pool, norms_run, &(norms){v, c, w, inverse, g});
}

/* ---- one weight ---- */

void ls_lora_merge(const ls_lora_values *v, const ls_compute *c, int64_t first, int64_t n,
                   float *rows) {
    const ls_linear_own *o = &LS_LAYER_OWN_OF(ls_linear_own, v->layer);
    int64_t in = v->layer->C;
    float *room = LS_NEW_ARRAY(float, (size_t)(n * o->rank));
    add_to(v, &(lora_rows){c, 0, first, n, rows, room});
    free(room);
    for (int64_t i = 0; v->magnitude && i < n; i++) {
        float norm = sqrtf(c->k->sum_squares(in, rows + i * in));
        float factor = norm > 0 ? v->magnitude[first + i] * (1 / norm) : 0;
        c->k->affine(in, rows + i * in, factor, 0, rows + i * in);
    }
}
