/* validation.h - what a run measures of its model while it trains: losses on samples that it does
 * not train on, the lowest of these losses, and answers to prompts. evaluate.h computes them. */
#ifndef LS_TRAIN_VALIDATION_H
#define LS_TRAIN_VALIDATION_H

#include "report/evaluation.h"
#include "report/report.h"
#include "storage/best.h"
#include "train/prompts.h"

struct ls_loop;

typedef struct ls_validation {
    ls_evaluation latest; /* the same on all workers */
    double *records;      /* worker 0's: of the samples of the last evaluation (results.h) */
    ls_picture picture;   /* worker 0's */
    ls_prompts prompts;
    int64_t answered; /* on worker 0: the latest step with lines of answers; 0: none */
    ls_best best;     /* the same on all workers */
    int64_t noted;    /* steps complete at the latest evaluation of earlier views; -1: none */
} ls_validation;

/* Collective, when a view begins: finds the best evaluation so far. noted: as above. */
ls_status ls_validation_begin(struct ls_loop *, int64_t noted, ls_error *);
/* Collective, once the member has begun. */
ls_status ls_validation_open_prompts(struct ls_loop *, ls_error *);
/* On worker 0: removes lines of answers after this step. */
void ls_validation_cut_answers(struct ls_loop *, int64_t answered);
void ls_validation_end(struct ls_loop *);

/* Collective. whole: over the whole validation part, after the last step. */
ls_status ls_validate(struct ls_loop *, bool whole, ls_error *);
/* Notes for the workers of later views that this step is evaluated. */
void ls_validation_note(const struct ls_loop *);
/* Is the state that of the lowest loss so far? */
bool ls_validation_is_best(const struct ls_loop *);
/* On worker 0: draws the loss curve anew. last: nothing follows. */
void ls_validation_draw(struct ls_loop *, bool last);

#endif
