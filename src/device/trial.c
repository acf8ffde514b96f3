/* trial.c - see trial.h.
 *
 * A process for each device, and one that leads them, since a driver can't be used in a process
 * that is forked later. They meet when all have opened and filled their memory, when all have read
 * it, and when all have closed. Before each meeting a process writes what it knows to its place in
 * shared memory.
 */
#include "device/trial.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

enum { NWORDS = 1 << 20, PATIENCE_MS = 60 * 1000 };
#define NBYTES (NWORDS * sizeof(uint32_t))

typedef struct place {
    pid_t pid; /* } the leader's; -1: none. Its end of this one's socket */
    int end;   /* } */
    bool opened, failed, is_absent;
    ls_error why;
    char device[32], name[96];
    ls_device_room room;
    ls_device_handle handle;
} place;

typedef struct trial {
    const char *name;
    int n;
    bool links;
    place *places; /* [n], shared */
} trial;

/* ---- a device's process ---- */

static uint32_t word_of(int of, uint32_t i) {
    return (i * UINT32_C(2654435761)) ^ ((uint32_t)(of + 1) << 20);
}

static void fill(int of, uint32_t *words) {
    for (uint32_t i = 0; i < NWORDS; i++) words[i] = word_of(of, i);
}

/* False: the leader is gone. */
static bool meet(int end) {
    char word = 0;
    return send(end, &word, 1, MSG_NOSIGNAL) == 1 && read(end, &word, 1) == 1;
}

/* A name without a number has a device for each worker. Fewer than these are refused elsewhere. */
static ls_status open_own(const trial *t, int i, ls_device **d_p, ls_error *e) {
    place *own = &t->places[i];
    ls_device_seen list[LS_DEVICE_LIST];
    int n = 0;
    LS_TRY(ls_device_list(t->name, list, &n, e));
    bool numbered = ls_device_is_numbered(t->name);
    own->is_absent = !numbered && i >= n;
    if (own->is_absent) return ls_fail(e, LS_EINVAL, "there is no device %d", i);
    snprintf(own->device, sizeof own->device, "%s", t->name);
    if (!numbered) snprintf(own->device, sizeof own->device, "%s:%d", t->name, list[i].number);
    LS_TRY(ls_device_open_bare(own->device, d_p, e));
    snprintf(own->name, sizeof own->name, "%s", (*d_p)->name);
    ls_device_room_of(*d_p, &own->room);
    own->opened = true;
    return LS_OK;
}

/* p: memory of NBYTES for this one's words, and as many for those of others. */
static ls_status offer(place *own, int i, ls_device *d, char *p, ls_error *e) {
    uint32_t *words = LS_NEW_ARRAY(uint32_t, NWORDS);
    fill(i, words);
    ls_device_copy_to(d, LS_DEVICE_COMPUTE, p, words, NBYTES);
    ls_status s = ls_device_finish(d, LS_DEVICE_COMPUTE, e);
    free(words);
    return s == LS_OK ? ls_device_share(d, p, &own->handle, e) : s;
}

static ls_status compare(const trial *t, int other, ls_device *d, char *p, const void *there,
                         ls_error *e) {
    uint32_t *words = LS_NEW_ARRAY(uint32_t, NWORDS), wrong = 0;
    ls_device_copy(d, LS_DEVICE_COMPUTE, p + NBYTES, there, NBYTES);
    ls_device_copy_from(d, LS_DEVICE_COMPUTE, words, p + NBYTES, NBYTES);
    ls_status s = ls_device_finish(d, LS_DEVICE_COMPUTE, e);
    for (uint32_t i = 0; s == LS_OK && i < NWORDS; i++) wrong += words[i] != word_of(other, i);
    free(words);
    if (s != LS_OK || !wrong) return s;
    return ls_fail(
        e, LS_EIO,
        "devices read wrong bytes from %s's memory, without an error: the machine or its "
        "driver breaks copies between them (an IOMMU, or PCIe's access control, may)",
        t->places[other].device);
}

static ls_status read_others(const trial *t, int i, ls_device *d, char *p, ls_error *e) {
    for (int k = 0; k < t->n; k++) {
        void *there = NULL;
        if (k == i || t->places[k].failed) continue; /* who failed says why */
        LS_TRY(ls_device_open_shared(d, &t->places[k].handle, &there, e));
        ls_status s = compare(t, k, d, p, there, e);
        ls_device_close_shared(d, there);
        LS_TRY(s);
    }
    return LS_OK;
}

static _Noreturn void be_device(const trial *t, int i, int end) {
    place *own = &t->places[i];
    ls_device *d = NULL;
    void *p = NULL;
    ls_status s = open_own(t, i, &d, &own->why);
    if (s == LS_OK && t->links) s = ls_device_alloc(d, 2 * NBYTES, "a trial", &p, &own->why);
    if (s == LS_OK && t->links) s = offer(own, i, d, p, &own->why);
    own->failed = s != LS_OK;
    if (!meet(end)) _exit(1);
    if (s == LS_OK && t->links) s = read_others(t, i, d, p, &own->why);
    own->failed = s != LS_OK;
    if (!meet(end)) _exit(1);
    if (d) ls_device_free(d, p);
    ls_device_close(d);
    _exit(!meet(end));
}

/* ---- the leader ---- */

static void start(const trial *t, int i) {
    place *own = &t->places[i];
    int ends[2];
    own->failed = true;
    own->pid = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    pid_t pid = fork();
    if (pid == 0) {
        for (int k = 0; k <= i; k++)
            if (t->places[k].end > 0) close(t->places[k].end);
        close(ends[0]);
        be_device(t, i, ends[1]);
    }
    own->pid = pid;
    own->end = ends[0];
    close(ends[1]);
}

/* One that has died, or hangs in its driver, is not waited for again. */
static void await(place *x) {
    struct pollfd has = {.fd = x->end, .events = POLLIN};
    char word = 0;
    int got = 0;
    if (x->pid < 0) return;
    while ((got = poll(&has, 1, PATIENCE_MS)) < 0 && errno == EINTR) continue;
    if (got > 0 && read(x->end, &word, 1) == 1) return;
    kill(x->pid, SIGKILL);
    while (waitpid(x->pid, NULL, 0) < 0 && errno == EINTR) continue;
    x->pid = -1;
    x->failed = true;
    ls_fail(&x->why, LS_EIO, "device %s: %s while it was tried", x->device,
            got == 0 ? "it did not answer for a minute" : "its process died");
}

static void meet_all(const trial *t) {
    for (int i = 0; i < t->n; i++) await(&t->places[i]);
    for (int i = 0; i < t->n; i++)
        if (t->places[i].pid > 0) send(t->places[i].end, "", 1, MSG_NOSIGNAL);
}

static void run(const trial *t) {
    for (int i = 0; i < t->n; i++) start(t, i);
    for (int meetings = 0; meetings < 3; meetings++)
        meet_all(t); /* the last when all have closed */
    for (int i = 0; i < t->n; i++) {
        const place *x = &t->places[i];
        if (x->end > 0) close(x->end);
        while (x->pid > 0 && waitpid(x->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
}

/* Of one that died, the others say only that its memory is gone. */
static void find_failure(const trial *t, ls_device_trial *out) {
    for (int i = 0, died = 0; i < t->n && !died; i++) {
        const place *x = &t->places[i];
        died = x->pid < 0;
        if (x->is_absent || !x->failed || (!out->links && !died)) continue;
        out->links = false;
        snprintf(out->why, sizeof out->why, "%s", x->why.msg);
    }
}

static void sum_up(const trial *t, ls_device_trial *out) {
    out->links = t->links;
    if (t->links) find_failure(t, out);
    for (int i = 0; i < t->n; i++) {
        const place *x = &t->places[i];
        if (!x->opened) continue;
        if (out->n++ == 0 || x->room.free < out->room.free) {
            out->room = x->room;
            snprintf(out->device, sizeof out->device, "%s", x->device);
            snprintf(out->name, sizeof out->name, "%s", x->name);
        }
    }
}

void ls_device_try(const char *name, int nworkers, bool links, ls_device_trial *out) {
    int n = ls_device_is_numbered(name) && nworkers > 2 ? 2 : nworkers;
    if (n > LS_DEVICE_LIST) n = LS_DEVICE_LIST;
    size_t nbytes = (size_t)n * sizeof(place);
    *out = (ls_device_trial){.why = "no memory to try it"};
    trial t = {.name = name, .n = n, .links = links};
    void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    t.places = p;
    run(&t);
    sum_up(&t, out);
    munmap(p, nbytes);
}
