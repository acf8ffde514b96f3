/* writer.h - a model while it becomes a graph: the tensors that its values are, and its weights.
 *
 * A value of [..] of a sample is a tensor [N, ..]; one number is [N, 1]. An image, [height, width,
 * channels] here, is in ONNX's layers [channels, height, width]: its value is a tensor of one
 * layout, and of the other one where a layer needs that. So transposes are only where layers of
 * images begin and end.
 *
 * A model of tokens has a free number of rows T: shapes of its tensors don't have it.
 */
#ifndef LS_ONNX_WRITER_H
#define LS_ONNX_WRITER_H

#include "model/prediction.h"
#include "onnx/graph.h"

/* The weights of a model. */
typedef struct ls_onnx_weights {
    const float *params;           /* [nfloats] */
    const ls_frozen_value *frozen; /* [nparams] NULL: none are frozen */
    const ls_compute *compute;
} ls_onnx_weights;

typedef struct ls_onnx_value {
    const char *rows;   /* the tensor in the layout of samples; NULL: not yet */
    const char *planes; /* the same of an image, channels first; NULL: not yet */
    ls_onnx_shape dims; /* of a sample, at least one */
} ls_onnx_value;

/* A tensor that several layers use, by what it is. */
typedef struct ls_onnx_shared {
    char *key;
    const char *tensor;
} ls_onnx_shared;

typedef struct ls_onnx_writer {
    ls_onnx_graph *g;
    const ls_model *m;
    const ls_onnx_weights *weights;
    ls_onnx_value *values;  /* [nlayers] */
    const char **fields;    /* [ninputs] inputs of the graph; NULL: not needed */
    const char **params;    /* [nparams] NULL: not yet */
    ls_onnx_shared *shared; /* [nshared] */
    size_t nshared;
    int64_t
        rows; /* above 0: the most rows of a value; the number of rows is free. 0: it is fixed */
} ls_onnx_writer;

ls_onnx_writer ls_onnx_writer_of(const ls_model *, const ls_onnx_weights *);
void ls_onnx_writer_close(ls_onnx_writer *); /* frees the graph, too */

/* A parameter of the layer, by its number there; in its own shape. */
const char *ls_onnx_param(ls_onnx_writer *, const ls_layer *, int i);
/* The values of a parameter in f32. *own_p: the array to free; NULL: they were in memory
 * already. */
const float *ls_onnx_param_values(const ls_onnx_writer *, int param, float **own_p);
/* A field that the layer reads, by its number there: [N, ..]. */
const char *ls_onnx_field(ls_onnx_writer *, const ls_layer *, int i);

/* The place for the tensor of this key, NULL at first; valid until the next call. */
const char **ls_onnx_share(ls_onnx_writer *, const char *key);

/* ---- values ---- */

ls_onnx_shape ls_onnx_shape_of(const int64_t *dims); /* [LS_PARAM_DIMS], ended by 0; of none: [1] */
/* [N, dims of a sample]; free rows are "T". */
ls_onnx_shape ls_onnx_batch_of(const ls_onnx_writer *, ls_onnx_shape);
int64_t ls_onnx_count(ls_onnx_shape);

/* The shape of a layer's output. */
ls_onnx_shape ls_onnx_output_dims(const ls_layer *);
/* Input k of the layer, which has as many numbers as this shape: in the layout of samples; or that
 * of an image, [height, width, channels], with channels first. */
const char *ls_onnx_read(ls_onnx_writer *, const ls_layer *, int k, ls_onnx_shape);
const char *ls_onnx_read_planes(ls_onnx_writer *, const ls_layer *, int k, ls_onnx_shape);
/* The output of a layer, in the layout of samples. */
const char *ls_onnx_read_output(ls_onnx_writer *, const ls_layer *, ls_onnx_shape);
/* Is it there with channels first? */
bool ls_onnx_has_planes(const ls_onnx_writer *, const ls_layer *, int k, ls_onnx_shape);

/* What the layer has computed: a tensor of any shape with its numbers in their order, of the shape
 * `dims`; or an image, channels first. */
void ls_onnx_set(ls_onnx_writer *, const ls_layer *, const char *tensor, ls_onnx_shape dims);
void ls_onnx_set_planes(ls_onnx_writer *, const ls_layer *, const char *tensor);

/* ---- often used ---- */

const char *ls_onnx_reshape(ls_onnx_writer *, const char *x, ls_onnx_shape); /* 0: that of x */
const char *ls_onnx_transpose(ls_onnx_writer *, const char *x, int n, const int64_t *order);
/* A range of a dimension, and new ones of size 1. */
const char *ls_onnx_slice(ls_onnx_writer *, const char *x, int dim, int64_t first, int64_t end);
const char *ls_onnx_expand(ls_onnx_writer *, const char *x, int n, const int64_t *dims);
/* Sum or mean ("ReduceSum", "ReduceMean") over a dimension. */
const char *ls_onnx_reduce(ls_onnx_writer *, const char *op, const char *x, int dim, bool keep);
/* 0, 1 .. T - 1, for a layer of T rows. */
const char *ls_onnx_row_numbers(ls_onnx_writer *, int64_t T);

#endif
