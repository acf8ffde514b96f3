/* bell.c - see bell.h.
 *
 * No wake-up is lost: the sleeper sets `sleeping`, then looks for the last time; the ringer stores
 * what is waited for, then looks for a sleeper; a fence stands between the two on both sides. The
 * kernel compares `rung` again before it puts anyone to sleep.
 */
#include "net/local/bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wait_policy.h"

/* About 15 us of looking: two workers that spin on one core would keep each other waiting that
 * long. */
enum { LOOKS = 1000, YIELDS = 200 };
enum { BRIEF_LOOKS = 20, BRIEF_WAITS = 64, BUSY_WAITS = 256 };
static const int64_t LONG_YIELD_NS = 1500000;

ls_patience ls_patience_for(int workers, int cores) {
    if (ls_wait_is_passive()) return (ls_patience){0};
    return (ls_patience){.looks = workers <= cores ? LOOKS : 1, .yields = YIELDS};
}

/* The thread sanitizer knows no fences; in its builds an atomic addition serves as one. */
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

/* How the latest waits of this thread went, from which the next one learns.
 *
 * brief   next waits that look only briefly. Set where a full look was in vain, but a yield or two
 *         were enough: the other worker seems to share this core, and looking keeps it away.
 * busy    next waits that sleep instead of yielding. Set where a yield has given the core to
 *         another process for a time slice: one that sleeps gets the core back when it is woken,
 *         one that yields waits for the end of the slice, and workers that lose their cores
 *         alternately hardly meet. Not where workers share cores: a yield gives the core to
 *         another of them. */
typedef struct habits {
    int brief, busy;
} habits;
static _Thread_local habits mine;

static bool look(bool (*ready)(void *), void *arg, int looks) {
    for (int i = 0; i < looks; i++) {
        if (ready(arg)) return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    return false;
}

static bool yield_until(bool (*ready)(void *), void *arg, const ls_patience *p, int64_t now,
                        int64_t end) {
    bool spins = p->looks > BRIEF_LOOKS;
    for (int i = 0; i < p->yields; i++) {
        int64_t before = now;
        sched_yield(); /* on a busy machine, a few milliseconds */
        bool is_ready = ready(arg);
        now = ls_clock_ns();
        bool lost = spins && now - before > LONG_YIELD_NS;
        if (lost) mine.busy = BUSY_WAITS;
        if (spins && is_ready && i < 2 && !mine.brief) mine.brief = BRIEF_WAITS;
        if (is_ready || lost || now >= end) return is_ready;
    }
    return false;
}

bool ls_bell_wait(ls_bell *b, bool (*ready)(void *), void *arg, const ls_patience *p,
                  int64_t timeout_ns) {
    if (timeout_ns == 0) return ready(arg);
    bool spins = p->looks > BRIEF_LOOKS, brief = spins && mine.brief;
    mine.brief -= brief;
    if (look(ready, arg, brief ? BRIEF_LOOKS : p->looks)) return true;
    int64_t now = ls_clock_ns(), end = timeout_ns < 0 ? INT64_MAX : now + timeout_ns;
    if (spins && mine.busy)
        mine.busy--;
    else if (yield_until(ready, arg, p, now, end))
        return true;
    mine.brief = 0;
    atomic_fetch_add(&b->sleeping, 1);
    bool is_ready = sleep_until(b, ready, arg, end);
    atomic_fetch_sub(&b->sleeping, 1);
    return is_ready;
}
