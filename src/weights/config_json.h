/* config_json.h - an architecture in Hugging Face's config.json.
 *
 * Forms: that of transformers 4 (rope_theta, rope_scaling) and of 5 (rope_parameters); where a file
 * has both they must agree. A missing key has the value that transformers gives it, if all its
 * versions agree on one that no size depends on; else it is an error. Each key is understood, or
 * known not to change the model's output (such as attention_dropout, which training may have), or
 * refused by its name, for it may change the model.
 */
#ifndef LS_WEIGHTS_CONFIG_JSON_H
#define LS_WEIGHTS_CONFIG_JSON_H

#include "base/json.h"
#include "weights/architecture.h"

enum { LS_CONFIG_JSON_MOST = 16 << 20 }; /* bytes of such a file */

/* `what` names the object in messages: the file's path. LS_EINVAL. */
ls_status ls_config_json_read(const ls_json *, const char *what, ls_architecture *a_p, ls_error *);
ls_status ls_config_json_load(const char *path, ls_architecture *a_p, ls_error *);

/* Both forms at once. dtype: that of the weights, such as "float32". */
ls_json *ls_config_json_new(const ls_architecture *, const char *dtype);

/* generation_config.json: the ids of the tokens, and how text is drawn. */
ls_json *ls_generation_json_new(const ls_architecture *);
/* Takes over the values of generation_config.json; ids of config.json stay where the object has
 * none. LS_EINVAL: a value is not possible. */
ls_status ls_generation_json_read(const ls_json *, const char *what, ls_architecture *, ls_error *);
/* Takes over the values of a file, which may be missing. */
ls_status ls_generation_json_load(const char *path, ls_architecture *, ls_error *);

#endif
