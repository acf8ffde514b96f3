/* lock.h - the lock of a run directory: one program at a time changes what is in it.
 *
 * RUN/lock is a file that only its owner can open (mode 0600), so another user who may read the
 * directory can't hold it. It is locked with flock(), which file servers pass on to other hosts.
 * The lock belongs to the open file: processes that are forked later share it, and it ends with
 * the last of them. The file's text names the process that took it, and has the run's number, drawn
 * when the first process took the lock: hosts see by it that they have the same directory.
 *
 * The file stays when a program ends. Only a start that fails removes the file that it made, and it
 * does so while it holds the lock. So a process that has locked a file then checks that
 * RUN/lock is still this file, and tries again if it is not.
 */
#ifndef LS_STORAGE_LOCK_H
#define LS_STORAGE_LOCK_H

#include <stdbool.h>

#include "base/error.h"

typedef struct ls_lock {
    int fd;    /* -1: not held */
    bool made; /* this process made the file */
} ls_lock;

#define LS_LOCK_NONE ((ls_lock){.fd = -1})

/* Waits up to wait_s for another holder, or at least a few seconds if that was killed on this host
 * and its workers are about to end. LS_EINVAL: another process holds the lock; the message names
 * it. LS_EIO: the file can't be made, opened or locked. */
ls_status ls_lock_take(const char *dir, double wait_s, ls_lock *l_p, ls_error *);
/* Fails as ls_lock_take() does if a live process holds the lock; changes nothing. */
ls_status ls_lock_look(const char *dir, ls_error *);

typedef enum ls_lock_state {
    LS_LOCK_FREE,
    LS_LOCK_TAKEN,  /* by a live process */
    LS_LOCK_UNKNOWN /* the file is another user's */
} ls_lock_state;

enum { LS_LOCK_HOLDER = 224 };

enum { LS_LOCK_NUMBER = 33 };

/* The run's number, as text; "": there is none. LS_EIO: the file can't be opened. */
ls_status ls_lock_run(const char *dir, char run[LS_LOCK_NUMBER], ls_error *);
/* The holder writes a new number into the file: a host that reads this number in its directory,
 * with ls_lock_mark_of(), has the same directory, and no copy of it. False: the file can't be
 * written. */
bool ls_lock_mark(const ls_lock *, char mark[LS_LOCK_NUMBER]);
ls_status ls_lock_mark_of(const char *dir, char mark[LS_LOCK_NUMBER], ls_error *);

/* Changes nothing. holder: the process that has the lock: "process 12 on host, since ...". */
ls_lock_state ls_lock_state_of(const char *dir, char holder[LS_LOCK_HOLDER]);
/* What the file records about the process that took the lock last. */
typedef struct ls_lock_named {
    int pid; /* 0: the file names none, or there is no file */
    char host[128], since[32];
    double since_s;  /* since 1970; 0: not known */
    bool here;       /* the host is this one */
    bool held;       /* here: the process is there, and has the file open */
    bool unreadable; /* the file is another user's */
} ls_lock_named;

/* Reads the file without touching the lock, which ls_lock_state_of() takes for an instant: for
 * programs that only look. */
ls_lock_named ls_lock_read(const char *dir);
/* Is it the name of this host? */
bool ls_lock_is_here(const char *host);
/* Is RUN/lock the file that this process has locked? */
bool ls_lock_is_held(const ls_lock *, const char *dir);
/* Closes the file: the lock ends once the last process that shares it has closed it. */
void ls_lock_drop(ls_lock *);
/* Removes the file if this process made it, then closes it. */
void ls_lock_remove(ls_lock *, const char *dir);

#endif
