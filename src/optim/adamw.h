/* adamw.h - AdamW on a range of the flat buffers; each parameter says whether it decays.
 *
 * Source: Loshchilov & Hutter, "Decoupled weight decay regularization", ICLR 2019, algorithm 2;
 * decay is scaled by the learning rate, as in PyTorch. Elementwise: any cut into ranges gives the
 * same bits.
 */
#ifndef LS_OPTIM_ADAMW_H
#define LS_OPTIM_ADAMW_H

#include "optim/journal.h"

typedef struct ls_adamw {
    double beta1, beta2, eps, weight_decay;
} ls_adamw;

/* The flat buffers [nfloats]. Parameters in 16 bits are rounded copies of f32 masters, which are
 * what is trained; else master is NULL. */
typedef struct ls_adamw_state {
    ls_dtype grads_type, params_type;
    const void *grads;
    void *params;
    float *master, *m, *v;
    const ls_journal *journal; /* NULL: none */
    uint32_t steps;            /* with a journal: steps that a block has had after this update */
} ls_adamw_state;

/* The operands of the update after `step` others, at learning rate lr. */
ls_adamw_step ls_adamw_at(const ls_adamw *, int64_t step, double lr, double grad_scale);

/* Updates elements [first, end). With a journal these are multiples of LS_BLOCK, and blocks that
 * have had the step are skipped. */
void ls_adamw_run(const ls_compute *, const ls_model *, const ls_adamw_step *, size_t first,
                  size_t end, const ls_adamw_state *);

#endif
