/* published.h - published models (weights/weights.h), used without a run. */
#ifndef LS_INFER_PUBLISHED_H
#define LS_INFER_PUBLISHED_H

#include "config/config.h"
#include "data/tokenizer.h"

enum { LS_PUBLISHED_CONTEXT = 4096 }; /* tokens of model.context, unless the model has fewer */

/* A GGUF file, or a directory with config.json that is neither a run nor a checkpoint? */
bool ls_published_is(const char *path);

/* The config of a run that begins with the model (model.from), with these keys set. LS_EINVAL: the
 * model is damaged or not supported, or a set is wrong. */
ls_status ls_published_config(const char *path, const ls_config_sets *, ls_config *c_p, ls_error *);

ls_status ls_published_tokenizer(const char *path, ls_tokenizer **t_p, ls_error *);

#endif
