/* continued.c - see continued.h. */
#include "layers/continued.h"

#include "layers/heads_device.h"
#include "layers/kept.h"
#include "model/row_ops.h"

typedef struct job {
    const ls_heads *h;
    const ls_past *past;
} job;

/* ---- texts ---- */

static int ntexts_of(const job *j) { return j->past->texts ? j->past->ntexts : 1; }

/* Rows [first, end) of the call, and the position of the first one. */
typedef struct rows {
    int64_t first, end, n;
} rows;

static rows rows_of(const job *j, int text) {
    const ls_past_text *t = j->past->texts;
    if (!t) return (rows){0, j->h->T, j->past->n};
    int64_t end = text + 1 < j->past->ntexts ? t[text + 1].first : j->h->T;
    return (rows){t[text].first, end, t[text].n};
}

static ls_kept kept_of(const job *j, int text) {
    const ls_heads *h = j->h;
    const ls_past *past = j->past;
    ls_kept k = {.heads = h->kv_heads, .D = h->D, .bf16 = h->bf16};
    k.p = past->texts ? past->texts[text].kept + past->at : past->kept;
    k.type = past->type;
    k.page = past->texts ? past->page : ls_kept_page(h->kv_heads, h->D);
    return k;
}

/* The first key that a query of position t sees. */
static int64_t first_key(const ls_heads *h, int64_t t) {
    return h->window && h->window <= t ? t - h->window + 1 : 0;
}

/* ---- keeping ---- */

static void keep(const job *j, const ls_kept *kept, int64_t r, int64_t t, int64_t head) {
    const ls_heads *h = j->h;
    int64_t at = r * h->kv_row + head * h->D;
    ls_matrix key = {h->k, h->D, 1, h->stored}, value = {h->v, h->D, 1, h->stored};
    ls_kept_put(
        kept, h->compute->k,
        &(ls_kept_position){head, t, ls_matrix_from(key, 0, at), ls_matrix_from(value, 0, at)});
}

/* Threads split the heads of keys, since positions of a page share lines of memory. */
static void keep_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t head = 0, end = 0;
    ls_pool_share(j->h->kv_heads, 1, thread, nthreads, &head, &end);
    for (; head < end; head++)
        for (int i = 0; i < ntexts_of(j); i++) {
            ls_kept kept = kept_of(j, i);
            rows x = rows_of(j, i);
            for (int64_t r = x.first; r < x.end; r++) keep(j, &kept, r, x.n + r - x.first, head);
        }
}

/* ---- a prompt's beginning: nothing was kept before, and what is kept has the call's own bits
 * ---- */

static bool begins(const job *j, int text) {
    rows x = rows_of(j, text);
    return x.n == 0 && x.end - x.first > 1 && j->past->type == LS_KEPT_F32;
}

static void begin(const job *j, int text) {
    const ls_heads *h = j->h;
    rows x = rows_of(j, text);
    ls_heads part = *h;
    part.T = part.S = x.end - x.first;
    ls_matrix q = {h->q, h->q_row, 1, h->stored}, k = {h->k, h->kv_row, 1, h->stored};
    ls_matrix v = {h->v, h->kv_row, 1, h->stored};
    part.q = ls_matrix_from(q, x.first, 0).p;
    part.k = ls_matrix_from(k, x.first, 0).p;
    part.v = ls_matrix_from(v, x.first, 0).p;
    part.y = ls_numbers_at((ls_numbers){h->y, h->stored}, x.first * h->heads * h->D).p;
    ls_heads_forward(&part);
}

/* ---- further positions ---- */

/* One position: all threads share its heads. In scratch memory: q and y [heads, D], if they are
 * stored in bf16 | the room of the call. */
static void attend(const job *j, const ls_kept *kept, int64_t r, int64_t t) {
    const ls_heads *h = j->h;
    const ls_kernels *k = h->compute->k;
    int64_t C = h->heads * h->D;
    float *room = ls_compute_scratch(h->compute, 0);
    ls_matrix q = {h->q, h->q_row, 1, h->stored};
    ls_numbers y = {h->y, h->stored};
    float *result = ls_part_result(y, r * C, room + C);
    ls_kept_attend(kept, h->compute,
                   &(ls_kept_query){.heads = h->heads,
                                    .first = first_key(h, t),
                                    .t = t,
                                    .q = ls_part_read(k, q, r, 0, C, room),
                                    .room = room + 2 * C,
                                    .y = result});
    ls_part_store(k, y, r * C, C, result);
}

/* The heads of row r that share a head of keys, in one thread. */
static void attend_head(const job *j, const ls_kept *kept, int64_t r, int64_t t, int64_t head,
                        float *room) {
    const ls_heads *h = j->h;
    const ls_kernels *k = h->compute->k;
    int64_t C = h->heads * h->D, n = C / h->kv_heads, at = r * C + head * n;
    ls_matrix q = {h->q, h->q_row, 1, h->stored};
    ls_numbers y = {h->y, h->stored};
    float *result = ls_part_result(y, at, room + n);
    ls_kept_attend_head(kept, k, head,
                        &(ls_kept_query){.heads = h->heads,
                                         .first = first_key(h, t),
                                         .t = t,
                                         .q = ls_part_read(k, q, r, head * n, n, room),
                                         .room = room + 2 * n,
                                         .y = result});
    ls_part_store(k, y, at, n, result);
}

/* Threads take rows times heads of keys, one after the other in turn: later rows of a text take
 * longer. */
static void attend_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t heads = j->h->kv_heads, unit = 0;
    float *room = ls_compute_scratch(j->h->compute, thread);
    for (int i = 0; i < ntexts_of(j); i++) {
        ls_kept kept = kept_of(j, i);
        rows x = rows_of(j, i);
        for (int64_t r = x.first; r < x.end && !begins(j, i); r++)
            for (int64_t head = 0; head < heads; head++)
                if (unit++ % nthreads == thread)
                    attend_head(j, &kept, r, x.n + r - x.first, head, room);
    }
}

void ls_heads_continue(const ls_heads *h) {
    job j = {h, &h->call->past};
    ls_pool *pool = h->compute->pool;
    if (h->compute->device) {
        ls_heads_device_continue(h);
        return;
    }
    bool single = h->T == 1;
    ls_pool_run_sized(pool, h->T * h->kv_heads * h->D, keep_run, &j);
    for (int i = 0; i < ntexts_of(&j); i++)
        if (begins(&j, i)) begin(&j, i);
    if (single) {
        ls_kept kept = kept_of(&j, 0);
        attend(&j, &kept, 0, rows_of(&j, 0).n);
    } else {
        ls_pool_run(pool, attend_run, &j);
    }
}
