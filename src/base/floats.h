/* floats.h - the floating-point arithmetic in which the library computes, whatever the program's
 * is: sums round to nearest, denormal numbers are numbers, and nothing traps. A program that was
 * compiled with -ffast-math or by one of Intel's compilers takes denormal numbers as zeros, one
 * with fesetround() rounds otherwise, one with feenableexcept() stops at a NaN. */
#ifndef LS_BASE_FLOATS_H
#define LS_BASE_FLOATS_H

#ifdef __FAST_MATH__
#error "-ffast-math changes the order of sums: build without it"
#endif

#if defined(__x86_64__)
typedef struct ls_floats {
    unsigned sse;       /* MXCSR */
    unsigned short x87; /* printf() and strtod() round as it says */
} ls_floats;
#elif defined(__aarch64__)
typedef unsigned long ls_floats; /* FPCR */
#else
#include <fenv.h>
typedef fenv_t ls_floats;
#endif

/* Sets the calling thread's arithmetic to the library's; returns the one before. */
ls_floats ls_floats_enter(void);
void ls_floats_leave(const ls_floats *before);

/* At the head of a public function that computes: the library's arithmetic until it returns.
 * Threads that it starts have it, too, and so do the program's functions that it calls. */
#define LS_FLOATS()                                                                                \
    __attribute__((unused, cleanup(ls_floats_leave))) ls_floats floats_before_ = ls_floats_enter()

#endif
