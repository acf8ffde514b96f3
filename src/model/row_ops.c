/* row_ops.c - see row_ops.h. */
#include "model/row_ops.h"

#include <assert.h>
#include <string.h>

#include "base/min.h"
#include "model/row_device.h"
#include "tensor/gemm.h"
#include "tensor/gemv.h"

enum { GAMMA, BETA };
enum {
    CHUNK = LS_PART,
    NORM_ROWS = 16, /* rows of x, for the gradients of a norm's parameters */
};

ls_matrix ls_rows_x(const ls_layer *l, const ls_layer_call *c, int k, int64_t width) {
    return (ls_matrix){c->x[k], width, 1, ls_layer_has_bf16(l, c, LS_OPERAND_X)};
}

ls_matrix ls_rows_dy(const ls_layer *l, const ls_layer_call *c, int64_t width) {
    return (ls_matrix){c->dy, width, 1, ls_layer_has_bf16(l, c, LS_OPERAND_DY)};
}

ls_numbers ls_rows_saved(const ls_layer *l, const ls_layer_call *c) {
    return (ls_numbers){c->saved, ls_layer_has_bf16(l, c, LS_OPERAND_SAVED)};
}

ls_numbers ls_rows_y(const ls_layer *l, const ls_layer_call *c) {
    return (ls_numbers){c->y, ls_layer_has_bf16(l, c, LS_OPERAND_Y)};
}

ls_numbers ls_rows_dx(const ls_layer *l, const ls_layer_call *c, int k) {
    return (ls_numbers){c->dx[k], ls_layer_has_bf16(l, c, LS_OPERAND_DX)};
}

/* ---- parts of operands, by the calling thread alone ---- */

const float *ls_part_read(const ls_kernels *k, ls_matrix x, int64_t r, int64_t j, int64_t n,
                          float *room) {
    const void *p = ls_matrix_from(x, r, j).p;
    if (!x.bf16) return p;
    k->widen(LS_BF16, (size_t)n, p, room);
    return room;
}

float *ls_part_result(ls_numbers y, int64_t i, float *room) {
    return y.bf16 ? room : (float *)y.p + i;
}

void ls_part_store(const ls_kernels *k, ls_numbers y, int64_t i, int64_t n, const float *result) {
    if (y.bf16) k->narrow(LS_BF16, (size_t)n, result, ls_numbers_at(y, i).p);
}

void ls_part_add(const ls_kernels *k, int64_t n, const void *a, const void *b, ls_numbers y) {
    k->combine(y.bf16 ? LS_BF16 : LS_F32, LS_SUM, (size_t)n, a, b, y.p);
}

/* Stores results that only products read, in bf16 where y is. */
static void store_operand(const ls_kernels *k, ls_numbers y, int64_t i, int64_t n,
                          const float *result) {
    if (y.bf16) k->to_bf16(n, result, ls_numbers_at(y, i).p);
}

/* ---- the norm ---- */

typedef struct norm_job {
    const ls_layer *l;
    const ls_layer_call *c;
    ls_matrix x;
    ls_numbers h;
    float *mean, *rstd;
} norm_job;

/* All rows at once in f32, else one at a time. */
static void norm_run(void *arg, int thread, int nthreads) {
    const norm_job *j = arg;
    const ls_layer_call *c = j->c;
    const ls_kernels *k = c->compute->k;
    int64_t C = j->l->C, r = 0, end = 0, n = 1;
    float *room = ls_compute_scratch(c->compute, thread);
    ls_pool_share(c->n * c->T, 1, thread, nthreads, &r, &end);
    if (!j->x.bf16 && !j->h.bf16) n = end - r;
    for (; r < end; r += n) {
        float *h = ls_part_result(j->h, r * C, room);
        k->layernorm(n, C, ls_part_read(k, j->x, r, 0, C, room + C), ls_layer_param(j->l, c, GAMMA),
                     ls_layer_param(j->l, c, BETA), h, j->mean + r, j->rstd + r);
        store_operand(k, j->h, r * C, C, h);
    }
}

size_t ls_rows_norm_scratch(int64_t C) { return (size_t)(NORM_ROWS * C); }

void ls_rows_norm(const ls_layer *l, const ls_layer_call *c, ls_numbers h, float *mean,
                  float *rstd) {
    norm_job j = {l, c, ls_rows_x(l, c, 0, l->C), h, mean, rstd};
    if (c->compute->device) {
        ls_row_device_norm(l, c, h.p, mean, rstd);
        return;
    }
    ls_pool_run_sized(c->compute->pool, c->n * c->T * l->C, norm_run, &j);
}

typedef struct norm_back_job {
    const ls_layer *l;
    const ls_layer_call *c;
    ls_matrix x, residual; /* residual.p NULL: none is added */
    const float *mean, *rstd, *dh;
} norm_back_job;

static void norm_dparams_run(void *arg, int thread, int nthreads) {
    const norm_back_job *j = arg;
    const ls_layer_call *c = j->c;
    const ls_kernels *k = c->compute->k;
    int64_t C = j->l->C, rows = c->n * c->T, c0 = 0, c1 = 0;
    float *dgamma = ls_layer_grad(j->l, c, GAMMA), *dbeta = ls_layer_grad(j->l, c, BETA);
    float *room = ls_compute_scratch(c->compute, thread);
    ls_pool_share(C, 16, thread, nthreads, &c0, &c1);
    size_t nbytes = (size_t)(c1 - c0) * sizeof(float);
    if (c->grads_start && dgamma) memset(dgamma + c0, 0, nbytes);
    if (c->grads_start && dbeta) memset(dbeta + c0, 0, nbytes);
    int64_t most = j->x.bf16 ? NORM_ROWS : rows;
    for (int64_t r = 0, n; r < rows; r += n) {
        n = rows - r < most ? rows - r : most;
        const float *x = j->x.bf16 ? room : ls_matrix_from(j->x, r, 0).p;
        for (int64_t i = 0; j->x.bf16 && i < n; i++)
            ls_part_read(k, j->x, r + i, c0, c1 - c0, room + i * C + c0);
        k->layernorm_dparams(n, C, c0, c1, j->dh + r * C, x, j->mean + r, j->rstd + r, dgamma,
                             dbeta);
    }
}

static void norm_dx_run(void *arg, int thread, int nthreads) {
    const norm_back_job *j = arg;
    const ls_layer_call *c = j->c;
    const ls_kernels *k = c->compute->k;
    int64_t C = j->l->C, r = 0, end = 0, n = 1;
    ls_numbers dx = ls_rows_dx(j->l, c, 0);
    float *room = ls_compute_scratch(c->compute, thread), *y = room + 2 * C;
    ls_pool_share(c->n * c->T, 1, thread, nthreads, &r, &end);
    if (!j->x.bf16 && !j->residual.bf16 && !dx.bf16) n = end - r;
    for (; r < end; r += n) {
        const float *added = j->residual.p ? ls_part_read(k, j->residual, r, 0, C, room + C) : NULL;
        float *to = ls_part_result(dx, r * C, y);
        k->layernorm_dx(n, C, j->dh + r * C, ls_part_read(k, j->x, r, 0, C, room),
                        ls_layer_param(j->l, c, GAMMA), j->mean + r, j->rstd + r, added, to);
        ls_part_store(k, dx, r * C, C, to);
    }
}

void ls_rows_norm_back(const ls_layer *l, const ls_layer_call *c, const float *mean,
                       const float *rstd, const float *dh, bool add_dy) {
    norm_back_job j = {
        .l = l, .c = c, .x = ls_rows_x(l, c, 0, l->C), .mean = mean, .rstd = rstd, .dh = dh};
    if (add_dy) j.residual = ls_rows_dy(l, c, l->C);
    if (c->compute->device) {
        ls_row_device_norm_back(l, c, mean, rstd, dh, j.residual.p);
        return;
    }
    if (ls_layer_trains(l, GAMMA) || ls_layer_trains(l, BETA))
        ls_pool_run(c->compute->pool, norm_dparams_run, &j);
    if (c->dx[0]) ls_pool_run(c->compute->pool, norm_dx_run, &j);
}

bool ls_rows_norm_has_back(const ls_layer *l, const ls_layer_call *c) {
    return c->dx[0] || ls_layer_trains(l, GAMMA) || ls_layer_trains(l, BETA);
}

void ls_rows_norm_converts(ls_layer *l, int64_t T, int64_t C, bool add_dy, bool h) {
    ls_conversions *f = &l->cost.forward_converts, *b = &l->cost.backward_converts;
    int64_t n = T * C;
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_X, .numbers = n});
    if (h)
        ls_conversions_add(
            f, (ls_conversion){.operand = LS_OPERAND_SAVED, .rounds = true, .numbers = n});
    ls_conversions_add(
        b,
        (ls_conversion){.operand = LS_OPERAND_X, .grads = 1u << GAMMA | 1u << BETA, .numbers = n});
    ls_conversions_add(b, (ls_conversion){.operand = LS_OPERAND_X, .for_dx = true, .numbers = n});
    if (add_dy)
        ls_conversions_add(b,
                           (ls_conversion){.operand = LS_OPERAND_DY, .for_dx = true, .numbers = n});
    ls_conversions_add(
        b, (ls_conversion){.operand = LS_OPERAND_DX, .rounds = true, .for_dx = true, .numbers = n});
}

/* ---- element by element ---- */

/* Which of its operands a job has, its function says. */
typedef struct flat_job {
    const ls_kernels *k;
    int64_t n;
    ls_matrix x; /* one row */
    ls_numbers y;
    const float *a;
    float *d;
    void *kept;
} flat_job;

/* A thread's part [first, end), in chunks where anything is converted. */
static int64_t flat_share(const flat_job *j, int thread, int nthreads, int64_t *first_p,
                          int64_t *end_p) {
    ls_pool_share(j->n, 16, thread, nthreads, first_p, end_p);
    return j->x.bf16 || j->y.bf16 ? CHUNK : *end_p - *first_p;
}

static void gelu_run(void *arg, int thread, int nthreads) {
    const flat_job *j = arg;
    int64_t i = 0, end = 0, most = flat_share(j, thread, nthreads, &i, &end);
    float from[CHUNK], to[CHUNK];
    for (int64_t n; i < end; i += n) {
        n = ls_min(most, end - i);
        const float *x = ls_part_read(j->k, j->x, 0, i, n, from);
        float *y = ls_part_result(j->y, i, to);
        if (j->kept) j->k->narrow(LS_BF16, (size_t)n, x, (uint16_t *)j->kept + i);
        j->k->gelu(n, x, y);
        store_operand(j->k, j->y, i, n, y);
    }
}

static void gelu_back_run(void *arg, int thread, int nthreads) {
    const flat_job *j = arg;
    int64_t i = 0, end = 0, most = flat_share(j, thread, nthreads, &i, &end);
    float from[CHUNK], to[CHUNK];
    for (int64_t n; i < end; i += n) {
        n = ls_min(most, end - i);
        float *y = ls_part_result(j->y, i, to);
        j->k->gelu_back(n, ls_part_read(j->k, j->x, 0, i, n, from), j->d + i, j->d + i, y);
        store_operand(j->k, j->y, i, n, y);
    }
}

/* y = x + a, rounded as outputs of layers are. */
static void add_run(void *arg, int thread, int nthreads) {
    const flat_job *j = arg;
    int64_t i = 0, end = 0, most = flat_share(j, thread, nthreads, &i, &end);
    float from[CHUNK], to[CHUNK];
    for (int64_t n; i < end; i += n) {
        n = ls_min(most, end - i);
        float *y = ls_part_result(j->y, i, to);
        j->k->add(n, ls_part_read(j->k, j->x, 0, i, n, from), j->a + i, y);
        ls_part_store(j->k, j->y, i, n, y);
    }
}

static void round_run(void *arg, int thread, int nthreads) {
    const flat_job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->n, 32, thread, nthreads, &i, &end);
    store_operand(j->k, j->y, i, end - i, j->a + i);
}

void ls_rows_gelu(const ls_compute *c, int64_t n, ls_matrix x, ls_numbers y) {
    if (c->device)
        ls_row_device_gelu(c, n, x.p, y.p);
    else
        ls_pool_run(c->pool, gelu_run, &(flat_job){.k = c->k, .n = n, .x = x, .y = y});
}

void ls_rows_gelu_keep(const ls_compute *c, int64_t n, ls_matrix x, ls_numbers y, void *kept) {
    ls_pool_run(c->pool, gelu_run, &(flat_job){.k = c->k, .n = n, .x = x, .y = y, .kept = kept});
}

void ls_rows_gelu_back(const ls_compute *c, int64_t n, ls_matrix x, float *d, ls_numbers y) {
    if (c->device)
        ls_row_device_gelu_back(c, n, x.p, d, y.p);
    else
        ls_pool_run(c->pool, gelu_back_run, &(flat_job){.k = c->k, .n = n, .x = x, .y = y, .d = d});
}

void ls_rows_add(const ls_compute *c, int64_t n, ls_matrix x, const float *a, ls_numbers y) {
    if (c->device)
        ls_row_device_add(c, n, x.p, a, y.p);
    else
        ls_pool_run_sized(c->pool, n, add_run,
                          &(flat_job){.k = c->k, .n = n, .x = x, .y = y, .a = a});
}

void ls_rows_round(const ls_compute *c, int64_t n, const float *x, void *y) {
    ls_pool_run_sized(c->pool, n, round_run,
                      &(flat_job){.k = c->k, .n = n, .y = {y, true}, .a = x});
}

/* ---- products ---- */

static bool has_bias(const ls_layer *l, int w) { return w + 1 < l->nparams; }
static int64_t outputs_of(const ls_layer *l, int w) {
    return has_bias(l, w) ? (int64_t)l->counts[w + 1] : (int64_t)l->counts[w] / l->C;
}
static int64_t inputs_of(const ls_layer *l, int w) {
    return (int64_t)l->counts[w] / outputs_of(l, w);
}

ls_matrix ls_rows_weights(const ls_layer *l, const ls_layer_call *c, int w, int64_t width) {
    if (ls_layer_trains(l, w) && l->half.in_products[w] && ls_layer_given_bf16(c))
        return ls_matrix_bf16(ls_layer_stored(l, c, w).data, width);
    return ls_matrix_of(ls_layer_param(l, c, w), width);
}

/* Parameter w [in, out] as an operand. */
static ls_matrix weights_of(const ls_layer *l, const ls_layer_call *c, int w) {
    return ls_rows_weights(l, c, w, outputs_of(l, w));
}

/* The row x [n] as a product in bf16 reads it. As packing, this is a part of the product: the
 * kernel `widen` would count it among the conversions that a layer declares for its price. */
static void operand_of(const ls_kernels *k, int64_t n, ls_matrix x, float *row) {
    const uint16_t *half = x.p;
    if (!x.bf16) k->round_bf16(n, x.p, row);
    for (int64_t i = 0; x.bf16 && i < n; i++) {
        uint32_t bits = (uint32_t)half[i] << 16;
        memcpy(row + i, &bits, sizeof bits);
    }
}

/* One row, at the speed at which memory delivers the weights. False: these have another type than
 * the product. */
static bool one_row(const ls_layer *l, const ls_layer_call *c, int w, ls_matrix x, float *y) {
    int64_t in = inputs_of(l, w);
    ls_matrix weights = weights_of(l, c, w);
    float *room = ls_compute_gemm_work(c->compute, 0);
    bool bf16 = ls_layer_in_bf16(c);
    if (weights.bf16 != bf16 || in > LS_GEMM_WORK) return false;
    if (bf16) operand_of(c->compute->k, in, x, room);
    ls_gemv(c->compute, &(ls_gemv_job){.type = bf16 ? LS_BF16 : LS_F32,
                                       .K = in,
                                       .N = outputs_of(l, w),
                                       .x = bf16 ? room : x.p,
                                       .w = weights.p,
                                       .bias = has_bias(l, w) ? ls_layer_param(l, c, w + 1) : NULL,
                                       .y = y,
                                       .bf16 = bf16,
                                       .bias_f32 = true});
    return true;
}

void ls_rows_linear(const ls_layer *l, const ls_layer_call *c, int w, ls_matrix x, float *y) {
    int64_t in = inputs_of(l, w), out = outputs_of(l, w);
    if (c->n * c->T == 1 && !c->compute->device && one_row(l, c, w, x, y)) return;
    ls_gemm(c->compute,
            &(ls_gemm_job){.bf16 = ls_layer_in_bf16(c),
                           .M = c->n * c->T,
                           .N = out,
                           .K = in,
                           .a = x,
                           .b = weights_of(l, c, w),
                           .c = y,
                           .ldc = out,
                           .start = has_bias(l, w) ? LS_GEMM_BIAS : LS_GEMM_ZERO,
                           .bias = has_bias(l, w) ? ls_layer_param(l, c, w + 1) : NULL});
}

ls_gemm_units ls_rows_units(const ls_layer_call *c) {
    if (!ls_layer_in_bf16(c)) return (ls_gemm_units){0};
    return (ls_gemm_units){.rows = ls_layer_unit_samples(c->T) * c->T};
}

int64_t ls_rows_block_end(const ls_gemm_units *u, int64_t first, int64_t rows, int64_t most) {
    int64_t last = ls_min(first + most, rows), begin = first, end = first;
    if (!u->rows) return last;
    assert(most >= 2 * LS_SUM_BLOCK || last == rows);
    while (begin > 0 && !ls_gemm_begins_unit(u, begin)) begin--;
    for (int64_t k = first + 1; k <= last; k++) {
        if (k < rows && ls_gemm_begins_unit(u, k)) begin = k;
        if (k == rows || (k - begin) % LS_SUM_BLOCK == 0) end = k;
    }
    return end;
}

typedef struct column_sum_job {
    const ls_kernels *k;
    int64_t rows;
    ls_matrix x;
    float *sum;
    bool start;
} column_sum_job;

/* Columns [c0, c1), some rows and columns at a time. */
static void column_sum_bf16(const column_sum_job *j, int64_t c0, int64_t c1) {
    enum { ROWS = 16, COLUMNS = CHUNK / ROWS };
    float room[CHUNK];
    for (int64_t col = c0, w; col < c1; col += w) {
        w = ls_min(COLUMNS, c1 - col);
        for (int64_t r = 0, n; r < j->rows; r += n) {
            n = ls_min(ROWS, j->rows - r);
            for (int64_t i = 0; i < n; i++) ls_part_read(j->k, j->x, r + i, col, w, room + i * w);
            j->k->column_sum(n, w, 0, w, room, j->sum + col);
        }
    }
}

static void column_sum_run(void *arg, int thread, int nthreads) {
    const column_sum_job *j = arg;
    int64_t c0 = 0, c1 = 0;
    ls_pool_share(j->x.rs, 16, thread, nthreads, &c0, &c1);
    if (j->start) memset(j->sum + c0, 0, (size_t)(c1 - c0) * sizeof(float));
    if (j->x.bf16)
        column_sum_bf16(j, c0, c1);
    else
        j->k->column_sum(j->rows, j->x.rs, c0, c1, j->x.p, j->sum);
}

void ls_rows_column_sum(const ls_layer_call *c, int64_t rows, ls_matrix x, float *sum) {
    if (c->compute->device) {
        ls_row_device_column_sum(c->compute, rows, x, !c->grads_start, sum);
        return;
    }
    ls_pool_run(c->compute->pool, column_sum_run,
                &(column_sum_job){c->compute->k, rows, x, sum, c->grads_start});
}

void ls_rows_linear_dx(const ls_layer *l, const ls_layer_call *c, int w, ls_matrix dy, float *dx) {
    int64_t in = inputs_of(l, w), out = outputs_of(l, w);
    ls_gemm(c->compute, &(ls_gemm_job){.bf16 = ls_layer_in_bf16(c),
                                       .M = c->n * c->T,
                                       .N = in,
                                       .K = out,
                                       .a = dy,
                                       .b = ls_matrix_across(weights_of(l, c, w)),
                                       .c = dx,
                                       .ldc = in});
}

void ls_rows_linear_dw(const ls_layer *l, const ls_layer_call *c, int w, ls_matrix x,
                       ls_matrix dy) {
    int64_t rows = c->n * c->T, in = inputs_of(l, w), out = outputs_of(l, w);
    if (ls_layer_trains(l, w))
        ls_gemm(c->compute, &(ls_gemm_job){.bf16 = ls_layer_in_bf16(c),
                                           .M = in,
                                           .N = out,
                                           .K = rows,
                                           .a = ls_matrix_across(x),
                                           .b = dy,
                                           .c = ls_layer_grad(l, c, w),
                                           .ldc = out,
                                           .rounded = ls_layer_rounded_grad(l, c, w),
                                           .units = ls_rows_units(c),
                                           .start = c->grads_start ? LS_GEMM_ZERO : LS_GEMM_ADD});
    if (has_bias(l, w) && ls_layer_trains(l, w + 1))
        ls_rows_column_sum(c, rows, dy, ls_layer_grad(l, c, w + 1));
}

bool ls_rows_linear_has_dw(const ls_layer *l, int w) {
    return ls_layer_trains(l, w) || (has_bias(l, w) && ls_layer_trains(l, w + 1));
}
