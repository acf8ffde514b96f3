/* types.c - see types.h. */
#include "model/types.h"

ls_dtype ls_config_compute(const ls_config *c) {
    static const ls_dtype types[] = {
        [LS_COMPUTE_F32] = LS_F32, [LS_COMPUTE_BF16] = LS_BF16, [LS_COMPUTE_F16] = LS_F16};
    return types[c->train.compute];
}

ls_dtype ls_config_reduce(const ls_config *c) {
    static const ls_dtype types[] = {
        [LS_REDUCE_F32] = LS_F32, [LS_REDUCE_BF16] = LS_BF16, [LS_REDUCE_F16] = LS_F16};
    if (c->train.reduce_dtype != LS_REDUCE_AUTO) return types[c->train.reduce_dtype];
    return ls_config_has_replicas(c) ? LS_F32 : ls_config_compute(c);
}
