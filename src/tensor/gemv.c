/* gemv.c - see gemv.h. Threads split columns, or rows of a table. */
#include "tensor/gemv.h"

#include <string.h>

#include "tensor/dtype.h"
#include "tensor/gemm.h"
#include "tensor/int8.h"

enum {
    UNIT = 32,    /* columns: at least a cache line, also of 16-bit values */
    FEW_ROWS = 32 /* rows of a table that one thread computes */
};

void ls_gemv_columns(const ls_kernels *k, const ls_gemv_job *g, int64_t first, int64_t end) {
    size_t n = (size_t)(end - first);
    float *y = g->y + first;
    if (n == 0) return;
    if (!g->bias)
        memset(y, 0, n * sizeof *y);
    else if (ls_dtype_is_half(g->type) && !g->bias_f32)
        k->widen(g->type, n, ls_flat_at(g->type, g->bias, (size_t)first), y);
    else
        memcpy(y, (const float *)g->bias + first, n * sizeof *y);
    (g->bf16 ? k->gemv_bf16 : k->gemv)(g->type, g->K, (int64_t)n, g->x,
                                       ls_flat_at(g->type, g->w, (size_t)first), g->N, y);
}

void ls_gemv_share(const ls_gemv_job *g, int thread, int nthreads, int64_t *first_p,
                   int64_t *end_p) {
    ls_pool_share(g->N, UNIT, thread, nthreads, first_p, end_p);
}

typedef struct columns_job {
    const ls_kernels *k;
    const ls_gemv_job *g;
} columns_job;

static void columns_run(void *arg, int thread, int nthreads) {
    const columns_job *j = arg;
    int64_t first = 0, end = 0;
    ls_gemv_share(j->g, thread, nthreads, &first, &end);
    ls_gemv_columns(j->k, j->g, first, end);
}

void ls_gemv(const ls_compute *c, const ls_gemv_job *g) {
    ls_pool_run_sized(c->pool, g->K * g->N, columns_run, &(columns_job){c->k, g});
}

typedef struct table_split_job {
    const ls_kernels *k;
    const ls_gemv_table_job *whole;
} table_split_job;

static void table_run(void *arg, int thread, int nthreads) {
    const table_split_job *s = arg;
    ls_gemv_table_job j = *s->whole;
    int64_t first = 0, end = 0;
    ls_pool_share(j.V, j.w.strips ? LS_GEMV_GROUP : FEW_ROWS, thread, nthreads, &first, &end);
    const char *strips = j.w.strips;
    j.V = end - first;
    j.w = ls_stored_at(j.w, first * j.C);
    if (strips) j.w.strips = strips + ls_block_nbytes(j.w.type, first * j.C);
    if (j.bias) j.bias += first;
    j.y += first;
    (j.bf16 ? s->k->gemv_table_bf16 : s->k->gemv_table)(&j);
}

/* In bf16, weights of other types have to be rounded: ls_gemm() does it, and kernels with an
 * instruction for pairs do it to blocks. */
static bool is_rounded(const ls_kernels *k, const ls_gemv_table_job *j) {
    bool blocks = ls_block_elements(j->w.type) > 1;
    return j->w.type == LS_BLOCK_BF16 || (blocks && k->bf16_depth == 2);
}

static void by_gemm(const ls_compute *c, const ls_gemv_table_job *j) {
    ls_gemm(c, &(ls_gemm_job){.M = 1,
                              .N = j->V,
                              .K = j->C,
                              .bf16 = true,
                              .a = j->x_bf16 ? ls_matrix_bf16(j->x_bf16, j->C)
                                             : ls_matrix_of(j->x, j->C),
                              .w = ls_weights_transposed(j->w, j->C),
                              .c = j->y,
                              .ldc = j->V,
                              .start = j->bias ? LS_GEMM_BIAS : LS_GEMM_ZERO,
                              .bias = j->bias});
}

static void in_int8(const ls_compute *c, const ls_gemv_table_job *j) {
    ls_int8_multiply(c, &(ls_int8_product){.M = 1,
                                           .V = j->V,
                                           .C = j->C,
                                           .w = j->w,
                                           .x = j->x,
                                           .bias = j->bias,
                                           .y = j->y,
                                           .ldy = j->V});
}

void ls_gemv_table(const ls_compute *c, const ls_gemv_table_job *given) {
    ls_gemv_table_job rounded = *given;
    if (given->w.int8) {
        in_int8(c, given);
        return;
    }
    const ls_gemv_table_job *j = &rounded;
    if (j->bf16 && (!is_rounded(c->k, j) || j->C > LS_GEMM_WORK)) {
        by_gemm(c, given);
        return;
    }
    if (j->bf16) {
        float *x = ls_compute_gemm_work(c, 0);
        if (j->x_bf16) c->k->widen(LS_BF16, (size_t)j->C, j->x_bf16, x);
        c->k->round_bf16(j->C, j->x_bf16 ? x : j->x, x);
        rounded.x = x;
    }
    table_split_job all = {c->k, j};
    if (j->V <= FEW_ROWS)
        table_run(&all, 0, 1);
    else
        ls_pool_run(c->pool, table_run, &all);
}

/* ---- strips ---- */

bool ls_gemv_has_strips(ls_block_type t, int64_t C) {
    enum { GROUP = 32 };
    int64_t elements = ls_block_elements(t);
    return t != LS_BLOCK_F32 && C % (elements > 1 ? elements : GROUP) == 0;
}

typedef struct strips_job {
    const ls_kernels *k;
    ls_stored w;
    int64_t V, C;
    char *to;
} strips_job;

static void strips_run(void *arg, int thread, int nthreads) {
    const strips_job *j = arg;
    int64_t first = 0, end = 0;
    ls_pool_share(j->V, LS_GEMV_GROUP, thread, nthreads, &first, &end);
    j->k->gemv_strips(j->w.type, end - first, j->C, ls_stored_at(j->w, first * j->C).data,
                      (uint8_t *)j->to + ls_block_nbytes(j->w.type, first * j->C));
}

void ls_gemv_strips(const ls_compute *c, ls_stored w, int64_t V, int64_t C, void *to) {
    ls_pool_run(c->pool, strips_run, &(strips_job){c->k, w, V, C, to});
}
