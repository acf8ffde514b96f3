/* views_host.h - a host of the protocol (views.h) without sockets or processes: it records its
 * orders, and checks that each one makes sense. The includer defines VIEWS_CHECK(condition).
 */
#ifndef LS_TEST_VIEWS_HOST_H
#define LS_TEST_VIEWS_HOST_H

#include <stdio.h>
#include <string.h>

#include "cluster/views.h"

typedef struct views_host {
    int most;      /* } as in the host's ls_views_config */
    int64_t steps; /* } */
    int group;     /* the number of workers of a view is a multiple of this; 0: any number */
    bool runs, finishes;
    int begins, ends, finishings, drops, overs, asks;
    int said[LS_HOSTS_MAX][LS_HOST_TRIED + 1];
    ls_host_message last[LS_HOSTS_MAX]; /* the last message to each peer, except ALIVE */
    int dropped;                        /* the latest peer that was dropped */
    ls_view view;                       /* the latest view */
    ls_store_decided decided;           /* what it had to finish in this view */
    char line[LS_HOST_TEXT];
    int tries; /* numbers of cuts that it was asked to try */
    int32_t tried;
} views_host;

static inline void views_host_check_peer(int peer) {
    VIEWS_CHECK(peer == LS_TO_LEADER || (peer >= 1 && peer < LS_HOSTS_MAX));
}

static inline void views_host_check_view(const views_host *h, const ls_view *v) {
    VIEWS_CHECK(v->id.number > 0 && v->size >= 1 && v->size <= h->most);
    VIEWS_CHECK(v->first >= 0 && v->n >= 1 && v->first + v->n <= v->size);
    VIEWS_CHECK(v->nhosts >= 1 && v->nhosts <= LS_HOSTS_MAX);
    VIEWS_CHECK(v->steps >= -1 && v->steps <= h->steps);
    VIEWS_CHECK(memchr(v->address, 0, sizeof v->address) != NULL);
}

static inline void views_host_send(void *arg, int peer, const ls_host_message *s) {
    views_host *h = arg;
    views_host_check_peer(peer);
    VIEWS_CHECK(s->what >= LS_HOST_ALIVE && s->what <= LS_HOST_TRIED && s->how <= LS_VIEW_FAILED);
    VIEWS_CHECK(memchr(s->text, 0, sizeof s->text) != NULL);
    if (s->what == LS_HOST_BEGIN) views_host_check_view(h, &s->view);
    if (peer == LS_TO_LEADER) peer = 0;
    h->said[peer][s->what]++;
    if (s->what != LS_HOST_ALIVE) h->last[peer] = *s;
}

static inline void views_host_drop(void *arg, int peer) {
    views_host *h = arg;
    views_host_check_peer(peer);
    h->drops++;
    h->dropped = peer;
}

static inline void views_host_name(const void *arg, int peer, char *text) {
    (void)arg;
    snprintf(text, LS_PEER_NAME, "10.0.0.%d:7000", peer);
}

static inline void views_host_meet(void *arg, ls_view *v) {
    (void)arg;
    snprintf(v->address, sizeof v->address, "10.0.0.1:7000");
}

static inline int views_host_fit(const void *arg, int n) {
    const views_host *h = arg;
    return h->group ? n - n % h->group : n;
}

static inline void views_host_begin(void *arg, const ls_view *v) {
    views_host *h = arg;
    VIEWS_CHECK(!h->runs && !h->finishes && !h->overs);
    views_host_check_view(h, v);
    h->runs = true;
    h->begins++;
    h->view = *v;
    h->decided = (ls_store_decided){0};
}

static inline void views_host_ask(void *arg, ls_asked what) {
    views_host *h = arg;
    (void)what;
    VIEWS_CHECK(h->runs);
    h->asks++;
}

static inline void views_host_end(void *arg, const char *why) {
    views_host *h = arg;
    VIEWS_CHECK(h->runs && (!why || strlen(why) < 256));
    h->ends++;
}

static inline void views_host_finish(void *arg, const ls_store_decided *d) {
    views_host *h = arg;
    VIEWS_CHECK(!h->runs && !h->finishes);
    VIEWS_CHECK(d->note.steps >= 0 && d->note.steps <= h->steps);
    for (int i = 0; i < LS_PLAN_MAX_ISLANDS; i++)
        VIEWS_CHECK(d->islands[i] >= 0 && d->islands[i] <= h->steps);
    h->finishes = true;
    h->finishings++;
    h->decided = *d;
}

static inline void views_host_log(void *arg, const char *line) {
    views_host *h = arg;
    VIEWS_CHECK(strlen(line) < LS_HOST_TEXT);
    snprintf(h->line, sizeof h->line, "%s", line);
}

static inline void views_host_over(void *arg, ls_view_end how, const char *why) {
    views_host *h = arg;
    VIEWS_CHECK(how == LS_VIEW_DONE || how == LS_VIEW_FAILED);
    VIEWS_CHECK(!why || strlen(why) < 256);
    h->overs++;
}

static inline void views_host_place(const void *arg, const int by_of[2], const char *said,
                                    char address[LS_PLACE]) {
    (void)arg;
    (void)said;
    snprintf(address, LS_PLACE, "10.0.%d.%d:7000", by_of[0], by_of[1]);
}

static inline void views_host_try(void *arg, int32_t number, const char *address) {
    views_host *h = arg;
    VIEWS_CHECK(strlen(address) < LS_PLACE);
    h->tries++;
    h->tried = number;
}

static const ls_views_ops views_host_ops = {.send = views_host_send,
                                            .drop = views_host_drop,
                                            .name = views_host_name,
                                            .meet = views_host_meet,
                                            .fit = views_host_fit,
                                            .begin = views_host_begin,
                                            .ask = views_host_ask,
                                            .end = views_host_end,
                                            .finish = views_host_finish,
                                            .log = views_host_log,
                                            .place = views_host_place,
                                            .try_reach = views_host_try,
                                            .over = views_host_over};

/* The host's workers have ended, or it has finished its step. */
static inline void views_host_ended(views_host *h, ls_views *v, ls_view_end how,
                                    const ls_host_state *k, int nworkers) {
    const ls_views_ending x = {.how = how, .why = "why"};
    h->runs = false;
    ls_views_ended(v, &x, k, nworkers);
}
static inline void views_host_finished(views_host *h, ls_views *v, const ls_host_state *k) {
    h->finishes = false;
    ls_views_finished(v, k);
}

#endif
