/* thought.h - what a model writes before its answer: <think>...</think> (Qwen 3, DeepSeek's
 * distillations), [THINK]...[/THINK] (Magistral).
 *
 * A model has a form if both marks are tokens of its vocabulary. Some templates end a prompt with
 * the first mark, so that the text begins within a thought.
 */
#ifndef LS_CHAT_THOUGHT_H
#define LS_CHAT_THOUGHT_H

#include "data/tokenizer.h"

/* Initially {0}: there are no thoughts. */
typedef struct ls_thought_form {
    const char *open, *close; /* NULL: none */
    uint32_t tokens[2];
} ls_thought_form;

ls_thought_form ls_thought_form_of(const ls_tokenizer *);
/* Do the tokens [n] end within a thought? */
bool ls_thought_is_open(const ls_thought_form *, const uint32_t *tokens, int64_t n);

/* Bytes of a text. */
typedef struct ls_thought_text {
    size_t from, to; /* the thought, without white space at its ends; none: from == to */
    size_t rest;     /* where the answer begins, or would */
    bool open;       /* more of the thought may come */
} ls_thought_text;

/* begun: the text begins within a thought. tool: the mark of a call of tools, or "": a call in a
 * thought that does not end is the answer. ended: nothing follows the text. Before that, what may
 * be a mark is held back. */
ls_thought_text ls_thought_read(const ls_thought_form *, bool begun, const char *tool,
                                const char *text, size_t n, bool ended);

#endif
