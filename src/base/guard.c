/* guard.c - see guard.h. */
#include "base/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

/* One mapped file. The handler reads entries without a lock: an entry is filled in before the
 * mapping is handed out, and its memory is never freed, only used again. */
typedef struct entry {
    _Atomic(uintptr_t) begin; /* 0: the entry is free */
    _Atomic(uintptr_t) end;   /* rounded up to pages */
    _Atomic(uint64_t) lost;   /* 1 + the offset of the first lost byte that was read; 0: none */
    char *path;               /* the lock protects it */
} entry;

enum { ENTRIES = 256 };

typedef struct block {
    entry entries[ENTRIES];
    struct block *_Atomic next;
} block;

static block first_block;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;
static uintptr_t page;
static _Atomic(int) nlost; /* entries with lost bytes */

/* The entry of the mapping that has this address; 0: a free entry. */
static entry *find(uintptr_t address) {
    for (block *b = &first_block; b; b = atomic_load(&b->next))
        for (int i = 0; i < ENTRIES; i++) {
            uintptr_t begin = atomic_load(&b->entries[i].begin);
            if (address ? begin && begin <= address && address < atomic_load(&b->entries[i].end)
                        : !begin)
                return &b->entries[i];
        }
    return NULL;
}

/* A fault that is not ours. A handler that was there before may pass it back. */
static void pass_on(int number, siginfo_t *info, void *context) {
    static _Thread_local volatile sig_atomic_t passing;
    if (!passing && before.sa_flags & SA_SIGINFO) {
        passing = 1;
        before.sa_sigaction(number, info, context);
        passing = 0;
    } else if (!passing && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        passing = 1;
        before.sa_handler(number);
        passing = 0;
    } else {
        signal(SIGBUS, SIG_DFL);
        if (info->si_code <= 0) raise(SIGBUS); /* else the instruction faults again */
    }
}

/* The faulting instruction is run again afterwards, and reads zeros. The note comes first: another
 * thread that reads the zeros must find it. */
static void on_fault(int number, siginfo_t *info, void *context) {
    int saved = errno;
    uintptr_t address = (uintptr_t)info->si_addr;
    bool sent = info->si_code <= 0; /* by a process: there is no address */
    entry *x = sent || !address ? NULL : find(address);
    if (x) {
        uintptr_t from = address & ~(page - 1);
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&x->lost, &none, 1 + from - atomic_load(&x->begin)))
            atomic_fetch_add(&nlost, 1);
        /* The call itself: mmap() is not among the functions that a handler may call. */
        long zeros = syscall(SYS_mmap, from, atomic_load(&x->end) - from, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        errno = saved;
        if (zeros != -1) return;
    }
    pass_on(number, info, context);
}

/* Installs our handler, unless it is there: another part of the program may have replaced it. */
static void install(void) {
    struct sigaction now, ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGBUS, NULL, &now);
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault) return;
    page = (uintptr_t)sysconf(_SC_PAGESIZE);
    before = now;
    sigaction(SIGBUS, &ours, NULL);
}

static entry *new_entry(void) {
    entry *x = find(0);
    if (x) return x;
    block *b = &first_block;
    while (atomic_load(&b->next)) b = atomic_load(&b->next);
    block *more = LS_NEW(block);
    atomic_store(&b->next, more);
    return more->entries;
}

ls_status ls_guard_map(int fd, const char *path, size_t nbytes, const void **data_p, ls_error *e) {
    *data_p = NULL;
    if (nbytes == 0) return LS_OK;
    void *p = mmap(NULL, nbytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return ls_fail(e, LS_EIO, "%s: can't be mapped: %s", path, strerror(errno));
    pthread_mutex_lock(&lock);
    install();
    entry *x = new_entry();
    x->path = ls_strdup(path);
    atomic_store(&x->lost, 0);
    atomic_store(&x->end, ((uintptr_t)p + nbytes + page - 1) & ~(page - 1));
    atomic_store(&x->begin, (uintptr_t)p);
    pthread_mutex_unlock(&lock);
    *data_p = p;
    return LS_OK;
}

void ls_guard_unmap(const void *data, size_t nbytes) {
    if (!data) return;
    pthread_mutex_lock(&lock);
    entry *x = find((uintptr_t)data);
    if (atomic_load(&x->lost)) atomic_fetch_sub(&nlost, 1);
    free(x->path);
    x->path = NULL;
    atomic_store(&x->begin, 0);
    munmap((void *)(uintptr_t)data, nbytes);
    pthread_mutex_unlock(&lock);
}

ls_status ls_guard_check(ls_error *e) {
    if (atomic_load_explicit(&nlost, memory_order_acquire) == 0) return LS_OK;
    ls_status s = LS_OK;
    pthread_mutex_lock(&lock);
    for (block *b = &first_block; b && s == LS_OK; b = atomic_load(&b->next))
        for (int i = 0; i < ENTRIES && s == LS_OK; i++) {
            entry *x = &b->entries[i];
            uint64_t lost = atomic_load(&x->begin) ? atomic_load(&x->lost) : 0;
            if (lost)
                s = ls_fail(e, LS_EIO,
                            "%s: can't be read any more from byte %llu on: it was truncated while "
                            "it was open, or its disk failed; put the file back and start again",
                            x->path, (unsigned long long)(lost - 1));
        }
    pthread_mutex_unlock(&lock);
    return s;
}
