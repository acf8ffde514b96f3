/* decode_gpt.c - see decode_gpt.h.
 *
 * Memory: one position's buffers | for each block keys, then values | ls_infer's.
 *
 * Threads split the columns of a token's products, and its heads. Decoding rounds to 16 bits at the
 * same places as training: each layer's output, and in bf16 the operands of products.
 */
#include "infer/decode_gpt.h"

#include "base/round_up.h"
#include "layers/gpt.h"
#include "layers/kept.h"
#include "tensor/dtype.h"
#include "tensor/gemv.h"

/* Places in a layer's list of parameters. Attention and MLP have the same form: a norm, a map to
 * a larger width, a map back. */
enum { GAMMA, BETA, W_IN, B_IN, W_OUT, B_OUT };
enum { WTE, WPE };
enum { HEAD_WTE = 2 };

/* Floats: one position's buffers, and where the cache and its parts lie. */
typedef struct places {
    size_t x, h, gamma, beta, wide, att, room, logits, cache; /* wide: qkv [3C] or GELU [4C] */
    size_t block;                                             /* size of a block's cache */
    size_t end;
} places;

/* Layers are in order: embedding; attention and MLP of each block; head. */
typedef struct sizes {
    int64_t T, C, V, heads, blocks;
} sizes;

static sizes sizes_of(const ls_model *m) {
    const ls_layer *embed = &m->layers[0], *attention = &m->layers[1];
    return (sizes){embed->T, embed->C, embed->V, ls_layer_facts(attention).heads,
                   (m->nlayers - 2) / 2};
}

static size_t whole(int64_t n) { return ls_round_up((size_t)n, 16); }

static places places_of(const ls_model *m) {
    sizes s = sizes_of(m);
    int64_t C = s.C;
    size_t c = whole(C);
    places p = {.x = 0, .h = c, .gamma = 2 * c, .beta = 3 * c, .wide = 4 * c};
    p.att = p.wide + whole(4 * C);
    p.room = p.att + c;
    p.logits = p.room + 2 * c;
    p.cache = p.logits + whole(s.V);
    p.block = ls_kept_floats(s.T, s.heads, C / s.heads);
    p.end = p.cache + (size_t)s.blocks * p.block;
    return p;
}

size_t ls_decode_gpt_nbytes(const ls_model *m, ls_dtype dtype) {
    return places_of(m).end * sizeof(float) + ls_infer_nbytes(m, dtype, 1);
}

size_t ls_decode_gpt_kept(const ls_model *m) {
    sizes s = sizes_of(m);
    return (size_t)(2 * s.blocks * s.C);
}

/* ---- the cache ---- */

/* The part of the cache that belongs to a block. */
static ls_kept cache_of(const ls_decode *d, int64_t block) {
    sizes s = sizes_of(d->model);
    places p = places_of(d->model);
    return (ls_kept){(float *)d->memory + p.cache + (size_t)block * p.block,
                     s.heads,
                     s.C / s.heads,
                     d->dtype == LS_BF16,
                     ls_kept_page(s.heads, s.C / s.heads),
                     LS_KEPT_F32};
}

static bool is_attention(int layer) { return layer % 2 == 1; }
static int64_t block_of(int layer) { return (layer - 1) / 2; }

typedef struct store_job {
    const ls_decode *d;
    int64_t block, T;
    ls_gpt_seen seen;
} store_job;

static void store_run(void *arg, int thread, int nthreads) {
    const store_job *j = arg;
    int64_t head = 0, end = 0;
    ls_kept cache = cache_of(j->d, j->block);
    ls_pool_share(cache.heads, 1, thread, nthreads, &head, &end);
    for (; head < end; head++)
        for (int64_t t = 0; t < j->T; t++)
            ls_kept_put(&cache, j->d->compute->k,
                        &(ls_kept_position){head, t, ls_matrix_from(j->seen.k, t, head * cache.D),
                                            ls_matrix_from(j->seen.v, t, head * cache.D)});
}

static void store(void *arg, int layer, int64_t T, const void *saved) {
    const ls_decode *d = arg;
    if (!is_attention(layer)) return;
    bool bf16 = d->dtype == LS_BF16;
    store_job j = {d, block_of(layer), T,
                   ls_gpt_attention_saw(&d->model->layers[layer], T, bf16, saved)};
    ls_pool_run(d->compute->pool, store_run, &j);
}

const float *ls_decode_gpt_prompt(ls_decode *d, const uint32_t *tokens, int64_t T) {
    float *rest = (float *)d->memory + places_of(d->model).end;
    ls_infer f = {.model = d->model,
                  .compute = d->compute,
                  .dtype = d->dtype,
                  .params = d->params,
                  .memory = rest,
                  .n = 1,
                  .frozen = d->frozen};
    return ls_infer_next_shown(&f, tokens, T, store, d);
}

/* ---- one position ---- */

/* Shared by the steps of one token. */
typedef struct step {
    const ls_decode *d;
    const ls_kernels *k;
    int64_t C, t; /* t: this position */
    float *x, *h, *wide, *att, *logits;
    places at;
} step;

static const void *param(const step *s, const ls_layer *l, int i) {
    if (l->link.frozen[i]) return s->d->frozen[l->params[i]].data;
    return ls_flat_at(s->d->dtype, s->d->params, l->link.offsets[i]);
}

/* A table, whose frozen values may have any type. */
static ls_stored table(const step *s, const ls_layer *l, int i) {
    if (l->link.frozen[i]) return s->d->frozen[l->params[i]];
    return (ls_stored){.data = param(s, l, i), .type = ls_block_of_dtype(s->d->dtype)};
}

/* n parameters in f32: in place, or widened into room. */
static const float *widened(const step *s, const void *p, int64_t n, float *room) {
    if (!ls_dtype_is_half(s->d->dtype)) return p;
    s->k->widen(s->d->dtype, (size_t)n, p, room);
    return room;
}

/* Rounds a layer's output as training rounds what it saves. */
static void round_x(const step *s) {
    ls_dtype type = s->d->dtype;
    if (!ls_dtype_is_half(type)) return;
    void *half = (float *)s->d->memory + s->at.room;
    s->k->narrow(type, (size_t)s->C, s->x, half);
    s->k->widen(type, (size_t)s->C, half, s->x);
}

static void embed(const step *s, uint32_t token) {
    const ls_layer *l = &s->d->model->layers[0];
    float *word = (float *)s->d->memory + s->at.room, *place = word + whole(s->C);
    ls_stored_read(s->k, table(s, l, WTE), token * s->C, s->C, word);
    ls_stored_read(s->k, table(s, l, WPE), s->t * s->C, s->C, place);
    s->k->add(s->C, word, place, s->x);
    round_x(s);
}

static void norm(const step *s, const ls_layer *l) {
    float *memory = s->d->memory, mean, rstd;
    const float *gamma = widened(s, param(s, l, GAMMA), s->C, memory + s->at.gamma);
    const float *beta = widened(s, param(s, l, BETA), s->C, memory + s->at.beta);
    s->k->layernorm(1, s->C, s->x, gamma, beta, s->h, &mean, &rstd);
}

/* A product, and the operation that follows it for each column. */
typedef struct linear_job {
    const step *s;
    ls_gemv_job g;
    float *x;                            /* that of g, which is rounded in place */
    enum { PLAIN, GELU, RESIDUAL } then; /* RESIDUAL: x += y */
} linear_job;

static void linear_run(void *arg, int thread, int nthreads) {
    const linear_job *j = arg;
    int64_t first = 0, end = 0;
    ls_gemv_share(&j->g, thread, nthreads, &first, &end);
    ls_gemv_columns(j->s->k, &j->g, first, end);
    float *y = j->g.y + first, *x = j->s->x + first;
    if (j->then == GELU) j->s->k->gelu(end - first, y, y);
    if (j->then == RESIDUAL) j->s->k->add(end - first, x, y, x);
}

/* y [N] = x [K] . parameter w + bias, the parameter after w. */
static linear_job linear_of(const step *s, const ls_layer *l, int w, float *x, float *y) {
    int64_t N = (int64_t)l->counts[w + 1], K = (int64_t)l->counts[w] / N;
    return (linear_job){.s = s,
                        .x = x,
                        .g = {.type = s->d->dtype,
                              .K = K,
                              .N = N,
                              .x = x,
                              .w = param(s, l, w),
                              .bias = param(s, l, w + 1),
                              .y = y,
                              .bf16 = s->d->dtype == LS_BF16}};
}

static void linear(linear_job j) {
    if (j.g.bf16) j.s->k->round_bf16(j.g.K, j.x, j.x);
    ls_pool_run(j.s->d->compute->pool, linear_run, &j);
}

/* Writes this position's keys and values into the cache. */
static void keep(const step *s, const ls_kept *cache) {
    const float *k = s->wide + s->C, *v = k + s->C;
    for (int64_t head = 0; head < cache->heads; head++)
        ls_kept_put(cache, s->k,
                    &(ls_kept_position){head, s->t, ls_matrix_of(k + head * cache->D, cache->D),
                                        ls_matrix_of(v + head * cache->D, cache->D)});
}

static void attention(const step *s, const ls_layer *l, int64_t block) {
    norm(s, l);
    linear(linear_of(s, l, W_IN, s->h, s->wide));
    ls_kept cache = cache_of(s->d, block);
    keep(s, &cache);
    ls_kept_attend(&cache, s->d->compute,
                   &(ls_kept_query){.heads = cache.heads,
                                    .t = s->t,
                                    .q = s->wide,
                                    .room = ls_compute_scratch(s->d->compute, 0),
                                    .y = s->att});
    linear_job out = linear_of(s, l, W_OUT, s->att, s->h);
    out.then = RESIDUAL;
    linear(out);
    round_x(s);
}

static void mlp(const step *s, const ls_layer *l) {
    norm(s, l);
    linear_job in = linear_of(s, l, W_IN, s->h, s->wide);
    linear_job out = linear_of(s, l, W_OUT, s->wide, s->h);
    in.then = GELU;
    out.then = RESIDUAL;
    linear(in);
    linear(out);
    round_x(s);
}

const float *ls_decode_gpt_next(ls_decode *d, uint32_t token) {
    const ls_model *m = d->model;
    float *memory = d->memory;
    places p = places_of(m);
    step s = {.d = d,
              .k = d->compute->k,
              .C = sizes_of(m).C,
              .t = d->npositions,
              .x = memory + p.x,
              .h = memory + p.h,
              .wide = memory + p.wide,
              .att = memory + p.att,
              .logits = memory + p.logits,
              .at = p};
    embed(&s, token);
    for (int i = 1; i < m->nlayers - 1; i++) {
        if (is_attention(i))
            attention(&s, &m->layers[i], block_of(i));
        else
            mlp(&s, &m->layers[i]);
    }
    const ls_layer *head = &m->layers[m->nlayers - 1];
    norm(&s, head);
    ls_gemv_table(d->compute, &(ls_gemv_table_job){.w = table(&s, head, HEAD_WTE),
                                                   .V = head->V,
                                                   .C = s.C,
                                                   .x = s.h,
                                                   .y = s.logits,
                                                   .bf16 = d->dtype == LS_BF16});
    return s.logits;
}
