/* unpack_zstd.c - zstd frames, by libzstd; see unpack.h. Nothing else knows libzstd. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/mem.h"
#include "source/unpack.h"

bool ls_is_zstd(const uint8_t *data, size_t nbytes) {
    static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    return nbytes >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

/* code: of libzstd; at: where the frame could not be read further. */
static ls_status fail_frame(const ls_unpack *u, size_t code, size_t at, ls_error *e) {
    if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
        return ls_fail(e, LS_EINVAL,
                       "%s: was packed with a window of more than 128 MB, as by --long=31; pack it "
                       "anew: zstd -d --long=31 FILE",
                       u->path);
    return ls_fail(e, LS_EINVAL,
                   "%s: the zstd frame is damaged before offset %zu: %s; copy or download it again",
                   u->path, at, ZSTD_getErrorName(code));
}

static ls_status unpack_all(const ls_unpack *u, ZSTD_DStream *z, uint8_t *piece, ls_error *e) {
    ZSTD_inBuffer in = {u->data, u->nbytes, 0};
    for (;;) {
        ZSTD_outBuffer out = {piece, LS_UNPACK_PIECE, 0};
        size_t before = in.pos, left = ZSTD_decompressStream(z, &out, &in);
        if (ZSTD_isError(left)) return fail_frame(u, left, in.pos, e);
        if (out.pos) LS_TRY(u->put(u->context, piece, out.pos, e));
        if (left == 0 && in.pos == in.size) return LS_OK;
        if (in.pos == in.size && in.pos == before && out.pos == 0)
            return ls_fail(e, LS_EINVAL,
                           "%s: is truncated: the zstd frame does not end within its %zu bytes; "
                           "copy or download it again",
                           u->path, u->nbytes);
    }
}

ls_status ls_unpack_zstd(const ls_unpack *u, ls_error *e) {
    ZSTD_DStream *z = ZSTD_createDStream(); /* its own limit of the window, 128 MB, holds */
    if (!z) return ls_fail(e, LS_ENOMEM, "%s: no memory to unpack it", u->path);
    uint8_t *piece = ls_alloc(LS_UNPACK_PIECE);
    ls_status s = unpack_all(u, z, piece, e);
    free(piece);
    ZSTD_freeDStream(z);
    return s;
}
