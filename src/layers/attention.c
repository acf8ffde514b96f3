/* attention.c - y = softmax(q k^T / sqrt(D)) v by heads, of queries, keys and values that other
 * layers have computed.
 *
 * x: q, k, v as columns of one value; or q, and k and v as columns of another; or one value each.
 * saved: of each query and head the maximum and 1/sum. work: gradients that are not wanted. */
#include "layers/continued.h"
#include "layers/heads.h"
#include "layers/kept.h"
#include "layers/layers.h"
#include "model/row_ops.h"

typedef struct options {
    int64_t T, S, heads, kv_heads, window;
    int64_t Q, K; /* columns of the queries, and of the keys */
    bool causal;
    int mask, positions; /* fields of the layer; -1: none */
    ls_dropout_mask drop;
} options;

/* Where the queries, keys and values are, or their gradients: in the values of the layer's
 * inputs. */
typedef struct place {
    size_t input;
    int64_t column;
} place;

static place keys_at(const ls_layer *l, const options *o) {
    return l->ninputs == 1 ? (place){0, o->Q} : (place){1, 0};
}
static place values_at(const ls_layer *l, const options *o) {
    if (l->ninputs == 3) return (place){2, 0};
    return l->ninputs == 2 ? (place){1, o->K} : (place){0, o->Q + o->K};
}

static ls_heads heads_of(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    place k = keys_at(l, o), v = values_at(l, o);
    ls_heads h = {.compute = c->compute,
                  .bf16 = ls_layer_in_bf16(c),
                  .n = c->n,
                  .T = o->S == o->T ? c->T : o->T,
                  .S = o->S == o->T ? c->T : o->S,
                  .heads = o->heads,
                  .kv_heads = o->kv_heads,
                  .D = o->Q / o->heads,
                  .causal = o->causal,
                  .window = o->window,
                  .q = c->x[0],
                  .stored = ls_layer_has_bf16(l, c, LS_OPERAND_X),
                  .k = ls_matrix_from(ls_rows_x(l, c, (int)k.input, 0), 0, k.column).p,
                  .v = ls_matrix_from(ls_rows_x(l, c, (int)v.input, 0), 0, v.column).p,
                  .q_row = l->ninputs == 1 ? o->Q + 2 * o->K : o->Q,
                  .kv_row = l->ninputs == 1   ? o->Q + 2 * o->K
                            : l->ninputs == 2 ? 2 * o->K
                                              : o->K,
                  .mask_nbytes = c->sample_nbytes,
                  .positions_nbytes = c->sample_nbytes,
                  .drop = &o->drop,
                  .call = c,
                  .stat = c->saved,
                  .y = c->y};
    if (o->mask >= 0 && c->n) h.mask = ls_layer_field(l, c, o->mask, 0);
    if (o->positions >= 0 && c->n) h.positions = ls_layer_field(l, c, o->positions, 0);
    return h;
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_heads h = heads_of(l, c);
    if (c->past.kept || c->past.texts)
        ls_heads_continue(&h);
    else
        ls_heads_forward(&h);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    ls_heads h = heads_of(l, c);
    float *dx[3], *room = c->work;
    bool wanted = false;
    for (int i = 0; i < l->ninputs; i++) {
        dx[i] = c->dx[i] ? c->dx[i] : room;
        room += c->dx[i] ? 0 : c->n * (int64_t)l->input_floats[i];
        wanted = wanted || c->dx[i];
    }
    if (!wanted) return;
    place k = keys_at(l, o), v = values_at(l, o);
    h.dy = ls_rows_dy(l, c, o->Q);
    h.dq = dx[0];
    h.dk = dx[k.input] + k.column;
    h.dv = dx[v.input] + v.column;
    ls_heads_backward(&h);
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){.T = o->T,
                    .S = o->S,
                    .heads = o->heads,
                    .kv_heads = o->kv_heads,
                    .window = o->window,
                    .Q = o->Q,
                    .K = o->K,
                    .causal = o->causal,
                    .mask = o->mask,
                    .places = o->positions};
}

static const ls_layer_ops ops = {
    .kind = "attention", .forward = forward, .backward = backward, .describe = describe};

/* Are keys and values what the options say? Else the model has failed. */
static void look_at_keys(ls_model *m, const ls_attention_options *o, const options *own) {
    const ls_value *k = o->keys, *v = o->values;
    int64_t columns = v ? own->K : 2 * own->K;
    if (k && (k->ndims != 2 || ls_value_last(k) != columns))
        ls_build_fail(m, "the keys are %s; [S, %lld]%s is needed", ls_dims_write(k->dims).text,
                      (long long)columns, v ? "" : ", keys and values,");
    else if (v && !ls_value_same_dims(k, v))
        ls_build_fail(m, "the values are %s and the keys %s", ls_dims_write(v->dims).text,
                      ls_dims_write(k->dims).text);
    else if (k && o->causal && own->S != own->T)
        ls_build_fail(m, "%lld queries and %lld keys can't be causal", (long long)own->T,
                      (long long)own->S);
}

static void look_at_fields(ls_model *m, const ls_attention_options *o, const options *own) {
    const ls_value *mask = o->mask, *places = o->positions;
    if (mask && (mask->layer >= 0 || mask->type != LS_U8 || ls_value_count(mask) != own->S))
        ls_build_fail(m, "the mask is no field of %lld u8, one for each key", (long long)own->S);
    else if (places &&
             (places->layer >= 0 || places->type != LS_I32 || ls_value_count(places) != own->T))
        ls_build_fail(m, "the positions are no field of %lld i32, one for each query",
                      (long long)own->T);
    else if ((places || o->window) && !o->causal)
        ls_build_fail(m, "%s are for causal attention; add .causal",
                      places ? "positions" : "windows");
    else if (o->window < 0)
        ls_build_fail(m, "window is %lld; it is not negative", (long long)o->window);
}

/* The sizes of the inputs. False: they don't fit, and the model has failed. */
static bool look(ls_model *m, const ls_value *x, const ls_attention_options *o,
                 ls_dropout_mask drop, options *own) {
    int64_t last = ls_value_last(x), kv_heads = o->kv_heads ? o->kv_heads : o->heads;
    int64_t parts = o->keys ? o->heads : o->heads + 2 * kv_heads; /* heads in x */
    if (x->ndims != 2)
        ls_build_fail(m, "the input is %s; %s is needed", ls_dims_write(x->dims).text,
                      o->keys ? "[T, C], queries," : "[T, 3 C], queries, keys and values,");
    else if (o->heads < 1)
        ls_build_fail(m, "heads is %lld; it is at least 1", (long long)o->heads);
    else if (kv_heads < 1 || o->heads % kv_heads)
        ls_build_fail(m, "kv_heads is %lld; it must divide heads, %lld", (long long)kv_heads,
                      (long long)o->heads);
    else if (last % parts)
        ls_build_fail(m, "%lld columns are no %lld heads%s", (long long)last, (long long)parts,
                      o->keys ? "" : " of queries, keys and values");
    else if (!(drop.rate >= 0 && drop.rate < 1))
        ls_build_fail(m, "dropout is %g; it is from 0 to below 1", (double)drop.rate);
    if (!ls_build_is_good(m)) return false;
    *own = (options){.T = x->dims.of[0],
                     .S = o->keys ? o->keys->dims.of[0] : x->dims.of[0],
                     .heads = o->heads,
                     .kv_heads = kv_heads,
                     .window = o->window,
                     .Q = last / parts * o->heads,
                     .K = last / parts * kv_heads,
                     .causal = o->causal,
                     .mask = -1,
                     .positions = -1,
                     .drop = drop};
    look_at_keys(m, o, own);
    if (ls_build_is_good(m)) look_at_fields(m, o, own);
    return ls_build_is_good(m);
}

ls_value *ls_layers_attention(ls_model *m, ls_value *x, ls_attention_options o,
                              ls_dropout_mask drop) {
    ls_value *inputs[] = {x, o.keys, o.values};
    if (o.values && !o.keys)
        return ls_build_fail(m, "ls_attention(): values are given without keys");
    ls_layer *l = ls_build_layer(m, "attention", o.name, inputs, o.values ? 3 : o.keys ? 2 : 1);
    options own = {0};
    if (!l || !look(m, x, &o, drop, &own)) return ls_build_failed(m);
    l->ops = &ops;
    l->T = own.S == own.T ? own.T : 1; /* positions of queries and keys, if they are the same */
    l->C = own.Q;
    if (o.mask) ls_build_field(m, l, o.mask), own.mask = l->nfields - 1;
    if (o.positions) ls_build_field(m, l, o.positions), own.positions = l->nfields - 1;
    LS_LAYER_OWN_AS(options, l) = own;
    l->traits.on_device = true;
    l->memory.saved = (size_t)(2 * o.heads * own.T);
    l->half.as_stored = LS_OPERAND_X | LS_OPERAND_Y | LS_OPERAND_DY;
    if (own.causal) l->memory.past = ls_kept_floats(own.S, own.kv_heads, own.Q / o.heads);
    if (own.causal) l->memory.past_factors = ls_kept_factors(own.kv_heads, own.Q / o.heads);
    for (int i = 0; i < l->ninputs && l->ninputs > 1; i++) l->memory.work += l->input_floats[i];
    ls_heads h = {.T = own.T,
                  .S = own.S,
                  .heads = o.heads,
                  .kv_heads = own.kv_heads,
                  .D = own.Q / o.heads,
                  .causal = own.causal,
                  .drop = &drop};
    l->memory.scratch = ls_heads_scratch_floats(h.S, h.D);
    size_t room = (size_t)(2 * own.Q) + ls_kept_room(h.heads, h.S, h.D);
    if (own.causal && room > l->memory.scratch) l->memory.scratch = room;
    l->cost.flops = 4.0 * (double)(own.T * own.Q) * (double)own.S / (own.causal ? 2 : 1);
    ls_heads_works(&h, &l->cost.forward, &l->cost.backward);
    ls_conversions_add(
        &l->cost.forward_converts,
        (ls_conversion){.operand = LS_OPERAND_Y, .rounds = true, .numbers = own.T * own.Q});
    return ls_build_value(m, LS_DIMS(own.T, own.Q));
}

ls_value *(ls_attention)(ls_model *m, ls_value *x, ls_attention_options o) {
    ls_dropout_mask drop = {.rate = o.dropout, .number = LS_DROPOUT_ATTENTION};
    for (int i = 0; i < m->nlayers; i++) drop.number += m->layers[i].ops == &ops;
    return ls_layers_attention(m, x, o, drop);
}
