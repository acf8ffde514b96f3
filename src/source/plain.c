/* plain.c - see plain.h. */
#include "source/plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/guard.h"
#include "source/unpacked.h"

typedef ls_status unpacker(const ls_unpack *, ls_error *);

/* NULL: the bytes are not packed. */
static unpacker *unpacker_of(const uint8_t *data, size_t nbytes, const char **packing_p) {
    bool gzip = ls_is_gzip(data, nbytes), zstd = ls_is_zstd(data, nbytes);
    *packing_p = gzip ? "gzip" : zstd ? "zstd" : NULL;
    return gzip ? ls_unpack_gzip : zstd ? ls_unpack_zstd : NULL;
}

/* ---- open ---- */

/* Opens a packed file's bytes, and closes p->data, the packed ones. */
static ls_status unpack(ls_plain *p, unpacker *by, const ls_stamp *stamp,
                        const ls_source_options *o, ls_error *e) {
    ls_unpacked u = {0};
    ls_packed packed = {p->path, p->data, p->nbytes, *stamp, by};
    LS_TRY(ls_unpacked_open(&packed, o, &u, e));
    ls_guard_unmap(p->data, p->nbytes);
    p->data = u.data;
    p->nbytes = u.nbytes;
    p->hash = u.hash;
    return LS_OK;
}

/* A file that got its size but not its beginning is not read: it may take hours until its end. A
 * packed file and all formats begin with bytes that are not 0; texts, and tokens without a header,
 * do so within a megabyte. */
static const size_t HOLE = 1 << 20;

/* Where the hole at `at` ends, if there is one. */
static size_t hole_end(int fd, size_t at, size_t nbytes) {
    off_t data = lseek(fd, (off_t)at, SEEK_DATA);
    return data >= 0 ? (size_t)data : errno == ENXIO ? nbytes : at;
}

static ls_status check_written(const char *path, int fd, size_t nbytes, ls_error *e) {
    if (nbytes < HOLE) return LS_OK;
    size_t hole = hole_end(fd, 0, nbytes);
    if (hole < HOLE) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: its first %.1f MB of %.1f were never written: it is incomplete; copy or "
                   "download it again",
                   path, (double)hole / 1e6, (double)nbytes / 1e6);
}

static ls_status check_holes(const char *path, int fd, size_t nbytes, ls_holes holes, ls_error *e) {
    size_t at = holes == LS_HOLES_ALLOWED ? nbytes : 0;
    while (at < nbytes) {
        off_t hole = lseek(fd, (off_t)at, SEEK_HOLE);
        if (hole < 0 || (size_t)hole >= nbytes) return LS_OK;
        at = hole_end(fd, (size_t)hole, nbytes);
        bool refused = holes == LS_HOLES_REFUSED || at == nbytes;
        if (refused && at - (size_t)hole >= HOLE)
            return ls_fail(e, LS_EINVAL,
                           "%s: %.1f MB from offset %lld on were never written: it is incomplete; "
                           "copy or download it again",
                           path, (double)(at - (size_t)hole) / 1e6, (long long)hole);
        if (at == (size_t)hole) return LS_OK;
    }
    return LS_OK;
}

ls_status ls_plain_check_text(const char *path, ls_error *e) {
    int fd = -1;
    struct stat st;
    LS_TRY(ls_file_open_regular(path, &fd, &st, e));
    ls_status s = check_holes(path, fd, (size_t)st.st_size, LS_HOLES_REFUSED, e);
    close(fd);
    return s;
}

typedef struct reading {
    ls_holes holes;
    ls_plain_check *check; /* NULL: none */
    void *context;
    bool unhashed;
} reading;

static ls_status read_file(ls_plain *p, int fd, const ls_source_options *o, const reading *how,
                           ls_error *e) {
    ls_index *x = o ? o->index : NULL;
    ls_index_file f = {0};
    LS_TRY(ls_index_find(x, p->path, fd, &f, e));
    const void *data = NULL;
    LS_TRY(check_written(p->path, fd, f.stamp.nbytes, e));
    LS_TRY(ls_guard_map(fd, p->path, f.stamp.nbytes, &data, e));
    p->data = data;
    p->nbytes = p->file_nbytes = f.stamp.nbytes;
    unpacker *by = unpacker_of(p->data, p->nbytes, &p->packing);
    LS_TRY(check_holes(p->path, fd, p->nbytes, by ? LS_HOLES_REFUSED : how->holes, e));
    if (by) LS_TRY(unpack(p, by, &f.stamp, o, e));
    if (how->check) LS_TRY(how->check(p, how->context, e));
    if (!by && !how->unhashed)
        p->hash = ls_index_is_known(x) ? f.hash : ls_hash_bytes(p->data, p->nbytes);
    if (ls_index_is_known(x) && (p->nbytes != f.nbytes || !ls_hash_same(p->hash, f.hash)))
        return ls_fail(e, LS_EINVAL, "%s: is not the file that was indexed", p->path);
    f.nbytes = p->nbytes;
    f.hash = p->hash;
    ls_index_add(x, p->path, &f);
    return ls_guard_check(e);
}

static ls_status open_file(const char *path, const ls_source_options *o, const reading *how,
                           ls_plain *p_p, ls_error *e) {
    int fd = -1;
    struct stat st;
    LS_TRY(ls_file_open_regular(path, &fd, &st, e));
    ls_plain p = {.path = ls_strdup(path)};
    ls_status s = read_file(&p, fd, o, how, e);
    close(fd);
    if (s == LS_OK)
        *p_p = p;
    else
        ls_plain_close(&p);
    return s;
}

ls_status ls_plain_open(const char *path, const ls_source_options *o, ls_holes holes, ls_plain *p_p,
                        ls_error *e) {
    return open_file(path, o, &(reading){.holes = holes}, p_p, e);
}

ls_status ls_plain_open_checked(const char *path, const ls_source_options *o, ls_plain_check *check,
                                void *context, ls_plain *p_p, ls_error *e) {
    return open_file(path, o, &(reading){.check = check, .context = context}, p_p, e);
}

ls_status ls_plain_open_unhashed(const char *path, ls_plain *p_p, ls_error *e) {
    return open_file(path, NULL, &(reading){.unhashed = true}, p_p, e);
}

void ls_plain_close(ls_plain *p) {
    ls_guard_unmap(p->data, p->nbytes);
    free(p->path);
    *p = (ls_plain){0};
}

/* ---- lists ---- */

ls_status ls_plain_open_all(const ls_files *files, const ls_source_options *o, ls_holes holes,
                            ls_plain **list_p, ls_error *e) {
    ls_plain *list = LS_NEW_ARRAY(ls_plain, files->n);
    for (size_t i = 0; i < files->n; i++) {
        ls_status s = ls_plain_open(files->paths[i], o, holes, &list[i], e);
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

static ls_status find_first(const char *path, const ls_mapped *m, beginning *b, uint64_t *size_p,
                            ls_error *e) {
    const char *packing = NULL;
    unpacker *by = unpacker_of(m->data, m->nbytes, &packing);
    ls_error why = {0};
    *size_p = by ? UINT64_MAX : m->nbytes;
    if (!by && m->nbytes)
        put_first(b, m->data, m->nbytes < LS_PLAIN_FIRST ? m->nbytes : LS_PLAIN_FIRST, NULL);
    if (!by) return LS_OK;
    ls_status s = by(&(ls_unpack){path, m->data, m->nbytes, put_first, b}, &why);
    if (s == LS_EABORT) return LS_OK;
    if (s != LS_OK && e) *e = why;
    return s;
}

ls_status ls_plain_first(const char *path, uint8_t first[LS_PLAIN_FIRST], size_t *n_p,
                         uint64_t *size_p, ls_error *e) {
    ls_mapped m;
    beginning b = {first, 0};
    const char *packing = NULL;
    int fd = -1;
    struct stat st;
    LS_TRY(ls_file_open_regular(path, &fd, &st, e));
    ls_status s = check_written(path, fd, (size_t)st.st_size, e);
    if (s == LS_OK) s = ls_file_map(path, &m, e);
    if (s != LS_OK) {
        close(fd);
        return s;
    }
    if (unpacker_of(m.data, m.nbytes, &packing))
        s = check_holes(path, fd, m.nbytes, LS_HOLES_REFUSED, e);
    close(fd);
    if (s == LS_OK) s = find_first(path, &m, &b, size_p, e);
    if (s == LS_OK) s = ls_guard_check(e);
    ls_file_unmap(&m);
    if (s == LS_OK) *n_p = b.n;
    return s;
}
