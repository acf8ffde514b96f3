/* attention.c - y = x + projection(causal attention(layer norm(x))).
 *
 * params: gamma, beta [C]; w_qkv [C, 3C], b_qkv [3C]; w_out [C, C], b_out [C]
 * saved, per row: h = layer norm(x) [C] | qkv [3C] | att [C] | mean, rstd; and stat [heads, T, 2]
 *
 * The T x T scores are never in memory as a whole: queries are computed in blocks of QUERY_BLOCK,
 * and backward recomputes the probabilities from the scores and each row's maximum and sum. Dao,
 * Fu, Ermon, Rudra & Re, "FlashAttention", NeurIPS 2022, section 3.1, with blocks over queries
 * only. Blocks have a fixed size and begin at position 0, so the bits depend neither on T nor on
 * threads.
 */
#include "model/attention.h"

#include <math.h>
#include <string.h>

#include "model/rows.h"
#include "tensor/gemm.h"

enum { W_QKV = 2, W_OUT = 4 }; /* the bias of each follows it */
enum { QUERY_BLOCK = 48 };

typedef struct saved {
    float *h, *qkv, *att, *mean, *rstd, *stat;
} saved;

static saved saved_of(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T;
    saved s;
    s.h = c->saved;
    s.qkv = s.h + rows * l->C;
    s.att = s.qkv + rows * 3 * l->C;
    s.mean = s.att + rows * l->C;
    s.rstd = s.mean + rows;
    s.stat = s.rstd + rows; /* [n, heads, T, 2] */
    return s;
}

ls_attention_seen ls_attention_saw(const ls_layer *l, int64_t T, const float *p) {
    const float *qkv = p + T * l->C;
    return (ls_attention_seen){qkv + l->C, qkv + 2 * l->C, 3 * l->C};
}

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    saved s;
    const float *datt; /* [rows, C] */
    float *dqkv;       /* [rows, 3C] */
} job;

/* One (sample, head): where its parts are, and its sizes. */
typedef struct head {
    const float *q, *k, *v; /* [T, D], rows 3C apart */
    int64_t D, T, ld;       /* head size; positions; 3C */
    float scale;
    float *stat;  /* [T, 2] */
    int64_t att;  /* offset of its columns in a [rows, C] matrix */
    int64_t qoff; /* offset of q in a [rows, 3C] matrix */
} head;

static head head_of(const job *j, int64_t index) {
    int64_t C = j->l->C, heads = j->l->heads, T = j->c->T;
    int64_t sample = index / heads, which = index % heads;
    head h = {.D = C / heads, .T = T, .ld = 3 * C};
    h.qoff = sample * T * 3 * C + which * h.D;
    h.q = j->s.qkv + h.qoff;
    h.k = h.q + C;
    h.v = h.q + 2 * C;
    h.scale = 1.0f / sqrtf((float)h.D);
    h.stat = j->s.stat + index * T * 2;
    h.att = sample * T * C + which * h.D;
    return h;
}

/* The operands of a head that all its blocks of queries use are packed once. In a thread's scratch
 * memory: p, dp [QUERY_BLOCK, T], then these. */
typedef struct packed {
    float *p, *dp;
    float *by_key, *by_value; /* keys, values, transposed [D, T] */
    float *rows;              /* forward: values [T, D]; backward: keys */
} packed;

static int64_t scratch_of(int64_t T, int64_t D) {
    return 2 * QUERY_BLOCK * T + 2 * ls_gemm_packed_floats(D, T) + ls_gemm_packed_floats(T, D);
}

static packed packed_of(const ls_compute *c, int thread, const head *h) {
    packed k = {.p = ls_compute_scratch(c, thread)};
    k.dp = k.p + QUERY_BLOCK * h->T;
    k.rows = k.dp + QUERY_BLOCK * h->T;
    k.by_key = k.rows + ls_gemm_packed_floats(h->T, h->D);
    k.by_value = k.by_key + ls_gemm_packed_floats(h->D, h->T);
    ls_gemm_pack(c->k, h->D, h->T, ls_matrix_transposed(h->k, h->ld), k.by_key);
    return k;
}

/* A block of queries of a head, run by one thread. */
typedef struct block {
    const ls_compute *c;
    int thread;
    const head *h;
    int64_t first, m;  /* its first query, and the number of its queries */
    int64_t width;     /* number of keys that they see */
    ls_matrix queries; /* [m, D] */
} block;

static block block_of(const ls_compute *c, int thread, const head *h, int64_t first) {
    int64_t m = h->T - first < QUERY_BLOCK ? h->T - first : QUERY_BLOCK;
    return (block){c, thread, h, first, m, first + m, ls_matrix_of(h->q + first * h->ld, h->ld)};
}

/* out [m, width] = rows [m, D] . b [D, width], b the first columns of a packed [D, T] */
static void by_keys(const block *b, ls_matrix rows, const float *packed_b, float *out) {
    ls_gemm_in_thread(b->c, b->thread,
                      &(ls_gemm_job){.M = b->m,
                                     .N = b->width,
                                     .K = b->h->D,
                                     .a = rows,
                                     .packed_b = packed_b,
                                     .packed_K = b->h->D,
                                     .c = out,
                                     .ldc = b->width});
}

/* out [m, D], rows ldc apart, = weights [m, width] . b, the first rows of a packed [T, D] */
static void mix(const block *b, const float *weights, const float *packed_b, float *out,
                int64_t ldc) {
    ls_gemm_in_thread(b->c, b->thread,
                      &(ls_gemm_job){.M = b->m,
                                     .N = b->h->D,
                                     .K = b->width,
                                     .a = ls_matrix_of(weights, b->width),
                                     .packed_b = packed_b,
                                     .packed_K = b->h->T,
                                     .c = out,
                                     .ldc = ldc});
}

/* out [width, D] += weights [m, width]^T . rows [m, D] */
static void add_by_key(const block *b, const float *weights, ls_matrix rows, float *out) {
    ls_gemm_in_thread(b->c, b->thread,
                      &(ls_gemm_job){.M = b->width,
                                     .N = b->h->D,
                                     .K = b->m,
                                     .a = ls_matrix_transposed(weights, b->width),
                                     .b = rows,
                                     .c = out,
                                     .ldc = b->h->ld,
                                     .start = LS_GEMM_ADD});
}

static void head_forward(const job *j, int thread, const head *h) {
    const ls_compute *c = j->c->compute;
    int64_t C = j->l->C;
    packed k = packed_of(c, thread, h);
    ls_gemm_pack(c->k, h->T, h->D, ls_matrix_of(h->v, h->ld), k.rows);
    for (int64_t first = 0; first < h->T; first += QUERY_BLOCK) {
        block b = block_of(c, thread, h, first);
        by_keys(&b, b.queries, k.by_key, k.p);
        c->k->softmax_causal(b.m, b.width, first, h->scale, k.p, h->stat + first * 2);
        mix(&b, k.p, k.rows, j->s.att + h->att + first * C, C);
    }
}

static void head_backward(const job *j, int thread, const head *h) {
    const ls_compute *c = j->c->compute;
    int64_t C = j->l->C;
    packed k = packed_of(c, thread, h);
    float *dq = j->dqkv + h->qoff, *dk = dq + C, *dv = dq + 2 * C;
    ls_gemm_pack(c->k, h->D, h->T, ls_matrix_transposed(h->v, h->ld), k.by_value);
    ls_gemm_pack(c->k, h->T, h->D, ls_matrix_of(h->k, h->ld), k.rows);
    for (int64_t t = 0; t < h->T; t++) {
        memset(dk + t * h->ld, 0, (size_t)h->D * sizeof *dk);
        memset(dv + t * h->ld, 0, (size_t)h->D * sizeof *dv);
    }
    for (int64_t first = 0; first < h->T; first += QUERY_BLOCK) {
        block b = block_of(c, thread, h, first);
        ls_matrix datt = ls_matrix_of(j->datt + h->att + first * C, C);
        by_keys(&b, b.queries, k.by_key, k.p);
        c->k->softmax_causal_again(b.m, b.width, first, h->scale, k.p, h->stat + first * 2);
        add_by_key(&b, k.p, datt, dv);
        by_keys(&b, datt, k.by_value, k.dp);
        c->k->softmax_causal_dx(b.m, b.width, h->scale, k.p, k.dp);
        mix(&b, k.dp, k.rows, dq + first * h->ld, h->ld);
        add_by_key(&b, k.dp, b.queries, dk);
    }
}

typedef void head_fn(const job *, int thread, const head *);

typedef struct heads_job {
    const job *j;
    head_fn *fn;
} heads_job;

static void heads_run(void *arg, int thread, int nthreads) {
    const heads_job *all = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(all->j->c->n * all->j->l->heads, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        head h = head_of(all->j, i);
        all->fn(all->j, thread, &h);
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, C = l->C;
    saved s = saved_of(l, c);
    ls_rows_norm(l, c, s.h, s.mean, s.rstd);
    ls_rows_linear(l, c, W_QKV, s.h, s.qkv);
    job j = {.l = l, .c = c, .s = s};
    ls_pool_run(c->compute->pool, heads_run, &(heads_job){&j, head_forward});
    ls_rows_linear(l, c, W_OUT, s.att, c->y);
    ls_rows_add(c->compute, rows * C, c->x[0], c->y, c->y);
}

/* work: datt [rows, C] (later dh) | dqkv [rows, 3C] */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, C = l->C;
    float *datt = c->work, *dqkv = datt + rows * C, *dh = datt;
    saved s = saved_of(l, c);
    ls_rows_linear_dx(l, c, W_OUT, c->dy, datt);
    ls_rows_linear_dw(l, c, W_OUT, s.att, c->dy);
    job j = {.l = l, .c = c, .s = s, .datt = datt, .dqkv = dqkv};
    ls_pool_run(c->compute->pool, heads_run, &(heads_job){&j, head_backward});
    ls_rows_linear_dw(l, c, W_QKV, s.h, dqkv);
    ls_rows_linear_dx(l, c, W_QKV, dqkv, dh);
    ls_rows_norm_back(l, c, s.mean, s.rstd, dh, c->dy);
}

static const ls_layer_ops ops = {.kind = "attention", .forward = forward, .backward = backward};

/* Declares the work of the heads' blocks of queries. A block sees on average half of the keys and
 * half a block more. */
static void declare_heads(ls_works *f, ls_works *b, int64_t T, int64_t D, int64_t heads) {
    int64_t m = T < QUERY_BLOCK ? T : QUERY_BLOCK, width = (T + m) / 2;
    double times = (double)heads * (double)T / (double)m;
    double seen = (double)m * (double)(T + 1) / 2;
    const ls_work forward[] = {{LS_WORK_PRODUCT_DX, m, width, D, times, 0},
                               {LS_WORK_SOFTMAX, 0, 0, 0, times, seen},
                               {LS_WORK_PRODUCT, m, D, width, times, 0}};
    const ls_work backward[] = {{LS_WORK_PRODUCT_DX, m, width, D, 2 * times, 0},
                                {LS_WORK_SOFTMAX_AGAIN, 0, 0, 0, times, seen},
                                {LS_WORK_PRODUCT_DW, width, D, m, 2 * times, 0},
                                {LS_WORK_SOFTMAX_DX, 0, 0, 0, times, seen},
                                {LS_WORK_PRODUCT, m, D, width, times, 0}};
    memcpy(f->list + f->n, forward, sizeof forward);
    f->n += (int)(sizeof forward / sizeof *forward);
    memcpy(b->list + b->n, backward, sizeof backward);
    b->n += (int)(sizeof backward / sizeof *backward);
}

void ls_attention_declare(ls_layer *l, int64_t T, int64_t C, int64_t heads) {
    l->ops = &ops;
    l->T = T;
    l->C = C;
    l->ninputs = 1;
    l->input_floats[0] = (size_t)(T * C);
    l->heads = heads;
    l->y_floats = (size_t)(T * C);
    l->saved_rough = (size_t)(5 * C);
    l->saved_floats = (size_t)(T * (5 * C + 2 + 2 * heads));
    l->work_floats = (size_t)(T * 4 * C);
    l->scratch_floats = (size_t)scratch_of(T, C / heads);
    /* 8 C^2 per position for the products with weights; causal scores and mixing: 2 T C */
    l->forward_flops = 8.0 * (double)(T * C * C) + 2.0 * (double)(T * T * C);
    ls_works *f = &l->forward_work, *b = &l->backward_work;
    ls_works_norm(f, b, T, C);
    ls_works_linear(f, b, T, C, 3 * C);
    declare_heads(f, b, T, C / heads, heads);
    ls_works_linear(f, b, T, C, C);
    ls_works_pass(f, LS_WORK_ADD, T * C);
}
