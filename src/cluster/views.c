/* views.c - see views.h: what every host does, whichever host leads. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/views_own.h"

bool ls_view_same(ls_view_id a, ls_view_id b) { return a.term == b.term && a.number == b.number; }

bool ls_views_lags(const ls_host_state *k, const ls_store_decided *d) {
    bool lags = d->note.steps > 0 && d->note.steps > k->steps;
    for (int i = 0; i < LS_PLAN_MAX_ISLANDS; i++)
        lags = lags || d->islands[i] > k->decided.islands[i];
    return lags;
}

/* ---- messages ---- */

static void queue_message(ls_views *v, int from, const ls_host_message *s) {
    ls_inbox *in = &v->inbox;
    int size = sizeof in->messages / sizeof *in->messages;
    assert(in->n < size);
    int at = (in->first + in->n++) % size;
    in->messages[at].from = from;
    in->messages[at].s = *s;
}

void ls_views_send(ls_views *v, int peer, ls_host_message *s) {
    s->term = v->term;
    s->host = v->c.host;
    if (peer == LS_TO_LEADER && v->leads)
        queue_message(v, LS_OWN_PEER, s);
    else if (peer == LS_OWN_PEER)
        queue_message(v, LS_TO_LEADER, s);
    else
        v->c.ops->send(v->c.arg, peer, s);
}

static void report(ls_views *v, ls_host_message_kind what, const ls_views_ending *x) {
    ls_host_message s = {.what = what, .nworkers = v->nworkers, .state = v->state};
    if (x) {
        s.how = x->how;
        s.about = x->blames;
        snprintf(s.text, sizeof s.text, "%s", x->why);
    }
    ls_views_send(v, LS_TO_LEADER, &s);
}

/* ---- orders of the leader ---- */

static void begin(ls_views *v, const ls_host_message *s) {
    if (v->crew != LS_CREW_RESTS || v->state.unfinished) return;
    v->view = s->view;
    v->state.view = s->view.id;
    v->state.steps = s->view.steps;
    v->state.scaler = s->view.scaler;
    v->state.unfinished = 1;
    v->state.decided = (ls_store_decided){0};
    v->crew = LS_CREW_RUNS;
    v->c.ops->begin(v->c.arg, &v->view);
}

static void end(ls_views *v, const char *why) {
    if (v->crew != LS_CREW_RUNS) return;
    v->crew = LS_CREW_ENDS;
    v->c.ops->end(v->c.arg, why);
}

static void finish(ls_views *v, const ls_host_message *s) {
    bool more = v->state.unfinished || ls_views_lags(&v->state, &s->decided);
    if (v->crew != LS_CREW_RESTS || !more || !ls_view_same(s->view.id, v->state.view)) return;
    v->crew = LS_CREW_FINISHES;
    v->state.unfinished = 1;
    v->state.decided = s->decided;
    v->c.ops->finish(v->c.arg, &s->decided);
}

static void carry_out(ls_views *v, const ls_host_message *s) {
    v->leader_ns = v->now;
    v->heard = true;
    if (s->what == LS_HOST_BEGIN) begin(v, s);
    if (s->what == LS_HOST_END && ls_view_same(s->view.id, v->view.id)) end(v, s->text);
    if (s->what == LS_HOST_FINISH) finish(v, s);
    if (s->what == LS_HOST_OUT) v->c.ops->log(v->c.arg, s->text);
    if (s->what == LS_HOST_TRY) v->c.ops->try_reach(v->c.arg, s->about, s->view.address);
    if (s->what != LS_HOST_OVER) return;
    v->over = true;
    v->c.ops->over(v->c.arg, s->how == LS_VIEW_DONE ? LS_VIEW_DONE : LS_VIEW_FAILED, s->text);
}

static void handle(ls_views *v, int from, const ls_host_message *s) {
    if (s->term != v->term) return;
    if (v->over) return;
    if (from == LS_TO_LEADER)
        carry_out(v, s);
    else if (v->leads)
        ls_leader_receive(v, from, s);
}

/* A host at rest introduces itself to a leader that does not know it yet. */
static void greet(ls_views *v) {
    if (!v->linked || v->joined || v->crew != LS_CREW_RESTS || v->over) return;
    v->joined = true;
    report(v, LS_HOST_JOIN, NULL);
}

/* After each event: handles the messages of this host to itself until there are none. */
static void settle(ls_views *v) {
    ls_inbox *in = &v->inbox;
    do {
        if (in->n) {
            int from = in->messages[in->first].from;
            ls_host_message s = in->messages[in->first].s;
            in->first = (in->first + 1) % (int)(sizeof in->messages / sizeof *in->messages);
            in->n--;
            handle(v, from, &s);
        }
        greet(v);
        if (v->leads && !v->over && in->n == 0) ls_leader_settle(v);
    } while (in->n);
}

/* ---- events ---- */

ls_views *ls_views_new(const ls_views_config *c) {
    ls_views *v = LS_NEW(ls_views);
    *v = (ls_views){.c = *c, .nworkers = c->nworkers, .state = {.steps = -1}};
    return v;
}

void ls_views_free(ls_views *v) { free(v); }

static void unlink_leader(ls_views *v, const char *why) {
    v->linked = v->joined = false;
    end(v, why);
}

void ls_views_lead(ls_views *v, int64_t term, bool self) {
    if (term == v->term && self == v->leads) return;
    for (int i = LS_OWN_PEER + 1; v->leads && i < v->leader.npeers; i++)
        if (v->leader.peers[i].phase != LS_PEER_ABSENT) v->c.ops->drop(v->c.arg, i);
    unlink_leader(v, self   ? "this host leads now"
                     : term ? "another host leads now"
                            : "no host leads now");
    v->inbox.n = 0; /* its messages are of another term */
    v->term = term;
    v->leads = self;
    v->linked = self;
    if (self) ls_leader_begin(v);
    settle(v);
}

void ls_views_begun(ls_views *v) { v->begun = true; }

void ls_views_linked(ls_views *v) {
    if (v->leads) return;
    v->linked = true;
    v->joined = v->heard = false;
    v->leader_ns = v->now;
    settle(v);
}

void ls_views_lost(ls_views *v, int peer) {
    if (peer != LS_TO_LEADER && v->leads)
        ls_leader_lost(v, peer, "its connection is lost");
    else if (peer == LS_TO_LEADER && !v->leads) /* otherwise an earlier leader was lost */
        unlink_leader(v, "the connection to the leading host is lost");
    settle(v);
}

static void refuse(ls_views *v, int peer, const char *why) {
    char line[128];
    v->c.ops->drop(v->c.arg, peer);
    if (peer == LS_TO_LEADER) {
        unlink_leader(v, "the leading host sent an impossible message");
        return;
    }
    snprintf(line, sizeof line, "it sent an impossible message: %s", why);
    ls_leader_lost(v, peer, line);
}

void ls_views_receive(ls_views *v, int peer, const ls_host_message *s) {
    const char *wrong = ls_host_message_wrong(&v->c, s, peer == LS_TO_LEADER);
    bool heard = peer == LS_TO_LEADER ? !v->leads : v->leads; /* otherwise from an earlier leader */
    if (wrong && heard)
        refuse(v, peer, wrong);
    else if (!wrong)
        handle(v, peer, s);
    settle(v);
}

static void check_leader(ls_views *v) {
    if (!v->linked || v->leads || v->now - v->leader_ns < v->c.silence_ns) return;
    v->c.ops->drop(v->c.arg, LS_TO_LEADER);
    unlink_leader(v, "the leading host is silent");
}

/* While this host was stopped, it received nothing: the others were not silent. */
static void be_patient(ls_views *v) {
    v->leader_ns = v->now;
    for (int i = 0; v->leads && i < v->leader.npeers; i++)
        v->leader.peers[i].heard_ns = v->leader.peers[i].ordered_ns = v->now;
}

void ls_views_tick(ls_views *v, int64_t now) {
    bool late = now - v->now > v->c.silence_ns / 2;
    v->now = now;
    if (late) be_patient(v);
    if (v->over) return;
    check_leader(v);
    if (v->leads) ls_leader_tick(v);
    if (v->linked && !v->leads && now - v->alive_sent_ns >= v->c.silence_ns / 4) {
        v->alive_sent_ns = now;
        /* A leader that did not know yet that it leads has ignored the JOIN of this host. */
        if (!v->heard && v->crew == LS_CREW_RESTS) v->joined = false;
        ls_views_send(v, LS_TO_LEADER, &(ls_host_message){.what = LS_HOST_ALIVE});
    }
    settle(v);
}

void ls_views_ended(ls_views *v, const ls_views_ending *x, const ls_host_state *state, int n) {
    v->state.steps = state->steps;
    v->state.scaler = state->scaler;
    v->state.decided = state->decided;
    if (state->whole) v->state.from = v->state.view;
    if (v->view.last.steps == state->steps) v->state.last = v->view.last;
    v->nworkers = n;
    v->crew = LS_CREW_RESTS;
    if (v->joined) report(v, LS_HOST_ENDED, x);
    settle(v);
}

void ls_views_finished(ls_views *v, const ls_host_state *state) {
    v->state.steps = state->steps;
    v->state.scaler = state->scaler;
    v->state.unfinished = 0;
    if (v->state.decided.note.steps == state->steps) v->state.last = v->state.decided.note;
    v->crew = LS_CREW_RESTS;
    if (v->joined) report(v, v->nworkers ? LS_HOST_REST : LS_HOST_LEAVE, NULL);
    settle(v);
}

void ls_views_tried(ls_views *v, int32_t number, bool reached) {
    ls_host_message s = {.what = LS_HOST_TRIED, .about = number};
    s.how = reached ? LS_VIEW_DONE : LS_VIEW_LOST;
    if (v->joined && !v->over) ls_views_send(v, LS_TO_LEADER, &s);
    settle(v);
}

void ls_views_scale(ls_views *v, int n) {
    v->leader.wanted = n;
    ls_views_renew(v);
}

void ls_views_renew(ls_views *v) {
    if (v->leads && v->leader.runs && v->crew == LS_CREW_RUNS)
        v->c.ops->ask(v->c.arg, LS_ASKED_RENEW);
}

bool ls_views_leads(const ls_views *v) { return v->leads; }
bool ls_views_is_linked(const ls_views *v) { return v->linked; }
int ls_views_size(const ls_views *v) { return v->view.size; }
bool ls_views_has_ended(const ls_views *v) { return v->over; }
