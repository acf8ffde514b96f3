/* lock.c - see lock.h. */
#include "storage/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"

/* After a failed start has removed the file, another start makes a new one. */
enum { LOOK_US = 20000, GLANCE_US = 1000, MOST_FILES = 1000 };
/* GLANCES_S: processes that only look (ls_lock_look()) share the lock for an instant each.
 * ENDING_S: a start that fails has it alone for no longer. DYING_S: workers of a holder that was
 * killed end within this time, though they may have much memory to give back, on a busy host. */
static const double GLANCES_S = 10, ENDING_S = 0.2, DYING_S = 30, LONG_S = 2;

enum { TEXT = 320 };
static const char RUN[] = "\nrun ", MARK[] = "\nmark "; /* what comes before these numbers */
static const char PROCESS[] = "process ";               /* how the file's text begins */

/* The process that the file's text names. */
typedef struct holder {
    int pid; /* 0: none yet */
    char host[128], since[32];
} holder;

static char *path_of(const char *dir) { return ls_format("%s/lock", dir); }

/* ---- the holder ---- */

/* The number after `name`; "": the text has none. */
static void read_number(int fd, const char *name, char number[LS_LOCK_NUMBER]) {
    char text[TEXT] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    const char *at = n > 0 ? strstr(text, name) : NULL;
    bool good = at && sscanf(at + strlen(name), "%32[0-9a-f]", number) == 1;
    if (!good || strlen(number) < LS_LOCK_NUMBER - 1) number[0] = 0;
}

static void draw_number(char number[LS_LOCK_NUMBER]) {
    uint64_t words[2];
    number[0] = 0;
    if (getrandom(words, sizeof words, 0) == (ssize_t)sizeof words)
        snprintf(number, LS_LOCK_NUMBER, "%016" PRIx64 "%016" PRIx64, words[0], words[1]);
}

static bool write_text(int fd, const char *text, int n) {
    return pwrite(fd, text, (size_t)n, 0) == n && ftruncate(fd, n) == 0;
}

static void write_holder(int fd) {
    char host[128] = "", since[32] = "", run[LS_LOCK_NUMBER], text[TEXT];
    time_t now = time(NULL);
    struct tm utc;
    gethostname(host, sizeof host - 1);
    strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    read_number(fd, RUN, run);
    bool drawn = !*run;
    if (drawn) draw_number(run);
    int n = snprintf(text, sizeof text, "process %d\nhost %s\nsince %s%s%s\n", (int)getpid(), host,
                     since, *run ? RUN : "", run);
    /* On a full disk the text is missing; the lock holds without it. */
    bool written = write_text(fd, text, n);
    if (written && drawn) fsync(fd); /* a file server shows other hosts what is synced */
    errno = 0;
}

/* The text may be anything: only printable characters are accepted. */
static holder read_holder(int fd) {
    char text[TEXT] = "";
    holder h = {0};
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n > 0 && sscanf(text, "process %9d\nhost %127[-A-Za-z0-9._]\nsince %31[-0-9TZ:]", &h.pid,
                        h.host, h.since) != 3)
        h = (holder){0};
    return h;
}

bool ls_lock_is_here(const char *name) {
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    return strcmp(host, name) == 0;
}

/* The holder was killed and its workers are about to end; or it has just taken the lock and not yet
 * written its name. */
static bool is_transient(const holder *h) {
    if (!h->pid) return true;
    return ls_lock_is_here(h->host) && kill(h->pid, 0) != 0 && errno == ESRCH;
}

static void name_holder(const holder *h, char text[LS_LOCK_HOLDER]) {
    if (h->pid)
        snprintf(text, LS_LOCK_HOLDER, "process %d on %s, since %s", h->pid, h->host, h->since);
    else
        snprintf(text, LS_LOCK_HOLDER, "another lockstep");
}

static ls_status fail_in_use(const char *dir, const holder *h, ls_error *e) {
    char text[LS_LOCK_HOLDER];
    if (!h->pid) return ls_fail(e, LS_EINVAL, "%s: is in use by another lockstep", dir);
    name_holder(h, text);
    return ls_fail(e, LS_EINVAL, "%s: is in use by another lockstep: %s", dir, text);
}

/* ---- the file ---- */

static ls_status fail_to(const char *path, const char *what, int why, ls_error *e) {
    struct stat st;
    if (why == EACCES && lstat(path, &st) == 0 && st.st_uid != geteuid())
        return ls_fail(e, LS_EIO,
                       "%s: can't be opened: %s; the run belongs to the user with number %u, and "
                       "only that user can continue it",
                       path, strerror(why), (unsigned)st.st_uid);
    if (why == ELOOP) return ls_fail(e, LS_EIO, "%s: is a link, not a lock file", path);
    return ls_fail(e, LS_EIO, "%s: can't be %s: %s", path, what, strerror(why));
}

/* Refuses a file with this name that another program made. */
static ls_status check_is_lock(int fd, const char *path, ls_error *e) {
    struct stat st;
    char text[sizeof PROCESS] = "";
    bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (regular && st.st_size == 0) return LS_OK;
    if (regular && pread(fd, text, sizeof PROCESS - 1, 0) > 0 && strcmp(text, PROCESS) == 0)
        return LS_OK;
    return ls_fail(e, LS_EIO, "%s: is not the lock file of a run; choose another directory with -o",
                   path);
}

static ls_status open_file(const char *path, ls_lock *l_p, ls_error *e) {
    enum { FLAGS = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };
    for (int i = 0; i < MOST_FILES; i++) {
        int fd = open(path, FLAGS | O_CREAT | O_EXCL, 0600);
        bool made = fd >= 0;
        if (!made && errno != EEXIST) return fail_to(path, "created", errno, e);
        if (!made) fd = open(path, FLAGS);
        if (fd < 0 && errno == ENOENT) continue;
        if (fd < 0) return fail_to(path, "opened", errno, e);
        *l_p = (ls_lock){fd, made};
        return LS_OK;
    }
    return ls_fail(e, LS_EIO, "%s: other processes keep creating and removing it", path);
}

bool ls_lock_is_held(const ls_lock *l, const char *dir) {
    char *path = path_of(dir);
    bool held = l->fd >= 0 && ls_file_is_at(l->fd, path);
    free(path);
    return held;
}

/* EWOULDBLOCK: another process holds the lock. */
static int try_lock(int fd, int how) {
    while (flock(fd, how | LOCK_NB) != 0)
        if (errno != EINTR) return errno;
    return 0;
}

/* Is the lock held only by processes that look? A process that trains holds it exclusively. */
static bool is_shared(int fd) {
    if (try_lock(fd, LOCK_SH) != 0) return false;
    flock(fd, LOCK_UN);
    return true;
}

static ls_status fail_unlockable(const char *path, int why, ls_error *e) {
    return ls_fail(e, LS_EIO,
                   "%s: can't be locked: %s; the file system of a run needs flock() (Lustre: mount "
                   "it with -o flock)",
                   path, strerror(why));
}

/* Waits until the lock is free, or for at least wait_s; longer for a transient holder, and for
 * those that look. */
static ls_status wait_for(int fd, const char *dir, const char *path, double wait_s, ls_error *e) {
    int64_t began = ls_clock_ns();
    bool logged = false;
    for (;;) {
        int why = try_lock(fd, LOCK_EX);
        if (why == 0) return LS_OK;
        if (why != EWOULDBLOCK) return fail_unlockable(path, why, e);
        double waited_s = (double)(ls_clock_ns() - began) / 1e9;
        if (waited_s < GLANCES_S && is_shared(fd)) {
            usleep(GLANCE_US);
            continue;
        }
        holder h = read_holder(fd);
        double least_s = is_transient(&h) ? DYING_S : ENDING_S;
        if (waited_s >= (wait_s > least_s ? wait_s : least_s)) return fail_in_use(dir, &h, e);
        if (waited_s >= LONG_S && !logged)
            ls_log("%s: waiting for process %d on %s to release it", dir, h.pid, h.host);
        logged = waited_s >= LONG_S;
        usleep(LOOK_US);
    }
}

/* ---- taking it ---- */

static ls_status take(const char *dir, const char *path, double wait_s, ls_lock *l_p, ls_error *e) {
    ls_lock l;
    for (int i = 0; i < MOST_FILES; i++) {
        LS_TRY(open_file(path, &l, e));
        ls_status s = check_is_lock(l.fd, path, e);
        if (s == LS_OK) s = wait_for(l.fd, dir, path, wait_s, e);
        if (s == LS_OK && ls_file_is_at(l.fd, path)) {
            fchmod(l.fd, 0600); /* an older file, or another umask */
            write_holder(l.fd);
            *l_p = l;
            return LS_OK;
        }
        close(l.fd);
        LS_TRY(s);
    }
    return ls_fail(e, LS_EIO, "%s: other processes keep creating and removing it", path);
}

ls_status ls_lock_take(const char *dir, double wait_s, ls_lock *l_p, ls_error *e) {
    char *path = path_of(dir);
    ls_status s = take(dir, path, wait_s, l_p, e);
    free(path);
    return s;
}

/* Shares the lock for an instant, if the file exists. A process that takes the lock meanwhile waits
 * (wait_for()). */
static ls_lock_state look(const char *dir, holder *h_p) {
    char *path = path_of(dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int failed = fd < 0 ? errno : 0;
    free(path);
    if (fd < 0) return failed == EACCES ? LS_LOCK_UNKNOWN : LS_LOCK_FREE;
    int why = try_lock(fd, LOCK_SH);
    if (why == 0) flock(fd, LOCK_UN);
    *h_p = read_holder(fd);
    close(fd);
    return why == EWOULDBLOCK ? LS_LOCK_TAKEN : LS_LOCK_FREE;
}

ls_status ls_lock_look(const char *dir, ls_error *e) {
    holder h = {0};
    return look(dir, &h) == LS_LOCK_TAKEN && !is_transient(&h) ? fail_in_use(dir, &h, e) : LS_OK;
}

ls_lock_state ls_lock_state_of(const char *dir, char text[LS_LOCK_HOLDER]) {
    holder h = {0};
    ls_lock_state state = look(dir, &h);
    name_holder(&h, text);
    return state;
}

static double seconds_of(const char *since) {
    struct tm utc = {0};
    const char *end = strptime(since, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return end && !*end ? (double)timegm(&utc) : 0;
}

ls_lock_named ls_lock_read(const char *dir) {
    char *path = path_of(dir);
    ls_lock_named named = {0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    named.unreadable = fd < 0 && errno == EACCES;
    free(path);
    if (fd < 0) return named;
    holder h = read_holder(fd);
    named.pid = h.pid;
    snprintf(named.host, sizeof named.host, "%s", h.host);
    snprintf(named.since, sizeof named.since, "%s", h.since);
    named.since_s = seconds_of(h.since);
    named.here = h.pid && ls_lock_is_here(h.host);
    bool known = fstat(fd, &st) == 0;
    close(fd); /* the process may be this one */
    named.held = named.here && known && ls_process_has_file(h.pid, &st, named.since_s);
    return named;
}

static ls_status number_of(const char *dir, const char *name, char number[LS_LOCK_NUMBER],
                           ls_error *e) {
    char *path = path_of(dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ls_status s = fd < 0 && errno != ENOENT ? fail_to(path, "opened", errno, e) : LS_OK;
    number[0] = 0;
    if (fd >= 0) {
        read_number(fd, name, number);
        close(fd);
    }
    free(path);
    return s;
}

ls_status ls_lock_run(const char *dir, char run[LS_LOCK_NUMBER], ls_error *e) {
    return number_of(dir, RUN, run, e);
}

ls_status ls_lock_mark_of(const char *dir, char mark[LS_LOCK_NUMBER], ls_error *e) {
    return number_of(dir, MARK, mark, e);
}

bool ls_lock_mark(const ls_lock *l, char mark[LS_LOCK_NUMBER]) {
    char text[TEXT] = "";
    mark[0] = 0;
    ssize_t n = l->fd >= 0 ? pread(l->fd, text, sizeof text - 64, 0) : 0;
    if (n <= 0) return false;
    char *end = strstr(text, MARK);
    if (!end) end = text + n - (text[n - 1] == '\n');
    draw_number(mark);
    int all = (int)(end - text) + snprintf(end, 64, "%s%s\n", MARK, mark);
    if (*mark && write_text(l->fd, text, all) && fsync(l->fd) == 0) return true;
    mark[0] = 0;
    return false;
}

void ls_lock_drop(ls_lock *l) {
    if (l->fd >= 0) close(l->fd);
    *l = LS_LOCK_NONE;
}

void ls_lock_remove(ls_lock *l, const char *dir) {
    char *path = path_of(dir);
    if (l->made && l->fd >= 0 && ls_file_is_at(l->fd, path)) unlink(path);
    free(path);
    ls_lock_drop(l);
}
