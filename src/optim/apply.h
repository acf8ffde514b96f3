/* apply.h - applies the optimizer to a range of the flat buffers, each parameter by the rule of its
 * group. Any cut into ranges gives the same bits, if no whole parameter (whole.h) is cut.
 */
#ifndef LS_OPTIM_APPLY_H
#define LS_OPTIM_APPLY_H

#include "optim/journal.h"
#include "optim/whole.h"

/* One step. Parameters in 16 bits are rounded copies of f32 masters, which are what is trained. */
typedef struct ls_optim_update {
    const ls_optim *optim;
    const ls_model *model;
    size_t base; /* where in the flat buffers the model's parameters begin */
    ls_optim_step step;
    ls_dtype grads_type, params_type;
    const void *grads;         /* [nfloats] */
    void *params;              /* [nfloats] flat.of[0], where they are f32 */
    ls_flat flat;              /* the masters or parameters, and the states */
    const ls_journal *journal; /* NULL: none */
    uint32_t steps;            /* with a journal: steps that a block has had after this update */
    void *room;                /* ls_whole_nbytes(); NULL where that is 0 */
} ls_optim_update;

/* Updates elements [first, end). On a device, which has all buffers, in f32, the update is queued:
 * no parameter is whole there, and there is no journal; parameters of a type of 16 bits are rounded
 * to it. With a journal these are multiples of LS_BLOCK, and blocks that have had the step are
 * skipped. */
void ls_optim_apply(const ls_optim_update *, const ls_compute *, size_t first, size_t end);

/* The bytes of a worker's room; 0: no parameter needs it. All zeros mean: it is not complete. With
 * a journal the room must outlive the worker, as the journal does. */
size_t ls_whole_nbytes(const ls_optim *, const ls_model *, ls_dtype grads_type);

/* The products that the update of a whole parameter computes: list [LS_WHOLE_PRODUCTS]. */
void ls_whole_products(const ls_optim *, const ls_param *, ls_whole_product *list);

#endif
