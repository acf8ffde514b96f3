/* store.h - the state of a host's workers in memory that outlives them.
 *
 * Whoever starts the workers makes it, and they inherit it: parameters, moments and gradients, a
 * journal of each block, and what each worker has noted of the latest step that was decided. A step
 * is decided when some worker knows the norm of the whole gradient: then all gradients are reduced,
 * and whatever happens to the workers, ls_store_repair() can finish the update from what lies here.
 * Before that, nothing has changed, and the step is done again.
 *
 * An area is one set of parameters and moments: one for all workers of a sharding group where they
 * share memory, else one a worker.
 */
#ifndef LS_EXEC_STORE_H
#define LS_EXEC_STORE_H

#include "data/order.h"
#include "optim/adamw.h"
#include "optim/scaler.h"
#include "plan/plan.h"

/* What a step has given; the same at all workers. */
typedef struct ls_step_out {
    ls_batch batch;
    double loss;      /* mean over the tokens, nats */
    double grad_norm; /* before clipping */
    bool skipped;     /* it overflowed */
} ls_step_out;

/* What a worker notes when a step is decided. */
typedef struct ls_store_note {
    int64_t steps; /* complete with this one */
    ls_adamw_step update;
    ls_step_out out;
    double lr, loss_scale;
    int64_t updates;  /* before this step */
    int64_t began_ns; /* this step */
    ls_scaler scaler; /* after it */
} ls_store_note;

typedef struct ls_store ls_store;

/* For plans of this model and config with 1 to `most` workers of `threads` threads each. It carries
 * `carried_nbytes` bytes for the caller: all 0 at first, kept across views, never looked into. */
ls_status ls_store_make(const ls_plan *, int most, int threads, size_t carried_nbytes,
                        ls_store **s_p, ls_error *);
/* Those bytes, at the beginning of a page. */
void *ls_store_carried(const ls_store *);
void ls_store_free(ls_store *);

/* What of it is memory that workers share (ls_group_attach). */
void *ls_store_memory(ls_store *, size_t *nbytes_p);

/* ---- by workers ---- */

/* Where worker `worker` has its state in a view, in `area`. */
void ls_store_place(ls_store *, int worker, int area);

void *ls_store_params(ls_store *, int area); /* [nfloats] of the plan's compute type */
float *ls_store_state(ls_store *, int area); /* masters (16-bit parameters alone), m and v */
void *ls_store_grads(ls_store *, int worker);
double *ls_store_sums(ls_store *, int worker); /* parts, then sums */
ls_journal ls_store_journal(ls_store *, int worker);

/* What the journal says of a block after so many steps; 0: nothing is there. */
static inline uint32_t ls_store_mark(int64_t steps) { return (uint32_t)steps + 1; }
/* What the worker owns by the plan is there, after `steps` steps. */
void ls_store_mark_filled(ls_store *, const ls_plan *, int worker, int64_t steps);
/* What the worker owns is not to be trusted: the next view takes others' copies. */
void ls_store_distrust(ls_store *, int worker);
/* All workers have filled their parts: from here on it is kept. Each host's first worker says it.
 */
void ls_store_begin(ls_store *, int64_t steps, const ls_scaler *);
/* A worker notes that a step is decided. */
void ls_store_decide(ls_store *, int worker, const ls_store_note *);

/* Is the state whole? Each view finds it out anew. */
typedef enum ls_store_finding {
    LS_STORE_UNKNOWN,
    LS_STORE_WHOLE, /* the workers of this view have taken up all of it */
    LS_STORE_LOST   /* some of it is on no host */
} ls_store_finding;
void ls_store_set_finding(ls_store *, ls_store_finding);
ls_store_finding ls_store_get_finding(const ls_store *);

/* ---- between views ---- */

/* Steps decided, or -1: there is no state yet. */
int64_t ls_store_steps(const ls_store *);
/* What was noted of the latest decided step; false: none since ls_store_begin(). */
bool ls_store_last_note(const ls_store *, ls_store_note *note_p);
ls_scaler ls_store_scaler(const ls_store *);

/* The newest note of a step that is not finished here; false: there is none. */
bool ls_store_unfinished_note(const ls_store *, ls_store_note *note_p);

#endif
