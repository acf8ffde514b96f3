/* model_chat.h - how a published model writes conversations. */
#ifndef LS_WEIGHTS_MODEL_CHAT_H
#define LS_WEIGHTS_MODEL_CHAT_H

#include "chat/chat_format.h"
#include "weights/model_templates.h"
#include "weights/weights.h"

/* The template of the file `file`, or the model's own if that is NULL; bos_token and eos_token are
 * those of model_text.h. LS_EINVAL: the template can't be
 * read. The tokenizer must outlive it. */
ls_status ls_model_chat_format(const ls_weights *, const ls_tokenizer *, const char *file,
                               ls_chat_format *f_p, ls_error *);
/* Sets the templates; `what` names the model in messages. */
ls_status ls_chat_format_parse(ls_chat_format *, const ls_model_templates *, const char *what,
                               ls_error *);
/* The format of a template file alone, without a model. */
ls_status ls_file_chat_format(const ls_tokenizer *, const char *file, ls_chat_format *f_p,
                              ls_error *);

#endif
