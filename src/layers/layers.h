/* layers.h - what layers of this room share with each other and with tests. The calls that add
 * layers to a model are in lockstep/model.h. */
#ifndef LS_LAYERS_LAYERS_H
#define LS_LAYERS_LAYERS_H

#include "config/choices.h"
#include "layers/dropout.h"
#include "model/builder.h"

/* A field as numbers, each times scale, plus shift. */
ls_value *ls_layers_input(ls_model *, const ls_value *field, float scale, float shift);
/* ls_affine() of a layer's output, whose readers get it in f32 where layers' outputs have 16 bits
 * (ls_layer_half.later). Losses, measures and predictions can read it. */
ls_value *ls_layers_unscale(ls_model *, ls_value *x, float scale, float shift);
/* Adds a layer that reads this field itself, and has its name. NULL: the model has failed. */
ls_layer *ls_layers_field(ls_model *, const ls_value *field);
/* A field as numbers, each less the mean and divided by the deviation [n], by its last dimension; n
 * 1: of all numbers alike. A deviation of 0: 0. */
ls_value *ls_layers_standardize(ls_model *, ls_value *field, int64_t n, const float *mean,
                                const float *deviation);
/* What kernels of devices call a field's type (device/kernels/fields.k). */
int ls_layers_device_type(ls_dtype);

/* The measure behind accuracy; `ignored`: a class that does not count, as negative ones. */
ls_value *ls_layers_is_top(ls_model *, ls_value *logits, ls_value *label, int64_t k,
                           int32_t ignored);
/* The measure behind a confusion matrix, of samples with one label. */
ls_value *ls_layers_confusion(ls_model *, ls_value *logits, ls_value *label, int32_t ignored);

/* The measures behind HR@k and NDCG@k: the scores of a user for items. */
ls_value *ls_layers_ranking(ls_model *, ls_measure_kind, ls_value *scores, int64_t k,
                            int64_t candidates);

/* The metrics of a model that asks for none, and has one loss: a cross-entropy, or another one. */
void ls_layers_class_metrics(ls_model *, ls_value *logits, ls_value *label, int32_t ignored);
void ls_layers_number_metrics(ls_model *, bool binary, ls_value *x, ls_value *targets);

/* The rows of an embedding that ids [first, first + rows) of `all` have, and zeros for the other
 * ids. */
ls_value *ls_layers_embedding_slice(ls_model *, ls_value *ids, ls_embedding_options, int64_t first,
                                    int64_t all);

/* A layer's rows are those of a sample from `first` on, of `all`. */
typedef struct ls_row_range {
    int64_t first, all;
} ls_row_range;

/* As ls_rope(), of a chunk of a sample. */
ls_value *ls_layers_rope(ls_model *, ls_value *x, ls_rope_options, ls_row_range);

/* As ls_dropout(), with a mask of the model's choice. */
ls_value *ls_layers_dropout(ls_model *, ls_value *x, ls_dropout_mask);
/* As ls_attention(), with a mask of the probabilities: its index counts the whole model's heads of
 * queries (heads.h). */
ls_value *ls_layers_attention(ls_model *, ls_value *x, ls_attention_options, ls_dropout_mask);

/* As ls_linear_cross_entropy(), of a chunk of a sample: a part of the mean over all rows with a
 * label, so that the losses of all chunks add up to it. */
void ls_layers_chunk_cross_entropy(ls_model *, ls_value *x, ls_value *label, ls_value *all_labels,
                                   ls_linear_cross_entropy_options);

/* Columns [first, first + count) of value number `input`. */
typedef struct ls_columns {
    int input;
    int64_t first, count;
} ls_columns;
enum { LS_COLUMNS_MOST = 3 };

/* y [T, ..] = some columns of the values x [T, ..], next to each other. */
ls_value *ls_layers_columns(ls_model *, const char *name, ls_value *const *x, int nx,
                            const ls_columns *, int n);

/* A later layer uses the weight of this embedding, of rows [width], too, and begins its gradient:
 * the parameter's number. -1: the model has failed. */
int ls_layers_tie_embedding(ls_model *, const ls_value *embedding, int64_t width);

/* The loss of preferences (linear_dpo.c). */
typedef struct ls_dpo_fields {
    ls_value *targets;   /* i32 [T] negative: none */
    ls_value *rejected;  /* i32 [1] the first row of the rejected text */
    ls_value *reference; /* f32 [2] log-probabilities of the chosen and the rejected answer */
} ls_dpo_fields;

typedef struct ls_dpo_options {
    const char *name;
    int64_t classes; /* not with .tied */
    ls_value *tied;  /* as of ls_linear_cross_entropy() */
    ls_dpo_loss loss;
    double beta, smoothing;
} ls_dpo_options;

void ls_linear_dpo(ls_model *, ls_value *x, const ls_dpo_fields *, ls_dpo_options);
/* The place of the chosen answer's log-probability in what the loss notes; the rejected one's
 * follows. */
enum { LS_DPO_LOGP = 4 };

/* The sum of a[i] b[i]: in 16 lanes, then by a fixed tree. */
float ls_dot_product(const float *a, const float *b, int64_t n);

/* As ls_rms_norm(); plus_one: the weight is 1 + the parameter, which begins with zeros. */
ls_value *ls_layers_rms_norm(ls_model *, ls_value *x, ls_rms_norm_options, bool plus_one);
/* y = GELU(gate) x. */
ls_value *ls_layers_gelu_gate(ls_model *, ls_value *gate, ls_value *x);
/* x [T, ..] times a factor. */
ls_value *ls_layers_times(ls_model *, ls_value *x, float factor);

/* The weight of an RMS norm as a value of each sample: a parameter "NAME.weight" [C] that begins
 * with ones, or 1 + one that begins with zeros; a weight that begins with ones and "NAME.bias" [C]
 * that begins with zeros, as a value [2, C]. */
ls_value *ls_layers_weight(ls_model *, const char *name, int64_t C, bool plus_one);
ls_value *ls_layers_ones_zeros(ls_model *, const char *name, int64_t C);
/* The RMS norm of each row of x [.., C], whose weight is a value [C], and the layer norm, whose
 * weight and bias are a value [2, C]: for weights that slices share, each with a copy. */
ls_value *ls_layers_rms_norm_by(ls_model *, ls_value *x, ls_value *weight, float eps);
ls_value *ls_layers_layer_norm_by(ls_model *, ls_value *x, ls_value *weight_bias);

/* For a layer that is not made by a call: y = the sum of `ninputs` values [T, C]. */
void ls_add_declare(ls_layer *, int64_t T, int64_t C, int ninputs);

#endif
