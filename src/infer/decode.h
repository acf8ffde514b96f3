/* decode.h - generates text token by token, and retains the keys and values of all positions.
 *
 * A prompt goes through the training layers at once; each further token costs one position, which
 * takes the time of reading the weights and the cache once.
 *
 * The promise: the logits have the bits of ls_infer_next() over the whole text. So the cache is f32
 * even with 16-bit types: attention reads keys and values before training rounds what it saves.
 */
#ifndef LS_INFER_DECODE_H
#define LS_INFER_DECODE_H

#include "infer/infer.h"

typedef struct ls_decode {
    const ls_model *model;
    const ls_compute *compute;
    ls_dtype dtype;     /* LS_F32, or 16 bits (mixed.h) */
    const void *params; /* [nfloats] of dtype */
    void *memory;       /* [ls_decode_nbytes], the caller's, aligned to 64 */
    int64_t npositions; /* in the cache; initially 0 */
    int64_t ntext;      /* tokens of the text of ls_decode_text()'s latest call; initially 0 */
    const ls_frozen_value
        *frozen; /* [nparams] of dtype; of a model without frozen parameters NULL */
    /* Where `compute` has a device, as in ls_infer: */
    const float *const *constants;
    void *samples;
    float *logits;
} ls_decode;

size_t ls_decode_nbytes(const ls_model *, ls_dtype);

/* What decodes as the infer computes, whose memory must stay: with memory of its own, of the host
 * or of the device. LS_ENOMEM. */
ls_status ls_decode_open(const ls_infer *, ls_decode *d_p, ls_error *);
void ls_decode_close(ls_decode *); /* of {0}, too */

/* The functions below return logits [V], valid until the next call; where a device has failed
 * (ls_infer_check()), they are undefined. */

/* The logits after tokens [T], 1 <= T <= context. Clears the cache first. */
const float *ls_decode_prompt(ls_decode *, const uint32_t *tokens, int64_t T);

/* The logits after one more token; 0 < npositions < context. */
const float *ls_decode_next(ls_decode *, uint32_t token);

/* The logits after text [n], n >= 1. In later calls the text must be that of the call before,
 * followed by at least one token. Only the last `context` tokens of the first text count. When the
 * context is full, its older half is dropped: the latest context / 2 tokens (at least one) become a
 * new prompt. */
const float *ls_decode_text(ls_decode *, const uint32_t *text, int64_t n);

/* Bytes of weights and of the cache that ls_decode_next() would read now. */
size_t ls_decode_weights_read(const ls_decode *);
size_t ls_decode_cache_read(const ls_decode *);

#endif
