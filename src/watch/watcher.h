/* watcher.h - all runs that are watched: which there are, what they say, and what has changed.
 *
 * A run's number is its place in the list, and stays. Each change of the list, of a run's lines or of its state has
 * a number, too: `revision`. The latest changes are retained, so that a page whose connection was lost can be
 * sent what it has missed.
 *
 * One thread. It reads files and nothing else: no run notices that it is watched.
 */
#ifndef LS_WATCH_WATCHER_H
#define LS_WATCH_WATCHER_H

#include "base/hash.h"
#include "report/run_status.h"
#include "watch/watched.h"

enum { LS_WATCHER_CHANGES = 4096, LS_WATCHER_RUNS = 4096 };

typedef struct ls_watcher_run {
    char *name;                /* the path, without what all runs' paths begin with */
    const char *model;         /* model.kind; "": the config can't be read */
    char config[LS_HASH_TEXT]; /* the hash of config.yaml; "": it can't be read */
    ls_watched lines;
    ls_run_status status;
    double read_s;            /* when the status was read */
    double lines_s;           /* when there was a new line; 0: not since the watcher began */
    uint64_t status_revision; /* when it has changed */
} ls_watcher_run;

/* What a page had of a run before a change. */
typedef struct ls_watcher_change {
    uint64_t revision, generation, at;
    int64_t rows;
    int run;
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
} ls_watcher;

/* Reads all runs below the directories, which must outlive it, on all cores. may_come: a directory may be missing
 * yet. LS_EIO: one can't be read. LS_EINVAL: there are too many runs. */
ls_status ls_watcher_open(const char *const *dirs, int ndirs, bool may_come, ls_watcher **w_p,
                          ls_error *);
void ls_watcher_close(ls_watcher *); /* NULL is fine */

/* Looks for what is new, now_s by ls_clock_wall_s(); returns true if something has changed. Call it a few times a
 * second. */
bool ls_watcher_look(ls_watcher *, double now_s);

/* Is it some time since a running run wrote its last line? */
bool ls_watcher_run_is_silent(const ls_watcher_run *, double now_s);

/* Appends the list as JSON: {"boot", "revision", "runs", "differences"}. */
void ls_watcher_write(const ls_watcher *, ls_buf *out);
/* Appends one run of it. */
void ls_watcher_write_run(const ls_watcher *, int run, ls_buf *out);

#endif
