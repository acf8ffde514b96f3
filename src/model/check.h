/* check.h - finds layers whose gradients are wrong, or that break the promise (layer.h).
 *
 * The model gets random samples and parameters. Each layer is then called alone, in memory that
 * begins with a pattern and has guard words around it:
 *
 *   memory       it writes its own memory only, all of its results, and reads nothing that it has
 *                not written
 *   bits         results are the same when it is called again; for any number of samples in a call,
 *                other neighbours, places in the batch, micro-batches, threads
 *   gradients    those of all parameters and inputs, against central differences
 *                (check_gradient.c): right, wrong, or not decided, where the differences are too
 *                inexact
 *
 * What is not found: a fault that needs other shapes or values; an access far outside of the guard
 * words (use the address sanitizer); threads that happen to meet at no bad moment (the thread
 * sanitizer).
 */
#ifndef LS_MODEL_CHECK_H
#define LS_MODEL_CHECK_H

#include "model/model.h"

typedef struct ls_check_result {
    const ls_layer *layer;
    const char *wrong;   /* what is wrong first; NULL: nothing */
    char open[160];      /* what is not decided; "": nothing. Only if nothing is wrong */
    int64_t comparisons; /* gradients compared with differences */
    int64_t nopen;       /* those that decide nothing: where the bound is wide */
    double worst;        /* the largest difference, relative to the tensor's gradients */
    double bound;        /* the widest bound of those that decide: a larger difference is wrong */
} ls_check_result;

typedef void ls_check_report(void *arg, const ls_check_result *);

/* Layers that are not right. */
typedef struct ls_check_count {
    int wrong, open; /* open: not decided */
} ls_check_count;

/* Checks all layers of a linked model, and reports each. */
ls_status ls_check_model(const ls_model *, ls_check_report *, void *arg, ls_check_count *count_p,
                         ls_error *);

#endif
