/* router.c - the logits of a row's experts: y = x . w^T, in f32 also with train.compute bf16, so
 * that the choice of experts is not one of rounded products.
 *
 * params: weight [experts, C]. Backward reads x. */
#include "layers/moe.h"
#include "tensor/gemm.h"
#include "tensor/gemv.h"

enum { W };

static int64_t experts_of(const ls_layer *l) { return (int64_t)l->counts[W] / l->C; }

static void forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, out = experts_of(l);
    const float *w = ls_layer_param(l, c, W);
    if (rows == 1 && !c->compute->device)
        ls_gemv_table(c->compute, &(ls_gemv_table_job){.w = {.data = w, .type = LS_BLOCK_F32},
                                                       .V = out,
                                                       .C = l->C,
                                                       .x = c->x[0],
                                                       .y = c->y});
    else
        ls_gemm(c->compute, &(ls_gemm_job){.M = rows,
                                           .N = out,
                                           .K = l->C,
                                           .a = ls_matrix_of(c->x[0], l->C),
                                           .b = ls_matrix_transposed(w, l->C),
                                           .c = c->y,
                                           .ldc = out});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, out = experts_of(l);
    ls_matrix dy = ls_matrix_of(c->dy, out);
    if (c->dx[0])
        ls_gemm(c->compute, &(ls_gemm_job){.M = rows,
                                           .N = l->C,
                                           .K = out,
                                           .a = dy,
                                           .b = ls_matrix_of(ls_layer_param(l, c, W), l->C),
                                           .c = c->dx[0],
                                           .ldc = l->C});
    if (ls_layer_trains(l, W))
        ls_gemm(c->compute, &(ls_gemm_job){.M = out,
                                           .N = l->C,
                                           .K = rows,
                                           .a = ls_matrix_across(dy),
                                           .b = ls_matrix_of(c->x[0], l->C),
                                           .c = ls_layer_grad(l, c, W),
                                           .ldc = l->C,
                                           .start = c->grads_start ? LS_GEMM_ZERO : LS_GEMM_ADD});
}

static const ls_layer_ops ops = {.kind = "router", .forward = forward, .backward = backward};

/* The products of declared works, all of the router's: in f32. */
static void set_f32(ls_works *w) {
    for (int i = 0; i < w->n; i++) w->list[i].in_f32 = w->list[i].kind < LS_NPRODUCTS;
}

ls_value *ls_layers_router(ls_model *m, ls_value *x, const ls_moe_options *o) {
    ls_layer *l = ls_build_layer(m, "gate", NULL, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t in = ls_value_last(x), rows = ls_value_count(x) / in;
    if (x->ndims > 2)
        return ls_build_fail(m, "the input is %s; [T, C] or [C] is needed",
                             ls_dims_write(x->dims).text);
    l->ops = &ops;
    l->T = rows;
    l->C = in;
    l->traits.only_first_reads = true;
    l->traits.on_device = true;
    l->cost.flops = 2.0 * (double)(rows * in * o->experts);
    ls_works_product(&l->cost.forward, LS_WORK_PRODUCT, 0, o->experts, in);
    ls_works_product(&l->cost.backward, LS_WORK_PRODUCT_DX, 0, in, o->experts);
    ls_works_product(&l->cost.backward, LS_WORK_PRODUCT_DW, o->experts, in, 0);
    ls_works_grads(&l->cost.backward, 1u << W);
    set_f32(&l->cost.forward), set_f32(&l->cost.backward);
    ls_build_param(m, l, "weight",
                   &(ls_param){.ndims = 2,
                               .dims = {o->experts, in},
                               .decay = true,
                               .init.std = ls_moe_deviation(o, in)});
    ls_dims dims = x->dims;
    dims.of[x->ndims ? x->ndims - 1 : 0] = o->experts;
    return ls_build_value(m, dims);
}
