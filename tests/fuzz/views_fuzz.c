/* views_fuzz.c - host protocol messages in sequences, to a host that leads and to one that follows:
 * JOIN, ENDED, REST, LEAVE, BEGIN, END, FINISH, OVER, with fields that are plausible, extreme, or
 * anything, between connections that are lost, time that passes, and workers that end.
 *
 * The first byte: does it lead, and may peers say any number, or are they honest about most? Then
 * events: a byte, and what it needs.
 */
#include <math.h>

#include "cluster/views.h"
#include "fuzz.h"

enum { MOST = 8, STEPS = 1000, PEERS = 4 };
static const int64_t S = 1000000000;

/* ---- the input ---- */

typedef struct input {
    const uint8_t *at, *end;
} input;

static uint8_t next(input *in) { return in->at < in->end ? *in->at++ : 0; }

static int64_t any(input *in) {
    uint64_t n = 0;
    for (int i = 0; i < 8; i++) n = n << 8 | next(in);
    return (int64_t)n;
}

/* Mostly small: the protocol is not to end at the first message. */
static int64_t number(input *in, int64_t usual) {
    static const int64_t edges[] = {
        0,         1,    -1,       INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, STEPS,
        STEPS + 1, MOST, MOST + 1, 65535,     65536,     1LL << 40, 1LL << 41, 1LL << 62};
    uint8_t how = next(in);
    if (how < 176) return usual;
    if (how < 240) return how & 15;
    if (how < 252) return edges[next(in) & 15];
    return any(in);
}

static void put_id(input *in, ls_view_id *id, ls_view_id now) {
    id->term = number(in, now.term);
    id->number = number(in, now.number);
}

static void put_note(input *in, ls_store_note *n, int64_t steps) {
    uint8_t odd = next(in);
    n->steps = number(in, steps);
    n->updates = odd & 1 ? number(in, 0) : 0;
    if (odd & 2) n->lr = (double)NAN;
    if (odd & 4) n->scaler.left = any(in);
    if (odd & 8) n->out.batch.count = (uint64_t)any(in);
    if (odd & 16) memset(&n->out.skipped, next(in), 1);
}

/* ---- the host ---- */

typedef struct host {
    ls_views *views;
    bool leads, runs, finishes, over;
    ls_view_id now; /* of the latest view; what peers go by */
    int64_t steps, time;
    int begun;
} host;

static void say(void *arg, int peer, const ls_saying *s) {
    (void)arg;
    FUZZ_CHECK(peer == LS_TO_LEADER || (peer >= 1 && peer < LS_HOSTS_MAX));
    FUZZ_CHECK(s->what >= LS_SAID_ALIVE && s->what <= LS_SAID_OVER && s->how <= LS_VIEW_FAILED);
    FUZZ_CHECK(memchr(s->text, 0, sizeof s->text));
    if (s->what != LS_SAID_BEGIN) return;
    FUZZ_CHECK(s->view.id.number > 0 && s->view.size >= 1 && s->view.size <= MOST);
    FUZZ_CHECK(s->view.first >= 0 && s->view.n >= 1 && s->view.first + s->view.n <= s->view.size);
    FUZZ_CHECK(s->view.nhosts >= 1 && s->view.nhosts <= LS_HOSTS_MAX);
    FUZZ_CHECK(s->view.steps >= -1 && s->view.steps <= STEPS);
}
static void drop(void *arg, int peer) {
    (void)arg;
    FUZZ_CHECK(peer == LS_TO_LEADER || (peer >= 1 && peer < LS_HOSTS_MAX));
}
static void meet(void *arg, ls_view *v) {
    (void)arg;
    snprintf(v->address, sizeof v->address, "10.0.0.1:7000");
}
static void begin(void *arg, const ls_view *v) {
    host *h = arg;
    FUZZ_CHECK(!h->runs && !h->finishes && !h->over);
    FUZZ_CHECK(v->n >= 1 && v->n <= MOST && v->size <= MOST && v->first >= 0);
    FUZZ_CHECK(v->first + v->n <= v->size && v->steps >= -1 && v->steps <= STEPS);
    h->runs = true;
    h->now = v->id;
    if (v->steps >= 0) h->steps = v->steps;
    h->begun++;
}
static void ask(void *arg, ls_asked what) {
    const host *h = arg;
    (void)what;
    FUZZ_CHECK(h->runs);
}
static void end(void *arg, const char *why) {
    const host *h = arg;
    (void)why;
    FUZZ_CHECK(h->runs);
}
static void finish(void *arg, const ls_store_note *note) {
    host *h = arg;
    FUZZ_CHECK(!h->runs && !h->finishes);
    FUZZ_CHECK(!note || (note->steps >= 1 && note->steps <= STEPS));
    h->finishes = true;
    if (note && note->steps > h->steps) h->steps = note->steps;
}
static void tell(void *arg, const char *line) {
    (void)arg;
    FUZZ_CHECK(strlen(line) < 128);
}
static void over(void *arg, ls_view_end how, const char *why) {
    host *h = arg;
    (void)why;
    FUZZ_CHECK(how == LS_VIEW_DONE || how == LS_VIEW_FAILED);
    h->over = true;
}
static const ls_views_ops ops = {.say = say,
                                 .drop = drop,
                                 .meet = meet,
                                 .begin = begin,
                                 .ask = ask,
                                 .end = end,
                                 .finish = finish,
                                 .tell = tell,
                                 .over = over};

/* ---- events ---- */

static void hear(host *h, input *in, int peer) {
    ls_saying s = {.term = number(in, 1)};
    uint8_t who = next(in);
    s.what = (uint32_t)(1 + next(in) % (who > 250 ? 255 : LS_SAID_OVER));
    s.how = (uint32_t)number(in, LS_VIEW_RENEWED);
    s.host = who > 200 ? who : (uint64_t)(peer + 2);
    s.nworkers = (int32_t)number(in, 2);
    s.kept.steps = number(in, h->steps);
    s.kept.unfinished = (int32_t)number(in, 0);
    s.kept.whole = (int32_t)number(in, 1);
    put_id(in, &s.kept.view, h->now);
    put_id(in, &s.kept.from, h->now);
    put_note(in, &s.kept.note, 0);
    put_note(in, &s.note, h->steps + 1);
    put_id(in, &s.view.id, h->now);
    if (s.what == LS_SAID_BEGIN) s.view.id.number = number(in, h->now.number + 1);
    s.view.steps = number(in, h->steps);
    s.view.nhosts = (int32_t)number(in, 2);
    s.view.size = (int32_t)number(in, 4);
    s.view.first = (int32_t)number(in, 2);
    s.view.n = (int32_t)number(in, 2);
    if (who == 255) memset(s.text, 'x', sizeof s.text);
    if (who == 254) memset(s.view.address, 'x', sizeof s.view.address);
    ls_views_hear(h->views, peer, &s);
}

/* All of this host's workers end, or its mender does. */
static void act(host *h, input *in) {
    ls_kept kept = {.steps = h->steps, .whole = next(in) & 1};
    if (h->runs) {
        h->runs = false;
        kept.note.steps = h->steps < STEPS ? h->steps + (next(in) & 1) : 0;
        ls_views_ended(h->views, (ls_view_end)(next(in) % (LS_VIEW_FAILED + 1)), "why", &kept,
                       next(in) % 3 + h->leads);
    } else if (h->finishes) {
        h->finishes = false;
        ls_views_finished(h->views, &kept);
    }
}

static void event(host *h, input *in) {
    uint8_t what = next(in);
    int peer = h->leads ? 1 + what / 16 % PEERS : LS_TO_LEADER;
    switch (what % 8) {
    case 0:
    case 1:
    case 2:
    case 3: hear(h, in, peer); break;
    case 4: act(h, in); break;
    case 5: ls_views_tick(h->views, h->time += S * (1 + what / 16)); break;
    case 6:
        if (what < 64)
            ls_views_lost(h->views, peer);
        else if (!h->leads)
            ls_views_linked(h->views);
        else if (what < 128)
            ls_views_scale(h->views, what % MOST + 1);
        break;
    default: /* its life, and the time that it takes */
        ls_views_hear(h->views, peer,
                      &(ls_saying){.what = LS_SAID_ALIVE, .term = 1, .host = (uint64_t)(peer + 2)});
        ls_views_tick(h->views, h->time += S);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    input in = {data, data + nbytes};
    uint8_t first = next(&in);
    host h = {.leads = first & 1, .now = {.term = 1}, .time = S};
    ls_views_config c = {.host = 1,
                         .nworkers = 2,
                         .least = 1 + (first >> 1 & 1),
                         .most = MOST,
                         .hosts = 1 + (first >> 2 & 1),
                         .silence_ns = 3 * S,
                         .gather_ns = 3 * S,
                         .end_ns = 30 * S,
                         .finish_ns = 60 * S,
                         .steps = STEPS,
                         .ops = &ops,
                         .arg = &h};
    h.views = ls_views_new(&c);
    ls_views_tick(h.views, h.time);
    ls_views_lead(h.views, 1, h.leads);
    if (!h.leads) ls_views_linked(h.views);
    while (in.at < in.end && !h.over) event(&h, &in);
    /* Peers that say no more hold nobody up: what this host does alone goes on. */
    static const uint8_t zeros[8] = {0};
    input none = {zeros, zeros};
    for (int i = 0; i < 100 && h.leads && !h.over && !h.runs; i++) {
        act(&h, &none);
        ls_views_tick(h.views, h.time += S);
    }
    FUZZ_CHECK(!h.leads || h.over || h.runs || c.hosts > 1);
    ls_views_free(h.views);
    return 0;
}
