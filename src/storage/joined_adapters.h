/* joined_adapters.h - adapters of layers whose weights are rows of one tensor in the files of their
 * family: in Phi-3 q, k and v, and gate and up.
 *
 * Other programs have one adapter of the whole tensor. It is written with the A's of its n parts
 * one below the other, and their B's as blocks on the diagonal, so that B A is that of the parts,
 * and its rank n times theirs; a part without an adapter has zeros. The scale has to stay the
 * alpha / rank of a part, and the parts have the same rank and alpha.
 */
#ifndef LS_STORAGE_JOINED_ADAPTERS_H
#define LS_STORAGE_JOINED_ADAPTERS_H

#include "storage/run_adapters.h"
#include "weights/tensor_names.h"

typedef struct ls_joined_adapter {
    char layer[LS_NAME_MOST]; /* "model.layers.0.self_attn.qkv_proj" */
    char gguf[LS_NAME_MOST];  /* "blk.0.attn_qkv.weight" */
    int parts;
    int64_t rank, rows, width;
    double alpha; /* of a part */
    float *a, *b; /* [rank, width], [rows, rank] */
} ls_joined_adapter;

typedef struct ls_joined_adapters {
    ls_joined_adapter *list;
    size_t n;
} ls_joined_adapters;

/* LS_EINVAL: the run has adapters of DoRA there, whose magnitudes can't be joined, or of parts with
 * several ranks or alphas. */
ls_status ls_joined_adapters_make(const ls_run_adapters *, const ls_architecture *,
                                  ls_joined_adapters *j_p, ls_error *);
void ls_joined_adapters_free(ls_joined_adapters *);

/* Is a parameter that of an adapter which is joined? */
bool ls_joined_adapters_has(const ls_architecture *, const ls_param *);

#endif
