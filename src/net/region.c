/* region.c - see region.h. */
#include "net/region.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

size_t ls_region_cost(size_t nbytes) { return (nbytes + PAGE - 1) / PAGE * PAGE; }

static ls_status map_memfd(size_t nbytes, int *fd_p, void **p_p, ls_error *e) {
    int fd = memfd_create("lockstep", MFD_CLOEXEC);
    if (fd < 0) return ls_fail(e, LS_ENOMEM, "shared memory: %s", strerror(errno));
    void *p = MAP_FAILED;
    if (ftruncate(fd, (off_t)nbytes) == 0)
        p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        int why = errno;
        close(fd);
        return ls_fail(e, LS_ENOMEM, "no shared memory: %.1f MB wanted: %s", (double)nbytes / 1e6,
                       strerror(why));
    }
    *fd_p = fd;
    *p_p = p;
    return LS_OK;
}

ls_status ls_region_create(int nworkers, size_t arena_nbytes, bool shared, ls_region *r_p,
                           ls_error *e) {
    size_t head = sizeof(ls_region_header) + (size_t)nworkers * sizeof(ls_worker_slot);
    ls_region r = {.fd = -1, .used = ls_region_cost(head)};
    r.nbytes = r.used + arena_nbytes;
    /* the kernel would give it, and kill a worker later */
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if ((double)r.nbytes > memory)
        return ls_fail(e, LS_ENOMEM,
                       "%.1f GB of memory are needed for parameters, gradients and optimizer, this "
                       "machine has %.1f; use a smaller model, fewer workers or virtual workers",
                       (double)r.nbytes / 1e9, memory / 1e9);
    void *p = NULL;
    if (shared)
        LS_TRY(map_memfd(r.nbytes, &r.fd, &p, e));
    else
        p = mmap(NULL, r.nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return ls_fail(e, LS_ENOMEM, "no memory: %.1f MB wanted", (double)r.nbytes / 1e6);
    r.header = p;
    r.header->nworkers = nworkers;
    for (int i = 0; i < nworkers; i++) atomic_store(&r.header->workers[i].action, -1);
    *r_p = r;
    return LS_OK;
}

void ls_region_close(ls_region *r) {
    if (r->header) munmap(r->header, r->nbytes);
    if (r->fd >= 0) close(r->fd);
    *r = (ls_region){.fd = -1};
}

void *ls_region_take(ls_region *r, size_t nbytes) {
    size_t cost = ls_region_cost(nbytes);
    if (cost > r->nbytes - r->used) __builtin_trap(); /* set-up added up its needs wrongly */
    void *p = (char *)r->header + r->used;
    r->used += cost;
    return p;
}

void ls_region_fail(ls_region *r, int worker, const ls_error *e) {
    ls_region_header *h = r->header;
    int none = 0;
    if (atomic_compare_exchange_strong(&h->failed, &none, 1)) {
        h->error = *e;
        h->failed_worker = worker;
        atomic_store(&h->failed, 2);
    }
    atomic_store(&h->aborted, 1);
}

bool ls_region_failed(const ls_region *r, int *worker_p, ls_error *e) {
    if (atomic_load(&r->header->failed) != 2) return false;
    *worker_p = r->header->failed_worker;
    *e = r->header->error;
    return true;
}
