/* flat.h - the flat buffers that an optimizer changes. */
#ifndef LS_OPTIM_FLAT_H
#define LS_OPTIM_FLAT_H

#include "optim/optimizer.h"

/* The most buffers; and the most that an update may change: it does not change older versions of
 * the parameters, which are the last buffers. */
enum { LS_FLAT_MOST = 1 + LS_OPTIM_STATES, LS_FLAT_CHANGED = LS_FLAT_MOST - LS_STALENESS_MOST };

/* of[0]: the parameters in f32; of[1] ... of[n - 1]: the optimizer's states. Each [nfloats],
 * aligned to 16 bytes. */
typedef struct ls_flat {
    int n;
    float *of[LS_FLAT_MOST];
} ls_flat;

/* The buffers of memory [..][nfloats]: the states, and before them the masters, unless the
 * parameters are f32 and lie elsewhere, at `params`. */
static inline ls_flat ls_flat_of_state(float *memory, float *params, int nstates, size_t nfloats) {
    ls_flat f = {.n = 1 + nstates, .of = {params ? params : memory}};
    for (int i = 1; i < f.n; i++) f.of[i] = memory + (size_t)(params ? i - 1 : i) * nfloats;
    return f;
}

#endif
