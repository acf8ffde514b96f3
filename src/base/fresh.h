/* fresh.h - a new file or directory that appears whole or not at all: it is written under another
 * name, in a hidden directory beside its own place, and renamed last.
 *
 * What is left of it is removed
 *     after an error          by ls_fresh_discard()
 *     after SIGINT, SIGTERM or SIGHUP, which then end the program as always, by a thread that waits
 *                             for them; a signal that has another action already is left alone
 *     after SIGKILL           by the next ls_fresh_begin() of the same path: a hidden directory
 *                             whose lock is free belongs to no program any more
 *
 * ls_file_replace() is for small files, and replaces what is there.
 */
#ifndef LS_BASE_FRESH_H
#define LS_BASE_FRESH_H

#include <stdbool.h>

#include "base/error.h"

typedef struct ls_fresh {
    char *path;   /* that it will have */
    char *at;     /* where it is written */
    char *hidden; /* the directory that `at` is in */
    int fd;       /* the open hidden directory; it holds the lock */
    bool watched; /* by the thread */
} ls_fresh;

typedef enum ls_fresh_kind { LS_FRESH_FILE, LS_FRESH_DIRECTORY } ls_fresh_kind;

/* Makes the directories above `path`; LS_FRESH_DIRECTORY also the directory `at`. LS_EINVAL: `path`
 * exists. One at a time in a process is removed after a signal. */
ls_status ls_fresh_begin(const char *path, ls_fresh_kind kind, ls_fresh *f_p, ls_error *);
/* Renames the file or directory, and ends in any case. LS_EINVAL: `path` exists now. On an error
 * nothing is left. */
ls_status ls_fresh_end(ls_fresh *, ls_error *);
void ls_fresh_discard(ls_fresh *);

#endif
