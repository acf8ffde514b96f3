/* waiting.h - logs what the program is busy with when it takes long.
 *
 * ls_waiting_begin() starts a thread that logs the message once `after_ns` have passed, and again,
 * with the seconds so far, every LS_WAITING_AGAIN_S (once, where a process that was stopped
 * continues). ls_waiting_end() ends the thread, so that none is left when workers are forked. One
 * message at a time.
 */
#ifndef LS_BASE_WAITING_H
#define LS_BASE_WAITING_H

#include <stdbool.h>
#include <stdint.h>

enum { LS_WAITING_AGAIN_S = 10 };
#define LS_WAITING_NS INT64_C(1000000000) /* people begin to wonder */

/* `fmt`: what the program does, e.g. "planning 1000 layers". */
void ls_waiting_begin(int64_t after_ns, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ls_waiting_end(void);

/* ---- for waits that look again and again by themselves ----
 *
 * A line is due after LS_WAITING_FIRST_S, and then each time after twice as long. Of the times that
 * have passed while the process was stopped, one counts. */
enum { LS_WAITING_FIRST_S = 5 };
typedef struct ls_waiting_report {
    int64_t began_ns, next_ns;
} ls_waiting_report;
ls_waiting_report ls_waiting_report_begin(void);
/* Is a line due now? Then *s_p: the seconds since the beginning. */
bool ls_waiting_report_due(ls_waiting_report *, int *s_p);

#endif
