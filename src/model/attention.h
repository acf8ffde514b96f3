/* attention.h - the keys and values in the memory that attention's forward saves. */
#ifndef LS_MODEL_ATTENTION_H
#define LS_MODEL_ATTENTION_H

#include "model/layer.h"
#include "tensor/gemm.h"

/* For one sample: k, v [T, C]; the columns of head h begin at h * C / heads. */
typedef struct ls_attention_seen {
    ls_matrix k, v;
} ls_attention_seen;

/* saved: what forward saved for one sample of T positions, as ls_mixed_shown() has it. */
ls_attention_seen ls_attention_saw(const ls_layer *, int64_t T, bool bf16, const void *saved);

#endif
