/* join_fuzz.c - arbitrary bytes from a guest of worker 0, after another guest has joined. */
#include "base/log.h"
#include "fuzz.h"
#define ls_log(...) ((void)0)
#include "net/tcp/guest.c"
#include "net/tcp/join.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    ls_roster_entry members[4] = {{.pid = 1}};
    ls_join j = {.size = 4};
    ls_roster r = {.size = 4, .members = members, .listen_fd = -1};
    meeting h = {.j = &j, .roster = &r, .end = -1};
    hello first = {.protocol = PROTOCOL, .rank = 2, .size = 4, .port = 9, .pid = 1};
    int peers[2] = {-1, -1};
    if (nbytes > 20000) return 0;
    ls_guests_options options = {.listen_fd = -1,
                                 .knows = knows,
                                 .why_rejected = "it sent no valid hello",
                                 .patience = 4,
                                 .most = 4};
    ls_guests_open(&h.guests, &options);
    ls_guest *all = h.guests.all;
    for (int i = 0; i < 2; i++) {
        ls_guest *g = &all[h.guests.n++];
        *g = (ls_guest){.from = {.ss_family = AF_INET}, .readable = true};
        int fd = fuzz_peer(data, i ? nbytes : 0, i && nbytes % 2, &peers[i]);
        FUZZ_CHECK(ls_conn_new(fd, true, NULL, &g->c, NULL) == LS_OK);
    }
    memcpy(all[0].payload, &first, sizeof first);
    all[0].has_frame = true;
    FUZZ_CHECK(admit_worker(&h, 0));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < h.guests.n;) k += serve_guest(&h, k);
    FUZZ_CHECK(h.guests.n >= 1 && all[0].has_frame);
    FUZZ_CHECK(h.njoined == h.guests.n || (h.njoined == 1 && h.guests.n == 2));
    if (h.njoined == 2) FUZZ_CHECK(hello_of(&all[1]).rank == 1 || hello_of(&all[1]).rank == 3);
    ls_guests_close(&h.guests);
    close(peers[0]);
    close(peers[1]);
    return 0;
}
