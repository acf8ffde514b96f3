/* crew.h - the workers of this host in one view, and the process that finishes what they began. */
#ifndef LS_CLUSTER_CREW_H
#define LS_CLUSTER_CREW_H

#include "cluster/views.h"
#include "net/launch/child.h"
#include "net/launch/launch.h"

typedef struct ls_crew {
    ls_launch_options *o; /* used by ls_crew_start(); o->first + i is the rank of worker i */
    const ls_launch_signals *signals;
    double heartbeat_s; /* a worker that is silent for longer hangs */
    bool stays;         /* when a worker is lost, the others rest (rest.h) */
    /* The other fields are private. */
    ls_launch *l;        /* NULL: there are no workers */
    int64_t recalled_ns; /* when the workers were recalled; 0: they run, or rest */
    int recalled_for;    /* ls_view_end */
    int hangs;           /* the worker that hangs and is killed; -1: none */
    bool rests;
    int64_t view;
    int64_t looked_ns, patient_from_ns; /* silence before patient_from_ns does not count */
    int64_t blamed_ns;                  /* when the first worker blamed another; 0: not yet */
    bool killed;                        /* a worker was killed, or hangs */
    ls_error error;                     /* a worker failed by its own fault; code LS_OK: none did */
    char cause[512], stack[512];        /* stack: functions of the worker that hangs */
    bool repairs;
    int repairers; /* started so far, for this repair */
    ls_child repairer;
} ls_crew;

/* Starts the workers of a view. Workers that rest continue; the view then has the same number. */
ls_status ls_crew_start(ls_crew *, int64_t view, ls_error *);

/* Called after each event of the launch. Returns true if all workers have ended, or the view can't
 * go on; then the survivors rest, or are killed, and *end_p and `cause` say how it ended and
 * why. */
bool ls_crew_look(ls_crew *, const ls_launch_event *, ls_view_end *end_p);
/* Whom the workers of the latest view blame (LS_BLAMES_...), and why, if it is not LS_BLAMES_NONE
 * [512]. */
int ls_crew_blames(const ls_crew *, char *why);
bool ls_crew_runs(const ls_crew *);
bool ls_crew_rests(const ls_crew *); /* some workers of the last view rest */
/* Kills all workers at once. why NULL: the reason was logged before. */
void ls_crew_end(ls_crew *, const char *why);

/* Asks each worker to renew or stop after the step in flight. */
void ls_crew_ask(const ls_crew *, ls_asked);
/* Asks each worker to abandon the step in flight. */
void ls_crew_give_up(const ls_crew *);
/* Workers of the latest view that were not asked to leave. */
int ls_crew_staying(const ls_crew *);

/* Runs `repair` in a process of its own, which is started again if it is killed. */
typedef ls_status ls_crew_repair(void *arg, ls_error *);
/* To be called repeatedly: returns true when the repair is done or has failed (*status_p). */
bool ls_crew_repaired(ls_crew *, ls_crew_repair *repair, void *arg, ls_status *status_p,
                      ls_error *);

#endif
