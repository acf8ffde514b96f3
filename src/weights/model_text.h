/* model_text.h - what a published model has for text: its tokenizer, the tokens of its templates,
 * and its chat templates.
 *
 * A directory has tokenizer.json and tokenizer_config.json, a GGUF file has the same in its
 * metadata, which also serve a directory with model.gguf.
 */
#ifndef LS_WEIGHTS_MODEL_TEXT_H
#define LS_WEIGHTS_MODEL_TEXT_H

#include "data/tokenizer.h"
#include "weights/model_templates.h"
#include "weights/weights.h"

/* Tokens with a part of their own, by the names of tokenizer_config.json: bos_token ... */
typedef enum ls_special_token {
    LS_BOS_TOKEN,
    LS_EOS_TOKEN, /* ends a text, and what an assistant says: one of the model's ends */
    LS_PAD_TOKEN,
    LS_UNK_TOKEN,
    LS_NSPECIAL_TOKENS
} ls_special_token;
const char *ls_special_token_name(ls_special_token);

typedef struct ls_model_text {
    ls_tokenizer *tokenizer;           /* NULL: there is none */
    ls_buf json;                       /* it, as a tokenizer.json */
    char *special[LS_NSPECIAL_TOKENS]; /* their texts; NULL: the model has none */
    ls_model_templates templates;
} ls_model_text;

/* Reads all of it. LS_EINVAL: the tokenizer is missing, is not supported, or has more tokens than
 * the model; a file is damaged. */
ls_status ls_model_text_read(const ls_weights *, ls_model_text *t_p, ls_error *);
void ls_model_text_free(ls_model_text *);

/* Writes tokenizer.json, tokenizer_config.json and the templates into a directory. */
ls_status ls_model_text_write(const ls_architecture *, const ls_model_text *, const char *folder,
                              ls_error *);

/* The parts of a model's text. The tokenizer alone; appended as a tokenizer.json to *json_p, unless
 * that is NULL. */
ls_status ls_model_tokenizer(const ls_weights *, ls_tokenizer **t_p, ls_buf *json_p, ls_error *);
/* Texts of special tokens, which the caller frees: those of tokenizer_config.json, or, for older
 * models, of special_tokens_map.json; a text that neither has is that of the id in config.json.
 */
ls_status ls_model_special_tokens(const ls_weights *, const ls_tokenizer *,
                                  char *special[LS_NSPECIAL_TOKENS], ls_error *);
/* The text of the token with the id in the architecture: free() it. NULL: the architecture has no
 * id, or the tokenizer no such token. */
char *ls_special_token_of(const ls_architecture *, const ls_tokenizer *, ls_special_token);

/* The id of the token with this text, an added one or another; LS_NO_TOKEN: there is none. */
uint32_t ls_special_token_id(const ls_tokenizer *, const char *text);

#endif
