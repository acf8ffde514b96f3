/* secure_fuzz.c - bytes from a stranger to a server that has a key: at once, or in two parts. The
 * handshake never succeeds, and an incomplete hello takes no more memory than a correct one.
 */
#include "fuzz.h"
#include "net/tcp/secure.h"

enum { LITTLE = 8192 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static const ls_key key = {"one key of thirty-two characters"};
    ls_secure *s = NULL;
    ls_error e = {0};
    int peer = -1;
    if (nbytes > 60000) return 0;
    size_t part = nbytes ? data[0] * nbytes / 256 : 0;
    int fd = fuzz_peer(data, part, 0, &peer);
    FUZZ_CHECK(ls_secure_open(fd, true, &key, &s, &e) == LS_OK);
    FUZZ_CHECK(ls_secure_nbytes(s) < LITTLE);
    ls_io io = ls_secure_handshake(s, &e);
    FUZZ_CHECK(io != LS_IO_DONE);
    if (part < 6) FUZZ_CHECK(ls_secure_nbytes(s) < LITTLE);
    if (io == LS_IO_AGAIN_READ) {
        FUZZ_CHECK(send(peer, data + part, nbytes - part, MSG_NOSIGNAL) >= 0);
        for (int i = 0; i < 3 && io == LS_IO_AGAIN_READ; i++) io = ls_secure_handshake(s, &e);
        FUZZ_CHECK(io != LS_IO_DONE);
    }
    FUZZ_CHECK(io == LS_IO_AGAIN_READ || e.code == LS_EPEER);
    ls_secure_close(s);
    close(fd);
    close(peer);
    return 0;
}
