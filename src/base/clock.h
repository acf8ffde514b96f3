/* clock.h - monotonic time in nanoseconds, and other clocks. */
#ifndef LS_BASE_CLOCK_H
#define LS_BASE_CLOCK_H

#include <stdint.h>

int64_t ls_clock_ns(void);
/* Seconds in nanoseconds, at most a century, so that they can be added to a time; of a negative
 * number and NaN -1. */
int64_t ls_clock_ns_of(double seconds);
/* Identifies the clock: equal for processes that read the same ls_clock_ns(), which are those of
 * one boot of one host. */
uint64_t ls_clock_number(void);
/* Processor time of this thread; where the system counts that in ticks (gVisor: 10 ms), time. */
double ls_clock_thread_s(void);
double ls_clock_wall_s(void); /* seconds since 1970, for log files only */

#endif
