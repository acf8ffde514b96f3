/* attention.c - y = softmax(q k^T / sqrt(D)) v by heads, of queries, keys and values that other
 * layers have computed.
 *
 * x[0]: q, k, v as columns [T, 3C]; or queries [T, C], and x[1] keys and values [S, 2C].
 * saved: of each query and head the maximum and 1/sum. work: a gradient that is not wanted. */
#include "model/builder.h"
#include "model/heads.h"

typedef struct options {
    int64_t T, S, C;
    bool causal, masked;
} options;

static ls_heads heads_of(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    bool apart = l->ninputs == 2;
    const float *q = c->x[0], *k = apart ? c->x[1] : q + o->C;
    ls_heads h = {.compute = c->compute,
                  .n = c->n,
                  .T = o->T,
                  .S = o->S,
                  .heads = l->heads,
                  .D = o->C / l->heads,
                  .causal = o->causal,
                  .q = q,
                  .k = k,
                  .v = k + o->C,
                  .q_row = apart ? o->C : 3 * o->C,
                  .kv_row = apart ? 2 * o->C : 3 * o->C,
                  .mask_nbytes = c->sample_nbytes,
                  .stat = c->saved,
                  .y = c->y};
    if (o->masked && c->n) h.mask = ls_layer_field(l, c, 0, 0);
    return h;
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_heads h = heads_of(l, c);
    ls_heads_forward(&h);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    ls_heads h = heads_of(l, c);
    int64_t C = LS_LAYER_OWN_OF(options, l).C;
    bool apart = l->ninputs == 2;
    if (!c->dx[0] && !(apart && c->dx[1])) return;
    h.dy = c->dy;
    h.dq = c->dx[0] ? c->dx[0] : c->work;
    h.dk = apart ? c->dx[1] : h.dq + C;
    if (!h.dk) h.dk = c->work;
    h.dv = h.dk + C;
    ls_heads_backward(&h);
}

static const ls_layer_ops ops = {.kind = "attention", .forward = forward, .backward = backward};

/* The sizes of the inputs. False: they don't fit, and the model has failed. */
static bool look(ls_model *m, const ls_value *x, const ls_attention_options *o, options *own_p) {
    const ls_value *kv = o->keys;
    int64_t parts = kv ? 1 : 3, last = ls_value_last(x);
    if (x->ndims != 2 || last % parts)
        ls_build_fail(m, "the input is %s; %s is needed", ls_dims_write(x->dims).text,
                      kv ? "[T, C], queries," : "[T, 3 C], queries, keys and values,");
    else if (kv && (kv->ndims != 2 || ls_value_last(kv) != 2 * last))
        ls_build_fail(m, "the keys are %s; [S, %lld], keys and values, is needed",
                      ls_dims_write(kv->dims).text, 2 * (long long)last);
    else if (o->heads < 1 || last / parts % o->heads)
        ls_build_fail(m, "heads is %lld; it must divide the width %lld", (long long)o->heads,
                      (long long)(last / parts));
    else if (kv && o->causal && kv->dims.of[0] != x->dims.of[0])
        ls_build_fail(m, "%lld queries and %lld keys can't be causal", (long long)x->dims.of[0],
                      (long long)kv->dims.of[0]);
    *own_p = (options){.T = x->dims.of[0],
                       .S = kv ? kv->dims.of[0] : x->dims.of[0],
                       .C = last / parts,
                       .causal = o->causal,
                       .masked = o->mask != NULL};
    const ls_value *mask = o->mask;
    if (mask && (mask->layer >= 0 || mask->type != LS_U8 || ls_value_count(mask) != own_p->S))
        ls_build_fail(m, "the mask is no field of %lld u8, one for each key", (long long)own_p->S);
    return ls_build_is_good(m);
}

ls_value *(ls_attention)(ls_model *m, ls_value *x, ls_attention_options o) {
    ls_value *inputs[] = {x, o.keys};
    ls_layer *l = ls_build_layer(m, "attention", o.name, inputs, o.keys ? 2 : 1);
    options own = {0};
    if (!l || !look(m, x, &o, &own)) return ls_build_failed(m);
    l->ops = &ops;
    LS_LAYER_OWN_AS(options, l) = own;
    l->C = own.C;
    l->heads = o.heads;
    if (own.masked) ls_build_field(m, l, o.mask);
    l->saved_floats = (size_t)(2 * o.heads * own.T);
    l->work_floats = o.keys ? (size_t)(own.C * (own.T > 2 * own.S ? own.T : 2 * own.S)) : 0;
    ls_heads h = {
        .T = own.T, .S = own.S, .heads = o.heads, .D = own.C / o.heads, .causal = own.causal};
    l->scratch_floats = ls_heads_scratch_floats(h.S, h.D);
    l->forward_flops = 4.0 * (double)(own.T * own.C) * (double)own.S / (own.causal ? 2 : 1);
    ls_heads_works(&h, &l->forward_work, &l->backward_work);
    return ls_build_value(m, LS_DIMS(own.T, own.C));
}
