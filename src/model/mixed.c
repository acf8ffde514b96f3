/* mixed.c - see mixed.h.
 *
 * The work memory of a call: the layer's own | its room for tables | parameters | frozen parameters |
 * gradients | inputs | y or the gradients of the inputs | dy | saved | gradients of inputs that are
 * added. Operands that are used in place have no part.
 */
#include "model/mixed.h"

#include <string.h>

#include "model/rows.h"
#include "model/table.h"
#include "tensor/dtype.h"

/* The offset of the trained parameters that are not tables, which are contiguous, and the number of
 * floats from the first to the last. */
static size_t span_of(const ls_layer *l, size_t *first_p) {
    int n = l->nparams - l->ntables, first = 0, last = n - 1;
    while (first < n && l->frozen[first]) first++;
    while (last >= 0 && l->frozen[last]) last--;
    if (first_p) *first_p = first < n ? l->offsets[first] : 0;
    return last < first ? 0 : l->offsets[last] + l->counts[last] - l->offsets[first];
}

static size_t whole(size_t floats) { return (floats + 15) / 16 * 16; }

/* Is parameter i widened for the layer? */
static bool is_held(const ls_layer *l, int i) { return l->frozen[i] && !l->reads_stored[i]; }

/* Floats of the frozen parameters that are not tables. */
static size_t frozen_of(const ls_layer *l) {
    size_t sum = 0;
    for (int i = 0; i < l->nparams - l->ntables; i++)
        if (is_held(l, i)) sum += whole(l->counts[i]);
    return sum;
}

/* Elements of input k, of all inputs, and of the output. */
static size_t input_of(const ls_layer *l, int k, int64_t rows) {
    return (size_t)rows * (l->input_floats[k] / (size_t)l->T);
}
static size_t inputs_of(const ls_layer *l, int64_t rows) {
    size_t sum = 0;
    for (int k = 0; k < l->ninputs; k++) sum += input_of(l, k, rows);
    return sum;
}
static size_t output_of(const ls_layer *l, int64_t rows) {
    return (size_t)rows * (l->y_floats / (size_t)l->T);
}

static size_t align(size_t nbytes) { return (nbytes + 63) / 64 * 64; }

/* Elements of `saved` for `rows` rows, and how many of them, the first ones, are rounded. */
static size_t saved_of(const ls_layer *l, int64_t rows) {
    return (size_t)rows * (l->saved_floats / (size_t)l->T);
}
static size_t rough_of(const ls_layer *l, int64_t rows) { return (size_t)rows * l->saved_rough; }

size_t ls_mixed_saved_nbytes(const ls_layer *l, int64_t n, ls_dtype compute) {
    size_t all = saved_of(l, n * l->T), rough = rough_of(l, n * l->T);
    if (!ls_dtype_is_half(compute)) return all * sizeof(float);
    return align(rough * 2) + (all - rough) * sizeof(float);
}

/* Offsets of a call's f32 copies in its work memory, in floats. */
typedef struct places {
    size_t room, params, frozen, grads, x, y, dy, saved, added, end;
} places;

static places places_of(const ls_layer *l, int64_t n, bool half, bool half_grads) {
    int64_t rows = n * l->T;
    size_t inputs = inputs_of(l, rows), output = output_of(l, rows);
    places p = {.room = whole(ls_layer_work_floats(l, n, half_grads))};
    size_t span = whole(span_of(l, NULL));
    size_t room = half || half_grads ? l->room_floats + (size_t)n * l->room_each : 0;
    p.params = p.room + whole(room);
    p.frozen = p.params + (half ? span : 0);
    p.grads = p.frozen + (half ? frozen_of(l) : 0);
    p.x = p.grads + (half_grads ? span : 0);
    p.y = p.x + (half ? inputs : 0);
    p.dy = p.y + (half ? (inputs > output ? inputs : output) : 0);
    p.saved = p.dy + (half ? output : 0);
    p.added = p.saved + (half && l->saved_rough ? saved_of(l, rows) : 0);
    p.end = p.added + (size_t)n * l->added_floats;
    return p;
}

size_t ls_mixed_work_nbytes(const ls_layer *l, int64_t n, ls_dtype compute, ls_dtype grads) {
    return places_of(l, n, ls_dtype_is_half(compute), ls_dtype_is_half(grads)).end * sizeof(float);
}

/* The call of the layer's own functions, in f32, and the places of its copies. */
typedef struct inner {
    ls_layer_call c;
    places at;
    bool half, half_grads;
} inner;

/* Gives the layer its frozen parameters that are not tables: in place, or widened. */
static void hold_frozen(const ls_layer *l, const ls_layer_call *m, inner *f) {
    float *room = m->work + f->at.frozen;
    for (int i = 0; i < l->nparams - l->ntables; i++) {
        if (!is_held(l, i)) continue;
        const ls_frozen_value *v = &m->frozen[l->params[i]];
        f->c.held[i] = v->data;
        if (v->type == LS_BLOCK_F32) continue;
        ls_table_widen(m->compute, v->type == LS_BLOCK_BF16 ? LS_BF16 : LS_F16, l->counts[i],
                       v->data, room);
        f->c.held[i] = room;
        room += whole(l->counts[i]);
    }
}

/* Those that only products read are read as they are stored. */
static void widen_params(const ls_layer *l, const ls_layer_call *m, size_t first, float *to) {
    for (int i = 0; i < l->nparams - l->ntables; i++)
        if (!l->frozen[i] && !(l->in_products[i] && m->type == LS_BF16))
            ls_table_widen(m->compute, m->type, l->counts[i],
                           ls_flat_at(m->type, m->params, l->offsets[i]),
                           to + (l->offsets[i] - first));
}

/* backward: inputs that it does not read may have been freed. */
static inner begin(const ls_layer *l, const ls_layer_call *m, bool backward) {
    inner f = {
        .c = *m, .half = ls_dtype_is_half(m->type), .half_grads = ls_dtype_is_half(m->grads_type)};
    float *work = m->work;
    f.at = places_of(l, m->n, f.half, f.half_grads);
    f.c.type = f.c.grads_type = LS_F32;
    for (int k = 0; k < l->ninputs; k++)
        if (backward && l->unread[k]) f.c.x[k] = NULL;
    hold_frozen(l, m, &f);
    if (!f.half && !f.half_grads) return f;
    f.c.given = m;
    f.c.room = work + f.at.room;
    if (!f.half) return f;
    size_t first = 0, span = span_of(l, &first);
    if (span) {
        f.c.params = work + f.at.params;
        f.c.params_at = first;
        widen_params(l, m, first, work + f.at.params);
    }
    float *x = work + f.at.x;
    for (int k = 0; k < l->ninputs; k++) {
        size_t n = input_of(l, k, m->n * m->T);
        if (backward && l->unread[k]) continue;
        ls_table_widen(m->compute, m->type, n, m->x[k], x);
        f.c.x[k] = x;
        x += n;
    }
    if (l->saved_rough) f.c.saved = work + f.at.saved;
    return f;
}

void ls_mixed_forward(const ls_layer *l, const ls_layer_call *m) {
    inner f = begin(l, m, false);
    if (f.half && !l->loss) f.c.y = m->work + f.at.y;
    l->ops->forward(l, &f.c);
    if (!f.half) return;
    int64_t rows = m->n * m->T;
    size_t rough = rough_of(l, rows), exact = saved_of(l, rows) - rough;
    if (!l->loss) ls_table_narrow(m->compute, m->type, output_of(l, rows), f.c.y, m->y);
    if (!l->saved_rough) return;
    ls_table_narrow(m->compute, m->type, rough, f.c.saved, m->saved);
    memcpy((char *)m->saved + align(rough * 2), (float *)f.c.saved + rough, exact * sizeof(float));
}

const float *ls_mixed_unrounded(const ls_layer *l, const ls_layer_call *m) {
    if (!ls_dtype_is_half(m->type) || !l->saved_rough) return m->saved;
    bool half_grads = ls_dtype_is_half(m->grads_type);
    return m->work + places_of(l, m->n, true, half_grads).saved;
}

/* Chooses where the gradients of parameters that are not tables are summed: in `wide`, or in work
 * memory if the virtual worker has one micro-batch. A chain that does not start at 0 continues from
 * the stored gradient. */
static void begin_grads(const ls_layer *l, const ls_layer_call *m, inner *f) {
    size_t first = 0, span = span_of(l, &first);
    if (!f->half_grads || !span) return;
    float *p = m->wide ? m->wide + first : m->work + f->at.grads;
    bool fresh = !m->wide || m->first;
    f->c.grads = p;
    f->c.grads_at = first;
    f->c.grads_start = m->grads_start && fresh;
    if (fresh && !m->grads_start)
        ls_table_widen(m->compute, m->grads_type, span, ls_flat_at(m->grads_type, m->grads, first),
                       p);
}

/* Rounds the finished chains. Padding between tensors is not written. */
static void end_grads(const ls_layer *l, const ls_layer_call *m, const inner *f) {
    if (!f->half_grads || !m->last) return;
    for (int i = 0; i < l->nparams - l->ntables; i++)
        if (!l->frozen[i])
            ls_table_narrow(m->compute, m->grads_type, l->counts[i], ls_layer_grad(l, &f->c, i),
                            ls_flat_at_mut(m->grads_type, m->grads, l->offsets[i]));
}

/* Widens dy and the values that forward saved. */
static void widen_operands(const ls_layer *l, const ls_layer_call *m, inner *f) {
    int64_t rows = m->n * m->T;
    size_t rough = rough_of(l, rows), exact = saved_of(l, rows) - rough;
    float *work = m->work;
    if (!l->loss) {
        ls_table_widen(m->compute, m->type, output_of(l, rows), m->dy, work + f->at.dy);
        f->c.dy = work + f->at.dy;
    }
    if (!l->saved_rough) return;
    ls_table_widen(m->compute, m->type, rough, m->saved, f->c.saved);
    memcpy((float *)f->c.saved + rough, (const char *)m->saved + align(rough * 2),
           exact * sizeof(float));
}

/* Chooses where the gradients of the inputs are written: in place, unless they are rounded, or
 * added to what later layers have written. */
static void begin_dx(const ls_layer *l, const ls_layer_call *m, inner *f) {
    float *dx = m->work + f->at.y, *added = m->work + f->at.added;
    for (int k = 0; k < l->ninputs; k++) {
        if (!m->dx[k]) continue;
        if (f->half) {
            f->c.dx[k] = dx;
            dx += input_of(l, k, m->n * m->T);
        } else if (l->adds[k]) {
            f->c.dx[k] = added;
            added += input_of(l, k, m->n * m->T);
        }
    }
}

static void end_dx(const ls_layer *l, const ls_layer_call *m, const inner *f) {
    for (int k = 0; k < l->ninputs; k++) {
        size_t n = input_of(l, k, m->n * m->T);
        float *dx = f->c.dx[k], *sum = f->half ? m->work + f->at.added : m->dx[k];
        if (!dx || dx == m->dx[k]) continue;
        if (l->adds[k] && f->half) ls_table_widen(m->compute, m->type, n, m->dx[k], sum);
        if (l->adds[k]) ls_rows_add(m->compute, (int64_t)n, sum, dx, sum);
        if (f->half) ls_table_narrow(m->compute, m->type, n, l->adds[k] ? sum : dx, m->dx[k]);
    }
}

void ls_mixed_backward(const ls_layer *l, const ls_layer_call *m) {
    inner f = begin(l, m, true);
    if (f.half) widen_operands(l, m, &f);
    begin_dx(l, m, &f);
    begin_grads(l, m, &f);
    l->ops->backward(l, &f.c);
    end_grads(l, m, &f);
    end_dx(l, m, &f);
}

/* ---- for prices ---- */

/* Parameters and inputs: begin(). */
static size_t begin_floats(const ls_layer *l, int64_t n, ls_dtype compute, bool backward) {
    size_t sum = 0;
    for (int i = 0; i < l->nparams - l->ntables; i++)
        if (l->frozen[i] ? is_held(l, i) : !(l->in_products[i] && compute == LS_BF16))
            sum += l->counts[i];
    for (int k = 0; k < l->ninputs; k++)
        if (!backward || !l->unread[k]) sum += input_of(l, k, n * l->T);
    return sum;
}

ls_mixed_floats ls_mixed_forward_floats(const ls_layer *l, int64_t n, ls_dtype compute) {
    if (!ls_dtype_is_half(compute)) return (ls_mixed_floats){0};
    size_t y = l->loss ? 0 : output_of(l, n * l->T);
    return (ls_mixed_floats){.widened = begin_floats(l, n, compute, false),
                             .narrowed = y + rough_of(l, n * l->T)};
}

ls_mixed_floats ls_mixed_backward_floats(const ls_layer *l, int64_t n, ls_dtype compute,
                                         ls_dtype grads, bool dx) {
    ls_mixed_floats f = {0};
    int64_t rows = n * l->T;
    for (int i = 0; i < l->nparams - l->ntables && ls_dtype_is_half(grads); i++)
        if (!l->frozen[i]) f.narrowed += l->counts[i];
    if (!ls_dtype_is_half(compute)) return f;
    f.widened = begin_floats(l, n, compute, true) + rough_of(l, rows);
    if (!l->loss) f.widened += output_of(l, rows);
    for (int k = 0; k < l->ninputs && dx; k++) {
        f.narrowed += input_of(l, k, rows);
        if (l->adds[k]) f.widened += input_of(l, k, rows);
    }
    return f;
}
