/* model_chat.h - how a published model writes conversations. */
#ifndef LS_WEIGHTS_MODEL_CHAT_H
#define LS_WEIGHTS_MODEL_CHAT_H

#include "chat/format.h"
#include "weights/weights.h"

/* The template of the file `file`, or the model's own if that is NULL; bos_token and eos_token are
 * those of tokenizer_config.json, else of the model's config. LS_EINVAL: the template can't be
 * read. The tokenizer must outlive it. */
ls_status ls_model_chat_format(const ls_weights *, const ls_tokenizer *, const char *file,
                               ls_chat_format *f_p, ls_error *);
/* The same of a file alone, without a model. */
ls_status ls_file_chat_format(const ls_tokenizer *, const char *file, ls_chat_format *f_p,
                              ls_error *);

/* What the template calls bos_token and eos_token: those of tokenizer_config.json, else of the
 * model's config; NULL: none. The caller frees them. */
ls_status ls_model_special_tokens(const ls_weights *, const ls_tokenizer *, char **bos_p,
                                  char **eos_p, ls_error *);
/* A token's text: free() it. NULL: the tokenizer has no such token. */
char *ls_token_text(const ls_tokenizer *, int64_t id);

#endif
