/* infer.h - what a trained model predicts, in a program of one's own.
 *
 *     ls_predictor *p;
 *     ls_predictor_open("runs/mine", NULL, &p, &e);
 *     float chances[10];
 *     ls_predict(p, 1, (const void *[]){pixels}, (float *[]){chances}, &e);
 *     ls_predictor_close(p);
 *
 * A predictor has the weights of a run (its newest checkpoint), of a checkpoint, or of a published
 * language model. It reads the fields that the predictions need, not the labels: `inputs`. Its
 * outputs are what the model's losses compare with labels:
 *
 *     LS_CLASSES   for each row the probabilities of its classes, which add up to 1
 *     LS_CHANCES   the probability of each target, alone
 *     LS_NUMBERS   numbers
 *     LS_SCORES    numbers whose order alone counts
 *
 * A language model has one input, "tokens" [context], LS_I32, of which the first negative number ends
 * the text, and one output, "next", LS_CLASSES: the token that follows.
 *
 * The numbers have the same bits for any number of samples a call, threads, and processors. Once a
 * predictor is open, any threads may call ls_predict() at the same time; each call that runs then
 * has activations and threads of its own, which are kept for later calls.
 */
#ifndef LOCKSTEP_INFER_H
#define LOCKSTEP_INFER_H

#include "lockstep/program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_predictor ls_predictor;

typedef struct ls_predictor_options {
    /* the program that builds the run's network; NULL: the config describes the network. All
     * programs of a process must be the same */
    const ls_program *program LS_UNSET;
    int ema LS_UNSET;     /* 1: the average of the weights (optim.ema) */
    int threads LS_UNSET; /* of a call; 0: one for each core */
    /* 1: CLASSES and CHANCES as the losses read them, not as probabilities */
    int logits LS_UNSET;
    /* 1: in place of predictions one output, "vector", LS_NUMBERS: what the last layer reads before
     * the first prediction; for a language model the mean over the tokens of the vectors behind its
     * last norm */
    int vectors LS_UNSET;
} ls_predictor_options;

/* path: a run directory, a checkpoint, or a published language model. options may be NULL.
 *
 * Errors   LS_EINVAL: the model predicts nothing, or it is damaged. LS_EIO: a file.
 *          LS_ENOMEM: it does not fit. */
ls_status ls_predictor_open(const char *path, const ls_predictor_options *options,
                            ls_predictor **p_p, ls_error *e);
/* Not while a call runs. NULL is fine. */
void ls_predictor_close(ls_predictor *);

typedef enum ls_output_kind {
    LS_CLASSES = 1,
    LS_CHANCES,
    LS_NUMBERS,
    LS_SCORES,
} ls_output_kind;

/* Names live as long as the predictor. */
typedef struct ls_predictor_input {
    const char *name;
    ls_dtype type;  /* LS_U8, LS_I32 or LS_F32 */
    ls_dims dims;   /* of a sample */
    int64_t count;  /* numbers of a sample */
    int64_t nbytes; /* of a sample */
} ls_predictor_input;

typedef struct ls_predictor_output {
    const char *name; /* of the field that is predicted */
    ls_output_kind kind;
    ls_dims dims;  /* of a sample */
    int64_t count; /* numbers of a sample: rows times width */
    int64_t rows;  /* CLASSES: predictions of a sample, each of `width` classes */
    int64_t width;
    const char *const *classes; /* [nclasses] names of the first classes; NULL: they have none */
    int nclasses;
} ls_predictor_output;

int ls_predictor_ninputs(const ls_predictor *);
ls_predictor_input ls_predictor_get_input(const ls_predictor *, int i); /* i < ninputs */
int ls_predictor_noutputs(const ls_predictor *);
ls_predictor_output ls_predictor_get_output(const ls_predictor *, int i); /* i < noutputs */

/* Predicts n samples. fields [ninputs]: fields[i] has [n][count] numbers of input i, of its type. out
 * [noutputs]: out[i] gets [n][count] f32 of output i; NULL: it is not wanted.
 *
 * Errors   LS_EINVAL: an id is out of range (the message names field and sample), or a text has no
 *          token. LS_ENOMEM: no memory for another call at the same time. LS_EIO: a file of weights
 *          has changed. out is undefined after an error. */
ls_status ls_predict(ls_predictor *, int64_t n, const void *const *fields, float *const *out,
                     ls_error *e);

#ifdef __cplusplus
}
#endif
#endif
