/* log.h - messages for people, on standard error.
 *
 * Each message is one line, but for ls_log_lines(). ls_log_status() updates one line at the bottom
 * of a terminal; other messages are written above it. Control characters in a message are escaped
 * (escape.h). All functions: any thread, any process.
 *
 * Logging neither ends nor blocks the program: a message that can't be written is lost (but a pipe
 * without a reader raises SIGPIPE unless the program ignores it). If the reader is stuck, such as a
 * terminal after Ctrl-S or a full pipe, the program waits half a second once; when the reader
 * continues, the first line that it gets says how many lines were lost.
 */
#ifndef LS_BASE_LOG_H
#define LS_BASE_LOG_H

#include <stdbool.h>

#include "base/highlight.h"

/* Writes the program's name (name.h), ": " and the message, whose quoted commands have that
 * name. */
void ls_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* As ls_log(), and never held back: for a wait for the workers that hold their messages. */
void ls_log_at_once(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Logs a text of several lines as one message. Its line breaks stay: the caller escapes names and
 * values in it. */
void ls_log_lines(const char *text);

/* Writes an intermediate result: the message without the name. */
void ls_log_result(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Writes an intermediate result, in which parts stand out. */
void ls_log_highlighted(ls_highlight *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* On a terminal: replaces the status line, and never wraps: fields (separated by two spaces) that
 * do not fit the width are left out. Elsewhere: writes the whole message as a line of its own. */
void ls_log_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* On a terminal: adds such a line to the transcript (transcript.h) alone, since those that are
 * shown in place are not in it. Elsewhere it is in it already. */
void ls_log_keep(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Leaves the status line on the terminal; the next line begins below it. */
void ls_log_end_status(void);

/* ---- messages held back: until workers of a launcher have met, all of them log the same ---- */

/* From here on messages are also held; quiet: they are held and not written. */
void ls_log_hold(bool quiet);
/* The messages held so far; NULL: messages are not held. Valid until ls_log_release(). */
const char *ls_log_held(void);
/* Stops holding messages. show: writes those that were held and not written. */
void ls_log_release(bool show);

/* True if standard error is a terminal. */
bool ls_log_is_terminal(void);

#endif
