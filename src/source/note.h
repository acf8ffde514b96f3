/* note.h - remarks about data: records and fields that are left out, members that are ignored. */
#ifndef LS_SOURCE_NOTE_H
#define LS_SOURCE_NOTE_H

#include <stdbool.h>

/* From here on a remark is logged once in this process and those that it forks, however often they
 * open the same data: a run opens them to find out what its model reads, and in each worker. */
void ls_note_once(void);
/* Does this process ask for the text for the first time? Not again, of the last 64. Any thread. */
bool ls_note_is_new(const char *text);
/* Logs a remark. Any thread. */
__attribute__((format(printf, 1, 2))) void ls_note(const char *format, ...);

#endif
