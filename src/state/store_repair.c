/* store_repair.c - see store_repair.h. */
#include "state/store_repair.h"

#include <string.h>

#include "base/pages.h"
#include "state/store_inside.h"
#include "state/store_step.h"
#include "state/update_bucket.h"

static void finish_update(ls_store *s, const ls_share *sh, int w, const ls_store_note *n,
                          const ls_compute *c) {
    int area = atomic_load(&s->workers[w].area);
    ls_journal journal = ls_store_journal(s, w);
    ls_share changed = *sh; /* of the change's plan */
    changed.task = n->task;
    changed.sync.part_first = n->part_first;
    changed.sync.part_end = n->part_end;
    changed.sync.averages = n->averages;
    const ls_update u = {.share = &changed,
                         .worker = w,
                         .grads = ls_store_grads(s, w),
                         .params = ls_store_params(s, area),
                         .flat = ls_store_flat_of(s, area),
                         .journal = &journal,
                         .room = ls_store_room(s, w),
                         .step = n->update,
                         .islands = n->islands,
                         .skipped = n->out.skipped && n->task == LS_TASK_TRAIN,
                         .apart = n->apart,
                         .steps = n->steps};
    for (int k = 0; k < sh->nbuckets; k++) ls_update_bucket(&u, c, k);
}

static bool is_distrusted(const ls_store *s, int w) {
    return atomic_load(&s->workers[w].is_distrusted) != 0;
}

/* The latest change apart that workers with the same islands have decided; NULL: none. */
static const ls_store_note *apart_note(const ls_store *s, const ls_share *sh, int w) {
    const ls_store_note *best = NULL;
    if (!sh->islands) return NULL;
    int island = sh->workers[w].first_island;
    ls_worker_set of = sh->buckets[ls_share_bucket_in(sh, 0, island)].workers;
    for (int i = of.from; i < of.to; i++) {
        int64_t steps = atomic_load(&s->workers[i].apart);
        if (steps > 0 && (!best || steps > best->steps))
            best = &s->workers[i].aparts[steps % LS_STORE_NOTES];
    }
    return best;
}

/* A worker decides a change apart only after its part of the latest one that all decided. */
static bool is_ahead(const ls_store *s, const ls_share *sh, int w, int64_t steps) {
    const ls_store_note *n = apart_note(s, sh, w);
    return n && n->steps > steps;
}

/* Has one of these islands had the change, or a later one? */
static bool is_decided(uint64_t islands, int64_t steps, const int64_t *decided) {
    for (int i = 0; i < LS_PLAN_MAX_ISLANDS; i++)
        if (islands >> i & 1 && decided[i] >= steps) return true;
    return false;
}

/* A round that others have decided is decided for a worker that was ready for it. */
static void decide_rounds(ls_store *s, const ls_share *sh, int first, int n,
                          const int64_t *decided) {
    for (int w = first; w < first + n; w++) {
        ls_store_record *r = &s->workers[w];
        int64_t ready = atomic_load(&r->ready);
        if (ready <= ls_store_steps(s) || is_ahead(s, sh, w, ready - 1)) continue;
        if (is_decided(r->islands, ready, decided)) ls_store_decide(s, w, &r->round);
    }
}

static ls_status finish_apart(ls_store *s, const ls_share *sh, int first, int n, ls_error *e) {
    ls_compute c;
    if (!sh->islands) return LS_OK;
    LS_TRY(ls_compute_init(&c, 1, 0, e));
    for (int w = first; w < first + n; w++)
        if (is_ahead(s, sh, w, ls_store_steps(s)))
            finish_update(s, sh, w, apart_note(s, sh, w), &c);
    ls_compute_close(&c);
    return LS_OK;
}

static ls_status finish_step(ls_store *s, const ls_share *sh, int first, int n,
                             const ls_store_note *note, ls_error *e) {
    ls_compute c;
    LS_TRY(ls_compute_init(&c, 1, 0, e));
    for (int w = first; w < first + n; w++)
        if (!is_distrusted(s, w) && !is_ahead(s, sh, w, note->steps))
            finish_update(s, sh, w, note, &c);
    ls_compute_close(&c);
    ls_store_decide(s, first, note); /* another host may have sent it */
    s->head->scaler = note->scaler;
    atomic_store(&s->head->steps, note->steps);
    return LS_OK;
}

void ls_store_find_decided(const ls_store *s, const ls_share *sh, int first, int n,
                           ls_store_decided *d_p) {
    *d_p = (ls_store_decided){0};
    ls_store_unfinished_note(s, &d_p->note);
    for (int w = first; w < first + n; w++) {
        int64_t steps = atomic_load(&s->workers[w].apart);
        for (int i = sh->workers[w].first_island; i < sh->workers[w].end_island; i++)
            if (steps > d_p->islands[i - 1]) d_p->islands[i - 1] = steps;
    }
}

ls_status ls_store_repair(ls_store *s, const ls_share *sh, int first, int n,
                          const ls_store_decided *d, ls_error *e) {
    if (ls_store_steps(s) < 0) return LS_OK; /* there is no state */
    for (int w = first; w < first + n; w++) {
        if (is_distrusted(s, w)) ls_store_mark_owned(s, sh, w, 0);
        ls_journal j = ls_store_journal(s, w);
        ls_flat flat = ls_store_flat_of(s, atomic_load(&s->workers[w].area));
        ls_journal_repair(&j, &flat);
    }
    if (d->note.steps > ls_store_steps(s)) LS_TRY(finish_step(s, sh, first, n, &d->note, e));
    decide_rounds(s, sh, first, n, d->islands);
    LS_TRY(finish_apart(s, sh, first, n, e));
    for (int w = 0; w < s->most; w++) atomic_store(&s->workers[w].is_distrusted, 0);
    return LS_OK;
}

void ls_store_restart(ls_store *s, int64_t steps, const ls_scaler *scaler) {
    for (int i = 0; i < s->V; i++) atomic_store(&s->claims[i].mark, 0);
    atomic_store(&s->head->places, 0);
    for (int w = 0; w < s->most; w++) { /* a step that is repeated */
        if (atomic_load(&s->workers[w].steps) > steps) atomic_store(&s->workers[w].steps, 0);
        atomic_store(&s->workers[w].apart, 0);
        ls_store_set_ready(s, w, NULL, 0);
        ls_store_forget_step(s, w);
    }
    if (steps == ls_store_steps(s)) return;
    if (steps < 0) { /* training starts over, with memory that is clear */
        for (int area = 0; area < s->most; area++)
            ls_pages_clear(ls_store_area_at(s, area), s->area_nbytes);
        ls_pages_clear(s->errors, s->errors_nbytes);
        for (int i = 0; i < 2 * s->V; i++) atomic_store(&s->error_marks[i], 0);
    }
    s->head->scaler = *scaler;
    atomic_store(&s->head->steps, steps);
}
