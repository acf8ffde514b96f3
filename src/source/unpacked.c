/* unpacked.c - see unpacked.h. */
#include "source/unpacked.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/scratch.h"
#include "source/note.h"

#define MOST_NBYTES ((uint64_t)1000 * 1000 * 1000 * 1000)
static const double most_ratio = 1000;
/* Up to 16 MB the ratio does not matter: a small file of zeros is no bomb. */
static const uint64_t small = 16 << 20;

/* The end of a copy. Its modification time is that of the packed file: whoever changes the copy
 * changes that, too. */
typedef struct tail {
    char magic[8];
    uint32_t version, order; /* 1 in the machine's order of bytes */
    ls_stamp packed;
    uint64_t nbytes; /* } of the bytes before the tail */
    ls_hash hash;    /* } */
    ls_hash check;   /* hash of the tail up to here */
} tail;
static const char MAGIC[8] = "LSPLAIN";

/* ---- unpack ---- */

typedef struct target {
    const ls_packed *packed;
    const char *dir;
    ls_index *index; /* NULL: there is none */
    int file;
    uint64_t nbytes, most_nbytes;
    double most_ratio;
    ls_hasher *hasher;
} target;

static ls_status check_limits(const target *t, ls_error *e) {
    if (t->nbytes > t->most_nbytes)
        return ls_fail(
            e, LS_EINVAL,
            "%s: unpacks to more than %.1f MB, the most that is unpacked here; if the file is "
            "what it should be, unpack it by another program, and name the unpacked file",
            t->packed->path, (double)t->most_nbytes / 1e6);
    if (t->nbytes > small && (double)t->nbytes > t->most_ratio * (double)t->packed->nbytes)
        return ls_fail(e, LS_EINVAL,
                       "%s: its %zu bytes unpack to more than %g times as many, the most that is "
                       "unpacked here; if the file is what it should be, unpack it by another "
                       "program, and name the unpacked file",
                       t->packed->path, t->packed->nbytes, t->most_ratio);
    return LS_OK;
}

static ls_status write_bytes(const target *t, const void *bytes, size_t n, uint64_t at,
                             ls_error *e) {
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
            t->packed->path, t->dir, (double)at / 1e6, put < 0 ? strerror(errno) : "it is full");
    }
    return LS_OK;
}

static ls_status put(void *context, const void *bytes, size_t n, ls_error *e) {
    target *t = context;
    uint64_t at = t->nbytes;
    t->nbytes += n;
    LS_TRY(check_limits(t, e));
    ls_hasher_add(t->hasher, bytes, n);
    return write_bytes(t, bytes, n, at, e);
}

static target new_target(const ls_packed *p, const ls_source_options *o) {
    target t = {.packed = p, .most_nbytes = MOST_NBYTES, .most_ratio = most_ratio, .file = -1};
    if (o) t.index = o->index;
    if (o && o->most_nbytes) t.most_nbytes = o->most_nbytes;
    if (o && o->most_ratio > 0) t.most_ratio = o->most_ratio;
    return t;
}

/* Unpacks into t->file, and sets the hash. */
static ls_status unpack(target *t, ls_hash *hash_p, ls_error *e) {
    const ls_packed *p = t->packed;
    t->hasher = ls_hasher_new();
    ls_status s = p->unpack(&(ls_unpack){p->path, p->data, p->nbytes, put, t}, e);
    *hash_p = ls_hasher_finish(t->hasher);
    return s;
}

/* ---- a copy in the cache ---- */

static ls_hash check_of(const tail *end) { return ls_hash_bytes(end, offsetof(tail, check)); }

/* A disk may lose bits, and whoever changes some can set the time back: all of it is read. */
static bool is_whole(int fd, const char *copy, const tail *end) {
    ls_hash hash;
    if (ls_file_hash_first(fd, copy, end->nbytes, &hash, NULL) != LS_OK) return false;
    bool whole = ls_hash_same(hash, end->hash);
    if (!whole) ls_note("%s: is damaged: its hash is not what it was; unpacked again", copy);
    return whole;
}

/* Maps the copy if it is one of the packed file as it is. */
static bool map_copy(const char *copy, const target *limits, ls_unpacked *u_p) {
    struct stat st;
    tail end;
    target t = *limits;
    ls_unpacked u = {0};
    int fd = open(copy, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return false;
    ls_cache_touch(fd);
    off_t at = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size - (off_t)sizeof end : -1;
    bool good = at >= 0 && pread(fd, &end, sizeof end, at) == (ssize_t)sizeof end &&
                memcmp(end.magic, MAGIC, sizeof MAGIC) == 0 && end.version == 1 && end.order == 1 &&
                ls_hash_same(end.check, check_of(&end)) && end.nbytes == (uint64_t)at &&
                memcmp(&end.packed, &t.packed->stamp, sizeof end.packed) == 0 &&
                ls_stamp_of(&st).mtime_ns == end.packed.mtime_ns;
    t.nbytes = good ? end.nbytes : 0;
    good = good && check_limits(&t, NULL) == LS_OK && is_whole(fd, copy, &end);
    if (good) {
        u = (ls_unpacked){.nbytes = end.nbytes, .hash = end.hash};
        good = ls_guard_map(fd, t.packed->path, u.nbytes, &u.data, NULL) == LS_OK;
    }
    close(fd);
    if (good && limits->index) ls_index_watch(limits->index, copy, &st, u.nbytes, u.hash);
    if (good) *u_p = u;
    return good;
}

static ls_status end_copy(target *t, ls_hash hash, ls_error *e) {
    tail end = {.version = 1, .order = 1, .packed = t->packed->stamp, .nbytes = t->nbytes};
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}};
    memcpy(end.magic, MAGIC, sizeof MAGIC);
    end.hash = hash;
    end.check = check_of(&end);
    LS_TRY(write_bytes(t, &end, sizeof end, t->nbytes, e));
    times[1].tv_sec = end.packed.mtime_ns / 1000000000;
    times[1].tv_nsec = end.packed.mtime_ns % 1000000000;
    if (fsync(t->file) == 0 && futimens(t->file, times) == 0) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: can't be written: %s", t->dir, strerror(errno));
}

/* Called by one process at a time. */
static ls_status make_copy(const char *copy, target *t, ls_error *e) {
    char *part = ls_file_only_fresh_name(copy);
    ls_hash hash = {0};
    t->file = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    ls_status s = LS_OK;
    if (t->file < 0) s = ls_fail(e, LS_EIO, "%s: can't be written: %s", part, strerror(errno));
    if (s == LS_OK) s = unpack(t, &hash, e);
    if (s == LS_OK) s = end_copy(t, hash, e);
    if (t->file >= 0) close(t->file);
    if (s == LS_OK)
        s = ls_file_rename(part, copy, e);
    else
        unlink(part);
    free(part);
    return s;
}

static ls_status lock_and_make(const char *copy, target *t, ls_hash key, ls_unpacked *u_p,
                               ls_error *e) {
    int lock = -1;
    LS_TRY(ls_cache_lock(t->dir, key, &lock, e));
    ls_status s = LS_OK;
    if (!map_copy(copy, t, u_p)) { /* or another process has made it */
        s = make_copy(copy, t, e);
        ls_cache_remove_old(t->dir);
        if (s == LS_OK && !map_copy(copy, t, u_p))
            s = ls_fail(e, LS_EIO, "%s: is not what was written", copy);
    }
    close(lock);
    return s;
}

/* LS_EIO: the cache can't be written, or has no room. */
static ls_status open_copy(const ls_packed *p, const ls_source_options *o, const char *dir,
                           ls_unpacked *u_p, ls_error *e) {
    char *real = realpath(p->path, NULL), name[LS_HASH_TEXT];
    const char *path = real ? real : p->path;
    ls_hash key = ls_hash_bytes(path, strlen(path));
    ls_hash_text(key, name);
    char *copy = ls_format("%s/%s.plain", dir, name);
    target t = new_target(p, o);
    t.dir = dir;
    ls_status s = map_copy(copy, &t, u_p) ? LS_OK : lock_and_make(copy, &t, key, u_p, e);
    free(copy);
    free(real);
    return s;
}

/* ---- a file without a name ---- */

/* /tmp may be memory, /var/tmp is a disk. */
static const char *scratch_dir(void) {
    const char *dir = getenv("TMPDIR");
    return dir && *dir ? dir : "/var/tmp";
}

static ls_status open_scratch(const ls_packed *p, const ls_source_options *o, ls_unpacked *u_p,
                              ls_error *e) {
    target t = new_target(p, o);
    ls_unpacked u = {0};
    t.dir = scratch_dir();
    LS_TRY(ls_scratch_open(t.dir, 0, &t.file, e));
    ls_status s = unpack(&t, &u.hash, e);
    u.nbytes = t.nbytes;
    if (s == LS_OK) s = ls_guard_map(t.file, p->path, u.nbytes, &u.data, e);
    close(t.file);
    if (s == LS_OK) *u_p = u;
    return s;
}

ls_status ls_unpacked_open(const ls_packed *p, const ls_source_options *o, ls_unpacked *u_p,
                           ls_error *e) {
    ls_index *x = o ? o->index : NULL;
    const char *dir = ls_index_copies(x, p->nbytes);
    if (!dir) return open_scratch(p, o, u_p, e);
    ls_error own = {0};
    ls_status s = open_copy(p, o, dir, u_p, &own);
    if (s == LS_EIO) { /* the cache's trouble: there may be room elsewhere */
        ls_index_note_trouble(x, &own);
        return open_scratch(p, o, u_p, e);
    }
    if (s != LS_OK && e) *e = own;
    return s;
}
