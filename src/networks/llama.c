/* llama.c - see llama.h. */
#include "networks/llama.h"

#include <math.h>
#include <stdlib.h>

#include "layers/layers.h"
#include "layers/moe.h"
#include "model/tensor_part.h"
#include "networks/adapters.h"
#include "networks/cut.h"
#include "networks/expert_groups.h"

static const float STD = 0.02f;

typedef struct llama {
    const ls_config *c;
    const ls_architecture *a;
    ls_model *m;
    ls_cut cut;
    int64_t T;
    ls_value *positions; /* NULL: those of the rows */
    /* [s.n] of slices that share a head of keys and values, which the first of them computes. */
    ls_value *keys[LS_SLICES_MOST], *values[LS_SLICES_MOST];
    ls_value *loads[LS_CHUNKS_MOST]; /* of the routers before, of each sample: router_aux_scope */
    ls_value *q_norms[LS_SLICES_MOST], *k_norms[LS_SLICES_MOST]; /* weights of model.qk_norm */
} llama;

/* Rows of a sample, in a chunk. */
static int64_t rows_of(const llama *f) { return ls_chunked_rows_each(&f->cut.chunks); }

/* What a sample has: tokens to read, tokens to predict; and of a pair where its second text begins,
 * and the reference's log-probabilities. */
typedef struct texts {
    ls_value *tokens, *targets, *rejected, *reference;
} texts;

/* The targets of a text are its tokens, shifted by one. The targets of conversations are a field of
 * their own, in which -1 has no loss; if a sample has several conversations, each has positions
 * from 0. */
static texts add_inputs(llama *f) {
    ls_model *m = f->m;
    texts x = {0};
    if (!ls_config_has_chats(f->c)) {
        ls_value *tokens = (ls_input)(m, "tokens", LS_I32, LS_DIMS(f->T + 1));
        x.tokens = ls_build_part(m, tokens, 0, f->T);
        x.targets = ls_build_part(m, tokens, 1, f->T);
        return x;
    }
    x.tokens = (ls_input)(m, "tokens", LS_I32, LS_DIMS(f->T));
    x.targets = (ls_input)(m, "targets", LS_I32, LS_DIMS(f->T));
    if (ls_config_has_positions(f->c))
        f->positions = (ls_input)(m, "positions", LS_I32, LS_DIMS(f->T));
    if (!ls_config_has_pairs(f->c)) return x;
    x.rejected = (ls_input)(m, "rejected", LS_I32, LS_DIMS(1));
    x.reference = (ls_input)(m, "reference", LS_F32, LS_DIMS(2));
    return x;
}

static ls_sequence_norm norm_called(const llama *f, const char *name) {
    return (ls_sequence_norm){name, (float)f->a->norm_eps, f->a->gemma};
}

static ls_sequence norm(const llama *f, const ls_sequence *x, const char *name) {
    return ls_sequence_normalize(&f->cut.s, x, norm_called(f, name));
}

/* A product, or the slice's part of one. */
static ls_value *linear(const llama *f, ls_value *x, ls_linear_options o, ls_sliced_part p) {
    ls_sliced_name mine = ls_sliced_named(&f->cut.s, o.name);
    o.out_in = true;
    o.deviation = STD;
    o.lora = ls_adapters_of(f->c, f->m, o.name);
    o.name = mine.text;
    ls_value *y = (ls_linear)(f->m, x, o);
    p.groups = 1;
    ls_sliced_set(&f->cut.s, y, p);
    p.param = 1;
    if (p.dim == 0 && !o.no_bias) ls_sliced_set(&f->cut.s, y, p);
    return y;
}

/* The slice's rows: its share of `units` of `size` rows each. */
static ls_value *widen(const llama *f, ls_value *x, ls_linear_options o, ls_sliced_part p) {
    o.out = ls_sliced_count(&f->cut.s, p.units) * p.size;
    return linear(f, x, o, p);
}

/* A linear layer of the slice's columns of the weights; the first slice has the bias. */
static ls_value *narrow(const llama *f, ls_value *x, ls_linear_options o, ls_sliced_part p) {
    o.out = f->a->width;
    o.no_bias = o.no_bias || f->cut.s.k > 0;
    p.dim = 1;
    return linear(f, x, o, p);
}

/* Where there are more slices than heads of keys and values: the slices that share one. */
static int sharing(const llama *f) {
    return f->cut.s.n > f->a->kv_heads ? f->cut.s.n / (int)f->a->kv_heads : 1;
}

/* The weight of a norm that the heads of all slices share, for every step-th slice: the first one
 * has the parameter. */
static ls_value *weight_of(const llama *f, const char *name, int step, ls_value **weights) {
    if (f->cut.s.k == 0) {
        ls_value *weight = ls_layers_weight(f->m, name, f->a->head_dim, f->a->gemma);
        ls_layers_fork_every(f->m, weight, f->cut.s.n, step, weights);
    }
    return weights[f->cut.s.k];
}

/* Each head by itself. */
static ls_value *norm_heads(llama *f, ls_value *x, int64_t heads, bool of_keys) {
    int64_t D = f->a->head_dim;
    const char *name = of_keys ? "k_norm" : "q_norm";
    if (!f->a->qk_norm) return x;
    x = (ls_reshape)(f->m, x, LS_DIMS(rows_of(f), heads, D));
    if (f->cut.s.n == 1) {
        ls_rms_norm_options o = {.name = name, .eps = (float)f->a->norm_eps};
        x = ls_layers_rms_norm(f->m, x, o, f->a->gemma);
    } else {
        ls_value *weight = of_keys ? weight_of(f, name, sharing(f), f->k_norms)
                                   : weight_of(f, name, 1, f->q_norms);
        x = ls_layers_rms_norm_by(f->m, x, weight, (float)f->a->norm_eps);
    }
    return (ls_reshape)(f->m, x, LS_DIMS(rows_of(f), heads * D));
}

static ls_value *turn(const llama *f, ls_value *x, int64_t heads, const char *name) {
    const ls_rotation r = ls_architecture_rope(f->a, f->cut.block);
    if (r.type == LS_ROPE_NONE) return x;
    ls_sliced_name mine = ls_sliced_named(&f->cut.s, name);
    ls_rope_options o = {.name = mine.text, .heads = heads, .base = (float)r.base};
    if (f->positions) o.positions = ls_chunked_part(&f->cut.chunks, f->positions, f->cut.chunk);
    if (r.type != LS_ROPE_DEFAULT) o.factor = (float)r.factor;
    if (r.type == LS_ROPE_LLAMA3) {
        o.low = (float)r.low;
        o.high = (float)r.high;
        o.original = r.original_context;
    }
    float *kept = NULL;
    if (r.type == LS_ROPE_YARN) {
        const int64_t half = f->a->head_dim / 2;
        o.kept = kept = LS_NEW_ARRAY(float, (size_t)half);
        for (int64_t i = 0; i < half; i++) kept[i] = (float)ls_rope_kept(&r, 2 * half, i);
        o.scale = (float)r.scale;
    }
    if (r.type == LS_ROPE_LONGROPE) {
        o.factor = 1;
        o.divisors = ls_architecture_divisors(f->a);
        o.scale = (float)r.scale;
    }
    o.turned = f->a->turned;
    x = ls_layers_rope(f->m, x, o, f->cut.rows);
    free(kept);
    return x;
}

/* ---- attention ---- */

/* Does the slice compute keys and values, also for those that share them? */
static bool has_keys(const llama *f) { return f->cut.s.k % sharing(f) == 0; }

/* Products of the slice's heads of keys and values. */
static void add_keys(llama *f, ls_value *x, int64_t heads) {
    const ls_architecture *a = f->a;
    ls_sliced_part part = {.units = a->kv_heads, .size = a->head_dim};
    ls_linear_options o = {.out = heads * a->head_dim, .no_bias = !a->qkv_bias};
    if (!has_keys(f)) return;
    o.name = "k_proj";
    f->keys[f->cut.s.k] = linear(f, x, o, part);
    o.name = "v_proj";
    f->values[f->cut.s.k] = linear(f, x, o, part);
}

static void turn_keys(llama *f, int64_t heads) {
    int k = f->cut.s.k, share = sharing(f);
    if (!has_keys(f)) return;
    f->keys[k] = turn(f, norm_heads(f, f->keys[k], heads, true), heads, "rope_k");
    if (share == 1) return;
    ls_layers_fork_among(f->m, f->keys[k], f->cut.s.n, k, share, f->keys);
    ls_layers_fork_among(f->m, f->values[k], f->cut.s.n, k, share, f->values);
}

/* The slice's heads of queries: those that share its heads of keys and values; a part of them, if
 * several slices share a head of keys and values. */
static ls_sliced_part queries_of(const llama *f) {
    const ls_architecture *a = f->a;
    int64_t units = sharing(f) > 1 ? a->heads : a->kv_heads;
    return (ls_sliced_part){.units = units, .size = a->head_dim * (a->heads / units)};
}

static ls_attention_options heads_of(void *of, const char *name) {
    const llama *f = of;
    const ls_architecture *a = f->a;
    int64_t kv_heads = sharing(f) > 1 ? 1 : ls_sliced_count(&f->cut.s, a->kv_heads);
    ls_attention_options o = {.name = name,
                              .heads = sharing(f) > 1 ? ls_sliced_count(&f->cut.s, a->heads)
                                                      : kv_heads * (a->heads / a->kv_heads),
                              .kv_heads = kv_heads,
                              .causal = true,
                              .positions = f->positions};
    if (ls_architecture_is_local(a, f->cut.block) && a->window < f->T) o.window = a->window;
    return o;
}

static int64_t first_head(void *of) {
    const llama *f = of;
    int64_t units = queries_of(f).units;
    return ls_sliced_first(&f->cut.s, units) * (f->a->heads / units);
}

/* The slice's queries, keys and values. */
static ls_chunked_rows project(void *of, ls_value *x) {
    llama *f = of;
    ls_attention_options o = heads_of(f, NULL);
    ls_linear_options query = {.name = "q_proj", .no_bias = !f->a->qkv_bias};
    ls_value *q = widen(f, x, query, queries_of(f));
    add_keys(f, x, o.kv_heads);
    q = turn(f, norm_heads(f, q, o.heads, false), o.heads, "rope_q");
    if (f->a->query_scalar && f->a->query_scalar != f->a->head_dim)
        q = ls_layers_times(f->m, q,
                            (float)sqrt((double)f->a->head_dim / (double)f->a->query_scalar));
    turn_keys(f, o.kv_heads);
    return (ls_chunked_rows){{q, f->keys[f->cut.s.k], f->values[f->cut.s.k]}, 3};
}

static ls_value *project_out(void *of, ls_value *x) {
    const llama *f = of;
    ls_linear_options out = {.name = "o_proj", .no_bias = !f->a->o_bias};
    return narrow(f, x, out, queries_of(f));
}

/* ---- a block ---- */

static ls_value *feed(const llama *f, ls_value *x, int64_t units) {
    bool plain = !f->a->mlp_bias;
    ls_sliced_part hidden = {.units = units, .size = 1};
    ls_linear_options gate = {.name = "gate_proj", .no_bias = plain};
    ls_linear_options up = {.name = "up_proj", .no_bias = plain};
    ls_linear_options down = {.name = "down_proj", .no_bias = plain};
    ls_value *g = widen(f, x, gate, hidden), *y = widen(f, x, up, hidden);
    y = f->a->gemma ? ls_layers_gelu_gate(f->m, g, y) : (ls_silu_gate)(f->m, g, y);
    return narrow(f, y, down, hidden);
}

static ls_value *feed_forward(void *of, ls_value *x) {
    const llama *f = of;
    return feed(f, x, f->a->ffn);
}

/* Is there one loss for an even load in all layers together? */
static bool has_all(const llama *f) {
    return f->c->model.router_aux_scope == LS_ROUTERS_ALL && f->a->router_aux_loss > 0;
}

static ls_moe_options experts_of(const llama *f) {
    const ls_architecture *a = f->a;
    return (ls_moe_options){.experts = a->experts,
                            .per_token = a->experts_per_token,
                            .width = a->ffn,
                            .shared = f->c->model.shared_experts,
                            .normalize = a->norm_topk,
                            .balance = has_all(f) ? 0 : (float)a->router_aux_loss,
                            .capacity = (float)f->c->model.expert_capacity,
                            .bias_rate = (float)f->c->model.router_bias_rate,
                            .deviation = STD};
}

static ls_value *shared_experts(void *of, ls_value *x) {
    const llama *f = of;
    (ls_scope)(f->m, "shared_experts");
    ls_value *y = feed(f, x, f->c->model.shared_experts * f->a->ffn);
    ls_scope_end(f->m);
    return y;
}

/* x += what attention or the feed-forward layer has computed; Gemma's has a norm before. */
static void add_residual(const llama *f, ls_sequence *x, const ls_sequence *added, const char *name,
                         ls_dropout_in place) {
    ls_sequence y = f->a->gemma ? norm(f, added, name) : *added;
    *x = ls_cut_add(&f->cut, x, &y, place);
}

/* Adds what attention has computed; returns what the next layers read. */
static ls_sequence begin_feeding(llama *f, int chunk, ls_sequence *x, const ls_sequence *added) {
    static const char behind[] = "post_attention_layernorm";
    ls_cut_begin(&f->cut, chunk);
    add_residual(f, x, added, behind, LS_DROPOUT_IN_ATTENTION);
    return norm(f, x, f->a->gemma ? "pre_feedforward_layernorm" : behind);
}

/* x [chunks] += what experts compute of it, and y, which attention has computed. */
static void mix_chunks(llama *f, ls_sequence *x, ls_sequence *y) {
    const ls_moe_options o = experts_of(f);
    for (int k = 0; k < f->cut.chunks.n; k++) y[k] = begin_feeding(f, k, &x[k], &y[k]);
    (ls_scope)(f->m, "mlp");
    ls_expert_groups_mix(
        &f->cut, &(ls_expert_groups){&o, shared_experts, f, has_all(f) ? f->loads : NULL}, y);
    ls_scope_end(f->m);
    for (int k = 0; k < f->cut.chunks.n; k++) {
        ls_cut_begin(&f->cut, k);
        x[k] = ls_cut_add(&f->cut, &x[k], &y[k], LS_DROPOUT_IN_FEED_FORWARD);
    }
}

/* Adds the feed-forward layers of all chunks. */
static void feed_chunks(llama *f, ls_sequence *x, const ls_sequence *added) {
    for (int k = 0; k < f->cut.chunks.n; k++) {
        ls_sequence y = begin_feeding(f, k, &x[k], &added[k]);
        (ls_scope)(f->m, "mlp");
        y = ls_cut_in_slices(&f->cut, &y, feed_forward, f);
        ls_scope_end(f->m);
        add_residual(f, &x[k], &y, "post_feedforward_layernorm", LS_DROPOUT_IN_FEED_FORWARD);
    }
}

/* x [chunks] */
static void add_block(llama *f, ls_sequence *x) {
    const ls_cut_attention attention = {.of = f,
                                        .scope = "self_attn",
                                        .norm = norm_called(f, "input_layernorm"),
                                        .project = project,
                                        .heads = heads_of,
                                        .first_head = first_head,
                                        .project_out = project_out};
    ls_sequence added[LS_CHUNKS_MOST];
    ls_cut_attend(&f->cut, &attention, x, added);
    if (f->a->experts)
        mix_chunks(f, x, added);
    else
        feed_chunks(f, x, added);
}

/* ---- the model ---- */

static void add_dpo(const llama *f, const texts *t, ls_value *x, ls_value *tied) {
    ls_dpo_fields fields = {t->targets, t->rejected, t->reference};
    ls_dpo_options o = {.name = "lm_head",
                        .classes = f->a->vocab,
                        .tied = tied,
                        .loss = f->c->dpo.loss,
                        .beta = f->c->dpo.beta,
                        .smoothing = f->c->dpo.label_smoothing};
    ls_linear_dpo(f->m, x, &fields, o);
}

/* Adds the loss of the chunk that is being built. */
static void add_loss(llama *f, const texts *t, const ls_sequence *x, ls_value **tied) {
    ls_sequence_end end = {
        .name = "lm_head", .vocab = f->a->vocab, .tied = f->a->tied ? tied : NULL};
    if (ls_config_has_pairs(f->c))
        add_dpo(f, t, x->of[0], f->a->tied ? tied[0] : NULL);
    else
        ls_cut_loss(&f->cut, x, t->targets, end);
}

static void add_router_loss(llama *f) {
    for (int i = 0; i < f->cut.chunks.samples; i++) {
        ls_cut_begin(&f->cut, ls_chunked_of_sample(&f->cut.chunks, i).first);
        ls_layers_router_loss(f->m, f->loads[i], (float)f->a->router_aux_loss, f->a->layers);
    }
}

static void build(llama *f) {
    const ls_architecture *a = f->a;
    ls_cut *cut = &f->cut;
    ls_model *m = f->m;
    ls_sequence x[LS_CHUNKS_MOST];
    ls_value *tied[LS_CHUNKS_MOST][LS_SLICES_MOST];
    texts text = add_inputs(f);
    ls_embedding_options e = {
        .name = "embed_tokens", .rows = a->vocab, .width = a->width, .deviation = STD};
    if (cut->chunks.samples > 1) ls_build_together(m, cut->chunks.samples);
    (ls_scope)(m, "model");
    for (int k = 0; k < cut->chunks.n; k++) {
        ls_cut_begin(cut, k);
        ls_sequence_ids ids = {.ids = ls_chunked_part(&cut->chunks, text.tokens, k)};
        x[k] = ls_sequence_embed(&cut->s, &ids, e, tied[k]);
        if (a->gemma) x[k] = ls_sequence_times(&cut->s, &x[k], sqrtf((float)a->width));
        x[k] = ls_cut_embedded(cut, &x[k]);
    }
    for (int i = 0; i < (int)a->layers; i++) {
        (ls_scope)(m, "layers.%d", i);
        cut->block = i;
        add_block(f, x);
        ls_scope_end(m);
    }
    if (a->experts && has_all(f)) add_router_loss(f);
    for (int k = 0; k < cut->chunks.n; k++) {
        ls_cut_begin(cut, k);
        x[k] = norm(f, &x[k], "norm");
    }
    ls_scope_end(m);
    for (int k = 0; k < cut->chunks.n; k++) {
        ls_cut_begin(cut, k);
        add_loss(f, &text, &x[k], tied[k]);
    }
}

static ls_status check_longrope(const ls_config *c, const ls_architecture *a, ls_error *e) {
    float out[LS_ROPE_PAIRS];
    const char *const lists[] = {c->model.rope_short, c->model.rope_long};
    for (int k = 0; k < LS_NROPE_LISTS; k++)
        if (!ls_llama_read_divisors(lists[k], ls_architecture_pairs(a), out))
            return ls_fail(
                e, LS_EINVAL,
                "model.rope_%s: a list of %lld numbers from 1e-6 to 1e6 is expected, one "
                "for each pair of a head's numbers that is turned (at most %d)",
                k == LS_ROPE_LONG ? "long" : "short", (long long)ls_architecture_pairs(a),
                LS_ROPE_PAIRS);
    if (a->rope.original_context < 2)
        return ls_fail(e, LS_EINVAL,
                       "model.rope_original is %lld; model.rope longrope needs 2 or "
                       "more",
                       (long long)a->rope.original_context);
    return LS_OK;
}

static ls_status check(const ls_architecture *a, ls_error *e) {
    if (a->heads % a->kv_heads)
        return ls_fail(e, LS_EINVAL, "model.kv_heads %lld does not divide model.heads %lld",
                       (long long)a->kv_heads, (long long)a->heads);
    if (a->experts && a->mlp_bias)
        return ls_fail(e, LS_EINVAL, "model.bias: experts have no biases; use none or attention");
    if (a->experts && a->gemma)
        return ls_fail(e, LS_EINVAL, "model.block: gemma3 has no experts; leave model.experts out");
    if (a->full_every == 1)
        return ls_fail(e, LS_EINVAL,
                       "model.full_attention_every is 1: no layer would have model.window; leave "
                       "both out");
    if (a->no_rope_every == 1)
        return ls_fail(e, LS_EINVAL,
                       "model.no_rope_every is 1: no layer would have rotary positions; use 2 or "
                       "more, or 0 for all layers");
    if (a->head_dim % 2)
        return ls_fail(e, LS_EINVAL,
                       "a head has %lld numbers (model.head_dim, or model.width / model.heads); "
                       "rotary positions need an even number",
                       (long long)a->head_dim);
    if ((a->rope.type == LS_ROPE_LLAMA3 || a->rope.type == LS_ROPE_YARN) &&
        a->rope.high <= a->rope.low)
        return ls_fail(e, LS_EINVAL, "model.rope_high %g is not above model.rope_low %g",
                       a->rope.high, a->rope.low);
    if (a->turned % 2 || a->turned > a->head_dim)
        return ls_fail(e, LS_EINVAL,
                       "model.rope_dims is %lld; it must be an even number of a head's %lld",
                       (long long)a->turned, (long long)a->head_dim);
    return LS_OK;
}

ls_status ls_llama_create(const ls_config *c, bool cut, ls_model *m_p, ls_error *e) {
    ls_model m = {0};
    ls_architecture a = ls_llama_architecture(c);
    ls_sliced_sizes sizes = {
        .heads = a.heads, .kv_heads = a.kv_heads, .vocab = a.vocab, .experts = a.experts};
    sizes.ffn = a.experts ? a.ffn * c->model.shared_experts : a.ffn;
    LS_TRY(check(&a, e));
    if (a.rope.type == LS_ROPE_LONGROPE) LS_TRY(check_longrope(c, &a, e));
    if (a.experts && c->model.router_aux_scope == LS_ROUTERS_ALL && a.router_aux_loss > 0 &&
        c->parallel.mesh_pipe > 1)
        return ls_fail(e, LS_EINVAL,
                       "model.router_aux_scope: model: the loads of all layers' experts have one "
                       "loss, so a pipeline (parallel.mesh.pipe) can't cut between them; use "
                       "another mesh, model.router_aux_loss=0, or model.router_aux_scope=layer");
    LS_TRY(ls_sliced_check(c, &sizes, e));
    LS_TRY(ls_chunked_check(c, e));
    llama f = {.c = c, .a = &a, .m = &m, .cut = ls_cut_of(c, !cut, &m)};
    f.T = f.cut.chunks.T;
    build(&f);
    if (f.cut.s.n > 1 || ls_expert_groups_count(&f.cut, a.experts) > 1) ls_tensor_part_number(&m);
    ls_layers_note_loads(&m);
    return ls_build_finish_as(&m, m_p, e);
}
