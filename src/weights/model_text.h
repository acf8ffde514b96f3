/* model_text.h - what a published model has for text: its tokenizer and its chat template.
 *
 * A directory has tokenizer.json, and the template in chat_template.jinja or tokenizer_config.json;
 * a GGUF file has both in its metadata, which also serve a directory with model.gguf.
 */
#ifndef LS_WEIGHTS_MODEL_TEXT_H
#define LS_WEIGHTS_MODEL_TEXT_H

#include "data/tokenizer.h"
#include "weights/weights.h"

#define LS_MODEL_TOKENIZER        "tokenizer.json"
#define LS_MODEL_TOKENIZER_CONFIG "tokenizer_config.json"
#define LS_MODEL_TEMPLATE         "chat_template.jinja"

/* The model's tokenizer; appends it as a tokenizer.json to *json_p, unless that is NULL. LS_EINVAL:
 * there is none, it is not supported, or it has more tokens than the model. */
ls_status ls_model_tokenizer(const ls_weights *, ls_tokenizer **t_p, ls_buf *json_p, ls_error *);

/* Appends the chat template; appends nothing if the model has none. Of several, that named
 * "default". LS_EINVAL: the file is damaged. */
ls_status ls_model_template(const ls_weights *, ls_buf *out, ls_error *);

/* Writes tokenizer.json with these bytes, tokenizer_config.json, and chat_template.jinja if the
 * template is not empty, into a directory. */
ls_status ls_model_text_write(const ls_architecture *, const ls_tokenizer *, const ls_buf *json,
                              const ls_buf *template, const char *folder, ls_error *);

#endif
