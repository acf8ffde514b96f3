/* crew.h - the workers of this host in one view, and the process that finishes what they began. */
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
    /* The other fields are private. */
    ls_launch *l;        /* NULL: there are no workers */
    int64_t recalled_ns; /* when the workers were recalled; 0: they run, or rest */
    int recalled_for;    /* ls_view_end */
    int hangs;           /* a worker that hangs and is killed; -1: none */
    bool rests;
    int64_t view;
    int64_t looked_ns, patient_from_ns; /* silence before this does not count */
    int64_t blamed_ns;                  /* when the first worker blamed another; 0: not yet */
    ls_error error;                     /* a worker's own; code LS_OK: none */
    char cause[512], stack[512];        /* stack: of a worker that hangs */
    bool repairs;
    int repairers; /* that were started */
    ls_child repairer;
} ls_crew;

/* Starts the workers of a view. Workers that rest continue; then the view has as many. */
ls_status ls_crew_start(ls_crew *, int64_t view, ls_error *);

/* After each event of the launch. True: all workers have ended, or the view can't go on. Then the
 * survivors rest, or are killed, and *end_p and `cause` say how and why. */
bool ls_crew_look(ls_crew *, const ls_launch_event *, ls_view_end *end_p);
bool ls_crew_runs(const ls_crew *);
bool ls_crew_rests(const ls_crew *); /* some workers of the last view rest */
/* Kills all at once. NULL: the reason was logged before. */
void ls_crew_end(ls_crew *, const char *why);

/* Asks each worker to do that after the step in flight. */
void ls_crew_ask(const ls_crew *, ls_asked);
/* Each worker is to give up the step in flight. */
void ls_crew_give_up(const ls_crew *);
/* Workers of the latest view that were not asked to leave. */
int ls_crew_staying(const ls_crew *);

/* Runs `repair` in a process of its own, which is started again if it is killed. */
typedef ls_status ls_crew_repair(void *arg, ls_error *);
/* Call it again and again: true once it is done, or has failed (*status_p). */
bool ls_crew_repaired(ls_crew *, ls_crew_repair *repair, void *arg, ls_status *status_p,
                      ls_error *);

#endif
