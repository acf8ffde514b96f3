/* crew.h - the workers of this host in one view, and the process that mends after them. */
#ifndef LS_CLUSTER_CREW_H
#define LS_CLUSTER_CREW_H

#include "cluster/views.h"
#include "net/launch/launch.h"
#include "net/launch/process.h"

typedef struct ls_crew {
    ls_launch_options *o; /* for ls_crew_start(); o->first + i is worker i's rank */
    const ls_launch_signals *signals;
    double heartbeat_s; /* a worker that is silent for longer hangs */
    bool stays;         /* when a worker is lost, the others rest (rest.h) */
    /* The rest is its own. */
    ls_launch *l;        /* NULL: there are no workers */
    int64_t recalled_ns; /* when they were recalled; 0: they run, or rest */
    int recalled_for;    /* ls_view_end */
    int hangs;           /* a worker, which is killed; -1: none */
    bool rests;
    int64_t view;
    int64_t looked_ns, patient_from_ns; /* nobody is found silent since before */
    int64_t blamed_ns;                  /* when the first worker blamed another; 0: none has */
    ls_error error;                     /* code LS_OK: none; a worker's own */
    char cause[512], stack[512];        /* stack: of a worker that hangs */
    bool mends;
    int menders; /* that were started */
    ls_child mender;
} ls_crew;

/* Starts the workers of a view. Those that rest go on: it has as many. */
ls_status ls_crew_start(ls_crew *, int64_t view, ls_error *);

/* After each event of the launch: have all workers ended, or can the view not go on? Then those
 * that are left rest, or are killed, and *end_p and `cause` say how and why; true. */
bool ls_crew_look(ls_crew *, const ls_launch_event *, ls_view_end *end_p);
bool ls_crew_runs(const ls_crew *);
bool ls_crew_rests(const ls_crew *); /* some of the last view's workers do */
/* Kills all at once. NULL: for a reason that was told. */
void ls_crew_end(ls_crew *, const char *why);

/* Each worker is asked to do that after the step in flight. */
void ls_crew_ask(const ls_crew *, ls_asked);
/* Each worker is to give up the step in flight. */
void ls_crew_give_up(const ls_crew *);
/* Of the workers of the latest view, as many as were not told to leave. */
int ls_crew_staying(const ls_crew *);

/* Mends in a process of its own, which is started again if it is killed: `mend` runs there. */
typedef ls_status ls_crew_mend(void *arg, ls_error *);
/* Call it again and again: true once it is done, or has failed (*status_p). */
bool ls_crew_mended(ls_crew *, ls_crew_mend *mend, void *arg, ls_status *status_p, ls_error *);

#endif
