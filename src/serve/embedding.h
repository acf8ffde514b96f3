/* embedding.h - vectors of texts as OpenAI's JSON.
 *
 * A text's vector is the mean over its tokens of the model's last values, behind its last norm,
 * divided by its length. The mean is a sum in double in the order of the tokens, so it does not
 * depend on how the text was cut into steps.
 */
#ifndef LS_SERVE_EMBEDDING_H
#define LS_SERVE_EMBEDDING_H

#include "serve/answer.h"

/* Appends the object of an answer that is complete; one with `error` if a vector was given up. */
void ls_embedding_write(const ls_text_answer *, ls_buf *out);

#endif
