/* store.c - see store.h.
 *
 *     head | carried | workers [most] | kept blocks [most][threads]
 *          | for each area: steps, params, state | for each worker: gradients | for each worker: parts and sums
 *          | claims [V] | places [V]: gradients that are computed twice, and parts
 *          | for each worker: sums [buckets][2]
 *
 * Each part begins a page. There is room for any number of workers up to `most`; what none of them
 * touches takes no memory.
 */
#include "exec/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/plural.h"
#include "coll/algo/tree.h"
#include "exec/update.h"
#include "plan/memory.h"

/* Notes take turns: the one that counts is never being written. */
typedef struct record {
    _Alignas(128) atomic_llong steps; /* of the latest note */
    ls_store_note notes[2];           /* [steps % 2] */
    atomic_int area, is_void;
    atomic_llong computed; /* 1 + the step of which all its gradients are there */
    atomic_llong given_up; /* 1 + the step that is to be done again */
} record;

/* Of a virtual worker, in a step: 2 step + 1 where a second one computes its gradient, + 2 where it
 * is there. */
typedef struct claim {
    atomic_llong mark;
    atomic_int place;
} claim;

enum { PLACES = 1 << 16 };

typedef struct head {
    atomic_llong steps; /* of all areas, in rest; -1: no state yet */
    ls_scaler scaler;
    atomic_int finding;   /* ls_store_finding */
    atomic_llong nbacked; /* gradients that a second worker had before the first */
    atomic_llong places;  /* step * PLACES + how many are taken in it */
} head;

struct ls_store {
    int most, threads, V, nbuckets;
    size_t nblocks, backup_nbytes;
    bool has_masters;
    size_t nfloats, steps_nbytes, params_nbytes, area_nbytes, grads_nbytes, sums_nbytes;
    unsigned char *memory;
    size_t nbytes;
    head *head;
    record *workers;       /* [most] */
    ls_journal_kept *kept; /* [most][threads] */
    unsigned char *carried, *areas, *grads, *sums, *backups;
    claim *claims;     /* [V] */
    atomic_uint *made; /* [most][nbuckets][2] of buckets' sums: 2 (step + 1) while one is made, + 1
                          when it is there */
};

static size_t pages(size_t nbytes) { return (nbytes + 4095) / 4096 * 4096; }

/* Sums of gradients that a worker needs at most, whatever its share: a cover, and the sum at hand.
 * What is not used takes no memory. */
static size_t most_sums(const ls_plan *p) {
    size_t log2 = 0;
    while ((1 << log2) < p->c.V) log2++;
    return 2 * log2 + 2;
}

ls_status ls_store_make(const ls_plan *p, int most, int threads, size_t carried_nbytes,
                        ls_store **s_p, ls_error *e) {
    ls_store *s = LS_NEW(ls_store);
    size_t n = (size_t)most;
    s->most = most;
    s->threads = threads;
    s->nfloats = p->c.model->nfloats;
    s->nblocks = s->nfloats / LS_BLOCK;
    s->has_masters = ls_plan_has_masters(p);
    s->steps_nbytes = pages(s->nblocks * sizeof(atomic_uint));
    s->params_nbytes = pages(ls_plan_params_nbytes(p));
    s->area_nbytes = s->steps_nbytes + s->params_nbytes + pages(ls_plan_state_nbytes(p));
    /* 17 pages more, as between the arenas of the commons: workers' gradients are read in step. */
    s->grads_nbytes = pages(most_sums(p) * ls_plan_slot_nbytes(p)) + 17 * 4096;
    s->sums_nbytes = pages(2 * ls_plan_scalars_nbytes(p));
    size_t workers_at = pages(sizeof(head)) + pages(carried_nbytes),
           kept_at = workers_at + pages(n * sizeof(record));
    size_t areas_at = kept_at + pages(n * (size_t)threads * sizeof(ls_journal_kept));
    size_t grads_at = areas_at + n * s->area_nbytes, sums_at = grads_at + n * s->grads_nbytes;
    size_t claims_at = sums_at + n * s->sums_nbytes;
    size_t backups_at = claims_at + pages((size_t)p->c.V * sizeof(claim));
    s->V = p->c.V;
    s->backup_nbytes = pages(ls_plan_slot_nbytes(p)) + s->sums_nbytes;
    size_t made_at = backups_at + (size_t)p->c.V * s->backup_nbytes;
    s->nbuckets = p->nbuckets;
    s->nbytes = made_at + pages(n * (size_t)p->nbuckets * 2 * sizeof(atomic_uint));
    s->memory = mmap(NULL, s->nbytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->memory == MAP_FAILED) {
        ls_fail(e, LS_ENOMEM, "no memory for the state of %d worker%s, %.1f MB: %s", most,
                ls_plural(most), (double)s->nbytes / 1e6, strerror(errno));
        free(s);
        return LS_ENOMEM;
    }
    s->head = (head *)(void *)s->memory;
    s->carried = s->memory + pages(sizeof(head));
    s->workers = (record *)(void *)(s->memory + workers_at);
    s->kept = (ls_journal_kept *)(void *)(s->memory + kept_at);
    s->areas = s->memory + areas_at;
    s->grads = s->memory + grads_at;
    s->sums = s->memory + sums_at;
    s->claims = (claim *)(void *)(s->memory + claims_at);
    s->backups = s->memory + backups_at;
    s->made = (atomic_uint *)(void *)(s->memory + made_at);
    atomic_store(&s->head->steps, -1);
    *s_p = s;
    return LS_OK;
}

void ls_store_free(ls_store *s) {
    if (!s) return;
    munmap(s->memory, s->nbytes);
    free(s);
}

void *ls_store_memory(ls_store *s, size_t *nbytes_p) {
    *nbytes_p = s->nbytes;
    return s->memory;
}

void *ls_store_carried(const ls_store *s) { return s->carried; }

/* ---- where things lie ---- */

static unsigned char *area_at(const ls_store *s, int area) {
    return s->areas + (size_t)area * s->area_nbytes;
}

static atomic_uint *steps_of(const ls_store *s, int area) {
    return (atomic_uint *)(void *)area_at(s, area);
}

void *ls_store_params(ls_store *s, int area) { return area_at(s, area) + s->steps_nbytes; }

float *ls_store_state(ls_store *s, int area) {
    return (float *)(void *)(area_at(s, area) + s->steps_nbytes + s->params_nbytes);
}

static ls_journal_state state_of(ls_store *s, int area) {
    float *state = ls_store_state(s, area);
    float *moments = s->has_masters ? state + s->nfloats : state;
    return (ls_journal_state){s->has_masters ? state : ls_store_params(s, area), moments,
                              moments + s->nfloats};
}

void *ls_store_grads(ls_store *s, int worker) {
    return s->grads + (size_t)worker * s->grads_nbytes;
}

double *ls_store_sums(ls_store *s, int worker) {
    return (double *)(void *)(s->sums + (size_t)worker * s->sums_nbytes);
}

void ls_store_place(ls_store *s, int worker, int area) {
    atomic_store(&s->workers[worker].area, area);
}

ls_journal ls_store_journal(ls_store *s, int worker) {
    int area = atomic_load(&s->workers[worker].area);
    return (ls_journal){.steps = steps_of(s, area),
                        .kept = s->kept + (size_t)worker * (size_t)s->threads,
                        .nthreads = s->threads};
}

/* ---- steps ---- */

static void mark_owned(ls_store *s, const ls_plan *p, int w, uint32_t mark) {
    ls_journal j = ls_store_journal(s, w);
    for (int k = 0; k < p->nbuckets; k++) {
        ls_bucket b = ls_plan_owned(p, k, w);
        ls_journal_set(&j, b.first, b.end, mark);
    }
}

void ls_store_fill(ls_store *s, const ls_plan *p, int w, int64_t steps) {
    mark_owned(s, p, w, ls_store_mark(steps));
}

void ls_store_void(ls_store *s, int w) { atomic_store(&s->workers[w].is_void, 1); }

void ls_store_begin(ls_store *s, int64_t steps, const ls_scaler *scaler) {
    s->head->scaler = *scaler;
    atomic_store(&s->head->steps, steps);
}

void ls_store_decide(ls_store *s, int worker, const ls_store_note *note) {
    record *w = &s->workers[worker];
    w->notes[note->steps % 2] = *note;
    atomic_store(&w->steps, note->steps);
}

int64_t ls_store_steps(const ls_store *s) { return atomic_load(&s->head->steps); }
ls_scaler ls_store_scaler(const ls_store *s) { return s->head->scaler; }

static const ls_store_note *newest(const ls_store *s) {
    const ls_store_note *best = NULL;
    for (int i = 0; i < s->most; i++) {
        int64_t steps = atomic_load(&s->workers[i].steps);
        if (steps > 0 && (!best || steps > best->steps)) best = &s->workers[i].notes[steps % 2];
    }
    return best;
}

bool ls_store_newest(const ls_store *s, ls_store_note *note_p) {
    const ls_store_note *n = newest(s);
    if (!n || n->steps <= ls_store_steps(s)) return false;
    *note_p = *n;
    return true;
}

bool ls_store_latest(const ls_store *s, ls_store_note *note_p) {
    const ls_store_note *n = newest(s);
    if (!n || n->steps != ls_store_steps(s)) return false;
    *note_p = *n;
    return true;
}

void ls_store_set_finding(ls_store *s, ls_store_finding f) {
    atomic_store(&s->head->finding, (int)f);
}

ls_store_finding ls_store_get_finding(const ls_store *s) {
    return (ls_store_finding)atomic_load(&s->head->finding);
}

/* ---- what is computed twice ---- */

void *ls_store_backup_grads(ls_store *s, int place) {
    return s->backups + (size_t)place * s->backup_nbytes;
}

double *ls_store_backup_parts(ls_store *s, int place) {
    unsigned char *end = s->backups + ((size_t)place + 1) * s->backup_nbytes;
    return (double *)(void *)(end - s->sums_nbytes);
}

/* The next place in this step, or -1. */
static int take_place(ls_store *s, int64_t step, int most) {
    long long was = atomic_load(&s->head->places), next;
    do {
        if (was / PLACES > step) return -1; /* this step is over */
        next = was / PLACES == step ? was + 1 : step * PLACES + 1;
        if (next % PLACES > most) return -1;
    } while (!atomic_compare_exchange_weak(&s->head->places, &was, next));
    return (int)(next % PLACES) - 1;
}

/* A place that is taken for a virtual worker that another has claimed meanwhile stays empty. */
int ls_store_claim(ls_store *s, int vw, int64_t step, int most) {
    long long mark = 2 * step + 1, was = atomic_load(&s->claims[vw].mark);
    int place = was >= mark ? -1 : take_place(s, step, most < s->V ? most : s->V);
    if (place < 0 || !atomic_compare_exchange_strong(&s->claims[vw].mark, &was, mark)) return -1;
    atomic_store(&s->claims[vw].place, place);
    return place;
}

bool ls_store_is_claimed(const ls_store *s, int vw, int64_t step) {
    return atomic_load(&s->claims[vw].mark) > 2 * step;
}

void ls_store_back(ls_store *s, int vw, int64_t step) {
    atomic_store(&s->claims[vw].mark, 2 * step + 2);
    atomic_fetch_add(&s->head->nbacked, 1);
}

int64_t ls_store_nbacked(const ls_store *s) { return atomic_load(&s->head->nbacked); }

int ls_store_backed_at(const ls_store *s, int vw, int64_t step) {
    if (atomic_load(&s->claims[vw].mark) != 2 * step + 2) return -1;
    return atomic_load(&s->claims[vw].place);
}

/* ---- the step in flight ---- */

static atomic_uint *made_of(const ls_store *s, int worker) {
    return s->made + (size_t)worker * (size_t)s->nbuckets * 2;
}

static unsigned mark_of(int64_t step) { return 2 * ((unsigned)step + 1); }

void ls_store_compute(ls_store *s, int worker, int64_t step) {
    atomic_store(&s->workers[worker].computed, step + 1);
}

bool ls_store_has_computed(const ls_store *s, int worker, int64_t step) {
    return atomic_load(&s->workers[worker].computed) == step + 1;
}

ls_call_mark ls_store_sum_mark(ls_store *s, int worker, int bucket, bool replicas, int64_t step) {
    return (ls_call_mark){made_of(s, worker) + 2 * bucket + replicas, mark_of(step)};
}

void ls_store_look_at_sums(const ls_store *s, int worker, int64_t step, bool *some_p,
                           bool *half_p) {
    *some_p = false;
    *half_p = atomic_load(&s->workers[worker].given_up) == step + 1;
    for (int i = 0; i < 2 * s->nbuckets; i++) {
        unsigned mark = atomic_load(&made_of(s, worker)[i]);
        *half_p = *half_p || mark == mark_of(step);
        *some_p = *some_p || mark == mark_of(step) + 1;
    }
}

void ls_store_give_up_step(ls_store *s, int worker, int64_t step) {
    atomic_store(&s->workers[worker].given_up, step + 1);
}

void ls_store_forget_step(ls_store *s, int worker) {
    atomic_store(&s->workers[worker].computed, 0);
    for (int i = 0; i < 2 * s->nbuckets; i++) atomic_store(&made_of(s, worker)[i], 0);
    atomic_store(&s->workers[worker].given_up, 0);
}

/* ---- after a view ---- */

static void finish_update(ls_store *s, const ls_plan *p, int w, const ls_store_note *n,
                          const ls_compute *c) {
    int area = atomic_load(&s->workers[w].area);
    ls_journal journal = ls_store_journal(s, w);
    const ls_update u = {.plan = p,
                         .worker = w,
                         .grads = ls_store_grads(s, w),
                         .params = ls_store_params(s, area),
                         .state = state_of(s, area),
                         .journal = &journal,
                         .step = &n->update,
                         .skipped = n->out.skipped,
                         .steps = n->steps};
    for (int k = 0; k < p->nbuckets; k++) ls_update_bucket(&u, c, k);
}

static bool is_void(const ls_store *s, int w) { return atomic_load(&s->workers[w].is_void) != 0; }

static ls_status finish_step(ls_store *s, const ls_plan *p, int first, int n,
                             const ls_store_note *note, ls_error *e) {
    ls_compute c;
    LS_TRY(ls_compute_init(&c, 1, 0, e));
    for (int w = first; w < first + n; w++)
        if (!is_void(s, w)) finish_update(s, p, w, note, &c);
    ls_compute_close(&c);
    ls_store_decide(s, first, note); /* which another host may have told */
    s->head->scaler = note->scaler;
    atomic_store(&s->head->steps, note->steps);
    return LS_OK;
}

ls_status ls_store_mend(ls_store *s, const ls_plan *p, int first, int n, const ls_store_note *note,
                        ls_error *e) {
    if (ls_store_steps(s) < 0) return LS_OK; /* nothing to mend */
    for (int w = first; w < first + n; w++) {
        if (is_void(s, w)) mark_owned(s, p, w, 0);
        ls_journal j = ls_store_journal(s, w);
        ls_journal_state state = state_of(s, atomic_load(&s->workers[w].area));
        ls_journal_mend(&j, &state);
    }
    if (note && note->steps > ls_store_steps(s)) LS_TRY(finish_step(s, p, first, n, note, e));
    for (int w = 0; w < s->most; w++) atomic_store(&s->workers[w].is_void, 0);
    return LS_OK;
}

/* Pages that are empty take no memory, but where the system can't take them back. */
static void empty(void *memory, size_t nbytes) {
    if (madvise(memory, nbytes, MADV_REMOVE) != 0) memset(memory, 0, nbytes);
}

void ls_store_restart(ls_store *s, int64_t steps, const ls_scaler *scaler) {
    for (int i = 0; i < s->V; i++) atomic_store(&s->claims[i].mark, 0);
    atomic_store(&s->head->places, 0);
    for (int w = 0; w < s->most; w++) { /* of a step that is to be done again */
        if (atomic_load(&s->workers[w].steps) > steps) atomic_store(&s->workers[w].steps, 0);
        ls_store_forget_step(s, w);
    }
    if (steps == ls_store_steps(s)) return;
    if (steps < 0) { /* what was done will be done again, from memory that is clear */
        for (int area = 0; area < s->most; area++) empty(area_at(s, area), s->area_nbytes);
    }
    s->head->scaler = *scaler;
    atomic_store(&s->head->steps, steps);
}

/* ---- for others ---- */

/* The area where the block has that mark, or -1. */
static int area_with(const ls_store *s, size_t block, uint32_t mark) {
    for (int i = 0; i < s->most; i++)
        if (atomic_load_explicit(&steps_of(s, i)[block], memory_order_relaxed) == mark) return i;
    return -1;
}

static ls_status not_whole(size_t first, uint32_t mark, ls_error *e) {
    return ls_fail(e, LS_EINVAL,
                   "the state kept in memory is not whole: no worker has elements %zu and on after "
                   "step %u; go on from the last checkpoint with --resume",
                   first, mark - 1);
}

static void copy_block(const ls_journal_state *to, const ls_journal_state *from, size_t first) {
    memcpy(to->master + first, from->master + first, LS_BLOCK * sizeof(float));
    memcpy(to->m + first, from->m + first, LS_BLOCK * sizeof(float));
    memcpy(to->v + first, from->v + first, LS_BLOCK * sizeof(float));
}

void ls_store_adopt(ls_store *s, const ls_plan *p, int w, unsigned char *missing) {
    int area = atomic_load(&s->workers[w].area);
    uint32_t mark = ls_store_mark(ls_store_steps(s));
    ls_journal_state to = state_of(s, area);
    memset(missing, 0, s->nblocks);
    for (int k = 0; k < p->nbuckets; k++) {
        ls_bucket b = ls_plan_owned(p, k, w);
        for (size_t i = b.first / LS_BLOCK; i < b.end / LS_BLOCK; i++) {
            int from = area_with(s, i, mark);
            missing[i] = from < 0;
            if (from < 0 || atomic_load(&steps_of(s, area)[i]) == mark) continue;
            ls_journal_state other = state_of(s, from);
            copy_block(&to, &other, i * LS_BLOCK);
            atomic_store_explicit(&steps_of(s, area)[i], mark, memory_order_release);
        }
    }
}

void ls_store_list(ls_store *s, unsigned char *has) {
    uint32_t mark = ls_store_mark(ls_store_steps(s));
    for (size_t i = 0; i < s->nblocks; i++) has[i] = area_with(s, i, mark) >= 0;
}

void ls_store_read(ls_store *s, size_t block, float *to) {
    ls_journal_state from = state_of(s, area_with(s, block, ls_store_mark(ls_store_steps(s))));
    memcpy(to, from.master + block * LS_BLOCK, LS_BLOCK * sizeof(float));
    memcpy(to + LS_BLOCK, from.m + block * LS_BLOCK, LS_BLOCK * sizeof(float));
    memcpy(to + 2 * LS_BLOCK, from.v + block * LS_BLOCK, LS_BLOCK * sizeof(float));
}

void ls_store_write(ls_store *s, int w, size_t block, const float *from) {
    int area = atomic_load(&s->workers[w].area);
    ls_journal_state to = state_of(s, area);
    memcpy(to.master + block * LS_BLOCK, from, LS_BLOCK * sizeof(float));
    memcpy(to.m + block * LS_BLOCK, from + LS_BLOCK, LS_BLOCK * sizeof(float));
    memcpy(to.v + block * LS_BLOCK, from + 2 * LS_BLOCK, LS_BLOCK * sizeof(float));
    atomic_store_explicit(&steps_of(s, area)[block], ls_store_mark(ls_store_steps(s)),
                          memory_order_release);
}

/* The scale after the step is the newest note's, or where there is none yet the first. */
static ls_scaler scaler_after(const ls_store *s, int64_t steps) {
    const ls_store_note *n = newest(s);
    return n && n->steps == steps ? n->scaler : s->head->scaler;
}

static ls_status copy_range(ls_store *s, int64_t steps, size_t first, size_t end,
                            const ls_journal_state *to, ls_error *e) {
    uint32_t mark = ls_store_mark(steps);
    for (size_t block = first / LS_BLOCK; block < end / LS_BLOCK; block++) {
        int from = area_with(s, block, mark);
        if (from < 0) return not_whole(block * LS_BLOCK, mark, e);
        ls_journal_state other = state_of(s, from);
        copy_block(to, &other, block * LS_BLOCK);
    }
    return LS_OK;
}

ls_status ls_store_copy(ls_store *s, int64_t steps, float *master, float *m, float *v,
                        ls_scaler *scaler_p, ls_error *e) {
    const ls_journal_state to = {master, m, v};
    LS_TRY(copy_range(s, steps, 0, s->nfloats, &to, e));
    *scaler_p = scaler_after(s, steps);
    return LS_OK;
}

ls_status ls_store_copy_owned(ls_store *s, const ls_plan *p, int w, int64_t steps, float *master,
                              float *m, float *v, ls_scaler *scaler_p, ls_error *e) {
    const ls_journal_state to = {master, m, v};
    for (int k = 0; k < p->nbuckets; k++) {
        ls_bucket b = ls_plan_owned(p, k, w);
        LS_TRY(copy_range(s, steps, b.first, b.end, &to, e));
    }
    *scaler_p = scaler_after(s, steps);
    return LS_OK;
}
