/* faults.c - simulates failing and slow disks and slow processors for tests: a library that is
 * loaded before the C library and intercepts its calls. It makes the system calls itself: to look
 * the C library's functions up would take memory while a sanitizer starts. The clock alone is the C
 * library's once the library is loaded: it needs no system call, and who waits reads it all the
 * time.
 *
 *     LOCKSTEP_FAULTS="CALL PATH WHAT NTH; ..."
 *
 * CALL fails with WHAT (EIO, EROFS, ENOSPC) for a path that contains PATH, or ends with it if PATH
 * ends with '$'. It fails from the NTH time on (from 0; each process counts separately), or, with
 * FIRST-END, before END. KILL: this process and its parent are killed. TERM: this
 * process gets SIGTERM, and the call succeeds. HOLD: the file that
 * LOCKSTEP_HELD names is made, and the call waits until it is removed. CALL is fsync, write,
 * pwrite, rename, mkdir, symlink, or "any" of them except the two that write.
 *
 * While a file RUN.pace with "STEP [FIRST MOST]" exists beside a run directory, writing the lines
 * of all later steps to metrics.jsonl takes time: FIRST ms for each of the next eight steps, then
 * half as much again from step to step, up to MOST ms. Without these numbers it is a quarter of a
 * second, up to one: so a run is not over when a test on a busy machine acts late, and a worker
 * that is asked to stop between two steps does so before it is taken for hung (a few
 * survival.heartbeat_s).
 *
 * While the file named by LOCKSTEP_SLOW has "RANK FACTOR" in it, the worker of this rank takes
 * FACTOR times as long for all its computation; several pairs may follow each other, and the rank
 * -1 stands for all workers without one. Whenever it reads the clock, it sleeps in
 * proportion to the processor time that it has used since the previous reading: so the factor is
 * exact whatever else the machine does.
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
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 8, SLOW_MS = 250, MOST_MS = 1000, SAME = 8, LOOK_MS = 5, LEAST_NS = 20000 };

static atomic_int matched[MOST]; /* calls, by rule */

static bool fits(const char *pattern, const char *path) {
    size_t n = strlen(pattern), length = strlen(path);
    if (pattern[n - 1] != '$') return strstr(path, pattern) != NULL;
    return length >= n - 1 && memcmp(path + length - (n - 1), pattern, n - 1) == 0;
}

static void sleep_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

static int hold(void) {
    const char *name = getenv("LOCKSTEP_HELD");
    int fd = name ? open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (fd < 0) return EIO;
    close(fd);
    while (access(name, F_OK) == 0) sleep_ms(1);
    return 0;
}

static int happens(const char *what) {
    if (strcmp(what, "HOLD") == 0) return hold();
    if (strcmp(what, "EROFS") == 0) return EROFS;
    if (strcmp(what, "ENOSPC") == 0) return ENOSPC;
    if (strcmp(what, "TERM") == 0) return raise(SIGTERM);
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

static bool path_of(int fd, char path[4096]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, 4095);
    if (n < 0) return false;
    path[n] = 0;
    return true;
}

static int fault_of(const char *call, int fd) {
    char path[4096];
    return path_of(fd, path) ? fault(call, path) : 0;
}

/* How long the line of this step takes, ms; 0: the run is not slow. */
static int slow_ms(const char *pace, int step) {
    FILE *f = fopen(pace, "re");
    int last = INT_MAX, first = SLOW_MS, most = MOST_MS;
    if (f && fscanf(f, "%d %d %d", &last, &first, &most) < 1) last = INT_MAX;
    if (f) fclose(f);
    if (step <= last) return 0;
    double ms = first;
    for (int i = SAME; i < step - last && ms < most; i++) ms *= 1.5;
    return ms < most ? (int)ms : most;
}

/* Delays the write of a line, or of the first of several. */
static void keep_pace(int fd, const void *data, size_t nbytes) {
    static const char metrics[] = "/metrics.jsonl", key[] = "\"step\": ";
    char path[4096 + sizeof metrics];
    if (!path_of(fd, path) || !fits("/metrics.jsonl$", path)) return;
    const char *at = memmem(data, nbytes, key, sizeof key - 1);
    if (!at) return;
    strcpy(strrchr(path, '/'), ".pace");
    int step = atoi(at + sizeof key - 1);
    for (int ms = 0; ms < slow_ms(path, step); ms += LOOK_MS) sleep_ms(LOOK_MS);
}

/* ---- a slow processor ---- */

static int (*get_time)(clockid_t, struct timespec *); /* the C library's; NULL until load() */
static const char *slow_file;                         /* NULL: full speed */

__attribute__((constructor)) static void load(void) {
    void *found = dlsym(RTLD_NEXT, "clock_gettime");
    memcpy(&get_time, &found, sizeof get_time);
    slow_file = getenv("LOCKSTEP_SLOW");
}

static int now_of(clockid_t id, struct timespec *t) {
    return get_time ? get_time(id, t) : (int)syscall(SYS_clock_gettime, id, t);
}

static int64_t read_clock(clockid_t id) {
    struct timespec t = {0};
    now_of(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* 1: full speed. Takes no memory: a sanitizer reads the clock while its allocator is locked. */
static int slow_factor(const char *file) {
    const char *own = getenv("LOCKSTEP_RANK");
    char text[32] = "", *end = text;
    int fd = own ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return 1;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    long others = 1;
    while (n > 0 && *end && *end != '\n') {
        long rank = strtol(end, &end, 10), factor = strtol(end, &end, 10);
        if (factor <= 0) break;
        if (rank == atoi(own)) return (int)factor;
        if (rank == -1) others = factor;
    }
    return (int)others;
}

/* A program that waits reads the clock all the time, so most readings end here at once. */
static void be_slow(const char *file) {
    static _Thread_local int64_t before; /* processor time */
    static _Thread_local int64_t since;  /* the time of that reading */
    static _Thread_local int64_t looked; /* when the file was read */
    static _Thread_local int factor;
    int64_t now = read_clock(CLOCK_MONOTONIC);
    if (before && now - since <= LEAST_NS) return; /* no more processor time than that was used */
    int64_t used = read_clock(CLOCK_THREAD_CPUTIME_ID) - before;
    if (before && used <= LEAST_NS) return; /* it counts with what follows */
    if (now - looked > LOOK_MS * 1000000) {
        factor = slow_factor(file);
        looked = now;
    }
    int64_t ns = before ? used * (factor - 1) : 0;
    if (ns) nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
    before = read_clock(CLOCK_THREAD_CPUTIME_ID);
    since = read_clock(CLOCK_MONOTONIC);
}

int clock_gettime(clockid_t id, struct timespec *t) {
    if (slow_file && id == CLOCK_MONOTONIC) be_slow(slow_file);
    return now_of(id, t);
}

/* ---- a disk ---- */

int fsync(int fd) {
    int failed = fault_of("fsync", fd);
    if (!failed) return (int)syscall(SYS_fsync, fd);
    errno = failed;
    return -1;
}

ssize_t write(int fd, const void *data, size_t nbytes) {
    keep_pace(fd, data, nbytes);
    int failed = fault_of("write", fd);
    if (!failed) return syscall(SYS_write, fd, data, nbytes);
    errno = failed;
    return -1;
}

ssize_t pwrite(int fd, const void *data, size_t nbytes, off_t at) {
    int failed = fault_of("pwrite", fd);
    if (!failed) return syscall(SYS_pwrite64, fd, data, nbytes, at);
    errno = failed;
    return -1;
}

int rename(const char *from, const char *to) {
    int failed = fault("rename", from);
    if (!failed) return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    errno = failed;
    return -1;
}

int mkdir(const char *path, mode_t mode) {
    int failed = fault("mkdir", path);
    if (!failed) return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    errno = failed;
    return -1;
}

int symlink(const char *to, const char *path) {
    int failed = fault("symlink", path);
    if (!failed) return (int)syscall(SYS_symlinkat, to, AT_FDCWD, path);
    errno = failed;
    return -1;
}
