/* supervisor.c - see supervisor.h: passes events to views.h, and carries out its orders. */
#include "cluster/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cluster/crew.h"
#include "cluster/links.h"
#include "cluster/reach.h"
#include "net/address.h"
#include "net/launch/stop.h"

/* A host that sends nothing for this many heartbeats is lost; fewer, and it may only be busy. */
enum { HOST_SILENCE = 3, MOST_FDS = 512 };
static const int64_t LOOK_NS = 50 * 1000 * 1000;
/* Two hosts that are cut from each other try again after this time, at the earliest. */
static const int64_t RETRY_NS = (int64_t)5 * 1000000000;
/* Killing workers takes no time; an update of many parameters may take minutes. */
static const int64_t END_NS = (int64_t)30 * 1000000000, FINISH_NS = (int64_t)600 * 1000000000;

typedef struct host {
    ls_supervisor *s;
    ls_launch_options *o;
    ls_launch_signals signals;
    int signal_fd;
    ls_crew crew;
    ls_views *views;
    ls_links *links; /* NULL: alone */
    ls_reach *reach; /* NULL: alone */
    ls_membership *membership;
    ls_leads leads; /* the leader, as last seen */
    char id[24];
    uint64_t number;  /* the id as a number */
    char listen[256]; /* the address at which its workers listen; "": none was given */
    char any[16];     /* this host is reached at several addresses: its workers listen at all */
    bool is_interrupted;
    int64_t first_ns;         /* of ls_stop_again() */
    int64_t stop_ns;          /* when the run was asked to stop */
    bool leaves;              /* this host does not lead, and was asked to leave */
    bool has_ended;           /* the crew has ended; views.h does not know it yet */
    bool finishes;            /* a step is being finished; views.h waits for it */
    ls_store_decided decided; /* to be finished */
    ls_view_end end;
    int64_t alone_ns;  /* since when there is no leader */
    int64_t idle_ns;   /* since when a host that leaves has nothing to do */
    int64_t run_steps; /* steps of the run, as the leader reported when it ended */
    bool over;
    ls_error error; /* code LS_OK: the run has ended well */
} host;

static void fail(host *h, const ls_error *e) {
    if (!h->over) h->error = *e;
    h->over = true;
}

/* ---- orders ---- */

/* Steps of the last view, which has ended well: all decided steps are complete. */
static int64_t last_step(const host *h) {
    ls_host_state k = {0};
    h->s->state(h->s->arg, &k);
    if (k.steps < 0) return INT64_MAX; /* no worker has started: the run was complete already */
    int64_t noted = k.decided.note.steps;
    return (noted > k.steps ? noted : k.steps) / h->s->changes;
}

/* A host reaches worker 0 at the address at which it has reached this host, if worker 0 listens at
 * all of them. */
static void set_address(const host *h, int peer, char address[LS_PLACE]) {
    ls_address a;
    struct sockaddr_storage at, its, own;
    if (ls_address_parse(address, &a, NULL) != LS_OK || !ls_address_numeric(&a, &at)) return;
    if (!ls_address_is_any(&at) || !ls_links_addresses(h->links, peer, &its, &own)) return;
    ls_address_set_port(&own, a.port);
    ls_address_text(&own, address, LS_PLACE);
}

/* A host that joins listens where the leading host knows it, as its workers do, nowhere else. */
static void open_reach(host *h, int leader) {
    struct sockaddr_storage its, own;
    char text[LS_PLACE];
    ls_address a;
    if (h->reach || !h->links || !ls_links_addresses(h->links, leader, &its, &own)) return;
    ls_address_text(&own, text, sizeof text);
    if (ls_address_parse(text, &a, NULL) == LS_OK) h->reach = ls_reach_open(a.host);
}

/* A run that ends reports its number of steps: hosts without workers in it can't know. */
static void send_message(void *arg, int peer, const ls_host_message *s) {
    host *h = arg;
    ls_host_message m = *s;
    if (s->what == LS_HOST_OVER) m.state.steps = last_step(h);
    if (s->what == LS_HOST_JOIN) open_reach(h, peer);
    if (s->what == LS_HOST_JOIN && h->reach)
        ls_reach_place(h->reach, m.view.address, sizeof m.view.address);
    if (s->what == LS_HOST_BEGIN) set_address(h, peer, m.view.address);
    if (h->links) ls_links_send(h->links, peer, &m);
}

static void drop(void *arg, int peer) {
    const host *h = arg;
    if (h->links) ls_links_drop(h->links, peer);
}

static void name_peer(const void *arg, int peer, char *text) {
    const host *h = arg;
    ls_links_name(h->links, peer, text);
}

static void meet(void *arg, ls_view *v) {
    host *h = arg;
    ls_error e = {0};
    struct sockaddr_storage at;
    ls_links_address(h->links, &at);
    const char *all = at.ss_family == AF_INET ? "0.0.0.0" : "::";
    snprintf(h->any, sizeof h->any, "%s", ls_address_is_any(&at) ? all : "");
    if (ls_socket_listen(&at, &h->o->listen_fd, &e) != LS_OK) {
        fail(h, &e);
        return;
    }
    ls_address_set_port(&at, ls_socket_port(h->o->listen_fd));
    ls_address_text(&at, v->address, sizeof v->address);
}

/* A host that listens at all its addresses is reached at the one by which the two supervisors are
 * connected. */
static void place(const void *arg, const int by_of[2], const char *said, char address[LS_PLACE]) {
    const host *h = arg;
    bool own = by_of[1] == LS_OWN_PEER;
    ls_address a;
    struct sockaddr_storage at, theirs, ours;
    char text[LS_PLACE];
    snprintf(text, sizeof text, "%s", said);
    if (own && h->reach) ls_reach_place(h->reach, text, sizeof text);
    address[0] = 0;
    if (ls_address_parse(text, &a, NULL) != LS_OK || !ls_address_numeric(&a, &at)) return;
    if (ls_address_is_any(&at)) {
        if (!ls_links_addresses(h->links, by_of[own ? 0 : 1], &theirs, &ours)) return;
        at = own ? ours : theirs;
        ls_address_set_port(&at, a.port);
    }
    ls_address_text(&at, address, LS_PLACE);
}

static void try_reach(void *arg, int32_t number, const char *address) {
    const host *h = arg;
    if (h->reach) ls_reach_try(h->reach, number, address);
}

static void log_view(const ls_view *v, int changes) {
    int64_t steps = v->steps < 0 ? 0 : v->steps / changes;
    char hosts[48] = "";
    if (v->id.number == 1 && v->nhosts == 1) return;
    if (v->nhosts > 1)
        snprintf(hosts, sizeof hosts, " on %d hosts, %d of them here", v->nhosts, v->n);
    if (v->id.number > 1 && v->steps < 0)
        ls_log(
            "view %lld: continuing from the newest checkpoint, if there is one, with %d worker%s%s",
            (long long)v->id.number, v->size, v->size == 1 ? "" : "s", hosts);
    else
        ls_log("view %lld: %s after step %lld, with %d worker%s%s", (long long)v->id.number,
               v->id.number == 1 ? "beginning" : "continuing", (long long)steps, v->size,
               v->size == 1 ? "" : "s", hosts);
}

/* Can the workers that rest continue where they are? */
static bool is_same(const host *h, const ls_view *v) {
    const ls_launch_options *o = h->o;
    ls_host_state now = {0};
    h->s->state(h->s->arg, &now);
    return ls_crew_rests(&h->crew) && !h->s->reshape && v->nhosts == 1 && o->size == 0 &&
           v->n == o->nworkers && v->steps >= 0 && v->steps == now.steps;
}

static ls_status start(host *h, const ls_view *v, ls_error *e) {
    bool same = is_same(h, v);
    if (!same) ls_crew_end(&h->crew, NULL);
    LS_TRY(h->s->resize(h->s->arg, v, same, e));
    h->s->view = *v;
    h->s->reshape = false;
    h->o->nworkers = v->n;
    h->o->first = v->first;
    h->o->size = v->nhosts > 1 ? v->size : 0;
    h->o->address = h->s->view.address;
    h->o->host = h->id;
    h->o->listen = h->any[0] && ls_views_leads(h->views) ? h->any : h->listen;
    log_view(v, h->s->changes);
    h->crew.stays = h->s->stays && v->nhosts == 1;
    LS_TRY(ls_crew_start(&h->crew, v->id.number, e));
    if (h->leaves) ls_crew_ask(&h->crew, LS_ASKED_LEAVE);
    if (h->s->stop) ls_crew_ask(&h->crew, LS_ASKED_STOP);
    return LS_OK;
}

static void begin(void *arg, const ls_view *v) {
    host *h = arg;
    ls_error e = {0};
    if (start(h, v, &e) == LS_OK) return;
    h->has_ended = true;
    h->end = LS_VIEW_FAILED;
    h->crew.error = e;
    snprintf(h->crew.cause, sizeof h->crew.cause, "%s", e.msg);
}

static void ask(void *arg, ls_asked what) {
    const host *h = arg;
    ls_crew_ask(&h->crew, what);
}

static void end(void *arg, const char *why) {
    host *h = arg;
    if (h->has_ended) return; /* it has just ended by itself */
    ls_crew_end(&h->crew, why);
    h->has_ended = true;
    h->end = LS_VIEW_ORDERED;
}

static void finish(void *arg, const ls_store_decided *d) {
    host *h = arg;
    h->finishes = true;
    h->decided = *d;
}

static void log_line(void *arg, const char *line) {
    (void)arg;
    ls_log("%s", line);
}

static void leave(host *h) {
    ls_log("this host has left the run");
    h->over = true;
}

/* A host that was asked to leave may still have seen the end of the run. */
static void end_well(host *h) {
    bool leads = ls_views_leads(h->views), here = leads || h->end == LS_VIEW_DONE;
    if (h->leaves && !here) {
        leave(h);
        return;
    }
    h->s->ended = leads ? last_step(h) : h->run_steps;
    if (!leads && h->s->ended == INT64_MAX)
        ls_log("the run is complete");
    else if (!leads)
        ls_log("the run has ended, after step %lld", (long long)h->s->ended);
}

static void over(void *arg, ls_view_end how, const char *why) {
    host *h = arg;
    ls_error e = {0};
    if (h->over) return;
    h->over = true;
    if (how == LS_VIEW_DONE) {
        end_well(h);
        return;
    }
    if (h->crew.error.code != LS_OK)
        e = h->crew.error;
    else
        ls_fail(&e, LS_EPEER, "%s", why);
    h->error = e;
}

static int fit(const void *arg, int n) {
    const host *h = arg;
    return h->s->fit(h->s->arg, n);
}

static const ls_views_ops ops = {.send = send_message,
                                 .drop = drop,
                                 .name = name_peer,
                                 .meet = meet,
                                 .fit = fit,
                                 .begin = begin,
                                 .ask = ask,
                                 .end = end,
                                 .finish = finish,
                                 .log = log_line,
                                 .place = place,
                                 .try_reach = try_reach,
                                 .over = over};

/* ---- the crew ---- */

static void report_ended(host *h) {
    ls_host_state state = {0};
    int staying = h->leaves ? 0 : ls_crew_staying(&h->crew);
    bool leads = ls_views_leads(h->views);
    bool whole = h->s->state(h->s->arg, &state);
    if (!whole && h->end > LS_VIEW_RENEWED && h->end < LS_VIEW_FAILED) h->end = LS_VIEW_STATELESS;
    if (leads && staying == 0) staying = 1;
    h->leaves = h->leaves || staying == 0;
    h->has_ended = false;
    char why[sizeof h->crew.cause];
    ls_views_ending x = {.how = h->end, .blames = LS_BLAMES_NONE, .why = h->crew.cause};
    if (h->o->size) x.blames = ls_crew_blames(&h->crew, why);
    if (x.blames != LS_BLAMES_NONE && h->end < LS_VIEW_CRASHED) x.why = why;
    ls_views_ended(h->views, &x, &state, staying);
}

static ls_status repair(void *arg, ls_error *e) {
    const host *h = arg;
    return h->s->repair(h->s->arg, &h->decided, e);
}

/* Returns false while the repair is running. */
static bool check_repair(host *h) {
    ls_status s = LS_OK;
    ls_error e = {0};
    ls_host_state state = {0};
    if (!ls_crew_repaired(&h->crew, repair, h, &s, &e)) return false;
    h->finishes = false;
    if (s != LS_OK) {
        fail(h, &e);
        return true;
    }
    h->s->state(h->s->arg, &state);
    ls_views_finished(h->views, &state);
    return true;
}

/* Where another host leads, the run goes on: LS_EABORT would say that steps are lost. */
static void fail_interrupted(host *h, bool leads) {
    ls_error e = {0};
    if (leads)
        ls_fail(&e, LS_EABORT, "interrupted twice: all workers were ended at once");
    else
        ls_fail(&e, LS_EPEER,
                "interrupted twice: the workers of this host were ended at once; the other hosts "
                "continue the run");
    fail(h, &e);
}

/* Signals that belong to the first one change nothing, also when the workers have ended already. */
static void on_signal(host *h, int number) {
    ls_error e = {0};
    bool ends = ls_stop_again(number, &h->first_ns), more = h->is_interrupted;
    h->is_interrupted = true;
    bool leads = ls_views_leads(h->views), runs = ls_crew_runs(&h->crew);
    if (ends) {
        fail_interrupted(h, leads);
    } else if (more) {
        return;
    } else if (leads && (runs || ls_views_size(h->views))) {
        h->stop_ns = ls_clock_ns();
        h->s->stop = true;
        ls_crew_ask(&h->crew, LS_ASKED_STOP);
    } else if (!leads && (runs || ls_views_size(h->views))) {
        if (!h->leaves)
            ls_log("this host leaves after the step in flight; interrupt again to end at once");
        h->leaves = true;
        ls_crew_ask(&h->crew, LS_ASKED_LEAVE);
    } else {
        h->s->unbegun = true;
        ls_fail(&e, LS_EABORT,
                "interrupted before the first step; start it again with the same command");
        fail(h, &e);
    }
}

static void check_crew(host *h, int64_t timeout_ns) {
    ls_launch_event ev;
    do {
        ev = ls_launch_wait(h->crew.l, &h->signals, timeout_ns);
        timeout_ns = 0;
        if (ev.what == LS_LAUNCH_SIGNAL) on_signal(h, ev.number);
        if (ls_crew_runs(&h->crew) && ls_crew_look(&h->crew, &ev, &h->end)) h->has_ended = true;
    } while (ev.what != LS_LAUNCH_QUIET && !h->over);
}

/* ---- other hosts ---- */

/* A step that takes too long is abandoned, and repeated when the run continues. */
static void check_stop(const host *h) {
    if (h->s->stop && (double)(ls_clock_ns() - h->stop_ns) / 1e9 >= h->s->stop_s)
        ls_crew_give_up(&h->crew);
}

/* Sleeps until there is an event. */
static void wait_for_any(const host *h) {
    struct pollfd fds[MOST_FDS];
    int n = ls_links_fds(h->links, fds, MOST_FDS - 1);
    fds[n++] = (struct pollfd){.fd = h->signal_fd, .events = POLLIN};
    poll(fds, (nfds_t)n, (int)(LOOK_NS / 1000000));
}

/* The leader has another config. A host that has state waits for a leader that matches. */
static void on_other(host *h) {
    ls_error e = {0};
    if (ls_views_size(h->views)) return;
    ls_fail(&e, LS_EINVAL, "%s: %s", h->leads.address, ls_links_trouble(h->links));
    fail(h, &e);
}

static void check_links(host *h) {
    ls_link_event ev;
    while (!h->over && ls_links_next(h->links, &ev)) {
        if (ev.what == LS_LINK_UP) ls_views_linked(h->views);
        if (ev.what == LS_LINK_OTHER) on_other(h);
        if (ev.what == LS_LINK_LOST) ls_views_lost(h->views, ev.peer);
        if (ev.what == LS_LINK_MESSAGE && ev.message.what == LS_HOST_OVER)
            h->run_steps = ev.message.state.steps;
        if (ev.what == LS_LINK_MESSAGE) ls_views_receive(h->views, ev.peer, &ev.message);
    }
}

static void check_reach(host *h) {
    int32_t number;
    bool reached;
    while (!h->over && h->reach && ls_reach_next(h->reach, &number, &reached))
        ls_views_tried(h->views, number, reached);
}

static void explain_no_leader(const host *h, char *text, size_t nbytes) {
    char trouble[256];
    const char *link = ls_links_trouble(h->links);
    ls_membership_trouble(h->membership, trouble, sizeof trouble);
    if (h->leads.term)
        snprintf(text, nbytes, "the leading host, %.200s, can't be reached (%.200s)",
                 h->leads.address, *link ? link : "it is silent");
    else
        snprintf(text, nbytes, "there is no leading host%s%.250s", *trouble ? ": " : "", trouble);
}

/* A host that comes when all is over: nobody leads a run that is complete. */
static bool end_complete(host *h) {
    bool in_vain = h->s->join && ls_views_size(h->views) == 0 && *ls_links_trouble(h->links);
    if (!in_vain || !h->s->complete(h->s->arg)) return false;
    h->s->ended = INT64_MAX;
    h->over = true;
    return true;
}

/* The leader does not come back: this host saves its state and ends the run, unless the run has
 * ended well while this host was away. */
static void end_alone(host *h) {
    ls_error e = {0}, why = {0};
    int64_t steps = 0;
    char leader[500];
    explain_no_leader(h, leader, sizeof leader);
    if (ls_views_size(h->views) == 0) {
        ls_fail(&e, LS_ETIMEOUT, "%s, for %.0f s", leader, h->s->rejoin_s);
    } else if (h->s->save(h->s->arg, &steps, &why) != LS_OK) {
        ls_fail(&e, LS_EPEER, "%s, and the run ends: %.200s", leader, why.msg);
    } else if (steps >= h->s->steps) {
        ls_log("%s; the run has ended, after step %lld", leader, (long long)steps);
        h->s->ended = steps;
        h->over = true;
        return;
    } else if (h->s->complete(h->s->arg)) { /* with fewer steps: its loss no longer fell */
        h->s->ended = INT64_MAX;
        h->over = true;
        return;
    } else {
        ls_fail(&e, LS_EPEER,
                "%s, for %.0f s: the run ends here with a checkpoint of step %lld; continue with "
                "--resume",
                leader, h->s->rejoin_s, (long long)steps);
    }
    fail(h, &e);
}

static void log_leads(const host *h, const ls_leads *now) {
    char trouble[256];
    ls_membership_trouble(h->membership, trouble, sizeof trouble);
    if (now->self)
        ls_log("this host leads now");
    else if (h->leads.self)
        ls_log("this host no longer leads: %s", *trouble ? trouble : "its lease has expired");
}

/* Does another host lead now? If that is not known, this host follows the old leader for as long as
 * it is connected: the leader knows when it has to stop. */
static void check_membership(host *h) {
    ls_leads now;
    ls_error e = {0};
    ls_membership_look(h->membership, &now);
    bool follows = ls_views_is_linked(h->views) && !h->leads.self;
    if (now.term == h->leads.term && now.self == h->leads.self) return;
    if (now.term == 0 && follows) return;
    if (h->s->etcd.endpoints) log_leads(h, &now);
    h->leads = now;
    if (h->links && ls_links_call(h->links, now.term && !now.self ? now.address : NULL, &e)) {
        fail(h, &e);
        return;
    }
    ls_views_lead(h->views, now.term, now.self);
}

static void look_for_leader(host *h) {
    int64_t now = ls_clock_ns();
    if (ls_views_leads(h->views) || ls_views_is_linked(h->views)) {
        h->alone_ns = 0;
    } else if (!h->alone_ns) {
        h->alone_ns = now;
    } else if (h->leaves) {
        leave(h);
    } else if (!end_complete(h) && !h->finishes &&
               (double)(now - h->alone_ns) / 1e9 > h->s->rejoin_s) {
        end_alone(h);
    }
}

/* A host in no view leaves at once; between two views it takes part in the next. */
static void check_leaving(host *h) {
    int64_t now = ls_clock_ns();
    if (!h->leaves || ls_crew_runs(&h->crew) || h->finishes || h->has_ended)
        h->idle_ns = 0;
    else if (!h->idle_ns)
        h->idle_ns = now;
    else if ((double)(now - h->idle_ns) / 1e9 > HOST_SILENCE * h->s->heartbeat_s)
        leave(h);
}

/* ---- the main loop ---- */

static void attend(host *h) {
    ls_supervisor *s = h->s;
    s->leads = ls_views_leads(h->views);
    s->attend(s->arg);
    if (s->wanted && s->wanted != s->view.size) ls_views_scale(h->views, s->wanted);
    s->wanted = 0;
    if (s->reshape && ls_crew_runs(&h->crew)) ls_crew_ask(&h->crew, LS_ASKED_RENEW);
}

static void turn(host *h) {
    ls_views_tick(h->views, ls_clock_ns());
    check_membership(h);
    if (h->links) {
        wait_for_any(h);
        check_links(h);
        check_reach(h);
    }
    check_crew(h, h->links ? 0 : h->finishes ? LOOK_NS / 50 : LOOK_NS);
    check_stop(h);
    if (h->has_ended && !h->over) report_ended(h);
    while (h->finishes && !h->over && check_repair(h)) {
    }
    if (h->over) return;
    attend(h);
    if (h->links) look_for_leader(h);
    if (!h->over) check_leaving(h);
}

static ls_status open_links(host *h, ls_error *e) {
    if (h->s->etcd.endpoints)
        LS_TRY(ls_membership_etcd(&h->s->etcd, &h->membership, e));
    else
        LS_TRY(ls_membership_embedded(h->s->join, &h->membership, e));
    if (!h->s->listen && !h->s->join) return LS_OK;
    ls_address at = {.host = ""};
    if (h->s->listen) LS_TRY(ls_address_parse(h->s->listen, &at, e));
    snprintf(h->listen, sizeof h->listen, "%s", at.host);
    LS_TRY(ls_links_open(h->s->listen, h->number, &h->s->admission, &h->links, e));
    const char *listens = getenv("LOCKSTEP_LISTEN"); /* for the workers of a host that joins */
    if (h->s->listen || listens)
        h->reach = ls_reach_open(*h->listen || !listens ? h->listen : listens);
    h->signal_fd = signalfd(-1, &h->signals.waited, SFD_CLOEXEC | SFD_NONBLOCK);
    if (h->s->hosts > 1) ls_log("waiting at %s for %d hosts", h->s->listen, h->s->hosts);
    return LS_OK;
}

static ls_status name_host(host *h, ls_error *e) {
    if (getrandom(&h->number, sizeof h->number, 0) != (ssize_t)sizeof h->number)
        return ls_fail(e, LS_EIO, "no random numbers: %s", strerror(errno));
    snprintf(h->id, sizeof h->id, "%016llx", (unsigned long long)h->number);
    return LS_OK;
}

ls_status ls_supervisor_run(ls_supervisor *s, ls_launch_options *o, ls_error *e) {
    host h = {.s = s, .o = o, .signal_fd = -1};
    ls_launch_hold(&h.signals);
    h.crew = (ls_crew){.o = o, .signals = &h.signals, .heartbeat_s = s->heartbeat_s};
    s->board = o->board;
    s->ended = -1;
    ls_status status = name_host(&h, e);
    if (status == LS_OK) status = open_links(&h, e);
    ls_views_config c = {.host = h.number,
                         .nworkers = o->nworkers,
                         .least = s->least,
                         .most = s->most,
                         .hosts = s->hosts,
                         .silence_ns = (int64_t)(HOST_SILENCE * s->heartbeat_s * 1e9),
                         .gather_ns = (int64_t)(HOST_SILENCE * s->heartbeat_s * 1e9),
                         .end_ns = END_NS + (int64_t)(HOST_SILENCE * s->heartbeat_s * 1e9),
                         .finish_ns = FINISH_NS,
                         .retry_ns = RETRY_NS,
                         .steps = s->steps * s->changes,
                         .ops = &ops,
                         .arg = &h};
    h.views = ls_views_new(&c);
    if (status == LS_OK) {
        if (s->begun && s->etcd.endpoints) ls_views_begun(h.views);
        while (!h.over) turn(&h);
        ls_crew_end(&h.crew, NULL);
        status = h.error.code;
        if (status != LS_OK) *e = h.error;
        if (status != LS_OK && !e->msg[0]) /* nobody else would */
            ls_fail(e, status, "the run has ended by an error that no worker has reported (%s)",
                    ls_status_name(status));
    }
    ls_views_free(h.views);
    ls_links_close(h.links);
    ls_reach_close(h.reach);
    ls_membership_close(h.membership);
    if (h.signal_fd >= 0) close(h.signal_fd);
    ls_launch_release(&h.signals);
    return status;
}
