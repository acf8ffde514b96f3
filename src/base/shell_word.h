/* shell_word.h - a word of a command line that a user may paste into a shell (POSIX.1-2024,
 * 2.2). */
#ifndef LS_BASE_SHELL_WORD_H
#define LS_BASE_SHELL_WORD_H

#include "base/mem.h"

/* Appends the word, quoted if necessary, in characters that print. */
void ls_shell_word(ls_buf *, const char *word);

#endif
