/* model_templates.h - how a published model writes conversations: its chat templates.
 *
 * A directory has them in chat_template.jinja and additional_chat_templates/tool_use.jinja, else in
 * tokenizer_config.json: a text, or a list of {"name", "template"}. A GGUF file has them in its
 * metadata, which also serve a directory with model.gguf. If there are several, the one named
 * "default" writes conversations, and the one named "tool_use" conversations with tools, as in
 * transformers.
 */
#ifndef LS_WEIGHTS_MODEL_TEMPLATES_H
#define LS_WEIGHTS_MODEL_TEMPLATES_H

#include "weights/gguf_write.h"
#include "weights/weights.h"

typedef struct ls_model_templates {
    ls_buf main;  /* empty: the model has none */
    ls_buf tools; /* for conversations with tools; empty: main does that, too */
} ls_model_templates;

/* LS_EINVAL: a file is damaged, or there are several templates and none is named "default". */
ls_status ls_model_templates_read(const ls_weights *, ls_model_templates *t_p, ls_error *);
ls_status ls_model_templates_write(const ls_model_templates *, const char *folder, ls_error *);
void ls_model_templates_put(const ls_model_templates *, ls_gguf_writer *);
void ls_model_templates_free(ls_model_templates *);

#endif
