/* evaluated.h - losses and metrics of trained models: of the validation part of a run's data, or of
 * others. */
#ifndef LS_INFER_EVALUATED_H
#define LS_INFER_EVALUATED_H

#include "infer/generate.h"
#include "report/confusion.h"
#include "report/evaluation.h"
#include "source/numbering.h"

typedef struct ls_evaluated_request {
    const char *const *models; /* [nmodels] runs, checkpoints, published models */
    int nmodels;
    const char *data, *labels; /* files of a text, or of samples with labels; NULL: not given */
    const char *chat;          /* a file of conversations, or of pairs; NULL: not given */
    const char *reference;     /* of pairs; NULL: the model that the run began with */
    const char *output;        /* a directory for pictures; NULL: none */
    const char *const *sets;   /* [nsets] KEY=VALUE, of the configs */
    int nsets;
    bool before;        /* also the model that the run began with */
    bool ema;           /* with the average of the weights */
    const char *device; /* that computes (ls_trained_options); NULL: cores */
} ls_evaluated_request;

/* The result of an evaluation. */
typedef struct ls_evaluated {
    char *checkpoint; /* its own */
    bool ema, has_tokens;
    const char *data;      /* a file; NULL: the validation part of the run's data */
    const char *unit;      /* "conversations", "pairs"; NULL: tokens or samples */
    int64_t count;         /* of tokens, of pairs, or of samples */
    int64_t context;       /* of a language model, before it was shortened; 0: it is none */
    size_t file_tokens;    /* tokens of that file; 0: it has no text */
    const char *reference; /* of the pairs of that file; NULL: it has no pairs */
    ls_evaluation model, bigram;
    bool has_bigram;
    ls_confusion_matrix classes; /* n 0: there are none. Its counts are its own ... */
    ls_classes names;            /* ... and these are the names of its classes */
} ls_evaluated;

/* Evaluates all models, and logs what can't be compared: results [nmodels + 1], of which *n_p are
 * set. The caller frees all of them with ls_evaluated_free(), also after an error. */
ls_status ls_evaluate_models(const ls_evaluated_request *, ls_evaluated *results, int *n_p,
                             ls_error *);
void ls_evaluated_free(ls_evaluated *);

#endif
