/* health.c - see health.h. */
#include "coll/health.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/watch.h"

static_assert(sizeof(ls_record) <= LS_WATCH_NBYTES, "it is published");

static const int64_t CHECK_NS = 20 * 1000 * 1000;
/* Others are asked for the first time after this, then at twice the time, ... */
static const int64_t ASK_NS = 250 * 1000 * 1000;
/* For all answers together. The last two are for reports and for what ends the group: those who
 * answer do it in a millisecond, the limits are for workers that are stopped or on a very busy
 * machine. */
static const int64_t ANSWER_NS = 200 * 1000 * 1000;
static const int64_t REASON_NS = 1000 * 1000 * 1000, TELL_NS = (int64_t)2000 * 1000 * 1000;

static ls_watch *watch_of(const ls_group *g) { return g->end->net ? g->end->net->watch : NULL; }

/* ---- what this worker shows ---- */

static ls_record record_of(const ls_request *r) {
    ls_record x = {.group = r->g->identity};
    ls_record_set(&x, &r->call, r->number, r->print, r->file, r->line);
    return x;
}

static void show(ls_group *g, const ls_record *x) {
    if (g->shared) ls_shared_note(g->shared, x);
    if (watch_of(g)) ls_watch_publish(watch_of(g), g->id, x, sizeof *x);
}

void ls_health_publish(ls_group *g, const ls_request *r) {
    g->record = record_of(r);
    show(g, &g->record);
}

static int member_of(const ls_group *g, int rank) {
    int member = 0;
    while (g->ranks[member] != rank) member++;
    return member;
}

static ls_single single_of(const ls_request *r) {
    ls_single x = {.peer = member_of(r->g, r->message.peer), .line = r->line};
    x.nbytes = r->message.nbytes;
    ls_record_set_file(x.file, r->file);
    return x;
}

void ls_health_waits(ls_group *g, const ls_request *r) {
    bool on_page = ls_goes_shared(g);
    ls_record x = on_page ? ls_shared_record(g->shared, g->rank) : g->record;
    x.waiting = LS_WAITS_NOT;
    if (r && r->message_only) {
        x.waiting = r->receives ? LS_WAITS_TO_RECEIVE : LS_WAITS_TO_SEND;
        x.single = single_of(r);
    } else if (r && r->number + 1 == x.calls) {
        x.waiting = LS_WAITS_IN_CALL;
    }
    show(g, &x);
}

static void text_of(const ls_request *r, char *text, size_t nbytes) {
    ls_single message = r->message_only ? single_of(r) : (ls_single){0};
    ls_record call = r->message_only ? (ls_record){0} : record_of(r);
    if (r->message_only)
        ls_single_text(&message, r->receives, text, nbytes);
    else
        ls_record_text(&call, text, nbytes);
}

/* ---- a group that is broken ---- */

void ls_group_break(ls_group *g, int suspect, const ls_error *e) {
    ls_group_break_by(g, suspect, &(ls_miscount){0}, e);
}

void ls_group_break_by(ls_group *g, int suspect, const ls_miscount *m, const ls_error *e) {
    pthread_mutex_lock(&g->lock);
    if (!g->broken) {
        g->why = *e;
        g->suspect = suspect;
        g->miscount = *m;
        if (m->found) g->to_tell = true;
        atomic_store(&g->broken, (int)e->code);
    }
    pthread_mutex_unlock(&g->lock);
}

/* What is known by now is not the reason. */
static void give_reason(ls_group *g, const ls_error *e) {
    pthread_mutex_lock(&g->lock);
    g->why = *e;
    atomic_store(&g->broken, (int)e->code);
    pthread_mutex_unlock(&g->lock);
}

/* ---- looking at members ---- */

typedef struct sight {
    int member, pid;
    bool here;         /* on this host */
    const char *state; /* of its process, before it was asked; NULL: not known */
    ls_status status;  /* as of ls_inquiry */
    bool left;         /* it has closed its groups */
    ls_record last;
    ls_news news;
} sight;

static sight look_at_page(const ls_group *g, int member) {
    const ls_commons_worker *w =
        ls_commons_worker_of(g->end->commons, g->end->local[g->ranks[member]]);
    sight x = {.member = member, .here = true};
    x.pid = atomic_load(&w->pid);
    x.left = atomic_load(&w->left);
    x.state = x.left ? "gone" : ls_process_state(x.pid);
    x.last = ls_shared_record(g->shared, member);
    return x;
}

static sight look_at_process(const ls_watch *w, int member, int rank) {
    sight x = {.member = member, .pid = ls_watch_pid(w, rank), .here = ls_watch_is_here(w, rank)};
    x.state = x.here ? ls_process_state(x.pid) : NULL;
    x.status = LS_ETIMEOUT;
    return x;
}

/* Asks those who may answer: one that is stopped does not. */
static void ask(const ls_group *g, ls_watch *w, sight *seen, int n, int64_t timeout_ns) {
    ls_inquiry *q = LS_NEW_ARRAY(ls_inquiry, (size_t)n);
    int nasked = 0;
    for (int i = 0; i < n; i++) {
        seen[i] = look_at_process(w, seen[i].member, g->ranks[seen[i].member]);
        bool stopped = seen[i].state && strncmp(seen[i].state, "stopped", 7) == 0;
        if (!stopped) q[nasked++].rank = g->ranks[seen[i].member];
    }
    ls_watch_ask(w, g->id, NULL, q, nasked, timeout_ns);
    for (int i = 0, k = 0; i < n && k < nasked; i++) {
        if (q[k].rank != g->ranks[seen[i].member]) continue;
        const ls_inquiry *answered = &q[k++];
        seen[i].status = answered->status;
        if (answered->status != LS_OK) continue;
        seen[i].news = answered->news;
        memcpy(&seen[i].last, answered->data, sizeof seen[i].last);
        if (seen[i].last.group != g->identity) seen[i].last = (ls_record){0};
    }
    free(q);
}

/* seen [n]: filled in for seen[i].member. */
static void look(const ls_group *g, sight *seen, int n, int64_t timeout_ns) {
    ls_watch *w = watch_of(g);
    if (!g->shared && w) ask(g, w, seen, n, timeout_ns);
    for (int i = 0; i < n && g->shared; i++) seen[i] = look_at_page(g, seen[i].member);
    for (int i = 0; i < n && !g->shared && !w; i++) seen[i].status = LS_ETIMEOUT;
}

static const char *state_of(const sight *x) {
    if (x->state) return x->state;
    return x->status == LS_OK ? "running" : x->status == LS_EPEER ? "gone" : "not answering";
}

/* The call of mine that this record contradicts; NULL: none. */
static const ls_request *contradicted(const ls_group *g, const ls_record *theirs) {
    if (theirs->group != g->identity || !theirs->calls) return NULL;
    for (const ls_request *r = g->first; r; r = r->next)
        if (!r->message_only && r->number + 1 == theirs->calls)
            return r->print != theirs->print ? r : NULL;
    return NULL;
}

/* Both ends see both records: the same line at both. */
static void disagree(ls_group *g, const ls_request *r, int other, const ls_record *theirs) {
    char a[256], b[256];
    bool first = g->rank < other;
    ls_record mine = record_of(r);
    bool look_alike = mine.what == theirs->what && mine.dtype == theirs->dtype &&
                      mine.op == theirs->op && mine.root == theirs->root &&
                      mine.count == theirs->count;
    ls_error e;
    ls_record_text(first ? &mine : theirs, a, sizeof a);
    ls_record_text(first ? theirs : &mine, b, sizeof b);
    ls_fail(&e, LS_EINVAL, "workers disagree: worker %d called %s; worker %d called %s%s",
            first ? g->rank : other, a, first ? other : g->rank, b,
            look_alike ? "; the blocks' counts, or the algorithms that they force, differ" : "");
    give_reason(g, &e);
    g->to_tell = true;
}

/* "worker 1 (at train.c:40)"; r is its last call: the place is left out where that is another. */
static void put_member(char text[80], int member, const ls_record *r, uint32_t number) {
    char place[64];
    if (r) ls_record_place(r, place, sizeof place);
    if (r && r->calls == number + 1)
        snprintf(text, 80, "worker %d (at %s)", member, place);
    else
        snprintf(text, 80, "worker %d", member);
}

/* Both ends see both records: the same line at both. */
static void counts_differ(ls_group *g, const ls_miscount *m, const ls_record *from,
                          const ls_record *to) {
    char a[80], b[80];
    ls_error e;
    put_member(a, m->from, from, m->number);
    put_member(b, m->to, to, m->number);
    ls_fail(
        &e, LS_EINVAL,
        "workers disagree in %s %s as call %u: %s sends %llu elements to %s, which expects %llu",
        ls_collective_name((ls_collective)(m->what % LS_NCALLS)), ls_dtype_name((ls_dtype)m->dtype),
        m->number, a, (unsigned long long)m->sent, b, (unsigned long long)m->expected);
    give_reason(g, &e);
    g->miscount = *m;
    g->to_tell = true;
}

/* Where all share memory, with the places on the pages of both ends. */
static void counts_on_pages_differ(ls_group *g, const ls_miscount *m) {
    ls_record from = ls_shared_record(g->shared, m->from);
    ls_record to = ls_shared_record(g->shared, m->to);
    counts_differ(g, m, from.group == g->identity ? &from : NULL,
                  to.group == g->identity ? &to : NULL);
}

/* Does a member show that the group can't go on? */
static bool is_shown(ls_group *g, int member, const ls_record *last) {
    if (!g->shared || last->group != g->identity) return false;
    ls_miscount m = ls_shared_miscount(g->shared, member);
    bool good = m.found && m.from >= 0 && m.from < g->size && m.to >= 0 && m.to < g->size;
    if (good) counts_on_pages_differ(g, &m);
    return good;
}

/* Is x the other end of a count that differs? Then it is told with the places of both calls. */
static bool miscounts(ls_group *g, const sight *x) {
    const ls_miscount *m = &g->miscount;
    const ls_request *r = g->first;
    if (!m->found || x->last.group != g->identity) return false;
    if (x->member != (m->from == g->rank ? m->to : m->from)) return false;
    while (r && (r->message_only || r->number != m->number)) r = r->next;
    if (!r || x->last.calls != m->number + 1) return false;
    ls_record mine = record_of(r);
    counts_differ(g, m, m->from == g->rank ? &mine : &x->last, m->to == g->rank ? &mine : &x->last);
    return true;
}

static void heed(ls_group *g, const ls_news *news) {
    ls_error e;
    ls_fail(&e, LS_EINVAL, "%s", news->text);
    give_reason(g, &e);
}

/* Does what was seen tell why the group can't go on? */
static bool explains(ls_group *g, const sight *x) {
    const ls_request *r = contradicted(g, &x->last);
    if (r)
        disagree(g, r, x->member, &x->last);
    else if (x->news.group == g->identity)
        heed(g, &x->news);
    else
        return miscounts(g, x) || is_shown(g, x->member, &x->last);
    return true;
}

static sight *all_others(const ls_group *g) {
    sight *seen = LS_NEW_ARRAY(sight, (size_t)g->size);
    for (int i = 0, n = 0; i < g->size; i++)
        if (i != g->rank) seen[n++].member = i;
    return seen;
}

/* Has another worker said why? */
static bool heard(ls_group *g) {
    ls_watch *w = watch_of(g);
    ls_news news;
    if (!w || !ls_watch_heard(w, g->id, g->identity, &news)) return false;
    heed(g, &news);
    return true;
}

/* A worker is lost, or its message was of another call: two may disagree, of whom one has ended.
 * Who tells it may have told this one, and ended, after the first look at the news. */
static void find_reason(ls_group *g) {
    if (heard(g)) return;
    int n = g->size - 1;
    sight *seen = all_others(g);
    bool found = false;
    look(g, seen, n, REASON_NS);
    for (int i = 0; i < n && !found; i++)
        found = seen[i].member == g->suspect && explains(g, &seen[i]);
    for (int i = 0; i < n && !found; i++) found = explains(g, &seen[i]);
    free(seen);
    if (!found) heard(g);
}

/* Whoever asks this worker, or lives, knows it when this worker ends. */
static void tell_all(ls_group *g) {
    ls_watch *w = watch_of(g);
    ls_news news = {.group = g->identity};
    int n = 0;
    if (g->shared && g->miscount.found) ls_shared_note_miscount(g->shared, &g->miscount);
    if (!w) return; /* they see the pages */
    snprintf(news.text, sizeof news.text, "%.500s", g->why.msg);
    ls_watch_keep(w, g->id, &news);
    ls_inquiry *q = LS_NEW_ARRAY(ls_inquiry, (size_t)g->size);
    for (int i = 0; i < g->size; i++)
        if (i != g->rank) q[n++].rank = g->ranks[i];
    ls_watch_ask(w, g->id, &news, q, n, TELL_NS);
    free(q);
}

ls_status ls_group_error(ls_group *g, ls_error *e) {
    if (g->concluded)
        return ls_fail(e, (ls_status)g->broken, "the group can only be closed, since: %s",
                       g->why.msg);
    g->concluded = true;
    if (g->broken == LS_EPEER || g->suspect >= 0) find_reason(g);
    if (g->to_tell) tell_all(g);
    *e = g->why;
    return e->code;
}

/* ---- who is waited for ---- */

/* Another thread may be at the group's shared calls. */
static int late_in_shared(ls_group *g, const ls_request *r) {
    pthread_mutex_lock(&g->lock);
    int member = r ? ls_shared_late(g->shared, r->shared) : ls_shared_behind(g->shared);
    pthread_mutex_unlock(&g->lock);
    return member;
}

/* is [size]: the members that r waits for. */
static void find_awaited(ls_group *g, const ls_request *r, bool *is) {
    memset(is, 0, (size_t)g->size * sizeof *is);
    if (r->shared) {
        int late = late_in_shared(g, r);
        for (int i = 0; i < g->size; i++)
            is[i] = i == late || !ls_shared_has_come(g->shared, r->shared, i);
    } else if (r->message_only) {
        is[member_of(g, r->message.peer)] = true;
    } else {
        const ls_schedule *s = &r->cached->schedule;
        pthread_mutex_lock(&g->end->lock);
        for (int i = 0; i < s->nsteps && !r->done; i++)
            if (s->steps[i].kind == LS_STEP_RECV && ls_flight_waits(&r->cached->flight, i))
                is[s->steps[i].peer] = true;
        pthread_mutex_unlock(&g->end->lock);
    }
    is[g->rank] = false;
}

/* The first of them; -1: none. */
static int first_awaited(ls_group *g, const ls_request *r) {
    if (!r && !g->shared) return -1;
    if (!r || r->shared) return late_in_shared(g, r);
    bool *is = LS_NEW_ARRAY(bool, (size_t)g->size);
    int member = 0;
    find_awaited(g, r, is);
    while (member < g->size && !is[member]) member++;
    free(is);
    return member < g->size ? member : -1;
}

/* ---- workers that are lost ---- */

static bool is_gone(const ls_group *g, const sight *x) {
    bool ended = !g->end->commons->threads && x->pid && strcmp(x->state, "gone") == 0;
    return x->left || ended;
}

static void lost(ls_group *g, const ls_request *r, const sight *x) {
    char text[256] = "a call that is to begin";
    ls_error e;
    if (r) text_of(r, text, sizeof text);
    ls_fail(&e, LS_EPEER, "worker %d (pid %d) %s while worker %d waits for it in %s", x->member,
            x->pid, x->left ? "has left the group" : "is gone", g->rank, text);
    ls_group_break(g, -1, &e);
}

/* What a member did before it ended counts: it may have come between the last look and its end. */
static void check_awaited(ls_group *g, const ls_request *r) {
    int member = first_awaited(g, r);
    if (member < 0 || member == g->rank) return;
    sight x = look_at_page(g, member);
    if (!is_gone(g, &x)) return;
    ls_request_progress(g);
    if (!g->broken && !(r && r->done) && first_awaited(g, r) == member) lost(g, r, &x);
}

void ls_health_differs(ls_group *g, const ls_request *r) {
    /* The other's record is of a later call where it did not wait: then it is of its kind, at
     * least. */
    pthread_mutex_lock(&g->lock);
    int other = r->shared->differs;
    ls_miscount m = r->shared->miscount;
    pthread_mutex_unlock(&g->lock);
    if (m.found) {
        counts_on_pages_differ(g, &m);
        return;
    }
    ls_record theirs = ls_shared_record(g->shared, other);
    disagree(g, r, other, &theirs);
}

static void check_pages(ls_group *g, const ls_request *r) {
    for (int i = 0; i < g->size && !g->broken; i++) {
        ls_record theirs = ls_shared_record(g->shared, i);
        const ls_request *mine = i == g->rank ? NULL : contradicted(g, &theirs);
        if (mine)
            disagree(g, mine, i, &theirs);
        else if (i != g->rank)
            is_shown(g, i, &theirs);
    }
    if (!g->broken) check_awaited(g, r);
}

/* ---- workers that are late ---- */

enum { LISTED = 16, ASKED = 4 };

static void list_late(ls_group *g, const ls_request *r, const sight *seen, int n) {
    bool *awaited = LS_NEW_ARRAY(bool, (size_t)g->size);
    ls_late late[LISTED];
    int nlate = 0;
    char what[320], heading[480], text[8000];
    find_awaited(g, r, awaited);
    /* Those who have not come. If all have, those that this worker waits for. */
    for (int all_have_come = r->message_only; all_have_come < 2 && !nlate; all_have_come++)
        for (int i = 0; i < n && nlate < LISTED; i++) {
            const sight *x = &seen[i];
            bool is_late = x->status != LS_OK || x->last.calls <= r->number;
            if (all_have_come ? !awaited[x->member] : !is_late) continue;
            late[nlate++] = (ls_late){.rank = x->member,
                                      .pid = x->pid,
                                      .state = state_of(x),
                                      .host = x->here ? NULL : "on another host",
                                      .unknown = x->status != LS_OK,
                                      .last = x->last};
        }
    free(awaited);
    if (!nlate) return;
    double s = (double)g->report_ns / 1e9;
    text_of(r, what, sizeof what);
    if (r->message_only)
        snprintf(heading, sizeof heading, "worker %d has waited %.0f s in %s:", g->rank, s, what);
    else
        snprintf(heading, sizeof heading,
                 "%d of %d workers have waited %.0f s in %s for the other%s:", g->size - nlate,
                 g->size, s, what, nlate == 1 ? "" : "s");
    ls_late_report(heading, late, nlate, text, sizeof text);
    ls_log("%s", text);
}

/* For a report of a call all, else some of those that r waits for, others each time. Some do: of
 * two that disagree both look. */
static int whom_to_look_at(ls_group *g, const ls_request *r, bool report, int64_t waited,
                           sight *seen) {
    bool *is = LS_NEW_ARRAY(bool, (size_t)g->size);
    int n = 0, most = report ? g->size : ASKED,
        first = report ? 0 : (int)(waited / ASK_NS % g->size);
    find_awaited(g, r, is);
    for (int k = 0; k < g->size && n < most; k++) {
        int i = (first + k) % g->size;
        if (i != g->rank && (is[i] || (report && !r->message_only))) seen[n++].member = i;
    }
    free(is);
    return n;
}

static void look_into(ls_group *g, ls_request *r, int64_t waited) {
    bool report = g->report_ns >= 0 && waited >= g->report_ns && !r->reported;
    bool ask = watch_of(g) && waited >= r->next_look;
    if (!report && !ask) return;
    if (ask) r->next_look = 2 * waited;
    if (report) r->reported = true;
    sight *seen = LS_NEW_ARRAY(sight, (size_t)g->size);
    int n = whom_to_look_at(g, r, report, waited, seen);
    look(g, seen, n, report ? REASON_NS : ANSWER_NS);
    for (int i = 0; i < n && !g->broken; i++) explains(g, &seen[i]);
    if (report && !g->broken) list_late(g, r, seen, n);
    free(seen);
}

static void call_off(ls_group *g) {
    ls_error e;
    ls_fail(&e, LS_EABORT, "who started worker %d has called the group off", g->rank);
    ls_group_break(g, -1, &e);
}

void ls_health_check(ls_group *g, ls_request *r) {
    int64_t now = ls_clock_ns();
    if (!g->broken && ls_group_is_called_off(g)) call_off(g);
    if (g->broken || now - g->looked < CHECK_NS) return;
    g->looked = now;
    if (!heard(g) && g->shared) check_pages(g, r);
    if (g->broken || !r || r->done) return;
    if (!r->since) {
        r->since = now;
        r->next_look = ASK_NS;
    }
    look_into(g, r, now - r->since);
}

void ls_health_timed_out(ls_group *g, const ls_request *r, int64_t waited_ns) {
    char text[320] = "", who[96] = "";
    int late = r && r->message_only ? -1 : first_awaited(g, r);
    ls_error e;
    if (r) text_of(r, text, sizeof text);
    if (late >= 0) snprintf(who, sizeof who, " for worker %d", late);
    if (late >= 0 && g->shared) {
        sight x = look_at_page(g, late);
        snprintf(who, sizeof who, " for worker %d (pid %d), which has made %u calls", late, x.pid,
                 x.last.calls);
    }
    ls_fail(&e, LS_ETIMEOUT, "worker %d waited %.1f s%s%s%s", g->rank, (double)waited_ns / 1e9, who,
            r ? " in " : ", to begin its next call", text);
    ls_group_break(g, -1, &e);
}
