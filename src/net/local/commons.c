/* commons.c - see commons.h. */
#include "net/local/commons.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/mem.h"
#include "base/round_up.h"
#include "net/local/ring.h"

static const uint64_t MAGIC = 0x6c6f636b73746570; /* "lockstep" */
enum { PAGE = 4096, ALIGN = 128 };

static size_t pages(size_t nbytes) { return ls_round_up(nbytes, PAGE); }

/* The distance from one worker's arena to the next. The workers' buffers lie at the same places of
 * their arenas and are read in step; 17 pages more keep them from falling into one set of a cache,
 * and from looking the same to the way predictor of AMD's first-level cache, which sees 16 bits of
 * the page number's (Lipp et al., "Take A Way", ASIA CCS 2020): at a distance of 2^28 bytes, sums
 * took seven times as long. */
static size_t stride(size_t arena_nbytes) { return pages(arena_nbytes) + (size_t)17 * PAGE; }

typedef struct layout {
    size_t workers, rings, calls, arenas, end;
} layout;

static layout layout_for(int size, size_t arena_nbytes) {
    size_t n = (size_t)size;
    layout l = {.workers = pages(sizeof(ls_commons_head))};
    l.rings = l.workers + pages(n * sizeof(ls_commons_worker));
    l.calls = l.rings + pages(n * n * sizeof(ls_ring));
    l.arenas = l.calls + pages(n * LS_COMMONS_GROUPS * LS_COMMONS_CALLS_NBYTES);
    l.end = l.arenas + n * stride(arena_nbytes);
    return l;
}

/* A part of my arena, taken or free. They lie one after the other. */
typedef struct ls_commons_block {
    size_t offset, nbytes; /* from the beginning of my arena */
    bool taken;
} block;

static void view(ls_commons *c, void *base, int rank, int size, int fd, bool threads) {
    *c = (ls_commons){.head = base, .base = base, .rank = rank, .size = size, .fd = fd};
    c->threads = threads;
    atomic_fetch_add(&c->head->views, 1);
    c->block_cap = 16;
    c->blocks = LS_NEW_ARRAY(block, c->block_cap);
    c->blocks[c->nblocks++] = (block){.nbytes = pages(c->head->arena_nbytes)};
}

static void put_pid(const ls_commons *c) {
    atomic_store(&ls_commons_worker_of(c, c->rank)->pid, getpid());
}

/* Limits of the process hold for shared memory, too. */
static ls_status no_memory(size_t nbytes, int why, ls_error *e) {
    struct rlimit r;
    char limit[128] = "";
    if (why == ENOSYS || why == EPERM)
        snprintf(limit, sizeof limit,
                 "; a filter of system calls forbids memfd_create(): allow it, or set "
                 "parallel.transport=thread");
    __rlimit_resource_t resource = why == EFBIG ? RLIMIT_FSIZE : RLIMIT_AS;
    if ((why == EFBIG || why == ENOMEM) && getrlimit(resource, &r) == 0 &&
        r.rlim_cur != RLIM_INFINITY)
        snprintf(limit, sizeof limit, "; `ulimit -%c` allows %.1f MB: raise it",
                 why == EFBIG ? 'f' : 'v', (double)r.rlim_cur / 1e6);
    return ls_fail(e, LS_ENOMEM, "no shared memory: %.1f MB wanted: %s%s", (double)nbytes / 1e6,
                   strerror(why), limit);
}

ls_status ls_commons_create(int size, size_t arena_nbytes, bool threads, ls_commons *c_p,
                            ls_error *e) {
    if (size < 1 || size > LS_COMMONS_MAX)
        return ls_fail(e, LS_EINVAL, "shared memory: %d workers on a host; 1 to %d are possible",
                       size, LS_COMMONS_MAX);
    if (arena_nbytes > ((size_t)1 << 62) / (size_t)size)
        return ls_fail(e, LS_ENOMEM, "no shared memory: %d arenas of %.1f MB wanted", size,
                       (double)arena_nbytes / 1e6);
    layout l = layout_for(size, arena_nbytes);
    int fd = threads ? -1 : memfd_create("lockstep", MFD_CLOEXEC);
    if (!threads && (fd < 0 || ftruncate(fd, (off_t)l.end) != 0)) {
        int why = errno;
        if (fd >= 0) close(fd);
        return no_memory(l.end, why, e);
    }
    int flags = threads ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    void *base = mmap(NULL, l.end, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (base == MAP_FAILED) {
        int why = errno;
        if (fd >= 0) close(fd);
        return no_memory(l.end, why, e);
    }
    ls_commons_head *h = base;
    *h = (ls_commons_head){.magic = MAGIC, .nbytes = l.end, .size = size};
    h->cores = ls_cores_among(size);
    h->arena_nbytes = arena_nbytes;
    h->workers_at = l.workers;
    h->rings_at = l.rings;
    h->calls_at = l.calls;
    h->arenas_at = l.arenas;
    view(c_p, base, 0, size, fd, threads);
    if (threads) put_pid(c_p); /* a launcher is no worker */
    return LS_OK;
}

void ls_commons_share(const ls_commons *c, int rank, ls_commons *c_p) {
    view(c_p, c->base, rank, c->size, -1, c->threads);
    put_pid(c_p);
}

/* Is this the head of a commons that the file contains in full? */
static bool is_whole(const ls_commons_head *h, size_t file_nbytes) {
    if (h->magic != MAGIC || h->size < 1 || h->size > LS_COMMONS_MAX) return false;
    if (h->nbytes > file_nbytes || h->arena_nbytes > file_nbytes) return false;
    layout l = layout_for(h->size, h->arena_nbytes);
    return h->nbytes == l.end && h->workers_at == l.workers && h->rings_at == l.rings &&
           h->calls_at == l.calls && h->arenas_at == l.arenas;
}

ls_status ls_commons_join(int fd, int rank, ls_commons *c_p, ls_error *e) {
    struct stat file;
    void *page = MAP_FAILED;
    if (fstat(fd, &file) == 0) page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return ls_fail(e, LS_EINVAL, "descriptor %d is not shared memory: %s", fd, strerror(errno));
    /* Beyond the end of the file nothing can be read. */
    const ls_commons_head *h = page;
    size_t held = file.st_size < PAGE ? 0 : (size_t)file.st_size, nbytes = 0;
    int size = 0;
    if (held && is_whole(h, held)) {
        nbytes = h->nbytes;
        size = h->size;
    }
    munmap(page, PAGE);
    if (rank < 0 || rank >= size)
        return ls_fail(e, LS_EINVAL, "descriptor %d is not the shared memory of this group", fd);
    void *base = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) return no_memory(nbytes, errno, e);
    int joined = 0;
    view(c_p, base, rank, size, fd, false);
    if (atomic_compare_exchange_strong(&ls_commons_worker_of(c_p, rank)->pid, &joined, getpid()))
        return LS_OK;
    c_p->fd = -1; /* it stays the caller's */
    ls_commons_close(c_p);
    return ls_fail(e, LS_EINVAL,
                   "worker %d has opened its group already, as process %d; for another group it "
                   "calls ls_group_dup() or ls_group_split(), and a process that it starts unsets "
                   "LOCKSTEP_RANK and LOCKSTEP_SIZE",
                   rank, joined);
}

void ls_commons_close(ls_commons *c) {
    if (!c->head) return;
    ls_commons was = *c;
    size_t nbytes = was.head->nbytes;
    *c = (ls_commons){.fd = -1};
    free(was.blocks);
    while (was.retained) {
        ls_commons_retained *next = was.retained->next;
        free(was.retained);
        was.retained = next;
    }
    if (was.fd >= 0) close(was.fd);
    if (!was.threads || atomic_fetch_sub(&was.head->views, 1) == 1) munmap(was.base, nbytes);
}

void ls_commons_call_off(const ls_commons *c) {
    atomic_store(&c->head->aborted, 1);
    for (int i = 0; i < c->size; i++) ls_bell_ring(&ls_commons_worker_of(c, i)->bell);
}

/* The head stays; the rest becomes empty pages. (gVisor can't punch holes.) */
ls_status ls_commons_renew(const ls_commons *c, ls_error *e) {
    off_t head = (off_t)c->head->workers_at, end = (off_t)c->head->nbytes;
    if (ftruncate(c->fd, head) != 0 || ftruncate(c->fd, end) != 0)
        return ls_fail(e, LS_EIO, "shared memory can't be emptied: %s", strerror(errno));
    atomic_store(&c->head->aborted, 0);
    return LS_OK;
}

/* ---- workers that never join ---- */

static ls_commons_absentee absentee(const ls_commons_worker *w) {
    ls_commons_absentee a = {0};
    if (atomic_load(&w->pid) == 0) a.pid = atomic_load(&w->absent);
    if (a.pid) a.how = atomic_load(&w->how);
    return a;
}

void ls_commons_note_end(const ls_commons *c, int rank, int pid, int how) {
    ls_commons_worker *w = ls_commons_worker_of(c, rank);
    atomic_store(&w->how, how);
    atomic_store(&w->absent, pid);
}

ls_commons_absentee ls_commons_absentee_of(const ls_commons *c, int rank) {
    return absentee(ls_commons_worker_of(c, rank));
}

ls_commons_absentee ls_commons_absentee_read(int fd, int rank) {
    ls_commons_head h;
    ls_commons_worker w;
    size_t at = (size_t)rank * sizeof w;
    if (pread(fd, &h, sizeof h, 0) != (ssize_t)sizeof h || h.magic != MAGIC || rank >= h.size ||
        pread(fd, &w, sizeof w, (off_t)(h.workers_at + at)) != (ssize_t)sizeof w)
        return (ls_commons_absentee){0};
    return absentee(&w);
}

const char *ls_commons_absentee_text(const ls_commons_absentee *a, char text[128]) {
    static const char before[] = "before it had joined the group";
    if (WIFSIGNALED(a->how))
        snprintf(text, 128, "was killed by signal %d (%.40s) %s", WTERMSIG(a->how),
                 strsignal(WTERMSIG(a->how)), before);
    else
        snprintf(text, 128, "ended with exit code %d %s", WEXITSTATUS(a->how), before);
    return text;
}

void ls_commons_attach(ls_commons *c, void *p, size_t nbytes) {
    if (c->threads) return; /* their offsets are differences of addresses, and reach all memory */
    c->attached = p;
    c->attached_nbytes = nbytes;
}

static bool lies_in(const unsigned char *p, size_t nbytes, const unsigned char *all, size_t nall) {
    return all && p >= all && nbytes <= nall && p + nbytes <= all + nall;
}

bool ls_commons_readable(const ls_commons *c, const void *p, size_t nbytes) {
    return c->threads || lies_in(p, nbytes, c->base, c->head->nbytes) ||
           lies_in(p, nbytes, c->attached, c->attached_nbytes);
}

/* ---- the arena ---- */

static unsigned char *arena(const ls_commons *c) {
    return c->base + c->head->arenas_at + (size_t)c->rank * stride(c->head->arena_nbytes);
}

static void insert_block(ls_commons *c, size_t at, block b) {
    if (c->nblocks == c->block_cap) {
        c->block_cap *= 2;
        c->blocks = ls_realloc(c->blocks, c->block_cap * sizeof *c->blocks);
    }
    memmove(c->blocks + at + 1, c->blocks + at, (c->nblocks - at) * sizeof *c->blocks);
    c->blocks[at] = b;
    c->nblocks++;
}

static void remove_block(ls_commons *c, size_t at) {
    c->nblocks--;
    memmove(c->blocks + at, c->blocks + at + 1, (c->nblocks - at) * sizeof *c->blocks);
}

void *ls_commons_alloc(ls_commons *c, size_t nbytes) {
    if (nbytes > c->head->arena_nbytes) return NULL;
    size_t want = nbytes ? ls_round_up(nbytes, ALIGN) : ALIGN;
    for (size_t i = 0; i < c->nblocks; i++) {
        block *b = &c->blocks[i];
        if (b->taken || b->nbytes < want) continue;
        block rest = {.offset = b->offset + want, .nbytes = b->nbytes - want};
        b->nbytes = want;
        b->taken = true;
        void *p = arena(c) + b->offset;
        size_t used = b->offset < c->fresh ? c->fresh - b->offset : 0;
        memset(p, 0, used < want ? used : want);
        if (rest.offset > c->fresh) c->fresh = rest.offset;
        if (rest.nbytes) insert_block(c, i + 1, rest);
        return p;
    }
    return NULL;
}

bool ls_commons_free(ls_commons *c, void *p) {
    size_t i = 0;
    while (i < c->nblocks && !(c->blocks[i].taken && arena(c) + c->blocks[i].offset == p)) i++;
    if (i == c->nblocks) return false;
    c->blocks[i].taken = false;
    if (i + 1 < c->nblocks && !c->blocks[i + 1].taken) {
        c->blocks[i].nbytes += c->blocks[i + 1].nbytes;
        remove_block(c, i + 1);
    }
    if (i > 0 && !c->blocks[i - 1].taken) {
        c->blocks[i - 1].nbytes += c->blocks[i].nbytes;
        remove_block(c, i);
    }
    return true;
}
