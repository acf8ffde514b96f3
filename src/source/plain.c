/* plain.c - see plain.h. */
#include "source/plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/scratch.h"
#include "source/unpack.h"

#define MOST_NBYTES ((uint64_t)1000 * 1000 * 1000 * 1000)
static const double most_ratio = 1000;
/* Up to so many bytes the ratio does not matter: a small file of zeros is no bomb. */
static const uint64_t small = 16 << 20;

typedef ls_status unpacker(const ls_unpack *, ls_error *);

/* NULL: the bytes are not packed. */
static unpacker *unpacker_of(const ls_mapped *m, const char **packing_p) {
    bool gzip = ls_is_gzip(m->data, m->nbytes), zstd = ls_is_zstd(m->data, m->nbytes);
    *packing_p = gzip ? "gzip" : zstd ? "zstd" : NULL;
    return gzip ? ls_unpack_gzip : zstd ? ls_unpack_zstd : NULL;
}

/* ---- into a scratch file ---- */

typedef struct target {
    const char *path, *dir;
    int file;
    uint64_t nbytes, most_nbytes, packed_nbytes;
    double most_ratio;
    ls_hasher *hasher;
} target;

static ls_status check_limits(const target *t, ls_error *e) {
    if (t->nbytes > t->most_nbytes)
        return ls_fail(
            e, LS_EINVAL,
            "%s: unpacks to more than %.1f MB, the limit; raise the limit if the file is "
            "what it should be",
            t->path, (double)t->most_nbytes / 1e6);
    if (t->nbytes > small && (double)t->nbytes > t->most_ratio * (double)t->packed_nbytes)
        return ls_fail(e, LS_EINVAL,
                       "%s: its %llu bytes unpack to more than %g times as many, the limit; raise "
                       "the limit if the file is what it should be",
                       t->path, (unsigned long long)t->packed_nbytes, t->most_ratio);
    return LS_OK;
}

static ls_status put(void *context, const void *bytes, size_t n, ls_error *e) {
    target *t = context;
    uint64_t at = t->nbytes;
    t->nbytes += n;
    LS_TRY(check_limits(t, e));
    ls_hasher_add(t->hasher, bytes, n);
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(t->file, (const char *)bytes + done, n - done, (off_t)(at + done));
        if (put > 0) {
            done += (size_t)put;
            continue;
        }
        if (put < 0 && errno == EINTR) continue;
        return ls_fail(
            e, LS_EIO,
            "%s: can't be unpacked into %s after %.1f MB: %s; TMPDIR=DIR chooses another "
            "directory",
            t->path, t->dir, (double)at / 1e6, put < 0 ? strerror(errno) : "it is full");
    }
    return LS_OK;
}

/* /tmp may be memory, /var/tmp is a disk. */
static const char *scratch_dir(const ls_source_options *o) {
    const char *dir = o && o->cache ? o->cache : getenv("TMPDIR");
    return dir && *dir ? dir : "/var/tmp";
}

static ls_status unpack(ls_plain *p, unpacker *by, target *t, ls_error *e) {
    ls_unpack u = {p->path, p->file.data, p->file.nbytes, put, t};
    LS_TRY(by(&u, e));
    if (t->nbytes) LS_TRY(ls_scratch_map(t->file, t->dir, t->nbytes, &p->scratch, e));
    p->nbytes = t->nbytes;
    p->data = p->scratch;
    ls_file_unmap(&p->file);
    return LS_OK;
}

static ls_status unpack_file(ls_plain *p, unpacker *by, const ls_source_options *o, ls_error *e) {
    target t = {.path = p->path, .dir = scratch_dir(o), .packed_nbytes = p->file.nbytes};
    t.most_nbytes = o && o->most_nbytes ? o->most_nbytes : MOST_NBYTES;
    t.most_ratio = o && o->most_ratio > 0 ? o->most_ratio : most_ratio;
    if (o && o->cache) LS_TRY(ls_file_make_dirs(o->cache, e));
    LS_TRY(ls_scratch_open(t.dir, 0, &t.file, e));
    t.hasher = ls_hasher_new();
    ls_status s = unpack(p, by, &t, e);
    p->hash = ls_hasher_finish(t.hasher);
    close(t.file);
    return s;
}

ls_status ls_plain_open(const char *path, const ls_source_options *o, ls_plain *p_p, ls_error *e) {
    ls_plain p = {0};
    LS_TRY(ls_file_map(path, &p.file, e));
    p.path = ls_strdup(path);
    p.file_nbytes = p.file.nbytes;
    unpacker *by = unpacker_of(&p.file, &p.packing);
    ls_status s = LS_OK;
    if (by) {
        s = unpack_file(&p, by, o, e);
    } else {
        p.data = p.file.data;
        p.nbytes = p.file.nbytes;
        p.hash = ls_hash_bytes(p.data, p.nbytes);
    }
    if (s == LS_OK)
        *p_p = p;
    else
        ls_plain_close(&p);
    return s;
}

void ls_plain_close(ls_plain *p) {
    ls_file_unmap(&p->file);
    if (p->scratch) munmap(p->scratch, p->nbytes);
    free(p->path);
    *p = (ls_plain){0};
}

/* ---- lists ---- */

ls_status ls_plain_open_all(const ls_files *files, const ls_source_options *o, ls_plain **list_p,
                            ls_error *e) {
    ls_plain *list = LS_NEW_ARRAY(ls_plain, files->n);
    for (size_t i = 0; i < files->n; i++) {
        ls_status s = ls_plain_open(files->paths[i], o, &list[i], e);
        if (s == LS_OK) continue;
        ls_plain_close_all(list, files->n);
        return s;
    }
    *list_p = list;
    return LS_OK;
}

void ls_plain_close_all(ls_plain *list, size_t n) {
    for (size_t i = 0; list && i < n; i++) ls_plain_close(&list[i]);
    free(list);
}

void ls_plain_describe(const ls_plain *list, size_t n, ls_source *s) {
    ls_hasher *hasher = ls_hasher_new();
    for (size_t i = 0; i < n; i++) {
        ls_hasher_add(hasher, &list[i].hash, sizeof list[i].hash);
        s->file_nbytes += list[i].file_nbytes;
    }
    s->nfiles = n;
    s->hash = ls_hasher_finish(hasher);
}

/* ---- the first bytes ---- */

typedef struct beginning {
    uint8_t *bytes; /* [LS_PLAIN_FIRST] */
    size_t n;
} beginning;

/* Fails, without a message, once it has what it needs. */
static ls_status put_first(void *context, const void *bytes, size_t n, ls_error *e) {
    beginning *b = context;
    size_t room = LS_PLAIN_FIRST - b->n;
    memcpy(b->bytes + b->n, bytes, n < room ? n : room);
    b->n += n < room ? n : room;
    return b->n < LS_PLAIN_FIRST ? LS_OK : ls_fail(e, LS_EABORT, "enough");
}

ls_status ls_plain_first(const char *path, uint8_t first[LS_PLAIN_FIRST], size_t *n_p,
                         uint64_t *size_p, ls_error *e) {
    ls_mapped m;
    LS_TRY(ls_file_map(path, &m, e));
    const char *packing = NULL;
    unpacker *by = unpacker_of(&m, &packing);
    beginning b = {first, 0};
    ls_status s = LS_OK;
    if (by) {
        ls_error why = {0};
        s = by(&(ls_unpack){path, m.data, m.nbytes, put_first, &b}, &why);
        if (s == LS_EABORT)
            s = LS_OK;
        else if (s != LS_OK && e)
            *e = why;
    } else if (m.nbytes) {
        put_first(&b, m.data, m.nbytes < LS_PLAIN_FIRST ? m.nbytes : LS_PLAIN_FIRST, NULL);
    }
    *n_p = b.n;
    *size_p = by ? UINT64_MAX : m.nbytes;
    ls_file_unmap(&m);
    return s;
}
