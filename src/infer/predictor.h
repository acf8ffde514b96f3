/* predictor.h - what a trained model predicts (lockstep/infer.h), for the command line, which reads
 * samples in the model's layout and texts as tokens.
 *
 * A call takes activations and threads that no other call uses, or makes new ones, and returns them
 * at its end. */
#ifndef LS_INFER_PREDICTOR_H
#define LS_INFER_PREDICTOR_H

#include <pthread.h>

#include "infer/generate.h"
#include "lockstep/infer.h"
#include "model/prediction.h"

typedef struct ls_predictor_memory ls_predictor_memory;

struct ls_predictor {
    ls_trained trained;
    int nthreads;
    int64_t batch; /* samples that are computed at once */
    bool is_text;  /* a language model: its samples are texts */
    bool logits, vectors;
    ls_prediction list[LS_PREDICTIONS]; /* [n]; a language model has one, of no layer */
    int n;
    bool fields[LS_SOURCE_FIELDS]; /* [ninputs of the model] those that predictions need */
    int inputs[LS_SOURCE_FIELDS];  /* [ninputs] their numbers */
    int ninputs;
    ls_classes classes[LS_PREDICTIONS]; /* names of each prediction's classes; empty: none */
    pthread_mutex_t lock;
    pthread_mutex_t turn;      /* held by the call that uses the device */
    ls_predictor_memory *idle; /* no call uses them */
    bool closed;
};

/* More than the public options: sets change the run's config, as in ls_trained_options. */
ls_status ls_predictor_open_with(const char *path, const ls_predictor_options *,
                                 const char *const *sets, int nsets, ls_predictor **p_p,
                                 ls_error *);

/* Predicts samples [n][sample_nbytes of the model], whose values were checked when they were read.
 * out as in ls_predict(). */
ls_status ls_predictor_run(ls_predictor *, int64_t n, const void *samples, float *const *out,
                           ls_error *);

/* Predicts another prediction of the model, as logits. */
ls_status ls_predictor_run_as(ls_predictor *, const ls_prediction *, int64_t n, const void *samples,
                              float *out, ls_error *);

/* What a language model predicts after tokens [n], 1 <= n <= context; out: the logits [vocabulary],
 * or the vector of the text. */
ls_status ls_predictor_run_text(ls_predictor *, const uint32_t *tokens, int64_t n, float *out,
                                ls_error *);

#endif
