/* leader.c - the leader's part of views.h. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cluster/views_own.h"

/* This number of views in a row that end before a step is complete ends the run. Crashes are the
 * workers' own fault; kills and hangs may be bad luck. */
enum { MOST_CRASHES = 3, MOST_LOSSES = 100, MOST_NEW_LOSSES = 10 };
enum { HOST_NAME = LS_PEER_NAME + 16 };
static const int64_t FIRST_NUMBERS = (int64_t)1 << 40, MOST_LEAP = 1 << 20;

static void log_line(const ls_views *v, const char *line) { v->c.ops->log(v->c.arg, line); }

/* The view ends on all hosts; those that still run it get END. */
static void fail_view(ls_views *v, ls_view_end how, const char *why) {
    ls_leader *l = &v->leader;
    if (!l->broken || how > l->end) {
        snprintf(l->why, sizeof l->why, "%s", why);
        l->end = how > l->end ? how : l->end;
    }
    l->broken = true;
}

/* "the host at 10.0.0.2:7000", as the others know it, or "the leading host". */
static void name_host(const ls_views *v, int peer, char text[HOST_NAME]) {
    char name[LS_PEER_NAME];
    snprintf(text, HOST_NAME, "the leading host");
    if (peer == LS_OWN_PEER) return;
    v->c.ops->name(v->c.arg, peer, name);
    snprintf(text, HOST_NAME, "the host at %s", name);
}

/* Fails the view because of a host. */
static void fail_view_of(ls_views *v, int peer, ls_view_end how, const char *why) {
    char name[HOST_NAME], line[sizeof v->leader.why];
    name_host(v, peer, name);
    if (peer == LS_OWN_PEER)
        snprintf(line, sizeof line, "%s", why);
    else
        snprintf(line, sizeof line, "%s: %.150s", name, why);
    fail_view(v, how, line);
}

/* ---- messages ---- */

static int64_t newest_number(const ls_views *v);

/* Can the host have been in these views? Numbers grow by one per view. A host that names a much
 * later view did not get the number from a leader of this run, and could exhaust the numbers. */
static bool is_possible(const ls_views *v, const ls_host_state *k) {
    int64_t newest = newest_number(v);
    int64_t most = (newest > FIRST_NUMBERS ? newest : FIRST_NUMBERS) + MOST_LEAP;
    return k->view.number <= most && k->from.number <= most;
}

/* A host joins. If it has another connection, that one is lost. */
static void add_peer(ls_views *v, int peer, const ls_host_message *s) {
    for (int i = 0; i < v->leader.npeers; i++)
        if (i != peer && v->leader.peers[i].phase != LS_PEER_ABSENT &&
            v->leader.peers[i].host == s->host) {
            v->c.ops->drop(v->c.arg, i);
            ls_leader_lost(v, i, "it has connected again");
        }
    ls_peer *p = &v->leader.peers[peer];
    *p = (ls_peer){.phase = s->state.unfinished ? LS_PEER_IS_ENDED : LS_PEER_RESTS,
                   .host = s->host,
                   .n = s->nworkers,
                   .heard_ns = v->now,
                   .state = s->state};
    snprintf(p->place, sizeof p->place, "%s", s->view.address);
}

/* Has a host not yet taken up the state of its first view? It has nothing that the others lack, and
 * what is wrong with it need not be wrong with them. */
static bool is_new(int peer, const ls_host_message *s) {
    return peer != LS_OWN_PEER && s->state.from.number == 0;
}

/* Is a new host to be sent away? One that crashes or is lost may have had bad luck, but not again
 * and again. */
static bool has_failed(ls_peer *p, const ls_host_message *s) {
    p->crashes += s->how == LS_VIEW_CRASHED;
    p->losses += s->how == LS_VIEW_LOST;
    return s->how == LS_VIEW_FAILED || p->crashes == MOST_CRASHES || p->losses == MOST_NEW_LOSSES;
}

/* The run is over for this host alone. */
static void send_away(ls_views *v, int peer, const ls_host_message *ended) {
    ls_host_message s = {.what = LS_HOST_OVER, .how = LS_VIEW_FAILED};
    snprintf(s.text, sizeof s.text, "%s", ended->text);
    char why[sizeof s.text];
    snprintf(why, sizeof why, "it is sent away: %.140s", ended->text);
    fail_view_of(v, peer, LS_VIEW_LOST, why);
    v->leader.peers[peer].phase = LS_PEER_ABSENT;
    ls_views_send(v, peer, &s);
}

static void note_end(ls_views *v, int peer, const ls_host_message *s) {
    ls_leader *l = &v->leader;
    ls_peer *p = &l->peers[peer];
    if (p->phase != LS_PEER_RUNS) return;
    if (is_new(peer, s) && has_failed(p, s)) {
        send_away(v, peer, s);
        return;
    }
    p->phase = LS_PEER_IS_ENDED;
    p->state = s->state;
    p->n = s->nworkers;
    ls_view_end how = p->how = (ls_view_end)s->how;
    p->blames = s->about;
    snprintf(p->why, sizeof p->why, "%.199s", s->text);
    if (how == LS_VIEW_CRASHED && is_new(peer, s)) how = LS_VIEW_LOST;
    if (how > LS_VIEW_ORDERED)
        fail_view_of(v, peer, how, s->text);
    else if (how == LS_VIEW_RENEWED && l->end == LS_VIEW_DONE)
        l->end = how;
}

/* A host has tried to reach the other one of a cut. */
static void note_tried(ls_views *v, const ls_host_message *s) {
    if (s->how == LS_VIEW_DONE && ls_partitions_reached(&v->leader.cuts, s->about, s->host))
        log_line(v, "two hosts whose workers could not reach each other can do so again");
}

void ls_leader_receive(ls_views *v, int peer, const ls_host_message *s) {
    assert(peer >= 0 && peer < LS_HOSTS_MAX);
    ls_peer *p = &v->leader.peers[peer];
    if (peer >= v->leader.npeers) v->leader.npeers = peer + 1;
    p->heard_ns = v->now;
    bool known = p->phase != LS_PEER_ABSENT && p->host == s->host;
    if (peer != LS_OWN_PEER && !is_possible(v, &s->state)) {
        v->c.ops->drop(v->c.arg, peer);
        ls_leader_lost(v, peer, "its views have impossible numbers");
        return;
    }
    if (s->what == LS_HOST_JOIN && !known) add_peer(v, peer, s);
    if (p->phase == LS_PEER_ABSENT || p->host != s->host) return;
    if (s->what == LS_HOST_ENDED) note_end(v, peer, s);
    if (s->what == LS_HOST_TRIED) note_tried(v, s);
    bool rests = s->what == LS_HOST_REST || s->what == LS_HOST_LEAVE;
    if (rests && p->phase != LS_PEER_FINISHES) return;
    if (rests) {
        p->phase = LS_PEER_RESTS;
        p->state = s->state;
    }
    bool leaves = s->what == LS_HOST_JOIN && !known && s->nworkers == 0 && !s->state.unfinished;
    if (s->what != LS_HOST_LEAVE && !leaves) return;
    p->phase = LS_PEER_ABSENT;
    ls_views_send(v, peer, &(ls_host_message){.what = LS_HOST_OVER, .how = LS_VIEW_DONE});
}

void ls_leader_lost(ls_views *v, int peer, const char *why) {
    ls_peer *p = &v->leader.peers[peer];
    bool ran = p->phase == LS_PEER_RUNS;
    char name[LS_PEER_NAME], line[256];
    if (p->phase == LS_PEER_ABSENT) return;
    p->phase = LS_PEER_ABSENT;
    v->c.ops->name(v->c.arg, peer, name);
    snprintf(line, sizeof line, "the host at %s is lost: %s", name, why);
    if (ran)
        fail_view(v, LS_VIEW_LOST, line);
    else
        log_line(v, line);
}

/* A host that is alive but does not carry out an order holds up all others. NULL: it does. */
static const char *why_stalled(const ls_views *v, const ls_peer *p) {
    int64_t since = v->now - p->ordered_ns;
    if (p->phase == LS_PEER_RUNS && p->end_sent && v->c.end_ns && since > v->c.end_ns)
        return "it does not end its view";
    if (p->phase == LS_PEER_FINISHES && v->c.finish_ns && since > v->c.finish_ns)
        return "it does not finish its step";
    return NULL;
}

static int find_peer(const ls_views *v, uint64_t host) {
    for (int i = 0; i < v->leader.npeers; i++) {
        const ls_peer *p = &v->leader.peers[i];
        if (p->phase != LS_PEER_ABSENT && p->host == host) return i;
    }
    return -1;
}

/* Asks both hosts of a cut to try whether they reach each other. If it can't be known where, the
 * next view tries. */
static void try_cut(ls_views *v) {
    ls_partition *c = ls_partitions_due(&v->leader.cuts, v->now, v->c.retry_ns);
    int peers[2] = {c ? find_peer(v, c->hosts[0]) : -1, c ? find_peer(v, c->hosts[1]) : -1};
    ls_host_message s[2] = {{.what = LS_HOST_TRY}, {.what = LS_HOST_TRY}};
    if (peers[0] < 0 || peers[1] < 0) return;
    for (int i = 0; i < 2; i++) {
        const int by_of[2] = {peers[i], peers[!i]};
        s[i].about = c->number;
        v->c.ops->place(v->c.arg, by_of, v->leader.peers[peers[!i]].place, s[i].view.address);
        c->open |= !s[i].view.address[0];
    }
    for (int i = 0; i < 2 && !c->open; i++) ls_views_send(v, peers[i], &s[i]);
}

void ls_leader_tick(ls_views *v) {
    try_cut(v);
    bool is_due = v->now - v->alive_sent_ns >= v->c.silence_ns / 4;
    if (is_due) v->alive_sent_ns = v->now;
    for (int i = LS_OWN_PEER + 1; i < v->leader.npeers; i++) {
        ls_peer *p = &v->leader.peers[i];
        if (p->phase == LS_PEER_ABSENT) continue;
        const char *why =
            v->now - p->heard_ns > v->c.silence_ns ? "it is silent" : why_stalled(v, p);
        if (why) {
            v->c.ops->drop(v->c.arg, i);
            ls_leader_lost(v, i, why);
        } else if (is_due) {
            ls_views_send(v, i, &(ls_host_message){.what = LS_HOST_ALIVE});
        }
    }
}

/* ---- a view ends ---- */

static bool any(const ls_views *v, int phase) {
    for (int i = 0; i < v->leader.npeers; i++)
        if ((int)v->leader.peers[i].phase == phase) return true;
    return false;
}

/* The run ends on all hosts. */
static void end_run(ls_views *v, ls_view_end how) {
    ls_host_message s = {.what = LS_HOST_OVER, .how = how};
    snprintf(s.text, sizeof s.text, "%s", v->leader.why);
    for (int i = v->leader.npeers - 1; i >= 0; i--) /* this host last */
        if (v->leader.peers[i].phase != LS_PEER_ABSENT) ls_views_send(v, i, &s);
}

/* Ends the view on all hosts that still run it. */
static void end_rest(ls_views *v) {
    for (int i = 0; i < v->leader.npeers; i++) {
        ls_peer *p = &v->leader.peers[i];
        if (p->phase != LS_PEER_RUNS || p->end_sent) continue;
        ls_host_message s = {.what = LS_HOST_END, .how = v->leader.end, .view = v->view};
        snprintf(s.text, sizeof s.text, "%s", v->leader.why);
        p->end_sent = true;
        p->ordered_ns = v->now;
        ls_views_send(v, i, &s);
    }
}

static bool was_in_view(const ls_views *v, const ls_peer *p) {
    return p->phase != LS_PEER_ABSENT && p->count && ls_view_same(p->state.view, v->view.id);
}

/* The host of a worker of the view that ends; -1: it is lost, or its own worker has failed, which
 * explains why another one lost it. */
static int find_blamed(const ls_views *v, int worker) {
    for (int i = 0; i < v->leader.npeers; i++) {
        const ls_peer *p = &v->leader.peers[i];
        if (!was_in_view(v, p) || worker < p->first || worker >= p->first + p->count) continue;
        return p->how <= LS_VIEW_ORDERED || p->blames != LS_BLAMES_NONE ? i : -1;
    }
    return -1;
}

/* Which workers could not reach each other in the view that ends? */
static void note_cuts(ls_views *v) {
    for (int i = 0; i < v->leader.npeers; i++) {
        const ls_peer *p = &v->leader.peers[i];
        if (!was_in_view(v, p) || p->blames <= LS_BLAMES_NONE) continue;
        int blamed = find_blamed(v, p->blames - 1);
        if (blamed < 0 || blamed == i) continue;
        const uint64_t by_of[2] = {p->host, v->leader.peers[blamed].host};
        ls_partitions_blame(&v->leader.cuts, by_of, p->why, v->now, v->c.retry_ns);
    }
}

/* No host runs the view any more. */
static void close_view(ls_views *v) {
    ls_leader *l = &v->leader;
    note_cuts(v);
    l->runs = false;
    l->from_checkpoint = l->end == LS_VIEW_STATELESS;
    l->crashes += l->end == LS_VIEW_CRASHED;
    l->losses += l->end == LS_VIEW_LOST;
    if (l->end == LS_VIEW_DONE || l->end == LS_VIEW_FAILED) end_run(v, l->end);
}

/* ---- between views ---- */

/* What was decided in the peer's view, as far as any host knows. */
static void find_decided(const ls_views *v, const ls_peer *of, ls_store_decided *d_p) {
    *d_p = (ls_store_decided){0};
    for (int i = 0; i < v->leader.npeers; i++) {
        const ls_peer *p = &v->leader.peers[i];
        if (p->phase == LS_PEER_ABSENT || !ls_view_same(p->state.view, of->state.view)) continue;
        const ls_store_decided *d = &p->state.decided;
        if (d->note.steps > d_p->note.steps) d_p->note = d->note;
        for (int k = 0; k < LS_PLAN_MAX_ISLANDS; k++)
            if (d->islands[k] > d_p->islands[k]) d_p->islands[k] = d->islands[k];
    }
}

/* Lets hosts finish what was decided in their view, but not while other hosts of the same view may
 * still decide more. A host that has finished it already does so again if there is more. */
static void finish_ended(ls_views *v) {
    for (int i = 0; i < v->leader.npeers; i++) {
        ls_peer *p = &v->leader.peers[i];
        if (v->leader.runs && ls_view_same(p->state.view, v->view.id)) continue;
        if (p->phase != LS_PEER_IS_ENDED && p->phase != LS_PEER_RESTS) continue;
        ls_host_message s = {.what = LS_HOST_FINISH, .view.id = p->state.view};
        find_decided(v, p, &s.decided);
        if (p->phase == LS_PEER_RESTS && !ls_views_lags(&p->state, &s.decided)) continue;
        p->phase = LS_PEER_FINISHES;
        p->ordered_ns = v->now;
        ls_views_send(v, i, &s);
    }
}

/* Can the host be in the next view? */
static bool is_ready(const ls_peer *p) { return p->phase == LS_PEER_RESTS && !p->out; }

/* The number of hosts at rest: of all, or of those that were in view `of`. */
static int resting(const ls_views *v, const ls_view_id *of) {
    int n = 0;
    for (int i = 0; i < v->leader.npeers; i++) {
        const ls_peer *p = &v->leader.peers[i];
        n += p->phase == LS_PEER_RESTS && (!of || ls_view_same(p->state.view, *of));
    }
    return n;
}

/* Workers of the first `at` hosts. If workers don't divide evenly, the first hosts have one
 * more. */
static int workers_before(int workers, int hosts, int at) {
    return (workers * at + hosts - 1) / hosts;
}

/* Takes workers from the hosts with the most, so that no host, with its part of the state, is left
 * out. */
static int trim(ls_views *v, int total) {
    int wanted = total < v->c.most ? total : v->c.most, most = v->c.ops->fit(v->c.arg, wanted);
    char line[128];
    if (most < wanted) {
        snprintf(line, sizeof line,
                 "%d workers instead of %d, among whom the model can't be divided", most, wanted);
        log_line(v, line);
    }
    for (; total > most; total--) {
        ls_peer *largest = &v->leader.peers[LS_OWN_PEER];
        for (int i = 0; i < v->leader.npeers; i++) {
            ls_peer *p = &v->leader.peers[i];
            if (is_ready(p) && p->n >= largest->n) largest = p;
        }
        if (largest->n == 1) return most; /* the last hosts wait */
        largest->n--;
    }
    return total;
}

/* Each host has at least one worker, since it may have state that no other has. */
static void raise_wanted(ls_views *v, int hosts) {
    ls_leader *l = &v->leader;
    char line[128];
    if (l->wanted == 0 || l->wanted >= hosts) return;
    snprintf(line, sizeof line, "%d workers instead of %d: each of %d hosts has at least one",
             hosts, l->wanted, hosts);
    log_line(v, line);
    l->wanted = hosts;
}

/* Decides how many workers each host has in the next view. Returns their sum. */
static int share_out(ls_views *v) {
    ls_leader *l = &v->leader;
    int hosts = 0, at = 0, total = 0;
    for (int i = 0; i < l->npeers; i++) hosts += is_ready(&l->peers[i]);
    raise_wanted(v, hosts);
    for (int i = 0; i < v->leader.npeers; i++) {
        ls_peer *p = &l->peers[i];
        if (!is_ready(p)) continue;
        if (l->wanted)
            p->n = workers_before(l->wanted, hosts, at + 1) - workers_before(l->wanted, hosts, at);
        at++;
        total += p->n;
    }
    if (total < v->c.least) {
        l->peers[LS_OWN_PEER].n += v->c.least - total;
        total = v->c.least;
    }
    return trim(v, total);
}

static bool is_newer(const ls_host_state *a, const ls_host_state *b) {
    if (a->steps < 0 || b->steps < 0) return a->steps > b->steps;
    if (a->from.term != b->from.term) return a->from.term > b->from.term;
    if (a->from.number != b->from.number) return a->from.number > b->from.number;
    return a->steps > b->steps;
}

/* all: also of hosts that are left out. */
static const ls_peer *newest_state(const ls_views *v, bool all) {
    const ls_peer *best = &v->leader.peers[LS_OWN_PEER];
    for (int i = 0; i < v->leader.npeers; i++) {
        const ls_peer *p = &v->leader.peers[i];
        bool counts = p->phase == LS_PEER_RESTS && (all || !p->out);
        if (counts && is_newer(&p->state, &best->state)) best = p;
    }
    return best;
}

static int64_t newest_number(const ls_views *v) {
    int64_t n = v->view.id.number;
    for (int i = 0; i < v->leader.npeers; i++) {
        const ls_peer *p = &v->leader.peers[i];
        if (p->phase != LS_PEER_ABSENT && p->state.view.number > n) n = p->state.view.number;
    }
    return n;
}

/* Are all hosts present that the first view, or a new leader, waits for? */
static bool is_gathered(const ls_views *v) {
    int64_t newest = newest_number(v);
    if (newest == 0 && !v->begun) return resting(v, NULL) >= v->c.hosts;
    bool first = v->leader.steps < -1; /* the first view of this leader */
    if (!first || v->now - v->leader.since_ns >= v->c.gather_ns) return true;
    bool own = newest > 0 && v->view.id.number == newest;
    return own && resting(v, &v->view.id) >= v->view.nhosts;
}

/* ---- hosts that are left out ---- */

/* Reports it, here and there, if the host does not know yet. */
static void leave_out(ls_views *v, int peer, int other, const ls_partition *c) {
    ls_peer *p = &v->leader.peers[peer];
    ls_host_message s = {.what = LS_HOST_OUT};
    char name[HOST_NAME], of[HOST_NAME], line[512];
    const char *const texts[2] = {name, "this host"};
    if (p->out) return;
    p->out = true;
    name_host(v, peer, name);
    name_host(v, other, of);
    for (int there = 0; there < 2; there++) {
        snprintf(
            line, sizeof line,
            "%s is left out until its workers and those of %s reach each other (see firewalls; "
            "LOCKSTEP_LISTEN sets another address): %s",
            texts[there], of, c->why);
        snprintf(s.text, sizeof s.text, "%.*s", LS_HOST_TEXT - 1, line);
        if (!there) log_line(v, s.text);
    }
    ls_views_send(v, peer, &s);
}

/* A host that is in a view, or may be in the next one, and that is cut from this one. */
static const ls_partition *find_cut(const ls_views *v, int peer, int *other_p) {
    const ls_leader *l = &v->leader;
    for (int i = 0; i < l->npeers; i++) {
        const ls_peer *p = &l->peers[i];
        bool counts = i == LS_OWN_PEER || p->phase == LS_PEER_RUNS || (!l->runs && is_ready(p));
        const ls_partition *c =
            counts && i != peer ? ls_partitions_find(&l->cuts, p->host, l->peers[peer].host) : NULL;
        *other_p = i;
        if (c) return c;
    }
    return NULL;
}

/* Decides which of the hosts at rest are not in the next view. */
static void choose_hosts(ls_views *v) {
    ls_leader *l = &v->leader;
    ls_partition_host hosts[LS_HOSTS_MAX];
    int peers[LS_HOSTS_MAX], n = 0, other;
    const ls_host_state *newest = &newest_state(v, true)->state;
    for (int i = 0; i < l->npeers; i++) {
        const ls_peer *p = &l->peers[i];
        if (p->phase != LS_PEER_RESTS) continue;
        hosts[n] = (ls_partition_host){.host = p->host, .workers = p->n};
        hosts[n].newest = !is_newer(newest, &p->state);
        peers[n++] = i;
    }
    ls_partitions_choose(&l->cuts, hosts, n);
    bool told[LS_HOSTS_MAX];
    for (int i = 0; i < n; i++) {
        told[i] = l->peers[peers[i]].out;
        l->peers[peers[i]].out = hosts[i].out;
    }
    for (int i = 0; i < n; i++) {
        if (!hosts[i].out || told[i]) continue;
        const ls_partition *c = find_cut(v, peers[i], &other);
        l->peers[peers[i]].out = !c;
        if (c) leave_out(v, peers[i], other, c);
    }
}

/* ---- a view begins ---- */

/* Forgets failures if more steps are complete than when the previous view began. */
static void count_progress(ls_views *v, int64_t steps) {
    ls_leader *l = &v->leader;
    if (steps > l->steps) l->crashes = l->losses = 0;
    l->steps = steps;
}

static void begin_view(ls_views *v) {
    ls_leader *l = &v->leader;
    const ls_host_state *state = &newest_state(v, false)->state;
    ls_host_message s = {.what = LS_HOST_BEGIN};
    s.view.id = (ls_view_id){v->term, newest_number(v) + 1};
    s.view.steps = l->from_checkpoint ? -1 : state->steps;
    s.view.scaler = state->scaler;
    if (state->last.steps == s.view.steps) s.view.last = state->last;
    s.view.size = share_out(v);
    for (int i = 0, at = 0; i < l->npeers; i++) {
        const ls_peer *p = &l->peers[i];
        if (!is_ready(p) || p->n == 0 || at == s.view.size) continue;
        at = at + p->n < s.view.size ? at + p->n : s.view.size;
        s.view.nhosts++;
    }
    if (s.view.nhosts > 1) v->c.ops->meet(v->c.arg, &s.view);
    l->runs = true;
    l->broken = l->asked = l->from_checkpoint = false;
    l->end = LS_VIEW_DONE;
    l->wanted = 0;
    for (int i = 0, at = 0; i < l->npeers && at < s.view.size; i++) {
        ls_peer *p = &l->peers[i];
        if (!is_ready(p) || p->n == 0) continue;
        s.view.first = at;
        s.view.n = p->n < s.view.size - at ? p->n : s.view.size - at;
        at += s.view.n;
        p->first = s.view.first;
        p->count = s.view.n;
        p->blames = LS_BLAMES_NONE;
        p->phase = LS_PEER_RUNS;
        p->end_sent = false;
        p->state.view = s.view.id;
        p->state.decided = (ls_store_decided){0};
        ls_views_send(v, i, &s);
    }
}

static bool is_given_up(ls_views *v) {
    ls_leader *l = &v->leader;
    if (l->crashes < MOST_CRASHES && l->losses < MOST_LOSSES) return false;
    char why[sizeof l->why];
    snprintf(why, sizeof why, "%.180s; given up after %d views without a complete step", l->why,
             l->crashes + l->losses);
    memcpy(l->why, why, sizeof why);
    end_run(v, LS_VIEW_FAILED);
    return true;
}

/* ---- orders that are due ---- */

/* A host that waits joins after the step in flight, unless it is cut from one of the view. */
static void let_in(ls_views *v) {
    ls_leader *l = &v->leader;
    int other;
    if (l->asked || v->view.size >= v->c.most) return;
    for (int i = 0; i < l->npeers && !l->asked; i++) {
        if (l->peers[i].phase != LS_PEER_RESTS || l->peers[i].n == 0) continue;
        const ls_partition *c = find_cut(v, i, &other);
        if (c) leave_out(v, i, other, c);
        l->asked = !c;
    }
    if (l->asked) v->c.ops->ask(v->c.arg, LS_ASKED_RENEW);
}

void ls_leader_begin(ls_views *v) {
    memset(&v->leader, 0, sizeof v->leader);
    v->leader.npeers = 1;
    v->leader.since_ns = v->now;
    v->leader.steps = -2;
}

void ls_leader_settle(ls_views *v) {
    ls_leader *l = &v->leader;
    if (l->runs && l->broken) end_rest(v);
    if (l->runs && !any(v, LS_PEER_RUNS)) close_view(v);
    finish_ended(v);
    if (l->runs && !l->broken && v->crew == LS_CREW_RUNS) let_in(v);
    if (v->inbox.n || l->runs || any(v, LS_PEER_IS_ENDED)) return;
    if (any(v, LS_PEER_FINISHES)) return;
    if (l->peers[LS_OWN_PEER].phase != LS_PEER_RESTS || v->over || !is_gathered(v)) return;
    choose_hosts(v);
    count_progress(v, newest_state(v, false)->state.steps);
    if (!is_given_up(v)) begin_view(v);
}
