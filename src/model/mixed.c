/* mixed.c - see mixed.h.
 *
 * The work memory of a call: the layer's own | its room for tables | parameters | gradients | x |
 * y or dx | dy | saved. Operands that are used in place have no part.
 */
#include "model/mixed.h"

#include <string.h>

#include "model/table.h"
#include "tensor/dtype.h"

/* Floats of the parameters that are not tables, which are contiguous. */
static size_t span_of(const ls_layer *l) {
    int last = l->nparams - l->ntables - 1;
    return last < 0 ? 0 : l->offsets[last] + l->counts[last] - l->offsets[0];
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
    size_t room, params, grads, x, y, dy, saved, end;
} places;

static places places_of(const ls_layer *l, int64_t n, bool half, bool half_grads) {
    size_t rows = (size_t)(n * l->T * l->C);
    places p = {.room = (ls_layer_work_floats(l, n, half_grads) + 15) / 16 * 16};
    size_t span = (span_of(l) + 15) / 16 * 16;
    size_t room = half || half_grads ? l->room_floats + (size_t)n * l->room_each : 0;
    p.params = p.room + (room + 15) / 16 * 16;
    p.grads = p.params + (half ? span : 0);
    p.x = p.grads + (half_grads ? span : 0);
    p.y = p.x + (half ? rows : 0);
    p.dy = p.y + (half ? rows : 0);
    p.saved = p.dy + (half ? rows : 0);
    p.end = p.saved + (half && l->saved_rough ? saved_of(l, n * l->T) : 0);
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

static inner begin(const ls_layer *l, const ls_layer_call *m) {
    inner f = {
        .c = *m, .half = ls_dtype_is_half(m->type), .half_grads = ls_dtype_is_half(m->grads_type)};
    float *work = m->work;
    f.at = places_of(l, m->n, f.half, f.half_grads);
    f.c.type = f.c.grads_type = LS_F32;
    if (!f.half && !f.half_grads) return f;
    f.c.given = m;
    f.c.room = work + f.at.room;
    if (!f.half) return f;
    size_t span = span_of(l);
    if (span) {
        f.c.params = work + f.at.params;
        f.c.params_at = l->offsets[0];
        ls_table_widen(m->compute, m->type, span, ls_flat_at(m->type, m->params, l->offsets[0]),
                       work + f.at.params);
    }
    if (m->x) {
        f.c.x = work + f.at.x;
        ls_table_widen(m->compute, m->type, (size_t)(m->n * m->T * l->C), m->x, work + f.at.x);
    }
    if (l->saved_rough) f.c.saved = work + f.at.saved;
    return f;
}

void ls_mixed_forward(const ls_layer *l, const ls_layer_call *m) {
    inner f = begin(l, m);
    if (f.half && !l->loss) f.c.y = m->work + f.at.y;
    l->ops->forward(l, &f.c);
    if (!f.half) return;
    int64_t rows = m->n * m->T;
    size_t rough = rough_of(l, rows), exact = saved_of(l, rows) - rough;
    if (!l->loss) ls_table_narrow(m->compute, m->type, (size_t)(rows * l->C), f.c.y, m->y);
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
    if (!f->half_grads || !span_of(l)) return;
    size_t first = l->offsets[0];
    float *p = m->wide ? m->wide + first : m->work + f->at.grads;
    bool fresh = !m->wide || m->first;
    f->c.grads = p;
    f->c.grads_at = first;
    f->c.grads_start = m->grads_start && fresh;
    if (fresh && !m->grads_start)
        ls_table_widen(m->compute, m->grads_type, span_of(l),
                       ls_flat_at(m->grads_type, m->grads, first), p);
}

/* Rounds the finished chains. Padding between tensors is not written. */
static void end_grads(const ls_layer *l, const ls_layer_call *m, const inner *f) {
    if (!f->half_grads || !m->last) return;
    for (int i = 0; i < l->nparams - l->ntables; i++)
        ls_table_narrow(m->compute, m->grads_type, l->counts[i], ls_layer_grad(l, &f->c, i),
                        ls_flat_at_mut(m->grads_type, m->grads, l->offsets[i]));
}

/* Widens dy and the values that forward saved. */
static void widen_operands(const ls_layer *l, const ls_layer_call *m, inner *f) {
    int64_t rows = m->n * m->T;
    size_t rough = rough_of(l, rows), exact = saved_of(l, rows) - rough;
    float *work = m->work;
    if (!l->loss) {
        ls_table_widen(m->compute, m->type, (size_t)(rows * l->C), m->dy, work + f->at.dy);
        f->c.dy = work + f->at.dy;
    }
    if (!l->saved_rough) return;
    ls_table_widen(m->compute, m->type, rough, m->saved, f->c.saved);
    memcpy((float *)f->c.saved + rough, (const char *)m->saved + align(rough * 2),
           exact * sizeof(float));
}

void ls_mixed_backward(const ls_layer *l, const ls_layer_call *m) {
    inner f = begin(l, m);
    if (f.half) widen_operands(l, m, &f);
    if (f.half && m->dx) f.c.dx = m->work + f.at.y;
    begin_grads(l, m, &f);
    l->ops->backward(l, &f.c);
    end_grads(l, m, &f);
    if (f.half && m->dx)
        ls_table_narrow(m->compute, m->type, (size_t)(m->n * m->T * l->C), f.c.dx, m->dx);
}
