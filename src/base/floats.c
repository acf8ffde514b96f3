/* floats.c - see floats.h. */
#include "base/floats.h"

#if defined(__x86_64__)
#include <stdbool.h>
#include <xmmintrin.h>

/* All but the flags of what has happened; those of a thread that has just begun. */
enum { SSE_MODES = 0xffc0, SSE = 0x1f80, X87 = 0x037f };

static bool is_other(unsigned a, unsigned b) { return (a ^ b) & SSE_MODES; }

static ls_floats get(void) {
    ls_floats f = {.sse = _mm_getcsr()};
    __asm__ volatile("fnstcw %0" : "=m"(f.x87));
    return f;
}

static void set(ls_floats to, ls_floats from) {
    if (is_other(to.sse, from.sse)) _mm_setcsr(to.sse);
    if (to.x87 != from.x87) __asm__ volatile("fldcw %0" : : "m"(to.x87));
}

ls_floats ls_floats_enter(void) {
    ls_floats before = get();
    set((ls_floats){SSE, X87}, before);
    return before;
}

void ls_floats_leave(const ls_floats *before) { set(*before, get()); }

#elif defined(__aarch64__)
static ls_floats get(void) {
    ls_floats f;
    __asm__ volatile("mrs %0, fpcr" : "=r"(f));
    return f;
}

static void set(ls_floats to, ls_floats from) {
    if (to != from) __asm__ volatile("msr fpcr, %0" : : "r"(to));
}

ls_floats ls_floats_enter(void) {
    ls_floats before = get();
    set(0, before);
    return before;
}

void ls_floats_leave(const ls_floats *before) { set(*before, get()); }

#else
ls_floats ls_floats_enter(void) {
    ls_floats before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    return before;
}

void ls_floats_leave(const ls_floats *before) { fesetenv(before); }
#endif
