/* export_onnx.h - what a model predicts, as an ONNX file: its fields are the graph's inputs, as
 * they are in the data, and its predictions the outputs.
 *
 *     classes        NAME_logits, and NAME_probability, their softmax
 *     true or false  the same, by the logistic function
 *     numbers        NAME
 * A language model has the output "logits", and a free number of rows.
 */
#ifndef LS_ONNX_EXPORT_ONNX_H
#define LS_ONNX_EXPORT_ONNX_H

#include "onnx/graph.h"
#include "onnx/writer.h"

/* An input or an output of the graph. */
typedef struct ls_onnx_end {
    char *name;
    bool is_output;
    ls_dtype type;
    ls_onnx_shape shape;
} ls_onnx_end;

typedef struct ls_onnx_exported {
    ls_onnx_written file;
    ls_onnx_end *ends; /* [nends] inputs, then outputs */
    size_t nends;
} ls_onnx_exported;

/* What the file says of the model besides (metadata_props). */
typedef struct ls_onnx_remark {
    const char *key, *value;
} ls_onnx_remark;

typedef struct ls_onnx_to {
    const char *path;
    size_t most;                   /* as of ls_onnx_write() */
    const ls_onnx_remark *remarks; /* [nremarks] */
    int nremarks;
} ls_onnx_to;

/* LS_EINVAL: ONNX has no form of a layer; the model predicts nothing; the path exists. */
ls_status ls_onnx_export(const ls_model *, const ls_onnx_weights *, const ls_onnx_to *,
                         ls_onnx_exported *x_p, ls_error *);
void ls_onnx_exported_free(ls_onnx_exported *);

#endif
