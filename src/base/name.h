/* name.h - the name of the program, for messages and for the commands that they quote. A program
 * built with the library has another name than `lockstep`. */
#ifndef LS_BASE_NAME_H
#define LS_BASE_NAME_H

#include <stddef.h>

enum { LS_NAME_NBYTES = 32 };

/* Before threads are started. A longer name is cut to LS_NAME_NBYTES - 1 bytes. */
void ls_name_set(const char *name);
const char *ls_name(void); /* "lockstep" unless it was set */

/* Copies text [n] into out [room], with the program's name in the place of "lockstep" in quoted
 * commands: 'lockstep plan', `lockstep plan`. What does not fit is cut off. Returns the length. */
size_t ls_name_copy(const char *text, size_t n, char *out, size_t room);

#endif
