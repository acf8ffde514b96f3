/* request.c - see request.h. */
#include "coll/request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/choose.h"
#include "coll/health.h"
#include "net/native.h"

enum { SLICE_NS = 20 * 1000 * 1000, MIXED_SLICE_NS = 200 * 1000, SINGLE = 0xffffff };
/* In a call of so many bytes the workers wait for each other's work, some 100 us: a worker that
 * yields its core on a busy machine loses milliseconds. */
enum { LONG_CALL = 16384, LONG_LOOKS = 16 };

/* ---- fingerprints ---- */

static uint64_t mix(uint64_t x, uint64_t y) {
    x = (x ^ y) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static uint64_t print_of(const ls_group *g, const ls_call *c, uint32_t number) {
    uint64_t x = mix((uint64_t)c->what << 32 | (uint64_t)c->dtype << 16 | (uint64_t)c->op, number);
    x = mix(x, (uint64_t)c->form);
    x = mix(x, c->count);
    x = mix(x, (uint64_t)c->root);
    x = mix(x, (uint64_t)c->V);
    if (c->chunks > 1) x = mix(x, (uint64_t)c->chunks << 32 | (uint64_t)c->context);
    for (int i = 0; c->first && i < g->size; i++) x = mix(x, (uint64_t)c->first[i] + 1);
    for (int i = 0; c->counts && i < g->size; i++) x = mix(x, c->counts[i]);
    for (const char *a = c->by ? c->by->name : ""; *a; a++) x = mix(x, (uint64_t)*a);
    for (const char *a = g->forced ? g->forced->name : ""; *a; a++) x = mix(x, (uint64_t)*a);
    if (g->native) x = mix(x, 1);
    return mix(x, (uint64_t)g->size);
}

/* ---- the route of a call ---- */

static const ls_native_what natives[LS_NCALLS] = {[LS_CALL_ALL_REDUCE] = LS_NATIVE_ALL_REDUCE,
                                                  [LS_CALL_REDUCE_SCATTER] =
                                                      LS_NATIVE_REDUCE_SCATTER,
                                                  [LS_CALL_ALL_GATHER] = LS_NATIVE_ALL_GATHER,
                                                  [LS_CALL_BROADCAST] = LS_NATIVE_BROADCAST,
                                                  [LS_CALL_REDUCE] = LS_NATIVE_REDUCE,
                                                  [LS_CALL_GATHER] = LS_NATIVE_GATHER,
                                                  [LS_CALL_SCATTER] = LS_NATIVE_SCATTER,
                                                  [LS_CALL_ALL_TO_ALL] = LS_NATIVE_ALL_TO_ALL,
                                                  [LS_CALL_SCAN] = LS_NATIVE_SCAN,
                                                  [LS_CALL_EXSCAN] = LS_NATIVE_EXSCAN,
                                                  [LS_CALL_BARRIER] = LS_NATIVE_BARRIER};

static ls_native_call native_of(const ls_call *c, const void *in, void *out) {
    return (ls_native_call){.what = natives[c->what],
                            .dtype = c->dtype,
                            .op = c->op,
                            .root = c->root,
                            .count = c->count,
                            .in = in,
                            .out = out};
}

static bool goes_native(const ls_group *g, const ls_call *c) {
    if (!g->native || c->by || c->counts || ls_collective_is_pairwise(c->what) || c->V)
        return false;
    ls_native_call call = native_of(c, NULL, NULL);
    return g->end->net->native->can(g->end->net, &call);
}

static bool is_forced(const ls_group *g, const ls_call *c) {
    if (!g->forced || !ls_algorithm_supports(g->forced, c)) return false;
    return !c->by || g->forced->tree_order(c->what, g->size);
}

static const ls_algorithm *algorithm_for(const ls_group *g, const ls_call *c) {
    return is_forced(g, c) ? g->forced : ls_choose(c, g->size, &g->end->link);
}

ls_route ls_group_route(const ls_group *g, const ls_call *c) {
    if (ls_goes_shared(g)) return (ls_route){.way = LS_BY_SHARED_MEMORY};
    if (goes_native(g, c)) return (ls_route){.way = LS_BY_NATIVE, .forced = true};
    return (ls_route){LS_BY_MESSAGES, algorithm_for(g, c), is_forced(g, c)};
}

/* ---- programs ---- */

static bool same_counts(const size_t *a, const size_t *b, size_t n) {
    return !a == !b && (!a || memcmp(a, b, n * sizeof *a) == 0);
}

static bool matches(const ls_group *g, const ls_cached *x, const ls_call *c, ls_in_place p) {
    const ls_call *a = &x->call;
    if (a->what != c->what || a->own != c->own || a->dtype != c->dtype || a->op != c->op ||
        a->root != c->root || a->count != c->count || a->V != c->V || a->stride != c->stride ||
        a->chunks != c->chunks || a->context != c->context || !a->first != !c->first ||
        x->place.overlap != p.overlap || x->place.first != p.first)
        return false;
    size_t n = (size_t)g->size;
    if (c->first && memcmp(a->first, c->first, (n + 1) * sizeof *c->first) != 0) return false;
    return same_counts(a->counts, c->counts, n) && same_counts(a->sends, c->sends, n) &&
           same_counts(a->receives, c->receives, n);
}

static void forget(ls_cached *x) {
    if (!x->made) return;
    ls_flight_free(&x->flight);
    ls_coll_program_free(&x->program);
    free((void *)(uintptr_t)x->call.counts);
    free((void *)(uintptr_t)x->call.sends);
    free((void *)(uintptr_t)x->call.receives);
    free((void *)(uintptr_t)x->call.first);
    *x = (ls_cached){0};
}

static void *copy_of(const void *data, size_t nbytes) {
    void *copy = ls_alloc(nbytes);
    memcpy(copy, data, nbytes);
    return copy;
}

static void make_cached(ls_group *g, ls_cached *x, const ls_call *c, ls_in_place p) {
    forget(x);
    *x = (ls_cached){.call = *c, .place = p, .made = true};
    size_t n = (size_t)g->size;
    if (c->counts) x->call.counts = copy_of(c->counts, n * sizeof *c->counts);
    if (c->sends) x->call.sends = copy_of(c->sends, n * sizeof *c->sends);
    if (c->receives) x->call.receives = copy_of(c->receives, n * sizeof *c->receives);
    if (c->first) x->call.first = copy_of(c->first, (n + 1) * sizeof *c->first);
    x->call.hosts = g->hosts;
    x->call.piece = ls_call_piece(c, g->size);
    x->algorithm = algorithm_for(g, c);
    ls_algorithm_make(x->algorithm, &x->call, g->rank, g->size, p, &x->program);
    x->traffic = ls_coll_program_traffic(&x->program);
    ls_flight_open(&x->flight, &x->program, g->end->net, g->end->k, g->ranks);
}

/* At least one is free: the caller has waited for that. */
static ls_cached *cached_for(ls_group *g, const ls_call *c, ls_in_place p) {
    ls_cached *oldest = NULL;
    for (int i = 0; i < LS_CACHE; i++) {
        ls_cached *x = &g->cache[i];
        if (x->busy) continue;
        if (x->made && matches(g, x, c, p)) return x;
        if (!oldest || x->used < oldest->used) oldest = x;
    }
    assert(oldest);
    make_cached(g, oldest, c, p);
    return oldest;
}

/* ---- the list of requests ---- */

/* False: the endpoint has no other group, so there is no thread to lock out (request.h). */
static bool lock_calls(ls_group *g) {
    bool others = atomic_load_explicit(&g->end->users, memory_order_acquire) > 1;
    if (others) pthread_mutex_lock(&g->lock);
    return others;
}
static void unlock_calls(ls_group *g, bool locked) {
    if (locked) pthread_mutex_unlock(&g->lock);
}

static void link_request(ls_group *g, ls_request *r) {
    bool locked = lock_calls(g);
    ls_request **end = &g->first;
    while (*end) end = &(*end)->next;
    *end = r;
    unlock_calls(g, locked);
}

static void unlink_request(ls_group *g, ls_request *r) {
    bool locked = lock_calls(g);
    ls_request **link = &g->first;
    while (*link && *link != r) link = &(*link)->next;
    if (*link) *link = r->next;
    unlock_calls(g, locked);
}

static void unlink_flying(ls_endpoint *p, ls_request *r) {
    ls_request **link = &p->flying;
    while (*link && *link != r) link = &(*link)->flying;
    if (!*link) return;
    *link = r->flying;
    atomic_fetch_sub_explicit(&p->nflying, 1, memory_order_relaxed);
}

static void link_flying(ls_endpoint *p, ls_request *r) {
    r->flying = p->flying;
    p->flying = r;
    atomic_fetch_add_explicit(&p->nflying, 1, memory_order_relaxed);
}

/* With the endpoint locked. */
static void flight_ends(ls_request *r) {
    unlink_flying(r->g->end, r);
    if (r->cached) atomic_store(&r->cached->busy, false);
    atomic_store(&r->done, true);
}

/* Makes the transport forget r. */
static void ground(ls_request *r) {
    ls_endpoint *p = r->g->end;
    pthread_mutex_lock(&p->lock);
    if (p->net) p->net->ops->forget(p->net, r);
    unlink_flying(p, r);
    pthread_mutex_unlock(&p->lock);
}

/* Makes the transport and the group forget r. */
static void abandon(ls_request *r) {
    ground(r);
    unlink_request(r->g, r);
}

/* The group is broken: its callers own their buffers again. */
static ls_status fail(ls_group *g, ls_error *e) {
    ls_group_error(g, e);
    for (ls_request *r = g->first; r; r = r->next)
        if (!r->done) ground(r);
    return e->code;
}

/* ---- progress ---- */

/* A faulty message breaks its own group, whichever group polls. */
static void message_done(const ls_message *m) {
    ls_request *r = m->owner;
    ls_group *g = r->g;
    ls_error e;
    if (r->native) {
        flight_ends(r);
        return;
    }
    if (!r->message_only) {
        int member = 0;
        while (g->ranks[member] != m->peer) member++;
        if (ls_flight_done(&r->cached->flight, m, &e) != LS_OK) {
            ls_miscount differ = r->cached->flight.miscount;
            differ.number = r->number;
            differ.what = (uint8_t)r->call.what;
            ls_group_break_by(g, e.code == LS_EDISAGREE ? member : -1, &differ, &e);
        } else if (ls_flight_finished(&r->cached->flight))
            flight_ends(r);
        return;
    }
    if (r->receives && (!ls_message_fits(m, m->their_nbytes) || m->their_print != m->print)) {
        ls_fail(&e, LS_EDISAGREE,
                "recv from worker %d of %zu bytes of %s, but it sent %zu bytes of %s", m->peer,
                m->nbytes, ls_dtype_name((ls_dtype)m->print), m->their_nbytes,
                ls_dtype_name((ls_dtype)m->their_print));
        ls_group_break(g, -1, &e);
        return;
    }
    if (r->nbytes_p) *r->nbytes_p = m->their_nbytes;
    flight_ends(r);
}

/* Advances all flights of the endpoint; sleeps for timeout_ns at most if none can advance. */
static ls_status fly(ls_endpoint *p, int64_t timeout_ns, ls_error *e) {
    bool worked = false;
    for (ls_request *r = p->flying, *next; r; r = next) {
        next = r->flying;
        bool did = false;
        if (!r->cached || r->g->broken) continue;
        ls_error own;
        if (ls_flight_work(&r->cached->flight, &did, &own) != LS_OK)
            ls_group_break(r->g, -1, &own);
        else if (ls_flight_finished(&r->cached->flight))
            flight_ends(r);
        worked = worked || did;
    }
    if (!p->net) return LS_OK;
    ls_message *done = NULL;
    LS_TRY(p->net->ops->poll(p->net, worked ? 0 : timeout_ns, &done, e));
    while (done) {
        ls_message *next = done->next;
        message_done(done);
        done = next;
    }
    return LS_OK;
}

/* Is there something to do for the transport, though only calls in shared memory are waited for? */
static bool must_fly(ls_endpoint *p) {
    return atomic_load_explicit(&p->nflying, memory_order_relaxed) ||
           (p->net && atomic_load_explicit(&p->net->owes, memory_order_relaxed));
}

static void fly_locked(ls_group *g, int64_t timeout_ns) {
    ls_error e;
    pthread_mutex_lock(&g->end->lock);
    ls_status s = must_fly(g->end) ? fly(g->end, timeout_ns, &e) : LS_OK;
    pthread_mutex_unlock(&g->end->lock);
    if (s != LS_OK) ls_group_break(g, -1, &e);
}

/* Steps every shared call once, oldest first. Returns a call that has found a member that differs,
 * else NULL. */
static const ls_request *step_calls(ls_group *g, bool *moved_p) {
    for (ls_request *r = g->first; r; r = r->next) {
        if (!r->shared || r->done) continue;
        if (!ls_shared_step(g->shared, r->shared)) continue;
        if (r->shared->differs >= 0) return r;
        atomic_store(&r->done, true);
        *moved_p = true;
    }
    return NULL;
}

static void step_shared(ls_group *g) {
    bool moved = false;
    if (!g->shared || g->broken) return;
    bool locked = lock_calls(g);
    const ls_request *differs = step_calls(g, &moved);
    unlock_calls(g, locked);
    if (differs) ls_health_differs(g, differs);
}

/* Makes progress in the endpoint's other groups, for whose calls other workers may be waiting. A
 * locked group is left to the thread that holds the lock. */
static void step_others(ls_group *g) {
    ls_endpoint *p = g->end;
    bool moved = false;
    if (atomic_load_explicit(&p->users, memory_order_relaxed) < 2 || !p->commons) return;
    if (pthread_mutex_trylock(&p->groups_lock) != 0) return;
    for (ls_group *other = p->groups; other; other = other->sibling) {
        if (other == g || !other->shared || pthread_mutex_trylock(&other->lock) != 0) continue;
        if (!other->broken) step_calls(other, &moved);
        pthread_mutex_unlock(&other->lock);
    }
    pthread_mutex_unlock(&p->groups_lock);
    /* Threads that wait for these groups may sleep. */
    if (moved) ls_bell_ring(&ls_commons_worker_of(p->commons, p->commons->rank)->bell);
}

void ls_request_progress(ls_group *g) {
    step_shared(g);
    step_others(g);
    fly_locked(g, 0);
}

void ls_request_poll(ls_group *g, int64_t timeout_ns) {
    ls_error e;
    pthread_mutex_lock(&g->end->lock);
    fly(g->end, timeout_ns, &e);
    pthread_mutex_unlock(&g->end->lock);
}

/* ---- waiting ---- */

/* What a thread waits for. r NULL: for other workers to make room; health is then judged by this
 * worker's oldest call. */
typedef struct wait {
    ls_group *g;
    ls_request *r;
    ls_request *const *set; /* [n] the requests of which any may end the wait; NULL: r alone */
    int n;
    bool (*ready)(const struct wait *);
} wait;

static bool is_done(const wait *w) { return w->r->done; }

/* Makes progress in calls of other endpoints, since no other thread does. */
static bool is_one_done(const wait *w) {
    for (int i = 0; i < w->n; i++) {
        ls_request *r = w->set[i];
        if (!r) continue;
        if (!r->done && !r->g->broken && r->g->end != w->g->end) ls_request_progress(r->g);
        if (r->done || r->g->broken) return true;
    }
    return false;
}

/* Does the wait include calls that what r sleeps on does not announce? */
static bool is_mixed(const wait *w) {
    for (int i = 0; i < w->n; i++) {
        const ls_request *x = w->set[i];
        if (x && (x->g->end != w->g->end || !x->shared != !w->r->shared)) return true;
    }
    return false;
}

/* Is it ready, or is there an error to return? */
static bool should_wake(void *arg) {
    wait *w = arg;
    step_shared(w->g);
    step_others(w->g);
    if (must_fly(w->g->end)) fly_locked(w->g, 0);
    return w->ready(w) || w->g->broken || ls_group_is_called_off(w->g);
}

/* Sleeps at the bell if r is in shared memory, else in the transport's poll; only briefly if calls
 * of the other kind may need progress, too. No bell rings for room (r NULL). */
static void wait_slice(wait *w, int64_t slice) {
    ls_group *g = w->g;
    ls_endpoint *p = g->end;
    int64_t brief = slice < MIXED_SLICE_NS ? slice : MIXED_SLICE_NS;
    if (w->r ? w->r->shared != NULL : ls_goes_shared(g)) {
        ls_bell *bell = &ls_commons_worker_of(p->commons, p->commons->rank)->bell;
        bool looks = must_fly(p) || !w->r || is_mixed(w);
        ls_patience patience = p->patience;
        if (w->r && (w->r->shared->nin > LONG_CALL || w->r->shared->nout > LONG_CALL))
            patience.looks *= LONG_LOOKS;
        ls_bell_wait(bell, should_wake, w, &patience, looks ? brief : slice);
        return;
    }
    bool mixed = (g->shared && g->first != w->r) || is_mixed(w) ||
                 atomic_load_explicit(&p->users, memory_order_relaxed) > 1;
    step_shared(g);
    step_others(g);
    fly_locked(g, mixed ? brief : slice);
}

static ls_request *oldest(const ls_group *g) {
    ls_request *r = g->first;
    while (r && r->done) r = r->next;
    return r;
}

static void check_health(const wait *w) {
    ls_health_check(w->g, w->r ? w->r : oldest(w->g));
    for (int i = 0; i < w->n; i++)
        if (w->set[i] && w->set[i] != w->r && !w->set[i]->done && !w->set[i]->g->broken)
            ls_health_check(w->set[i]->g, w->set[i]);
}

/* Waits until w->ready(), for timeout_ns at most; < 0: for the group's time, if it has a limit.
 * Most waits end in the first slice, without a look at the clock. */
static ls_status wait_until(wait *w, int64_t timeout_ns, ls_error *e) {
    ls_group *g = w->g;
    bool own_limit = timeout_ns < 0;
    int64_t limit = own_limit ? g->timeout_ns : timeout_ns;
    int64_t slice = limit >= 0 && limit < SLICE_NS ? limit : SLICE_NS, waited = 0;
    int64_t start = slice < SLICE_NS ? ls_clock_ns() : 0;
    bool shown = false;
    for (;;) {
        wait_slice(w, slice);
        if (g->broken || w->ready(w)) break;
        if (!start) start = ls_clock_ns() - slice;
        waited = ls_clock_ns() - start;
        if (limit >= 0 && waited >= limit) break;
        if (!shown && waited >= SLICE_NS) ls_health_waits(g, w->r);
        shown = shown || waited >= SLICE_NS;
        check_health(w);
        slice = limit >= 0 && limit - waited < SLICE_NS ? limit - waited : SLICE_NS;
    }
    if (shown) ls_health_waits(g, NULL);
    if (!g->broken && w->ready(w)) return LS_OK;
    if (!g->broken && !own_limit)
        return ls_fail(e, LS_EPENDING, "still in flight after %.3f s", (double)waited / 1e9);
    if (!g->broken) ls_health_timed_out(g, w->r ? w->r : oldest(g), waited);
    return fail(g, e);
}

ls_status ls_request_test(ls_request *r, ls_error *e) {
    ls_group *g = r->g;
    if (!g->broken) ls_request_progress(g);
    if (!g->broken && !r->done) ls_health_check(g, r);
    return g->broken && !r->done ? fail(g, e) : LS_OK;
}

ls_status ls_request_wait(ls_request *r, int64_t timeout_ns, ls_error *e) {
    ls_group *g = r->g;
    ls_status s = LS_OK;
    if (!r->done && g->broken) s = fail(g, e);
    if (!r->done && s == LS_OK)
        s = wait_until(&(wait){.g = g, .r = r, .ready = is_done}, timeout_ns, e);
    if (s == LS_OK)
        unlink_request(g, r);
    else if (g->broken && !r->owned)
        abandon(r);
    return s;
}

ls_status ls_request_wait_set(ls_request *const *requests, int n, int64_t timeout_ns, ls_error *e) {
    wait w = {.set = requests, .n = n, .ready = is_one_done};
    for (int i = n - 1; i >= 0; i--)
        if (requests[i]) w.r = requests[i];
    w.g = w.r->g;
    if (is_one_done(&w)) return LS_OK;
    return wait_until(&w, timeout_ns, e);
}

static bool is_any_done(const wait *w) {
    for (const ls_request *r = w->g->first; r; r = r->next)
        if (r->done) return true;
    return false;
}

ls_status ls_request_wait_any(ls_request *r, ls_error *e) {
    ls_group *g = r->g;
    wait w = {.g = g, .r = r, .ready = is_any_done};
    if (is_any_done(&w)) return LS_OK;
    return g->broken ? fail(g, e) : wait_until(&w, -1, e);
}

/* ---- starting ---- */

static void start_flight(ls_group *g, const ls_operands *o, ls_request *r) {
    ls_endpoint *end = g->end;
    ls_error e;
    r->cached = cached_for(g, &r->call, o->place);
    ls_flight *f = &r->cached->flight;
    const ls_flight_call call = {.in = o->in,
                                 .out = o->out,
                                 .by = r->call.by,
                                 .group = (uint16_t)g->id,
                                 .number = r->number % SINGLE,
                                 .print = r->print};
    r->cached->busy = true;
    r->cached->used = g->counters.calls;
    f->owner = r;
    ls_health_publish(g, r);
    g->counters.messages_sent += r->cached->traffic.messages;
    g->counters.bytes_sent += r->cached->traffic.nbytes;
    pthread_mutex_lock(&end->lock);
    link_flying(end, r);
    ls_status s = ls_flight_start(f, &call, &e);
    if (s == LS_OK && ls_flight_finished(f)) flight_ends(r);
    pthread_mutex_unlock(&end->lock);
    if (s != LS_OK) ls_group_break(g, -1, &e);
}

static void start_native(ls_group *g, const ls_operands *o, ls_request *r) {
    ls_endpoint *end = g->end;
    ls_native_call call = native_of(&r->call, o->in, o->out);
    ls_error e;
    r->native = true;
    r->message.owner = r;
    pthread_mutex_lock(&end->lock);
    link_flying(end, r);
    ls_status s = end->net->native->start(end->net, &call, &r->message, &e);
    pthread_mutex_unlock(&end->lock);
    if (s != LS_OK) ls_group_break(g, -1, &e);
}

static void start_shared(ls_group *g, const ls_operands *o, ls_request *r) {
    bool locked = lock_calls(g);
    r->shared = ls_shared_start(g->shared, &r->call, r->print, o, &r->record);
    unlock_calls(g, locked);
}

static bool has_free_program(const wait *w) {
    for (int i = 0; i < LS_CACHE; i++)
        if (!atomic_load(&w->g->cache[i].busy)) return true;
    return false;
}

static bool has_room(const wait *w) {
    ls_group *g = w->g;
    bool locked = lock_calls(g);
    bool room = ls_shared_room(g->shared);
    unlock_calls(g, locked);
    return room;
}

/* The group may have been broken while r was started. */
static ls_status check_started(ls_group *g, ls_request *r, ls_error *e) {
    if (!g->broken) return LS_OK;
    fail(g, e);
    abandon(r);
    return e->code;
}

ls_status ls_request_start(ls_group *g, const ls_call *c, const ls_operands *o, ls_request *r,
                           ls_error *e) {
    ls_health_listen(g);
    if (g->broken) return fail(g, e);
    bool shared = ls_goes_shared(g);
    if (g->logged) ls_route_log(g, c);
    wait w = {.g = g, .ready = shared ? has_room : has_free_program};
    if (!w.ready(&w)) LS_TRY(wait_until(&w, -1, e));
    *r = (ls_request){.g = g, .call = *c, .site = g->site, .number = g->calls++};
    if (c->by) r->by = *c->by, r->call.by = &r->by;
    r->call.form = g->form;
    r->call.mark = g->mark;
    g->mark = (ls_call_mark){0};
    g->counters.calls++;
    uint64_t print = print_of(g, &r->call, r->number);
    ls_record_set(&r->record, &r->call, g->size, r->number, print, r->site);
    g->print = mix(g->print, print);
    r->print = g->print;
    link_request(g, r);
    if (shared)
        start_shared(g, o, r);
    else if (goes_native(g, c))
        start_native(g, o, r);
    else
        start_flight(g, o, r);
    return check_started(g, r, e);
}

ls_status ls_request_start_message(ls_group *g, const ls_single_call *c, ls_request *r,
                                   ls_error *e) {
    ls_health_listen(g);
    if (g->broken) return fail(g, e);
    ls_endpoint *end = g->end;
    uint32_t number = c->send ? g->sent[c->peer]++ : g->received[c->peer]++;
    size_t nbytes = c->count * ls_dtype_size(c->dtype);
    *r = (ls_request){.g = g, .site = g->site, .number = number};
    r->message_only = true;
    r->receives = !c->send;
    r->nbytes_p = c->nbytes_p;
    r->message = (ls_message){.peer = g->ranks[c->peer],
                              .tag = ls_net_tag((uint16_t)g->id, SINGLE, number),
                              .data = c->buf,
                              .nbytes = nbytes,
                              .most = c->most,
                              .print = (uint64_t)c->dtype,
                              .owner = r};
    g->counters.calls++;
    if (c->send) {
        g->counters.messages_sent++;
        g->counters.bytes_sent += nbytes;
    }
    link_request(g, r);
    pthread_mutex_lock(&end->lock);
    link_flying(end, r);
    ls_status s = c->send ? end->net->ops->send(end->net, &r->message, e)
                          : end->net->ops->recv(end->net, &r->message, e);
    pthread_mutex_unlock(&end->lock);
    if (s != LS_OK) ls_group_break(g, -1, e);
    return check_started(g, r, e);
}

void ls_request_close_all(ls_group *g) {
    while (g->first) abandon(g->first);
    for (int i = 0; i < LS_CACHE; i++) forget(&g->cache[i]);
}
