/* survive.h - workers of this host, view after view: when one dies or hangs, a new view goes on.
 *
 * A view is a set of workers that start, train and end together. What they have made lies in memory
 * that outlives them (plan/store.h), so a view can end at any instruction of any worker: all are
 * ended, what was begun is mended, and new workers take up the state. They are new processes; their
 * virtual workers, and so the bits, are the old ones'.
 *
 *     start a view ---> all end well ------------------------------> done
 *        ^    |-------> one fails with an error of its own --------> the error
 *        |    |-------> asked to stop: all do, after a step; asked twice: all are killed
 *        |    |-------> more or fewer workers are wanted, or one was told to leave:
 *        |    |         all end after a step ---.
 *        |    '-------> one was killed, hangs, or lost another: all are killed
 *        |                        |             |
 *        '--- resize <--- mend <--'-------------'
 */
#ifndef LS_TRAIN_SURVIVE_H
#define LS_TRAIN_SURVIVE_H

#include "net/launch.h"

typedef struct ls_survival {
    double heartbeat_s; /* a worker that is silent for longer hangs */
    int least, most;    /* workers */
    int wanted;         /* so many; 0: as many as there are */
    bool reshape;       /* the next view has another plan */
    /* Steps complete, as far as their result is kept; -1: none yet. */
    int64_t (*steps)(const void *arg);
    /* Between two views, in a process of its own that may be killed and started again. */
    ls_status (*mend)(const void *arg, ls_error *);
    /* The next view has n workers, or another plan of as many. */
    ls_status (*resize)(void *arg, int n, ls_error *);
    /* Now and then: looks for what others want. */
    void (*attend)(void *arg);
    void *arg; /* of these */
    /* Set here, and read by workers, which inherit it, and by attend(). */
    const ls_board *board;
    int64_t view; /* from 1 */
    bool stop;    /* the run was asked to stop in a view before */
} ls_survival;

/* Until the workers are done. The launch has a board with room for `most`, and a function for
 * workers. */
ls_status ls_survive(ls_survival *, ls_launch_options *, ls_error *);

#endif
