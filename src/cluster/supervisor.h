/* supervisor.h - a host's supervisor: starts workers, view after view, alone or with other hosts.
 *
 * A view is a set of workers that train together. Their results lie in memory that outlives them
 * (state/store.h), so a view can end at any instruction of any worker: the others rest (rest.h) or
 * are ended, the step that was begun is finished, and the workers of the next view take up the
 * state. Virtual workers stay the same, and so do the bits. views.h decides when views begin and
 * end.
 *
 *     start a view ---> all end well ------------------------------> done
 *        ^    |-------> one fails with an error of its own --------> the error
 *        |    |-------> asked to stop: all do, after a step; asked twice: all are killed
 *        |    |-------> more or fewer workers are wanted, one was asked to leave, or a host joins:
 *        |    |         all end after a step ---.
 *        |    '-------> one was killed, hangs, or lost another: the others rest, or are killed
 *        |                        |             |
 *        '-- resize <-- repair <--'-------------'
 */
#ifndef LS_CLUSTER_SUPERVISOR_H
#define LS_CLUSTER_SUPERVISOR_H

#include "cluster/membership.h"
#include "cluster/views.h"
#include "net/launch/launch.h"
#include "net/tcp/admission.h"

typedef struct ls_supervisor {
    double heartbeat_s; /* a worker that is silent for longer hangs */
    double stop_s;      /* a run that is to stop waits this long for the step in flight */
    int least, most;    /* workers */
    /* Where this host listens, and the first host's address; both NULL: there is only one host. */
    const char *listen, *join;
    ls_admission admission;          /* what must be the same on all hosts */
    ls_membership_etcd_options etcd; /* endpoints NULL: the first host leads */
    bool begun;      /* another host may have begun this run, and still have its state */
    int hosts;       /* the first view waits for this many */
    int64_t steps;   /* steps of the whole run */
    int changes;     /* how often a step changes the state (ls_share.changes) */
    double rejoin_s; /* a host without a leader waits this long for one */
    int wanted;      /* number of workers; 0: as many as there are. attend() may set it */
    bool reshape;    /* the next view has another plan; attend() may set it */
    bool stays;      /* survivors keep running (rest.h): workers of one host, sharing memory */
    /* Fills in steps, scaler and what was decided from the store. False: a view found the state
     * incomplete. */
    bool (*state)(const void *arg, ls_host_state *);
    /* Finishes what was decided, between two views, in a process of its own, which may be killed
     * and started again. */
    ls_status (*repair)(const void *arg, const ls_store_decided *, ls_error *);
    /* The most workers, up to n, that a view can have. */
    int (*fit)(const void *arg, int n);
    /* Prepares for the next view. same: the surviving workers continue where they are, in the same
     * places. */
    ls_status (*resize)(void *arg, const ls_view *, bool same, ls_error *);
    /* The run can't continue here: saves its state as a checkpoint, unless other hosts have saved
     * one that is as new. *steps_p: steps of the newest checkpoint. */
    ls_status (*save)(void *arg, int64_t *steps_p, ls_error *);
    /* Is the run complete on disk, so that nobody will come to lead it? Then that is logged. */
    bool (*complete)(const void *arg);
    /* Called regularly, to serve requests of other programs. */
    void (*attend)(void *arg);
    void *arg; /* passed to these functions */
    /* Set by the supervisor, and read by these functions and by workers, which inherit it. */
    const ls_board *board;
    ls_view view; /* the latest; number 0: none yet */
    bool leads;
    bool stop;     /* the run was asked to stop, in this view or an earlier one */
    bool unbegun;  /* it was asked to stop before the first view: LS_EABORT */
    int64_t ended; /* after how many steps the run ended; -1: this host has left, or the run failed;
                    * INT64_MAX: the run was complete already */
} ls_supervisor;

/* Returns when the workers are done. The launch has a board with room for `most`, and a function
 * for workers. */
ls_status ls_supervisor_run(ls_supervisor *, ls_launch_options *, ls_error *);

#endif
