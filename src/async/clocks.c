/* clocks.c - see clocks.h. */
#include "async/clocks.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/random.h"

enum { WORKER_BITS = 16 };

ls_status ls_clocks_open(const ls_clocks_config *o, ls_clocks **c_p, ls_error *e) {
    size_t ncells = (size_t)(o->staleness + 1) * (size_t)o->V;
    size_t n = (size_t)o->nlocal + (size_t)o->nguests;
    size_t nbytes =
        sizeof(ls_clocks) + n * sizeof(ls_clock_worker) + ncells * sizeof(ls_clock_cell);
    void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return ls_fail(e, LS_ENOMEM, "no memory for %zu workers: %s", n, strerror(errno));
    ls_clocks *c = p;
    c->nlocal = o->nlocal;
    c->nworkers = (int)n;
    c->V = o->V;
    c->staleness = o->staleness;
    c->until = o->until;
    c->drawn = o->drawn;
    c->seed = o->seed;
    c->nbytes = nbytes;
    c->workers = (void *)(c + 1);
    c->cells = (void *)(c->workers + n);
    atomic_store(&c->version, -1);
    *c_p = c;
    return LS_OK;
}

void ls_clocks_close(ls_clocks *c) {
    if (c) munmap(c, c->nbytes);
}

/* ---- gradients by number ---- */

int64_t ls_clocks_version_of(const ls_clocks *c, int64_t clock, int vw) {
    int64_t s = c->staleness;
    if (c->drawn) {
        double u = ls_random_uniform(c->seed, LS_STREAM_STALENESS, (uint64_t)vw, (uint64_t)clock);
        s = (int64_t)(u * (double)(s + 1));
    }
    return clock > s ? clock - s : 0;
}

static int cell_of(const ls_clocks *c, int64_t clock, int vw) {
    return (int)(clock % (c->staleness + 1)) * c->V + vw;
}

/* Above 0: cells have it in memory that begins as zeros. */
static unsigned long long number_of(const ls_clocks *c, int64_t clock, int vw) {
    return (unsigned long long)(clock * c->V + vw) + 1;
}

static ls_clock_task task_of(const ls_clocks *c, int64_t clock, int vw) {
    return (ls_clock_task){clock, ls_clocks_version_of(c, clock, vw), vw, cell_of(c, clock, vw)};
}

int ls_clocks_find(const ls_clocks *c, int64_t clock, int vw) {
    int cell = cell_of(c, clock, vw);
    bool there = atomic_load(&c->cells[cell].complete) == number_of(c, clock, vw);
    return there ? cell : -1;
}

/* ---- workers ---- */

typedef enum find_how { LOOK, TAKE } find_how;

/* Is the gradient this worker's, or free? Takes it then, unless the caller only looks. */
static bool take(ls_clock_cell *cell, unsigned long long number, int worker, find_how how) {
    unsigned long long own = number << WORKER_BITS | (unsigned)(worker + 1);
    unsigned long long claim = atomic_load(&cell->claim);
    if (atomic_load(&cell->complete) == number) return false;
    if (claim == own) return true;
    if (claim >> WORKER_BITS >= number) return false;
    return how == LOOK || atomic_compare_exchange_strong(&cell->claim, &claim, own);
}

static bool find(const ls_clocks *c, int worker, find_how how, ls_clock_task *t_p) {
    int64_t newest = atomic_load(&c->version);
    for (int64_t clock = newest; clock >= 0 && clock < c->until; clock++) {
        if (clock > newest + c->staleness) return false;
        for (int vw = 0; vw < c->V; vw++) {
            *t_p = task_of(c, clock, vw);
            if (t_p->version > newest) continue;
            if (take(&c->cells[t_p->cell], number_of(c, clock, vw), worker, how)) return true;
        }
    }
    return false;
}

void ls_clocks_succeed(ls_clocks *c, int worker) { ls_clocks_end_read(c, worker); }

bool ls_clocks_claim(ls_clocks *c, int worker, ls_clock_task *t_p) {
    return find(c, worker, TAKE, t_p);
}

bool ls_clocks_has_task(const ls_clocks *c, int worker) {
    ls_clock_task t;
    return find(c, worker, LOOK, &t);
}

void ls_clocks_complete(ls_clocks *c, int worker, const ls_clock_task *t) {
    atomic_fetch_add(&c->workers[worker].ncomplete, 1);
    atomic_store(&c->cells[t->cell].complete, number_of(c, t->clock, t->vw));
    ls_bell_ring(&c->bell);
}

bool ls_clocks_begin_read(ls_clocks *c, int worker, int64_t version) {
    atomic_store(&c->workers[worker].reads, 1);
    if (!atomic_load(&c->changing) && atomic_load(&c->version) == version) return true;
    ls_clocks_end_read(c, worker);
    return false;
}

void ls_clocks_end_read(ls_clocks *c, int worker) { atomic_store(&c->workers[worker].reads, 0); }

bool ls_clocks_enter(ls_clocks *c, int *worker_p) {
    for (int i = c->nlocal; i < c->nworkers; i++) {
        int away = 0;
        if (!atomic_compare_exchange_strong(&c->workers[i].present, &away, 1)) continue;
        *worker_p = i;
        return true;
    }
    return false;
}

/* Rings the bells of all workers if cells become free, since others may wait for them. */
void ls_clocks_leave(ls_clocks *c, int worker) {
    size_t ncells = (size_t)(c->staleness + 1) * (size_t)c->V;
    bool freed = false;
    ls_clocks_end_read(c, worker);
    for (size_t i = 0; i < ncells; i++) {
        ls_clock_cell *cell = &c->cells[i];
        unsigned long long claim = atomic_load(&cell->claim);
        bool own = (claim & ((1u << WORKER_BITS) - 1)) == (unsigned)(worker + 1);
        if (!own || atomic_load(&cell->complete) == claim >> WORKER_BITS) continue;
        freed = atomic_compare_exchange_strong(&cell->claim, &claim, 0) || freed;
    }
    atomic_store(&c->workers[worker].present, 0);
    for (int i = 0; freed && i < c->nworkers; i++) ls_bell_ring(&c->workers[i].bell);
}

/* ---- the main process ---- */

/* A worker that is killed while it reads is replaced, and its successor reads no more. */
void ls_clocks_begin_change(ls_clocks *c, bool (*are_lost)(void *arg), void *arg) {
    atomic_store(&c->changing, 1);
    for (int i = 0; i < c->nworkers; i++)
        while (atomic_load(&c->workers[i].reads) && !are_lost(arg))
            nanosleep(&(struct timespec){0, 100 * 1000}, NULL);
}

void ls_clocks_end_change(ls_clocks *c, int64_t version) {
    atomic_store(&c->version, version);
    atomic_store(&c->changing, 0);
    for (int i = 0; i < c->nworkers; i++) ls_bell_ring(&c->workers[i].bell);
}
