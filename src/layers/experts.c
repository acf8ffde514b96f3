/* experts.c - the experts of a mixture: y = the sum over a row's experts of w (down . h), with
 * h = SiLU(gate . x) (up . x), and the weight w of the expert (routing.h), which is multiplied with
 * h.
 *
 * inputs: x [T, C], logits [T, E], and scores [T, E] where these choose. params: gate_proj, up_proj
 * [N, F, C], down_proj [N, C, F] of N experts: all E, or in a model of slices those of a slice.
 * saved: gate . x and up . x [T * k, F] each (k: at most N, and with a capacity as many as they
 * take), by slot (routing.h), counted from the first of these experts. The choice is computed again
 * in backward. Outside of training nothing is dropped, nor saved.
 *
 * On cores one expert after the other: its rows are gathered, and their results are added to those
 * of the experts before it. So an element of y, and of x's gradient, is one chain in the order of
 * experts. A slice adds up its own: rows that have chosen none of them are 0, and so are the
 * gradients of the weights of other slices' experts.
 *
 * On a device (experts_device.h) the host does not know how many rows an expert has, and each step
 * is one kernel for all experts; their rows take more memory, of which the results have that of dy,
 * and dgate that of dh. */
#include <assert.h>
#include <string.h>

#include "layers/copy.h"
#include "layers/experts_device.h"
#include "layers/layers.h"
#include "layers/moe.h"
#include "layers/routing.h"
#include "model/row_ops.h"
#include "tensor/gemm.h"
#include "tensor/gemv.h"

enum { GATE, UP, DOWN };
enum { NC = 3, NF = 4 }; /* buffers of rows of C, and of F, in work memory */

typedef struct options {
    int64_t experts, k, width;
    int64_t own, end; /* experts [own, end) are the layer's */
    int64_t capacity; /* 0: none */
    int64_t samples;  /* of the data, in one of the layer's */
    bool normalized;
} options;

/* The layer's call, with its parts of memory. */
typedef struct mixture {
    const ls_layer *l;
    const ls_layer_call *c;
    int64_t C, F;
    ls_routing r;
    int64_t own, end;    /* the layer's experts */
    bool saves;          /* else gate and up are those of one expert */
    float *gate, *up;    /* saved [rows * k, F] */
    float *x, *h, *out;  /* of one expert's rows, on a device of all: gathered, [F], results */
    float *dy, *dh;      /* backward: gathered, [F] */
    float *dgate, *dup;  /* [F] */
    float *dweight;      /* [rows, k] */
    int64_t e, first, n; /* the expert, its first slot, its number of rows, } on a device: of the */
    int64_t saved;       /* where in gate and up its rows are               } first one, 0, 0, 0 */
} mixture;

/* The most choices of T rows that the layer's experts may compute. */
static int64_t most_of(const options *o, int64_t T) {
    int64_t own = o->end - o->own, most = T * (own < o->k ? own : o->k);
    int64_t taken = own * o->capacity * o->samples;
    return o->capacity && taken < most ? taken : most;
}

enum { NC_THERE = 2, NF_THERE = 3 };

/* The memory behind x on a device, for the rows of all experts. */
static void place_there(mixture *f) {
    int64_t rows = ls_experts_device_rows(f->r.rows, f->r.k, f->end - f->own);
    f->out = f->dy = f->x + rows * f->C;
    f->h = f->dy + rows * f->C;
    f->dgate = f->dh = f->h + rows * f->F;
    f->dup = f->dh + rows * f->F;
    f->dweight = f->dup + rows * f->F;
    if (!f->saves) f->gate = f->dgate, f->up = f->dup;
}

static size_t floats_there(const options *o, int64_t T, int64_t C) {
    int64_t rows = ls_experts_device_rows(T, o->k, o->end - o->own);
    return (size_t)(rows * (NC_THERE * C + NF_THERE * o->width) + T * o->k);
}

static mixture mixture_of(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    mixture f = {.l = l, .c = c, .C = l->C, .F = o->width, .own = o->own, .end = o->end};
    f.r = (ls_routing){
        .rows = c->n * c->T, .experts = o->experts, .k = o->k, .normalized = o->normalized};
    int64_t rows = f.r.rows;
    f.r.sample = c->T / o->samples;
    f.r.capacity = c->training ? o->capacity : 0;
    f.saves = c->training || !o->capacity;
    f.gate = c->saved;
    f.up = f.gate + c->n * most_of(o, c->T) * f.F;
    f.x = ls_routing_place(&f.r, c->work);
    f.e = f.own;
    if (c->compute->device) {
        place_there(&f);
        return f;
    }
    f.out = f.x + rows * f.C;
    f.h = f.out + rows * f.C;
    f.dy = f.h + rows * f.F;
    f.dh = f.dy + rows * f.C;
    f.dgate = f.dh + rows * f.F;
    f.dup = f.dgate + rows * f.F;
    f.dweight = f.dup + rows * f.F;
    if (!f.saves) f.gate = f.dgate, f.up = f.dup;
    return f;
}

static bool is_there(const mixture *f) { return f->c->compute->device; }

static ls_experts_there experts_there(const mixture *f) {
    return (ls_experts_there){.c = f->c->compute, .r = &f->r, .own = f->own, .end = f->end};
}

static void begin_expert(mixture *f, int64_t e) {
    f->e = e;
    f->first = f->r.first[e];
    f->n = f->r.first[e + 1] - f->first;
    f->saved = f->saves ? (f->first - f->r.first[f->own]) * f->F : 0;
}

/* ---- products of the expert's rows ---- */

/* The expert's part of a parameter of F * C elements for each expert. */
static ls_stored part_of(const mixture *f, int param) {
    return ls_stored_at(ls_layer_stored(f->l, f->c, param), (f->e - f->own) * f->F * f->C);
}

/* A product of the expert's rows. */
static void product(const mixture *f, const ls_gemm_job *given) {
    ls_gemm_job g = *given;
    const ls_weight_matrix *w = &given->w;
    if (!is_there(f)) {
        ls_gemm(f->c->compute, given);
        return;
    }
    ls_experts_there t = experts_there(f);
    assert(w->rows.type == LS_BLOCK_F32);
    g.b = w->transposed ? ls_matrix_transposed(w->rows.data, w->width)
                        : ls_matrix_of(w->rows.data, w->width);
    ls_experts_device_product(&t, &g);
}

/* y [n, out] = x [n, in] . w^T, w being [out, in]. */
static void multiply(const mixture *f, int param, const float *x, float *y) {
    int64_t in = param == DOWN ? f->F : f->C, out = param == DOWN ? f->C : f->F;
    bool bf16 = ls_layer_in_bf16(f->c);
    ls_stored w = part_of(f, param);
    if (f->n == 1)
        ls_gemv_table(f->c->compute, &(ls_gemv_table_job){
                                         .w = w, .V = out, .C = in, .x = x, .y = y, .bf16 = bf16});
    else
        product(f, &(ls_gemm_job){.M = f->n,
                                  .N = out,
                                  .K = in,
                                  .bf16 = bf16,
                                  .a = ls_matrix_of(x, in),
                                  .w = ls_weights_transposed(w, in),
                                  .c = y,
                                  .ldc = out});
}

/* dx [n, in] = dy [n, out] . w, or it is added. */
static void multiply_back(const mixture *f, int param, const float *dy, ls_gemm_start start,
                          float *dx) {
    int64_t in = param == DOWN ? f->F : f->C, out = param == DOWN ? f->C : f->F;
    product(f, &(ls_gemm_job){.M = f->n,
                              .N = in,
                              .K = out,
                              .bf16 = ls_layer_in_bf16(f->c),
                              .a = ls_matrix_of(dy, out),
                              .w = ls_weights_of(part_of(f, param), in),
                              .c = dx,
                              .ldc = in,
                              .start = start});
}

/* The units of the expert's rows, which are choices of the call's rows. */
static ls_gemm_units units_of(const mixture *f) {
    ls_gemm_units u = ls_rows_units(f->c);
    u.rows *= f->r.k;
    u.row = f->r.choice + f->first;
    return u;
}

/* The gradient of the expert's part: dy^T . x; an expert without rows has none. */
static void sum_products(const mixture *f, int param, const float *dy, const float *x) {
    int64_t in = param == DOWN ? f->F : f->C, out = param == DOWN ? f->C : f->F;
    if (!ls_layer_trains(f->l, param)) return;
    const ls_gemm_job g = {.M = out,
                           .N = in,
                           .K = f->n,
                           .bf16 = ls_layer_in_bf16(f->c),
                           .a = ls_matrix_across(ls_matrix_of(dy, out)),
                           .b = ls_matrix_of(x, in),
                           .c = ls_layer_grad(f->l, f->c, param) + (f->e - f->own) * f->F * f->C,
                           .ldc = in,
                           .units = units_of(f),
                           .start = f->c->grads_start ? LS_GEMM_ZERO : LS_GEMM_ADD};
    ls_experts_there t = experts_there(f);
    if (is_there(f))
        ls_experts_device_sum(&t, &g);
    else
        ls_gemm(f->c->compute, &g);
}

/* ---- passes over the expert's rows ---- */

/* Row i of the expert: its choice, and its row of the call. */
static int32_t choice_of(const mixture *f, int64_t i) { return f->r.choice[f->first + i]; }

typedef struct rows_job {
    const mixture *f;
    const float *from; /* [rows, C] or [n, C] */
    float *to;
} rows_job;

static void gather_run(void *arg, int thread, int nthreads) {
    const rows_job *j = arg;
    const mixture *f = j->f;
    int64_t i = 0, end = 0;
    ls_pool_share(f->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++)
        memcpy(j->to + i * f->C, j->from + choice_of(f, i) / f->r.k * f->C,
               (size_t)f->C * sizeof(float));
}

static void gather(const mixture *f, const float *from, float *to) {
    ls_experts_there t = experts_there(f);
    if (is_there(f)) {
        ls_experts_device_gather(&t, f->C, from, to);
        return;
    }
    ls_pool_run_sized(f->c->compute->pool, f->n * f->C, gather_run, &(rows_job){f, from, to});
}

/* Is it a choice that the layer computes? */
static bool is_own(const mixture *f, int64_t choice) {
    bool dropped = f->r.capacity && f->r.slot[choice] < 0;
    return f->r.expert[choice] >= f->own && f->r.expert[choice] < f->end && !dropped;
}

/* Is it the first of its row that the layer computes? */
static bool begins_row(const mixture *f, int32_t choice) {
    for (int64_t i = choice - choice % f->r.k; i < choice; i++)
        if (is_own(f, i)) return false;
    return true;
}

/* Adds the expert's results to its rows; a row's first expert begins them. */
static void scatter_run(void *arg, int thread, int nthreads) {
    const rows_job *j = arg;
    const mixture *f = j->f;
    int64_t i = 0, end = 0;
    ls_pool_share(f->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        int32_t choice = choice_of(f, i);
        float *to = j->to + choice / f->r.k * f->C;
        const float *from = j->from + i * f->C;
        if (begins_row(f, choice))
            memcpy(to, from, (size_t)f->C * sizeof *to);
        else
            f->c->compute->k->add(f->C, to, from, to);
    }
}

static void scatter(const mixture *f, const float *from, float *to) {
    ls_experts_there t = experts_there(f);
    if (is_there(f)) {
        ls_experts_device_scatter(&t, f->C, from, to);
        return;
    }
    ls_pool_run_sized(f->c->compute->pool, f->n * f->C, scatter_run, &(rows_job){f, from, to});
}

static bool has_own(const mixture *f, int64_t row) {
    for (int64_t i = row * f->r.k; i < (row + 1) * f->r.k; i++)
        if (is_own(f, i)) return true;
    return false;
}

static void clear_run(void *arg, int thread, int nthreads) {
    const rows_job *j = arg;
    int64_t i = 0, end = 0, C = j->f->C;
    ls_pool_share(j->f->r.rows, 1, thread, nthreads, &i, &end);
    for (; i < end; i++)
        if (!has_own(j->f, i)) memset(j->to + i * C, 0, (size_t)C * sizeof *j->to);
}

/* Does the layer leave out choices? */
static bool leaves_out(const mixture *f) {
    return f->end - f->own < f->r.experts || f->r.capacity > 0;
}

/* Zeros in rows that none of the layer's experts computes; a device's scatter() writes them. */
static void clear_others(const mixture *f, float *to) {
    if (!leaves_out(f) || is_there(f)) return;
    ls_pool_run_sized(f->c->compute->pool, f->r.rows * f->C, clear_run,
                      &(rows_job){.f = f, .to = to});
}

/* h = w SiLU(gate) up. */
static void activate_run(void *arg, int thread, int nthreads) {
    const mixture *f = arg;
    const ls_kernels *k = f->c->compute->k;
    int64_t i = 0, end = 0;
    ls_pool_share(f->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        int64_t at = f->saved + i * f->F;
        float *h = f->h + i * f->F;
        k->silu_gate(f->F, f->gate + at, f->up + at, h);
        k->affine(f->F, h, f->r.weight[choice_of(f, i)], 0, h);
    }
}

/* From dh, the gradient of h: the gradients of the weight, of gate and of up; and h again. */
static void activate_back_run(void *arg, int thread, int nthreads) {
    const mixture *f = arg;
    const ls_kernels *k = f->c->compute->k;
    int64_t i = 0, end = 0, F = f->F;
    ls_pool_share(f->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        int64_t at = f->saved + i * F;
        float *h = f->h + i * F, *dh = f->dh + i * F, w = f->r.weight[choice_of(f, i)];
        k->silu_gate(F, f->gate + at, f->up + at, h);
        f->dweight[choice_of(f, i)] = ls_dot_product(dh, h, F);
        k->affine(F, h, w, 0, h);
        k->affine(F, dh, w, 0, dh);
        k->silu_gate_dx(F, f->gate + at, f->up + at, dh, f->dgate + i * F, f->dup + i * F);
    }
}

static ls_expert_gates gates_of(const mixture *f) {
    return (ls_expert_gates){
        .gate = f->gate, .up = f->up, .h = f->h, .dh = f->dh, .dup = f->dup, .dweight = f->dweight};
}

static void activate(mixture *f) {
    ls_experts_there t = experts_there(f);
    ls_expert_gates g = gates_of(f);
    if (is_there(f))
        ls_experts_device_activate(&t, f->F, &g);
    else
        ls_pool_run_sized(f->c->compute->pool, f->n * f->F * 8, activate_run, f);
}

static void activate_back(mixture *f) {
    ls_experts_there t = experts_there(f);
    ls_expert_gates g = gates_of(f);
    if (is_there(f))
        ls_experts_device_activate_back(&t, f->F, &g);
    else
        ls_pool_run_sized(f->c->compute->pool, f->n * f->F * 8, activate_back_run, f);
}

/* ---- passes ---- */

/* A pass of each expert, or, on a device, of all at once. */
static void each_expert(mixture *f, void (*pass)(mixture *)) {
    if (is_there(f)) {
        pass(f);
        return;
    }
    for (int64_t e = f->own; e < f->end; e++) {
        begin_expert(f, e);
        pass(f);
    }
}

static void forward_experts(mixture *f) {
    const ls_layer_call *c = f->c;
    if (f->n == 0 && !is_there(f)) return;
    gather(f, c->x[0], f->x);
    multiply(f, GATE, f->x, f->gate + f->saved);
    multiply(f, UP, f->x, f->up + f->saved);
    activate(f);
    multiply(f, DOWN, f->h, f->out);
    scatter(f, f->out, c->y);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    mixture f = mixture_of(l, c);
    ls_routing_choose(c->compute, c->x[1], l->ninputs > 2 ? c->x[2] : NULL, &f.r);
    clear_others(&f, c->y);
    each_expert(&f, forward_experts);
}

static void backward_experts(mixture *f) {
    const ls_layer_call *c = f->c;
    gather(f, c->x[0], f->x);
    gather(f, c->dy, f->dy);
    multiply_back(f, DOWN, f->dy, LS_GEMM_ZERO, f->dh);
    activate_back(f);
    sum_products(f, DOWN, f->dy, f->h);
    sum_products(f, GATE, f->dgate, f->x);
    sum_products(f, UP, f->dup, f->x);
    if (!c->dx[0]) return;
    multiply_back(f, GATE, f->dgate, LS_GEMM_ZERO, f->out);
    multiply_back(f, UP, f->dup, LS_GEMM_ADD, f->out);
    scatter(f, f->out, c->dx[0]);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    mixture f = mixture_of(l, c);
    ls_routing_choose(c->compute, c->x[1], l->ninputs > 2 ? c->x[2] : NULL, &f.r);
    if (c->dx[0]) clear_others(&f, c->dx[0]);
    if (leaves_out(&f))
        ls_copy_run(c->compute, &(ls_copy){.rows = 1, .width = f.r.rows * f.r.k, .to = f.dweight});
    each_expert(&f, backward_experts);
    if (c->dx[1]) ls_routing_back(c->compute, c->x[1], f.dweight, &f.r, c->dx[1]);
    if (l->ninputs > 2 && c->dx[2])
        ls_copy_run(c->compute,
                    &(ls_copy){.rows = 1, .width = f.r.rows * f.r.experts, .to = c->dx[2]});
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){.experts = o->experts,
                    .per_row = o->k,
                    .normalized = o->normalized,
                    .first = o->own,
                    .count = o->end - o->own};
}

static const ls_layer_ops ops = {
    .kind = "experts", .forward = forward, .backward = backward, .describe = describe};

size_t ls_layers_read_by_row(const ls_layer *l, int i) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    if (l->ops != &ops) return l->counts[i];
    return l->counts[i] * (size_t)o->k / (size_t)o->experts;
}

/* ---- the layer ---- */

/* Rows are taken to be spread evenly over the experts. */
static void add_works(ls_layer *l, const options *o) {
    int64_t C = l->C, F = o->width, T = l->T;
    int64_t M = (T * o->k + o->experts - 1) / o->experts;
    double part = (double)(o->end - o->own) / (double)o->experts;
    double times = part * (double)(T * o->k) / (double)M;
    int64_t rows = T * o->k * (o->end - o->own) / o->experts;
    const ls_work forward[] = {
        {.kind = LS_WORK_PRODUCT, .M = M, .N = F, .K = C, .times = 2 * times},
        {.kind = LS_WORK_PRODUCT, .M = M, .N = C, .K = F, .times = times}};
    const ls_work dx[] = {{.kind = LS_WORK_PRODUCT_DX, .M = M, .N = C, .K = F, .times = 2 * times},
                          {.kind = LS_WORK_PRODUCT_DX, .M = M, .N = F, .K = C, .times = times}};
    for (int i = 0; i < 2; i++) l->cost.forward.list[l->cost.forward.n++] = forward[i];
    for (int i = 0; i < 2; i++) l->cost.backward.list[l->cost.backward.n++] = dx[i];
    for (int i = GATE; i <= DOWN; i++) {
        l->cost.backward.list[l->cost.backward.n++] = (ls_work){.kind = LS_WORK_PRODUCT_DW,
                                                                .M = i == DOWN ? C : F,
                                                                .N = i == DOWN ? F : C,
                                                                .K = M,
                                                                .times = times};
        ls_works_grads(&l->cost.backward, 1u << i);
    }
    ls_works_pass(&l->cost.forward, LS_WORK_GELU, rows * F);
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, 2 * rows * C);
    ls_works_pass(&l->cost.backward, LS_WORK_GELU_BACK, rows * F);
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, 3 * rows * C);
}

static void add_params(ls_model *m, ls_layer *l, const ls_moe_options *o, bool own_blocks) {
    static const char *const names[] = {"gate_proj", "up_proj", "down_proj"};
    const options *own = &LS_LAYER_OWN_OF(options, l);
    const ls_tensor_part part = {.groups = 1, .first = own->own, .all = o->experts};
    bool cut = own->end - own->own < o->experts;
    for (int i = GATE; i <= DOWN; i++) {
        int64_t in = i == DOWN ? o->width : l->C, out = i == DOWN ? l->C : o->width;
        l->half.reads_stored[i] = l->half.in_products[i] = true;
        ls_build_param(m, l, names[i],
                       &(ls_param){.ndims = 3,
                                   .dims = {own->end - own->own, out, in},
                                   .cut.part = cut ? part : (ls_tensor_part){0},
                                   .cut.own_blocks = own_blocks,
                                   .decay = true,
                                   .init.std = ls_moe_deviation(o, in)});
    }
}

ls_value *ls_layers_experts_slice(ls_model *m, ls_value *x, ls_router_values r,
                                  const ls_moe_options *o, ls_experts_slice s) {
    ls_value *in[] = {x, r.logits, r.scores};
    ls_layer *l = ls_build_layer(m, "experts", s.name, in, r.scores ? 3 : 2);
    if (!l) return ls_build_failed(m);
    int64_t k = o->per_token, F = o->width, samples = s.samples ? s.samples : 1;
    double rows = (double)k * (double)(s.end - s.first) / (double)o->experts;
    l->ops = &ops;
    l->C = ls_value_last(x);
    l->T = ls_value_count(x) / l->C;
    l->traits.on_device = true;
    options own = {.experts = o->experts,
                   .k = k,
                   .width = F,
                   .own = s.first,
                   .end = s.end,
                   .capacity = ls_routing_capacity(o->capacity, l->T / samples, o->experts, k),
                   .samples = samples,
                   .normalized = o->normalize};
    LS_LAYER_OWN_AS(options, l) = own;
    l->half.saved_rough = (size_t)((2 * most_of(&own, l->T) * F + l->T - 1) / l->T);
    l->memory.saved = (size_t)l->T * l->half.saved_rough; /* all of it may be rounded */
    l->memory.work =
        ls_routing_floats(l->T, o->experts, k) + (size_t)(l->T * (NC * l->C + NF * F + k));
    l->memory.there = ls_routing_floats(l->T, o->experts, k) + floats_there(&own, l->T, l->C);
    l->cost.flops = 6.0 * rows * (double)l->T * (double)(F * l->C);
    add_works(l, &own);
    add_params(m, l, o, s.own_blocks);
    return ls_build_value(m, x->dims);
}

ls_value *ls_layers_experts(ls_model *m, ls_value *x, ls_router_values r, const ls_moe_options *o) {
    return ls_layers_experts_slice(m, x, r, o, (ls_experts_slice){.end = o->experts});
}
