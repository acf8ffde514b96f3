/* waiting.h - logs what the program is busy with when it takes long.
 *
 * ls_waiting_begin() starts a thread that logs the message once `after_ns` have passed, and again,
 * with the seconds so far, every LS_WAITING_AGAIN_S (once, where a process that was stopped
 * continues). ls_waiting_end() ends the thread, so that none is left when workers are forked. One
 * message at a time.
 */
#ifndef LS_BASE_WAITING_H
#define LS_BASE_WAITING_H

#include <stdint.h>

enum { LS_WAITING_AGAIN_S = 10 };
#define LS_WAITING_NS INT64_C(1000000000) /* people begin to wonder */

/* `fmt`: what the program does, e.g. "planning 1000 layers". */
void ls_waiting_begin(int64_t after_ns, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ls_waiting_end(void);

#endif
