/* kept.c - see kept.h. */
#include "layers/kept.h"

#include <math.h>
#include <string.h>

enum { PAGE = LS_KEPT_PAGE, COLUMNS = 32 }; /* COLUMNS: of results, that a thread takes at a time */

static int64_t pages_of(int64_t T) { return (T + PAGE - 1) / PAGE; }

size_t ls_kept_floats(int64_t T, int64_t heads, int64_t D) {
    return (size_t)(pages_of(T) * heads * 2 * PAGE * D);
}

/* Scores, then rounded queries. */
size_t ls_kept_room(int64_t heads, int64_t T, int64_t D) {
    return (size_t)(heads * (pages_of(T) * PAGE + D));
}

static bool in_bf16(const ls_kept *k) { return k->bf16 && k->type == LS_KEPT_F32; }

/* A head's part of the page of position t. */
static float *part_of(const ls_kept *k, int64_t head, int64_t t) {
    return k->p + t / PAGE * (int64_t)k->page + head * 2 * ls_kept_half(k->type, k->D);
}

/* A row of it as products in bf16 or f32 read it: in place, or in room. */
static const float *operand(const ls_kept *k, const ls_kernels *kernels, ls_matrix x, float *room) {
    if (x.bf16) kernels->widen(LS_BF16, (size_t)k->D, x.p, room);
    if (k->bf16) kernels->round_bf16(k->D, x.bf16 ? room : x.p, room);
    return k->bf16 || x.bf16 ? room : x.p;
}

/* ---- in fewer bits ---- */

/* Where a vector is stored: its elements from one to the next, and its factors. */
typedef struct slot {
    void *elements;
    float *factors;
    int64_t step, factors_step;
} slot;

/* n elements of the vector, from number `first` on, which begins a block. */
static void put_q8(const float *x, int64_t first, int64_t n, slot to) {
    int8_t *q = to.elements;
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        if (fabsf(x[i]) > most) most = fabsf(x[i]);
    float inverse = most > 0 && isfinite(most) ? 127 / most : 0;
    to.factors[first / LS_KEPT_BLOCK * to.factors_step] = most / 127;
    for (int64_t i = 0; i < n; i++) {
        float v = x[i] * inverse;
        int whole = v > 127 ? 127 : v > -127 ? (int)(v + (v < 0 ? -0.5f : 0.5f)) : -127;
        q[(first + i) * to.step] = (int8_t)whole;
    }
}

static void put_rounded(const ls_kept *k, const ls_kernels *kernels, ls_matrix from, slot to) {
    float x[LS_KEPT_BLOCK];
    uint16_t halves[LS_KEPT_BLOCK], *elements = to.elements;
    for (int64_t i = 0; i < k->D; i += LS_KEPT_BLOCK) {
        int64_t n = k->D - i < LS_KEPT_BLOCK ? k->D - i : LS_KEPT_BLOCK;
        ls_matrix part = ls_matrix_from(from, 0, i);
        if (part.bf16)
            kernels->widen(LS_BF16, (size_t)n, part.p, x);
        else
            memcpy(x, part.p, (size_t)n * sizeof *x);
        if (k->bf16) kernels->round_bf16(n, x, x);
        if (k->type == LS_KEPT_Q8) {
            put_q8(x, i, n, to);
            continue;
        }
        kernels->narrow(LS_F16, (size_t)n, x, halves);
        for (int64_t a = 0; a < n; a++) elements[(i + a) * to.step] = halves[a];
    }
}

static void put_in_fewer_bits(const ls_kept *k, const ls_kernels *kernels,
                              const ls_kept_position *p) {
    float *keys = part_of(k, p->head, p->t), *values = keys + ls_kept_half(k->type, k->D);
    int64_t t = p->t % PAGE, bytes = k->type == LS_KEPT_Q8 ? 1 : 2, blocks = ls_kept_blocks(k->D);
    put_rounded(k, kernels, p->key,
                (slot){(char *)keys + t * bytes, keys + PAGE * k->D / 4 + t, PAGE, PAGE});
    put_rounded(
        k, kernels, p->value,
        (slot){(char *)values + t * k->D * bytes, values + PAGE * k->D / 4 + t * blocks, 1, 1});
}

void ls_kept_put(const ls_kept *k, const ls_kernels *kernels, const ls_kept_position *p) {
    if (k->type != LS_KEPT_F32) {
        put_in_fewer_bits(k, kernels, p);
        return;
    }
    float *keys = part_of(k, p->head, p->t);
    float *value = keys + PAGE * k->D + p->t % PAGE * k->D;
    const float *key = operand(k, kernels, p->key, value);
    for (int64_t i = 0; i < k->D; i++) keys[i * PAGE + p->t % PAGE] = key[i];
    const float *from = operand(k, kernels, p->value, value);
    if (from != value) memcpy(value, from, (size_t)k->D * sizeof *value);
}

/* ---- attention ---- */

typedef struct attend_job {
    const ls_kept *kept;
    const ls_kernels *k;
    const ls_kept_query *a;
    const float *q;        /* those of the query, or rounded */
    int64_t shared, s_row; /* heads of queries that share one of keys; floats of a row of scores */
} attend_job;

/* The queries that share a head of keys and values. */
static ls_gemv_kept_job shared_of(const attend_job *j, int64_t head) {
    int64_t D = j->kept->D, query = head * j->shared;
    return (ls_gemv_kept_job){.queries = j->shared,
                              .D = D,
                              .type = j->kept->type,
                              .kept = part_of(j->kept, head, 0),
                              .page = (int64_t)j->kept->page,
                              .q = j->q + query * D,
                              .s = j->a->room + query * j->s_row,
                              .s_row = j->s_row,
                              .y = j->a->y + query * D};
}

/* Threads split heads times pages. */
static void scores_run(void *arg, int thread, int nthreads) {
    const attend_job *j = arg;
    int64_t seen = j->a->t + 1, pages = pages_of(seen), i = 0, end = 0;
    ls_pool_share(j->kept->heads * pages, 1, thread, nthreads, &i, &end);
    while (i < end) {
        int64_t page = i % pages, most = pages - page, n = end - i < most ? end - i : most;
        int64_t last = (page + n) * PAGE;
        ls_gemv_kept_job g = shared_of(j, i / pages);
        (in_bf16(j->kept) ? j->k->kept_scores_bf16 : j->k->kept_scores)(&g, page * PAGE,
                                                                        last < seen ? last : seen);
        i += n;
    }
}

/* A score that does not count is set as ls_heads_forward() sets it, before and after the
 * softmax. */
static void weigh(const attend_job *j, float *s) {
    const ls_kept_query *a = j->a;
    float stat[2], scale = 1.0f / sqrtf((float)j->kept->D);
    for (int64_t i = 0; i < a->first; i++) s[i] = -INFINITY;
    j->k->softmax_causal(1, a->t + 1, a->t, scale, s, stat);
    for (int64_t i = 0; i < a->first; i++) s[i] = 0;
    if (in_bf16(j->kept)) j->k->round_bf16(a->t + 1, s, s);
}

static void weights_run(void *arg, int thread, int nthreads) {
    const attend_job *j = arg;
    int64_t head = 0, end = 0;
    ls_pool_share(j->a->heads, 1, thread, nthreads, &head, &end);
    for (; head < end; head++) weigh(j, j->a->room + head * j->s_row);
}

/* Threads split heads times columns. */
static void mix_run(void *arg, int thread, int nthreads) {
    const attend_job *j = arg;
    int64_t D = j->kept->D, parts = (D + COLUMNS - 1) / COLUMNS, i = 0, end = 0;
    ls_pool_share(j->kept->heads * parts, 1, thread, nthreads, &i, &end);
    while (i < end) {
        int64_t part = i % parts, most = parts - part, n = end - i < most ? end - i : most;
        int64_t last = (part + n) * COLUMNS;
        ls_gemv_kept_job g = shared_of(j, i / parts);
        (in_bf16(j->kept) ? j->k->kept_mix_bf16 : j->k->kept_mix)(&g, j->a->t + 1, part * COLUMNS,
                                                                  last < D ? last : D);
        i += n;
    }
}

/* The rounded queries are behind the scores. */
static const float *queries_of(const attend_job *j, int64_t heads) {
    const ls_kept_query *a = j->a;
    if (!j->kept->bf16) return a->q;
    float *rounded = a->room + heads * j->s_row;
    j->k->round_bf16(heads * j->kept->D, a->q, rounded);
    return rounded;
}

void ls_kept_attend_head(const ls_kept *kept, const ls_kernels *k, int64_t head,
                         const ls_kept_query *a) {
    attend_job j = {kept, k, a, a->q, a->heads / kept->heads, pages_of(a->t + 1) * PAGE};
    j.q = queries_of(&j, j.shared);
    ls_gemv_kept_job g = {.queries = j.shared,
                          .D = kept->D,
                          .type = kept->type,
                          .kept = part_of(kept, head, 0),
                          .page = (int64_t)kept->page,
                          .q = j.q,
                          .s = a->room,
                          .s_row = j.s_row,
                          .y = a->y};
    (in_bf16(kept) ? k->kept_scores_bf16 : k->kept_scores)(&g, 0, a->t + 1);
    for (int64_t i = 0; i < j.shared; i++) weigh(&j, a->room + i * j.s_row);
    (in_bf16(kept) ? k->kept_mix_bf16 : k->kept_mix)(&g, a->t + 1, 0, kept->D);
}

void ls_kept_attend(const ls_kept *kept, const ls_compute *c, const ls_kept_query *a) {
    attend_job j = {kept, c->k, a, a->q, a->heads / kept->heads, pages_of(a->t + 1) * PAGE};
    j.q = queries_of(&j, a->heads);
    ls_pool_run(c->pool, scores_run, &j);
    ls_pool_run_sized(c->pool, a->heads * (a->t + 1), weights_run, &j);
    ls_pool_run(c->pool, mix_run, &j);
}
