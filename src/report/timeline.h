/* timeline.h - when the actions of one or more steps ran, or are predicted to run, on all workers.
 *
 * A timeline is made from a plan and its spans; it copies what it needs from the plan, so that it
 * can be read back without it. It is written as Chrome trace JSON, which Perfetto (ui.perfetto.dev)
 * and chrome://tracing open, or as SVG. Two timelines can be compared even if their plans differ.
 */
#ifndef LS_REPORT_TIMELINE_H
#define LS_REPORT_TIMELINE_H

#include "exec/span.h"

typedef struct ls_timeline_event {
    ls_span span;
    int step; /* of the timeline, from 0 */
    ls_action_kind kind;
    int vw, micro, layer, bucket; /* -1: the action has none (an AllReduce: norm and loss) */
    int64_t nbytes;               /* of a communication; else 0 */
} ls_timeline_event;

typedef struct ls_timeline {
    char label[16];          /* "measured", "predicted" */
    char machine[128];       /* UTF-8 */
    char plan[LS_HASH_TEXT]; /* ls_plan_hash() */
    int nworkers;
    char **layers; /* [nlayers] names */
    int nlayers, nbuckets;
    int64_t first_step; /* as it is logged: from 1 */
    int64_t *begins_ns; /* [nsteps] from the beginning of the first */
    int nsteps;
    ls_timeline_event *events; /* [nevents] step by step */
    size_t nevents, capacity;
} ls_timeline;

/* Makes a timeline without steps. It does not refer to the plan afterwards. */
void ls_timeline_open(ls_timeline *, const ls_plan *, const char *label, const char *machine,
                      int64_t first_step);
/* Adds the next step: spans [n] of all workers. begin_ns: from the beginning of the first step. */
void ls_timeline_add(ls_timeline *, const ls_plan *, int64_t begin_ns, const ls_span *spans,
                     size_t n);
void ls_timeline_free(ls_timeline *);

/* Must be FILE.json or FILE.svg; otherwise LS_EINVAL. */
ls_status ls_timeline_check_path(const char *path, ls_error *);
/* Writes the format that the path's ending names, atomically. */
ls_status ls_timeline_write(const ls_timeline *, const char *path, ls_error *);

/* The file's text. */
void ls_timeline_json(const ls_timeline *, ls_buf *out);
void ls_timeline_svg(const ls_timeline *, ls_buf *out); /* one step, of median length */

/* Reads a JSON file that ls_timeline_write() wrote. */
ls_status ls_timeline_read(const char *path, ls_timeline *t_p, ls_error *);
ls_status ls_timeline_parse(const char *text, size_t nbytes, const char *what, ls_timeline *t_p,
                            ls_error *);

/* "Forward h.0.mlp", "ReduceScatter bucket 3", ... */
void ls_timeline_event_name(const ls_timeline *, const ls_timeline_event *, char *text,
                            size_t nbytes);
/* The latest end, from the step's beginning. */
int64_t ls_timeline_step_ns(const ls_timeline *, int step);

/* The events of a step, or of all (step -1: step by step), sorted by worker, lane and beginning.
 * free() it. */
const ls_timeline_event **ls_timeline_sorted(const ls_timeline *, int step, size_t *n_p);

/* When communications of one step, or of all (step -1), were begun. */
typedef struct ls_timeline_starts {
    struct ls_timeline_start {
        int step, action;
        int64_t begin_ns;
    } * list; /* [n] sorted */
    size_t n;
} ls_timeline_starts;
void ls_timeline_starts_open(const ls_timeline *, int step, ls_timeline_starts *);
void ls_timeline_starts_close(ls_timeline_starts *);
/* The time until which a communication waited for the last of the workers that take part in it; its
 * own beginning, if it was the last. A communication that began only after the end of this one was
 * of another group. */
int64_t ls_timeline_waits_ns(const ls_timeline_starts *, const ls_timeline_event *);

/* How workers spent their time: nanoseconds of a step, mean of workers; of one step, or the mean of
 * all (step -1). */
typedef struct ls_timeline_times {
    double step;
    double busy[LS_NLANES];          /* something runs in the lane */
    double exposed;                  /* communication, and no computation meanwhile */
    double waiting;                  /* of communication: all that runs waits for other workers */
    double kinds[LS_NACTION_KINDS];  /* at least one of the kind runs */
    double moving[LS_NACTION_KINDS]; /* and does not wait for other workers */
    double counts[LS_NACTION_KINDS]; /* actions of all workers */
} ls_timeline_times;
void ls_timeline_measure(const ls_timeline *, int step, ls_timeline_times *m_p);

/* Prints the two timelines side by side, as text. */
void ls_timeline_diff(const ls_timeline *a, const ls_timeline *b, ls_buf *out);

#endif
