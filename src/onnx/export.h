/* export.h - what a model predicts, as an ONNX file: its fields are the graph's inputs, as they are
 * in the data, and its predictions the outputs.
 *
 *     classes        NAME_logits, and NAME_probability, their softmax
 *     true or false  the same, by the logistic function
 *     numbers        NAME
 * A language model has the output "logits", and a free number of rows.
 */
#ifndef LS_ONNX_EXPORT_H
#define LS_ONNX_EXPORT_H

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

/* most: as of ls_onnx_write(). LS_EINVAL: ONNX has no form of a layer; the model predicts nothing;
 * `path` exists. */
ls_status ls_onnx_export(const ls_model *, const ls_onnx_weights *, const char *path, size_t most,
                         ls_onnx_exported *x_p, ls_error *);
void ls_onnx_exported_free(ls_onnx_exported *);

#endif
