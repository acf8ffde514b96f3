/* links_fuzz.c - frames from a host that has the key. After the handshake (TLS) and a hello, the
 * host sends a sequence of frames, complete, truncated and of any kind: to a supervisor that leads,
 * or, as the leading host, to a supervisor that follows. The supervisor passes messages on to the
 * host protocol (views.h).
 *
 * First byte of the input: bit 0 set: the supervisor leads; bits 1 and 2: a correct hello, or which
 * incorrect one. Then frames: their kind, and their contents.
 */
#include "base/log.h"
#include "fuzz.h"
#define ls_log(...) ((void)0)
#include "cluster/links.c"

#define VIEWS_CHECK(condition) FUZZ_CHECK(condition)
#include "cluster/views_host.h"

enum { MOST = 8, STEPS = 1000, MOST_BYTES = 300 };

typedef struct input {
    const uint8_t *at, *end;
} input;

static uint8_t next(input *in) { return in->at < in->end ? *in->at++ : 0; }

/* ---- the supervisor ---- */

typedef struct supervisor {
    views_host o; /* first: the orders that it has received */
    ls_links *links;
    ls_views *views;
} supervisor;

static void say(void *arg, int peer, const ls_host_message *s) {
    const supervisor *h = arg;
    views_host_send(arg, peer, s);
    ls_links_send(h->links, peer, s);
}
static void drop(void *arg, int peer) {
    const supervisor *h = arg;
    views_host_drop(arg, peer);
    ls_links_drop(h->links, peer);
}
static void meet_hosts(void *arg, ls_view *v) {
    const supervisor *h = arg;
    struct sockaddr_storage at;
    ls_links_address(h->links, &at);
    ls_address_text(&at, v->address, sizeof v->address);
}

/* The operations of views_host.h, which also use the links. */
static ls_views_ops linked_ops(void) {
    ls_views_ops ops = views_host_ops;
    ops.send = say;
    ops.drop = drop;
    ops.meet = meet_hosts;
    return ops;
}

static void end_workers(supervisor *h) {
    ls_host_state state = {.steps = -1, .whole = 1};
    if (h->o.runs)
        views_host_ended(&h->o, h->views, LS_VIEW_RENEWED, &state, 2);
    else if (h->o.finishes)
        views_host_finished(&h->o, h->views, &state);
}

static void take_events(supervisor *h) {
    ls_link_event ev;
    for (int i = 0; i < 50 && ls_links_next(h->links, &ev); i++) {
        FUZZ_CHECK(ev.peer == LS_TO_LEADER || (ev.peer >= 1 && ev.peer < LS_HOSTS_MAX));
        if (ev.what == LS_LINK_UP) ls_views_linked(h->views);
        if (ev.what == LS_LINK_LOST) ls_views_lost(h->views, ev.peer);
        if (ev.what == LS_LINK_MESSAGE) ls_views_receive(h->views, ev.peer, &ev.message);
    }
}

/* ---- the other host ---- */

static int listener = -1; /* gets no connections: the guest is connected already */

static ls_links *make_links(const ls_key *key) {
    ls_links *l = LS_NEW(ls_links);
    *l = (ls_links){.host = 1, .keyed = true, .key = *key, .listen_fd = -1, .next = 1};
    static const ls_admission admission = {.settings = "a 1\n"};
    l->admission = &admission;
    if (listener < 0) {
        struct sockaddr_in a = {.sin_family = AF_INET};
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        FUZZ_CHECK(bind(listener, (struct sockaddr *)&a, sizeof a) == 0 &&
                   listen(listener, 1) == 0);
    }
    l->listen_fd = dup(listener);
    ls_guests_options options = {.listen_fd = l->listen_fd,
                                 .key = &l->key,
                                 .knows = knows,
                                 .why_rejected = "it is no supervisor",
                                 .patience = PATIENCE,
                                 .most = 4};
    ls_guests_open(&l->guests, &options);
    return l;
}

/* Connects the supervisor with this host; returns our end, after the handshake. */
static ls_conn *connect_to(supervisor *h, bool leads) {
    int fd[2];
    ls_conn *ours = NULL, *theirs = NULL;
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0);
    FUZZ_CHECK(ls_conn_new(fd[0], leads, &h->links->key, &theirs, NULL) == LS_OK);
    FUZZ_CHECK(ls_conn_new(fd[1], !leads, &h->links->key, &ours, NULL) == LS_OK);
    if (leads) {
        ls_guest *g = &h->links->guests.all[h->links->guests.n++];
        *g = (ls_guest){.c = theirs, .came = ls_clock_ns(), .readable = true};
        g->from.ss_family = AF_INET;
    } else {
        h->links->up.c = theirs;
        h->links->dialed_ns = ls_clock_ns();
    }
    for (int i = 0; i < 20 && !ours->open; i++) {
        ls_io io = ls_conn_handshake(ours, NULL);
        FUZZ_CHECK(io != LS_IO_FAILED && io != LS_IO_CLOSED);
        take_events(h);
    }
    FUZZ_CHECK(ours->open);
    return ours;
}

static void put(ls_conn *c, const ls_frame *f, const void *data, size_t n) {
    void *token = NULL;
    ls_io io = ls_conn_put(c, f, data, n, NULL, NULL);
    if (io == LS_IO_DONE) ls_conn_flush(c, &token, NULL);
}

/* Sends a MESSAGE, some of whose bytes the input overwrites. */
static void put_message(ls_conn *c, input *in) {
    ls_host_message s = {.what = (uint32_t)(1 + next(in) % LS_HOST_TRIED), .term = 1, .host = 7};
    unsigned char bytes[sizeof s];
    s.nworkers = 2;
    s.state.steps = -1;
    s.view = (ls_view){.id = {1, 1 + (next(in) & 3)}, .steps = -1, .nhosts = 2, .size = 4, .n = 2};
    memcpy(bytes, &s, sizeof bytes);
    for (int n = next(in) & 7; n > 0; n--) {
        size_t at = (size_t)(next(in) << 8 | next(in)) % sizeof bytes;
        bytes[at] = next(in);
    }
    put(c, &(ls_frame){.kind = MESSAGE, .nbytes = sizeof bytes}, bytes, sizeof bytes);
}

/* Sends a frame of any kind and length, with as many bytes as the input gives. */
static void put_any(ls_conn *c, input *in) {
    unsigned char bytes[MOST_BYTES];
    ls_frame f = {.kind =
                      (uint16_t)(next(in) % 3 ? HELLO + next(in) % 5 : next(in) << 8 | next(in))};
    uint8_t how = next(in);
    size_t n = (size_t)next(in);
    f.nbytes = how < 128 ? n : how < 192 ? sizeof(ls_host_message) : UINT64_MAX >> (how & 63);
    for (size_t i = 0; i < n; i++) bytes[i] = next(in);
    put(c, &f, bytes, n);
}

static void greet(supervisor *h, ls_conn *c, bool leads, int how) {
    hello x = {how == 1 ? 9 : PROTOCOL, how == 2 ? 77 : sizeof(ls_host_message), 7};
    if (how == 3) return;
    if (leads)
        put(c, &(ls_frame){.kind = HELLO, .nbytes = sizeof x}, &x, sizeof x);
    else
        put(c, &(ls_frame){.kind = THEIRS, .nbytes = 4}, how ? "b 2\n" : "a 1\n", 4);
    take_events(h);
    if (leads && !how) put(c, &(ls_frame){.kind = OURS, .nbytes = 4}, "a 1\n", 4);
    take_events(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static const ls_key key = {"one key of thirty-two characters"};
    input in = {data, data + nbytes};
    uint8_t first = next(&in);
    bool leads = first & 1;
    static supervisor h;
    const ls_views_ops ops = linked_ops();
    h = (supervisor){.o = {.most = MOST, .steps = STEPS}};
    ls_views_config c = {.host = 1,
                         .nworkers = 2,
                         .least = 1,
                         .most = MOST,
                         .hosts = 2,
                         .silence_ns = INT64_MAX / 2,
                         .gather_ns = 1,
                         .steps = STEPS,
                         .ops = &ops,
                         .arg = &h};
    h.links = make_links(&key);
    h.views = ls_views_new(&c);
    ls_views_tick(h.views, 1);
    ls_views_lead(h.views, 1, leads);
    ls_conn *peer = connect_to(&h, leads);
    greet(&h, peer, leads, first >> 1 & 3);
    while (in.at < in.end && !h.o.overs) {
        uint8_t what = next(&in);
        if (what % 8 < 5)
            put_message(peer, &in);
        else if (what % 8 == 5)
            put_any(peer, &in);
        else
            end_workers(&h);
        take_events(&h);
    }
    ls_conn_free(peer);
    take_events(&h);
    ls_links_close(h.links);
    ls_views_free(h.views);
    return 0;
}
