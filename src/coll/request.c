/* request.c - see request.h. */
#include "coll/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "coll/choose.h"
#include "net/native.h"

enum { SLICE_NS = 20 * 1000 * 1000, MIXED_SLICE_NS = 200 * 1000, SINGLE = 0xffffff };

ls_status ls_group_break(ls_group *g, const ls_error *e) {
    if (g->broken == LS_OK) {
        g->broken = e->code;
        g->why = *e;
    }
    return e->code;
}

static ls_status is_broken(const ls_group *g, ls_error *e) {
    return ls_fail(e, g->broken, "the group can only be closed, since: %s", g->why.msg);
}

static ls_record record_of(const ls_request *r) {
    ls_record x = {.group = (uint16_t)r->g->id, .waiting = 1};
    ls_record_set(&x, &r->call, r->number, r->print, r->file, r->line);
    return x;
}

/* ---- fingerprints ---- */

static uint64_t mix(uint64_t x, uint64_t y) {
    x = (x ^ y) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static uint64_t print_of(const ls_group *g, const ls_call *c, uint32_t number) {
    uint64_t x = mix((uint64_t)c->what << 32 | (uint64_t)c->dtype << 16 | (uint64_t)c->op, number);
    x = mix(x, c->count);
    x = mix(x, (uint64_t)c->root);
    for (int i = 0; c->counts && i < g->size; i++) x = mix(x, c->counts[i]);
    for (const char *a = g->forced ? g->forced->name : ""; *a; a++) x = mix(x, (uint64_t)*a);
    if (g->native) x = mix(x, 1);
    return mix(x, (uint64_t)g->size);
}

/* ---- by what way ---- */

static const ls_native_what natives[LS_NCALLS] = {
    [LS_CALL_ALL_REDUCE] = LS_NATIVE_ALL_REDUCE,
    [LS_CALL_REDUCE_SCATTER] = LS_NATIVE_REDUCE_SCATTER,
    [LS_CALL_ALL_GATHER] = LS_NATIVE_ALL_GATHER,
    [LS_CALL_BROADCAST] = LS_NATIVE_BROADCAST,
    [LS_CALL_REDUCE] = LS_NATIVE_REDUCE,
    [LS_CALL_GATHER] = LS_NATIVE_GATHER,
    [LS_CALL_SCATTER] = LS_NATIVE_SCATTER,
    [LS_CALL_ALL_TO_ALL] = LS_NATIVE_ALL_TO_ALL,
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
    if (!g->native || c->counts) return false;
    ls_native_call call = native_of(c, NULL, NULL);
    return g->end->net->native->can(g->end->net, &call);
}

static bool goes_shared(const ls_group *g) { return g->shared && !g->forced && !g->native; }

static bool is_forced(const ls_group *g, const ls_call *c) {
    return g->forced && g->forced->does >> c->what & 1;
}

static const ls_algorithm *algorithm_for(const ls_group *g, const ls_call *c) {
    return is_forced(g, c) ? g->forced : ls_choose(c, g->size, &g->end->link);
}

ls_choice ls_group_choose(const ls_group *g, const ls_call *c) {
    if (goes_shared(g)) return (ls_choice){.way = LS_BY_SHARED_MEMORY};
    if (goes_native(g, c)) return (ls_choice){.way = LS_BY_NATIVE, .forced = true};
    return (ls_choice){LS_BY_MESSAGES, algorithm_for(g, c), is_forced(g, c)};
}

/* ---- schedules ---- */

static bool alike(const ls_group *g, const ls_cached *x, const ls_call *c, ls_in_place p) {
    const ls_call *a = &x->call;
    if (a->what != c->what || a->dtype != c->dtype || a->op != c->op || a->root != c->root ||
        a->count != c->count || !a->counts != !c->counts || x->overlap != p.overlap ||
        x->overlap_first != p.first)
        return false;
    return !c->counts || memcmp(a->counts, c->counts, (size_t)g->size * sizeof *c->counts) == 0;
}

static void forget(ls_cached *x) {
    if (!x->made) return;
    ls_flight_free(&x->flight);
    ls_schedule_free(&x->schedule);
    free((void *)(uintptr_t)x->call.counts);
    *x = (ls_cached){0};
}

static void make_cached(ls_group *g, ls_cached *x, const ls_call *c, ls_in_place p) {
    forget(x);
    *x = (ls_cached){.call = *c, .overlap = p.overlap, .overlap_first = p.first, .made = true};
    if (c->counts) {
        size_t *copy = LS_NEW_ARRAY(size_t, (size_t)g->size);
        memcpy(copy, c->counts, (size_t)g->size * sizeof *copy);
        x->call.counts = copy;
    }
    x->call.hosts = g->hosts;
    x->call.piece = ls_choose_piece(c, g->size);
    x->algorithm = algorithm_for(g, c);
    ls_algorithm_make(x->algorithm, &x->call, g->rank, g->size, p.overlap, p.first, &x->schedule);
    ls_flight_open(&x->flight, &x->schedule, g->end->net, g->end->k, g->ranks);
}

/* NULL: all are on their way. */
static ls_cached *cached_for(ls_group *g, const ls_call *c, ls_in_place p) {
    ls_cached *oldest = NULL;
    for (int i = 0; i < LS_CACHE; i++) {
        ls_cached *x = &g->cache[i];
        if (x->busy) continue;
        if (x->made && alike(g, x, c, p)) return x;
        if (!oldest || x->used < oldest->used) oldest = x;
    }
    if (oldest) make_cached(g, oldest, c, p);
    return oldest;
}

/* ---- starting ---- */

static void link_request(ls_group *g, ls_request *r) {
    ls_request **end = &g->first;
    while (*end) end = &(*end)->next;
    *end = r;
}

static void unlink_request(ls_group *g, ls_request *r) {
    ls_request **link = &g->first;
    while (*link && *link != r) link = &(*link)->next;
    if (*link) *link = r->next;
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

/* The transport and the group know r no more. */
static void abandon(ls_request *r) {
    ls_endpoint *p = r->g->end;
    pthread_mutex_lock(&p->lock);
    if (p->net) p->net->ops->forget(p->net, r);
    unlink_flying(p, r);
    pthread_mutex_unlock(&p->lock);
    unlink_request(r->g, r);
}

static ls_status start_flight(ls_group *g, const void *in, void *out, ls_in_place p, ls_request *r,
                              ls_error *e) {
    ls_endpoint *end = g->end;
    while (!(r->cached = cached_for(g, &r->call, p))) LS_TRY(ls_request_progress(g, e));
    ls_flight *f = &r->cached->flight;
    r->cached->busy = true;
    r->cached->used = g->counters.calls;
    f->owner = r;
    if (g->shared) ls_shared_note(g->shared, &r->call, r->number, r->print, r->file, r->line);
    if (end->net && end->net->ops->caps & LS_NET_ASK) {
        ls_record record = record_of(r);
        end->net->ops->publish(end->net, g->id, &record, sizeof record);
    }
    ls_traffic t = ls_schedule_traffic(&r->cached->schedule);
    g->counters.messages_sent += t.messages;
    g->counters.bytes_sent += t.nbytes;
    pthread_mutex_lock(&end->lock);
    link_flying(end, r);
    ls_status s = ls_flight_start(f, in, out, (uint16_t)g->id, r->number % SINGLE, r->print, e);
    if (s == LS_OK && ls_flight_finished(f)) flight_ends(r);
    pthread_mutex_unlock(&end->lock);
    return s;
}

static ls_status start_native(ls_group *g, const void *in, void *out, ls_request *r, ls_error *e) {
    ls_endpoint *end = g->end;
    ls_native_call call = native_of(&r->call, in, out);
    r->native = true;
    r->message.owner = r;
    pthread_mutex_lock(&end->lock);
    link_flying(end, r);
    ls_status s = end->net->native->start(end->net, &call, &r->message, e);
    pthread_mutex_unlock(&end->lock);
    return s;
}

static ls_status wait_room(ls_group *g, ls_error *e);

ls_status ls_request_start(ls_group *g, const ls_call *c, const void *in, void *out, size_t nin,
                           size_t nout, ls_in_place p, ls_request *r, ls_error *e) {
    if (g->broken != LS_OK) return is_broken(g, e);
    bool shared = goes_shared(g);
    if (g->told) ls_choice_tell(g, c);
    if (shared && !ls_shared_room(g->shared)) LS_TRY(wait_room(g, e));
    *r = (ls_request){.g = g, .call = *c, .file = g->file, .line = g->line, .number = g->calls++};
    g->counters.calls++;
    r->print = print_of(g, c, r->number);
    link_request(g, r);
    ls_status s = LS_OK;
    if (shared)
        r->shared = ls_shared_start(g->shared, c, r->print, in, out, nin, nout, g->file, g->line);
    else if (goes_native(g, c))
        s = start_native(g, in, out, r, e);
    else
        s = start_flight(g, in, out, p, r, e);
    if (s == LS_OK) return LS_OK;
    abandon(r);
    return ls_group_break(g, e);
}

ls_status ls_request_start_message(ls_group *g, bool send, void *buf, size_t nbytes, int peer,
                                   ls_dtype dtype, ls_request *r, ls_error *e) {
    if (g->broken != LS_OK) return is_broken(g, e);
    ls_endpoint *end = g->end;
    uint32_t number = send ? g->sent[peer]++ : g->received[peer]++;
    *r = (ls_request){.g = g, .file = g->file, .line = g->line, .number = number};
    r->message_only = true;
    r->receives = !send;
    r->message = (ls_message){.peer = g->ranks[peer],
                              .tag = ls_net_tag((uint16_t)g->id, SINGLE, number),
                              .data = buf,
                              .nbytes = nbytes,
                              .print = (uint64_t)dtype,
                              .owner = r};
    g->counters.calls++;
    if (send) {
        g->counters.messages_sent++;
        g->counters.bytes_sent += nbytes;
    }
    link_request(g, r);
    pthread_mutex_lock(&end->lock);
    link_flying(end, r);
    ls_status s = send ? end->net->ops->send(end->net, &r->message, e)
                       : end->net->ops->recv(end->net, &r->message, e);
    pthread_mutex_unlock(&end->lock);
    if (s == LS_OK) return LS_OK;
    abandon(r);
    return ls_group_break(g, e);
}

/* ---- progress ---- */

/* Both ends see both records: the same line at both. */
static ls_status disagree(ls_group *g, const ls_record *mine, int other, const ls_record *theirs,
                          ls_error *e) {
    char a[256], b[256];
    bool first = g->rank < other;
    ls_record_text(first ? mine : theirs, a, sizeof a);
    ls_record_text(first ? theirs : mine, b, sizeof b);
    ls_fail(e, LS_EINVAL, "workers disagree: worker %d called %s; worker %d called %s",
            first ? g->rank : other, a, first ? other : g->rank, b);
    ls_group_break(g, e);
    /* Others may be about to ask this worker what it does, before it ends. */
    if (g->end->net && g->end->net->ops->caps & LS_NET_ASK)
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    return e->code;
}

/* A message of another call has come for r: what has its sender called? e says what is known
 * without asking. */
static ls_status explain(const ls_request *r, const ls_message *m, ls_error *e) {
    ls_group *g = r->g;
    ls_net *net = g->end->net;
    ls_record mine = record_of(r), theirs = {0};
    ls_peer_state peer;
    int member = 0;
    while (g->ranks[member] != m->peer) member++;
    /* A peer may also have been lost while the next step was posted. */
    if (e->code != LS_EINVAL || !(net->ops->caps & LS_NET_ASK) ||
        net->ops->ask(net, m->peer, g->id, &theirs, sizeof theirs, &peer, NULL) != LS_OK ||
        theirs.calls != mine.calls || theirs.print == mine.print)
        return e->code;
    return disagree(g, &mine, member, &theirs, e);
}

static ls_status message_done(const ls_message *m, ls_error *e) {
    ls_request *r = m->owner;
    if (r->native) {
        flight_ends(r);
        return LS_OK;
    }
    if (!r->message_only) {
        if (ls_flight_done(&r->cached->flight, m, e) != LS_OK) return explain(r, m, e);
        if (ls_flight_finished(&r->cached->flight)) flight_ends(r);
        return LS_OK;
    }
    bool other = r->receives && (m->their_nbytes != m->nbytes || m->their_print != m->print);
    if (other)
        ls_fail(e, LS_EINVAL, "recv from worker %d of %zu bytes of %s, but it sent %zu bytes of %s",
                m->peer, m->nbytes, ls_dtype_name((ls_dtype)m->print), m->their_nbytes,
                ls_dtype_name((ls_dtype)m->their_print));
    flight_ends(r);
    return other ? LS_EINVAL : LS_OK;
}

/* All flights of the endpoint; sleeps for timeout_ns at most where there is nothing to do. */
static ls_status fly(ls_endpoint *p, int64_t timeout_ns, ls_error *e) {
    bool worked = false;
    for (ls_request *r = p->flying, *next; r; r = next) {
        next = r->flying;
        bool did = false;
        if (!r->cached) continue;
        LS_TRY(ls_flight_work(&r->cached->flight, &did, e));
        worked = worked || did;
        if (ls_flight_finished(&r->cached->flight)) flight_ends(r);
    }
    if (!p->net) return LS_OK;
    ls_message *done = NULL;
    LS_TRY(p->net->ops->poll(p->net, worked ? 0 : timeout_ns, &done, e));
    while (done) {
        ls_message *next = done->next;
        LS_TRY(message_done(done, e));
        done = next;
    }
    return LS_OK;
}

static ls_status fly_locked(ls_group *g, int64_t timeout_ns, ls_error *e) {
    pthread_mutex_lock(&g->end->lock);
    ls_status s = g->end->flying ? fly(g->end, timeout_ns, e) : LS_OK;
    pthread_mutex_unlock(&g->end->lock);
    return s == LS_OK ? s : ls_group_break(g, e);
}

/* One look at every shared call, oldest first; those that are done leave the list. */
static bool step_shared(ls_group *g, const ls_request *wanted) {
    for (ls_request *r = g->first; r; r = r->next)
        if (r->shared && !r->done && ls_shared_step(g->shared, r->shared)) {
            if (r->shared->differs >= 0) return true;
            r->done = true;
        }
    return wanted && wanted->done;
}

ls_status ls_request_progress(ls_group *g, ls_error *e) {
    if (g->broken != LS_OK) return is_broken(g, e);
    if (g->shared) step_shared(g, NULL);
    return fly_locked(g, 0, e);
}

/* ---- what goes wrong ---- */

static const ls_commons_worker *worker_of(const ls_group *g, int member) {
    return ls_commons_worker_of(g->end->commons, g->end->local[g->ranks[member]]);
}

/* The other's record is of a later call where it did not wait: then it is of its kind, at least. */
static ls_status disagreement(ls_group *g, const ls_request *r, ls_error *e) {
    ls_record mine = record_of(r), theirs = ls_shared_record(g->shared, r->shared->differs);
    return disagree(g, &mine, r->shared->differs, &theirs, e);
}

static int flight_waits_for(const ls_group *g, const ls_request *r, int last);

static bool waits_for(const ls_group *g, const ls_request *r, int member) {
    if (r->shared) return ls_shared_late(g->shared, r->shared) == member;
    if (r->message_only) return g->ranks[member] == r->message.peer;
    return flight_waits_for(g, r, member - 1) == member;
}

/* Is a member that r waits for in another call, gone, or has it left? */
static ls_status check_member(ls_group *g, const ls_request *r, int member, ls_error *e) {
    ls_record mine = record_of(r), theirs = ls_shared_record(g->shared, member);
    if (!r->message_only && theirs.calls == mine.calls && theirs.print != mine.print)
        return disagree(g, &mine, member, &theirs, e);
    const ls_commons_worker *w = worker_of(g, member);
    int pid = atomic_load(&w->pid);
    bool left = atomic_load(&w->left);
    if (!left && (g->end->commons->threads || !pid || strcmp(ls_process_state(pid), "gone") != 0))
        return LS_OK;
    /* What it did before it ended counts: it may have come between the last look and its end. */
    LS_TRY(fly_locked(g, 0, e));
    if (step_shared(g, r) || r->done || !waits_for(g, r, member)) return LS_OK;
    char text[256];
    ls_record_text(&mine, text, sizeof text);
    ls_fail(e, LS_EPEER, "worker %d (pid %d) %s while worker %d waits for it in %s", member, pid,
            left ? "has left the group" : "is gone", g->rank, text);
    return ls_group_break(g, e);
}

/* A member that this flight waits for a message from, after `last`; -1: none. */
static int flight_waits_for(const ls_group *g, const ls_request *r, int last) {
    const ls_schedule *s = &r->cached->schedule;
    int found = -1;
    pthread_mutex_lock(&g->end->lock);
    for (int member = last + 1; member < g->size && found < 0; member++)
        for (int i = 0; i < s->nsteps && found < 0; i++)
            if (s->steps[i].kind == LS_STEP_RECV && s->steps[i].peer == member &&
                ls_flight_waits(&r->cached->flight, i))
                found = member;
    pthread_mutex_unlock(&g->end->lock);
    return found;
}

/* Of members with whom memory is shared. What one sent before it ended may still lie there: it is
 * polled for once more. */
static ls_status shared_health(ls_group *g, ls_request *r, ls_error *e) {
    for (ls_request *any = g->first; any; any = any->next)
        if (any->shared && !any->done && any->shared->differs >= 0) return disagreement(g, any, e);
    if (r->shared) {
        int late = ls_shared_late(g->shared, r->shared);
        return late < 0 || late == g->rank ? LS_OK : check_member(g, r, late, e);
    }
    int member = r->cached ? flight_waits_for(g, r, -1) : 0;
    while (r->message_only && g->ranks[member] != r->message.peer) member++;
    return member < 0 ? LS_OK : check_member(g, r, member, e);
}

static ls_status timed_out(ls_group *g, const ls_request *r, int64_t waited_ns, ls_error *e) {
    char text[256] = "a message", who[96] = "";
    ls_record mine = record_of(r);
    if (!r->message_only) ls_record_text(&mine, text, sizeof text);
    int late = r->shared ? ls_shared_late(g->shared, r->shared) : -1;
    int awaited = r->cached ? flight_waits_for(g, r, -1) : -1;
    if (awaited >= 0) snprintf(who, sizeof who, " for worker %d", awaited);
    if (late >= 0)
        snprintf(who, sizeof who, " for worker %d (pid %d), which has made %u calls", late,
                 atomic_load(&worker_of(g, late)->pid), ls_shared_record(g->shared, late).calls);
    ls_fail(e, LS_ETIMEOUT, "worker %d waited %.1f s%s in %s", g->rank, (double)waited_ns / 1e9,
            who, text);
    return ls_group_break(g, e);
}

/* Once, after report_ns: who is late in a call over shared memory. */
static void report_shared(const ls_group *g, const ls_request *r) {
    enum { MOST = 16 };
    ls_late late[MOST];
    int n = 0, missing = 0;
    char text[4096];
    for (int i = 0; i < g->size; i++) {
        if (ls_shared_has_come(g->shared, r->shared, i)) continue;
        missing++;
        if (n == MOST) continue;
        int pid = atomic_load(&worker_of(g, i)->pid);
        late[n++] = (ls_late){.rank = i,
                              .pid = pid,
                              .state = ls_process_state(pid),
                              .last = ls_shared_record(g->shared, i)};
    }
    if (!missing) return;
    ls_record call = record_of(r);
    ls_late_report(&call, (double)g->report_ns / 1e9, g->size, late, n, text, sizeof text);
    ls_log("%s", text);
}

static int next_to_ask(const ls_group *g, const ls_request *r, int last, bool all) {
    if (!all) return flight_waits_for(g, r, last);
    int next = last + 1 + (last + 1 == g->rank);
    return next < g->size ? next : -1;
}

/* Asks those who are late what they are doing. One in another call: all learn it. `report`: the
 * lines. */
static ls_status ask_late(ls_group *g, const ls_request *r, bool report, ls_error *e) {
    enum { MOST = 16 };
    ls_net *net = g->end->net;
    ls_record mine = record_of(r);
    ls_late late[MOST];
    int n = 0;
    for (int m = -1; n < MOST && (m = next_to_ask(g, r, m, report)) >= 0;) {
        ls_record theirs = {0};
        ls_peer_state peer = {0};
        ls_status s = net->ops->ask(net, g->ranks[m], g->id, &theirs, sizeof theirs, &peer, NULL);
        if (s == LS_OK && theirs.calls == mine.calls && theirs.print != mine.print)
            return disagree(g, &mine, m, &theirs, e);
        if (s == LS_OK && theirs.calls >= mine.calls) continue; /* it is on its way */
        late[n] = (ls_late){.rank = m, .pid = peer.pid, .last = theirs};
        late[n].state = peer.here       ? ls_process_state(peer.pid)
                        : s == LS_OK    ? "running"
                        : s == LS_EPEER ? "gone"
                                        : "not answering";
        late[n].unknown = s != LS_OK;
        late[n].last.waiting = 0;
        if (!peer.here) late[n].host = "on another host";
        n++;
    }
    if (!n || !report) return LS_OK;
    char text[4096];
    ls_late_report(&mine, (double)g->report_ns / 1e9, g->size, late, n, text, sizeof text);
    ls_log("%s", text);
    return LS_OK;
}

/* ---- waiting ---- */

typedef struct wait {
    ls_group *g;
    ls_request *r;
    ls_status status;
    ls_error *e;
} wait;

/* Is r done, or is there something to tell? */
static bool stirs(void *arg) {
    wait *w = arg;
    if (step_shared(w->g, w->r)) return true;
    if (atomic_load_explicit(&w->g->end->nflying, memory_order_relaxed))
        w->status = fly_locked(w->g, 0, w->e);
    return w->r->done || w->status != LS_OK;
}

static ls_status wait_slice(ls_group *g, ls_request *r, int64_t slice, ls_error *e) {
    wait w = {g, r, LS_OK, e};
    ls_endpoint *p = g->end;
    if (r->shared) {
        ls_bell *bell = &ls_commons_worker_of(p->commons, p->commons->rank)->bell;
        bool flying = atomic_load_explicit(&p->nflying, memory_order_relaxed) != 0;
        if (slice > MIXED_SLICE_NS && flying) slice = MIXED_SLICE_NS;
        ls_bell_wait(bell, stirs, &w, &p->patience, slice);
        return w.status;
    }
    bool mixed =
        (g->shared && g->first != r) || atomic_load_explicit(&p->users, memory_order_relaxed) > 1;
    if (g->shared) step_shared(g, NULL);
    return fly_locked(g, mixed && slice > MIXED_SLICE_NS ? MIXED_SLICE_NS : slice, e);
}

static bool has_room(void *arg) {
    wait *w = arg;
    bool stop = step_shared(w->g, NULL) || ls_shared_room(w->g->shared);
    if (!stop && atomic_load_explicit(&w->g->end->nflying, memory_order_relaxed))
        w->status = fly_locked(w->g, 0, w->e);
    return stop || w->status != LS_OK;
}

/* Nobody rings for room: it is looked for again soon. */
static ls_status wait_room(ls_group *g, ls_error *e) {
    ls_endpoint *p = g->end;
    ls_bell *bell = &ls_commons_worker_of(p->commons, p->commons->rank)->bell;
    int64_t start = ls_clock_ns(), looked = start;
    while (!ls_shared_room(g->shared)) {
        wait w = {g, NULL, LS_OK, e};
        ls_bell_wait(bell, has_room, &w, &p->patience, MIXED_SLICE_NS);
        LS_TRY(w.status);
        int64_t now = ls_clock_ns();
        if (now - looked < SLICE_NS) continue;
        looked = now;
        if (g->first) LS_TRY(shared_health(g, g->first, e));
        if (g->timeout_ns < 0 || now - start < g->timeout_ns) continue;
        ls_fail(e, LS_ETIMEOUT, "worker %d: other workers are %d calls behind", g->rank,
                LS_SHARED_SLOTS);
        return ls_group_break(g, e);
    }
    return LS_OK;
}

/* After a quarter of a second, half of one, one second: does somebody else make another call? After
 * report_ns: a report. `asked_p` counts. */
static ls_status look_into(ls_group *g, ls_request *r, int64_t waited, int *asked_p, ls_error *e) {
    static const int64_t at[] = {250000000, 500000000, 1000000000};
    const int report = 1000; /* no asking after it */
    bool ask = r->cached && g->end->net->ops->caps & LS_NET_ASK;
    if (*asked_p >= report) return LS_OK;
    if (g->report_ns >= 0 && waited >= g->report_ns) {
        *asked_p = report;
        if (r->shared) report_shared(g, r);
        return ask ? ask_late(g, r, true, e) : LS_OK;
    }
    if (*asked_p == 3 || waited < at[*asked_p]) return LS_OK;
    ++*asked_p;
    return ask ? ask_late(g, r, false, e) : LS_OK;
}

/* Most waits end in the first slice, without a look at the clock. */
static ls_status wait_long(ls_request *r, int64_t timeout_ns, bool own_limit, ls_error *e) {
    ls_group *g = r->g;
    int64_t limit = own_limit ? g->timeout_ns : timeout_ns, slice = SLICE_NS, waited = 0;
    int64_t start = limit >= 0 && limit < SLICE_NS ? ls_clock_ns() : 0;
    int asked = 0;
    if (limit >= 0 && limit < slice) slice = limit;
    for (;;) {
        LS_TRY(wait_slice(g, r, slice, e));
        if (r->done) return LS_OK;
        if (g->shared) LS_TRY(shared_health(g, r, e));
        if (!start) start = ls_clock_ns() - slice;
        waited = ls_clock_ns() - start;
        LS_TRY(look_into(g, r, waited, &asked, e));
        if (limit >= 0 && waited >= limit) break;
        slice = limit >= 0 && limit - waited < SLICE_NS ? limit - waited : SLICE_NS;
    }
    if (own_limit) return timed_out(g, r, waited, e);
    return ls_fail(e, LS_ETIMEOUT, "still in flight after %.3f s", (double)waited / 1e9);
}

ls_status ls_request_wait(ls_request *r, int64_t timeout_ns, bool own_limit, ls_error *e) {
    ls_group *g = r->g;
    ls_status s = LS_OK;
    if (!r->done) s = g->broken != LS_OK ? is_broken(g, e) : wait_long(r, timeout_ns, own_limit, e);
    if (s == LS_OK)
        unlink_request(g, r);
    else if (g->broken != LS_OK && !r->owned)
        abandon(r);
    return s;
}

void ls_request_close_all(ls_group *g) {
    while (g->first) {
        ls_request *r = g->first;
        abandon(r);
        if (r->owned) free(r);
    }
    for (int i = 0; i < LS_CACHE; i++) forget(&g->cache[i]);
}
