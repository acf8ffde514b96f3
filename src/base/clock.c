/* clock.c - see clock.h. */
#include "base/clock.h"

#include <time.h>

static int64_t clock_read(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t ls_clock_ns(void) { return clock_read(CLOCK_MONOTONIC); }

double ls_clock_wall_s(void) { return (double)clock_read(CLOCK_REALTIME) / 1e9; }
