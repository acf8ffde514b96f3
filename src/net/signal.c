/* signal.c - see signal.h.
 *
 * No wake-up is lost: a sleeper counts itself before it looks at the value for the last time, and
 * the poster writes the value before it looks for sleepers (both sequentially consistent); the
 * kernel itself compares the value again before it puts anyone to sleep.
 */
#include "net/signal.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { ABORT_POLL_NS = 20 * 1000 * 1000, SPINS = 20000 };

static void futex_wait(atomic_uint *word, unsigned seen, int64_t ns) {
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

static bool reached(unsigned value, unsigned want) { return (int)(value - want) >= 0; }

void ls_signal_post(ls_signal *s, unsigned value) {
    atomic_store(&s->value, value);
    if (atomic_load(&s->sleepers))
        syscall(SYS_futex, &s->value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static ls_status sleep_until(ls_signal *s, unsigned want, const ls_waiter *w) {
    int64_t end = w->timeout_ns < 0 ? INT64_MAX : ls_clock_ns() + w->timeout_ns;
    for (;;) {
        unsigned seen = atomic_load(&s->value);
        if (reached(seen, want)) return LS_OK;
        if (atomic_load(w->aborted)) return LS_EABORT;
        if (ls_clock_ns() >= end) return LS_ETIMEOUT;
        futex_wait(&s->value, seen, ABORT_POLL_NS);
    }
}

ls_status ls_signal_wait(ls_signal *s, unsigned want, const ls_waiter *w) {
    for (int i = 0; i < w->spins; i++) {
        if (reached(atomic_load_explicit(&s->value, memory_order_acquire), want)) return LS_OK;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    atomic_fetch_add(&s->sleepers, 1);
    ls_status status = sleep_until(s, want, w);
    atomic_fetch_sub(&s->sleepers, 1);
    return status;
}

int ls_waiter_spins(int busy, int cores) { return busy <= cores ? SPINS : 0; }
