/* transcript.c - see transcript.h. The file is opened for each text, which are few: so there is
 * nothing that a fork could leave locked, and a file that was renamed or removed meanwhile is no
 * error. */
#include "base/transcript.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

enum { OFF, HELD, OPENING, OPEN };
/* PIECE: how much is written at once; LONGEST: bytes of a line's time. */
enum { PIECE = 16 << 10, LONGEST = 32 };

/* Shared by the processes of a host. `path` is written once, before OPEN. */
typedef struct transcript {
    atomic_int state;
    atomic_bool failed; /* a text could not be written, which was logged */
    atomic_size_t nheld;
    char path[PATH_MAX];
    char held[LS_TRANSCRIPT_HELD];
} transcript;

static transcript *shared;        /* NULL: none has begun */
static atomic_bool in_the_middle; /* of a line, after this process's last text */

static atomic_bool begun; /* and not ended */

void ls_transcript_begin(void) {
    atomic_store(&begun, true);
    if (!shared) {
        void *p =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return;
        shared = p;
    }
    atomic_store(&shared->nheld, 0);
    atomic_store(&shared->failed, false);
    atomic_store(&in_the_middle, false);
    atomic_store(&shared->state, HELD);
}

bool ls_transcript_try(void) {
    if (atomic_exchange(&begun, true)) return false;
    ls_transcript_begin();
    return true;
}

void ls_transcript_end(void) {
    if (shared) atomic_store(&shared->state, OFF);
    atomic_store(&begun, false);
}

/* ---- the file ---- */

/* -1: errno says why. A link, or a pipe, at this name is not ours. */
static int open_file(const char *path, int how, off_t *size_p) {
    struct stat st;
    int fd = open(path, O_WRONLY | how | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0) return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        *size_p = st.st_size;
        return fd;
    }
    close(fd);
    errno = EINVAL;
    return -1;
}

static int open_with_room(const char *path) {
    char old[PATH_MAX + 2];
    off_t size = 0;
    int fd = open_file(path, 0, &size);
    if (fd < 0 || size <= LS_TRANSCRIPT_NBYTES) return fd;
    snprintf(old, sizeof old, "%s.1", path);
    close(fd);
    (void)rename(path, old);
    return open_file(path, O_CREAT, &size);
}

static void write_text(const char *text, size_t n) {
    int fd = open_with_room(shared->path);
    bool ok = fd >= 0 && write(fd, text, n) == (ssize_t)n;
    int why = errno;
    if (fd >= 0) close(fd);
    if (!ok && why == ENOENT) return; /* it was removed: somebody removes the directory */
    if (ok || atomic_exchange(&shared->failed, true)) return;
    ls_log("%s: can't be written: %s; it lacks lines", shared->path, strerror(why));
}

void ls_transcript_renew(void) {
    off_t size = 0;
    if (!shared || atomic_load(&shared->state) != OPEN) return;
    int fd = open_file(shared->path, O_CREAT, &size);
    if (fd >= 0) close(fd);
}

static void put(const char *text, size_t n) {
    int state = atomic_load(&shared->state);
    if (state == OPEN) write_text(text, n);
    if (state != HELD) return;
    size_t at = atomic_fetch_add(&shared->nheld, n);
    if (at + n <= sizeof shared->held) memcpy(shared->held + at, text, n);
}

/* ---- lines ---- */

static size_t write_time(char *out) {
    time_t now = time(NULL);
    struct tm utc;
    return strftime(out, LONGEST, "%Y-%m-%dT%H:%M:%SZ ", gmtime_r(&now, &utc));
}

/* The length of an escape sequence of our own (ESC [ ... letter), or of a CR before one; 0:
 * none. */
static size_t sequence(const char *text, size_t n) {
    size_t i = 2;
    if (n && *text == '\r') return 1;
    if (n < 2 || text[0] != '\033' || text[1] != '[') return 0;
    while (i < n && (text[i] < '@' || text[i] > '~')) i++;
    return i < n ? i + 1 : n;
}

void ls_transcript_add(const char *text, size_t n) {
    char piece[PIECE];
    size_t m = 0;
    if (!shared || atomic_load(&shared->state) == OFF) return;
    bool middle = atomic_load(&in_the_middle);
    for (size_t i = 0; i < n;) {
        size_t skip = sequence(text + i, n - i);
        i += skip;
        if (skip) continue;
        if (m + LONGEST + 1 > sizeof piece) {
            put(piece, m);
            m = 0;
        }
        if (!middle) m += write_time(piece + m);
        middle = text[i] != '\n';
        piece[m++] = text[i++];
    }
    if (m) put(piece, m);
    atomic_store(&in_the_middle, middle);
}

void ls_transcript_open(const char *path, const char *first) {
    int held = HELD;
    if (!shared || strlen(path) >= sizeof shared->path) return;
    if (!atomic_compare_exchange_strong(&shared->state, &held, OPENING)) return;
    snprintf(shared->path, sizeof shared->path, "%s", path);
    size_t n = atomic_load(&shared->nheld);
    atomic_store(&shared->state, OPEN);
    ls_transcript_renew();
    bool middle = atomic_exchange(&in_the_middle, false);
    if (first) ls_transcript_add(first, strlen(first));
    if (first) ls_transcript_add("\n", 1);
    if (n > sizeof shared->held) n = sizeof shared->held;
    if (n) write_text(shared->held, n);
    atomic_store(&in_the_middle, middle);
}
