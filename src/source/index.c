/* index.c - see index.h.
 *
 * The file: a head, then the number of files, each with its path, then what the reader put. The
 * checksum finds damage, not forgery: nothing in it is trusted beyond what is checked.
 */
#include "source/index.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/file.h"
#include "base/log.h"
#include "source/options.h"

enum {
    VERSION = 11, /* another whenever a reader puts something else, or finds something else */
    LEAST_NBYTES = 1 << 20,
    LARGE = 16, /* a file is large from LEAST_NBYTES / LARGE on */
    MOST_DEPTH = 16
};
static const char MAGIC[8] = "LSINDEX";
/* Times of files advance by a tick of the kernel, 10 ms at most. */
static const int64_t SETTLED_NS = 20000000;
static const size_t MOST_NBYTES = (size_t)1 << 36;

typedef struct head {
    char magic[8];
    uint32_t version, order; /* 1 in the machine's order of bytes */
    ls_hash key;             /* what it is an index of */
    uint64_t nbytes;         /* } of what follows */
    ls_hash hash;            /* } */
} head;

typedef struct index_file {
    char *path; /* real */
    ls_index_file known;
} index_file;

/* A copy in the cache (unpacked.h). */
typedef struct watched {
    char *path;
    ls_stamp stamp;
    _Atomic int64_t ctime_ns; /* the stamp's, or a later one with the same bytes */
    uint64_t nbytes;          /* } of the bytes that are used */
    ls_hash hash;             /* } */
} watched;

struct ls_index {
    char *dir, *path;
    ls_hash key;
    uint64_t least_nbytes;
    int lock; /* -1: nothing can be saved */
    bool large, known, unsettled;
    index_file *files; /* [nfiles] in the order of their opening */
    size_t nfiles, next;
    watched *copies; /* [ncopies] */
    size_t ncopies;
    ls_buf text, out;
    ls_bytes in;
    char *trouble;
};

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- names ---- */

/* The path from the root, or as given where there is none; the caller frees it. */
static char *real_path(const char *path) {
    char *real = realpath(path, NULL);
    return real ? real : ls_strdup(path);
}

static ls_hash key_of(const char *format, const ls_files *files, const ls_source_options *o,
                      const ls_buf *decides) {
    ls_buf b = {0};
    ls_bytes_put_text(&b, format);
    ls_bytes_put_text(&b, o->labels);
    ls_bytes_put_u64(&b, o->skip_damaged);
    ls_bytes_put_u64(&b, o->missing);
    ls_buf_append(&b, decides->data, decides->len);
    ls_bytes_put_u64(&b, o->most_nbytes);
    ls_bytes_put(&b, &o->most_ratio, sizeof o->most_ratio);
    for (size_t i = 0; i < files->n; i++) {
        char *real = real_path(files->paths[i]);
        ls_bytes_put_text(&b, real);
        free(real);
    }
    ls_hash key = ls_hash_bytes(b.data, b.len);
    ls_buf_free(&b);
    return key;
}

/* Bytes of a file, or of a directory and of those below it, until they are `most`; links to
 * directories are not followed, but those of the first level. */
static uint64_t size_of(const char *path, uint64_t most, int depth) {
    struct stat st;
    if ((depth > 1 ? lstat(path, &st) : stat(path, &st)) != 0) return 0;
    if (!S_ISDIR(st.st_mode)) return S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    uint64_t nbytes = (uint64_t)ls_file_folder_nbytes(path);
    DIR *d = depth < MOST_DEPTH ? opendir(path) : NULL;
    for (struct dirent *entry; d && nbytes < most && (entry = readdir(d));) {
        if (entry->d_name[0] == '.') continue;
        char *inner = ls_format("%s/%s", path, entry->d_name);
        if (ls_file_is_dir(inner)) nbytes += size_of(inner, most - nbytes, depth + 1);
        free(inner);
    }
    if (d) closedir(d);
    return nbytes;
}

/* ---- load ---- */

static void free_files(ls_index *x) {
    for (size_t i = 0; i < x->nfiles; i++) free(x->files[i].path);
    free(x->files);
    for (size_t i = 0; i < x->ncopies; i++) free(x->copies[i].path);
    free(x->copies);
    x->files = NULL;
    x->copies = NULL;
    x->nfiles = x->next = x->ncopies = 0;
}

static bool parse(ls_index *x) {
    head h;
    ls_bytes in = {(const uint8_t *)x->text.data, x->text.len, false};
    ls_bytes_take(&in, &h, sizeof h);
    if (in.bad || memcmp(h.magic, MAGIC, sizeof MAGIC) != 0 || h.version != VERSION ||
        h.order != 1 || !ls_hash_same(h.key, x->key) || h.nbytes != in.left ||
        !ls_hash_same(h.hash, ls_hash_bytes(in.at, in.left)))
        return false;
    uint64_t n = ls_bytes_take_u64(&in, in.left);
    for (uint64_t i = 0; i < n && !in.bad; i++) {
        x->files = ls_grow(x->files, x->nfiles, sizeof *x->files);
        index_file *f = &x->files[x->nfiles++];
        f->path = ls_bytes_take_text(&in, PATH_MAX);
        ls_bytes_take(&in, &f->known, sizeof f->known);
    }
    x->in = in;
    return !in.bad;
}

static bool load(ls_index *x) {
    ls_error e;
    int fd = open(x->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ls_cache_touch(fd);
    close(fd);
    x->known = ls_file_read(x->path, MOST_NBYTES, &x->text, &e) == LS_OK && parse(x);
    if (!x->known) {
        free_files(x);
        ls_buf_free(&x->text);
    }
    return x->known;
}

/* No other process makes this index meanwhile. */
static void lock(ls_index *x) {
    ls_error e = {0};
    if (ls_cache_lock(x->dir, x->key, &x->lock, &e) == LS_OK) return;
    x->lock = -1;
    ls_index_note_trouble(x, &e);
}

static void unlock(ls_index *x) {
    if (x->lock >= 0) close(x->lock);
    x->lock = -1;
}

ls_index *ls_index_open(const char *format, const ls_files *files, const ls_source_options *o,
                        const ls_buf *decides) {
    char name[LS_HASH_TEXT];
    ls_index *x = LS_NEW(ls_index);
    x->lock = -1;
    x->least_nbytes = o->index_nbytes ? o->index_nbytes : LEAST_NBYTES;
    x->key = key_of(format, files, o, decides);
    x->dir = ls_cache_dir(o->cache, "index");
    ls_hash_text(x->key, name);
    x->path = ls_format("%s/%s", x->dir, name);
    uint64_t nbytes = 0;
    for (size_t i = 0; i < files->n && nbytes < x->least_nbytes; i++)
        nbytes += size_of(files->paths[i], x->least_nbytes - nbytes, 0);
    x->large = nbytes >= x->least_nbytes;
    if (!x->large || (!o->fresh && load(x))) return x;
    lock(x);
    if (!o->fresh && x->lock >= 0 && load(x)) unlock(x); /* another process has made it */
    return x;
}

void ls_index_forget(ls_index *x) {
    x->known = false;
    free_files(x);
    ls_buf_free(&x->text);
    x->out.len = 0;
    if (x->large && x->lock < 0) lock(x);
}

void ls_index_free(ls_index *x) {
    if (!x) return;
    unlock(x);
    free_files(x);
    ls_buf_free(&x->text);
    ls_buf_free(&x->out);
    free(x->trouble);
    free(x->path);
    free(x->dir);
    free(x);
}

/* ---- what is known ---- */

const char *ls_index_copies(const ls_index *x, uint64_t nbytes) {
    return x && x->large && nbytes >= x->least_nbytes / LARGE ? x->dir : NULL;
}

bool ls_index_is_known(const ls_index *x) { return x && x->known; }
ls_bytes *ls_index_in(ls_index *x) { return &x->in; }
ls_buf *ls_index_out(ls_index *x) { return x && x->lock >= 0 ? &x->out : NULL; }

static ls_status stamp_of_file(int fd, const char *path, ls_stamp *s_p, ls_error *e) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return ls_fail(e, LS_EIO, "%s: can't be looked at: %s", path, strerror(errno));
    *s_p = ls_stamp_of(&st);
    return LS_OK;
}

static int64_t age_of(const ls_stamp *s) {
    return now_ns() - (s->mtime_ns > s->ctime_ns ? s->mtime_ns : s->ctime_ns);
}

void ls_index_note_state(ls_index *x, const struct stat *st) {
    ls_stamp stamp = ls_stamp_of(st);
    if (x && age_of(&stamp) < SETTLED_NS) x->unsettled = true;
}

/* A file that was changed a moment ago could be changed again without another time. A large one is
 * worth waiting for. */
static ls_status settle(ls_index *x, int fd, const char *path, ls_stamp *s_p, ls_error *e) {
    int64_t age = age_of(s_p);
    if (age >= SETTLED_NS) return LS_OK;
    if (age < 0 || s_p->nbytes < x->least_nbytes / LARGE) { /* below 0: clocks differ */
        x->unsettled = true;
        return LS_OK;
    }
    nanosleep(&(struct timespec){.tv_nsec = SETTLED_NS}, NULL);
    return stamp_of_file(fd, path, s_p, e);
}

ls_status ls_index_find(ls_index *x, const char *path, int fd, ls_index_file *f_p, ls_error *e) {
    ls_index_file f = {0};
    LS_TRY(stamp_of_file(fd, path, &f.stamp, e));
    if (x && x->large && !x->known) LS_TRY(settle(x, fd, path, &f.stamp, e));
    if (ls_index_is_known(x)) {
        char *real = real_path(path);
        const index_file *g = x->next < x->nfiles ? &x->files[x->next++] : NULL;
        bool same = g && strcmp(g->path, real) == 0 && ls_stamp_same(&g->known.stamp, &f.stamp);
        free(real);
        if (!same) return ls_fail(e, LS_EINVAL, "%s: has changed since it was indexed", path);
        f = g->known;
    }
    *f_p = f;
    return LS_OK;
}

void ls_index_add(ls_index *x, const char *path, const ls_index_file *f) {
    if (!x || x->known) return;
    x->files = ls_grow(x->files, x->nfiles, sizeof *x->files);
    x->files[x->nfiles++] = (index_file){real_path(path), *f};
}

void ls_index_watch(ls_index *x, const char *path, const struct stat *st, uint64_t nbytes,
                    ls_hash hash) {
    ls_stamp s = ls_stamp_of(st);
    x->copies = ls_grow(x->copies, x->ncopies, sizeof *x->copies);
    x->copies[x->ncopies++] = (watched){ls_strdup(path), s, s.ctime_ns, nbytes, hash};
}

static ls_status verify_copy(watched *w, ls_error *e) {
    struct stat st;
    ls_hash hash = {0};
    if (stat(w->path, &st) != 0) return LS_OK;
    ls_stamp now = ls_stamp_of(&st);
    if (now.inode != w->stamp.inode || now.ctime_ns == atomic_load(&w->ctime_ns)) return LS_OK;
    int fd = open(w->path, O_RDONLY | O_CLOEXEC);
    bool whole = !ls_stamp_is_written(&w->stamp, &now) && fd >= 0 &&
                 ls_file_hash_first(fd, w->path, w->nbytes, &hash, NULL) == LS_OK &&
                 ls_hash_same(hash, w->hash);
    if (fd >= 0) close(fd);
    if (whole) atomic_store(&w->ctime_ns, now.ctime_ns);
    return whole ? LS_OK
                 : ls_fail(e, LS_EIO,
                           "%s: was written to while it was open; start again: then it is unpacked "
                           "again",
                           w->path);
}

ls_status ls_index_verify(const ls_index *x, ls_error *e) {
    for (size_t i = 0; x && i < x->ncopies; i++) LS_TRY(verify_copy(&x->copies[i], e));
    for (size_t i = 0; x && i < x->nfiles; i++) {
        const index_file *f = &x->files[i];
        struct stat st;
        if (stat(f->path, &st) != 0)
            return ls_fail(e, LS_EIO, "%s: is no longer there: %s", f->path, strerror(errno));
        ls_stamp now = ls_stamp_of(&st);
        if (!ls_stamp_same(&now, &f->known.stamp))
            return ls_fail(e, LS_EIO,
                           "%s: has changed since it was opened (then %llu bytes, now %llu); put "
                           "the file back and start again",
                           f->path, (unsigned long long)f->known.stamp.nbytes,
                           (unsigned long long)now.nbytes);
    }
    return LS_OK;
}

/* ---- save ---- */

void ls_index_note_trouble(ls_index *x, const ls_error *e) {
    if (x && !x->trouble) x->trouble = ls_strdup(e->msg);
}

static void put_files(const ls_index *x, ls_buf *b) {
    ls_bytes_put_u64(b, x->nfiles);
    for (size_t i = 0; i < x->nfiles; i++) {
        ls_bytes_put_text(b, x->files[i].path);
        ls_bytes_put(b, &x->files[i].known, sizeof x->files[i].known);
    }
}

/* Without waiting for the disk: one that a crash leaves damaged is made again. */
static ls_status replace(const char *path, const ls_buf *b, ls_error *e) {
    char *fresh = ls_file_only_fresh_name(path);
    ls_file f = {.fd = -1};
    ls_status s = ls_file_create(fresh, &f, e);
    if (s == LS_OK) {
        s = ls_file_put(&f, b->data, b->len, e);
        close(f.fd);
        if (s != LS_OK) unlink(fresh);
        free(f.path);
    }
    if (s == LS_OK) s = ls_file_rename(fresh, path, e);
    free(fresh);
    return s;
}

static ls_status write_index(ls_index *x, ls_error *e) {
    head h = {.version = VERSION, .order = 1, .key = x->key};
    ls_buf b = {0};
    memcpy(h.magic, MAGIC, sizeof MAGIC);
    ls_buf_append(&b, &h, sizeof h);
    put_files(x, &b);
    ls_bytes_put(&b, x->out.data, x->out.len);
    h.nbytes = b.len - sizeof h;
    h.hash = ls_hash_bytes(b.data + sizeof h, h.nbytes);
    memcpy(b.data, &h, sizeof h);
    ls_status s = b.len <= MOST_NBYTES ? replace(x->path, &b, e) : LS_OK;
    ls_buf_free(&b);
    return s;
}

/* Once in a process: a source is opened for training and for validation. */
static void warn(const ls_index *x) {
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&warned))
        ls_log("%s; data are read and unpacked again each time they are opened (XDG_CACHE_HOME=DIR "
               "chooses another cache)",
               x->trouble);
}

void ls_index_save(ls_index *x, ls_source *s) {
    ls_error e = {0};
    s->index_use = x->known ? LS_INDEX_USED : LS_INDEX_NONE;
    bool worth = x->large && !x->known;
    if (worth && x->lock >= 0 && !x->unsettled && ls_index_verify(x, NULL) == LS_OK) {
        if (write_index(x, &e) == LS_OK)
            s->index_use = LS_INDEX_MADE;
        else
            ls_index_note_trouble(x, &e);
        ls_cache_remove_old(x->dir);
    }
    if (worth && x->trouble) warn(x);
    unlock(x);
    ls_buf_free(&x->text);
    ls_buf_free(&x->out);
    x->in = (ls_bytes){0};
}
