/* visit_fuzz.c - arbitrary answers to a visitor, who sends a frame to a host and waits. */
#include "fuzz.h"
#include "net/tcp/guest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    unsigned char text[300 + 1];
    int peer = -1;
    ls_error e = {0};
    if (nbytes > 20000) return 0;
    ls_visit v = {.request = {.kind = 1, .nbytes = 5}, .data = "hello", .text = text, .room = 300};
    int fd = fuzz_peer(data, nbytes, 1, &peer);
    FUZZ_CHECK(ls_conn_new(fd, false, NULL, &v.c, NULL) == LS_OK);
    text[300] = 0x77;
    ls_io io = ls_visit_continue(&v, &e);
    for (int i = 0; i < 3 && io != LS_IO_DONE; i++) io = ls_visit_continue(&v, &e);
    FUZZ_CHECK(io == LS_IO_DONE || e.code == LS_EPEER);
    FUZZ_CHECK(io != LS_IO_DONE || v.answer.nbytes <= 300);
    FUZZ_CHECK(text[300] == 0x77);
    ls_conn_free(v.c);
    close(peer);
    return 0;
}
