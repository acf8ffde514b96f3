/* conn_fuzz.c - frames from arbitrary bytes. */
#include "fuzz.h"
#include "net/tcp/conn.h"

/* When a read has returned all available bytes, the connection asks for a poll before the next. */
static ls_io next_frame(ls_conn *c, ls_frame *f, ls_error *e) {
    ls_io io = ls_conn_next(c, f, e);
    return io == LS_IO_AGAIN_READ ? ls_conn_next(c, f, e) : io;
}

static ls_io read_payload(ls_conn *c, ls_error *e) {
    ls_io io = ls_conn_payload(c, e);
    return io == LS_IO_AGAIN_READ ? ls_conn_payload(c, e) : io;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    enum { MOST = 10000 };
    static unsigned char into[MOST];
    int peer = -1;
    ls_conn *c = NULL;
    if (nbytes > 60000) return 0;
    int fd = fuzz_peer(data, nbytes, 1, &peer);
    FUZZ_CHECK(ls_conn_new(fd, true, NULL, &c, NULL) == LS_OK);
    ls_io io = ls_conn_handshake(c, NULL);
    size_t taken = 0;
    while (io == LS_IO_DONE) {
        ls_frame f;
        ls_error e = {0};
        io = next_frame(c, &f, &e);
        FUZZ_CHECK(io == LS_IO_DONE || e.code == LS_EPEER);
        if (io != LS_IO_DONE) break;
        FUZZ_CHECK(f.magic == LS_FRAME_MAGIC);
        taken += LS_FRAME_NBYTES;
        ls_conn_take(c, f.nbytes <= MOST ? into : NULL, f.nbytes);
        io = read_payload(c, &e);
        if (io == LS_IO_DONE) taken += f.nbytes;
    }
    FUZZ_CHECK(io == LS_IO_CLOSED || io == LS_IO_FAILED);
    FUZZ_CHECK(taken <= nbytes);
    ls_conn_free(c);
    close(peer);
    return 0;
}
