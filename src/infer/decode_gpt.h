/* decode_gpt.h - generating with GPT's fused layers, a position at a time: see decode.h. */
#ifndef LS_INFER_DECODE_GPT_H
#define LS_INFER_DECODE_GPT_H

#include "infer/decode.h"

size_t ls_decode_gpt_nbytes(const ls_model *, ls_dtype);
/* Numbers of a position's keys and values, of all blocks. */
size_t ls_decode_gpt_kept(const ls_model *);
/* The two calls of decode.h; they leave npositions as it is. */
const float *ls_decode_gpt_prompt(ls_decode *, const uint32_t *tokens, int64_t T);
const float *ls_decode_gpt_next(ls_decode *, uint32_t token);

#endif
