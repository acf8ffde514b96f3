/* row_policy.c - rows that are trained once they were seen often, and begin anew when they have not
 * been seen for long (model.filter_freq, model.steps_to_live): see row_inside.h.
 *
 * What is noted of a row is a function of the steps' samples. A row that has not been seen since
 * step s was in the batch of step s: so the rows whose time is over after a step are among those of
 * one earlier batch, which is read again, and no table is searched. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "table/row_inside.h"

/* A row's ls_optim_seen changes as one word, so that it is whole whenever a worker dies. */
typedef union word {
    ls_optim_seen seen;
    uint64_t bits;
} word;
_Static_assert(sizeof(ls_optim_seen) == sizeof(uint64_t), "one word");

static _Atomic uint64_t *place_of(const ls_step_rows *r, const ls_row_window *w, int64_t id) {
    float *at = r->t.values + w->seen_at + (size_t)id * (sizeof(ls_optim_seen) / sizeof(float));
    return (_Atomic uint64_t *)(void *)at;
}

ls_optim_seen ls_row_seen(const ls_step_rows *r, const ls_row_window *w, int64_t id) {
    return (word){.bits = atomic_load_explicit(place_of(r, w, id), memory_order_relaxed)}.seen;
}

static void set_seen(const ls_step_rows *r, const ls_row_window *w, int64_t id, ls_optim_seen s) {
    atomic_store(place_of(r, w, id), (word){.seen = s}.bits);
}

static const ls_optim *optim_of(const ls_step_rows *r) { return &r->plan->share.optim; }

/* How often a row was seen with the step that is written, which may be noted already. */
static int64_t count_of(const ls_step_rows *r, const ls_row_window *w, int64_t slot) {
    ls_optim_seen s = ls_row_seen(r, w, w->ids[slot]);
    return (int64_t)s.count + ((int64_t)s.steps == r->written ? 0 : w->occurs[slot]);
}

bool ls_row_is_trained(const ls_step_rows *r, const ls_row_window *w, int64_t slot) {
    return !r->sees || count_of(r, w, slot) >= optim_of(r)->filter_freq;
}

/* In a worker's window: does it have all rows, or only those that it has fetched? */
static int64_t known_count(const ls_step_rows *r, const ls_row_window *w, int64_t slot) {
    if (!r->distributed) return count_of(r, w, slot);
    return (int64_t)w->seen[slot] + w->occurs[slot];
}

void ls_rows_drop_gradients(ls_step_rows *r) {
    for (int i = 0; optim_of(r)->filter_freq && i < r->nwindows; i++) {
        const ls_row_window *w = &r->windows[i];
        int32_t *slots = r->slots + ls_row_param(r, w)->window.first_row;
        for (int64_t k = 0; k < w->n; k++)
            if ((!r->distributed || w->wanted[k]) &&
                known_count(r, w, k) < optim_of(r)->filter_freq)
                slots[w->ids[k]] = ls_row_dropped((int32_t)k);
    }
}

/* ---- after a step ---- */

static void begin_anew(ls_step_rows *r, const ls_row_window *w, int64_t id) {
    size_t C = w->floats[0];
    ls_model_init_param(r->plan->share.model, r->seed, w->param, (size_t)id * C, C,
                        r->t.values + w->at[0] + (size_t)id * C);
    for (int k = 1; k < r->nflats; k++)
        memset(r->t.values + w->at[k] + (size_t)id * w->floats[k], 0, w->floats[k] * sizeof(float));
    set_seen(r, w, id, (ls_optim_seen){0});
}

/* Lets the rows of an earlier batch's sample begin anew that were not seen since. */
static void age(ls_step_rows *r, const char *sample, int vw, void *arg) {
    int64_t last = *(const int64_t *)arg;
    (void)vw;
    for (int i = 0; i < r->nwindows; i++) {
        const ls_row_window *w = &r->windows[i];
        const ls_param *p = ls_row_param(r, w);
        const int32_t *ids = (const int32_t *)(const void *)(sample + p->window.ids_at);
        for (int64_t k = 0; k < p->window.nids; k++)
            if (ids[k] >= 0 && ls_row_home(r, w, ids[k]) == r->worker &&
                (int64_t)ls_row_seen(r, w, ids[k]).steps == last)
                begin_anew(r, w, ids[k]);
    }
}

ls_status ls_rows_note_seen(ls_step_rows *r, ls_error *e) {
    const ls_optim *o = optim_of(r);
    for (int i = 0; i < r->nwindows; i++) {
        const ls_row_window *w = &r->windows[i];
        for (int64_t k = 0; k < w->n; k++) {
            if (ls_row_home(r, w, w->ids[k]) != r->worker) continue;
            int64_t count = count_of(r, w, k);
            if (count > o->filter_freq) count = o->filter_freq;
            set_seen(r, w, w->ids[k], (ls_optim_seen){(float)count, (float)r->written});
        }
    }
    int64_t last = r->written - o->steps_to_live;
    if (!o->steps_to_live || last < 1) return LS_OK;
    return ls_rows_each_sample(r, last - 1, age, &last, e);
}
