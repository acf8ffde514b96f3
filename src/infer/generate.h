/* generate.h - a trained model, loaded from a checkpoint or from published files: generates text,
 * and evaluates the model. */
#ifndef LS_INFER_GENERATE_H
#define LS_INFER_GENERATE_H

#include "config/config.h"
#include "data/tokenizer.h"
#include "dataset/dataset.h"
#include "infer/infer.h"
#include "infer/placed.h"
#include "infer/sampler.h"
#include "infer/strips.h"
#include "report/evaluation.h"
#include "storage/frozen_file.h"
#include "storage/pretrained.h"

typedef struct ls_trained {
    char *path; /* of the checkpoint, or of the published model */
    bool is_published;
    bool ema; /* params are the average of the weights */
    ls_config config;
    ls_tokenizer *tokenizer; /* NULL: the run was trained on samples, not on a text */
    ls_model model;
    ls_compute compute; /* of the cores */
    ls_placed placed;   /* the device, if one computes */
    const char *device; /* its name; NULL: cores compute */
    bool evaluates;
    ls_infer infer; /* of what computes */
    void *params;
    ls_frozen_file frozen_file;
    ls_pretrained published; /* weights of files as they are; values NULL: they are in params */
    ls_frozen_value *frozen; /* [nparams] in 16 bits, in `rounded`; NULL: in the file, if any */
    void *rounded;
    ls_strips strips;          /* of frozen weights, if it was opened for writing text */
    uint32_t ends[LS_MAX_EOS]; /* [nends] tokens that end a text of a published model */
    int nends;
    ls_generation generation; /* how that model's makers draw text */
    size_t params_nbytes, rounded_nbytes;
    bool other_form; /* sets have changed how tables are written: the run's own can't be read so */
} ls_trained;

/* Which samples the model reads. */
typedef enum ls_trained_samples {
    LS_READS_TEXT,     /* a text, also if the run was trained on conversations; if it was trained on
                        * samples of files, those */
    LS_READS_OWN_DATA, /* those of the run's own data */
    LS_READS_CHATS,    /* conversations */
    LS_READS_PAIRS     /* pairs of answers: the loss is that of train.loss dpo */
} ls_trained_samples;

typedef struct ls_trained_options {
    bool ema;              /* the average of the weights */
    bool in_f32;           /* weights as they are, whatever type the run computes in */
    const ls_config *like; /* multiplies as a model of this config; NULL: as its own */
    bool writes;       /* it writes text: weights are prepared for tokens one by one (strips.h) */
    bool strips_later; /* with `writes`: the caller makes these by ls_strips_next() */
    bool evaluates;    /* many samples: a device gets memory for as many as suit it */
    ls_trained_samples samples;
    const char *const *sets; /* [nsets] "KEY=VALUE": changes of the run's config */
    int nsets;
    const char *sets_from; /* what messages call them; NULL: "--set" */
    const char *device; /* for ls_device_open(), which computes; it lives on; NULL: cores compute */
} ls_trained_options;

/* `path`: a run, a checkpoint, or a published model (published.h). Uses all cores. LS_EINVAL: a set
 * changes what the run's weights are trained for; or as ls_placed_open() says. */
ls_status ls_trained_open(const char *path, const ls_trained_options *, ls_trained *t_p,
                          ls_error *);
/* The device computes from now on, in place of cores: as if the model had been opened with it. In a
 * process that was forked after it had been opened, each may have its own. The name lives on. Fails
 * as ls_placed_open(). */
ls_status ls_trained_place(ls_trained *, const char *device, ls_error *);
void ls_trained_close(ls_trained *);
/* LS_EINVAL: the run's own data can't be read, since sets say how other files are written. */
ls_status ls_trained_needs_own_data(const ls_trained *, ls_error *);
/* The frozen parameters [nparams] as the host has them, also where a device computes; NULL: none is
 * frozen. */
ls_frozen_value *ls_trained_frozen(const ls_trained *);
/* Shortens the samples of a model of kind llama to this context, if they are longer. What the model
 * computes for a text stays the same. */
ls_status ls_trained_shorten(ls_trained *, int64_t context, ls_error *);

/* Why a text ends. */
typedef enum ls_written_end {
    LS_END_LENGTH, /* it has ntokens, or the context is full */
    LS_END_TOKEN,  /* the model ended it */
    LS_END_STOP,   /* a stop came */
    LS_END_ASKED,  /* the user did */
} ls_written_end;

const char *ls_written_end_name(ls_written_end); /* "length", "end", "stop", "asked" */

typedef struct ls_generated {
    int64_t ntokens; /* an end token is one of them */
    ls_written_end end;
} ls_generated;

/* Takes text as it is written; an error ends the writing. */
typedef ls_status ls_write_fn(const uint8_t *bytes, size_t nbytes, void *arg, ls_error *);

/* A rule whose numbers are below 0 where the user gives none: these become those of the published
 * model, or else those of `otherwise`. */
void ls_trained_complete_rule(const ls_trained *, const ls_sampler_rule *otherwise,
                              ls_sampler_rule *);
extern const ls_sampler_rule LS_RULE_UNKNOWN;

/* LS_EINVAL if the run was not trained on a text; `what` needs one, e.g. "generate". */
ls_status ls_trained_needs_text(const ls_trained *, const char *what, ls_error *);
/* The tokens that may be written: a published model may have more rows than its tokenizer has
 * tokens. */
size_t ls_trained_ntokens(const ls_trained *);
/* Loss over the validation part of the run's data. records_p (or NULL): the record of each sample
 * (model/measure.h); the caller frees it. */
ls_status ls_trained_evaluate_data(const ls_trained *, const ls_dataset *, ls_evaluation *v_p,
                                   double **records_p, ls_error *);
/* Loss of a run that was trained on a text, over the complete samples in tokens [n]; *v_p as in
 * evaluation.h. `what` names the text in messages. */
ls_status ls_trained_evaluate(const ls_trained *, const uint32_t *tokens, size_t n,
                              const char *what, ls_evaluation *v_p, ls_error *);

#endif
