/* clock.c - see clock.h. */
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

#define TICK_NS 1000000 /* the shortest that a system counts in */

static int64_t clock_read(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t ls_clock_ns(void) { return clock_read(CLOCK_MONOTONIC); }

int64_t ls_clock_ns_of(double seconds) {
    const double century = 3.15576e9;
    if (!(seconds >= 0)) return -1;
    return (int64_t)((seconds < century ? seconds : century) * 1e9);
}

static clockid_t thread_clock = CLOCK_MONOTONIC;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* By the first difference of two readings. */
static void choose_thread_clock(void) {
    int64_t begin = clock_read(CLOCK_THREAD_CPUTIME_ID), passed = 0;
    for (int i = 0; i < 1000 && passed == 0; i++)
        passed = clock_read(CLOCK_THREAD_CPUTIME_ID) - begin;
    if (passed > 0 && passed < TICK_NS) thread_clock = CLOCK_THREAD_CPUTIME_ID;
}

double ls_clock_thread_s(void) {
    pthread_once(&once, choose_thread_clock);
    return (double)clock_read(thread_clock) / 1e9;
}

double ls_clock_wall_s(void) { return (double)clock_read(CLOCK_REALTIME) / 1e9; }

/* A container may have its own clock offset: a time namespace. */
uint64_t ls_clock_number(void) {
    char id[256] = "", clock[64] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f) {
        if (!fgets(id, 64, f)) id[0] = 0;
        fclose(f);
    }
    if (!id[0]) gethostname(id, 64);
    if (readlink("/proc/self/ns/time", clock, sizeof clock - 1) < 0) clock[0] = 0;
    strcat(id, clock);
    return ls_hash_bytes(id, strlen(id)).lo;
}
