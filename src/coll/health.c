/* health.c - see health.h. */
#include "coll/health.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/tcp/watch.h"

static_assert(sizeof(ls_history) <= LS_WATCH_NBYTES, "the watch publishes a whole history");

static const int64_t CHECK_NS = 20 * 1000 * 1000;
/* Other workers are asked for the first time after this time, then after twice as long, and so
 * on. */
static const int64_t ASK_NS = 250 * 1000 * 1000;
/* Messages are assumed to arrive within this time. */
static const int64_t OUTRUN_NS = (int64_t)3 * 1000 * 1000 * 1000;
/* Time limits for all answers together. The last two are for reports and for what ends the group.
 * An answer takes a millisecond; the limits matter for workers that are stopped, or on a very busy
 * machine. */
static const int64_t ANSWER_NS = 200 * 1000 * 1000;
static const int64_t REASON_NS = 1000 * 1000 * 1000, NOTIFY_NS = (int64_t)2000 * 1000 * 1000;
/* The worker whose message belonged to another call knows what it called: it is given more time. */
static const int64_t SUSPECT_NS = (int64_t)10 * 1000 * 1000 * 1000;

static ls_watch *watch_of(const ls_group *g) { return g->end->net ? g->end->net->watch : NULL; }

/* ---- what this worker shows ---- */

static const ls_history *own(const ls_group *g) {
    return g->shared ? ls_shared_own(g->shared) : g->history;
}

static void publish(ls_group *g, const void *part, size_t nbytes) {
    const unsigned char *from = (const unsigned char *)g->history, *at = part;
    if (watch_of(g)) ls_watch_publish(watch_of(g), g->id, (size_t)(at - from), part, nbytes);
}

void ls_health_publish(ls_group *g, const ls_request *r) {
    if (g->shared) {
        ls_shared_note(g->shared, &r->record);
        return;
    }
    ls_history *h = g->history;
    const ls_request *oldest = g->first;
    while (oldest != r && (oldest->message_only || oldest->done)) oldest = oldest->next;
    ls_history_add(h, &r->record);
    h->done = oldest->number;
    publish(g, &h->last[r->number % LS_CALLS_REMEMBERED], sizeof *h->last);
    publish(g, h, offsetof(ls_history, last));
}

static int member_of(const ls_group *g, int rank) {
    int member = 0;
    while (g->ranks[member] != rank) member++;
    return member;
}

static ls_single single_of(const ls_request *r) {
    ls_single x = {.peer = member_of(r->g, r->message.peer), .line = r->site.line};
    x.nbytes = ls_message_reserved(&r->message);
    ls_record_set_file(x.file, r->site.file);
    return x;
}

void ls_health_waits(ls_group *g, const ls_request *r) {
    ls_waiting waiting = LS_WAITS_NOT;
    ls_single single = {0};
    if (r && r->message_only) {
        waiting = r->receives ? LS_WAITS_TO_RECEIVE : LS_WAITS_TO_SEND;
        single = single_of(r);
    } else if (r && r->number + 1 == own(g)->calls) {
        waiting = LS_WAITS_IN_CALL;
    }
    if (g->shared) {
        ls_shared_note_wait(g->shared, waiting, &single);
        return;
    }
    g->history->waiting = (uint32_t)waiting;
    g->history->single = single;
    publish(g, g->history, offsetof(ls_history, last));
}

static void text_of(const ls_request *r, char *text, size_t nbytes) {
    ls_single message = r->message_only ? single_of(r) : (ls_single){0};
    if (r->message_only)
        ls_single_text(&message, r->receives, text, nbytes);
    else
        ls_record_text(&r->record, text, nbytes);
}

/* ---- a group that is broken ---- */

static void set_broken(ls_group *g, ls_status code) {
    atomic_store(&g->broken, (int)code);
    if (g->end && g->end->net) atomic_store(&g->end->net->broken_over, true);
}

void ls_group_break(ls_group *g, int suspect, const ls_error *e) {
    ls_group_break_by(g, suspect, &(ls_miscount){0}, e);
}

void ls_group_break_by(ls_group *g, int suspect, const ls_miscount *m, const ls_error *e) {
    pthread_mutex_lock(&g->lock);
    if (!g->broken) {
        g->why = *e;
        if (e->code > LS_EPEER) g->why.code = LS_EBROKEN; /* a socket, memory for a message */
        g->suspect = suspect;
        g->miscount = *m;
        if (m->found) g->to_report = true;
        set_broken(g, g->why.code);
    }
    pthread_mutex_unlock(&g->lock);
}

/* Replaces the error that broke the group by its reason, or breaks the group. */
static void set_reason(ls_group *g, const ls_error *e) {
    pthread_mutex_lock(&g->lock);
    g->why = *e;
    set_broken(g, e->code);
    pthread_mutex_unlock(&g->lock);
}

/* ---- looking at members ---- */

typedef struct sight {
    int member, pid;
    bool awaited;      /* by a collective */
    bool here;         /* on this host */
    const char *state; /* of its process, before it was asked; NULL: unknown */
    ls_status status;  /* as of ls_inquiry */
    bool left;         /* it has closed its groups */
    ls_commons_absentee absent;
    bool known; /* its history is known */
    ls_history history;
    ls_news news;
} sight;

static sight read_page(const ls_group *g, int member) {
    const ls_commons_worker *w =
        ls_commons_worker_of(g->end->commons, g->end->local[g->ranks[member]]);
    sight x = {.member = member, .here = true};
    x.absent = ls_commons_absentee_of(g->end->commons, g->end->local[g->ranks[member]]);
    x.pid = atomic_load(&w->pid);
    x.left = atomic_load(&w->left);
    x.state = x.left || x.absent.pid ? "gone" : x.pid ? ls_process_state(x.pid) : "not here yet";
    x.known = true;
    ls_shared_history(g->shared, member, &x.history);
    if (x.history.group != g->identity) x.history = (ls_history){0}; /* it has not come yet */
    return x;
}

static void read_history(const ls_group *g, sight *x, const unsigned char *data) {
    memcpy(&x->history, data, sizeof x->history);
    x->known = x->history.group == g->identity;
}

static sight inspect_process(const ls_watch *w, int member, int rank) {
    sight x = {.member = member, .pid = ls_watch_pid(w, rank), .here = ls_watch_is_here(w, rank)};
    x.state = x.here ? ls_process_state(x.pid) : NULL;
    x.status = LS_ETIMEOUT;
    return x;
}

/* A worker that has left may have sent last words; they may still be on their way. */
static void read_last_words(const ls_group *g, ls_watch *w, sight *x) {
    unsigned char data[LS_WATCH_NBYTES];
    if (!ls_watch_find_last_words(w, g->id, g->ranks[x->member], data)) return;
    read_history(g, x, data);
    x->left = x->known;
}

/* Asks the workers that can answer: those that are not stopped. */
static void ask(const ls_group *g, ls_watch *w, sight *seen, int n, int64_t timeout_ns) {
    ls_inquiry *q = LS_NEW_ARRAY(ls_inquiry, (size_t)n);
    int nasked = 0;
    for (int i = 0; i < n; i++) {
        bool awaited = seen[i].awaited;
        seen[i] = inspect_process(w, seen[i].member, g->ranks[seen[i].member]);
        seen[i].awaited = awaited;
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
        read_history(g, &seen[i], answered->data);
    }
    free(q);
}

/* seen [n]: filled in for seen[i].member. */
static void look(const ls_group *g, sight *seen, int n, int64_t timeout_ns) {
    ls_watch *w = watch_of(g);
    if (!g->shared && w) ask(g, w, seen, n, timeout_ns);
    for (int i = 0; i < n && !g->shared && w; i++) read_last_words(g, w, &seen[i]);
    for (int i = 0; i < n && g->shared; i++) seen[i] = read_page(g, seen[i].member);
    for (int i = 0; i < n && !g->shared && !w; i++) seen[i].status = LS_ETIMEOUT;
}

static const char *state_of(const sight *x) {
    if (x->state) return x->state;
    return x->status == LS_OK ? "running" : x->status == LS_EPEER ? "gone" : "not answering";
}

/* Both ends see both histories, and report the same line. */
static void disagree(ls_group *g, int other, const ls_record *mine, const ls_record *theirs) {
    char a[256], b[256];
    bool first = g->rank < other;
    ls_error e;
    ls_record_text(first ? mine : theirs, a, sizeof a);
    ls_record_text(first ? theirs : mine, b, sizeof b);
    ls_fail(&e, LS_EDISAGREE, "workers disagree: worker %d called %s; worker %d called %s%s",
            first ? g->rank : other, a, first ? other : g->rank, b,
            ls_record_reads_as(mine, theirs)
                ? "; the blocks' counts, or the algorithms that they force "
                  "(LOCKSTEP_ALGORITHM), differ"
                : "");
    set_reason(g, &e);
    g->to_report = true;
}

/* Does a member's history differ from this worker's? */
static bool contradicts(ls_group *g, int member, const ls_history *theirs) {
    int64_t number = ls_history_differs(own(g), theirs);
    if (number < 0) return false;
    disagree(g, member, ls_history_call(own(g), (uint32_t)number),
             ls_history_call(theirs, (uint32_t)number));
    return true;
}

/* Has a member finished call r, in which this worker waits for it, so long ago that the member no
 * longer remembers which call that was? */
static bool has_outrun(ls_group *g, const ls_request *r, int member, const ls_history *theirs) {
    const ls_record *last = ls_history_call(theirs, theirs->calls - 1);
    bool is_done = theirs->done - r->number - 1 < UINT32_MAX / 2; /* numbers wrap around */
    char mine[256], text[256];
    ls_error e;
    if (theirs->group != g->identity || !is_done || ls_history_call(theirs, r->number) || !last)
        return false;
    ls_record_text(&r->record, mine, sizeof mine);
    ls_record_text(last, text, sizeof text);
    ls_fail(&e, LS_EDISAGREE,
            "workers disagree: worker %d called %s, and waits in it for worker %d, which is done "
            "with another call %u and has called %s since",
            g->rank, mine, member, r->number, text);
    set_reason(g, &e);
    g->to_report = true;
    return true;
}

/* "worker 1 (at train.c:40)"; the place is left out where its call is not known. */
static void put_member(char text[80], int member, const ls_history *h, uint32_t number) {
    const ls_record *r = ls_history_call(h, number);
    char place[64];
    if (r) ls_record_place(r, place, sizeof place);
    if (r)
        snprintf(text, 80, "worker %d (at %s)", member, place);
    else
        snprintf(text, 80, "worker %d", member);
}

/* Reports that counts differ. Both ends see both histories, and report the same line. */
static void counts_differ(ls_group *g, const ls_miscount *m, const ls_history *from,
                          const ls_history *to) {
    char a[80], b[80];
    ls_error e;
    put_member(a, m->from, from, m->number);
    put_member(b, m->to, to, m->number);
    ls_fail(
        &e, LS_EDISAGREE,
        "workers disagree in %s %s as call %u: %s sends %llu elements to %s, which expects %llu",
        ls_collective_name((ls_collective)(m->what % LS_NCALLS)), ls_dtype_name((ls_dtype)m->dtype),
        m->number, a, (unsigned long long)m->sent, b, (unsigned long long)m->expected);
    set_reason(g, &e);
    g->miscount = *m;
    g->to_report = true;
}

/* Reports that counts differ where all share memory: the pages of both ends have the places of the
 * calls. */
static void counts_on_pages_differ(ls_group *g, const ls_miscount *m) {
    sight from = read_page(g, m->from), to = read_page(g, m->to);
    counts_differ(g, m, &from.history, &to.history);
}

/* Does a member show that the group can't go on? */
static bool is_shown(ls_group *g, int member, const ls_history *theirs) {
    if (!g->shared || theirs->group != g->identity) return false;
    ls_miscount m = ls_shared_miscount(g->shared, member);
    bool good = m.found && m.from >= 0 && m.from < g->size && m.to >= 0 && m.to < g->size;
    if (good) counts_on_pages_differ(g, &m);
    return good;
}

/* Is x the other end of a count that differs? Then the report names the places of both calls. */
static bool miscounts(ls_group *g, const sight *x) {
    const ls_miscount *m = &g->miscount;
    if (!m->found || !x->known || x->history.group != g->identity) return false;
    if (x->member != (m->from == g->rank ? m->to : m->from)) return false;
    if (!ls_history_call(&x->history, m->number)) return false;
    counts_differ(g, m, m->from == g->rank ? own(g) : &x->history,
                  m->to == g->rank ? own(g) : &x->history);
    return true;
}

static void adopt_news(ls_group *g, const ls_news *news) {
    ls_error e;
    ls_fail(&e, LS_EDISAGREE, "%s", news->text);
    set_reason(g, &e);
}

/* Does the sight explain why the group can't go on? */
static bool explains(ls_group *g, const sight *x) {
    if (x->known && contradicts(g, x->member, &x->history)) return true;
    if (x->news.group != g->identity) return miscounts(g, x) || is_shown(g, x->member, &x->history);
    adopt_news(g, &x->news);
    return true;
}

static sight *all_others(const ls_group *g) {
    sight *seen = LS_NEW_ARRAY(sight, (size_t)g->size);
    for (int i = 0, n = 0; i < g->size; i++)
        if (i != g->rank) seen[n++].member = i;
    return seen;
}

/* Do the last words of workers that have left give the reason? */
static bool reason_in_last_words(ls_group *g, ls_watch *w) {
    unsigned n = ls_watch_nlast_words(w);
    bool found = false;
    if (g->shared || n == g->last_seen) return false;
    g->last_seen = n;
    for (int i = 0; i < g->size && !found; i++) {
        sight x = {.member = i};
        if (i != g->rank) read_last_words(g, w, &x);
        found = explains(g, &x);
    }
    return found;
}

/* Has another worker sent the reason? */
static bool reason_received(ls_group *g) {
    ls_watch *w = watch_of(g);
    ls_news news;
    if (!w) return false;
    if (!ls_watch_find_news(w, g->id, g->identity, &news)) return reason_in_last_words(g, w);
    adopt_news(g, &news);
    return true;
}

void ls_health_listen(ls_group *g) {
    if (!g->broken) reason_received(g);
}

void ls_health_leave(ls_group *g) {
    ls_error e;
    if (g->concluded || (g->suspect < 0 && (g->broken || !reason_received(g)))) return;
    ls_group_error(g, &e);
    ls_log("worker %d closes a group that is broken: %s", g->rank, e.msg);
}

/* A member for which no process answers has left, or is lost. What it sent before may still have to
 * be read. */
static bool await_last_words(ls_group *g, sight *x) {
    enum { LOOKS = 3 };
    ls_watch *w = watch_of(g);
    if (g->shared || !w || x->known || x->status != LS_EPEER) return false;
    for (int i = 0; i < LOOKS && !x->known; i++) {
        ls_request_poll(g, CHECK_NS);
        read_last_words(g, w, x);
    }
    return explains(g, x);
}

static void find_awaited(ls_group *, const ls_request *, bool *is);

/* Has a member for which this worker waits outrun it, and left? What that member sent has been
 * read. */
static bool was_outrun(ls_group *g, const sight *seen, int n) {
    const ls_request *r = g->first;
    bool found = false;
    while (r && (r->message_only || r->done || !r->cached)) r = r->next;
    if (!r) return false;
    bool *awaited = LS_NEW_ARRAY(bool, (size_t)g->size);
    find_awaited(g, r, awaited);
    for (int i = 0; i < n && !found; i++)
        found = awaited[seen[i].member] && seen[i].left &&
                has_outrun(g, r, seen[i].member, &seen[i].history);
    free(awaited);
    return found;
}

/* Does the worker whose message belonged to another call show which call that is? It published its
 * call before it sent the message. */
static bool suspect_explains(ls_group *g) {
    sight x = {.member = g->suspect};
    if (g->suspect < 0) return false;
    look(g, &x, 1, SUSPECT_NS);
    return explains(g, &x);
}

/* A worker is lost, or its message belonged to another call: perhaps two workers disagree, and one
 * of them has ended. The worker that reports the disagreement may have informed this one, and
 * ended, after this one's first look at the news. */
static void find_reason(ls_group *g) {
    if (reason_received(g) || suspect_explains(g)) return;
    int n = g->size - 1;
    sight *seen = all_others(g);
    bool found = false;
    look(g, seen, n, REASON_NS);
    for (int i = 0; i < n && !found; i++) found = explains(g, &seen[i]);
    for (int i = 0; i < n && !found; i++) found = await_last_words(g, &seen[i]);
    if (!found) found = was_outrun(g, seen, n);
    free(seen);
    if (!found) found = reason_received(g);
    if (!found && g->suspect >= 0) g->to_report = true; /* no worker was lost: inform all */
}

/* Sends the reason to all others before this worker ends, and stores it for those that ask. */
static void notify_all(ls_group *g) {
    ls_watch *w = watch_of(g);
    ls_news news = {.group = g->identity};
    int n = 0;
    if (g->shared && g->miscount.found) ls_shared_note_miscount(g->shared, &g->miscount);
    if (!w) return; /* all see the pages */
    snprintf(news.text, sizeof news.text, "%.500s", g->why.msg);
    ls_watch_store_news(w, g->id, &news);
    ls_inquiry *q = LS_NEW_ARRAY(ls_inquiry, (size_t)g->size);
    for (int i = 0; i < g->size; i++)
        if (i != g->rank) q[n++].rank = g->ranks[i];
    ls_watch_ask(w, g->id, &news, q, n, NOTIFY_NS);
    free(q);
}

ls_status ls_group_error(ls_group *g, ls_error *e) {
    if (g->concluded)
        return ls_fail(e, (ls_status)g->broken, "the group can only be closed, since: %s",
                       g->why.msg);
    g->concluded = true;
    if (g->broken == LS_EPEER || g->suspect >= 0) find_reason(g);
    if (g->to_report) notify_all(g);
    *e = g->why;
    return e->code;
}

/* ---- which members a call waits for ---- */

/* The lock: another thread may be stepping the group's shared calls. */
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
        const ls_coll_program *s = &r->cached->program;
        pthread_mutex_lock(&g->end->lock);
        for (int i = 0; i < s->nsteps && !r->done; i++)
            if ((s->steps[i].kind == LS_STEP_RECV || s->steps[i].kind == LS_STEP_SEND) &&
                ls_flight_waits(&r->cached->flight, i))
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
    return x->left || ended || x->absent.pid;
}

static void lost(ls_group *g, const ls_request *r, const sight *x) {
    char text[256] = "a call that is to begin", absent[128];
    const char *what = x->left ? "has left the group" : "is gone";
    int pid = x->absent.pid ? x->absent.pid : x->pid;
    ls_error e;
    if (r) text_of(r, text, sizeof text);
    if (x->absent.pid) what = ls_commons_absentee_text(&x->absent, absent);
    ls_fail(&e, LS_EPEER, "worker %d (pid %d) %s%s worker %d waits for it in %s", x->member, pid,
            what, x->absent.pid ? ";" : " while", g->rank, text);
    ls_group_break(g, -1, &e);
}

/* What a member did before it ended counts: it may have come between the last look and its end. */
static void check_awaited(ls_group *g, const ls_request *r) {
    int member = first_awaited(g, r);
    if (member < 0 || member == g->rank) return;
    sight x = read_page(g, member);
    if (!is_gone(g, &x)) return;
    ls_request_progress(g);
    if (!g->broken && !(r && r->done) && first_awaited(g, r) == member) lost(g, r, &x);
}

/* Both histories are on pages: a member's history is complete before the member is seen to have
 * come. */
void ls_health_differs(ls_group *g, const ls_request *r) {
    ls_history theirs;
    pthread_mutex_lock(&g->lock);
    int other = r->shared->differs;
    ls_miscount m = r->shared->miscount;
    pthread_mutex_unlock(&g->lock);
    if (m.found) {
        counts_on_pages_differ(g, &m);
        return;
    }
    ls_shared_history(g->shared, other, &theirs);
    if (contradicts(g, other, &theirs)) return;
    ls_error e;
    char text[256];
    ls_record_text(&r->record, text, sizeof text);
    ls_fail(&e, LS_EDISAGREE, "workers disagree: worker %d called %s; worker %d called another",
            g->rank, text, other);
    set_reason(g, &e);
}

static void check_pages(ls_group *g, const ls_request *r) {
    for (int i = 0; i < g->size && !g->broken; i++) {
        ls_history theirs;
        ls_shared_history(g->shared, i, &theirs);
        if (i != g->rank && !contradicts(g, i, &theirs)) is_shown(g, i, &theirs);
    }
    if (!g->broken) check_awaited(g, r);
}

/* ---- workers that are late ---- */

enum { LISTED = 16, ASKED = 4 };

static void list_late(ls_group *g, const ls_request *r, const sight *seen, int n) {
    bool *awaited = LS_NEW_ARRAY(bool, (size_t)g->size);
    ls_late late[LISTED];
    int nlate = 0;
    char what[320], heading[480], text[3800];
    find_awaited(g, r, awaited);
    /* Lists the members that have not come; if all have, those that this worker waits for. */
    for (int all_have_come = r->message_only; all_have_come < 2 && !nlate; all_have_come++)
        for (int i = 0; i < n && nlate < LISTED; i++) {
            const sight *x = &seen[i];
            bool is_late = !x->known || x->history.calls <= r->number;
            if (all_have_come ? !awaited[x->member] : !is_late) continue;
            late[nlate++] = (ls_late){.rank = x->member,
                                      .pid = x->pid,
                                      .not_joined = g->shared && !x->pid,
                                      .state = state_of(x),
                                      .host = x->here ? NULL : "on another host",
                                      .history = x->known ? &x->history : NULL};
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
    ls_log_lines(text);
}

/* seen: for a report of a call all members, else a few of those that r waits for, other ones each
 * time. A few suffice: if two workers disagree, both look. Returns their number. */
static int choose_members(ls_group *g, const ls_request *r, bool report, int64_t waited,
                          sight *seen) {
    bool *is = LS_NEW_ARRAY(bool, (size_t)g->size);
    int n = 0, most = report ? g->size : ASKED,
        first = report ? 0 : (int)(waited / ASK_NS % g->size);
    find_awaited(g, r, is);
    for (int k = 0; k < g->size && n < most; k++) {
        int i = (first + k) % g->size;
        if (i == g->rank || (!is[i] && (!report || r->message_only))) continue;
        seen[n].awaited = is[i] && !r->message_only;
        seen[n++].member = i;
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
    int n = choose_members(g, r, report, waited, seen);
    look(g, seen, n, report ? REASON_NS : ANSWER_NS);
    for (int i = 0; i < n && !g->broken; i++)
        if (!explains(g, &seen[i]) && seen[i].awaited && waited >= OUTRUN_NS)
            has_outrun(g, r, seen[i].member, &seen[i].history);
    if (report && !g->broken) list_late(g, r, seen, n);
    free(seen);
}

static void call_off(ls_group *g) {
    ls_error e;
    ls_fail(&e, LS_EABORT, "the program that started worker %d has called the group off", g->rank);
    ls_group_break(g, -1, &e);
}

void ls_health_check(ls_group *g, ls_request *r) {
    int64_t now = ls_clock_ns();
    if (!g->broken && ls_group_is_called_off(g)) call_off(g);
    if (g->broken || now - g->looked < CHECK_NS) return;
    g->looked = now;
    if (!reason_received(g) && g->shared) check_pages(g, r);
    if (g->broken || !r || r->done) return;
    if (!r->since) {
        r->since = now;
        r->next_look = ASK_NS;
    }
    look_into(g, r, now - r->since);
}

void ls_health_timed_out(ls_group *g, const ls_request *r, int64_t waited_ns) {
    char text[320] = "", awaited[96] = "";
    int late = r && r->message_only ? -1 : first_awaited(g, r);
    ls_error e;
    if (r) text_of(r, text, sizeof text);
    if (late >= 0) snprintf(awaited, sizeof awaited, " for worker %d", late);
    if (late >= 0 && g->shared) {
        sight x = read_page(g, late);
        if (x.pid)
            snprintf(awaited, sizeof awaited, " for worker %d (pid %d), which has made %u calls",
                     late, x.pid, x.history.calls);
        else
            snprintf(awaited, sizeof awaited, " for worker %d, which has not joined the group",
                     late);
    }
    ls_fail(&e, LS_ETIMEOUT, "worker %d waited %.1f s%s%s%s", g->rank, (double)waited_ns / 1e9,
            awaited, r ? " in " : ", to begin its next call", text);
    ls_group_break(g, -1, &e);
}
