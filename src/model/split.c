/* split.c - see split.h. */
#include "model/split.h"

#include <string.h>

#include "tensor/dtype.h"

static bool has_trained(const ls_layer *l) {
    for (int k = 0; k < l->nparams; k++)
        if (!l->link.frozen[k]) return true;
    return false;
}

bool ls_split_can(const ls_model *m, const ls_layer *l) {
    return has_trained(l) && ls_model_has_dx(m, l) && !l->traits.backward_whole &&
           !l->traits.trains_all && !l->traits.joins_samples;
}

/* The layer with all parameters frozen: they are the first of a table of their own. */
static ls_layer frozen_of(const ls_layer *l) {
    ls_layer frozen = *l;
    for (int k = 0; k < l->nparams; k++) {
        frozen.link.frozen[k] = true;
        frozen.params[k] = k;
    }
    return frozen;
}

void ls_split_inputs(const ls_layer *l, const ls_layer_call *c) {
    ls_frozen_value values[LS_LAYER_MAX_PARAMS];
    const ls_layer frozen = frozen_of(l);
    ls_dtype type = c->compute->device ? LS_F32 : c->type;
    ls_layer_call call = *c;
    for (int k = 0; k < l->nparams; k++)
        values[k] = l->link.frozen[k]
                        ? c->frozen[l->params[k]]
                        : (ls_stored){.data = ls_flat_at(type, c->params, l->link.offsets[k]),
                                      .type = ls_block_of_dtype(type)};
    call.frozen = values;
    ls_mixed_backward(&frozen, &call);
}

void ls_split_params(const ls_layer *l, const ls_layer_call *c) {
    ls_layer_call call = *c;
    memset(call.dx, 0, sizeof call.dx);
    ls_mixed_backward(l, &call);
}

size_t ls_split_work_nbytes(const ls_layer *l, int64_t n, ls_dtype compute, ls_dtype grads,
                            bool wide) {
    const ls_layer frozen = frozen_of(l);
    return ls_mixed_work_nbytes(&frozen, n, compute, grads, wide);
}
