/* attention.h - the keys and values in the memory that attention's forward saves. */
#ifndef LS_MODEL_ATTENTION_H
#define LS_MODEL_ATTENTION_H

#include "model/layer.h"

/* For one sample: k, v [T, C], rows ld apart; the columns of head h begin at h * C / heads. */
typedef struct ls_attention_seen {
    const float *k, *v;
    int64_t ld;
} ls_attention_seen;

/* saved: what forward saved for one sample of T positions, in f32. */
ls_attention_seen ls_attention_saw(const ls_layer *, int64_t T, const float *saved);

#endif
