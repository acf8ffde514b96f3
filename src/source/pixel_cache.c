/* pixel_cache.c - see pixel_cache.h. A place has for each field a hash and then the pixels. Places
 * are written by pwritev(), not through a map: on a full disk that fails instead of ending the
 * process. */
#include "source/pixel_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/file.h"
#include "source/bytes.h"
#include "source/note.h"

enum { VERSION = 1 }; /* another whenever the same file becomes other pixels */

typedef struct kept_field {
    size_t offset, nbytes; /* in a sample */
    size_t at;             /* in a place */
} kept_field;

struct ls_pixel_cache {
    int fd;
    ls_hash key;
    uint64_t n;    /* places */
    size_t nbytes; /* of a place */
    kept_field fields[LS_SOURCE_FIELDS];
    int nfields;
    char *path;
    atomic_bool failed; /* nothing more is written */
};

static ls_hash key_of(const ls_source *s, const ls_source_options *o) {
    ls_buf b = {0};
    ls_bytes_put_u64(&b, VERSION);
    ls_bytes_put_text(&b, s->format);
    ls_bytes_put(&b, &s->hash, sizeof s->hash);
    ls_bytes_put(&b, &s->scale, sizeof s->scale);
    ls_bytes_put_u64(&b, o->skip_damaged);
    ls_bytes_put_u64(&b, s->count);
    for (int k = 0; k < s->nfields; k++) {
        ls_bytes_put_text(&b, s->fields[k].name);
        ls_bytes_put_u64(&b, s->fields[k].nbytes);
    }
    ls_hash key = ls_hash_bytes(b.data, b.len);
    ls_buf_free(&b);
    return key;
}

static void add_fields(ls_pixel_cache *p, const ls_source *s) {
    for (int k = 0; k < s->nfields; k++) {
        const ls_field *f = &s->fields[k];
        if (!ls_field_is_image(f)) continue;
        p->fields[p->nfields++] = (kept_field){f->offset, f->nbytes, p->nbytes};
        p->nbytes += sizeof(ls_hash) + f->nbytes;
    }
}

/* Half of the disk's room stays free, beside what the file has already. */
static uint64_t room_of(int fd) {
    struct statvfs v;
    struct stat st;
    if (fstatvfs(fd, &v) != 0 || fstat(fd, &st) != 0) return 0;
    return (uint64_t)v.f_bavail * v.f_frsize / 2 + (uint64_t)st.st_blocks * 512;
}

static ls_status open_file(ls_pixel_cache *p, const char *dir, ls_error *e) {
    LS_TRY(ls_file_make_dirs(dir, e));
    p->fd = open(p->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (p->fd < 0) return ls_fail(e, LS_EIO, "%s: can't be opened: %s", p->path, strerror(errno));
    ls_cache_touch(p->fd);
    return LS_OK;
}

/* Fewer places where there is no room for all. */
static void limit(ls_pixel_cache *p, uint64_t most, const char *what) {
    uint64_t room = room_of(p->fd), all = p->n;
    if (most > room) most = room;
    if (p->n > most / p->nbytes) p->n = most / p->nbytes;
    if (p->n < all)
        ls_note(
            "%s: the cache has room for the scaled pixels of %llu of %llu images, %.3g MB each; "
            "the others are decoded each time they are read (data.cache_gb)",
            what, (unsigned long long)p->n, (unsigned long long)all, (double)p->nbytes / 1e6);
}

ls_pixel_cache *ls_pixel_cache_open(const ls_source *s, const ls_source_options *o,
                                    const char *what) {
    char name[LS_HASH_TEXT];
    ls_error e = {0};
    if (!s->scales || !o->pixels_nbytes || o->fresh) return NULL;
    ls_pixel_cache *p = LS_NEW(ls_pixel_cache);
    p->fd = -1;
    p->n = s->count;
    p->key = key_of(s, o);
    add_fields(p, s);
    ls_hash_text(p->key, name);
    char *dir = ls_cache_dir(o->cache, "index");
    p->path = ls_format("%s/%s.pixels", dir, name);
    if (open_file(p, dir, &e) == LS_OK) {
        limit(p, o->pixels_nbytes, what);
        ls_cache_remove_old(dir);
    } else {
        ls_note("%s; images are decoded each time they are read", e.msg);
    }
    free(dir);
    if (p->fd >= 0 && p->n && p->nfields) return p;
    ls_pixel_cache_close(p);
    return NULL;
}

void ls_pixel_cache_close(ls_pixel_cache *p) {
    if (!p) return;
    if (p->fd >= 0) close(p->fd);
    free(p->path);
    free(p);
}

/* ---- places ---- */

static const kept_field *find(const ls_pixel_cache *p, uint64_t i, size_t offset) {
    for (int k = 0; p && i < p->n && k < p->nfields; k++)
        if (p->fields[k].offset == offset) return &p->fields[k];
    return NULL;
}

/* A hash of the pixels, of the cache's key and of the sample's number. */
static ls_hash hash_of(const ls_pixel_cache *p, uint64_t i, const void *pixels, size_t nbytes) {
    ls_hash h = ls_hash_bytes(pixels, nbytes);
    h.lo ^= p->key.lo;
    h.hi ^= p->key.hi + i;
    return h;
}

static off_t place_of(const ls_pixel_cache *p, uint64_t i, const kept_field *f) {
    return (off_t)(i * p->nbytes + f->at);
}

bool ls_pixel_cache_get(const ls_pixel_cache *p, uint64_t i, size_t offset, void *out) {
    const kept_field *f = find(p, i, offset);
    ls_hash was;
    if (!f) return false;
    struct iovec to[2] = {{&was, sizeof was}, {out, f->nbytes}};
    ssize_t n = preadv(p->fd, to, 2, place_of(p, i, f));
    return n == (ssize_t)(sizeof was + f->nbytes) &&
           ls_hash_same(was, hash_of(p, i, out, f->nbytes));
}

void ls_pixel_cache_put(ls_pixel_cache *p, uint64_t i, size_t offset, const void *in) {
    const kept_field *f = find(p, i, offset);
    if (!f || atomic_load(&p->failed)) return;
    ls_hash h = hash_of(p, i, in, f->nbytes);
    union {
        const void *in;
        void *base;
    } pixels = {in};
    struct iovec from[2] = {{&h, sizeof h}, {pixels.base, f->nbytes}};
    ssize_t n = pwritev(p->fd, from, 2, place_of(p, i, f));
    if (n == (ssize_t)(sizeof h + f->nbytes) || atomic_exchange(&p->failed, true)) return;
    ls_note("%s: can't be written: %s; images are decoded each time they are read", p->path,
            n < 0 ? strerror(errno) : "the disk is full");
}
