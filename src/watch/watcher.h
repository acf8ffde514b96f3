/* watcher.h - all runs that are watched: which there are, what they say, and what has changed.
 *
 * A run's number is its place in the list, and stays. Each change of the list, of a run's lines or
 * of its state has a number, too: `revision`. The latest changes are retained, so that a page whose
 * connection was lost can be sent what it has missed.
 *
 * One thread, but for the first reading of runs (first_reading.h). It reads files and nothing else:
 * no run notices that it is watched.
 */
#ifndef LS_WATCH_WATCHER_H
#define LS_WATCH_WATCHER_H

#include "watch/first_reading.h"

enum { LS_WATCHER_CHANGES = 4096, LS_WATCHER_RUNS = 4096 };

/* What a page had of a run before a change. */
typedef struct ls_watcher_change {
    uint64_t generation, at;
    int64_t rows;
    int run;
    bool read; /* its lines were */
} ls_watcher_change;

typedef struct ls_watcher {
    const char *const *dirs; /* [ndirs] in which runs are looked for */
    int ndirs;
    ls_watcher_run **runs; /* [nruns] */
    int nruns;
    uint64_t boot;          /* differs between watchers */
    uint64_t revision;      /* of the latest change */
    uint64_t list_revision; /* of the latest change of the list */
    ls_watcher_change
        changes[LS_WATCHER_CHANGES]; /* that of revision r at r % LS_WATCHER_CHANGES */
    double listed_s;                 /* when the directories were looked through */
    ls_first_reading *first;
    int nunread,
        nunknown; /* runs that are not read yet; of these, those whose state is not known */
} ls_watcher;

/* Finds all runs below the directories, which must outlive it, and begins to read them. may_come: a
 * directory may be missing yet. LS_EIO: one can't be read. LS_EINVAL: there are too many runs. */
ls_status ls_watcher_open(const char *const *dirs, int ndirs, bool may_come, ls_watcher **w_p,
                          ls_error *);
void ls_watcher_close(ls_watcher *); /* NULL is fine */
/* Waits until all runs that were found are read. */
void ls_watcher_settle(ls_watcher *);

/* Looks for what is new, now_s by ls_clock_wall_s(); returns true if something has changed. Call it
 * a few times a second. */
bool ls_watcher_look(ls_watcher *, double now_s);

/* Appends the list as JSON: {"boot", "revision", "runs", "differences"}. */
void ls_watcher_write(const ls_watcher *, ls_buf *out);

#endif
