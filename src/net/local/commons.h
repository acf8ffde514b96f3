/* commons.h - memory that the workers of one host share: they show there what they do, and read
 * each other's buffers.
 *
 * Threads share ordinary pages, and can read all of each other's memory. Processes share a memfd,
 * and can read what lies in it; it has no name, so nothing is left behind however they end. Each
 * worker allocates its own memory from its part of the arena. Places are given as offsets from the
 * base, since each process maps it at another address.
 *
 *     head | worker blocks [size] | rings [size][size] | calls [groups][size] | arenas [size]
 */
#ifndef LS_NET_LOCAL_COMMONS_H
#define LS_NET_LOCAL_COMMONS_H

#include <stddef.h>

#include "base/error.h"
#include "net/local/bell.h"

/* What one worker shows to the others. Alone on its cache lines. */
typedef struct ls_commons_worker {
    ls_bell bell;
    _Alignas(64) atomic_int pid; /* 0: it has not joined yet */
    atomic_int left;             /* it has closed its view */
    atomic_ullong in_rings[64];  /* bit s % 64 of word s / 64: look into the ring from worker s */
    /* The launcher's: the process that ended before it had joined (0: none), and what waitpid()
     * said of it. */
    atomic_int absent, how;
} ls_commons_worker;

enum {
    LS_COMMONS_MAX = 64 * 64,      /* workers */
    LS_COMMONS_GROUPS = 64,        /* groups that a worker can be in at once */
    LS_COMMONS_CALLS_NBYTES = 4096 /* what a worker shows of its calls in a group (coll/shared.c) */
};

typedef struct ls_commons_head {
    uint64_t magic, nbytes;
    int32_t size, cores;   /* workers, and the cores that they have together */
    uint64_t arena_nbytes; /* of each worker */
    uint64_t workers_at, rings_at, calls_at, arenas_at;
    atomic_int views;                /* of threads: how many are not closed */
    _Alignas(64) atomic_int aborted; /* by the program that started the workers */
} ls_commons_head;

/* Memory that must outlive its owner for a while (coll/shared.c has some). It is freed with the
 * view at the latest. */
typedef struct ls_commons_retained {
    struct ls_commons_retained *next;
} ls_commons_retained;

/* One process's (or thread's) view. */
typedef struct ls_commons {
    ls_commons_head *head;
    unsigned char *base;
    int rank, size;
    int fd;                          /* of the memfd, or -1 */
    bool threads;                    /* all of one process */
    struct ls_commons_block *blocks; /* taken and free parts of my arena, by place */
    size_t nblocks, block_cap;
    size_t fresh; /* from this offset on the arena was never allocated: it is zero */
    ls_commons_retained *retained;
    unsigned char *attached; /* more memory that all can read; NULL: none */
    size_t attached_nbytes;
} ls_commons;

/* Creates a commons; the view has rank 0. */
ls_status ls_commons_create(int size, size_t arena_nbytes, bool threads, ls_commons *c_p,
                            ls_error *);
/* The view of another thread. */
void ls_commons_share(const ls_commons *, int rank, ls_commons *c_p);
/* The view of a process that has inherited or received the descriptor, which it keeps; after an
 * error it is the caller's. A worker joins once: a second view, here or in a process that it
 * started, is refused, and changes nothing. */
ls_status ls_commons_join(int fd, int rank, ls_commons *c_p, ls_error *);
/* A process's view, and the last one of threads, unmaps. */
void ls_commons_close(ls_commons *);

static inline ls_commons_worker *ls_commons_worker_of(const ls_commons *c, int rank) {
    return (ls_commons_worker *)(void *)(c->base + c->head->workers_at) + rank;
}

/* Where worker `rank` shows its calls in group `group`: zeroed, LS_COMMONS_CALLS_NBYTES. */
static inline void *ls_commons_calls(const ls_commons *c, int group, int rank) {
    size_t i = (size_t)group * (size_t)c->size + (size_t)rank;
    return c->base + c->head->calls_at + i * LS_COMMONS_CALLS_NBYTES;
}

/* Memory of my arena, 128-byte aligned, zeroed; NULL: there is no room. ls_commons_free() returns
 * false, and does nothing, for a pointer that ls_commons_alloc() did not return. */
void *ls_commons_alloc(ls_commons *, size_t nbytes);
bool ls_commons_free(ls_commons *, void *);

/* For processes: more memory that all of them share, each at an address of its own. All attach the
 * same memory before any of it is used. It stays the caller's. */
void ls_commons_attach(ls_commons *, void *p, size_t nbytes);

/* Called by a launcher: all waits in groups of these workers end, with LS_EABORT. */
void ls_commons_call_off(const ls_commons *);
static inline bool ls_commons_is_called_off(const ls_commons *c) {
    return atomic_load_explicit(&c->head->aborted, memory_order_relaxed) != 0;
}
/* Called by a launcher when no worker has a view of it: restores its initial state. */
ls_status ls_commons_renew(const ls_commons *, ls_error *);

/* A worker that has ended without having joined: the others would wait for it in vain. */
typedef struct ls_commons_absentee {
    int pid; /* 0: it may still join, or has joined */
    int how; /* what waitpid() said */
} ls_commons_absentee;
/* Called by a launcher when the process of a worker has ended; `how`: what waitpid() said. */
void ls_commons_note_end(const ls_commons *, int rank, int pid, int how);
ls_commons_absentee ls_commons_absentee_of(const ls_commons *, int rank);
/* The same for a process without a view, by the memory's descriptor. */
ls_commons_absentee ls_commons_absentee_read(int fd, int rank);
/* "ended with exit code 0 before it had joined the group" */
const char *ls_commons_absentee_text(const ls_commons_absentee *, char text[128]);

/* Can the others read [p, p + nbytes)? */
bool ls_commons_readable(const ls_commons *, const void *p, size_t nbytes);

/* The offset of p. Attached memory follows the commons' own. */
static inline int64_t ls_commons_offset(const ls_commons *c, const void *p) {
    uintptr_t in_attached = (uintptr_t)p - (uintptr_t)c->attached;
    if (c->attached && in_attached < c->attached_nbytes)
        return (int64_t)(c->head->nbytes + in_attached);
    return (int64_t)((intptr_t)p - (intptr_t)c->base);
}
static inline void *ls_commons_at(const ls_commons *c, int64_t offset) {
    if (c->attached && offset >= (int64_t)c->head->nbytes)
        return c->attached + ((size_t)offset - c->head->nbytes);
    return (void *)((intptr_t)c->base + (intptr_t)offset);
}

#endif
