/* heads.c - see heads.h. */
#include "layers/heads.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "layers/heads_device.h"
#include "tensor/gemm.h"

/* Gradients of keys and values sum over queries, in bf16 in blocks of LS_SUM_BLOCK; and a causal
 * block of queries sees whole blocks of keys. */
enum { QUERY_BLOCK = 2 * LS_SUM_BLOCK, MASK_BLOCK = 64 };

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

static packed room_of(int thread, const ls_heads *a) {
    packed k = {.p = ls_compute_scratch(a->compute, thread)};
    k.dp = k.p + QUERY_BLOCK * a->S;
    k.rows = k.dp + dp_floats(a->S, a->D);
    k.by_key = k.rows + ls_gemm_packed_floats(a->S, a->D);
    k.by_value = k.by_key + ls_gemm_packed_floats(a->D, a->S);
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

typedef struct keys {
    int64_t first, end;
} keys;

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

/* out [width, D] += weights [m, width]^T . rows [m, D], of keys [first, end) */
static void add_by_key(const block *b, const float *weights, ls_matrix rows, keys of, float *out) {
    if (of.end > b->width) of.end = b->width;
    if (of.first >= of.end) return;
    ls_gemm_in_thread(b->c, b->thread,
                      &(ls_gemm_job){.M = of.end - of.first,
                                     .bf16 = b->h->all->bf16,
                                     .N = b->h->all->D,
                                     .K = b->m,
                                     .a = ls_matrix_transposed(weights + of.first, b->width),
                                     .b = rows,
                                     .c = out + of.first * b->h->all->kv_row,
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

static void block_forward(const packed *k, int thread, const head *h, int64_t first) {
    block b = block_of(thread, h, first);
    by_keys(&b, b.queries, k->by_key, k->p);
    probabilities(&b, false, k->p);
    drop(&b, k->p);
    mix_into_y(&b, k, h->y + first * h->all->heads * h->all->D);
}

static void head_forward(const packed *k, int thread, const head *h) {
    for (int64_t first = 0; first < h->all->T; first += QUERY_BLOCK)
        block_forward(k, thread, h, first);
}

static ls_matrix dy_of(const block *b) {
    const ls_heads *a = b->h->all;
    return ls_matrix_from(a->dy, 0, b->h->y + b->first * a->heads * a->D);
}

/* The block's probabilities p, the gradients dp of its scores, and dq. */
static void block_backward(const packed *k, const block *b) {
    const head *h = b->h;
    const ls_heads *a = h->all;
    by_keys(b, b->queries, k->by_key, k->p);
    probabilities(b, true, k->p);
    by_keys(b, dy_of(b), k->by_value, k->dp);
    drop(b, k->dp);
    a->compute->k->softmax_causal_dx(b->m, b->width, h->scale, k->p, k->dp);
    drop(b, k->p);
    mix(b, k->dp, k->rows, a->dq + h->q_at + b->first * a->q_row, a->q_row);
}

/* Goes on with the gradients of keys and values, from p and dp. */
static void add_to_keys(const packed *k, const block *b, keys of) {
    const ls_heads *a = b->h->all;
    add_by_key(b, k->p, dy_of(b), of, a->dv + b->h->k_at);
    add_by_key(b, k->dp, b->queries, of, a->dk + b->h->k_at);
}

static void head_backward(const packed *k, int thread, const head *h) {
    for (int64_t first = 0; first < h->all->T; first += QUERY_BLOCK) {
        block b = block_of(thread, h, first);
        block_backward(k, &b);
        add_to_keys(k, &b, (keys){0, b.width});
    }
}

/* ---- a head of keys and values, with its heads of queries ---- */

static int64_t shared_by(const ls_heads *a) { return a->heads / a->kv_heads; }

/* Query head i of those that share head `kv` of keys, counted over samples. */
static head head_at(const ls_heads *a, int64_t kv, int64_t i) {
    return head_of(a, kv / a->kv_heads, kv % a->kv_heads * shared_by(a) + i);
}

static void pack_keys(const packed *k, const head *h) {
    const ls_heads *a = h->all;
    ls_gemm_pack(a->compute->k, a->bf16, a->D, a->S, ls_matrix_across(h->k), k->by_key);
}

static void pack_forward(const packed *k, const head *h) {
    const ls_heads *a = h->all;
    pack_keys(k, h);
    ls_gemm_pack(a->compute->k, a->bf16, a->S, a->D, h->v, k->rows);
}

static void pack_backward(const packed *k, const head *h) {
    const ls_heads *a = h->all;
    float *dk = a->dk + h->k_at, *dv = a->dv + h->k_at;
    pack_keys(k, h);
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
    int64_t n; /* heads of keys */
} pass;

static void run(void *arg, int thread, int nthreads) {
    const pass *p = arg;
    int64_t kv = 0, end = 0;
    ls_pool_share(p->n, 1, thread, nthreads, &kv, &end);
    for (; kv < end; kv++) {
        head h = head_at(p->all, kv, 0);
        packed k = room_of(thread, p->all);
        p->pack(&k, &h);
        for (int64_t i = 0; i < shared_by(p->all); i++) {
            h = head_at(p->all, kv, i);
            p->fn(&k, thread, &h);
        }
    }
}

/* ---- heads of keys that are left for more threads ---- */

/* n heads of keys from `first` on, each packed by one thread in its own memory. Forward: all
 * threads take blocks of queries, the longest first, until none is left. Backward: `team` threads
 * share a head of keys; each computes a block of queries, and when all have done so, each adds
 * these blocks, in their order, to the gradients of some keys. */
typedef struct rest {
    const ls_heads *all;
    void (*pack)(const packed *, const head *);
    int64_t first, n;
    int64_t blocks; /* of queries, in all heads that share one of keys */
    int64_t team;
    int64_t at; /* backward: the number of the first block that the team now computes */
    atomic_llong taken;
} rest;

static int64_t blocks_of(const ls_heads *a) { return (a->T + QUERY_BLOCK - 1) / QUERY_BLOCK; }

static rest rest_of(const ls_heads *a, int64_t n, void (*pack)(const packed *, const head *)) {
    int64_t left = n % a->compute->nthreads;
    return (rest){.all = a,
                  .pack = pack,
                  .first = n - left,
                  .n = left,
                  .blocks = shared_by(a) * blocks_of(a),
                  .team = left ? a->compute->nthreads / left : 0};
}

static void rest_pack(void *arg, int thread, int nthreads) {
    const rest *r = arg;
    (void)nthreads;
    head h = head_at(r->all, r->first + thread, 0);
    packed k = room_of(thread, r->all);
    r->pack(&k, &h);
}

/* Head of keys `kv` of the rest, as packed, with p and dp of a thread. */
static packed rest_room(const rest *r, int64_t kv, int thread) {
    packed k = room_of((int)kv, r->all), own = room_of(thread, r->all);
    k.p = own.p, k.dp = own.dp;
    return k;
}

static void rest_forward(void *arg, int thread, int nthreads) {
    rest *r = arg;
    int64_t heads = r->n * shared_by(r->all);
    (void)nthreads;
    for (int64_t i; (i = atomic_fetch_add(&r->taken, 1)) < r->n * r->blocks;) {
        head h = head_at(r->all, r->first + i % r->n, i % heads / r->n);
        packed k = rest_room(r, i % r->n, thread);
        block_forward(&k, thread, &h, (blocks_of(r->all) - 1 - i / heads) * QUERY_BLOCK);
    }
}

/* The block that member i of the team of a head of keys computes; false: none is left. */
static bool team_block(const rest *r, int64_t kv, int64_t i, int thread, head *h, block *b) {
    int64_t in_head = blocks_of(r->all), at = r->at + i;
    if (at >= r->blocks) return false;
    *h = head_at(r->all, r->first + kv, at / in_head);
    *b = block_of(thread, h, at % in_head * QUERY_BLOCK);
    return true;
}

static void rest_backward(void *arg, int thread, int nthreads) {
    const rest *r = arg;
    head h;
    block b;
    (void)nthreads;
    packed k = rest_room(r, thread % r->n, thread);
    if (team_block(r, thread % r->n, thread / r->n, thread, &h, &b)) block_backward(&k, &b);
}

static void rest_add(void *arg, int thread, int nthreads) {
    const rest *r = arg;
    int64_t kv = thread % r->n, width = 0;
    head h;
    block b;
    keys of;
    (void)nthreads;
    for (int64_t i = 0; i < r->team && team_block(r, kv, i, thread, &h, &b); i++)
        if (b.width > width) width = b.width;
    ls_pool_share(width, r->all->compute->k->tile_m, thread / (int)r->n, (int)r->team, &of.first,
                  &of.end);
    for (int64_t i = 0; i < r->team && team_block(r, kv, i, thread, &h, &b); i++) {
        packed k = rest_room(r, kv, (int)(kv + i * r->n));
        add_to_keys(&k, &b, of);
    }
}

void ls_heads_forward(const ls_heads *a) {
    int64_t n = a->n * a->kv_heads;
    ls_pool *pool = a->compute->pool;
    if (a->compute->device) {
        ls_heads_device_forward(a);
        return;
    }
    rest r = rest_of(a, n, pack_forward);
    if (r.first) ls_pool_run(pool, run, &(pass){a, pack_forward, head_forward, r.first});
    if (!r.n) return;
    ls_pool_run_in(pool, (int)r.n, rest_pack, &r);
    ls_pool_run(pool, rest_forward, &r);
}

void ls_heads_backward(const ls_heads *a) {
    int64_t n = a->n * a->kv_heads;
    ls_pool *pool = a->compute->pool;
    if (a->compute->device) {
        ls_heads_device_backward(a);
        return;
    }
    rest r = rest_of(a, n, pack_backward);
    bool teams = r.team > 1;
    if (!teams) r.first = n;
    if (r.first) ls_pool_run(pool, run, &(pass){a, pack_backward, head_backward, r.first});
    if (!teams) return;
    ls_pool_run_in(pool, (int)r.n, rest_pack, &r);
    for (; r.at < r.blocks; r.at += r.team) {
        ls_pool_run_in(pool, (int)(r.n * r.team), rest_backward, &r);
        ls_pool_run_in(pool, (int)(r.n * r.team), rest_add, &r);
    }
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
