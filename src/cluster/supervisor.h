/* supervisor.h - a host's supervisor: workers, view after view, with those of other hosts or alone.
 *
 * A view is a set of workers that train together. What they have made lies in memory that outlives
 * them (exec/store.h), so a view can end at any instruction of any worker: the others rest (rest.h)
 * or are ended, what was begun is mended, and the next view's workers take up the state. Their
 * virtual workers, and so the bits, are the old ones'. When views begin and end is views.h's.
 *
 *     start a view ---> all end well ------------------------------> done
 *        ^    |-------> one fails with an error of its own --------> the error
 *        |    |-------> asked to stop: all do, after a step; asked twice: all are killed
 *        |    |-------> more or fewer workers are wanted, one was told to leave, or a host comes:
 *        |    |         all end after a step ---.
 *        |    '-------> one was killed, hangs, or lost another: the others rest, or are killed
 *        |                        |             |
 *        '--- resize <--- mend <--'-------------'
 */
#ifndef LS_CLUSTER_SUPERVISOR_H
#define LS_CLUSTER_SUPERVISOR_H

#include "cluster/membership.h"
#include "cluster/views.h"
#include "net/launch/launch.h"

typedef struct ls_supervisor {
    double heartbeat_s; /* a worker that is silent for longer hangs */
    double stop_s;      /* a run that is to stop waits for the step in flight for so long */
    int least, most;    /* workers */
    /* Between hosts: where this one listens, and the first host's address; both NULL: alone. */
    const char *listen, *join;
    const char *alike;               /* what all hosts must have alike (links.h) */
    ls_membership_etcd_options etcd; /* endpoints NULL: the first host leads */
    bool begun;      /* another host may have begun this run, and still have its state */
    int hosts;       /* for so many the first view waits */
    int64_t steps;   /* of the whole run */
    double rejoin_s; /* without the first host a run goes on waiting for so long */
    int wanted;      /* so many workers; 0: as many as there are. attend() may set it */
    bool reshape;    /* the next view has another plan; attend() may set it */
    bool stays;      /* workers stay when another is lost (rest.h): of one host, sharing memory */
    /* Steps, scaler, note: what the store has. False: a view has found that it is not all. */
    bool (*state)(const void *arg, ls_host_state *);
    /* Between two views, in a process of its own that may be killed and started again. note NULL:
     * no step was decided. */
    ls_status (*mend)(const void *arg, const ls_store_note *note, ls_error *);
    /* The next view is this one. alike: with the workers that are left in their places, to go on
     * where they are. */
    ls_status (*resize)(void *arg, const ls_view *, bool alike, ls_error *);
    /* The run can't go on here: what is there becomes a checkpoint, unless others have made one
     * that is as new. *steps_p: of the newest. */
    ls_status (*save)(void *arg, int64_t *steps_p, ls_error *);
    /* Now and then: looks for what others want. */
    void (*attend)(void *arg);
    void *arg; /* of these */
    /* Set here, and read by workers, which inherit it, and by these functions. */
    const ls_board *board;
    ls_view view; /* the latest; number 0: none yet */
    bool leads;
    bool stop;     /* the run was asked to stop in a view before */
    int64_t ended; /* the run, after so many steps; -1: this host has left it, or it failed;
                      INT64_MAX: it was complete already */
} ls_supervisor;

/* Until the workers are done. The launch has a board with room for `most`, and a function for
 * workers. */
ls_status ls_supervisor_run(ls_supervisor *, ls_launch_options *, ls_error *);

#endif
