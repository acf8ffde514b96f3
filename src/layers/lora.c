/* lora.c - the adapter of a linear layer: y = x . w^T + bias + scale (drop(x) . a^T) . b^T, and
 * DoRA.
 *
 * params: the layer's; a [r, in], b [out, r], with DoRA magnitude m [out]. An element of y is one
 * chain: over the inputs, and then over the adapter's r numbers t = scale drop(x) . a^T.
 *
 * DoRA: z is y without the bias as above, and y = g z + bias, where g = m / |w + scale b . a|, row
 * by row. The norms are a constant for the gradient: dm = sum(dy z / norm); all other gradients are
 * those of z, with dz = g dy. PEFT's DoRA has another sum where there is dropout: there the
 * dropped-out input counts for g w, too.
 *
 * saved: with DoRA z [rows, out], which may be rounded; t [rows, r]. Backward draws the mask of
 * dropout again. work: backward: dt [rows, r], with DoRA dz [rows, out]; both: with dropout drop(x)
 * [rows, in]; with DoRA 1 / norm and g [out].
 */
#include <math.h>

#include "layers/dropout.h"
#include "layers/linear.h"
#include "layers/lora_device.h"
#include "layers/lora_merge.h"
#include "model/row_ops.h"
#include "tensor/gemm.h"
#include "tensor/gemv.h"

enum { W };

/* The layer's call, with its parts of memory. */
typedef struct lora {
    const ls_layer *l;
    const ls_layer_call *c;
    const ls_linear_own *o;
    int64_t rows, in, out, r;
    ls_matrix a, b;
    float *z, *t;             /* saved; z NULL: no DoRA */
    float *dropped, *dt, *dz; /* work */
    float *inverse, *g;       /* [out] */
} lora;

static lora lora_of(const ls_layer *l, const ls_layer_call *c) {
    const ls_linear_own *o = &LS_LAYER_OWN_OF(ls_linear_own, l);
    lora f = {.l = l, .c = c, .o = o, .rows = c->n * c->T, .in = l->C, .r = o->rank};
    f.out = ls_linear_outputs(l);
    f.a = ls_rows_weights(l, c, o->a, f.in);
    f.b = ls_rows_weights(l, c, o->b, f.r);
    f.t = c->saved;
    f.dt = c->work;
    f.dropped = f.dt + f.rows * f.r;
    if (!o->magnitude) return f;
    f.z = c->saved;
    f.t = f.z + f.rows * f.out;
    f.dz = f.dropped + (o->mask.rate > 0 ? f.rows * f.in : 0);
    f.inverse = f.dz + f.rows * f.out;
    f.g = f.inverse + f.out;
    return f;
}

/* ---- products ---- */

/* c [rows, N] (+)= x [rows, K] . b, of a job that has all but the rows. */
static void multiply(const lora *f, ls_matrix x, ls_gemm_job j) {
    j.M = f->rows;
    j.bf16 = ls_layer_in_bf16(f->c);
    j.a = x;
    j.ldc = j.N;
    ls_gemm(f->c->compute, &j);
}

/* y [N] = x [C] . w [N, C]^T for one row in f32, from its bias on: the same bits as by
 * multiply(), without packing w. */
static void multiply_row(const lora *f, const float *x, const float *w, ls_gemv_table_job j) {
    j.x = x;
    j.w = (ls_stored){.data = w, .type = LS_BLOCK_F32};
    ls_gemv_table(f->c->compute, &j);
}

static bool is_row(const lora *f) {
    return f->rows == 1 && !ls_layer_in_bf16(f->c) && !f->c->compute->device;
}

/* t = x . a^T */
static void multiply_a(const lora *f, ls_matrix x) {
    if (is_row(f))
        multiply_row(f, x.p, f->a.p, (ls_gemv_table_job){.V = f->r, .C = f->in, .y = f->t});
    else
        multiply(f, x,
                 (ls_gemm_job){.N = f->r, .K = f->in, .b = ls_matrix_across(f->a), .c = f->t});
}

/* y += t . b^T */
static void add_b(const lora *f, float *y) {
    if (is_row(f))
        multiply_row(f, f->t, f->b.p,
                     (ls_gemv_table_job){.V = f->out, .C = f->r, .bias = y, .y = y});
    else
        multiply(
            f, ls_matrix_of(f->t, f->r),
            (ls_gemm_job){
                .N = f->out, .K = f->r, .b = ls_matrix_across(f->b), .c = y, .start = LS_GEMM_ADD});
}

/* grad [M, N] = p [rows, M]^T . q [rows, N], a sum over all rows; these are contiguous. */
static void sum_products(const lora *f, ls_matrix p, ls_matrix q, float *grad) {
    ls_gemm(f->c->compute, &(ls_gemm_job){.M = p.rs,
                                          .bf16 = ls_layer_in_bf16(f->c),
                                          .N = q.rs,
                                          .K = f->rows,
                                          .a = ls_matrix_across(p),
                                          .b = q,
                                          .c = grad,
                                          .ldc = q.rs,
                                          .units = ls_rows_units(f->c),
                                          .start = f->c->grads_start ? LS_GEMM_ZERO : LS_GEMM_ADD});
}

static void scale(const lora *f, float *x) {
    if (f->c->compute->device)
        ls_lora_device_scale(f->c->compute, f->rows * f->r, x, f->o->scale);
    else
        f->c->compute->k->affine(f->rows * f->r, x, f->o->scale, 0, x);
}

/* The input of the adapter. */
static ls_matrix input_of(const lora *f) {
    const ls_layer_call *c = f->c;
    if (!ls_dropout_acts(&f->o->mask, c)) return ls_rows_x(f->l, c, 0, f->in);
    ls_dropout_run(&f->o->mask, c, c->T * f->in, ls_rows_x(f->l, c, 0, f->in), f->dropped);
    return ls_matrix_of(f->dropped, f->in);
}

/* ---- DoRA ---- */

static void find_norms(lora *f) {
    const ls_compute *c = f->c->compute;
    if (c->device)
        ls_lora_device_norms(
            c, &(ls_lora_norms){.out = f->out,
                                .in = f->in,
                                .rank = f->r,
                                .scale = f->o->scale,
                                .w = ls_layer_stored(f->l, f->c, W).data,
                                .a = f->a.p,
                                .b = f->b.p,
                                .magnitude = ls_layer_param(f->l, f->c, f->o->magnitude),
                                .inverse = f->inverse,
                                .g = f->g});
    else
        ls_lora_norms_find(
            &(ls_lora_values){f->l, f->a.p, f->b.p, ls_layer_param(f->l, f->c, f->o->magnitude)}, c,
            ls_layer_stored(f->l, f->c, W), f->inverse, f->g);
}

/* On a device: y = x [rows, out] with each column times its factor, times other or 1, plus bias or
 * 0. */
static void multiply_columns(const lora *f, const void *x, const float *factors, const float *other,
                             const float *bias, float *y) {
    ls_lora_device_columns(f->c->compute,
                           &(ls_lora_columns){f->rows, f->out, x, factors, other, bias, y});
}

static const float *bias_of(const lora *f) {
    return f->o->bias ? ls_layer_param(f->l, f->c, f->o->bias) : NULL;
}

/* y = g z + bias. */
static void scale_run(void *arg, int thread, int nthreads) {
    const lora *f = arg;
    const ls_kernels *k = f->c->compute->k;
    const float *bias = bias_of(f);
    int64_t r = 0, end = 0;
    ls_pool_share(f->rows, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        float *y = (float *)f->c->y + r * f->out;
        k->multiply(f->out, f->z + r * f->out, f->g, y);
        if (bias) k->add(f->out, y, bias, y);
    }
}

/* dz = dy g. */
static void back_run(void *arg, int thread, int nthreads) {
    const lora *f = arg;
    int64_t r = 0, end = 0;
    ls_pool_share(f->rows, 1, thread, nthreads, &r, &end);
    for (; r < end; r++)
        f->c->compute->k->multiply(f->out, (const float *)f->c->dy + r * f->out, f->g,
                                   f->dz + r * f->out);
}

/* In place of dz: dy z / norm, whose sums are the gradient of the magnitudes. */
static void magnitude_run(void *arg, int thread, int nthreads) {
    const lora *f = arg;
    const ls_kernels *k = f->c->compute->k;
    int64_t r = 0, end = 0;
    ls_pool_share(f->rows, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        float *dz = f->dz + r * f->out;
        k->multiply(f->out, (const float *)f->c->dy + r * f->out, f->inverse, dz);
        k->multiply(f->out, dz, f->z + r * f->out, dz);
    }
}

/* The gradient of the magnitudes; returns dz. */
static ls_matrix magnitude_back(lora *f) {
    const ls_compute *compute = f->c->compute;
    int m = f->o->magnitude;
    find_norms(f);
    if (ls_layer_trains(f->l, m)) {
        if (compute->device)
            multiply_columns(f, f->c->dy, f->inverse, f->z, NULL, f->dz);
        else
            ls_pool_run(compute->pool, magnitude_run, f);
        ls_rows_column_sum(f->c, f->rows, ls_matrix_of(f->dz, f->out),
                           ls_layer_grad(f->l, f->c, m));
    }
    if (compute->device)
        multiply_columns(f, f->c->dy, f->g, NULL, NULL, f->dz);
    else
        ls_pool_run(compute->pool, back_run, f);
    return ls_matrix_of(f->dz, f->out);
}

/* ---- passes ---- */

static void forward(const ls_layer *l, const ls_layer_call *c) {
    lora f = lora_of(l, c);
    float *y = f.z ? f.z : c->y;
    multiply_a(&f, input_of(&f));
    scale(&f, f.t);
    ls_linear_product(l, c, !f.z, y);
    add_b(&f, y);
    if (!f.z) return;
    find_norms(&f);
    if (c->compute->device)
        multiply_columns(&f, f.z, f.g, NULL, bias_of(&f), c->y);
    else
        ls_pool_run(c->compute->pool, scale_run, &f);
}

/* dx = dz . w + drop(dt . a), one chain without dropout. */
static void input_back(const lora *f, ls_matrix dz) {
    const ls_layer_call *c = f->c;
    float *dx = c->dx[0];
    bool drops = ls_dropout_acts(&f->o->mask, c);
    ls_linear_product_dx(f->l, c, dz, dx);
    multiply(f, ls_matrix_of(f->dt, f->r),
             (ls_gemm_job){.N = f->in,
                           .K = f->r,
                           .b = f->a,
                           .c = drops ? f->dropped : dx,
                           .start = drops ? LS_GEMM_ZERO : LS_GEMM_ADD});
    if (!drops) return;
    ls_dropout_run(&f->o->mask, c, c->T * f->in, ls_matrix_of(f->dropped, f->in), f->dropped);
    int64_t n = f->rows * f->in;
    ls_rows_add(c->compute, n, ls_matrix_of(dx, n), f->dropped, ls_numbers_f32(dx));
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    lora f = lora_of(l, c);
    ls_matrix dz = f.z ? magnitude_back(&f) : ls_rows_dy(l, c, f.out);
    int a = f.o->a, b = f.o->b;
    ls_linear_bias_back(l, c);
    ls_linear_product_dw(l, c, dz);
    if (ls_layer_trains(l, b)) sum_products(&f, dz, ls_matrix_of(f.t, f.r), ls_layer_grad(l, c, b));
    if (!ls_layer_trains(l, a) && !c->dx[0]) return;
    multiply(&f, dz, (ls_gemm_job){.N = f.r, .K = f.out, .b = f.b, .c = f.dt});
    scale(&f, f.dt);
    if (ls_layer_trains(l, a))
        sum_products(&f, ls_matrix_of(f.dt, f.r), input_of(&f), ls_layer_grad(l, c, a));
    if (c->dx[0]) input_back(&f, dz);
}

static void describe(const ls_layer *l, ls_facts *f) {
    *f = (ls_facts){.out_in = true, .bias = LS_LAYER_OWN_OF(ls_linear_own, l).bias};
}

static const ls_layer_ops ops = {
    .kind = "linear", .forward = forward, .backward = backward, .describe = describe};

/* ---- the layer ---- */

bool ls_lora_is(const ls_layer *l) { return l->ops == &ops; }

bool ls_lora_find(const ls_layer *l, int params_p[3]) {
    if (!ls_lora_is(l)) return false;
    const ls_linear_own *o = &LS_LAYER_OWN_OF(ls_linear_own, l);
    params_p[0] = o->a;
    params_p[1] = o->b;
    params_p[2] = o->magnitude;
    return true;
}

static void add_works(ls_layer *l, const ls_linear_own *o, int64_t in, int64_t out) {
    int64_t T = l->T, r = o->rank;
    ls_works_product(&l->cost.forward, LS_WORK_PRODUCT, 0, r, in);
    ls_works_product(&l->cost.forward, LS_WORK_PRODUCT, 0, out, r);
    ls_works_product(&l->cost.backward, LS_WORK_PRODUCT_DX, 0, r, out);
    ls_works_product(&l->cost.backward, LS_WORK_PRODUCT_DX, 0, in, r);
    ls_works_product(&l->cost.backward, LS_WORK_PRODUCT_DW, r, in, 0);
    ls_works_grads(&l->cost.backward, 1u << o->a);
    ls_works_product(&l->cost.backward, LS_WORK_PRODUCT_DW, out, r, 0);
    ls_works_grads(&l->cost.backward, 1u << o->b);
    l->cost.flops += 2.0 * (double)(T * r * (in + out));
    if (o->mask.rate > 0) ls_works_dropout(&l->cost.forward, T * in);
    if (o->mask.rate > 0) ls_works_dropout(&l->cost.backward, 2 * T * in);
    if (!o->magnitude) return;
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, T * out);
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, 3 * T * out);
    ls_works_pass(&l->cost.backward, LS_WORK_COLUMN_SUM, T * out);
    ls_works_grads(&l->cost.backward, 1u << o->magnitude);
}

static bool check(ls_model *m, const ls_lora *o) {
    if (o->rank < 1)
        ls_build_fail(m, "lora: rank is %lld; it is at least 1", (long long)o->rank);
    else if (!(o->dropout >= 0 && o->dropout < 1))
        ls_build_fail(m, "lora: dropout is %g; it is from 0 to below 1", (double)o->dropout);
    return ls_build_takes(m, "lora: alpha", (double)o->alpha, 0);
}

/* The number of adapters in the layers so far, this one included. */
static uint32_t number_of(const ls_model *m) {
    uint32_t n = 0;
    for (int i = 0; i < m->nlayers; i++) n += m->layers[i].ops == &ops;
    return n;
}

ls_layer *ls_lora_add(ls_model *m, ls_layer *l, const ls_lora *given) {
    int64_t in = l->C, out = ls_linear_outputs(l), r = given->rank;
    ls_linear_own *o = &LS_LAYER_OWN_AS(ls_linear_own, l);
    float alpha = given->alpha > 0 ? given->alpha : 8;
    if (!check(m, given)) return NULL;
    l->ops = &ops;
    l->traits.only_first_reads = false;
    if (given->dropout > 0) l->half.as_stored &= ~(unsigned)LS_OPERAND_X;
    if (given->dora) l->half.as_stored &= ~(unsigned)LS_OPERAND_DY;
    o->rank = r;
    o->scale = alpha / (given->rs ? sqrtf((float)r) : (float)r);
    o->mask =
        (ls_dropout_mask){.rate = given->dropout, .number = LS_DROPOUT_ADAPTERS + number_of(m)};
    o->a = l->nparams;
    o->b = o->a + 1;
    o->magnitude = given->dora ? o->b + 1 : 0;
    ls_param a = {.ndims = 2, .dims = {r, in}, .decay = true, .adapter = true};
    ls_param b = {.ndims = 2, .dims = {out, r}, .decay = true, .adapter = true};
    ls_param magnitude = {
        .ndims = 1, .dims = {out}, .adapter = true, .init.norms_of = l->params[W] + 1};
    a.init.bound = 1 / sqrtf((float)in);
    ls_build_param(m, l, "lora_A.weight", &a);
    ls_build_param(m, l, "lora_B.weight", &b);
    if (given->dora) ls_build_param(m, l, "lora_magnitude_vector", &magnitude);
    l->half.in_products[o->a] = l->half.in_products[o->b] = !given->dora; /* norms read them, too */
    int64_t dropped = given->dropout > 0 ? in : 0, scaled = given->dora ? out : 0;
    l->memory.saved = (size_t)(l->T * (r + scaled));
    l->half.saved_rough = (size_t)scaled;
    l->memory.work = (size_t)(l->T * (r + dropped + scaled) + 2 * scaled);
    if (given->dora) l->memory.scratch = ls_lora_norms_scratch(in, r);
    add_works(l, o, in, out);
    return l;
}
