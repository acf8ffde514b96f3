/* join_fuzz.c - what one guest of worker 0 says, after another has come. */
#include "base/log.h"
#include "fuzz.h"
#define ls_log(...) ((void)0)
#include "net/join.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static guest guests[MAX_GUESTS];
    ls_member members[4] = {{.pid = 1}};
    ls_join j = {.size = 4};
    ls_roster r = {.size = 4, .members = members, .listen_fd = -1};
    hall h = {.j = &j, .roster = &r, .guests = guests, .end = -1};
    hello known = {.protocol = PROTOCOL, .rank = 2, .size = 4, .port = 9};
    int peers[2] = {-1, -1};
    if (nbytes > 20000) return 0;
    for (int i = 0; i < 2; i++) {
        guest *g = &guests[h.nguests++];
        *g = (guest){.end = INT64_MAX, .from = {.ss_family = AF_INET}};
        int fd = fuzz_peer(data, i ? nbytes : 0, i && nbytes % 2, &peers[i]);
        FUZZ_CHECK(ls_conn_new(fd, true, NULL, &g->c, NULL) == LS_OK);
    }
    guests[0].said = known;
    FUZZ_CHECK(welcome(&h, &guests[0]));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < h.nguests;) k += attend(&h, k);
    FUZZ_CHECK(h.nguests >= 1 && guests[0].known);
    FUZZ_CHECK(h.come == h.nguests || (h.come == 1 && h.nguests == 2));
    if (h.come == 2) FUZZ_CHECK(guests[1].rank == 1 || guests[1].rank == 3);
    while (h.nguests) drop(&h, 0, NULL);
    close(peers[0]);
    close(peers[1]);
    return 0;
}
