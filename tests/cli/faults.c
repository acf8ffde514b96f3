/* faults.c - a disk that fails when a test wants it to: a library that is loaded before the C
 * library, and stands between it and the program.
 *
 *     LOCKSTEP_FAULTS="CALL PATH WHAT NTH; ..."
 *
 * The NTH time (from 0; each process counts for itself) that CALL is made for a path that has PATH
 * in it, or ends with it where PATH ends with '$', and from then on, or with FIRST-END before END,
 * it fails with WHAT: EIO, EROFS, ENOSPC. Or KILL: this process and the one that started it are
 * killed. Or HOLD: a file of the name in LOCKSTEP_HELD is made, and the call waits until it is
 * gone. CALL is fsync, write, pwrite, rename, mkdir, symlink, or "any" of them but the two that
 * write.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 8 };

static atomic_int matched[MOST]; /* calls, by rule */

static bool fits(const char *pattern, const char *path) {
    size_t n = strlen(pattern), length = strlen(path);
    if (pattern[n - 1] != '$') return strstr(path, pattern) != NULL;
    return length >= n - 1 && memcmp(path + length - (n - 1), pattern, n - 1) == 0;
}

static int hold(void) {
    const char *name = getenv("LOCKSTEP_HELD");
    int fd = name ? open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (fd < 0) return EIO;
    close(fd);
    while (access(name, F_OK) == 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return 0;
}

static int happens(const char *what) {
    if (strcmp(what, "HOLD") == 0) return hold();
    if (strcmp(what, "EROFS") == 0) return EROFS;
    if (strcmp(what, "ENOSPC") == 0) return ENOSPC;
    if (strcmp(what, "KILL") != 0) return EIO;
    kill(getppid(), SIGKILL);
    kill(getpid(), SIGKILL);
    return EIO;
}

/* 0, or the error with which the call fails. */
static int fault(const char *call, const char *path) {
    const char *rule = getenv("LOCKSTEP_FAULTS");
    for (int i = 0; rule && i < MOST; i++) {
        char of[16], pattern[64], what[16];
        int first = 0, end = INT_MAX;
        if (sscanf(rule, " %15s %63s %15s %d-%d", of, pattern, what, &first, &end) < 4) return 0;
        bool same = strcmp(of, call) == 0 || (strcmp(of, "any") == 0 && !strstr(call, "write"));
        int nth = same && fits(pattern, path) ? atomic_fetch_add(&matched[i], 1) : -1;
        if (nth >= first && nth < end) return happens(what);
        rule = strchr(rule, ';');
        if (rule) rule++;
    }
    return 0;
}

static int fault_of(const char *call, int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return fault(call, path);
}

/* The C library's. */
static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

int fsync(int fd) {
    void *p = next("fsync");
    int (*real)(int);
    memcpy(&real, &p, sizeof real);
    int failed = fault_of("fsync", fd);
    if (!failed) return real(fd);
    errno = failed;
    return -1;
}

ssize_t write(int fd, const void *data, size_t nbytes) {
    void *p = next("write");
    ssize_t (*real)(int, const void *, size_t);
    memcpy(&real, &p, sizeof real);
    int failed = fault_of("write", fd);
    if (!failed) return real(fd, data, nbytes);
    errno = failed;
    return -1;
}

ssize_t pwrite(int fd, const void *data, size_t nbytes, off_t at) {
    void *p = next("pwrite");
    ssize_t (*real)(int, const void *, size_t, off_t);
    memcpy(&real, &p, sizeof real);
    int failed = fault_of("pwrite", fd);
    if (!failed) return real(fd, data, nbytes, at);
    errno = failed;
    return -1;
}

int rename(const char *from, const char *to) {
    void *p = next("rename");
    int (*real)(const char *, const char *);
    memcpy(&real, &p, sizeof real);
    int failed = fault("rename", from);
    if (!failed) return real(from, to);
    errno = failed;
    return -1;
}

int mkdir(const char *path, mode_t mode) {
    void *p = next("mkdir");
    int (*real)(const char *, mode_t);
    memcpy(&real, &p, sizeof real);
    int failed = fault("mkdir", path);
    if (!failed) return real(path, mode);
    errno = failed;
    return -1;
}

int symlink(const char *to, const char *path) {
    void *p = next("symlink");
    int (*real)(const char *, const char *);
    memcpy(&real, &p, sizeof real);
    int failed = fault("symlink", path);
    if (!failed) return real(to, path);
    errno = failed;
    return -1;
}
