/* bell.c - see bell.h.
 *
 * No wake-up is lost: the sleeper says that it sleeps, then looks for the last time; who rings has
 * stored what is waited for, then looks for a sleeper; a fence stands between the two on both
 * sides. The kernel compares `rung` again before it puts anyone to sleep.
 */
#include "net/local/bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* About 15 us of looking: two workers that spin on one core would keep each other waiting that
 * long. */
enum { LOOKS = 1000, YIELDS = 200 };

ls_patience ls_patience_for(int workers, int cores) {
    return (ls_patience){.looks = workers <= cores ? LOOKS : 1, .yields = YIELDS};
}

/* The thread sanitizer knows no fences; there, an instruction that is one on every processor at
 * hand. */
static void fence(void) {
#if defined(__SANITIZE_THREAD__)
    static _Thread_local atomic_int own;
    atomic_fetch_add(&own, 1);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

void ls_bell_ring(ls_bell *b) {
    fence();
    if (!atomic_load_explicit(&b->sleeping, memory_order_relaxed)) return;
    atomic_fetch_add(&b->rung, 1);
    syscall(SYS_futex, &b->rung, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool sleep_until(ls_bell *b, bool (*ready)(void *), void *arg, int64_t end) {
    for (;;) {
        unsigned seen = atomic_load(&b->rung);
        fence();
        if (ready(arg)) return true;
        int64_t left = end == INT64_MAX ? INT64_MAX : end - ls_clock_ns();
        if (left <= 0) return false;
        if (left > 1000000000) left = 1000000000;
        struct timespec t = {.tv_nsec = left % 1000000000, .tv_sec = left / 1000000000};
        syscall(SYS_futex, &b->rung, FUTEX_WAIT, seen, &t, NULL, 0);
    }
}

bool ls_bell_wait(ls_bell *b, bool (*ready)(void *), void *arg, const ls_patience *p,
                  int64_t timeout_ns) {
    if (timeout_ns == 0) return ready(arg);
    for (int i = 0; i < p->looks; i++) {
        if (ready(arg)) return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    int64_t end = timeout_ns < 0 ? INT64_MAX : ls_clock_ns() + timeout_ns;
    for (int i = 0; i < p->yields; i++) {
        sched_yield(); /* on a busy machine, a few milliseconds */
        if (ready(arg)) return true;
        if (ls_clock_ns() >= end) return false;
    }
    atomic_fetch_add(&b->sleeping, 1);
    bool is_ready = sleep_until(b, ready, arg, end);
    atomic_fetch_sub(&b->sleeping, 1);
    return is_ready;
}
