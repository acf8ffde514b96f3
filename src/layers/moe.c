/* moe.c - a mixture of experts: a router (router.c), experts (experts.c), experts that all rows go
 * through, and for an even load an auxiliary loss (router_balance.c) and biases (router_bias.c). */
#include "layers/moe.h"

#include <math.h>

#include "layers/routing.h"

static bool check(ls_model *m, const ls_moe_options *o) {
    if (o->experts < 1 || o->experts > LS_EXPERTS_MOST)
        ls_build_fail(m, "moe: experts is %lld; 1 to %d are possible", (long long)o->experts,
                      LS_EXPERTS_MOST);
    else if (o->per_token < 1 || o->per_token > o->experts)
        ls_build_fail(m, "moe: per_token is %lld; 1 to %lld are possible, the number of experts",
                      (long long)o->per_token, (long long)o->experts);
    else if (o->width < 1)
        ls_build_fail(m, "moe: width is %lld; it is at least 1", (long long)o->width);
    else if (o->shared < 0)
        ls_build_fail(m, "moe: shared is %lld; it is not negative", (long long)o->shared);
    else if (!(o->bias_rate >= 0 && o->bias_rate <= 1))
        ls_build_fail(m, "moe: bias_rate is %g; it is from 0 to 1", (double)o->bias_rate);
    return ls_build_takes(m, "moe: balance", (double)o->balance, 0) &&
           ls_build_takes(m, "moe: capacity", (double)o->capacity, 0) &&
           ls_build_takes(m, "moe: deviation", (double)o->deviation, 0);
}

static ls_value *linear(ls_model *m, ls_value *x, const char *name, int64_t out, float deviation) {
    return (ls_linear)(m, x,
                       (ls_linear_options){.name = name,
                                           .out = out,
                                           .no_bias = true,
                                           .out_in = true,
                                           .deviation = deviation});
}

/* The experts that all rows go through, as one of their total width. */
static ls_value *shared_experts(ls_model *m, ls_value *x, const ls_moe_options *o) {
    (ls_scope)(m, "shared_experts");
    ls_value *gate = linear(m, x, "gate_proj", o->shared * o->width, o->deviation);
    ls_value *up = linear(m, x, "up_proj", o->shared * o->width, o->deviation);
    ls_value *y =
        linear(m, (ls_silu_gate)(m, gate, up), "down_proj", ls_value_last(x), o->deviation);
    ls_scope_end(m);
    return y;
}

ls_router_values ls_layers_route(ls_model *m, ls_value *x, const ls_moe_options *o) {
    ls_router_values r = {.logits = ls_layers_router(m, x, o)};
    if (o->bias_rate > 0) r.scores = ls_layers_router_bias(m, r.logits, o);
    return r;
}

void ls_layers_choose_rows(ls_model *m, ls_value *y, ls_router_values r, const ls_moe_options *o,
                           ls_experts_slice s, bool gradient) {
    if (!ls_build_is_good(m)) return;
    m->layers[y->layer].chosen = (ls_chosen_rows){.width = ls_value_last(y),
                                                  .scores = (r.scores ? r.scores : r.logits)->layer,
                                                  .experts = o->experts,
                                                  .k = o->per_token,
                                                  .first = s.first,
                                                  .end = s.end,
                                                  .gradient = gradient};
}

ls_value *ls_layers_moe(ls_model *m, ls_value *x, const ls_moe_options *o, bool measured,
                        ls_value **sums) {
    if (!ls_build_is_good(m) || !check(m, o)) return ls_build_failed(m);
    if (o->name) (ls_scope)(m, "%s", o->name);
    ls_router_values r = ls_layers_route(m, x, o);
    ls_value *y = ls_layers_experts(m, x, r, o);
    if (o->shared) y = (ls_add)(m, y, shared_experts(m, x, o));
    if (measured) ls_layers_router_balance(m, r, o);
    if (sums) *sums = ls_layers_router_sums(m, r, o, *sums);
    if (o->name) ls_scope_end(m);
    return y;
}

ls_value *(ls_moe)(ls_model *m, ls_value *x, ls_moe_options o) {
    return ls_layers_moe(m, x, &o, o.balance > 0, NULL);
}
