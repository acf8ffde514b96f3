/* dropout.h - zeros at random in training, the rest times 1 / (1 - rate), for layers that have a
 * mask. Srivastava et al., "Dropout", JMLR 15 (2014).
 *
 * A number's mask is a function of the run's seed, the step, the sample's place in the step's
 * batch, the number of the mask in the model, and the number's index in the sample
 * (tensor/kernels/dropout.c). So nothing is saved: Recompute and Backward compute it again, and a
 * layer of a part of a tensor has that part of the whole tensor's mask.
 */
#ifndef LS_LAYERS_DROPOUT_H
#define LS_LAYERS_DROPOUT_H

#include "model/layer.h"
#include "tensor/gemm.h"

/* Numbers of masks: layers of kind dropout count from 0. Others begin here: those of adapters, and
 * of attention; and those of a language model: its embedding's, then its blocks'. */
enum {
    LS_DROPOUT_ADAPTERS = 1 << 16,
    LS_DROPOUT_ATTENTION = 1 << 17,
    LS_DROPOUT_EMBEDDING = 1 << 18
};

/* What has a mask in a block of a language model: attention's probabilities, and what attention and
 * the feed-forward layer add to the residual stream. */
typedef enum ls_dropout_in {
    LS_DROPOUT_IN_HEADS,
    LS_DROPOUT_IN_ATTENTION,
    LS_DROPOUT_IN_FEED_FORWARD,
    LS_NDROPOUTS_IN_BLOCK
} ls_dropout_in;
static inline uint32_t ls_dropout_number(int64_t block, ls_dropout_in place) {
    return LS_DROPOUT_EMBEDDING + 1 + (uint32_t)block * LS_NDROPOUTS_IN_BLOCK + (uint32_t)place;
}

typedef struct ls_dropout_mask {
    float rate;          /* 0: there is no mask */
    uint32_t number;     /* < 2^24; each one of a model differs */
    int64_t first;       /* index of the layer's first number in a sample of the whole tensor */
    int together, which; /* of `together` samples that are computed as one (ls_build_together()) the
                          * layer has the one of this number; together 0: samples are apart */
} ls_dropout_mask;

/* Is anything set to 0 in this call? */
bool ls_dropout_acts(const ls_dropout_mask *, const ls_layer_call *);
/* The place of the mask of the call's sample number `sample`. */
ls_dropout_place ls_dropout_place_of(const ls_dropout_mask *, const ls_layer_call *,
                                     int64_t sample);
/* y [samples of the call][count] = x, contiguous, with the mask; y = x where it does not act. They
 * may be the same. */
void ls_dropout_run(const ls_dropout_mask *, const ls_layer_call *, int64_t count, ls_matrix x,
                    float *y);

/* Dropout of the rows [C] that a layer adds to its input, as GPT's layers do: y [rows, C] with the
 * mask, if that acts; the call's dy with the mask, in room [rows, C], or as it is; and what the
 * layer needs for both, including the last part of its work memory. */
void ls_dropout_rows(const ls_layer_call *, const ls_dropout_mask *, int64_t C, float *y);
ls_matrix ls_dropout_of_dy(const ls_layer *, const ls_layer_call *, const ls_dropout_mask *,
                           float *room);
void ls_dropout_declare_rows(ls_layer *);

/* The pass takes as long as 2.5 of GELU's: random numbers. */
static inline void ls_works_dropout(ls_works *w, int64_t numbers) {
    ls_works_pass(w, LS_WORK_GELU, numbers * 5 / 2);
}

#endif
