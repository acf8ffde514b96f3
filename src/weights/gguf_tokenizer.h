/* gguf_tokenizer.h - the tokenizer in the metadata of a GGUF file.
 *
 * Source: llama.cpp's gguf-py/gguf/constants.py (keys), src/llama-vocab.cpp (what they mean, and
 * the defaults of missing ones).
 */
#ifndef LS_WEIGHTS_GGUF_TOKENIZER_H
#define LS_WEIGHTS_GGUF_TOKENIZER_H

#include "data/tokenizer.h"
#include "weights/architecture.h"
#include "weights/gguf.h"
#include "weights/gguf_write.h"

/* LS_EINVAL: the file has no tokenizer, or one that is not supported (data/tokenizer_parts.h). */
ls_status ls_gguf_read_tokenizer(const ls_gguf *, ls_tokenizer **t_p, ls_error *);

/* Appends the keys of the tokenizer but the ids of its tokens, which the architecture's keys have
 * (gguf_model.h). Rows of the model beyond the tokens become unused tokens. LS_EINVAL: GGUF has no
 * words for something of it. */
ls_status ls_gguf_put_tokenizer(ls_gguf_writer *, const ls_tokenizer *, const ls_architecture *,
                                ls_error *);

#endif
