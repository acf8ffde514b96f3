/* watcher_run.h - a run of the list: its lines, its config, its state.
 *
 * Reading config.yaml and all lines takes time, so a run is first read in the background
 * (first_reading.h), in two stages. Until a stage is complete, its fields belong to the thread that
 * reads them.
 */
#ifndef LS_WATCH_WATCHER_RUN_H
#define LS_WATCH_WATCHER_RUN_H

#include "base/hash.h"
#include "report/run_status.h"
#include "watch/watched.h"

typedef enum ls_run_stage {
    LS_RUN_FOUND, /* its path and its name */
    LS_RUN_KNOWN, /* its config and its status, too */
    LS_RUN_READ   /* its lines, too */
} ls_run_stage;

typedef struct ls_watcher_run {
    char *name; /* the path, without what all runs' paths begin with */
    ls_run_stage stage;

    /* from LS_RUN_KNOWN on */
    ls_config *config; /* NULL: it can't be read, for the reason `why` */
    char *why;
    char hash[LS_HASH_TEXT]; /* of config.yaml; "": it can't be read */
    uint64_t config_inode, config_nbytes;
    int64_t config_ns; /* when it was changed */
    ls_run_status status;
    double read_s;           /* when the status was read */
    uint64_t metrics_nbytes; /* of metrics.jsonl, when the status was read first */

    ls_watched lines; /* from LS_RUN_READ on, but for its path */

    uint64_t nread;           /* bytes of the lines, in the first reading; atomic */
    double lines_s;           /* when there was a new line; 0: not since the watcher began */
    double looked_s;          /* when it was looked for new lines */
    uint64_t status_revision; /* when the status has changed */
} ls_watcher_run;

ls_watcher_run *ls_watcher_run_open(const char *path);
void ls_watcher_run_close(ls_watcher_run *);

/* model.kind; "": the config can't be read. */
const char *ls_watcher_run_model(const ls_watcher_run *);

/* Reads the config, if it has changed, and the status. True: something has changed that a page
 * shows. */
bool ls_watcher_run_know(ls_watcher_run *, double now_s);

/* Appends it as JSON, with its number in the list. */
void ls_watcher_run_write(const ls_watcher_run *, int id, ls_buf *out);

#endif
