/* transcript.h - what this program writes for people, also in a file.
 *
 * While a transcript is on, each message of log.h and each text of print.h is also added to it: as
 * it was escaped, without colours, each line after the time of day. First it is held in memory,
 * until a process knows the file; from then on all processes that were forked since
 * ls_transcript_begin() add to that. A status line that a terminal shows in place is not added.
 *
 * A file that has more than LS_TRANSCRIPT_NBYTES gets the name NAME.1, in place of an older one
 * with that name, and a new file begins: the two have the latest lines.
 */
#ifndef LS_BASE_TRANSCRIPT_H
#define LS_BASE_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>

/* HELD: bytes that are held until there is a file; further text is left out. */
enum { LS_TRANSCRIPT_NBYTES = 4 << 20, LS_TRANSCRIPT_HELD = 64 << 10 };

/* Begins a transcript; an earlier one must have ended. One thread. Without memory there is none. */
void ls_transcript_begin(void);
/* Begins a transcript, unless one is on; any thread. False: one is on. */
bool ls_transcript_try(void);
/* Sets the file: it is made if it is missing, and appended to if it is there. `first`: a line that
 * comes before those that were held; NULL: none. No effect if it has a file, or has not begun. */
void ls_transcript_open(const char *path, const char *first);
/* Makes the file again if it was removed; until then what is written is not in it. */
void ls_transcript_renew(void);
/* Ends the transcript. */
void ls_transcript_end(void);

/* Any thread, any process. Failures are logged once. */
void ls_transcript_add(const char *text, size_t n);

#endif
