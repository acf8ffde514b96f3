/* llama.c - see llama.h. */
#include "networks/llama.h"

#include "layers/layers.h"
#include "layers/moe.h"
#include "model/tensor_part.h"
#include "networks/adapters.h"
#include "networks/chunked.h"
#include "networks/expert_groups.h"
#include "networks/sequence.h"

static const float STD = 0.02f;

typedef struct llama {
    const ls_config *c;
    const ls_architecture *a;
    ls_model *m;
    ls_sliced s;
    ls_chunked chunks;
    int chunk;  /* whose layers are being added */
    int groups; /* of experts; 1: layers have all */
    int64_t T;
    ls_value *positions; /* NULL: those of the rows */
    /* [s.n] of slices that share a head of keys and values, which the first of them computes. */
    ls_value *keys[LS_SLICES_MOST], *values[LS_SLICES_MOST];
    ls_value *q_norms[LS_SLICES_MOST], *k_norms[LS_SLICES_MOST]; /* weights of model.qk_norm */
} llama;

/* Rows of a sample, in a chunk. */
static int64_t rows_of(const llama *f) { return ls_chunked_rows_each(&f->chunks); }

/* What a sample has: tokens to read, tokens to predict; and of a pair where its second text begins,
 * and the reference's log-probabilities. */
typedef struct texts {
    ls_value *tokens, *targets, *rejected, *reference;
} texts;

/* A text's targets are its tokens, one further. Those of conversations are a field of their own, in
 * which -1 has no loss; several in a sample have positions, each from 0. */
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

static ls_sequence norm(const llama *f, const ls_sequence *x, const char *name) {
    return ls_sequence_normalize(&f->s, x, (ls_sequence_norm){name, (float)f->a->norm_eps});
}

/* A product, or the slice's part of one. */
static ls_value *linear(const llama *f, ls_value *x, ls_linear_options o, ls_sliced_part p) {
    ls_sliced_name mine = ls_sliced_named(&f->s, o.name);
    o.out_in = true;
    o.deviation = STD;
    o.lora = ls_adapters_of(f->c, f->m, o.name);
    o.name = mine.text;
    ls_value *y = (ls_linear)(f->m, x, o);
    p.groups = 1;
    ls_sliced_set(&f->s, y, p);
    p.param = 1;
    if (p.dim == 0 && !o.no_bias) ls_sliced_set(&f->s, y, p);
    return y;
}

/* The slice's rows: its share of `units` of `size` rows each. */
static ls_value *widen(const llama *f, ls_value *x, ls_linear_options o, ls_sliced_part p) {
    o.out = ls_sliced_count(&f->s, p.units) * p.size;
    return linear(f, x, o, p);
}

/* Its columns; the first slice has the bias. */
static ls_value *narrow(const llama *f, ls_value *x, ls_linear_options o, ls_sliced_part p) {
    o.out = f->a->width;
    o.no_bias = o.no_bias || f->s.k > 0;
    p.dim = 1;
    return linear(f, x, o, p);
}

/* Where there are more slices than heads of keys and values: the slices that share one. */
static int sharing(const llama *f) {
    return f->s.n > f->a->kv_heads ? f->s.n / (int)f->a->kv_heads : 1;
}

/* The weight of a norm that the heads of all slices share, for every step-th slice: the first one has
 * the parameter. */
static ls_value *weight_of(const llama *f, const char *name, int step, ls_value **weights) {
    if (f->s.k == 0) {
        ls_value *weight = ls_layers_ones(f->m, name, f->a->head_dim);
        ls_layers_fork_every(f->m, weight, f->s.n, step, weights);
    }
    return weights[f->s.k];
}

/* Each head by itself. */
static ls_value *norm_heads(llama *f, ls_value *x, int64_t heads, bool of_keys) {
    int64_t D = f->a->head_dim;
    const char *name = of_keys ? "k_norm" : "q_norm";
    if (!f->a->qk_norm) return x;
    x = (ls_reshape)(f->m, x, LS_DIMS(rows_of(f), heads, D));
    if (f->s.n == 1) {
        x = (ls_rms_norm)(f->m, x,
                          (ls_rms_norm_options){.name = name, .eps = (float)f->a->norm_eps});
    } else {
        ls_value *weight = of_keys ? weight_of(f, name, sharing(f), f->k_norms)
                                   : weight_of(f, name, 1, f->q_norms);
        x = ls_layers_rms_norm_by(f->m, x, weight, (float)f->a->norm_eps);
    }
    return (ls_reshape)(f->m, x, LS_DIMS(rows_of(f), heads * D));
}

static ls_value *turn(const llama *f, ls_value *x, int64_t heads, const char *name) {
    const ls_rotation *r = &f->a->rope;
    ls_sliced_name mine = ls_sliced_named(&f->s, name);
    ls_rope_options o = {.name = mine.text, .heads = heads, .base = (float)r->base};
    ls_row_range all = {f->chunks.together ? 0 : rows_of(f) * f->chunk, f->T};
    if (f->positions) o.positions = ls_chunked_part(&f->chunks, f->positions, f->chunk);
    if (r->type != LS_ROPE_DEFAULT) o.factor = (float)r->factor;
    if (r->type == LS_ROPE_LLAMA3) {
        o.low = (float)r->low;
        o.high = (float)r->high;
        o.original = r->original_context;
    }
    return ls_layers_rope(f->m, x, o, all);
}

/* ---- attention ---- */

/* Does the slice compute keys and values, also for those that share them? */
static bool has_keys(const llama *f) { return f->s.k % sharing(f) == 0; }

/* Products of the slice's heads of keys and values. */
static void add_keys(llama *f, ls_value *x, int64_t heads) {
    const ls_architecture *a = f->a;
    ls_sliced_part part = {.units = a->kv_heads, .size = a->head_dim};
    ls_linear_options o = {.out = heads * a->head_dim, .no_bias = !a->qkv_bias};
    if (!has_keys(f)) return;
    o.name = "k_proj";
    f->keys[f->s.k] = linear(f, x, o, part);
    o.name = "v_proj";
    f->values[f->s.k] = linear(f, x, o, part);
}

static void turn_keys(llama *f, int64_t heads) {
    int k = f->s.k, share = sharing(f);
    if (!has_keys(f)) return;
    f->keys[k] = turn(f, norm_heads(f, f->keys[k], heads, true), heads, "rope_k");
    if (share == 1) return;
    ls_layers_fork_among(f->m, f->keys[k], f->s.n, k, share, f->keys);
    ls_layers_fork_among(f->m, f->values[k], f->s.n, k, share, f->values);
}

/* The slice's heads of queries: those that share its heads of keys and values; a part of them, if
 * several slices share a head of keys and values. */
static ls_sliced_part queries_of(const llama *f) {
    const ls_architecture *a = f->a;
    int64_t units = sharing(f) > 1 ? a->heads : a->kv_heads;
    return (ls_sliced_part){.units = units, .size = a->head_dim * (a->heads / units)};
}

static ls_attention_options heads_of(const llama *f, const char *name) {
    const ls_architecture *a = f->a;
    int64_t kv_heads = sharing(f) > 1 ? 1 : ls_sliced_count(&f->s, a->kv_heads);
    ls_attention_options o = {.name = name,
                              .heads = sharing(f) > 1 ? ls_sliced_count(&f->s, a->heads)
                                                      : kv_heads * (a->heads / a->kv_heads),
                              .kv_heads = kv_heads,
                              .causal = true,
                              .positions = f->positions};
    if (a->window && a->window < f->T) o.window = a->window;
    return o;
}

/* The slice's queries, keys and values. */
static ls_chunked_rows project(llama *f, ls_value *x) {
    ls_attention_options o = heads_of(f, NULL);
    ls_linear_options query = {.name = "q_proj", .no_bias = !f->a->qkv_bias};
    ls_value *q = widen(f, x, query, queries_of(f));
    add_keys(f, x, o.kv_heads);
    q = turn(f, norm_heads(f, q, o.heads, false), o.heads, "rope_q");
    turn_keys(f, o.kv_heads);
    return (ls_chunked_rows){{q, f->keys[f->s.k], f->values[f->s.k]}, 3};
}

static ls_value *project_out(const llama *f, ls_value *x) {
    ls_linear_options out = {.name = "o_proj", .no_bias = !f->a->o_bias};
    return narrow(f, x, out, queries_of(f));
}

static ls_value *attend(llama *f, ls_value *x) {
    ls_sliced_name mine = ls_sliced_named(&f->s, "attention");
    ls_attention_options o = heads_of(f, mine.text);
    ls_chunked_rows rows = project(f, x);
    o.keys = rows.x[1];
    o.values = rows.x[2];
    return project_out(f, (ls_attention)(f->m, rows.x[0], o));
}

static ls_value *feed(const llama *f, ls_value *x, int64_t units) {
    bool plain = !f->a->mlp_bias;
    ls_sliced_part hidden = {.units = units, .size = 1};
    ls_linear_options gate = {.name = "gate_proj", .no_bias = plain};
    ls_linear_options up = {.name = "up_proj", .no_bias = plain};
    ls_linear_options down = {.name = "down_proj", .no_bias = plain};
    ls_value *g = widen(f, x, gate, hidden);
    return narrow(f, (ls_silu_gate)(f->m, g, widen(f, x, up, hidden)), down, hidden);
}

static ls_value *feed_forward(llama *f, ls_value *x) { return feed(f, x, f->a->ffn); }

/* The sum of what the slices compute from x. */
static ls_sequence in_slices(llama *f, const ls_sequence *x,
                             ls_value *(*compute)(llama *, ls_value *)) {
    ls_value *of[LS_SLICES_MOST];
    ls_sliced *s = &f->s;
    if (s->n == 1) return (ls_sequence){{compute(f, x->of[0])}};
    ls_sequence_fork(s, x, of);
    for (s->k = 0; s->k < s->n; s->k++) {
        ls_sliced_begin(s);
        of[s->k] = compute(f, of[s->k]);
    }
    s->k = 0;
    return ls_sequence_join(s, of);
}

static ls_moe_options experts_of(const llama *f) {
    const ls_architecture *a = f->a;
    return (ls_moe_options){.experts = a->experts,
                            .per_token = a->experts_per_token,
                            .width = a->ffn,
                            .shared = f->c->model.shared_experts,
                            .normalize = a->norm_topk,
                            .balance = (float)a->router_aux_loss,
                            .capacity = (float)f->c->model.expert_capacity,
                            .bias_rate = (float)f->c->model.router_bias_rate,
                            .deviation = STD};
}

/* The slice's experts, and its hidden units of the shared ones. */
static ls_value *mix_slice(const llama *f, ls_value *x, ls_router_values r,
                           const ls_moe_options *o) {
    const ls_sliced *s = &f->s;
    ls_sliced_name mine = ls_sliced_named(s, "experts");
    int64_t first = ls_sliced_first(s, o->experts), n = ls_sliced_count(s, o->experts);
    ls_experts_slice own = {.name = mine.text, .first = first, .end = first + n};
    ls_value *y = ls_layers_experts_slice(f->m, x, r, o, own);
    if (!o->shared) return y;
    (ls_scope)(f->m, "shared_experts");
    ls_value *shared = feed(f, x, o->shared * o->width);
    ls_scope_end(f->m);
    return (ls_add)(f->m, y, shared);
}

/* Slices divide the experts. All of them read what the router says, and choose. */
static ls_sequence mix_experts(llama *f, const ls_sequence *x) {
    ls_moe_options o = experts_of(f);
    ls_value *of[LS_SLICES_MOST], *logits_of[LS_SLICES_MOST], *scores_of[LS_SLICES_MOST] = {0};
    ls_sliced *s = &f->s;
    ls_router_values r;
    if (f->groups > 1) {
        of[0] = x->of[0];
        ls_expert_groups_mix(&f->chunks, ls_chunked_count(f->c), &o, of, of);
        return (ls_sequence){{of[0]}};
    }
    if (s->n == 1) return (ls_sequence){{ls_layers_moe(f->m, x->of[0], &o, true)}};
    if (s->sequence) ls_sequence_fork(s, x, of);
    r = ls_layers_route(f->m, s->sequence ? of[0] : x->of[0], &o);
    if (!s->sequence) ls_sequence_fork(s, x, of);
    ls_layers_fork(f->m, r.logits, s->n, logits_of);
    if (r.scores) ls_layers_fork(f->m, r.scores, s->n, scores_of);
    for (s->k = 0; s->k < s->n; s->k++) {
        ls_sliced_begin(s);
        ls_router_values mine = {logits_of[s->k], scores_of[s->k]};
        of[s->k] = mix_slice(f, of[s->k], mine, &o);
    }
    s->k = 0;
    ls_sequence y = ls_sequence_join(s, of);
    ls_layers_router_balance(f->m, r, &o);
    return y;
}

/* y: what attention adds. */
static ls_sequence end_block(llama *f, const ls_sequence *x, const ls_sequence *y) {
    ls_sequence sum = ls_sequence_add(&f->s, x, y);
    ls_sequence z = norm(f, &sum, "post_attention_layernorm");
    (ls_scope)(f->m, "mlp");
    z = f->a->experts ? mix_experts(f, &z) : in_slices(f, &z, feed_forward);
    ls_scope_end(f->m);
    return ls_sequence_add(&f->s, &sum, &z);
}

static ls_sequence add_block(llama *f, const ls_sequence *x) {
    ls_sequence y = norm(f, x, "input_layernorm");
    (ls_scope)(f->m, "self_attn");
    y = in_slices(f, &y, attend);
    ls_scope_end(f->m);
    return end_block(f, x, &y);
}

/* ---- chunks ---- */

static void begin_chunk(llama *f, int chunk) {
    f->chunk = chunk;
    f->s.k = 0;
    ls_chunked_begin(&f->chunks, chunk);
    if (f->s.n > 1) ls_sliced_begin(&f->s);
}

/* rows: the queries, keys and values of each slice, in the chunk. */
static void project_chunk(llama *f, const ls_sequence *x, ls_chunked_rows *rows) {
    ls_value *of[LS_SLICES_MOST] = {x->of[0]};
    ls_sliced *s = &f->s;
    if (s->n > 1) ls_sequence_fork(s, x, of);
    for (s->k = 0; s->k < s->n; s->k++) {
        if (s->n > 1) ls_sliced_begin(s);
        rows[s->k] = project(f, of[s->k]);
    }
    s->k = 0;
}

/* heads [slices]: what the chunk's rows get of each slice's heads. */
static ls_sequence project_chunk_out(llama *f, ls_value *const *heads) {
    ls_value *of[LS_SLICES_MOST];
    ls_sliced *s = &f->s;
    for (s->k = 0; s->k < s->n; s->k++) {
        if (s->n > 1) ls_sliced_begin(s);
        of[s->k] = project_out(f, heads[s->k]);
    }
    s->k = 0;
    return s->n > 1 ? ls_sequence_join(s, of) : (ls_sequence){{of[0]}};
}

/* The heads of each slice, of all chunks' rows. */
static void attend_slices(llama *f, ls_chunked_rows rows[][LS_SLICES_MOST],
                          ls_value *heads[][LS_SLICES_MOST]) {
    ls_chunked_rows mine[LS_CHUNKS_MOST];
    ls_value *of[LS_CHUNKS_MOST];
    ls_sliced *s = &f->s;
    for (s->k = 0; s->k < s->n; s->k++) {
        ls_sliced_name name = ls_sliced_named(s, "attention");
        for (int k = 0; k < f->chunks.n; k++) mine[k] = rows[k][s->k];
        if (s->n > 1) ls_sliced_begin(s);
        ls_chunked_attend(&f->chunks, mine, heads_of(f, name.text), of);
        for (int k = 0; k < f->chunks.n; k++) heads[k][s->k] = of[k];
    }
}

/* of [n]: what attention adds to each chunk. */
static void attend_chunks(llama *f, const ls_sequence *x, ls_sequence *of) {
    ls_chunked_rows rows[LS_CHUNKS_MOST][LS_SLICES_MOST];
    ls_value *heads[LS_CHUNKS_MOST][LS_SLICES_MOST];
    for (int k = 0; k < f->chunks.n; k++) {
        begin_chunk(f, k);
        ls_sequence y = norm(f, &x[k], "input_layernorm");
        (ls_scope)(f->m, "self_attn");
        if (f->chunks.together)
            of[k] = (ls_sequence){{attend(f, y.of[0])}};
        else
            project_chunk(f, &y, rows[k]);
        ls_scope_end(f->m);
    }
    if (f->chunks.together) return;
    (ls_scope)(f->m, "self_attn");
    attend_slices(f, rows, heads);
    for (int k = 0; k < f->chunks.n; k++) {
        begin_chunk(f, k);
        of[k] = project_chunk_out(f, heads[k]);
    }
    ls_scope_end(f->m);
}

/* Adds it, and what experts compute of the sums. */
static void mix_chunks(llama *f, ls_sequence *x, const ls_sequence *added) {
    ls_value *of[LS_CHUNKS_MOST];
    ls_moe_options o = experts_of(f);
    for (int k = 0; k < f->chunks.n; k++) {
        begin_chunk(f, k);
        x[k] = ls_sequence_add(&f->s, &x[k], &added[k]);
        of[k] = norm(f, &x[k], "post_attention_layernorm").of[0];
    }
    (ls_scope)(f->m, "mlp");
    ls_expert_groups_mix(&f->chunks, f->chunks.n, &o, of, of);
    ls_scope_end(f->m);
    for (int k = 0; k < f->chunks.n; k++) {
        begin_chunk(f, k);
        x[k].of[0] = (ls_add)(f->m, x[k].of[0], of[k]);
    }
}

static void add_chunked_block(llama *f, ls_sequence *x) {
    ls_sequence of[LS_CHUNKS_MOST];
    attend_chunks(f, x, of);
    if (f->a->experts) {
        mix_chunks(f, x, of);
        return;
    }
    for (int k = 0; k < f->chunks.n; k++) {
        begin_chunk(f, k);
        x[k] = end_block(f, &x[k], &of[k]);
    }
}

static void add_dpo(const llama *f, const texts *t, ls_value *x, ls_value *tied) {
    ls_dpo_fields fields = {t->targets, t->rejected, t->reference};
    ls_dpo_options o = {.name = "lm_head",
                        .classes = f->a->vocab,
                        .tied = tied,
                        .loss = (ls_dpo_loss)f->c->dpo.loss,
                        .beta = f->c->dpo.beta,
                        .smoothing = f->c->dpo.label_smoothing};
    ls_linear_dpo(f->m, x, &fields, o);
}

static void add_loss(llama *f, const texts *t, const ls_sequence *x, ls_value **tied) {
    ls_sequence_end end = {.name = "lm_head", .vocab = f->a->vocab, .tied = tied};
    if (ls_config_has_pairs(f->c))
        add_dpo(f, t, x->of[0], tied ? tied[0] : NULL);
    else
        ls_sequence_loss(&f->s, x, t->targets, end);
}

static void add_loss_of_chunk(llama *f, const texts *t, const ls_sequence *x, ls_value **tied) {
    ls_value *targets = ls_chunked_part(&f->chunks, t->targets, f->chunk);
    ls_sequence_end end = {
        .name = "lm_head", .vocab = f->a->vocab, .tied = f->a->tied ? tied : NULL};
    if (!f->chunks.together) end.all_targets = t->targets;
    ls_sequence_loss(&f->s, x, targets, end);
}

/* Layers are added chunk by chunk, between those of attention and of experts. */
static void build_chunks(llama *f) {
    const ls_architecture *a = f->a;
    ls_model *m = f->m;
    ls_sequence x[LS_CHUNKS_MOST];
    ls_value *tied[LS_CHUNKS_MOST][LS_SLICES_MOST];
    texts text = add_inputs(f);
    ls_embedding_options e = {
        .name = "embed_tokens", .rows = a->vocab, .width = a->width, .deviation = STD};
    if (f->chunks.together) ls_build_together(m, f->chunks.n);
    (ls_scope)(m, "model");
    for (int k = 0; k < f->chunks.n; k++) {
        begin_chunk(f, k);
        ls_sequence_ids ids = {.ids = ls_chunked_part(&f->chunks, text.tokens, k)};
        x[k] = ls_sequence_embed(&f->s, &ids, e, tied[k]);
    }
    for (int i = 0; i < (int)a->layers; i++) {
        (ls_scope)(m, "layers.%d", i);
        add_chunked_block(f, x);
        ls_scope_end(m);
    }
    for (int k = 0; k < f->chunks.n; k++) {
        begin_chunk(f, k);
        x[k] = norm(f, &x[k], "norm");
    }
    ls_scope_end(m);
    for (int k = 0; k < f->chunks.n; k++) {
        begin_chunk(f, k);
        add_loss_of_chunk(f, &text, &x[k], tied[k]);
    }
}

static void build(llama *f) {
    const ls_architecture *a = f->a;
    ls_model *m = f->m;
    ls_value *of[LS_SLICES_MOST];
    texts text = add_inputs(f);
    (ls_scope)(m, "model");
    ls_embedding_options e = {
        .name = "embed_tokens", .rows = a->vocab, .width = a->width, .deviation = STD};
    ls_sequence_ids ids = {.ids = text.tokens};
    ls_sequence x = ls_sequence_embed(&f->s, &ids, e, of);
    for (int i = 0; i < (int)a->layers; i++) {
        (ls_scope)(m, "layers.%d", i);
        x = add_block(f, &x);
        ls_scope_end(m);
    }
    x = norm(f, &x, "norm");
    ls_scope_end(m);
    add_loss(f, &text, &x, a->tied ? of : NULL);
}

static ls_status check(const ls_architecture *a, ls_error *e) {
    if (a->heads % a->kv_heads)
        return ls_fail(e, LS_EINVAL, "model.kv_heads %lld does not divide model.heads %lld",
                       (long long)a->kv_heads, (long long)a->heads);
    if (a->experts && a->mlp_bias)
        return ls_fail(e, LS_EINVAL, "model.bias: experts have no biases; use none or attention");
    if (a->head_dim % 2)
        return ls_fail(e, LS_EINVAL,
                       "a head has %lld numbers (model.head_dim, or model.width / model.heads); "
                       "rotary positions need an even number",
                       (long long)a->head_dim);
    if (a->rope.type == LS_ROPE_LLAMA3 && a->rope.high <= a->rope.low)
        return ls_fail(e, LS_EINVAL, "model.rope_high %g is not above model.rope_low %g",
                       a->rope.high, a->rope.low);
    return LS_OK;
}

ls_status ls_llama_create(const ls_config *c, bool cut, ls_model *m_p, ls_error *e) {
    ls_model m = {0};
    ls_architecture a = ls_llama_architecture(c);
    ls_sliced_sizes sizes = {
        .heads = a.heads, .kv_heads = a.kv_heads, .vocab = a.vocab, .experts = a.experts};
    ls_sliced slices = {
        .m = &m, .n = (int)c->parallel.tensor_virtual, .sequence = c->parallel.sequence};
    sizes.ffn = a.experts ? a.ffn * c->model.shared_experts : a.ffn;
    LS_TRY(check(&a, e));
    LS_TRY(ls_sliced_check(c, &sizes, e));
    LS_TRY(ls_chunked_check(c, e));
    ls_chunked chunks = {.m = &m, .n = cut ? ls_chunked_count(c) : 1, .T = ls_config_positions(c)};
    chunks.together = cut && c->parallel.expert_virtual > 1;
    llama f = {.c = c, .a = &a, .m = &m, .s = slices, .chunks = chunks, .T = chunks.T};
    f.groups = ls_expert_groups_count(c);
    if (chunks.n > 1)
        build_chunks(&f);
    else
        build(&f);
    if (slices.n > 1 || f.groups > 1) ls_tensor_part_number(&m);
    ls_layers_note_loads(&m);
    ls_status s = ls_build_finish(&m, e);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_model_free(&m);
    return s;
}
