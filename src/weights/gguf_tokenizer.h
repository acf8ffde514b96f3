/* gguf_tokenizer.h - the tokenizer in the metadata of a GGUF file.
 *
 * Source: llama.cpp's gguf-py/gguf/constants.py (keys), src/llama-vocab.cpp (what they mean, and the
 * defaults of missing ones).
 */
#ifndef LS_WEIGHTS_GGUF_TOKENIZER_H
#define LS_WEIGHTS_GGUF_TOKENIZER_H

#include "data/tokenizer.h"
#include "weights/gguf.h"

/* LS_EINVAL: the file has no tokenizer, or one that is not supported (data/tokenizer_parts.h). */
ls_status ls_gguf_read_tokenizer(const ls_gguf *, ls_tokenizer **t_p, ls_error *);

#endif
