/* forked.c - see forked.h. */
#include "base/forked.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "base/mem.h"

static _Atomic uint32_t forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *fds; /* [n] */
static size_t n;

/* fork() copies the list while nobody changes it. */
static void before(void) { pthread_mutex_lock(&lock); }
static void after_in_parent(void) { pthread_mutex_unlock(&lock); }

/* Only what is safe after a fork() in a process with threads: nothing is freed. */
static void after_in_child(void) {
    atomic_fetch_add(&forks, 1);
    for (size_t i = 0; i < n; i++) close(fds[i]);
    n = 0;
    pthread_mutex_unlock(&lock);
}

static void install(void) { pthread_atfork(before, after_in_parent, after_in_child); }

uint32_t ls_forks(void) {
    pthread_once(&once, install);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

void ls_fork_closes(int fd) {
    if (fd < 0) return;
    pthread_once(&once, install);
    pthread_mutex_lock(&lock);
    fds = ls_grow(fds, n, sizeof *fds);
    fds[n++] = fd;
    pthread_mutex_unlock(&lock);
}

void ls_fork_close(int fd) {
    if (fd < 0) return;
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < n && fds[i] != fd) i++;
    if (i < n) fds[i] = fds[--n];
    pthread_mutex_unlock(&lock);
    close(fd);
}
