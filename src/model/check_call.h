/* check_call.h - calls of one layer, in guarded memory (check.h). */
#ifndef LS_MODEL_CHECK_CALL_H
#define LS_MODEL_CHECK_CALL_H

#include "model/model.h"

enum { LS_CHECK_SAMPLES = 4, LS_CHECK_POOLS = 4 };

/* The model's samples, parameters and values, and the layer that is checked. */
typedef struct ls_check {
    const ls_model *model;
    ls_compute compute[LS_CHECK_POOLS]; /* 1, 2, 3, 5 threads */
    unsigned char *samples;             /* [LS_CHECK_SAMPLES][sample_nbytes] */
    float *params;                      /* [nfloats] */
    float *frozen_params;               /* [frozen_floats] */
    ls_frozen_value *frozen;            /* [nparams] in frozen_params */
    float **values;                     /* [nlayers][LS_CHECK_SAMPLES][y_floats] */
    const ls_layer *layer;
    int number;                    /* of the layer */
    float *x[LS_LAYER_MAX_INPUTS]; /* [LS_CHECK_SAMPLES][input_floats] the layer's own copy */
    float *dy;                     /* [LS_CHECK_SAMPLES][y_floats] */
} ls_check;

/* How the layer is called. */
typedef struct ls_check_way {
    int which[LS_CHECK_SAMPLES]; /* the samples, in the order of the call */
    int n;                       /* how many */
    int micro;                   /* samples of a call; 0: all at once */
    int pool;                    /* of ls_check.compute */
    unsigned char fill;          /* the bytes of memory that is not written yet */
    bool as_in_step;             /* gradients of constant inputs are not wanted; else all are */
    bool forward_alone;
    bool evaluates; /* not in training; else samples are in ascending order, as in a step */
} ls_check_way;

typedef struct ls_guarded {
    void *base; /* with its guards */
    size_t nbytes;
} ls_guarded;

typedef struct ls_check_run {
    ls_check_way way;
    float *y;                       /* [n][y_floats] */
    double *losses;                 /* [n], of a loss */
    float *dx[LS_LAYER_MAX_INPUTS]; /* [n][input_floats] */
    float *grads;                   /* [nfloats] */
    char broke[64]; /* what the layer has written though it must not: "its input 1"; "": nothing */
    ls_guarded all[LS_LAYER_MAX_INPUTS + 3]; /* the memory of these */
    int nall;
} ls_check_run;

ls_check_run ls_check_run_layer(const ls_check *, const ls_check_way *);
void ls_check_run_free(ls_check_run *);

/* Does the layer have a backward that is called? */
bool ls_check_has_backward(const ls_layer *);

#endif
