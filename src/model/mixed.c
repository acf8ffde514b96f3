/* mixed.c - see mixed.h.
 *
 * The work memory of a call: the layer's own | its room for tables | parameters | gradients |
 * inputs | y or the gradients of the inputs | dy | saved | gradients of inputs that are
 * added. Operands that are used in place have no part.
 */
#include "model/mixed.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/round_up.h"
#include "model/mixed_device.h"
#include "model/row_ops.h"
#include "model/stored_table.h"
#include "tensor/dtype.h"

/* The offset of the gradients that are not tables', which are contiguous, and the number of floats
 * from the first to the last. */
static size_t span_of(const ls_layer *l, size_t *first_p) {
    int n = l->nparams - l->half.ntables, first = 0, last = n - 1;
    while (first < n && l->link.frozen[first]) first++;
    while (last >= 0 && l->link.frozen[last]) last--;
    if (first_p) *first_p = first < n ? l->link.offsets[first] : 0;
    return last < first ? 0 : l->link.offsets[last] + l->counts[last] - l->link.offsets[first];
}

static size_t whole(size_t floats) { return ls_round_up(floats, 16); }

/* Is parameter i in 16 bits widened for the layer? Products in bf16 read it as it is stored. */
static bool is_widened(const ls_layer *l, int i, ls_dtype type) {
    if (l->link.frozen[i]) return !l->half.reads_stored[i];
    return !(l->half.in_products[i] && type == LS_BF16);
}

/* Floats of these parameters that are not tables. */
static size_t params_of(const ls_layer *l, ls_dtype type) {
    size_t sum = 0;
    for (int i = 0; i < l->nparams - l->half.ntables; i++)
        if (is_widened(l, i, type)) sum += whole(l->counts[i]);
    return sum;
}

/* Is the operand in 16 bits converted for the layer? */
static bool is_converted(const ls_layer *l, unsigned operand, ls_dtype type) {
    return ls_dtype_is_half(type) && !(type == LS_BF16 && l->half.as_stored & operand);
}

/* Does the layer's own function add to gradients that are begun? */
static bool adds_in_place(const ls_layer *l, ls_dtype type) {
    return l->traits.adds_itself && !is_converted(l, LS_OPERAND_DX, type);
}

/* Elements of input k, of all inputs, and of the output. */
size_t ls_mixed_input(const ls_layer *l, int k, int64_t rows) {
    if (l->rowless >> k & 1) return (size_t)((rows + l->T - 1) / l->T) * l->input_floats[k];
    return (size_t)rows * (l->input_floats[k] / (size_t)l->T);
}
static size_t inputs_of(const ls_layer *l, int64_t rows) {
    size_t sum = 0;
    for (int k = 0; k < l->ninputs; k++) sum += ls_mixed_input(l, k, rows);
    return sum;
}
size_t ls_mixed_output(const ls_layer *l, int64_t rows) {
    return (size_t)rows * (l->y_floats / (size_t)l->T);
}

/* Elements of `saved` for `rows` rows, and how many of them, the first ones, are rounded. */
static size_t saved_of(const ls_layer *l, int64_t rows) {
    return (size_t)rows * (l->memory.saved / (size_t)l->T);
}
size_t ls_mixed_rough(const ls_layer *l, int64_t rows) {
    return (size_t)rows * l->half.saved_rough;
}

size_t ls_mixed_saved_nbytes(const ls_layer *l, int64_t n, ls_dtype compute) {
    size_t all = saved_of(l, n * l->T), rough = ls_mixed_rough(l, n * l->T);
    if (!ls_dtype_is_half(compute)) return all * sizeof(float);
    return ls_layer_rounded_nbytes(rough) + (all - rough) * sizeof(float);
}

/* Offsets of a call's f32 copies in its work memory, in floats. */
typedef struct places {
    size_t room, params, grads, x, y, dy, saved, added, end;
} places;

/* Where gradients in 16 bits are summed. */
typedef struct sums {
    bool half, wide; /* there are such gradients; `wide` has their sums */
} sums;

static sums sums_of(const ls_layer_call *c) {
    return (sums){ls_dtype_is_half(c->grads_type), c->wide != NULL};
}

bool ls_mixed_rounds(const ls_layer_call *c) {
    const ls_layer_call *given = c->given ? c->given : c;
    return ls_dtype_is_half(given->grads_type) && !given->wide;
}

static places places_of(const ls_layer *l, int64_t n, ls_dtype type, sums grads) {
    int64_t rows = n * l->T;
    size_t inputs = inputs_of(l, rows), output = ls_mixed_output(l, rows);
    size_t y = is_converted(l, LS_OPERAND_Y, type) ? output : 0;
    size_t dx = is_converted(l, LS_OPERAND_DX, type) ? inputs : 0;
    bool half = ls_dtype_is_half(type), rounds = grads.half && !grads.wide;
    bool has_room = rounds || (grads.half && l->half.room_always);
    places p = {.room = whole(ls_layer_work_floats(l, n, rounds))};
    size_t floats =
        rounds && ls_layer_has_chains(l, rows) ? l->half.chain_floats : l->half.room_floats;
    size_t room = has_room ? floats + (size_t)n * l->half.room_each : 0;
    p.params = p.room + whole(room);
    p.grads = p.params + (half ? params_of(l, type) : 0);
    p.x = p.grads + (rounds ? whole(span_of(l, NULL)) : 0);
    p.y = p.x + (is_converted(l, LS_OPERAND_X, type) ? inputs : 0);
    p.dy = p.y + (dx > y ? dx : y);
    p.saved = p.dy + (is_converted(l, LS_OPERAND_DY, type) ? output : 0);
    bool saved = l->half.saved_rough && is_converted(l, LS_OPERAND_SAVED, type);
    p.added = p.saved + (saved ? saved_of(l, rows) : 0);
    bool added = type != LS_BF16 && !adds_in_place(l, type);
    p.end = p.added + (added ? (size_t)n * l->link.added_floats : 0);
    return p;
}

size_t ls_mixed_work_nbytes(const ls_layer *l, int64_t n, ls_dtype compute, ls_dtype grads,
                            bool wide) {
    return places_of(l, n, compute, (sums){ls_dtype_is_half(grads), wide}).end * sizeof(float);
}

/* The call of the layer's own functions, and the places of its copies. */
typedef struct inner {
    ls_layer_call c;
    places at;
    bool half, half_grads;
} inner;

/* Gives the layer its parameters that are not tables: in place, or widened. */
static void hold_params(const ls_layer *l, const ls_layer_call *m, inner *f) {
    float *room = m->work + f->at.params;
    for (int i = 0; i < l->nparams - l->half.ntables; i++) {
        if (!is_widened(l, i, m->type) || (!l->link.frozen[i] && !f->half)) continue;
        ls_stored p = l->link.frozen[i]
                          ? m->frozen[l->params[i]]
                          : (ls_stored){.data = ls_flat_at(m->type, m->params, l->link.offsets[i]),
                                        .type = ls_block_of_dtype(m->type)};
        f->c.held[i] = p.data;
        if (p.type == LS_BLOCK_F32) continue;
        ls_table_widen(m->compute, p.type == LS_BLOCK_BF16 ? LS_BF16 : LS_F16, l->counts[i], p.data,
                       room);
        f->c.held[i] = room;
        room += whole(l->counts[i]);
    }
}

/* x [n], in f32, becomes what the layer before leaves to its reader. */
static void scale_input(const ls_layer_call *m, ls_layer_scale s, size_t n, float *x) {
    if (s.scale != 0) m->compute->k->affine((int64_t)n, x, s.scale, s.shift, x);
}

/* Gives the layer its inputs, of which backward may have freed those that it does not read. */
static void begin_inputs(const ls_layer *l, const ls_layer_call *m, bool backward, inner *f) {
    float *x = m->work + f->at.x;
    for (int k = 0; k < l->ninputs; k++) {
        size_t n = ls_mixed_input(l, k, m->n * m->T);
        if (backward && l->unread[k]) {
            f->c.x[k] = NULL;
        } else if (is_converted(l, LS_OPERAND_X, m->type)) {
            ls_table_widen(m->compute, m->type, n, m->x[k], x);
            scale_input(m, l->scales[k], n, x);
            f->c.x[k] = x;
            x += n;
        }
    }
}

static inner begin(const ls_layer *l, const ls_layer_call *m, bool backward) {
    inner f = {
        .c = *m, .half = ls_dtype_is_half(m->type), .half_grads = ls_dtype_is_half(m->grads_type)};
    f.at = places_of(l, m->n, m->type, sums_of(m));
    f.c.in_bf16 = m->in_bf16 || m->type == LS_BF16;
    f.c.type = f.c.grads_type = LS_F32;
    hold_params(l, m, &f);
    begin_inputs(l, m, backward, &f);
    if (f.half || f.half_grads) {
        f.c.given = m;
        f.c.room = f.at.params > f.at.room ? m->work + f.at.room : NULL;
    }
    if (l->half.saved_rough && is_converted(l, LS_OPERAND_SAVED, m->type))
        f.c.saved = m->work + f.at.saved;
    return f;
}

/* A call's work is divided among as many threads as pay for it: where others share the cores, one
 * thread may wait for another for a time slice. */
static void limit_threads(const ls_layer *l, const ls_layer_call *m) {
    int64_t rows = m->n * m->T;
    double most = (double)ls_mixed_output(l, rows);
    double products = l->cost.flops * (double)rows / (double)l->T / 2 / LS_POOL_FMAS;
    for (int k = 0; k < l->ninputs; k++) most = fmax(most, (double)ls_mixed_input(l, k, rows));
    ls_pool_limit(m->compute->pool, l->cost.unknown ? INFINITY : fmax(most, products));
}

void ls_mixed_forward(const ls_layer *l, const ls_layer_call *m) {
    if (ls_mixed_there(m)) {
        ls_mixed_device_forward(l, m);
        return;
    }
    inner f = begin(l, m, false);
    bool y = !l->traits.loss && !m->logits && is_converted(l, LS_OPERAND_Y, m->type);
    if (y) f.c.y = m->work + f.at.y;
    limit_threads(l, m);
    l->ops->forward(l, &f.c);
    ls_pool_limit(m->compute->pool, INFINITY);
    int64_t rows = m->n * m->T;
    size_t rough = ls_mixed_rough(l, rows), exact = saved_of(l, rows) - rough;
    if (y && !ls_layer_rounded(l, &f.c, LS_OPERAND_Y))
        ls_table_narrow(m->compute, m->type, ls_mixed_output(l, rows), f.c.y, m->y);
    if (f.c.saved == m->saved) return;
    ls_table_narrow(m->compute, m->type, rough, f.c.saved, m->saved);
    memcpy((char *)m->saved + ls_layer_rounded_nbytes(rough), (float *)f.c.saved + rough,
           exact * sizeof(float));
}

const void *ls_mixed_shown(const ls_layer *l, const ls_layer_call *m) {
    if (!l->half.saved_rough || !is_converted(l, LS_OPERAND_SAVED, m->type)) return m->saved;
    if (ls_mixed_there(m)) return m->saved;
    return m->work + places_of(l, m->n, m->type, sums_of(m)).saved;
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

/* Rounds the finished chains that products have not rounded. Padding between tensors is not
 * written. */
static void end_grads(const ls_layer *l, const ls_layer_call *m, const inner *f) {
    if (!f->half_grads || !m->last) return;
    for (int i = 0; i < l->nparams - l->half.ntables; i++)
        if (!l->link.frozen[i] && !ls_layer_rounded_grad(l, &f->c, i))
            ls_table_narrow(m->compute, m->grads_type, l->counts[i], ls_layer_grad(l, &f->c, i),
                            ls_flat_at_mut(m->grads_type, m->grads, l->link.offsets[i]));
}

/* Widens dy and the values that forward saved. */
static void widen_operands(const ls_layer *l, const ls_layer_call *m, inner *f) {
    int64_t rows = m->n * m->T;
    size_t rough = ls_mixed_rough(l, rows), exact = saved_of(l, rows) - rough;
    float *work = m->work;
    if (!l->traits.loss && is_converted(l, LS_OPERAND_DY, m->type)) {
        ls_table_widen(m->compute, m->type, ls_mixed_output(l, rows), m->dy, work + f->at.dy);
        f->c.dy = work + f->at.dy;
    }
    if (f->c.saved == m->saved) return;
    ls_table_widen(m->compute, m->type, rough, m->saved, f->c.saved);
    memcpy((float *)f->c.saved + rough, (const char *)m->saved + ls_layer_rounded_nbytes(rough),
           exact * sizeof(float));
}

/* Chooses where the gradients of the inputs are written: in place, unless they are rounded, or
 * added to what later layers have written. */
static void begin_dx(const ls_layer *l, const ls_layer_call *m, inner *f) {
    assert(l->link.added_floats == 0 || l->traits.adds_itself ||
           !(l->half.as_stored & LS_OPERAND_DX));
    float *dx = m->work + f->at.y, *added = m->work + f->at.added;
    for (int k = 0; k < l->ninputs; k++) {
        if (!m->dx[k]) continue;
        if (is_converted(l, LS_OPERAND_DX, m->type)) {
            f->c.dx[k] = dx;
            dx += ls_mixed_input(l, k, m->n * m->T);
        } else if (l->link.adds[k] && adds_in_place(l, m->type)) {
            f->c.begun |= 1u << k;
        } else if (l->link.adds[k]) {
            f->c.dx[k] = added;
            added += ls_mixed_input(l, k, m->n * m->T);
        }
    }
}

/* Adds n numbers to those in bf16 at y. */
static void add_stored(const ls_layer_call *m, size_t n, const float *x, void *y) {
    ls_matrix row = {y, (int64_t)n, 1, true};
    ls_rows_add(m->compute, (int64_t)n, row, x, (ls_numbers){y, true});
}

static void end_dx(const ls_layer *l, const ls_layer_call *m, const inner *f) {
    for (int k = 0; k < l->ninputs; k++) {
        size_t n = ls_mixed_input(l, k, m->n * m->T);
        float *dx = f->c.dx[k], *sum = f->half ? m->work + f->at.added : m->dx[k];
        if (!dx || dx == m->dx[k] || ls_layer_rounded(l, &f->c, LS_OPERAND_DX)) continue;
        if (f->half) scale_input(m, (ls_layer_scale){l->scales[k].scale, 0}, n, dx);
        if (l->link.adds[k] && m->type == LS_BF16) {
            add_stored(m, n, dx, m->dx[k]);
            continue;
        }
        if (l->link.adds[k] && f->half) ls_table_widen(m->compute, m->type, n, m->dx[k], sum);
        if (l->link.adds[k])
            ls_rows_add(m->compute, (int64_t)n, ls_matrix_of(sum, (int64_t)n), dx,
                        ls_numbers_f32(sum));
        if (f->half) ls_table_narrow(m->compute, m->type, n, l->link.adds[k] ? sum : dx, m->dx[k]);
    }
}

void ls_mixed_backward(const ls_layer *l, const ls_layer_call *m) {
    if (ls_mixed_there(m)) {
        ls_mixed_device_backward(l, m);
        return;
    }
    inner f = begin(l, m, true);
    if (f.half) widen_operands(l, m, &f);
    begin_dx(l, m, &f);
    begin_grads(l, m, &f);
    limit_threads(l, m);
    l->ops->backward(l, &f.c);
    ls_pool_limit(m->compute->pool, INFINITY);
    end_grads(l, m, &f);
    end_dx(l, m, &f);
}

/* ---- for prices ---- */

/* Parameters and inputs: begin(). */
static size_t begin_floats(const ls_layer *l, int64_t n, ls_dtype compute, bool backward) {
    size_t sum = 0;
    for (int i = 0; i < l->nparams - l->half.ntables; i++)
        if (is_widened(l, i, compute)) sum += l->counts[i];
    for (int k = 0; k < l->ninputs && is_converted(l, LS_OPERAND_X, compute); k++)
        if (!backward || !l->unread[k]) sum += ls_mixed_input(l, k, n * l->T);
    return sum;
}

/* Elements of an operand if it is converted. */
static size_t converted_of(const ls_layer *l, unsigned operand, ls_dtype compute, size_t count) {
    return is_converted(l, operand, compute) ? count : 0;
}

/* What the layer's own functions convert. */
static void count_parts(const ls_layer *l, const ls_conversions *list, int64_t n, bool dx,
                        ls_mixed_floats *f) {
    unsigned trained = 0;
    for (int i = 0; i < l->nparams; i++) trained |= (unsigned)!l->link.frozen[i] << i;
    for (int i = 0; i < list->n; i++) {
        const ls_conversion *c = &list->list[i];
        if (!(l->half.as_stored & c->operand)) continue;
        if ((c->for_dx && !dx) || (c->adds && !l->link.adds[0])) continue;
        if (c->grads && !(c->grads & trained)) continue;
        *(c->rounds ? &f->narrowed_parts : &f->widened_parts) += (size_t)(n * c->numbers);
    }
}

ls_mixed_floats ls_mixed_forward_floats(const ls_layer *l, int64_t n, ls_dtype compute) {
    if (!ls_dtype_is_half(compute)) return (ls_mixed_floats){0};
    int64_t rows = n * l->T;
    size_t y =
        l->traits.loss ? 0 : converted_of(l, LS_OPERAND_Y, compute, ls_mixed_output(l, rows));
    size_t saved = converted_of(l, LS_OPERAND_SAVED, compute, ls_mixed_rough(l, rows));
    ls_mixed_floats f = {.widened = begin_floats(l, n, compute, false), .narrowed = y + saved};
    if (compute == LS_BF16) count_parts(l, &l->cost.forward_converts, n, false, &f);
    return f;
}

ls_mixed_floats ls_mixed_backward_floats(const ls_layer *l, int64_t n, ls_dtype compute,
                                         ls_dtype grads, bool dx, bool last) {
    ls_mixed_floats f = {0};
    int64_t rows = n * l->T;
    for (int i = 0; i < l->nparams - l->half.ntables && ls_dtype_is_half(grads) && last; i++)
        if (!l->link.frozen[i]) f.narrowed += l->counts[i];
    if (!ls_dtype_is_half(compute)) return f;
    f.widened = begin_floats(l, n, compute, true);
    f.widened += converted_of(l, LS_OPERAND_SAVED, compute, ls_mixed_rough(l, rows));
    if (!l->traits.loss)
        f.widened += converted_of(l, LS_OPERAND_DY, compute, ls_mixed_output(l, rows));
    for (int k = 0; k < l->ninputs && dx; k++) {
        f.narrowed += converted_of(l, LS_OPERAND_DX, compute, ls_mixed_input(l, k, rows));
        if (l->link.adds[k] && !adds_in_place(l, compute)) f.widened += ls_mixed_input(l, k, rows);
    }
    if (compute == LS_BF16) count_parts(l, &l->cost.backward_converts, n, dx, &f);
    return f;
}
