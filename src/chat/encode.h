/* encode.h - a conversation as tokens, each of which is trained on or not.
 *
 * Prompts and answers become tokens each by themselves, as they do when the model is asked; with
 * SentencePiece, whose tokens depend on what is before them, the whole text does. Texts without a
 * template get the tokens that begin and end a text, unless they have them already. */
#ifndef LS_CHAT_ENCODE_H
#define LS_CHAT_ENCODE_H

#include "chat/spans.h"

typedef struct ls_chat_tokens {
    uint32_t *ids; /* [n] */
    bool *trained; /* [n] the first token never is: nothing predicts it */
    size_t n, ntrained;
} ls_chat_tokens;

/* LS_EINVAL: nothing is trained on, or with SentencePiece an answer does not begin with a token. */
ls_status ls_chat_encode(const ls_chat_format *, const ls_chat_spans *, ls_chat_tokens *t_p,
                         ls_error *);
void ls_chat_tokens_free(ls_chat_tokens *);
bool ls_chat_tokens_same(const ls_chat_tokens *, const ls_chat_tokens *);

#endif
