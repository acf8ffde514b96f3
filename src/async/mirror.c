/* mirror.c - see mirror.h. */
#include "async/mirror.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"

enum { BEAT_NS = 50 * 1000 * 1000 };

typedef struct mirror {
    const ls_async_crew *crew;
    ls_conn *conn;
    double silence_s;
    int64_t next;         /* version of all shards that the copy has */
    ls_async_slot **list; /* [nworkers] the batch */
    int n;
} mirror;

static void set_copy(ls_async_board *b, ls_async_copy state) {
    atomic_store(&b->copy, state);
    ls_bell_ring(&b->bell);
}

void ls_async_mirror_reset(const void *crew) {
    set_copy(((const ls_async_crew *)crew)->board, LS_ASYNC_COPY_NONE);
}

static bool is_over(const mirror *m) { return atomic_load(&m->crew->board->over); }

static ls_status send_beat(const mirror *m, ls_error *e) {
    return ls_wire_send(m->conn, LS_WIRE_BEAT, 0, NULL, 0, e);
}

/* ---- the state ---- */

static bool is_drained(void *arg) {
    const mirror *m = arg;
    return atomic_load(&m->crew->board->copy) == LS_ASYNC_COPY_DRAINED || is_over(m);
}

/* The state does not change meanwhile. */
static ls_status send_state(mirror *m, ls_error *e) {
    const ls_async_board *b = m->crew->board;
    const ls_flat *flat = &m->crew->parameters.flat;
    const ls_wire_state state = {
        .steps = atomic_load(&b->whole), .nshards = b->nshards, .nflat = flat->n};
    size_t nbytes = m->crew->parameters.model->nfloats * sizeof(float);
    m->next = state.steps;
    LS_TRY(ls_wire_send(m->conn, LS_WIRE_STATE, 0, &state, sizeof state, e));
    for (int i = 0; i < flat->n; i++)
        LS_TRY(ls_wire_send(m->conn, LS_WIRE_FLAT, (uint64_t)i, flat->of[i], nbytes, e));
    return ls_wire_receive(m->conn, LS_WIRE_HAVE, m->silence_s, NULL, 0, e);
}

/* ---- batches ---- */

static bool is_waiting(const ls_async_board *b, const ls_async_slot *slot) {
    return ls_async_is_applied(b, slot) && !atomic_load(&slot->copied);
}

static bool has_waiting(void *arg) {
    const mirror *m = arg;
    const ls_async_board *b = m->crew->board;
    for (int i = 0; i < b->nworkers; i++)
        if (is_waiting(b, &b->slots[i])) return true;
    return is_over(m);
}

/* How many versions of the shard follow each other without a gap. */
static int run_of(const mirror *m, int shard) {
    int run = 0;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < m->n; i++) more = more || m->list[i]->at[shard] == m->next + run;
        run += more;
    }
    return run;
}

/* Drops what has a gap before it, in any shard, until nothing has. */
static void choose(mirror *m) {
    ls_async_board *b = m->crew->board;
    m->n = 0;
    for (int i = 0; i < b->nworkers; i++)
        if (is_waiting(b, &b->slots[i])) m->list[m->n++] = &b->slots[i];
    for (bool drops = true; drops;) {
        drops = false;
        for (int k = 0; k < b->nshards; k++) {
            int run = run_of(m, k), n = 0;
            for (int i = 0; i < m->n; i++)
                if (m->list[i]->at[k] < m->next + run) m->list[n++] = m->list[i];
            drops = drops || n < m->n;
            m->n = n;
        }
    }
}

static ls_status send_one(const mirror *m, int i, ls_error *e) {
    const ls_async_slot *slot = m->list[i];
    ls_async_board *b = m->crew->board;
    int worker = (int)(slot - b->slots);
    ls_mirror_message x = {.step = atomic_load(&slot->step),
                           .whole = atomic_load(&b->whole),
                           .worker = worker,
                           .left = m->n - 1 - i,
                           .result = slot->result};
    memcpy(x.base, slot->base, sizeof x.base);
    memcpy(x.at, slot->at, sizeof x.at);
    LS_TRY(ls_wire_send(m->conn, LS_WIRE_APPLIED, 0, &x, sizeof x, e));
    return ls_wire_send(m->conn, LS_WIRE_GRADIENT, 0, ls_async_gradient_of(m->crew, worker),
                        m->crew->plan->share.nbytes.slot, e);
}

static ls_status send_batch(mirror *m, ls_error *e) {
    for (int i = 0; i < m->n; i++) LS_TRY(send_one(m, i, e));
    LS_TRY(ls_wire_receive(m->conn, LS_WIRE_HAVE, m->silence_s, NULL, 0, e));
    m->next += m->n;
    for (int i = 0; i < m->n; i++) atomic_store(&m->list[i]->copied, 1);
    ls_bell_ring(&m->crew->board->bell);
    return LS_OK;
}

/* ---- all of it ---- */

static ls_status begin(mirror *m, ls_error *e) {
    ls_async_board *b = m->crew->board;
    ls_bell_ring(&b->bell);
    while (!ls_bell_wait(&b->copy_bell, is_drained, m, &m->crew->patience, BEAT_NS))
        LS_TRY(send_beat(m, e));
    if (is_over(m)) return LS_OK;
    LS_TRY(send_state(m, e));
    set_copy(b, LS_ASYNC_COPY_PRESENT);
    ls_log("another host has a copy of the state, from step %lld on", (long long)m->next);
    return LS_OK;
}

static ls_status serve(mirror *m, ls_error *e) {
    ls_async_board *b = m->crew->board;
    while (!is_over(m)) {
        if (!ls_bell_wait(&b->copy_bell, has_waiting, m, &m->crew->patience, BEAT_NS))
            LS_TRY(send_beat(m, e));
        choose(m);
        if (m->n)
            LS_TRY(send_batch(m, e));
        else
            nanosleep(&(struct timespec){0, 100 * 1000}, NULL); /* one before them comes */
    }
    return LS_OK;
}

bool ls_async_mirror(const void *crew, ls_conn *conn, double silence_s, ls_status *s_p,
                     ls_error *e) {
    mirror m = {.crew = crew, .conn = conn, .silence_s = silence_s};
    ls_async_board *b = m.crew->board;
    int none = LS_ASYNC_COPY_NONE;
    if (!atomic_compare_exchange_strong(&b->copy, &none, LS_ASYNC_COPY_WANTED)) return false;
    m.list = LS_NEW_ARRAY(ls_async_slot *, (size_t)b->nworkers);
    *s_p = begin(&m, e);
    if (*s_p == LS_OK) *s_p = serve(&m, e);
    set_copy(b, LS_ASYNC_COPY_NONE);
    free(m.list);
    return true;
}
