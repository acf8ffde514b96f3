/* tokens.c - see tokens.h for the layout. */
#include "data/tokens.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "token files are mapped as they are: a little-endian machine is needed"
#endif

enum { VERSION = 1, HASHED = 32 };

typedef struct header {
    char magic[8];
    uint32_t version, vocab;
    uint64_t n, source_bytes;
    uint64_t hash_hi, hash_lo;
    uint64_t zero[2];
} header;
static_assert(sizeof(header) == 64, "the header has no padding");

static const char magic[8] = {'L', 'S', 'T', 'O', 'K', 'E', 'N', 'S'};

static ls_hash content_hash(const header *h, const uint32_t *ids, size_t n) {
    ls_hasher *hasher = ls_hasher_new();
    ls_hasher_add(hasher, h, HASHED);
    ls_hasher_add(hasher, ids, n * sizeof *ids);
    return ls_hasher_finish(hasher);
}

static ls_status ids_check(const char *path, const uint32_t *ids, size_t n, uint32_t vocab,
                           ls_error *e) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= vocab)
            return ls_fail(e, LS_EINVAL, "%s: token %zu has id %u; all ids must be below vocab, %u",
                           path, i, ids[i], vocab);
    return LS_OK;
}

ls_status ls_tokens_write(const char *path, const uint32_t *ids, size_t n, uint32_t vocab,
                          uint64_t source_bytes, ls_error *e) {
    LS_TRY(ids_check(path, ids, n, vocab, e));
    header h = {.version = VERSION, .vocab = vocab, .n = n, .source_bytes = source_bytes};
    memcpy(h.magic, magic, sizeof magic);
    ls_hash hash = content_hash(&h, ids, n);
    h.hash_hi = hash.hi;
    h.hash_lo = hash.lo;
    ls_file f;
    LS_TRY(ls_file_create(path, &f, e));
    ls_status s = ls_file_put(&f, &h, sizeof h, e);
    if (s == LS_OK) s = ls_file_put(&f, ids, n * sizeof *ids, e);
    if (s == LS_OK) return ls_file_close(&f, e);
    ls_file_discard(&f);
    return s;
}

static ls_status header_check(const char *path, const ls_mapped *m, header *h_p, ls_error *e) {
    header h = {0};
    memcpy(&h, m->data ? (const void *)m->data : "", m->nbytes < sizeof h ? m->nbytes : sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0)
        return ls_fail(e, LS_EINVAL, "%s: is not a token file", path);
    if (m->nbytes < sizeof h)
        return ls_fail(e, LS_EINVAL, "%s: is cut short: %zu bytes, within the header", path,
                       m->nbytes);
    if (h.version != VERSION)
        return ls_fail(e, LS_EINVAL, "%s: has version %u of token files; this program reads %d",
                       path, h.version, VERSION);
    size_t body = m->nbytes - sizeof h;
    if (body % sizeof(uint32_t) || h.n != body / sizeof(uint32_t))
        return ls_fail(e, LS_EINVAL,
                       "%s: is damaged or cut short: %zu bytes for %llu tokens of 4 bytes", path,
                       body, (unsigned long long)h.n);
    *h_p = h;
    return LS_OK;
}

static ls_status content_check(const char *path, const header *h, const uint32_t *ids,
                               ls_error *e) {
    ls_hash hash = content_hash(h, ids, (size_t)h->n);
    if (hash.hi != h->hash_hi || hash.lo != h->hash_lo || h->zero[0] || h->zero[1])
        return ls_fail(e, LS_EINVAL, "%s: is damaged: its contents don't match its hash", path);
    return ids_check(path, ids, (size_t)h->n, h->vocab, e);
}

ls_status ls_tokens_open(const char *path, ls_tokens *t_p, ls_error *e) {
    ls_mapped m;
    LS_TRY(ls_file_map(path, &m, e));
    header h = {0};
    const uint32_t *ids = NULL;
    ls_status s = header_check(path, &m, &h, e);
    if (s == LS_OK) {
        ids = (const uint32_t *)(const void *)(m.data + sizeof h);
        s = content_check(path, &h, ids, e);
    }
    if (s == LS_OK)
        *t_p = (ls_tokens){ids, (size_t)h.n, h.vocab, h.source_bytes, m};
    else
        ls_file_unmap(&m);
    return s;
}

void ls_tokens_close(ls_tokens *t) {
    ls_file_unmap(&t->map);
    *t = (ls_tokens){0};
}
