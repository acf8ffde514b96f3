/* builder.h - how the calls of lockstep/model.h make layers.
 *
 *     ls_value *(ls_gelu)(ls_model *m, ls_value *x) {
 *         ls_layer *l = ls_build_layer(m, "gelu", NULL, &x, 1);
 *         if (!l) return ls_build_failed(m);
 *         ... l->ops, l->T, sizes, parameters ...
 *         return ls_build_value(m, x->dims);
 *     }
 */
#ifndef LS_MODEL_BUILDER_H
#define LS_MODEL_BUILDER_H

#include "lockstep/model.h"
#include "model/model.h"

struct ls_value {
    int layer;     /* that computes it; -1: a field that no layer has converted to numbers */
    int field;     /* index in the model's inputs; -1: no field */
    int64_t first; /* first number of a part of a field (ls_build_part()) */
    int nth;       /* of which sample (ls_build_nth()) */
    int measure;   /* the number of a measure plus 1; 0: it is none */
    ls_dtype type; /* a field's type; else LS_F32 */
    int ndims;
    ls_dims dims;
};

/* A field of the samples. A layer that needs numbers reads it through a layer that as_numbers()
 * adds. */
typedef ls_value *ls_build_numbers(ls_model *, const ls_value *field);
ls_value *ls_build_input(ls_model *, const char *name, ls_dtype type, ls_dims dims,
                         ls_build_numbers *as_numbers);
/* Adds a layer that reads these values as numbers, and chooses its name: `given`, or the kind. A
 * field is converted by a layer of its own. The layer is valid until the next one is added. NULL:
 * the model has failed, by this call or before. */
ls_layer *ls_build_layer(ls_model *, const char *kind, const char *given, ls_value *const *x,
                         int nx);
/* The layers that are added next belong to this slice of n. Workers of a tensor-parallel group
 * divide the slices. Layers of other slices read the results of a slice only through forks and sums
 * of slices (layers/fork.c): all layers that read a value belong to one slice. The chunk stays. */
void ls_build_slice(ls_model *, int slice, int n);
/* The layers that are added next compute chunk `chunk` of n of each sample. The layers of chunk 0
 * are added first; those of other chunks have the same names, with ".chunk.K", and use the same
 * parameters. A parameter of a layer that no earlier chunk has is the chunk's own, and is named
 * without ".chunk.K". The slice stays. */
void ls_build_chunk(ls_model *, int chunk, int n);
/* The model computes n of the data's samples together, each by one chunk or several. Called when
 * the fields have been added. */
void ls_build_together(ls_model *, int n);
/* A field of the n-th of these samples, for layers that read fields themselves. */
ls_value *ls_build_nth(ls_model *, const ls_value *field, int n);
/* The open scopes: "block.1", or "". */
const char *ls_build_scope(ls_model *);
/* Backward of the layer reads no input. */
void ls_build_unread(ls_layer *);
/* The output of the latest layer, whose y_floats it sets. */
ls_value *ls_build_value(ls_model *, ls_dims dims);
/* A value with the same numbers in another shape. */
ls_value *ls_build_view(ls_model *, const ls_value *, ls_dims dims);
/* Adds a parameter "LAYER.suffix"; only what a layer declares of it is read (param.h). */
void ls_build_param(ls_model *, ls_layer *, const char *suffix, const ls_param *);
/* The layer uses this parameter of the model, too, which another layer has added. */
void ls_build_shared(ls_model *, ls_layer *, int param);
/* Memory [n] for numbers that a layer computes once, when it is added; freed with the model.
 * *number_p: that of ls_layer_constants(). */
float *ls_build_constants(ls_model *, size_t n, int *number_p);
/* Numbers [first, first + n) of a field of one dimension, for layers that read fields
 * themselves. */
ls_value *ls_build_part(ls_model *, const ls_value *field, int64_t first, int64_t n);
/* The layer reads this field of the samples itself, as fields[] of the layer. */
void ls_build_field(ls_model *, ls_layer *, const ls_value *field);
/* The field's numbers are below n, and not negative unless `padded`: other samples are refused
 * where they are read. */
void ls_build_classes(ls_model *, const ls_value *field, int64_t n, bool padded);

/* The latest layer becomes a measure (measure.h) of this many values a sample, which no layer can
 * read. classes: of a confusion matrix. */
ls_value *ls_build_measure(ls_model *, ls_measure_kind, int classes, int nvalues);
/* The measure has a metric of this name; is_default: unless others are asked for. */
void ls_build_metric(ls_model *, const char *name, const ls_value *measure, bool is_default);

/* The model's loss notes a number of each sample, as the next one of the call's notes. */
void ls_build_note(ls_model *, const char *name);

/* Has no call failed yet? */
bool ls_build_is_good(const ls_model *);
/* Remembers the first error: "FILE:LINE: KIND 'NAME': text". Returns ls_build_failed(). */
ls_value *ls_build_fail(ls_model *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What calls return once the model has failed. */
ls_value *ls_build_failed(ls_model *);
/* Is the option `name` finite, and at least `least`? If not, the model fails. */
bool ls_build_takes(ls_model *, const char *name, double x, double least);

/* Completes the model (ls_model_link()), or returns the first error. */
ls_status ls_build_finish(ls_model *, ls_error *);
/* The same; then moves the model to *m_p, or frees it after an error. */
ls_status ls_build_finish_as(ls_model *, ls_model *m_p, ls_error *);

int64_t ls_value_count(const ls_value *); /* how many numbers it has */
int64_t ls_value_last(const ls_value *);  /* its last dimension; of a scalar: 1 */
bool ls_value_same_dims(const ls_value *, const ls_value *);
typedef struct ls_dims_text {
    char text[64];
} ls_dims_text;
ls_dims_text ls_dims_write(ls_dims); /* "[28, 28, 1]" */

#endif
