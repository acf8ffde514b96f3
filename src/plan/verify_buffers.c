/* verify_buffers.c - see verify_buffers.h.
 *
 * A buffer has contents from its first write on, and a transient one until its Free. Of two twins,
 * one in the host's memory and one in the device's, what is written makes the other's contents old,
 * until a copy renews them.
 */
#include "plan/verify_buffers.h"

#include <stdlib.h>

enum {
    UNWRITTEN,
    WRITTEN,
    FREED,
    PACKED, /* as a message of some rows */
    OLD = 4 /* beside these: its twin has newer contents */
};

void ls_buffer_states_open(ls_buffer_states *s, const ls_plan *p, bool whole) {
    size_t n = (size_t)p->share.nworkers * (size_t)ls_plan_nbuffers(p);
    *s = (ls_buffer_states){p, whole, LS_NEW_ARRAY(char, n)};
}

void ls_buffer_states_close(ls_buffer_states *s) {
    free(s->state);
    *s = (ls_buffer_states){0};
}

static bool is_used(char state) { return (state & ~OLD) == WRITTEN || (state & ~OLD) == PACKED; }

static char *state_of(const ls_buffer_states *s, int worker, int buffer) {
    return &s->state[(size_t)worker * (size_t)ls_plan_nbuffers(s->p) + (size_t)buffer];
}

static bool exists(const ls_buffer_states *s, int buffer) {
    return buffer >= 0 && buffer < ls_plan_nbuffers(s->p);
}

/* Does a buffer have contents where a step begins? */
static bool is_persistent(const ls_plan *p, int buffer) {
    ls_buffer b = ls_plan_buffer_of(p, buffer);
    if (p->has_copies && ls_plan_twin(p, buffer) != buffer && !ls_plan_outlives(p, buffer))
        return false;
    return b.kind == LS_BUF_SHARD || b.kind == LS_BUF_MOMENT || b.kind == LS_BUF_ERROR ||
           b.kind == LS_BUF_DEVICE_PARAM || b.kind == LS_BUF_DEVICE_SHARD ||
           b.kind == LS_BUF_DEVICE_MOMENT || (b.kind == LS_BUF_PARAM && !ls_plan_transient(p, b));
}

static const char *read(const ls_buffer_states *s, int worker, int buffer) {
    char state = *state_of(s, worker, buffer);
    if (state & OLD) return "reads a buffer whose twin has newer contents";
    switch (state) {
    case FREED: return "reads a buffer after its Free";
    case PACKED: return "reads a buffer after its Send";
    case UNWRITTEN:
        return is_persistent(s->p, buffer) ? NULL : "reads a buffer before it was written";
    default: return NULL;
    }
}

/* What the other memory has of a buffer is old once this one is written, unless it is copied. */
static void write(const ls_buffer_states *s, const ls_action *a, int worker, int buffer,
                  ls_use how) {
    int twin = ls_plan_twin(s->p, buffer);
    bool copies = a->kind == LS_TO_DEVICE || a->kind == LS_FROM_DEVICE;
    if (s->p->has_copies && twin != buffer && !copies) *state_of(s, worker, twin) |= OLD;
    bool packs = how == LS_USE_UPDATE && a->kind == LS_SEND;
    *state_of(s, worker, buffer) = packs ? PACKED : WRITTEN;
}

const char *ls_buffer_states_use(ls_buffer_states *s, const ls_action *a, int worker, int buffer,
                                 ls_use how) {
    if (!exists(s, buffer)) return "uses a buffer that does not exist";
    char before = *state_of(s, worker, buffer);
    const char *what = how & LS_USE_READ ? read(s, worker, buffer) : NULL;
    bool begins =
        how == LS_USE_WRITE && s->whole && ls_plan_transient(s->p, ls_plan_buffer_of(s->p, buffer));
    if (begins && is_used(before)) what = "begins a buffer that is in use";
    if (how & LS_USE_WRITE) write(s, a, worker, buffer, how);
    return what;
}

const char *ls_buffer_states_free(ls_buffer_states *s, const ls_action *a) {
    if (!exists(s, a->buffer)) return "frees a buffer that does not exist";
    char *state = state_of(s, a->worker, a->buffer);
    bool transient = ls_plan_transient(s->p, ls_plan_buffer_of(s->p, a->buffer));
    bool used = is_used(*state);
    *state = FREED;
    return used && transient ? NULL : "frees a buffer that is not in use";
}

const char *ls_buffer_states_copy(const ls_buffer_states *s, const ls_action *a) {
    bool may = exists(s, a->buffer) && s->p->has_copies;
    ls_buffer_kind kind = may ? ls_plan_buffer_of(s->p, a->buffer).kind : LS_BUF_WORK;
    bool sent = kind == LS_BUF_ACT || kind == LS_BUF_DACT;
    bool to = sent || kind == LS_BUF_SAMPLES || kind == LS_BUF_PARAM || kind == LS_BUF_SUM;
    bool from = sent || kind == LS_BUF_LOSSES || kind == LS_BUF_GRAD || kind == LS_BUF_NORMS ||
                kind == LS_BUF_SHARD || kind == LS_BUF_PARAM;
    bool fits = a->kind == LS_TO_DEVICE ? to : from;
    return fits ? NULL : "copies a buffer that stays where it is";
}

const char *ls_buffer_states_end(const ls_buffer_states *s) {
    int nbuffers = ls_plan_nbuffers(s->p);
    for (int i = 0; i < s->p->share.nworkers * nbuffers; i++) {
        int buffer = i % nbuffers;
        if (is_used(s->state[i]) && ls_plan_transient(s->p, ls_plan_buffer_of(s->p, buffer)))
            return "ends a plan that leaves a buffer in use";
        if ((s->state[i] & OLD) && ls_plan_outlives(s->p, buffer))
            return "ends a plan that leaves the newest state elsewhere";
    }
    return NULL;
}
