/* infer.h - forward only: losses of samples, or the logits that follow a text.
 *
 * Uses the training layers, so a sample's loss has the bits that training would give it.
 */
#ifndef LS_INFER_INFER_H
#define LS_INFER_INFER_H

#include "model/model.h"
#include "model/prediction.h"

/* Makes the rows of tables that samples [n] need ready, in ls_infer.rows. */
typedef ls_status ls_infer_fetch(void *arg, int64_t n, const void *samples, ls_error *);

typedef struct ls_infer_room ls_infer_room; /* paged.h */

typedef struct ls_infer {
    const ls_model *model;
    const ls_compute *compute;
    ls_dtype dtype;                /* LS_F32, or 16 bits (mixed.h) */
    const void *params;            /* [nfloats] of dtype */
    void *memory;                  /* [ls_infer_nbytes], the caller's */
    int64_t n;                     /* samples that fit into the memory */
    const ls_frozen_value *frozen; /* [nparams]; of a model without frozen parameters NULL */
    const ls_layer_rows *rows;     /* of tables; of a model without windows of them NULL */
    ls_infer_fetch *fetch; /* for ls_infer_records(): called before rows are read, for at most as
                            * many samples as a batch has; NULL: all rows are there */
    void *fetch_arg;
    /* Where `compute` has a device, all these are addresses there, and so are: */
    const float *const *constants; /* ls_layer_constants() */
    void *samples;                 /* [n][model->sample_nbytes] room */
    float *logits; /* the host's [V] for calls that return logits; NULL: there are no such calls */
    ls_infer_room *room; /* ls_infer_open_room(); NULL: there are no calls with several texts */
} ls_infer;

size_t ls_infer_nbytes(const ls_model *, ls_dtype, int64_t n);
/* The same of a device. */
size_t ls_infer_device_nbytes(const ls_model *, int64_t n);
/* Sets n, and memory for so many samples: `memory`, and for a device `samples` and `logits`. The
 * model must stay as it is until it is closed. LS_ENOMEM, with what it is for. */
ls_status ls_infer_open_memory(ls_infer *, int64_t n, const char *what, ls_error *);
void ls_infer_close_memory(ls_infer *); /* if there is none, too */

/* Can a device run the layers of ls_infer_records(), in f32? Measures are the cores'. */
bool ls_infer_runs_on_device(const ls_model *);
/* What failed in calls that return no status: on the device, or bytes of a mapped file were lost
 * (base/guard.h). Their results are undefined. */
ls_status ls_infer_check(const ls_infer *, ls_error *);

/* losses [n] of the samples, without their weights: of a text the sum over its tokens, or where
 * model->weighing.ntargets is not 0 the mean. samples [n][model->sample_nbytes]. n may be any
 * number: samples are processed in parts that fit the memory. */
void ls_infer_losses(const ls_infer *, int64_t n, const void *samples, double *losses);

/* The samples' records [n][ls_record_size()] (model/measure.h): losses, weights, what the loss
 * notes, and the model's measures. LS_EINVAL: a weight is not valid; LS_EIO: the device failed. */
ls_status ls_infer_records(const ls_infer *, int64_t n, const void *samples, double *records,
                           ls_error *);

/* What is predicted, and where it is written: out[k] [samples][rows][width] of list[k], as f32;
 * CLASSES and CHANCES as logits. */
typedef struct ls_infer_predicted {
    const ls_prediction *list; /* [n] */
    int n;
    float *const *out; /* [n] */
} ls_infer_predicted;

/* The predictions of samples [n]: any number, as above. Fields that no prediction needs
 * (ls_predictions_need()) are not read. */
ls_status ls_infer_predictions(const ls_infer *, const ls_infer_predicted *, int64_t n,
                               const void *samples, ls_error *);

/* The logits [V] after tokens [T], 1 <= T <= context; valid until the next call. */
const float *ls_infer_next(const ls_infer *, const uint32_t *tokens, int64_t T);

/* The logits after each of the tokens [T], 1 <= T <= context: out [T][V], of the vocabulary. */
void ls_infer_logits(const ls_infer *, const uint32_t *tokens, int64_t T, size_t V, float *out);

/* The first layer of a language model's end, which makes the logits. */
int ls_infer_head(const ls_model *);
/* The logits of a position. */
int64_t ls_infer_nlogits(const ls_model *);

/* The values from which that layer makes the logits: out [T][its C], behind the model's last norm,
 * also where the layer itself has that norm (GPT's). */
void ls_infer_hidden(const ls_infer *, const uint32_t *tokens, int64_t T, float *out);
int64_t ls_infer_width(const ls_model *); /* that C */
/* The mean of these values over the tokens: out [its C]. */
void ls_infer_mean(const ls_infer *, const uint32_t *tokens, int64_t T, float *out);

/* The logits after T more tokens of a text, whose positions continue past.n earlier ones (LS_F32
 * fields and losses are not read); past.kept has the parts of all layers, one after the other, each
 * of past_floats, rounded up to 16. A model whose layers work on positions (decode.h). */
const float *ls_infer_continued(const ls_infer *, const uint32_t *tokens, int64_t T, ls_past);

/* Floats of a page of what layers keep of LS_KEPT_PAGE positions, in which each layer has a part;
 * 0: the model can't continue texts. */
size_t ls_infer_page_floats(const ls_model *, ls_kept_type);
/* A call that continues several texts. */
typedef struct ls_infer_together {
    const uint32_t
        *tokens; /* [T] those of the texts, one text after the other; T is at most the context */
    int64_t T;
    const ls_past_text *texts; /* [ntexts] */
    int ntexts;
    size_t page;       /* floats from one page of a text to the next; 0: ls_infer_page_floats() */
    ls_kept_type kept; /* in fewer bits than F32, results differ */
    const int64_t *wanted; /* [nwanted] the rows of the call whose logits are computed */
    int64_t nwanted;
    float *logits; /* [nwanted][ls_infer_nlogits()] */
    const int64_t
        *shown; /* [nshown] the rows whose last values are wanted, as of ls_infer_hidden() */
    int64_t nshown;
    float *hidden;                   /* [nshown][ls_infer_width()] */
    const ls_row_adapters *adapters; /* of the texts' rows; NULL: none */
} ls_infer_together;

/* Sets what such calls need on a device: room for `rows` rows of `texts` texts, of which `nlogits`
 * are wanted. On cores there is none. LS_ENOMEM. */
ls_status ls_infer_open_room(ls_infer *, int64_t rows, int64_t texts, int64_t nlogits, ls_error *);
void ls_infer_close_room(ls_infer *); /* if there is none, too */

/* The logits have the bits that each text has alone. On a device texts have the numbers of their
 * pages; whether it failed, ls_infer_check() says. */
void ls_infer_texts(const ls_infer *, const ls_infer_together *);

/* As ls_infer_next(); also calls the function for each layer but the head, with what its forward
 * saved (ls_mixed_shown()). */
typedef void ls_infer_show(void *arg, int layer, int64_t T, const void *saved);
const float *ls_infer_next_shown(const ls_infer *, const uint32_t *tokens, int64_t T,
                                 ls_infer_show *, void *arg);

#endif
