/* heads.c - see heads.h. */
#include "layers/heads.h"

#include <math.h>
#include <string.h>

#include "tensor/gemm.h"

enum { QUERY_BLOCK = 48, MASK_BLOCK = 64 };

/* One (sample, head): where its parts are. */
typedef struct head {
    const ls_heads *all;
    ls_matrix q, k, v; /* [T, D], [S, D], [S, D] */
    float scale;
    float *stat;               /* [T, 2] */
    int64_t y;                 /* offset of its columns in a [n, T, C] matrix */
    int64_t q_at, k_at;        /* offsets of q, and of k or v */
    const unsigned char *mask; /* [S] or NULL */
    const char *positions;     /* [T] or NULL */
    bool drops;
    ls_dropout_place place; /* } of its mask */
    int64_t mask_row;       /* } the number of its first query's row */
} head;

static head head_of(const ls_heads *a, int64_t sample, int64_t which) {
    int64_t kv = which / (a->heads / a->kv_heads);
    head h = {.all = a, .scale = 1.0f / sqrtf((float)a->D)};
    h.q_at = sample * a->T * a->q_row + which * a->D;
    h.k_at = sample * a->S * a->kv_row + kv * a->D;
    h.q = ls_matrix_from((ls_matrix){a->q, a->q_row, 1, a->stored}, 0, h.q_at);
    h.k = ls_matrix_from((ls_matrix){a->k, a->kv_row, 1, a->stored}, 0, h.k_at);
    h.v = ls_matrix_from((ls_matrix){a->v, a->kv_row, 1, a->stored}, 0, h.k_at);
    h.stat = a->stat + (sample * a->heads + which) * a->T * 2;
    h.y = sample * a->T * a->heads * a->D + which * a->D;
    h.mask = a->mask ? a->mask + (size_t)sample * a->mask_nbytes : NULL;
    h.positions = a->positions ? a->positions + (size_t)sample * a->positions_nbytes : NULL;
    h.drops = a->drop && ls_dropout_acts(a->drop, a->call);
    if (h.drops) {
        h.place = ls_dropout_place_of(a->drop, a->call, sample);
        h.mask_row = (a->drop->first + which) * a->T;
    }
    return h;
}

/* The operands that all blocks of queries of a head of keys use are packed once. In a thread's
 * scratch memory: p [QUERY_BLOCK, S], dp [QUERY_BLOCK, S], which also has room for results
 * [QUERY_BLOCK, D] before they are rounded, then these. */
typedef struct packed {
    float *p, *dp;
    float *by_key, *by_value; /* keys, values, transposed [D, S] */
    float *rows;              /* forward: values [S, D]; backward: keys */
} packed;

static int64_t dp_floats(int64_t S, int64_t D) { return QUERY_BLOCK * (S > D ? S : D); }

size_t ls_heads_scratch_floats(int64_t S, int64_t D) {
    return (size_t)(QUERY_BLOCK * S + dp_floats(S, D) + 2 * ls_gemm_packed_floats(D, S) +
                    ls_gemm_packed_floats(S, D));
}

static packed packed_of(int thread, const head *h) {
    const ls_heads *a = h->all;
    packed k = {.p = ls_compute_scratch(a->compute, thread)};
    k.dp = k.p + QUERY_BLOCK * a->S;
    k.rows = k.dp + dp_floats(a->S, a->D);
    k.by_key = k.rows + ls_gemm_packed_floats(a->S, a->D);
    k.by_value = k.by_key + ls_gemm_packed_floats(a->D, a->S);
    ls_gemm_pack(a->compute->k, a->bf16, a->D, a->S, ls_matrix_across(h->k), k.by_key);
    return k;
}

/* A block of queries of a head, run by one thread. */
typedef struct block {
    const ls_compute *c;
    int thread;
    const head *h;
    int64_t first, m;  /* its first query, and the number of its queries */
    int64_t width;     /* number of keys that they see */
    int64_t seen;      /* query i sees keys up to seen + i, as the kernels count */
    ls_matrix queries; /* [m, D] */
} block;

static block block_of(int thread, const head *h, int64_t first) {
    const ls_heads *a = h->all;
    int64_t m = a->T - first < QUERY_BLOCK ? a->T - first : QUERY_BLOCK;
    return (block){.c = a->compute,
                   .thread = thread,
                   .h = h,
                   .first = first,
                   .m = m,
                   .width = a->causal ? first + m : a->S,
                   .seen = a->causal ? first : a->S,
                   .queries = ls_matrix_from(h->q, first, 0)};
}

/* out [m, width] = rows [m, D] . b [D, width], b the first columns of a packed [D, S] */
static void by_keys(const block *b, ls_matrix rows, const float *packed_b, float *out) {
    ls_gemm_in_thread(b->c, b->thread,
                      &(ls_gemm_job){.M = b->m,
                                     .bf16 = b->h->all->bf16,
                                     .N = b->width,
                                     .K = b->h->all->D,
                                     .a = rows,
                                     .packed_b = packed_b,
                                     .packed_K = b->h->all->D,
                                     .c = out,
                                     .ldc = b->width});
}

/* out [m, D], rows ldc apart, = weights [m, width] . b, the first rows of a packed [S, D] */
static void mix(const block *b, const float *weights, const float *packed_b, float *out,
                int64_t ldc) {
    ls_gemm_in_thread(b->c, b->thread,
                      &(ls_gemm_job){.M = b->m,
                                     .bf16 = b->h->all->bf16,
                                     .N = b->h->all->D,
                                     .K = b->width,
                                     .a = ls_matrix_of(weights, b->width),
                                     .packed_b = packed_b,
                                     .packed_K = b->h->all->S,
                                     .c = out,
                                     .ldc = ldc});
}

/* out [width, D] += weights [m, width]^T . rows [m, D] */
static void add_by_key(const block *b, const float *weights, ls_matrix rows, float *out) {
    ls_gemm_in_thread(b->c, b->thread,
                      &(ls_gemm_job){.M = b->width,
                                     .bf16 = b->h->all->bf16,
                                     .N = b->h->all->D,
                                     .K = b->m,
                                     .a = ls_matrix_transposed(weights, b->width),
                                     .b = rows,
                                     .c = out,
                                     .ldc = b->h->all->kv_row,
                                     .start = LS_GEMM_ADD});
}

/* The first key that query t sees. */
static int64_t first_key(const head *h, int64_t t) {
    int64_t window = h->all->window, first = window && window <= t ? t - window + 1 : 0;
    int32_t place = 0;
    if (!h->positions) return first;
    memcpy(&place, h->positions + (size_t)t * sizeof place, sizeof place);
    return place >= 0 && place <= t && t - place > first ? t - place : first;
}

/* Sets the scores or probabilities of keys that don't count. */
static void set_masked(const block *b, float *s, float value) {
    const head *h = b->h;
    for (int64_t k = 0; h->mask && k < b->width; k++)
        for (int64_t r = 0; !h->mask[k] && r < b->m; r++) s[r * b->width + k] = value;
    for (int64_t r = 0; (h->positions || h->all->window) && r < b->m; r++) {
        int64_t first = first_key(h, b->first + r);
        for (int64_t k = 0; k < first; k++) s[r * b->width + k] = value;
    }
}

/* Before a softmax: a masked score is below all others, and the term that the softmax gives it is
 * too small to change a sum. After it: its probability is 0. */
static void probabilities(const block *b, bool again, float *s) {
    const head *h = b->h;
    float *stat = h->stat + b->first * 2;
    set_masked(b, s, -INFINITY);
    if (again)
        b->c->k->softmax_causal_again(b->m, b->width, b->seen, h->scale, s, stat);
    else
        b->c->k->softmax_causal(b->m, b->width, b->seen, h->scale, s, stat);
    set_masked(b, s, 0);
}

/* Probabilities that count, or their gradients, with the mask: s [m, width]. */
static void drop(const block *b, float *s) {
    const head *h = b->h;
    int64_t row = (h->all->S + MASK_BLOCK - 1) / MASK_BLOCK * MASK_BLOCK;
    for (int64_t r = 0; h->drops && r < b->m; r++, s += b->width) {
        int64_t t = b->first + r, end = h->all->causal ? t + 1 : b->width;
        int64_t first = h->all->causal ? first_key(h, t) : 0;
        b->c->k->dropout(&h->place, (h->mask_row + t) * row + first, end - first, s + first,
                         s + first);
    }
}

/* The block's rows of y, which begin with number `at`. */
static void mix_into_y(const block *b, const packed *k, int64_t at) {
    const ls_heads *a = b->h->all;
    int64_t C = a->heads * a->D;
    if (!a->stored) {
        mix(b, k->p, k->rows, (float *)a->y + at, C);
        return;
    }
    mix(b, k->p, k->rows, k->dp, a->D);
    for (int64_t r = 0; r < b->m; r++)
        b->c->k->narrow(LS_BF16, (size_t)a->D, k->dp + r * a->D, (uint16_t *)a->y + at + r * C);
}

static void head_forward(const packed *k, int thread, const head *h) {
    const ls_heads *a = h->all;
    int64_t C = a->heads * a->D;
    for (int64_t first = 0; first < a->T; first += QUERY_BLOCK) {
        block b = block_of(thread, h, first);
        by_keys(&b, b.queries, k->by_key, k->p);
        probabilities(&b, false, k->p);
        drop(&b, k->p);
        mix_into_y(&b, k, h->y + first * C);
    }
}

static void head_backward(const packed *k, int thread, const head *h) {
    const ls_heads *a = h->all;
    int64_t C = a->heads * a->D;
    float *dq = a->dq + h->q_at, *dk = a->dk + h->k_at, *dv = a->dv + h->k_at;
    for (int64_t first = 0; first < a->T; first += QUERY_BLOCK) {
        block b = block_of(thread, h, first);
        ls_matrix dy = ls_matrix_from(a->dy, 0, h->y + first * C);
        by_keys(&b, b.queries, k->by_key, k->p);
        probabilities(&b, true, k->p);
        by_keys(&b, dy, k->by_value, k->dp);
        drop(&b, k->dp);
        a->compute->k->softmax_causal_dx(b.m, b.width, h->scale, k->p, k->dp);
        drop(&b, k->p);
        add_by_key(&b, k->p, dy, dv);
        mix(&b, k->dp, k->rows, dq + first * a->q_row, a->q_row);
        add_by_key(&b, k->dp, b.queries, dk);
    }
}

/* ---- a head of keys and values, with its heads of queries ---- */

static void pack_forward(const packed *k, const head *h) {
    const ls_heads *a = h->all;
    ls_gemm_pack(a->compute->k, a->bf16, a->S, a->D, h->v, k->rows);
}

static void pack_backward(const packed *k, const head *h) {
    const ls_heads *a = h->all;
    float *dk = a->dk + h->k_at, *dv = a->dv + h->k_at;
    ls_gemm_pack(a->compute->k, a->bf16, a->D, a->S, ls_matrix_across(h->v), k->by_value);
    ls_gemm_pack(a->compute->k, a->bf16, a->S, a->D, h->k, k->rows);
    for (int64_t s = 0; s < a->S; s++) {
        memset(dk + s * a->kv_row, 0, (size_t)a->D * sizeof *dk);
        memset(dv + s * a->kv_row, 0, (size_t)a->D * sizeof *dv);
    }
}

typedef struct pass {
    const ls_heads *all;
    void (*pack)(const packed *, const head *);
    void (*fn)(const packed *, int thread, const head *);
} pass;

static void run(void *arg, int thread, int nthreads) {
    const pass *p = arg;
    const ls_heads *a = p->all;
    int64_t i = 0, end = 0, shared = a->heads / a->kv_heads;
    ls_pool_share(a->n * a->kv_heads, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        int64_t sample = i / a->kv_heads, which = i % a->kv_heads * shared;
        head h = head_of(a, sample, which);
        packed k = packed_of(thread, &h);
        p->pack(&k, &h);
        for (int64_t q = which; q < which + shared; q++) {
            h = head_of(a, sample, q);
            p->fn(&k, thread, &h);
        }
    }
}

void ls_heads_forward(const ls_heads *a) {
    ls_pool_run(a->compute->pool, run, &(pass){a, pack_forward, head_forward});
}

void ls_heads_backward(const ls_heads *a) {
    ls_pool_run(a->compute->pool, run, &(pass){a, pack_backward, head_backward});
}

/* A causal block sees on average half of the keys and half a block more. */
void ls_heads_works(const ls_heads *a, ls_works *f, ls_works *b) {
    int64_t T = a->T, D = a->D, m = T < QUERY_BLOCK ? T : QUERY_BLOCK;
    int64_t width = a->causal ? (T + m) / 2 : a->S;
    double times = (double)a->heads * (double)T / (double)m;
    double seen = (double)m * (a->causal ? (double)(T + 1) / 2 : (double)a->S);
    const ls_work forward[] = {{LS_WORK_PRODUCT_DX, m, width, D, times, 0, false},
                               {LS_WORK_SOFTMAX, 0, 0, 0, times, seen, false},
                               {LS_WORK_PRODUCT, m, D, width, times, 0, false}};
    const ls_work backward[] = {{LS_WORK_PRODUCT_DX, m, width, D, 2 * times, 0, false},
                                {LS_WORK_SOFTMAX_AGAIN, 0, 0, 0, times, seen, false},
                                {LS_WORK_PRODUCT_DW, width, D, m, 2 * times, 0, false},
                                {LS_WORK_SOFTMAX_DX, 0, 0, 0, times, seen, false},
                                {LS_WORK_PRODUCT, m, D, width, times, 0, false}};
    bool drops = a->drop && a->drop->rate > 0;
    if (drops) ls_works_dropout(f, (int64_t)(times * seen));
    if (drops) ls_works_dropout(b, (int64_t)(2 * times * seen));
    memcpy(f->list + f->n, forward, sizeof forward);
    f->n += (int)(sizeof forward / sizeof *forward);
    memcpy(b->list + b->n, backward, sizeof backward);
    b->n += (int)(sizeof backward / sizeof *backward);
}
