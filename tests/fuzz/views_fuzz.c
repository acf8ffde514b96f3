/* views_fuzz.c - sequences of host protocol messages, to a host that leads and to one that follows:
 * JOIN, ENDED, REST, LEAVE, BEGIN, END, FINISH, OVER, with plausible, extreme and arbitrary fields;
 * between them connections are lost, time passes, and workers end.
 *
 * First byte of the input: bit 0 set: the host leads; bit 1: the fewest workers, bit 2: the
 * number of hosts. Then events: a byte, and the bytes that the event reads.
 */
#include <math.h>

#include "fuzz.h"

#define VIEWS_CHECK(condition) FUZZ_CHECK(condition)
#include "cluster/views_host.h"

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

/* Mostly the usual value or a small one, or the protocol would end at the first message. */
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
    n->update.updates = odd & 1 ? number(in, 0) : 0;
    if (odd & 2) n->update.lr = (double)NAN;
    if (odd & 4) n->scaler.left = any(in);
    if (odd & 8) n->out.batch.count = (uint64_t)any(in);
    if (odd & 16) memset(&n->out.skipped, next(in), 1);
}

/* ---- the host ---- */

typedef struct host {
    views_host o; /* first: the orders that it has received */
    ls_views *views;
    bool leads;
    int64_t time;
} host;

/* The latest view, which plausible messages name. */
static ls_view_id now_of(const host *h) {
    return h->o.begins ? h->o.view.id : (ls_view_id){.term = 1};
}

/* Steps that are complete, by the orders so far. */
static int64_t steps_of(const host *h) {
    int64_t taken = h->o.begins && h->o.view.steps > 0 ? h->o.view.steps : 0;
    return h->o.decided.note.steps > taken ? h->o.decided.note.steps : taken;
}

/* ---- events ---- */

static void receive(host *h, input *in, int peer) {
    ls_host_message s = {.term = number(in, 1)};
    ls_view_id now = now_of(h);
    int64_t steps = steps_of(h);
    uint8_t odd = next(in);
    s.what = (uint32_t)(1 + next(in) % (odd > 250 ? 255 : LS_HOST_OVER));
    s.how = (uint32_t)number(in, LS_VIEW_RENEWED);
    s.host = odd > 200 ? odd : (uint64_t)(peer + 2);
    s.nworkers = (int32_t)number(in, 2);
    s.state.steps = number(in, steps);
    s.state.unfinished = (int32_t)number(in, 0);
    s.state.whole = (int32_t)number(in, 1);
    put_id(in, &s.state.view, now);
    put_id(in, &s.state.from, now);
    put_note(in, &s.state.decided.note, 0);
    s.state.decided.islands[next(in) % LS_PLAN_MAX_ISLANDS] = number(in, steps);
    put_note(in, &s.decided.note, steps + 1);
    s.decided.islands[next(in) % LS_PLAN_MAX_ISLANDS] = number(in, steps);
    put_id(in, &s.view.id, now);
    if (s.what == LS_HOST_BEGIN) s.view.id.number = number(in, now.number + 1);
    s.view.steps = number(in, steps);
    s.view.nhosts = (int32_t)number(in, 2);
    s.view.size = (int32_t)number(in, 4);
    s.view.first = (int32_t)number(in, 2);
    s.view.n = (int32_t)number(in, 2);
    if (odd == 255) memset(s.text, 'x', sizeof s.text);
    if (odd == 254) memset(s.view.address, 'x', sizeof s.view.address);
    ls_views_receive(h->views, peer, &s);
}

/* All workers of this host end, or the process that repairs the state does. */
static void end_workers(host *h, input *in) {
    int64_t steps = steps_of(h);
    ls_host_state state = {.steps = steps, .whole = next(in) & 1};
    if (h->o.runs) {
        state.decided.note.steps = steps < STEPS ? steps + (next(in) & 1) : 0;
        ls_view_end how = (ls_view_end)(next(in) % (LS_VIEW_FAILED + 1));
        views_host_ended(&h->o, h->views, how, &state, next(in) % 3 + h->leads);
    } else if (h->o.finishes) {
        views_host_finished(&h->o, h->views, &state);
    }
}

static void event(host *h, input *in) {
    uint8_t what = next(in);
    int peer = h->leads ? 1 + what / 16 % PEERS : LS_TO_LEADER;
    switch (what % 8) {
    case 0:
    case 1:
    case 2:
    case 3: receive(h, in, peer); break;
    case 4: end_workers(h, in); break;
    case 5: ls_views_tick(h->views, h->time += S * (1 + what / 16)); break;
    case 6:
        if (what < 64)
            ls_views_lost(h->views, peer);
        else if (!h->leads)
            ls_views_linked(h->views);
        else if (what < 128)
            ls_views_scale(h->views, what % MOST + 1);
        break;
    default: /* a sign of life, and a second passes */
        ls_views_receive(
            h->views, peer,
            &(ls_host_message){.what = LS_HOST_ALIVE, .term = 1, .host = (uint64_t)(peer + 2)});
        ls_views_tick(h->views, h->time += S);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    input in = {data, data + nbytes};
    uint8_t first = next(&in);
    static host h;
    h = (host){.o = {.most = MOST, .steps = STEPS}, .leads = first & 1, .time = S};
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
                         .ops = &views_host_ops,
                         .arg = &h};
    h.views = ls_views_new(&c);
    ls_views_tick(h.views, h.time);
    ls_views_lead(h.views, 1, h.leads);
    if (!h.leads) ls_views_linked(h.views);
    while (in.at < in.end && !h.o.overs) event(&h, &in);
    /* Silent peers delay nothing: what this host does alone still completes. */
    static const uint8_t zeros[8] = {0};
    input none = {zeros, zeros};
    for (int i = 0; i < 100 && h.leads && !h.o.overs && !h.o.runs; i++) {
        end_workers(&h, &none);
        ls_views_tick(h.views, h.time += S);
    }
    FUZZ_CHECK(!h.leads || h.o.overs || h.o.runs || c.hosts > 1);
    ls_views_free(h.views);
    return 0;
}
