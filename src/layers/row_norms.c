/* row_norms.c - layer norm and RMS norm of each row, a vector of the last dimension.
 *
 * params: weight [C], or in an RMS norm its difference to 1 (plus_one); layer norm: bias [C]
 * saved: layer norm: mean [rows] | 1 / deviation [rows];
 *        RMS norm: 1 / root of the mean square [rows]
 */
#include <string.h>

#include "layers/layers.h"
#include "model/row_ops.h"

/* ---- layer norm ---- */

static void layer_forward(const ls_layer *l, const ls_layer_call *c) {
    float *mean = c->saved;
    ls_rows_norm(l, c, ls_numbers_f32(c->y), mean, mean + c->n * c->T);
}

static void layer_backward(const ls_layer *l, const ls_layer_call *c) {
    const float *mean = c->saved;
    ls_rows_norm_back(l, c, mean, mean + c->n * c->T, c->dy, false);
}

static const ls_layer_ops layer_ops = {
    .kind = "layer_norm", .forward = layer_forward, .backward = layer_backward};

/* ---- RMS norm ---- */

typedef struct options {
    float eps;
    bool plus_one;
} options;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

enum { RMS_ROWS = 16 }; /* rows of operands in bf16 that are widened at a time */

/* The job of rows from r on, without x, rows and the weight. */
static ls_rms_norm_job rms_of(const job *j, int64_t r) {
    return (ls_rms_norm_job){
        .C = j->l->C, .eps = LS_LAYER_OWN_OF(options, j->l).eps, .rstd = (float *)j->c->saved + r};
}

/* The weight: the parameter, or 1 + it in room [C]. */
static const float *rms_weight(const job *j, float *room) {
    const float *w = ls_layer_param(j->l, j->c, 0);
    if (!LS_LAYER_OWN_OF(options, j->l).plus_one) return w;
    j->c->compute->k->affine(j->l->C, w, 1, 1, room);
    return room;
}

/* Columns [from, to) of n rows from r on: in place, or widened into room [n, C]. */
static const float *rms_read(const job *j, ls_matrix x, int64_t r, const ls_rms_norm_job *m,
                             float *room) {
    const ls_kernels *k = j->c->compute->k;
    if (!x.bf16) return ls_matrix_from(x, r, 0).p;
    for (int64_t i = 0; i < m->rows; i++)
        ls_part_read(k, x, r + i, m->from, m->to - m->from, room + i * m->C + m->from);
    return room;
}

/* Operands in bf16 are widened in the threads' scratch memory, one row at a time. */
static void rms_forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_kernels *k = j->c->compute->k;
    ls_matrix x = ls_rows_x(j->l, j->c, 0, j->l->C);
    ls_numbers y = ls_rows_y(j->l, j->c);
    float *room = ls_compute_scratch(j->c->compute, thread);
    int64_t r = 0, end = 0, C = j->l->C;
    const float *weight = rms_weight(j, room + 2 * C);
    ls_pool_share(j->c->n * j->c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        ls_rms_norm_job m = rms_of(j, r);
        m.rows = 1;
        m.gamma = weight;
        m.x = ls_part_read(k, x, r, 0, C, room);
        m.y = ls_part_result(y, r * C, room + C);
        k->norm.rms_norm(&m);
        ls_part_store(k, y, r * C, C, m.y);
    }
}

static void rms_dx_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_kernels *k = j->c->compute->k;
    int64_t r = 0, end = 0, C = j->l->C;
    ls_matrix x = ls_rows_x(j->l, j->c, 0, C), dy = ls_rows_dy(j->l, j->c, C);
    ls_numbers dx = ls_rows_dx(j->l, j->c, 0);
    bool adds = j->c->begun & 1; /* not by the kernel, which rounds once */
    float *room = ls_compute_scratch(j->c->compute, thread);
    const float *weight = rms_weight(j, room + 4 * C);
    ls_pool_share(j->c->n * j->c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        ls_rms_norm_job m = rms_of(j, r);
        m.rows = 1;
        m.gamma = weight;
        m.x = ls_part_read(k, x, r, 0, C, room);
        m.dy = ls_part_read(k, dy, r, 0, C, room + C);
        float *to = ls_part_result(dx, r * C, room + 2 * C);
        m.dx = adds ? room + 3 * C : to;
        k->norm.rms_norm_dx(&m);
        if (adds) k->add(C, ls_part_read(k, ls_numbers_rows(dx, C), r, 0, C, room), m.dx, to);
        ls_part_store(k, dx, r * C, C, to);
    }
}

static void rms_dparams_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    int64_t rows = c->n * c->T, C = j->l->C, from = 0, to = 0;
    ls_matrix x = ls_rows_x(j->l, c, 0, C), dy = ls_rows_dy(j->l, c, C);
    float *room = ls_compute_scratch(c->compute, thread), *dgamma = ls_layer_grad(j->l, c, 0);
    ls_pool_share(C, 16, thread, nthreads, &from, &to);
    if (c->grads_start) memset(dgamma + from, 0, (size_t)(to - from) * sizeof *dgamma);
    int64_t most = x.bf16 || dy.bf16 ? RMS_ROWS : rows;
    for (int64_t r = 0; r < rows; r += most) {
        ls_rms_norm_job m = rms_of(j, r);
        m.rows = rows - r < most ? rows - r : most;
        m.from = from, m.to = to;
        m.dgamma = dgamma;
        m.x = rms_read(j, x, r, &m, room);
        m.dy = rms_read(j, dy, r, &m, room + RMS_ROWS * C);
        c->compute->k->norm.rms_norm_dparams(&m);
    }
}

/* ---- on a device ---- */

enum { ITEMS = 256, GROUP_ROWS = 16 }; /* of a group */

static void rms_launch(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T;
    LS_LAUNCH(c->compute, LS_KERNEL_rms_norm, ls_device_groups(rows, GROUP_ROWS), 1, {.l = rows},
              {.l = l->C}, {.f = LS_LAYER_OWN_OF(options, l).eps}, {.from = c->x[0]},
              {.from = ls_layer_param(l, c, 0)}, {.l = LS_LAYER_OWN_OF(options, l).plus_one},
              {.p = c->y}, {.p = c->saved});
}

static void rms_launch_dparams(const ls_layer *l, const ls_layer_call *c) {
    LS_LAUNCH(c->compute, LS_KERNEL_rms_norm_dparams, ls_device_groups(l->C, ITEMS), 1,
              {.l = c->n * c->T}, {.l = l->C}, {.from = c->dy}, {.from = c->x[0]},
              {.from = c->saved}, {.l = !c->grads_start}, {.p = ls_layer_grad(l, c, 0)});
}

static void rms_launch_dx(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T;
    LS_LAUNCH(c->compute, LS_KERNEL_rms_norm_dx, ls_device_groups(rows, GROUP_ROWS), 1, {.l = rows},
              {.l = l->C}, {.from = c->dy}, {.from = c->x[0]}, {.from = ls_layer_param(l, c, 0)},
              {.l = LS_LAYER_OWN_OF(options, l).plus_one}, {.from = c->saved}, {.l = c->begun & 1},
              {.p = c->dx[0]});
}

static void rms_forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        rms_launch(l, c);
        return;
    }
    ls_pool_run_sized(c->compute->pool, c->n * c->T * l->C, rms_forward_run, &(job){l, c});
}

static void rms_backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        if (ls_layer_trains(l, 0)) rms_launch_dparams(l, c);
        if (c->dx[0]) rms_launch_dx(l, c);
        return;
    }
    if (ls_layer_trains(l, 0)) ls_pool_run(c->compute->pool, rms_dparams_run, &(job){l, c});
    if (c->dx[0]) ls_pool_run(c->compute->pool, rms_dx_run, &(job){l, c});
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){.eps = o->eps, .plus_one = o->plus_one};
}

static const ls_layer_ops rms_ops = {
    .kind = "rms_norm", .forward = rms_forward, .backward = rms_backward, .describe = describe};

static void rms_converts(ls_layer *l) {
    ls_conversions *f = &l->cost.forward_converts, *b = &l->cost.backward_converts;
    const ls_conversion list[] = {{.operand = LS_OPERAND_X, .grads = 1},
                                  {.operand = LS_OPERAND_DY, .grads = 1},
                                  {.operand = LS_OPERAND_X, .for_dx = true},
                                  {.operand = LS_OPERAND_DY, .for_dx = true},
                                  {.operand = LS_OPERAND_DX, .adds = true, .for_dx = true},
                                  {.operand = LS_OPERAND_DX, .rounds = true, .for_dx = true}};
    int64_t n = l->T * l->C;
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_X, .numbers = n});
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_Y, .rounds = true, .numbers = n});
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        ls_conversion c = list[i];
        c.numbers = n;
        ls_conversions_add(b, c);
    }
}

/* ---- the calls ---- */

static ls_layer *add(ls_model *m, ls_value *x, const ls_layer_ops *ops, const char *name,
                     float start) {
    ls_layer *l = ls_build_layer(m, ops->kind, name, &x, 1);
    if (!l) return NULL;
    l->ops = ops;
    l->C = ls_value_last(x);
    l->T = ls_value_count(x) / l->C;
    l->traits.on_device = true;
    ls_works_norm(&l->cost.forward, &l->cost.backward, l->T, l->C);
    ls_build_param(m, l, "weight", &(ls_param){.ndims = 1, .dims = {l->C}, .init.value = start});
    return l;
}

ls_value *(ls_layer_norm)(ls_model *m, ls_value *x, ls_layer_norm_options o) {
    ls_layer *l = add(m, x, &layer_ops, o.name, 1);
    if (!l) return ls_build_failed(m);
    l->memory.saved = (size_t)(2 * l->T);
    ls_build_param(m, l, "bias", &(ls_param){.ndims = 1, .dims = {l->C}});
    return ls_build_value(m, x->dims);
}

ls_value *ls_layers_rms_norm(ls_model *m, ls_value *x, ls_rms_norm_options o, bool plus_one) {
    ls_layer *l = add(m, x, &rms_ops, o.name, plus_one ? 0 : 1);
    if (!l) return ls_build_failed(m);
    if (!ls_build_takes(m, "eps", (double)o.eps, 0)) return ls_build_failed(m);
    LS_LAYER_OWN_AS(options, l) = (options){o.eps > 0 ? o.eps : 1e-5f, plus_one};
    l->memory.saved = (size_t)l->T;
    l->half.as_stored = LS_OPERAND_ALL & ~(unsigned)LS_OPERAND_SAVED;
    l->traits.adds_itself = true;
    l->memory.scratch = (size_t)(2 * RMS_ROWS * l->C);
    rms_converts(l);
    return ls_build_value(m, x->dims);
}

ls_value *(ls_rms_norm)(ls_model *m, ls_value *x, ls_rms_norm_options o) {
    return ls_layers_rms_norm(m, x, o, false);
}
