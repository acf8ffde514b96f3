/* follower.c - see follower.h. */
#include "watch/follower.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lines.h"
#include "base/mem.h"

/* A block holds the longest line. Zeros that stay for ZEROS_S are not waited for. */
enum { BLOCK = 4 * LS_LONGEST_LINE, SPARE = 32, ZEROS_S = 5 };

void ls_follower_open(ls_follower *f, const char *path) {
    *f = (ls_follower){.path = ls_strdup(path)};
}

void ls_follower_close(ls_follower *f) {
    free(f->path);
    *f = (ls_follower){0};
}

/* O_NONBLOCK: a pipe of this name is not waited for. */
static int open_file(const ls_follower *f, struct stat *st) {
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Returns the number of bytes read, fewer at the end of the file. */
static size_t read_at(int fd, char *bytes, size_t n, uint64_t at) {
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(fd, bytes + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += (size_t)got;
    }
    return done;
}

/* ---- places ---- */

static size_t guard_length(const ls_follow_place *p) {
    return p->at < LS_FOLLOW_GUARD ? (size_t)p->at : (size_t)LS_FOLLOW_GUARD;
}

static bool holds(int fd, const ls_follow_place *p) {
    char bytes[LS_FOLLOW_GUARD];
    size_t n = guard_length(p);
    return read_at(fd, bytes, n, p->at - n) == n && memcmp(bytes, p->guard, n) == 0;
}

bool ls_follower_holds(const ls_follower *f, const ls_follow_place *p) {
    struct stat st;
    int fd = open_file(f, &st);
    bool is_held = fd >= 0 && holds(fd, p);
    if (fd >= 0) close(fd);
    return is_held;
}

static void mark(int fd, ls_follow_place *p) {
    size_t n = guard_length(p);
    if (read_at(fd, p->guard, n, p->at - n) != n) memset(p->guard, 0, sizeof p->guard);
}

void ls_follower_mark(const ls_follower *f, ls_follow_place *p) {
    struct stat st;
    int fd = open_file(f, &st);
    memset(p->guard, 0, sizeof p->guard);
    if (fd < 0) return;
    mark(fd, p);
    close(fd);
}

void ls_follower_move(ls_follower *f, const ls_follow_place *p) {
    f->place = *p;
    f->unsettled = true;
    f->passes = false;
    f->zeros_s = 0;
}

/* ---- lines ---- */

typedef struct block {
    char *text; /* [n] from the follower's place */
    size_t n;
    bool full; /* there are more bytes behind it */
} block;

/* Uses the lines of a block; returns the bytes that are done with. */
static size_t use_lines(ls_follower *f, const block *b, double now_s, ls_follow_use *use,
                        void *arg) {
    size_t done = 0;
    const char *zero = memchr(b->text, 0, b->n); /* the next one; NULL: there is none */
    while (done < b->n) {
        const char *line = b->text + done, *end = memchr(line, '\n', b->n - done);
        size_t length = end ? (size_t)(end - line) : b->n - done;
        if (zero && zero < line) zero = memchr(line, 0, b->n - done);
        bool has_zeros = zero && zero < line + length;
        if (has_zeros && f->zeros_s <= 0) f->zeros_s = now_s;
        if (has_zeros && now_s - f->zeros_s < ZEROS_S) break;
        bool too_long = !end && (length > LS_LONGEST_LINE || (has_zeros && b->full));
        if (!end && !too_long) break;
        bool whole = end && !f->passes && !has_zeros && length <= LS_LONGEST_LINE;
        f->zeros_s = 0;
        f->passes = !end;
        if (whole) use(arg, line, length, f->place.at + done);
        done += length + (end ? 1 : 0);
    }
    return done;
}

static ls_followed read_lines(ls_follower *f, int fd, double now_s, uint64_t most,
                              ls_follow_use *use, void *arg) {
    block b = {.text = ls_alloc(BLOCK + SPARE)};
    uint64_t from = f->place.at;
    bool more = true;
    while (more && f->place.at - from < most) {
        b.n = read_at(fd, b.text, BLOCK, f->place.at);
        b.full = b.n == BLOCK;
        size_t done = use_lines(f, &b, now_s, use, arg);
        f->place.at += done;
        f->unsettled = done < b.n || f->passes;
        more = done && b.full;
    }
    free(b.text);
    if (f->place.at > from) mark(fd, &f->place);
    if (more) f->unsettled = true;
    return f->place.at > from ? LS_FOLLOWED_LINES : LS_FOLLOWED_NOTHING;
}

static bool is_unchanged(const ls_follower *f, const struct stat *st) {
    int64_t changed_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    return st->st_ino == f->inode && st->st_dev == f->device &&
           (uint64_t)st->st_size == f->nbytes && changed_ns == f->changed_ns;
}

ls_followed ls_follower_read(ls_follower *f, double now_s, uint64_t most, ls_follow_use *use,
                             void *arg) {
    struct stat st;
    if (stat(f->path, &st) != 0) {
        f->inode = 0;
        return LS_FOLLOWED_NOTHING; /* it may come again */
    }
    if (is_unchanged(f, &st) && !f->unsettled) return LS_FOLLOWED_NOTHING;
    int fd = open_file(f, &st);
    if (fd < 0) return LS_FOLLOWED_NOTHING;
    ls_followed result = LS_FOLLOWED_BACK;
    if (holds(fd, &f->place)) {
        f->inode = st.st_ino;
        f->device = st.st_dev;
        f->nbytes = (uint64_t)st.st_size;
        f->changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        result = read_lines(f, fd, now_s, most, use, arg);
    }
    close(fd);
    return result;
}
