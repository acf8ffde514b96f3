/* floats.c - see floats.h. */
#include "base/floats.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

enum { SSE_MODES = 0xffc0 }; /* all but the flags of what has happened */

/* Those of a thread that has just begun. */
static const ls_floats usual = {.sse = 0x1f80, .x87 = 0x037f};

static ls_floats get(void) {
    ls_floats f = {.sse = _mm_getcsr()};
    __asm__ volatile("fnstcw %0" : "=m"(f.x87));
    return f;
}

static void set(ls_floats to, ls_floats from) {
    if ((to.sse ^ from.sse) & SSE_MODES) _mm_setcsr(to.sse);
    if (to.x87 != from.x87) __asm__ volatile("fldcw %0" : : "m"(to.x87));
}

#elif defined(__aarch64__)
static const ls_floats usual = 0;

static ls_floats get(void) {
    ls_floats f;
    __asm__ volatile("mrs %0, fpcr" : "=r"(f));
    return f;
}

static void set(ls_floats to, ls_floats from) {
    if (to != from) __asm__ volatile("msr fpcr, %0" : : "r"(to));
}

#else
ls_floats ls_floats_enter(void) {
    ls_floats before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    return before;
}

void ls_floats_leave(const ls_floats *before) { fesetenv(before); }
#endif

#if defined(__x86_64__) || defined(__aarch64__)
ls_floats ls_floats_enter(void) {
    ls_floats before = get();
    set(usual, before);
    return before;
}

void ls_floats_leave(const ls_floats *before) { set(*before, get()); }
#endif
