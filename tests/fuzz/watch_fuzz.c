/* watch_fuzz.c - arbitrary bytes from a stranger who connects to a running worker. */
#include "base/log.h"
#include "fuzz.h"
#define ls_log(...) ((void)0)
#include "net/tcp/guest.c"
#include "net/tcp/watch.c"

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
        ls_guests_options options = {.listen_fd = -1,
                                     .knows = knows,
                                     .why_rejected = "it sent no valid greeting",
                                     .patience = 4,
                                     .most = 4};
        ls_guests_open(&w->guests, &options);
    }
    ls_guest *g = &w->guests.all[w->guests.n++];
    *g = (ls_guest){.came = ls_clock_ns(), .from = {.ss_family = AF_INET6}, .readable = true};
    int fd = fuzz_peer(data, nbytes, nbytes % 2, &peer);
    FUZZ_CHECK(ls_conn_new(fd, true, NULL, &g->c, NULL) == LS_OK);
    for (int i = 0; i < 3 && w->guests.n; i++) serve_guest(w, 0);
    while (w->guests.n) ls_guests_drop(&w->guests, 0, NULL);
    for (ls_conn *c; (c = ls_watch_take(w, &from));) {
        FUZZ_CHECK(from == 0 || from == 2 || from == 3);
        ls_conn_free(c);
    }
    for (int i = 0; i < LS_WATCH_GROUPS; i++) {
        ls_news *news = &w->answers[i].news, found;
        FUZZ_CHECK(memchr(news->text, 0, sizeof news->text));
        FUZZ_CHECK(!news->group || ls_watch_find_news(w, i, news->group, &found));
        *news = (ls_news){0};
    }
    close(peer);
    return 0;
}
