/* exported.h - models for other programs: weights with their tokenizer, ONNX graphs, and what they
 * need beside them. */
#ifndef LS_INFER_EXPORTED_H
#define LS_INFER_EXPORTED_H

#include "infer/generate.h"
#include "onnx/export_onnx.h"
#include "weights/export_weights.h"

typedef enum ls_export_form {
    LS_EXPORT_SAFETENSORS,
    LS_EXPORT_GGUF,
    LS_EXPORT_FORMS
} ls_export_form;

typedef struct ls_export_request {
    const char *from, *to; /* a run, a checkpoint or a published model; the new directory or file */
    ls_export_form form;
    ls_block_type type; /* of the weights */
    bool ema;           /* the average of a run's weights */
    bool merge;         /* a run's adapters are added to its weights */
} ls_export_request;

/* Writes a language model with its tokenizer and chat template. ls_written_free() it. */
ls_status ls_export_model(const ls_export_request *, ls_written *w_p, ls_error *);

/* Writes any network as an ONNX graph; with remarks that name classes, texts and columns. external:
 * numbers are in a file of their own, however few they are. ls_onnx_exported_free() it. */
ls_status ls_export_onnx(const ls_trained *, const char *path, bool external, ls_onnx_exported *x_p,
                         ls_error *);

/* Beside the exported weights of a recommender: writes FILE.ids.json, a copy of the checkpoint's
 * ids.json (source/ids.h), if it has one. *path_p: it; free() it; NULL: there is none. */
ls_status ls_export_ids(const char *checkpoint, const char *file, char **path_p, ls_error *);

/* Why transformers can't load this base of adapters; free() it. NULL: it can, or it is a name that
 * is known elsewhere. */
char *ls_export_base_problem(const char *base, bool is_given);

#endif
