/* watch_fuzz.c - what one says who connects to a running worker. */
#include "base/log.h"
#include "fuzz.h"
#define ls_log(...) ((void)0)
#include "net/watch.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static const uint64_t nonce[2] = {0x4141414141414141, 0x4242424242424242};
    static ls_watch *w;
    int peer = -1, from = -1;
    if (nbytes > 20000) return 0;
    if (!w) {
        w = LS_NEW(ls_watch);
        memcpy(w->nonce, nonce, sizeof nonce);
        w->rank = 1;
        w->size = 4;
        w->arrivals_end = &w->arrivals;
        pthread_mutex_init(&w->lock, NULL);
        w->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        w->stop_fd = -1;
    }
    guest *g = &w->guests[w->nguests++];
    *g = (guest){.end = INT64_MAX, .from = {.ss_family = AF_INET6}};
    int fd = fuzz_peer(data, nbytes, nbytes % 2, &peer);
    FUZZ_CHECK(ls_conn_new(fd, true, NULL, &g->c, NULL) == LS_OK);
    for (int i = 0; i < 3 && w->nguests; i++) attend(w, 0);
    while (w->nguests) drop(w, 0, NULL);
    for (ls_conn *c; (c = ls_watch_take(w, &from));) {
        FUZZ_CHECK(from == 0 || from == 2 || from == 3);
        ls_conn_free(c);
    }
    close(peer);
    return 0;
}
