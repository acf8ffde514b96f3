/* worker_states.h - what each worker of a host does now: RUN/workers.json, for `lockstep watch`.
 *
 * The supervisor looks at the board every 50 ms, which workers don't notice, and writes the file
 * once a second, in place and unsynced: readers skip what they can't parse. How often it has seen a
 * worker compute, communicate or be between two steps tells where its time goes. Only the host that
 * has worker 0 writes it, once a step has begun, and removes it when the run ends here. A file that
 * can't be written is no failure.
 */
#ifndef LS_TRAIN_WORKER_STATES_H
#define LS_TRAIN_WORKER_STATES_H

#include <stdbool.h>
#include <stdint.h>

#include "net/local/board.h"
#include "train/layout.h"

#define LS_WORKER_STATES_FILE "workers.json"

enum { LS_SEEN_COMPUTING, LS_SEEN_COMMUNICATING, LS_SEEN_BETWEEN, LS_NSEEN };

typedef struct ls_worker_seen {
    double seen[LS_NSEEN]; /* older looks count less: half after about half a minute */
    int64_t proportional_nbytes;
} ls_worker_seen;

typedef struct ls_worker_states {
    int64_t view, written_ns, measured_ns, planned_nbytes;
    ls_worker_seen *workers; /* [n] */
    int n;
    bool there; /* the file was written */
} ls_worker_states;

typedef struct ls_worker_states_view {
    const char *dir; /* the run directory; NULL: there is none */
    const ls_config *config;
    const ls_layout *layout;
    const ls_board *board;
    int64_t number;
    int first, n; /* workers of this host */
} ls_worker_states_view;

/* Called every 50 ms or so. */
void ls_worker_states_look(ls_worker_states *, const ls_worker_states_view *);
void ls_worker_states_end(ls_worker_states *, const char *dir);

/* What an action of the plan does: "Forward h.3", "Reduce bucket 2"; -1: "between steps". */
void ls_worker_states_doing(const ls_layout *, int action, char *text, size_t nbytes);

#endif
