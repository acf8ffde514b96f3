/* cut.c - see cut.h. */
#include "networks/cut.h"

ls_cut ls_cut_of(const ls_config *c, bool whole, ls_model *m) {
    return (ls_cut){
        .s = {.m = m, .n = (int)c->parallel.tensor_virtual, .sequence = c->parallel.sequence},
        .chunks = ls_chunked_of(c, !whole, m),
        .dropout = whole ? 0 : (float)c->model.dropout};
}

void ls_cut_begin(ls_cut *c, int chunk) {
    c->chunk = chunk;
    c->rows = ls_chunked_begin(&c->chunks, chunk);
    ls_cut_begin_slice(c, 0);
}

void ls_cut_begin_slice(ls_cut *c, int slice) {
    c->s.k = slice;
    if (c->s.n > 1) ls_sliced_begin(&c->s);
}

/* ---- slices ---- */

void ls_cut_fork(ls_cut *c, const ls_sequence *x, ls_value **of) {
    c->s.k = 0;
    if (c->s.n > 1)
        ls_sequence_fork(&c->s, x, of);
    else
        of[0] = x->of[0];
}

ls_sequence ls_cut_join(ls_cut *c, ls_value **of) {
    c->s.k = 0;
    return c->s.n > 1 ? ls_sequence_join(&c->s, of) : (ls_sequence){{of[0]}};
}

ls_sequence ls_cut_in_slices(ls_cut *c, const ls_sequence *x, ls_cut_compute *compute, void *of) {
    ls_value *y[LS_SLICES_MOST];
    ls_cut_fork(c, x, y);
    for (int k = 0; k < c->s.n; k++) {
        ls_cut_begin_slice(c, k);
        y[k] = compute(of, y[k]);
    }
    return ls_cut_join(c, y);
}

/* ---- dropout ---- */

static int sample_of(const ls_cut *c) { return c->chunk / c->chunks.each; }

static ls_dropout_mask mask_of(const ls_cut *c, int sample, uint32_t number, int64_t first) {
    ls_dropout_mask mask = {.rate = c->dropout, .number = number, .first = first};
    if (c->chunks.samples > 1) mask.together = c->chunks.samples, mask.which = sample;
    return mask;
}

/* A chunk's rows, or each slice's part of them, with their part of the whole sample's mask. */
static ls_sequence drop(const ls_cut *c, const ls_sequence *x, uint32_t number) {
    const ls_sliced *s = &c->s;
    ls_sequence y = {{NULL}};
    int n = s->sequence ? s->n : 1;
    int64_t row = c->rows.first;
    if (!(c->dropout > 0)) return *x;
    for (int k = 0; k < n; k++) {
        int64_t first = row * ls_value_last(x->of[k]);
        if (n > 1) ls_build_slice(s->m, k, n);
        y.of[k] = ls_layers_dropout(s->m, x->of[k], mask_of(c, sample_of(c), number, first));
        row += x->of[k]->dims.of[0];
    }
    if (n > 1) ls_build_slice(s->m, 0, n);
    return y;
}

ls_sequence ls_cut_add(const ls_cut *c, const ls_sequence *x, const ls_sequence *y,
                       ls_dropout_in place) {
    ls_sequence dropped = drop(c, y, ls_dropout_number(c->block, place));
    return ls_sequence_add(&c->s, x, &dropped);
}

ls_sequence ls_cut_embedded(const ls_cut *c, const ls_sequence *x) {
    return drop(c, x, LS_DROPOUT_EMBEDDING);
}

/* ---- attention ---- */

/* The slice's heads, with the dropout mask of a sample. */
static ls_chunked_heads heads_of(const ls_cut *c, const ls_cut_attention *a, int sample,
                                 ls_sliced_name *name) {
    *name = ls_sliced_named(&c->s, "attention");
    uint32_t number = ls_dropout_number(c->block, LS_DROPOUT_IN_HEADS);
    return (ls_chunked_heads){a->heads(a->of, name->text),
                              mask_of(c, sample, number, a->first_head(a->of))};
}

/* Slice by slice, where a chunk has all rows of its sample. */
static ls_sequence attend_sample(ls_cut *c, const ls_cut_attention *a, const ls_sequence *x) {
    ls_value *y[LS_SLICES_MOST];
    ls_cut_fork(c, x, y);
    for (int k = 0; k < c->s.n; k++) {
        ls_sliced_name name;
        ls_cut_begin_slice(c, k);
        ls_chunked_rows rows = a->project(a->of, y[k]);
        ls_chunked_heads heads = heads_of(c, a, sample_of(c), &name);
        ls_chunked_attend(&c->chunks, sample_of(c), &rows, heads, &y[k]);
        y[k] = a->project_out(a->of, y[k]);
    }
    return ls_cut_join(c, y);
}

/* rows [slices]: what each slice's heads read of the chunk. */
static void project(ls_cut *c, const ls_cut_attention *a, const ls_sequence *x,
                    ls_chunked_rows *rows) {
    ls_value *of[LS_SLICES_MOST];
    ls_cut_fork(c, x, of);
    for (int k = 0; k < c->s.n; k++) {
        ls_cut_begin_slice(c, k);
        rows[k] = a->project(a->of, of[k]);
    }
}

/* The heads of a slice, of the rows of each sample's chunks. */
static void attend_slice(ls_cut *c, const ls_cut_attention *a,
                         ls_chunked_rows rows[][LS_SLICES_MOST],
                         ls_value *heads[][LS_SLICES_MOST]) {
    const ls_chunked *s = &c->chunks;
    ls_chunked_rows mine[LS_CHUNKS_MOST];
    ls_value *of[LS_CHUNKS_MOST];
    for (int sample = 0; sample < s->samples; sample++) {
        int slice = c->s.k, first = ls_chunked_of_sample(s, sample).first;
        ls_sliced_name name;
        for (int k = 0; k < s->each; k++) mine[k] = rows[first + k][slice];
        ls_chunked_attend(s, sample, mine, heads_of(c, a, sample, &name), of);
        for (int k = 0; k < s->each; k++) heads[first + k][slice] = of[k];
    }
}

/* All chunks before attention, then all behind it. */
static void attend_chunks(ls_cut *c, const ls_cut_attention *a, const ls_sequence *x,
                          ls_sequence *added) {
    ls_chunked_rows rows[LS_CHUNKS_MOST][LS_SLICES_MOST];
    ls_value *heads[LS_CHUNKS_MOST][LS_SLICES_MOST];
    for (int k = 0; k < c->chunks.n; k++) {
        ls_cut_begin(c, k);
        ls_sequence y = ls_sequence_normalize(&c->s, &x[k], a->norm);
        (ls_scope)(c->s.m, "%s", a->scope);
        project(c, a, &y, rows[k]);
        ls_scope_end(c->s.m);
    }
    (ls_scope)(c->s.m, "%s", a->scope);
    for (int k = 0; k < c->s.n; k++) {
        ls_cut_begin_slice(c, k);
        attend_slice(c, a, rows, heads);
    }
    for (int k = 0; k < c->chunks.n; k++) {
        ls_cut_begin(c, k);
        for (int i = 0; i < c->s.n; i++) {
            ls_cut_begin_slice(c, i);
            heads[k][i] = a->project_out(a->of, heads[k][i]);
        }
        added[k] = ls_cut_join(c, heads[k]);
    }
    ls_scope_end(c->s.m);
}

/* A model of whole samples adds its layers in the order of the one that has the same parameters, so
 * that these have the same places. */
void ls_cut_attend(ls_cut *c, const ls_cut_attention *a, const ls_sequence *x, ls_sequence *added) {
    if (c->chunks.each_planned > 1) {
        attend_chunks(c, a, x, added);
        return;
    }
    for (int k = 0; k < c->chunks.n; k++) {
        ls_cut_begin(c, k);
        ls_sequence y = ls_sequence_normalize(&c->s, &x[k], a->norm);
        (ls_scope)(c->s.m, "%s", a->scope);
        added[k] = attend_sample(c, a, &y);
        ls_scope_end(c->s.m);
    }
}

/* ---- the end ---- */

void ls_cut_loss(ls_cut *c, const ls_sequence *x, ls_value *targets, ls_sequence_end end) {
    const ls_chunked *s = &c->chunks;
    if (s->each > 1) end.all_targets = ls_chunked_field(s, targets, c->chunk);
    ls_sequence_loss(&c->s, x, ls_chunked_part(s, targets, c->chunk), end);
}
