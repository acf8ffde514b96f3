/* outer.h - changes of parameters that are no step of their optimizer: the outer optimizer of
 * parameters that replicas have in common, and replicas that take these over.
 *
 * Outer optimizer as in Douillard et al., "DiLoCo: Distributed Low-Communication Training of
 * Language Models", 2023; mixing as in Douillard et al., "Streaming DiLoCo with overlapping
 * communication", 2025. Elementwise, like apply.h.
 */
#ifndef LS_OPTIM_OUTER_H
#define LS_OPTIM_OUTER_H

#include "optim/journal.h"

typedef struct ls_outer_change {
    const ls_optim_group *outer; /* NULL: the elements are mixed with `given` */
    ls_optim_step step;          /* of the outer optimizer */
    double mixing;               /* x = mixing x + (1 - mixing) given */
    const float *given; /* [nfloats] the outer gradient (step.grad_scale), or what is mixed */
    ls_dtype params_type;
    void *params;              /* [nfloats] */
    ls_flat flat;              /* [nfloats] the masters or parameters, and the states */
    size_t part_first;         /* } what is changed; */
    size_t part_end;           /* } other elements are only marked */
    const ls_journal *journal; /* NULL: none */
    uint32_t steps;            /* as in ls_optim_update */
} ls_outer_change;

/* Changes elements [first, end), with a journal multiples of LS_BLOCK. */
void ls_outer_apply(const ls_outer_change *, const ls_compute *, size_t first, size_t end);

#endif
