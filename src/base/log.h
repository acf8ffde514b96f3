/* log.h - lines for people, on standard error.
 *
 * One line a message. ls_log_status() keeps one line at the bottom of a terminal up to date; other
 * messages are written above it. Control characters in a message are escaped (escape.h).
 * All functions: any thread, any process.
 *
 * No message ends the program or keeps it waiting: what can't be written is lost (a pipe without a
 * reader raises SIGPIPE where the program has not ignored it). A reader that takes nothing, as a
 * terminal after Ctrl-S or a full pipe, is waited for half a second once; how many lines it has
 * missed is the first that it reads afterwards.
 */
#ifndef LS_BASE_LOG_H
#define LS_BASE_LOG_H

#include <stdbool.h>

/* "lockstep: " and the message. */
void ls_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A line without "lockstep: ", which stays: a result on the way. */
void ls_log_result(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Replaces the status line on a terminal, and never wraps there: fields behind the terminal's width
 * (parted by two spaces) are left out. On anything else writes a whole line of its own. */
void ls_log_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The status line stays on the terminal, and the next line begins below it. */
void ls_log_end_status(void);

/* ---- workers that a launcher has started say the same, until they have met ---- */

/* From here on messages are kept, too; quiet: only kept. */
void ls_log_hold(bool quiet);
/* What was kept so far; NULL: messages are not kept. Valid until ls_log_release(). */
const char *ls_log_held(void);
/* No more is kept. show: what was only kept is written. */
void ls_log_release(bool show);

/* True where standard error is a terminal. */
bool ls_log_is_terminal(void);

#endif
