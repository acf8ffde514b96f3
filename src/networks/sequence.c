/* sequence.c - see sequence.h. */
#include "networks/sequence.h"

#include "layers/positions.h"
#include "layers/row_parts.h"
#include "layers/vocabulary_slices.h"

ls_status ls_sequence_check(const ls_config *c, ls_error *e) {
    int64_t n = c->parallel.tensor_virtual, chunks = c->parallel.context_virtual;
    int64_t T = ls_config_positions(c) / chunks, below = n;
    if (!c->parallel.sequence) return LS_OK;
    if (n == 1)
        return ls_fail(e, LS_EINVAL,
                       "parallel.sequence: the model has no slices, which divide the rows of a "
                       "sample; set parallel.tensor_virtual to 2 or more, or leave "
                       "parallel.sequence out");
    if (T % n == 0) return LS_OK;
    while (T % below) below--;
    return ls_fail(e, LS_EINVAL,
                   "parallel.sequence: parallel.tensor_virtual %lld does not divide the %lld "
                   "positions of a %s (model.context); use %lld, or a context of %lld",
                   (long long)n, (long long)T, chunks > 1 ? "chunk" : "sample", (long long)below,
                   (long long)((T + n - T % n) * chunks));
}

/* ---- norms, sums ---- */

static ls_value *normalize(ls_model *m, ls_value *x, ls_sequence_norm o) {
    if (o.eps > 0)
        return ls_layers_rms_norm(m, x, (ls_rms_norm_options){.name = o.name, .eps = o.eps},
                                  o.plus_one);
    return (ls_layer_norm)(m, x, (ls_layer_norm_options){.name = o.name});
}

ls_sequence ls_sequence_normalize(const ls_sliced *s, const ls_sequence *x, ls_sequence_norm o) {
    ls_value *weights[LS_SLICES_MOST];
    ls_sequence y = {{NULL}};
    if (!s->sequence) {
        y.of[0] = normalize(s->m, x->of[0], o);
        return y;
    }
    int64_t C = ls_value_last(x->of[0]);
    ls_value *weight = o.eps > 0 ? ls_layers_weight(s->m, o.name, C, o.plus_one)
                                 : ls_layers_ones_zeros(s->m, o.name, C);
    ls_layers_fork(s->m, weight, s->n, weights);
    for (int k = 0; k < s->n; k++) {
        ls_build_slice(s->m, k, s->n);
        y.of[k] = o.eps > 0 ? ls_layers_rms_norm_by(s->m, x->of[k], weights[k], o.eps)
                            : ls_layers_layer_norm_by(s->m, x->of[k], weights[k]);
    }
    ls_build_slice(s->m, 0, s->n);
    return y;
}

ls_sequence ls_sequence_add(const ls_sliced *s, const ls_sequence *a, const ls_sequence *b) {
    ls_sequence y = {{NULL}};
    if (!s->sequence) {
        y.of[0] = (ls_add)(s->m, a->of[0], b->of[0]);
        return y;
    }
    for (int k = 0; k < s->n; k++) {
        ls_build_slice(s->m, k, s->n);
        y.of[k] = (ls_add)(s->m, a->of[k], b->of[k]);
    }
    ls_build_slice(s->m, 0, s->n);
    return y;
}

ls_sequence ls_sequence_times(const ls_sliced *s, const ls_sequence *x, float factor) {
    ls_sequence y = {{NULL}};
    for (int k = 0; k < (s->sequence ? s->n : 1); k++) {
        if (s->sequence) ls_build_slice(s->m, k, s->n);
        y.of[k] = ls_layers_times(s->m, x->of[k], factor);
    }
    if (s->sequence) ls_build_slice(s->m, 0, s->n);
    return y;
}

/* ---- slices ---- */

void ls_sequence_fork(const ls_sliced *s, const ls_sequence *x, ls_value **of) {
    if (s->sequence)
        ls_layers_gather_rows(s->m, x->of, s->n, of);
    else
        ls_layers_fork(s->m, x->of[0], s->n, of);
}

ls_sequence ls_sequence_join(const ls_sliced *s, ls_value **of) {
    ls_sequence y = {{NULL}};
    if (s->sequence)
        ls_layers_scatter_rows(s->m, of, s->n, y.of);
    else
        y.of[0] = ls_layers_join(s->m, of, s->n);
    return y;
}

/* ---- the vocabulary ---- */

static ls_value *add_positions(const ls_sliced *s, ls_value *x, const ls_sequence_ids *ids) {
    if (!ids->positions) return x;
    return ls_layers_positions(s->m, x, ids->rows, ids->positions, ids->deviation);
}

/* Backward of a tied embedding runs for all micro-batches at once, and the gradient of what it has
 * computed comes from its own worker: so other slices read copies of it, or of its rows. */
ls_sequence ls_sequence_embed(ls_sliced *s, const ls_sequence_ids *ids, ls_embedding_options o,
                              ls_value **of) {
    ls_value *copies[LS_SLICES_MOST];
    ls_sequence y = {{NULL}};
    const char *name = o.name;
    int64_t rows = o.rows;
    if (s->n == 1) {
        of[0] = (ls_embedding)(s->m, ids->ids, o);
        y.of[0] = add_positions(s, of[0], ids);
        return y;
    }
    for (s->k = 0; s->k < s->n; s->k++) {
        ls_sliced_begin(s);
        ls_sliced_name mine = ls_sliced_named(s, name);
        o.name = mine.text;
        o.rows = ls_sliced_count(s, rows);
        of[s->k] = ls_layers_embedding_slice(s->m, ids->ids, o, ls_sliced_first(s, rows), rows);
        ls_sliced_set(s, of[s->k], (ls_sliced_part){.groups = 1, .units = rows, .size = 1});
        copies[s->k] = s->sequence ? of[s->k] : ls_layers_copy(s->m, of[s->k]);
    }
    s->k = 0;
    ls_sliced_begin(s);
    if (s->sequence) copies[0] = add_positions(s, copies[0], ids);
    y = ls_sequence_join(s, copies);
    if (!s->sequence) y.of[0] = add_positions(s, y.of[0], ids);
    return y;
}

void ls_sequence_loss(const ls_sliced *s, const ls_sequence *x, ls_value *targets,
                      ls_sequence_end o) {
    ls_vocabulary_slices v = {
        .n = s->n, .classes = o.vocab, .tied = o.tied, .name = o.name, .all_labels = o.all_targets};
    ls_linear_cross_entropy_options whole = {
        .name = o.name, .classes = o.vocab, .tied = o.tied ? o.tied[0] : NULL};
    ls_value *of[LS_SLICES_MOST];
    if (s->n == 1 && o.all_targets) {
        ls_layers_chunk_cross_entropy(s->m, x->of[0], targets, o.all_targets, whole);
        return;
    }
    if (s->n == 1) {
        (ls_linear_cross_entropy)(s->m, x->of[0], targets, whole);
        return;
    }
    ls_sequence_fork(s, x, of);
    ls_layers_vocabulary(s->m, of, targets, &v);
}
