/* unpack_gzip.c - gzip streams, by zlib; see unpack.h. Nothing else knows zlib. */
#define ZLIB_CONST
#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"
#include "source/unpack.h"

enum { GZIP_WINDOW = 15 + 16, LARGEST_INPUT = 1 << 30 };

bool ls_is_gzip(const uint8_t *data, size_t nbytes) {
    return nbytes >= 3 && data[0] == 0x1f && data[1] == 0x8b && data[2] == 8;
}

static ls_status damaged(const ls_unpack *u, const z_stream *z, int code, ls_error *e) {
    size_t at = (size_t)(z->next_in - u->data);
    if (code == Z_OK || code == Z_BUF_ERROR)
        return ls_fail(e, LS_EINVAL,
                       "%s: is truncated: the gzip stream does not end within its %zu bytes; copy "
                       "or download it again",
                       u->path, u->nbytes);
    return ls_fail(
        e, LS_EINVAL,
        "%s: the gzip stream is damaged before offset %zu: %s; copy or download it again", u->path,
        at, z->msg ? z->msg : zError(code));
}

/* Unpacks one member, or what is left of it. */
static ls_status unpack_member(const ls_unpack *u, z_stream *z, uint8_t *piece, ls_error *e) {
    for (int code = Z_OK; code != Z_STREAM_END;) {
        size_t left = u->nbytes - (size_t)(z->next_in - u->data);
        z->avail_in = left < LARGEST_INPUT ? (uInt)left : LARGEST_INPUT;
        z->next_out = piece;
        z->avail_out = LS_UNPACK_PIECE;
        code = inflate(z, Z_NO_FLUSH);
        size_t n = LS_UNPACK_PIECE - z->avail_out;
        if (code != Z_OK && code != Z_STREAM_END) return damaged(u, z, code, e);
        if (n == 0 && code == Z_OK && z->next_in == u->data + u->nbytes)
            return damaged(u, z, code, e);
        if (n) LS_TRY(u->put(u->context, piece, n, e));
    }
    return LS_OK;
}

static bool all_zero(const uint8_t *data, const uint8_t *end) {
    while (data < end && *data == 0) data++;
    return data == end;
}

static ls_status unpack_all(const ls_unpack *u, z_stream *z, uint8_t *piece, ls_error *e) {
    const uint8_t *end = u->data + u->nbytes;
    for (;;) {
        LS_TRY(unpack_member(u, z, piece, e));
        if (all_zero(z->next_in, end)) return LS_OK; /* the end, or padding of a tape */
        if (!ls_is_gzip(z->next_in, (size_t)(end - z->next_in)))
            return ls_fail(e, LS_EINVAL,
                           "%s: other bytes follow the gzip stream at offset %zu; copy or download "
                           "it again",
                           u->path, (size_t)(z->next_in - u->data));
        inflateReset(z);
    }
}

ls_status ls_unpack_gzip(const ls_unpack *u, ls_error *e) {
    z_stream z = {.next_in = u->data};
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return ls_fail(e, LS_ENOMEM, "%s: no memory to unpack it", u->path);
    uint8_t *piece = ls_alloc(LS_UNPACK_PIECE);
    ls_status s = unpack_all(u, &z, piece, e);
    free(piece);
    inflateEnd(&z);
    return s;
}
