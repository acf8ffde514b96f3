/* tcp_fuzz.c - arbitrary bytes from a peer that has joined. The worker waits for three messages,
 * sends a long one, and posts another receive later. */
#include "base/log.h"
#include "fuzz.h"
#define ls_log(...) ((void)0)
#include "net/tcp/tcp.c"
#include "net/tcp/tcp_in.c"

enum { NWANTED = 4 };

static tcp_net *make(void) {
    tcp_net *x = LS_NEW(tcp_net);
    x->net = (ls_net){.ops = &tcp_ops, .rank = 0, .size = 2};
    x->peers = LS_NEW_ARRAY(peer, 2);
    x->members = LS_NEW_ARRAY(ls_roster_entry, 2);
    x->early_end = &x->early;
    ls_slab_open(&x->notes, sizeof(note), NOTES);
    ls_slab_open(&x->early_slab, sizeof(early) + EAGER, EARLY);
    x->done.end = &x->done.first;
    x->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return x;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static unsigned char buffers[NWANTED][100000], from[70000];
    static const size_t sizes[NWANTED] = {3, 5000, 70000, 100000};
    static ls_message wanted[NWANTED], sent;
    int other = -1, sink = -1;
    if (nbytes > 60000) return 0;
    tcp_net *x = make();
    peer *p = &x->peers[1];
    int fd = fuzz_peer(data, nbytes, nbytes % 2, &other), out = fuzz_peer(NULL, 0, 0, &sink);
    FUZZ_CHECK(ls_conn_new(fd, true, NULL, &p->in, NULL) == LS_OK);
    FUZZ_CHECK(ls_conn_new(out, false, NULL, &p->out, NULL) == LS_OK);
    for (int i = 0; i < NWANTED; i++)
        wanted[i] = (ls_message){
            .peer = 1, .tag = (uint64_t)i, .data = buffers[i], .nbytes = sizes[i], .owner = wanted};
    sent = (ls_message){.peer = 1, .tag = 2, .data = from, .nbytes = sizeof from, .owner = &sent};
    for (int i = 0; i < NWANTED - 1; i++) tcp_recv(&x->net, &wanted[i], NULL);
    tcp_send(&x->net, &sent, NULL);
    ls_tcp_pull(x, 1);
    tcp_recv(&x->net, &wanted[NWANTED - 1], NULL);
    ls_message *done = NULL;
    ls_status s = tcp_poll(&x->net, 0, &done, NULL);
    for (int n = 0; s == LS_OK && done; done = done->next) FUZZ_CHECK(++n <= NWANTED + 1);
    tcp_forget(&x->net, wanted);
    tcp_forget(&x->net, &sent);
    ls_tcp_pull(x, 1);
    tcp_close(&x->net);
    close(other);
    close(sink);
    return 0;
}
