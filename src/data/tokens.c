/* tokens.c - see tokens.h for the layout. */
#include "data/tokens.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "token files are read as they are: a little-endian machine is needed"
#endif

/* A read is checked by whole blocks; opening reads a piece at a time. */
enum { VERSION = 2, HASHED = 32, BLOCK = 2048, PIECE = 128 * BLOCK };

typedef struct header {
    char magic[8];
    uint32_t version, vocab;
    uint64_t n, source_bytes;
    uint64_t hash_hi, hash_lo;
    uint64_t val_first, zero;
} header;
static_assert(sizeof(header) == 64, "the header has no padding");

static const char magic[8] = {'L', 'S', 'T', 'O', 'K', 'E', 'N', 'S'};

static header header_of(const ls_tokens *t) {
    header h = {.version = t->val_first ? VERSION : 1,
                .vocab = t->vocab,
                .n = t->n,
                .source_bytes = t->source_bytes,
                .val_first = t->val_first};
    memcpy(h.magic, magic, sizeof magic);
    h.hash_hi = t->hash.hi;
    h.hash_lo = t->hash.lo;
    return h;
}

static ls_status ids_check(const char *path, const uint32_t *ids, size_t first, size_t n,
                           uint32_t vocab, ls_error *e) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= vocab)
            return ls_fail(e, LS_EINVAL, "%s: token %zu has id %u; all ids must be below vocab, %u",
                           path, first + i, ids[i], vocab);
    return LS_OK;
}

static void hash_header(ls_hasher *hasher, const header *h) {
    ls_hasher_add(hasher, h, HASHED);
    if (h->version > 1) ls_hasher_add(hasher, &h->val_first, sizeof h->val_first);
}

/* ---- writing ---- */

static ls_status put_ids(const ls_tokens *t, ls_file *f, ls_error *e) {
    uint32_t *piece = LS_NEW_ARRAY(uint32_t, PIECE);
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < t->n; i += PIECE) {
        size_t n = t->n - i < PIECE ? t->n - i : PIECE;
        s = ls_tokens_read(t, i, n, piece, e);
        if (s == LS_OK) s = ls_file_put(f, piece, n * sizeof *piece, e);
    }
    free(piece);
    return s;
}

ls_status ls_tokens_save(const ls_tokens *t, const char *path, ls_error *e) {
    header h = header_of(t);
    ls_file f;
    LS_TRY(ls_file_create(path, &f, e));
    ls_status s = ls_file_put(&f, &h, sizeof h, e);
    if (s == LS_OK) s = put_ids(t, &f, e);
    if (s == LS_OK) return ls_file_close(&f, e);
    ls_file_discard(&f);
    return s;
}

/* ---- opening ---- */

/* Reads n bytes at an offset: all of them, or fails. */
static ls_status read_at(const char *path, int fd, void *out, size_t nbytes, size_t at,
                         ls_error *e) {
    char *to = out;
    while (nbytes) {
        ssize_t n = pread(fd, to, nbytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ls_fail(e, LS_EIO, "%s: can't be read: %s", path, strerror(errno));
        if (n == 0)
            return ls_fail(e, LS_EINVAL, "%s: was cut short while it was read, after %zu bytes",
                           path, at);
        to += n;
        at += (size_t)n;
        nbytes -= (size_t)n;
    }
    return LS_OK;
}

static ls_status header_check(const char *path, int fd, size_t nbytes, header *h_p, ls_error *e) {
    header h = {0};
    LS_TRY(read_at(path, fd, &h, nbytes < sizeof h ? nbytes : sizeof h, 0, e));
    if (memcmp(h.magic, magic, sizeof magic) != 0)
        return ls_fail(e, LS_EINVAL, "%s: is not a token file", path);
    if (nbytes < sizeof h)
        return ls_fail(e, LS_EINVAL, "%s: is cut short: %zu bytes, within the header", path,
                       nbytes);
    if (h.version < 1 || h.version > VERSION)
        return ls_fail(e, LS_EINVAL,
                       "%s: has version %u of token files; this program reads "
                       "1 and %d",
                       path, h.version, VERSION);
    size_t body = nbytes - sizeof h;
    if (body % sizeof(uint32_t) || h.n != body / sizeof(uint32_t))
        return ls_fail(e, LS_EINVAL,
                       "%s: is damaged or cut short: %zu bytes for %llu tokens of 4 bytes", path,
                       body, (unsigned long long)h.n);
    *h_p = h;
    return LS_OK;
}

static uint64_t block_hash(const uint32_t *ids, size_t n) {
    return ls_hash_bytes(ids, n * sizeof *ids).lo;
}

/* Hashes, checks and records the bytes of a single read: the file may change meanwhile. */
static ls_status take_ids(ls_tokens *t, ls_hasher *hasher, ls_error *e) {
    uint32_t *piece = LS_NEW_ARRAY(uint32_t, PIECE);
    ls_status s = LS_OK, bad_id = LS_OK;
    for (size_t i = 0; s == LS_OK && i < t->n; i += PIECE) {
        size_t n = t->n - i < PIECE ? t->n - i : PIECE;
        s = read_at(t->path, t->fd, piece, n * sizeof *piece, sizeof(header) + i * sizeof *piece,
                    e);
        if (s != LS_OK) break;
        ls_hasher_add(hasher, piece, n * sizeof *piece);
        if (bad_id == LS_OK) bad_id = ids_check(t->path, piece, i, n, t->vocab, e);
        for (size_t k = 0; k < n; k += BLOCK)
            t->blocks[(i + k) / BLOCK] = block_hash(piece + k, n - k < BLOCK ? n - k : BLOCK);
    }
    free(piece);
    return s != LS_OK ? s : bad_id;
}

/* Damage is reported before an invalid id, which it may have caused. */
static ls_status read_file(ls_tokens *t, const header *h, ls_error *e) {
    ls_error why = {0};
    t->n = (size_t)h->n;
    t->vocab = h->vocab;
    t->source_bytes = h->source_bytes;
    t->val_first = h->val_first;
    t->hash = (ls_hash){h->hash_hi, h->hash_lo};
    t->blocks = LS_NEW_ARRAY(uint64_t, t->n / BLOCK + 1);
    ls_hasher *hasher = ls_hasher_new();
    hash_header(hasher, h);
    ls_status s = take_ids(t, hasher, &why);
    ls_hash got = ls_hasher_finish(hasher);
    if (s == LS_EIO) return ls_fail(e, s, "%s", why.msg);
    bool places = h->version == 1 ? h->val_first == 0 : h->val_first && h->val_first < h->n;
    if (!ls_hash_same(got, t->hash) || h->zero || !places)
        return ls_fail(e, LS_EINVAL, "%s: is damaged: its contents don't match its hash", t->path);
    return s == LS_OK ? LS_OK : ls_fail(e, s, "%s", why.msg);
}

static ls_status open_file(ls_tokens *t, ls_error *e) {
    header h = {0};
    struct stat st;
    LS_TRY(ls_file_open_regular(t->path, &t->fd, &st, e));
    t->opened = ls_stamp_of(&st);
    LS_TRY(header_check(t->path, t->fd, (size_t)st.st_size, &h, e));
    return read_file(t, &h, e);
}

ls_status ls_tokens_open(const char *path, ls_tokens *t_p, ls_error *e) {
    ls_tokens t = {.path = ls_strdup(path), .fd = -1};
    ls_status s = open_file(&t, e);
    if (s == LS_OK)
        *t_p = t;
    else
        ls_tokens_close(&t);
    return s;
}

ls_tokens ls_tokens_of(const uint32_t *ids, size_t n, uint32_t vocab) {
    return (ls_tokens){.n = n, .vocab = vocab, .ids = ids, .fd = -1};
}

ls_tokens ls_tokens_hashed(const uint32_t *ids, size_t n, uint32_t vocab, uint64_t source_bytes) {
    ls_tokens t = ls_tokens_of(ids, n, vocab);
    t.source_bytes = source_bytes;
    ls_tokens_set_hash(&t);
    return t;
}

void ls_tokens_set_hash(ls_tokens *t) {
    header h = header_of(t);
    ls_hasher *hasher = ls_hasher_new();
    hash_header(hasher, &h);
    ls_hasher_add(hasher, t->ids, t->n * sizeof *t->ids);
    t->hash = ls_hasher_finish(hasher);
}

void ls_tokens_close(ls_tokens *t) {
    if (t->path && t->fd >= 0) close(t->fd);
    free(t->path);
    free(t->blocks);
    *t = (ls_tokens){.fd = -1};
}

/* ---- reading ---- */

/* Reports that the block's ids are not those that were opened. */
static ls_status fail_changed(const ls_tokens *t, size_t first, const uint32_t *ids, size_t n,
                              ls_error *e) {
    char id[96] = "";
    for (size_t i = 0; i < n && !*id; i++)
        if (ids[i] >= t->vocab)
            snprintf(id, sizeof id, " (token %zu has id %u, the vocabulary %u)", first + i, ids[i],
                     t->vocab);
    return ls_fail(
        e, LS_EINVAL,
        "%s: has changed since it was opened: tokens %zu to %zu are different%s; put the "
        "file back and continue with --resume",
        t->path, first, first + n - 1, id);
}

static ls_status read_block(const ls_tokens *t, size_t block, uint32_t ids[BLOCK], ls_error *e) {
    size_t first = block * BLOCK, n = t->n - first < BLOCK ? t->n - first : BLOCK;
    LS_TRY(read_at(t->path, t->fd, ids, n * sizeof *ids, sizeof(header) + first * sizeof *ids, e));
    return block_hash(ids, n) == t->blocks[block] ? LS_OK : fail_changed(t, first, ids, n, e);
}

ls_status ls_tokens_read(const ls_tokens *t, size_t first, size_t n, uint32_t *out, ls_error *e) {
    uint32_t ids[BLOCK];
    assert(first <= t->n && n <= t->n - first);
    if (t->ids) {
        memcpy(out, t->ids + first, n * sizeof *out);
        return ids_check("tokens in memory", out, first, n, t->vocab, e);
    }
    while (n) {
        size_t at = first % BLOCK, part = BLOCK - at < n ? BLOCK - at : n;
        LS_TRY(read_block(t, first / BLOCK, ids, e));
        memcpy(out, ids + at, part * sizeof *out);
        out += part;
        first += part;
        n -= part;
    }
    return LS_OK;
}

ls_status ls_tokens_window(const void *tokens, const ls_draw *d, size_t nbytes, void *ids,
                           ls_error *e) {
    size_t n = nbytes / sizeof(uint32_t);
    return ls_tokens_read(tokens, d->sample * (n - 1), n, ids, e);
}

ls_status ls_tokens_read_first(const ls_tokens *t, size_t n, uint32_t **out_p, ls_error *e) {
    uint32_t *out = LS_NEW_ARRAY(uint32_t, n);
    ls_status s = ls_tokens_read(t, 0, n, out, e);
    if (s == LS_OK)
        *out_p = out;
    else
        free(out);
    return s;
}

ls_status ls_tokens_verify(ls_tokens *t, ls_error *e) {
    ls_tokens there;
    struct stat st;
    if (!t->path || stat(t->path, &st) != 0) return LS_OK;
    ls_stamp now = ls_stamp_of(&st);
    if (ls_stamp_same(&now, &t->opened)) return LS_OK;
    LS_TRY(ls_tokens_open(t->path, &there, e));
    bool same = ls_hash_same(there.hash, t->hash);
    if (same) t->opened = there.opened;
    ls_tokens_close(&there);
    if (same) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "%s: has other tokens than when this run opened it; put the file back and continue "
        "with --resume",
        t->path);
}
