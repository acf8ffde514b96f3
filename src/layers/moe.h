/* moe.h - the layers of a mixture of experts (moe.c). */
#ifndef LS_LAYERS_MOE_H
#define LS_LAYERS_MOE_H

#include <math.h>

#include "model/builder.h"

/* The mixture of experts; measured: its load is among the model's notes (ls_layers_note_loads()),
 * even if .balance is 0. sums: what ls_layers_router_sums() of the routers before has returned,
 * NULL for none; in its place comes that of this one. NULL: there is no loss of all routers. */
ls_value *ls_layers_moe(ls_model *, ls_value *x, const ls_moe_options *, bool measured,
                        ls_value **sums);

/* What a router says of each row: its logits [T, experts], and where a bias changes the choice,
 * scores [T, experts] of which the greatest choose; else NULL. */
typedef struct ls_router_values {
    ls_value *logits, *scores;
} ls_router_values;

/* The parts of a mixture of experts: the router, which reads x [T, C]; the experts' weighted sum
 * [T, C]; the auxiliary loss for an even load. */
ls_router_values ls_layers_route(ls_model *, ls_value *x, const ls_moe_options *);
ls_value *ls_layers_router(ls_model *, ls_value *x, const ls_moe_options *);
ls_value *ls_layers_router_bias(ls_model *, ls_value *logits, const ls_moe_options *);
ls_value *ls_layers_experts(ls_model *, ls_value *x, ls_router_values, const ls_moe_options *);
void ls_layers_router_balance(ls_model *, ls_router_values, const ls_moe_options *);

/* One loss of all routers. The first call adds this router's loads to the sums of the routers
 * before it (NULL: it is the first); the second adds the loss of the sums of `routers` routers. */
ls_value *ls_layers_router_sums(ls_model *, ls_router_values, const ls_moe_options *,
                                ls_value *before);
void ls_layers_router_loss(ls_model *, ls_value *sums, float factor, int64_t routers);

/* The experts [first, end) alone, as a layer of this name: the sum of a row's choices among
 * them. */
typedef struct ls_experts_slice {
    const char *name; /* NULL: the kind's */
    int64_t first, end;
    int64_t samples; /* whose rows x has, one sample after the other; 0: 1 */
    bool own_blocks; /* its parameters share no block with others (ls_param) */
} ls_experts_slice;
ls_value *ls_layers_experts_slice(ls_model *, ls_value *x, ls_router_values, const ls_moe_options *,
                                  ls_experts_slice);

/* y are the rows of these router's values that such a slice reads (gradient: that it has computed),
 * and only those matter that have chosen one of its experts (ls_chosen_rows). */
void ls_layers_choose_rows(ls_model *, ls_value *y, ls_router_values, const ls_moe_options *,
                           ls_experts_slice, bool gradient);

/* To be called once all layers are added: the model notes the mean of the auxiliary losses, without
 * their factors, as router/balance, and the load of each expert, its part of all choices, as
 * router/load/0 ...; with a capacity also the part of the choices that are over it, as
 * router/dropped. All are means over the layers with experts. Nothing without such layers. */
void ls_layers_note_loads(ls_model *);

/* The elements of the layer's parameter number i that one row reads: those of its experts, or
 * all. */
size_t ls_layers_read_by_row(const ls_layer *, int i);

/* The standard deviation of initial weights whose products have `in` terms. */
static inline float ls_moe_deviation(const ls_moe_options *o, int64_t in) {
    return o->deviation > 0 ? o->deviation : 1 / sqrtf((float)in);
}

#endif
