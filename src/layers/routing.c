/* routing.c - see routing.h. */
#include "layers/routing.h"

#include <math.h>
#include <string.h>

#include "base/math.h"
#include "layers/routing_device.h"

/* The floats that `first` takes, padded: the array behind it can be read four numbers at a time. */
static int64_t first_floats(int64_t experts) { return (experts + 1 + 3) / 4 * 4; }

size_t ls_routing_floats(int64_t T, int64_t experts, int64_t k) {
    return (size_t)(4 * T * k + first_floats(experts));
}

float *ls_routing_place(ls_routing *r, float *memory) {
    int64_t n = r->rows * r->k;
    r->weight = memory;
    r->expert = (int32_t *)(void *)(memory + n);
    r->slot = r->expert + n;
    r->choice = r->slot + n;
    r->first = r->choice + n;
    return memory + 4 * n + first_floats(r->experts);
}

typedef struct job {
    const ls_compute *c;
    const ls_routing *r;
    const float *logits, *scores, *dweight;
    float *dlogits;
} job;

/* ---- choosing ---- */

/* Sets expert [k] to the experts with the greatest scores, in ascending order. */
static void choose_experts(const ls_routing *r, const float *scores, int32_t *expert) {
    bool chosen[LS_EXPERTS_MOST] = {false};
    for (int64_t i = 0; i < r->k; i++) {
        int64_t best = -1;
        for (int64_t e = 0; e < r->experts; e++)
            if (!chosen[e] && (best < 0 || scores[e] > scores[best])) best = e;
        chosen[best] = true;
    }
    for (int32_t e = 0; e < (int32_t)r->experts; e++)
        if (chosen[e]) *expert++ = e;
}

/* weight [k]: of the softmax over all logits, or over the chosen ones. */
static void weigh(const ls_kernels *k, const ls_routing *r, const float *logits,
                  const int32_t *expert, float *weight) {
    float all[LS_EXPERTS_MOST];
    if (r->normalized) {
        for (int64_t i = 0; i < r->k; i++) weight[i] = logits[expert[i]];
        k->softmax(1, r->k, weight, weight);
        return;
    }
    k->softmax(1, r->experts, logits, all);
    for (int64_t i = 0; i < r->k; i++) weight[i] = all[expert[i]];
}

static void choose_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_routing *r = j->r;
    int64_t row = 0, end = 0;
    ls_pool_share(r->rows, 16, thread, nthreads, &row, &end);
    for (; row < end; row++) {
        const float *logits = j->logits + row * r->experts;
        choose_experts(r, j->scores + row * r->experts, r->expert + row * r->k);
        weigh(j->c->k, r, logits, r->expert + row * r->k, r->weight + row * r->k);
    }
}

static bool is_taken(const ls_routing *r, int64_t choice) {
    return r->capacity == 0 || r->slot[choice] >= 0;
}

int64_t ls_routing_capacity(float factor, int64_t T, int64_t experts, int64_t k) {
    double places = 1e6,
           written = floor((double)factor * places + 0.5) / places; /* 1.1, not 1.1F */
    double most = ceil(ls_math_times(written * (double)(T * k), 1 / (double)experts));
    if (factor <= 0) return 0;
    return most < 1 ? 1 : most < (double)T ? (int64_t)most : T;
}

/* Marks what each expert drops of a sample. */
static void drop(ls_routing *r) {
    int64_t n = r->sample * r->k;
    for (int64_t sample = 0; sample < r->rows * r->k; sample += n) {
        int64_t taken[LS_EXPERTS_MOST] = {0};
        for (int64_t i = sample; i < sample + n; i++)
            r->slot[i] = taken[r->expert[i]]++ < r->capacity ? 0 : -1;
    }
}

/* By expert; choices of one expert stay in the order of their rows. */
static void sort(ls_routing *r) {
    int32_t next[LS_EXPERTS_MOST], sum = 0;
    memset(next, 0, sizeof next);
    for (int64_t i = 0; i < r->rows * r->k; i++)
        if (is_taken(r, i)) next[r->expert[i]]++;
    for (int64_t e = 0; e < r->experts; e++) {
        int32_t count = next[e];
        r->first[e] = next[e] = sum;
        sum += count;
    }
    r->first[r->experts] = sum;
    for (int64_t i = 0; i < r->rows * r->k; i++) {
        if (!is_taken(r, i)) continue;
        r->slot[i] = next[r->expert[i]]++;
        r->choice[r->slot[i]] = (int32_t)i;
    }
}

void ls_routing_choose(const ls_compute *c, const float *logits, const float *scores,
                       ls_routing *r) {
    if (c->device) {
        ls_routing_device_choose(c, logits, scores ? scores : logits, r);
        return;
    }
    job j = {.c = c, .r = r, .logits = logits, .scores = scores ? scores : logits};
    ls_pool_run_sized(c->pool, r->rows * r->experts * (r->k + 1), choose_run, &j);
    if (r->capacity) drop(r);
    sort(r);
}

/* ---- rows that are needed elsewhere ---- */

bool ls_routing_has_chosen(const ls_chosen_rows *c, const float *scores) {
    const ls_routing r = {.experts = c->experts, .k = c->k};
    int32_t expert[LS_EXPERTS_MOST];
    choose_experts(&r, scores, expert);
    for (int64_t i = 0; i < c->k; i++)
        if (expert[i] >= c->first && expert[i] < c->end) return true;
    return false;
}

double ls_routing_part(const ls_chosen_rows *c) {
    double none = 1, others = (double)(c->experts - (c->end - c->first));
    for (int64_t i = 0; i < c->k; i++)
        none *= others > (double)i ? (others - (double)i) / (double)(c->experts - i) : 0;
    return 1 - none;
}

/* ---- gradients ---- */

/* The gradient of the softmax over the chosen logits: dlogit = w (dw - sum(w dw)). Other logits
 * have no gradient. */
static void back_normalized(const ls_routing *r, int64_t row, const float *dweight, float *d) {
    const float *w = r->weight + row * r->k;
    const int32_t *expert = r->expert + row * r->k;
    float sum = 0;
    for (int64_t i = 0; i < r->k; i++) sum += w[i] * dweight[i];
    for (int64_t i = 0; i < r->k; i++) d[expert[i]] = w[i] * (dweight[i] - sum);
}

static void back_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_routing *r = j->r;
    float p[LS_EXPERTS_MOST];
    int64_t row = 0, end = 0;
    ls_pool_share(r->rows, 16, thread, nthreads, &row, &end);
    for (; row < end; row++) {
        const float *dweight = j->dweight + row * r->k;
        float *d = j->dlogits + row * r->experts;
        memset(d, 0, (size_t)r->experts * sizeof *d);
        if (r->normalized) {
            back_normalized(r, row, dweight, d);
            continue;
        }
        j->c->k->softmax(1, r->experts, j->logits + row * r->experts, p);
        for (int64_t i = 0; i < r->k; i++) d[r->expert[row * r->k + i]] = dweight[i];
        j->c->k->softmax_causal_dx(1, r->experts, 1, p, d);
    }
}

void ls_routing_back(const ls_compute *c, const float *logits, const float *dweight,
                     const ls_routing *r, float *dlogits) {
    if (c->device) {
        ls_routing_device_back(c, logits, dweight, r, dlogits);
        return;
    }
    ls_pool_run_sized(
        c->pool, r->rows * r->experts, back_run,
        &(job){.c = c, .r = r, .logits = logits, .dweight = dweight, .dlogits = dlogits});
}
