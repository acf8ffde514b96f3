/* links_fuzz.c - a host that has the key: it makes the handshake (TLS), says hello, and then frames
 * in a sequence, whole, cut, and of any kind, to a supervisor that leads; or it is the leading one,
 * and says them to a supervisor that follows. What is heard goes to the host protocol (views.h).
 *
 * The first byte: bit 0, does the supervisor lead; bits 1 and 2, is the hello as it should be, or
 * what else. Then frames: how, and what is in them.
 */
#include "base/log.h"
#include "fuzz.h"
#define ls_log(...) ((void)0)
#include "cluster/links.c"

#define VIEWS_CHECK(condition) FUZZ_CHECK(condition)
#include "cluster/views_host.h"

enum { MOST = 8, STEPS = 1000, STRANGE = 300 };

typedef struct input {
    const uint8_t *at, *end;
} input;

static uint8_t next(input *in) { return in->at < in->end ? *in->at++ : 0; }

/* ---- the supervisor ---- */

typedef struct supervisor {
    views_host o; /* first: what it is ordered */
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

/* Those of views_host.h, and by the links. */
static ls_views_ops linked_ops(void) {
    ls_views_ops ops = views_host_ops;
    ops.send = say;
    ops.drop = drop;
    ops.meet = meet_hosts;
    return ops;
}

static void act(supervisor *h) {
    ls_host_state kept = {.steps = -1, .whole = 1};
    if (h->o.runs)
        views_host_ended(&h->o, h->views, LS_VIEW_RENEWED, &kept, 2);
    else if (h->o.finishes)
        views_host_finished(&h->o, h->views, &kept);
}

static void look(supervisor *h) {
    ls_link_event ev;
    for (int i = 0; i < 50 && ls_links_next(h->links, &ev); i++) {
        FUZZ_CHECK(ev.peer == LS_TO_LEADER || (ev.peer >= 1 && ev.peer < LS_HOSTS_MAX));
        if (ev.what == LS_LINK_UP) ls_views_linked(h->views);
        if (ev.what == LS_LINK_LOST) ls_views_lost(h->views, ev.peer);
        if (ev.what == LS_LINK_MESSAGE) ls_views_receive(h->views, ev.peer, &ev.message);
    }
}

/* ---- the other one ---- */

static int door = -1; /* where nobody knocks: the guest is in already */

static ls_links *make_links(const ls_key *key) {
    ls_links *l = LS_NEW(ls_links);
    *l = (ls_links){.host = 1, .keyed = true, .key = *key, .listen_fd = -1, .next = 1};
    l->must_match = "a 1\n";
    if (door < 0) {
        struct sockaddr_in a = {.sin_family = AF_INET};
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        FUZZ_CHECK(bind(door, (struct sockaddr *)&a, sizeof a) == 0 && listen(door, 1) == 0);
    }
    l->listen_fd = dup(door);
    ls_guests_options options = {.listen_fd = l->listen_fd,
                                 .key = &l->key,
                                 .knows = knows,
                                 .why_rejected = "it is no supervisor",
                                 .patience = PATIENCE,
                                 .most = 4};
    ls_guests_open(&l->guests, &options);
    return l;
}

/* A connection of both, one of them in the supervisor's hands; our end, which has made the
 * handshake. NULL: it was dropped. */
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
        look(h);
    }
    FUZZ_CHECK(ours->open);
    return ours;
}

static void put(ls_conn *c, const ls_frame *f, const void *data, size_t n) {
    void *token = NULL;
    ls_io io = ls_conn_put(c, f, data, n, NULL, NULL);
    if (io == LS_IO_DONE) ls_conn_flush(c, &token, NULL);
}

/* Of kind MESSAGE, with the fields that the input has at the places that it says. */
static void put_words(ls_conn *c, input *in) {
    ls_host_message s = {.what = (uint32_t)(1 + next(in) % LS_HOST_OVER), .term = 1, .host = 7};
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

/* Any kind and length, and as many bytes of it as come. */
static void put_any(ls_conn *c, input *in) {
    unsigned char bytes[STRANGE];
    ls_frame f = {.kind =
                      (uint16_t)(next(in) % 3 ? HELLO + next(in) % 3 : next(in) << 8 | next(in))};
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
        put(c, &(ls_frame){.kind = MUST_MATCH, .nbytes = 4}, how ? "b 2\n" : "a 1\n", 4);
    look(h);
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
            put_words(peer, &in);
        else if (what % 8 == 5)
            put_any(peer, &in);
        else
            act(&h);
        look(&h);
    }
    ls_conn_free(peer);
    look(&h);
    ls_links_close(h.links);
    ls_views_free(h.views);
    return 0;
}
