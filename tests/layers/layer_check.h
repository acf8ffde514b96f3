/* layer_check.h - checks of layers that calls of lockstep/model.h add.
 *
 *     static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
 *         return ls_gelu(m, x[0]);
 *     }
 *     static void reference(const void *arg, double *const *x, double *const *params, double *y);
 *     layer_check(&(layer_case){.name = "gelu",
 *                               .fields = {{LS_F32, LS_DIMS(5, 3)}},
 *                               .nfields = 1,
 *                               .build = build,
 *                               .reference = reference});
 *
 * The case's model gets random fields and parameters; its loss is the sum of the value's numbers,
 * each times a factor. Checked:
 *   - the value against the reference, one sample in double precision;
 *   - gradients of all parameters and f32 fields against central differences of the reference;
 *   - the same bits for any micro-batch, number of threads, and variant of the kernels, and with
 *     NaN in all memory that a layer has not written yet; samples are at odd places of a batch;
 *   - operands in 16 bits: the value is that of the rounded operands, rounded; gradients are close;
 *   - each parameter frozen, and all: value and other gradients have the same bits.
 * A layer that joins samples (layer.h) gets all of them in each call, and the reference, too; the
 * gradients of running values are not compared.
 * Buffers have exactly the size that a layer declares: a build with the address sanitizer finds
 * other accesses.
 */
#ifndef LS_TEST_LAYER_CHECK_H
#define LS_TEST_LAYER_CHECK_H

#include <math.h>

#include "base/mem.h"
#include "base/random.h"
#include "layers/linear.h"
#include "model/builder.h"
#include "model/mixed.h"
#include "tensor/dtype.h"
#include "test.h"

enum { CHECK_SAMPLES = 5, CHECK_FIELDS = 4, CHECK_PARAMS = 16, CHECK_ELEMENTS = 60 };

enum { CHECK_SEED = 5, CHECK_STEP = 7 }; /* of the calls */

typedef struct layer_field {
    ls_dtype type;
    ls_dims dims;
    int64_t least, below; /* of integers: the range [least, below) */
} layer_field;

typedef struct layer_case {
    const char *name;
    const void *arg; /* for the functions */
    layer_field fields[CHECK_FIELDS];
    int nfields;
    ls_value *(*build)(ls_model *, ls_value **x, const void *arg);
    /* One sample: fields and parameters, in the order of the model, to y. joins: all samples, one
     * after the other. */
    bool joins;
    void (*reference)(const void *arg, double *const *x, double *const *params, double *y);
    double tolerance;  /* relative to a tensor's largest value; 0: 1e-5 */
    double half_units; /* of 16 bits, for gradients; 0: 4; several layers in a row need more */
} layer_case;

typedef struct layer_bench {
    const layer_case *c;
    ls_model model;
    int value; /* the layer that computes the case's value */
    int64_t count;
    int conversion[CHECK_FIELDS]; /* the layer that converts the field; -1: none does */
    unsigned char *samples;       /* [CHECK_SAMPLES][sample_nbytes] */
    float *params;                /* [nfloats] */
    float *frozen[CHECK_PARAMS];  /* frozen parameters; NULL: trained */
} layer_bench;

/* How a result is computed. */
typedef struct layer_way {
    const ls_kernels *k; /* NULL: the fastest */
    int64_t micro;
    int threads;
    ls_dtype type, grads;
    bool empty; /* no samples: what a virtual worker has of a small batch */
} layer_way;

typedef struct layer_result {
    float *y;                /* [CHECK_SAMPLES][count] */
    float *grads;            /* [nfloats] */
    float *dx[CHECK_FIELDS]; /* [CHECK_SAMPLES][...]; NULL: no f32 field, or no layer reads it */
    double losses[CHECK_SAMPLES];
} layer_result;

/* ---- the loss: factors are multiples of 1/8, which all types hold ---- */

static inline float layer_factor(int64_t sample, int64_t i) {
    return (float)((i * 7 + sample * 5 + 3) % 17 - 8) / 8.0f;
}

static inline void probe_losses(const ls_layer *l, const ls_layer_call *c) {
    int64_t first = (int64_t)c->first_sample;
    for (int64_t i = 0; i < c->n; i++) {
        const float *x = (const float *)c->x[0] + i * l->V;
        c->losses[i] = 0;
        for (int64_t k = 0; k < l->V; k++)
            c->losses[i] += (double)layer_factor(first + i, k) * (double)x[k];
    }
}

static inline void probe_backward(const ls_layer *l, const ls_layer_call *c) {
    int64_t first = (int64_t)c->first_sample;
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t k = 0; k < l->V; k++)
            ((float *)c->dx[0])[i * l->V + k] = layer_factor(first + i, k);
    probe_losses(l, c);
}

static inline void probe_add(ls_model *m, ls_value *x) {
    static const ls_layer_ops ops = {
        .kind = "probe", .forward = probe_losses, .backward = probe_backward};
    ls_layer *l = ls_build_layer(m, "probe", NULL, &x, 1);
    if (!l) return;
    l->ops = &ops;
    l->traits.loss = true;
    l->V = ls_value_count(x);
    m->targets = 1;
}

/* ---- the model, its samples and parameters ---- */

static inline double layer_random(uint64_t which, uint64_t i) {
    return 2 * ls_random_uniform(11, LS_STREAM_FAKE, which, i) - 1;
}

static inline int64_t field_count(const ls_field *f) {
    return (int64_t)(f->nbytes / ls_dtype_size(f->type));
}

static inline void fill_field(const layer_bench *b, int k, int64_t sample) {
    const ls_field *f = &b->model.inputs[k];
    const layer_field *given = &b->c->fields[k];
    unsigned char *at = b->samples + (size_t)sample * b->model.sample_nbytes + f->offset;
    for (int64_t i = 0; i < field_count(f); i++) {
        double x = layer_random((uint64_t)(k + 1), (uint64_t)(sample * field_count(f) + i));
        int64_t n = given->below - given->least;
        int32_t integer = (int32_t)(given->least + (int64_t)((x + 1) / 2 * (double)n));
        if (f->type == LS_F32) ((float *)(void *)at)[i] = (float)x;
        if (f->type == LS_I32) ((int32_t *)(void *)at)[i] = integer;
        if (f->type == LS_U8) at[i] = (unsigned char)integer;
    }
}

static inline void bench_open(layer_bench *b, const layer_case *c) {
    ls_value *x[CHECK_FIELDS] = {0};
    ls_error e = {0};
    *b = (layer_bench){.c = c};
    ls_model *m = &b->model;
    for (int k = 0; k < c->nfields; k++) {
        char name[24];
        snprintf(name, sizeof name, "field%d", k);
        x[k] = ls_input(m, name, c->fields[k].type, c->fields[k].dims);
    }
    ls_value *y = c->build(m, x, c->arg);
    probe_add(m, y);
    assert_ls_ok(ls_build_finish(m, &e), e);
    for (int p = 0; p < m->nparams; p++)
        m->params[p].frozen = false; /* the weight under an adapter */
    assert_ls_ok(ls_model_link(m, &e), e);
    b->value = m->layers[m->nlayers - 1].inputs[0];
    b->count = m->layers[m->nlayers - 1].V;
    for (int k = 0; k < c->nfields; k++) {
        b->conversion[k] = -1;
        for (int i = 0; i < m->nlayers && c->fields[k].type == LS_F32; i++)
            if (strcmp(m->layers[i].name, m->inputs[k].name) == 0) b->conversion[k] = i;
    }
    b->samples = ls_alloc(CHECK_SAMPLES * m->sample_nbytes);
    memset(b->samples, 0, CHECK_SAMPLES * m->sample_nbytes);
    for (int k = 0; k < c->nfields; k++)
        for (int64_t s = 0; s < CHECK_SAMPLES; s++) fill_field(b, k, s);
    b->params = LS_NEW_ARRAY(float, m->nfloats + 1);
    for (size_t i = 0; i < m->nfloats; i++) b->params[i] = (float)layer_random(99, i);
}

static inline void bench_close(layer_bench *b) {
    ls_model_free(&b->model);
    free(b->samples), free(b->params);
    for (int p = 0; p < CHECK_PARAMS; p++) free(b->frozen[p]);
}

enum { CHECK_ALL = -1 };

/* Freezes a parameter, or all: its values move to memory of its own. False: that is not
 * possible. */
static inline bool bench_freeze(layer_bench *b, int param) {
    ls_model *m = &b->model;
    float *was = b->params;
    size_t at[CHECK_PARAMS] = {0};
    for (int p = 0; p < m->nparams; p++) {
        at[p] = m->params[p].offset;
        bool running = m->params[p].momentum > 0; /* if it is frozen, values differ */
        m->params[p].frozen = (param == CHECK_ALL || param == p) && !running;
    }
    if (ls_model_link(m, NULL) != LS_OK) return false;
    b->params = LS_NEW_ARRAY(float, m->nfloats + 1);
    for (int p = 0; p < m->nparams; p++) {
        const ls_param *q = &m->params[p];
        if (q->frozen) b->frozen[p] = malloc(q->count * sizeof(float));
        memcpy(q->frozen ? b->frozen[p] : b->params + q->offset, was + at[p],
               q->count * sizeof(float));
    }
    free(was);
    return true;
}

/* ---- one result ---- */

static inline float *layer_floats(int64_t n) { return LS_NEW_ARRAY(float, (size_t)n); }

static inline void *layer_nans(size_t nbytes) {
    void *p = malloc(nbytes ? nbytes : 1);
    memset(p, 0xff, nbytes); /* a NaN in each of the types */
    return p;
}

static inline void *narrowed(const ls_kernels *k, ls_dtype type, const float *x, size_t n) {
    void *p = malloc(n * ls_dtype_size(type) + 1);
    if (type == LS_F32)
        memcpy(p, x, n * sizeof *x);
    else
        k->narrow(type, n, x, p);
    return p;
}

static inline void widened(const ls_kernels *k, ls_dtype type, const void *x, size_t n, float *y) {
    if (type == LS_F32)
        memcpy(y, x, n * sizeof *y);
    else
        k->widen(type, n, x, y);
}

/* The memory of one micro-batch. */
typedef struct layer_memory {
    void **act, **dact, **saved; /* [nlayers] */
} layer_memory;

static inline layer_memory memory_make(const ls_model *m, const layer_way *w, int64_t n) {
    size_t nlayers = (size_t)m->nlayers;
    layer_memory a = {LS_NEW_ARRAY(void *, nlayers), LS_NEW_ARRAY(void *, nlayers),
                      LS_NEW_ARRAY(void *, nlayers)};
    for (int i = 0; i < m->nlayers; i++) {
        size_t nbytes = (size_t)n * m->layers[i].y_floats * ls_dtype_size(w->type);
        a.act[i] = layer_nans(nbytes);
        a.dact[i] = layer_nans(nbytes);
        a.saved[i] = layer_nans(ls_mixed_saved_nbytes(&m->layers[i], n, w->type));
    }
    return a;
}

static inline void memory_free(const ls_model *m, layer_memory *a) {
    for (int i = 0; i < m->nlayers; i++) free(a->act[i]), free(a->dact[i]), free(a->saved[i]);
    free(a->act), free(a->dact), free(a->saved);
}

/* ---- what a call converts, as prices have it ---- */

static _Atomic size_t layer_widened, layer_narrowed;

static inline void layer_count_widen(ls_dtype type, size_t n, const void *x, float *y) {
    layer_widened += n;
    ls_kernels_at(0)->widen(type, n, x, y);
}

static inline void layer_count_narrow(ls_dtype type, size_t n, const float *x, void *y) {
    layer_narrowed += n;
    ls_kernels_at(0)->narrow(type, n, x, y);
}

static inline void layer_count_to_bf16(int64_t n, const float *x, void *y) {
    layer_narrowed += (size_t)n;
    ls_kernels_at(0)->to_bf16(n, x, y);
}

/* Runs the call. In 16 bits its conversions are counted; tables are converted as they are used,
 * and adapters as their options have it. */
static inline void call_counted(const ls_layer *l, const ls_layer_call *c, bool backward) {
    void (*pass)(const ls_layer *, const ls_layer_call *) =
        backward ? ls_mixed_backward : ls_mixed_forward;
    if (!ls_dtype_is_half(c->type) || l->half.ntables || ls_lora_is(l)) {
        pass(l, c);
        return;
    }
    ls_kernels counting = *c->compute->k;
    ls_compute with = *c->compute;
    ls_layer_call call = *c;
    counting.widen = layer_count_widen, counting.narrow = layer_count_narrow;
    counting.to_bf16 = layer_count_to_bf16;
    with.k = &counting, call.compute = &with;
    layer_widened = layer_narrowed = 0;
    pass(l, &call);
    ls_mixed_floats f =
        backward ? ls_mixed_backward_floats(l, c->n, c->type, c->grads_type, l->ninputs, c->last)
                 : ls_mixed_forward_floats(l, c->n, c->type);
    if (layer_widened != f.widened + f.widened_parts ||
        layer_narrowed != f.narrowed + f.narrowed_parts)
        print_error("%s, %s: the call converts otherwise than its price\n", l->name,
                    backward ? "backward" : "forward");
    assert_int_equal(layer_widened, f.widened + f.widened_parts);
    assert_int_equal(layer_narrowed, f.narrowed + f.narrowed_parts);
}

/* The call `c` for layer i, with NaN in the work memory; the inputs' gradients only if they are
 * wanted. */
static inline void call_layer(const ls_model *m, const layer_memory *a, ls_layer_call c, int i,
                              bool backward) {
    const ls_layer *l = &m->layers[i];
    c.T = l->T;
    c.y = a->act[i];
    c.dy = a->dact[i];
    c.saved = a->saved[i];
    int64_t room = c.n ? c.n : CHECK_SAMPLES; /* as in a run */
    c.work = layer_nans(ls_mixed_work_nbytes(l, room, c.type, c.grads_type, c.wide != NULL));
    for (int k = 0; k < l->ninputs; k++) c.x[k] = a->act[l->inputs[k]];
    for (int k = 0; k < l->ninputs && backward; k++) c.dx[k] = a->dact[l->inputs[k]];
    if (!backward || l->ops->backward) call_counted(l, &c, backward);
    free(c.work);
}

/* Samples [s, s + c->n): forward and backward of all layers. */
static inline void run_micro(const layer_bench *b, const layer_way *w, const ls_layer_call *c,
                             int64_t s, layer_result *r) {
    const ls_model *m = &b->model;
    const ls_kernels *k = c->compute->k;
    layer_memory a = memory_make(m, w, w->empty ? w->micro : c->n);
    for (int i = 0; i < m->nlayers; i++) call_layer(m, &a, *c, i, false);
    for (int i = m->nlayers - 1; i >= 0; i--) call_layer(m, &a, *c, i, true);
    widened(k, w->type, a.act[b->value], (size_t)(c->n * b->count), r->y + s * b->count);
    for (int f = 0; f < b->c->nfields; f++) {
        int64_t count = field_count(&m->inputs[f]);
        if (!r->dx[f]) continue;
        widened(k, w->type, a.dact[b->conversion[f]], (size_t)(c->n * count), r->dx[f] + s * count);
    }
    memory_free(m, &a);
}

static inline layer_result result_of(const layer_bench *b, const layer_way *w) {
    const ls_model *m = &b->model;
    ls_compute compute;
    ls_error e = {0};
    layer_result r = {.y = layer_floats(CHECK_SAMPLES * b->count),
                      .grads = LS_NEW_ARRAY(float, m->nfloats + 1)};
    assert_ls_ok(ls_compute_init(&compute, w->threads, ls_model_scratch_floats(m), &e), e);
    ls_pool_share_cores(compute.pool);
    if (w->k) compute.k = w->k;
    const ls_kernels *k = compute.k;
    for (size_t i = 0; w->empty && i < m->nfloats; i++) r.grads[i] = NAN; /* of another step */
    void *params = narrowed(k, w->type, b->params, m->nfloats);
    ls_frozen_value frozen[CHECK_PARAMS] = {{.type = LS_BLOCK_F32}};
    for (int p = 0; p < m->nparams; p++)
        if (b->frozen[p])
            frozen[p] =
                (ls_frozen_value){.data = narrowed(k, w->type, b->frozen[p], m->params[p].count),
                                  .type = ls_block_of_dtype(w->type)};
    void *grads = narrowed(k, w->grads, r.grads, m->nfloats);
    float *wide = w->micro < CHECK_SAMPLES ? layer_nans(m->nfloats * sizeof *wide) : NULL;
    for (int f = 0; f < b->c->nfields; f++)
        if (b->conversion[f] >= 0)
            r.dx[f] = layer_floats(CHECK_SAMPLES * field_count(&m->inputs[f]));
    const int64_t all = w->empty ? 0 : CHECK_SAMPLES;
    for (int64_t s = 0; s == 0 || s < all; s += w->micro) {
        int64_t n = all - s < w->micro ? all - s : w->micro;
        ls_layer_call c = {.compute = &compute,
                           .type = w->type,
                           .grads_type = w->grads,
                           .params = params,
                           .frozen = frozen,
                           .grads = grads,
                           .wide = wide,
                           .first = s == 0,
                           .last = s + n == all,
                           .n = n,
                           .samples = b->samples + (size_t)s * m->sample_nbytes,
                           .sample_nbytes = m->sample_nbytes,
                           .grads_start = s == 0,
                           .loss_scale = 1,
                           .training = true,
                           .seed = CHECK_SEED,
                           .step = CHECK_STEP,
                           .first_sample = (uint64_t)s,
                           .losses = r.losses + s};
        run_micro(b, w, &c, s, &r);
    }
    widened(k, w->grads, grads, m->nfloats, r.grads);
    free(params), free(grads), free(wide);
    for (int p = 0; p < CHECK_PARAMS; p++) free((void *)(uintptr_t)frozen[p].data);
    ls_compute_close(&compute);
    return r;
}

static inline void result_free(layer_result *r) {
    free(r->y), free(r->grads);
    for (int f = 0; f < CHECK_FIELDS; f++) free(r->dx[f]);
}

/* ---- the reference ---- */

/* The fields of one sample or of all that are joined, and the parameters, in double precision. */
typedef struct layer_doubles {
    double *x[CHECK_FIELDS], *params[CHECK_PARAMS], *y;
    int64_t sample, n; /* the first sample, and how many */
} layer_doubles;

static inline double field_number(const ls_field *f, const unsigned char *sample, int64_t i) {
    const unsigned char *at = sample + f->offset;
    if (f->type == LS_F32) return (double)((const float *)(const void *)at)[i];
    return f->type == LS_I32 ? ((const int32_t *)(const void *)at)[i] : at[i];
}

static inline void doubles_open(const layer_bench *b, layer_doubles *d) {
    const ls_model *m = &b->model;
    *d = (layer_doubles){.n = b->c->joins ? CHECK_SAMPLES : 1};
    d->y = LS_NEW_ARRAY(double, (size_t)(d->n * b->count));
    assert_true(m->nparams <= CHECK_PARAMS);
    for (int f = 0; f < m->ninputs; f++)
        d->x[f] = LS_NEW_ARRAY(double, (size_t)(d->n * field_count(&m->inputs[f])));
    for (int p = 0; p < m->nparams; p++) {
        const ls_param *q = &m->params[p];
        d->params[p] = LS_NEW_ARRAY(double, q->count);
        for (size_t i = 0; i < q->count; i++) d->params[p][i] = (double)b->params[q->offset + i];
    }
}

/* Reads the samples from s on. */
static inline void doubles_sample(const layer_bench *b, int64_t s, layer_doubles *d) {
    const ls_model *m = &b->model;
    d->sample = s;
    for (int f = 0; f < m->ninputs; f++)
        for (int64_t i = 0, count = field_count(&m->inputs[f]); i < d->n * count; i++) {
            size_t at = (size_t)(s + i / count) * m->sample_nbytes;
            d->x[f][i] = field_number(&m->inputs[f], b->samples + at, i % count);
        }
}

static inline void doubles_close(layer_doubles *d) {
    for (int f = 0; f < CHECK_FIELDS; f++) free(d->x[f]);
    for (int p = 0; p < CHECK_PARAMS; p++) free(d->params[p]);
    free(d->y);
}

static inline double reference_loss(const layer_bench *b, layer_doubles *d) {
    double sum = 0;
    b->c->reference(b->c->arg, d->x, d->params, d->y);
    for (int64_t i = 0; i < d->n * b->count; i++)
        sum += (double)layer_factor(d->sample + i / b->count, i % b->count) * d->y[i];
    return sum;
}

/* The derivative of the loss of samples [first, end) with respect to *at, a parameter's element or
 * a field's, for one sample or all that are joined: central differences with two steps, and
 * Richardson's extrapolation. */
static inline double derivative(const layer_bench *b, layer_doubles *d, double *at, int64_t first,
                                int64_t end) {
    static const double steps[] = {2e-6, -2e-6, 4e-6, -4e-6}; /* few kinks are that near */
    double loss[4] = {0};
    for (int64_t s = first; s < end; s += d->n) {
        doubles_sample(b, s, d);
        double now = *at;
        for (int k = 0; k < 4; k++) {
            *at = now + steps[k];
            loss[k] += reference_loss(b, d);
        }
        *at = now;
    }
    double near = (loss[0] - loss[1]) / 4e-6, far = (loss[2] - loss[3]) / 8e-6;
    return (4 * near - far) / 3;
}

/* Compares up to CHECK_ELEMENTS of n numbers, spread over all. */
typedef struct comparison {
    const char *name, *what;
    double most, off; /* the largest value wanted, the largest difference */
} comparison;

static inline void compare(comparison *x, double got, double want) {
    if (fabs(want) > x->most) x->most = fabs(want);
    if (!(fabs(got - want) <= x->off)) x->off = fabs(got - want);
}

static inline void compared(const comparison *x, double tolerance) {
    if (x->off <= tolerance * (x->most + 1e-3)) return;
    print_error("%s: %s is off by %g; the largest value is %g\n", x->name, x->what, x->off,
                x->most);
    fail();
}

static inline int64_t stride_of(int64_t n) { return n / CHECK_ELEMENTS + 1; }

static inline void check_reference(const layer_bench *b, const layer_result *r) {
    double tolerance = b->c->tolerance > 0 ? b->c->tolerance : 1e-5;
    layer_doubles d;
    doubles_open(b, &d);
    comparison y = {b->c->name, "the value", 0, 0};
    for (int64_t s = 0; s < CHECK_SAMPLES; s += d.n) {
        doubles_sample(b, s, &d);
        reference_loss(b, &d);
        for (int64_t i = 0; i < d.n * b->count; i++)
            compare(&y, (double)r->y[s * b->count + i], d.y[i]);
    }
    compared(&y, tolerance);
    for (int p = 0; p < b->model.nparams; p++) {
        const ls_param *q = &b->model.params[p];
        comparison g = {b->c->name, q->name, 0, 0};
        if (q->momentum > 0) continue;
        for (size_t i = 0; i < q->count; i += (size_t)stride_of((int64_t)q->count))
            compare(&g, (double)r->grads[q->offset + i],
                    derivative(b, &d, &d.params[p][i], 0, CHECK_SAMPLES));
        compared(&g, tolerance);
    }
    for (int f = 0; f < b->c->nfields; f++) {
        int64_t n = field_count(&b->model.inputs[f]), s = CHECK_SAMPLES / 2;
        comparison g = {b->c->name, b->model.inputs[f].name, 0, 0};
        int64_t first = d.n > 1 ? 0 : s; /* of the samples that are read */
        for (int64_t i = 0; r->dx[f] && i < n; i += stride_of(n))
            compare(&g, (double)r->dx[f][s * n + i],
                    derivative(b, &d, &d.x[f][(s - first) * n + i], first, first + d.n));
        compared(&g, tolerance);
    }
    doubles_close(&d);
}

/* ---- bits ---- */

static inline void same_bits(const layer_bench *b, const layer_result *x, const layer_result *y,
                             const char *what) {
    size_t floats = sizeof(float);
    bool same = memcmp(x->y, y->y, (size_t)(CHECK_SAMPLES * b->count) * floats) == 0 &&
                memcmp(x->losses, y->losses, sizeof x->losses) == 0;
    for (int p = 0; p < b->model.nparams; p++) {
        const ls_param *q = &b->model.params[p];
        same = same && memcmp(x->grads + q->offset, y->grads + q->offset, q->count * floats) == 0;
    }
    for (int f = 0; f < b->c->nfields; f++) {
        size_t n = (size_t)(CHECK_SAMPLES * field_count(&b->model.inputs[f]));
        same = same && (!x->dx[f] || memcmp(x->dx[f], y->dx[f], n * floats) == 0);
    }
    if (same) return;
    print_error("%s: the bits depend on the %s\n", b->c->name, what);
    fail();
}

/* Can the samples be computed this many at a time? */
static inline bool takes_micro(const layer_bench *b, layer_way way, int64_t micro) {
    return !b->c->joins && micro % ls_model_unit_samples(&b->model, way.type) == 0;
}

static inline void same_with(const layer_bench *b, const layer_result *r, layer_way way,
                             const char *what) {
    layer_result x = result_of(b, &way);
    same_bits(b, &x, r, what);
    result_free(&x);
}

static inline void check_threads(const layer_bench *b, const layer_result *r, layer_way way) {
    way.threads = 3;
    same_with(b, r, way, "threads");
    way.threads = 2, way.micro = 2;
    if (takes_micro(b, way, 2)) same_with(b, r, way, "threads");
}

static inline void check_bits(const layer_bench *b, const layer_result *r, layer_way way) {
    check_threads(b, r, way);
    for (int64_t micro = 1; micro <= 2; micro++) {
        layer_way w = way;
        w.micro = micro;
        if (takes_micro(b, way, micro)) same_with(b, r, w, "micro-batch");
    }
    for (int i = 0; ls_kernels_at(i); i++) {
        layer_way w = way;
        w.k = ls_kernels_at(i);
        same_with(b, r, w, "variant of the kernels");
    }
}

/* ---- frozen parameters ---- */

/* r: of the case's model b, of which another one's parameters are frozen. */
static inline void check_one_frozen(const layer_bench *b, const layer_result *r, layer_way way,
                                    int param) {
    layer_bench f;
    bench_open(&f, b->c);
    memcpy(f.params, b->params, b->model.nfloats * sizeof(float));
    memcpy(f.samples, b->samples, CHECK_SAMPLES * b->model.sample_nbytes);
    if (bench_freeze(&f, param)) {
        layer_result x = result_of(&f, &way);
        float *grads = LS_NEW_ARRAY(float, b->model.nfloats + 1);
        for (int p = 0; p < b->model.nparams; p++) {
            const ls_param *q = &b->model.params[p], *at = &f.model.params[p];
            memcpy(grads + q->offset, at->frozen ? r->grads + q->offset : x.grads + at->offset,
                   q->count * sizeof(float));
        }
        free(x.grads);
        x.grads = grads;
        same_bits(b, &x, r,
                  param == CHECK_ALL ? "freezing of all parameters" : b->model.params[param].name);
        result_free(&x);
    }
    bench_close(&f);
}

static inline void check_frozen(const layer_bench *b, const layer_result *r, layer_way way) {
    if (takes_micro(b, way, 2)) way.micro = 2;
    for (int p = CHECK_ALL; p < b->model.nparams; p++) check_one_frozen(b, r, way, p);
}

/* ---- 16 bits ---- */

/* Rounds what the layers get in 16 bits. */
static inline void round_operands(layer_bench *b, ls_dtype type) {
    const ls_model *m = &b->model;
    const ls_kernels *k = ls_kernels_at(0);
    for (int f = 0; f < m->ninputs; f++)
        for (int64_t s = 0; s < CHECK_SAMPLES && m->inputs[f].type == LS_F32; s++) {
            size_t n = (size_t)field_count(&m->inputs[f]);
            void *at = b->samples + (size_t)s * m->sample_nbytes + m->inputs[f].offset;
            void *half = narrowed(k, type, at, n);
            k->widen(type, n, half, at);
            free(half);
        }
    void *half = narrowed(k, type, b->params, m->nfloats);
    k->widen(type, m->nfloats, half, b->params);
    free(half);
}

static inline void near(const layer_bench *b, const char *what, const float *got, const float *want,
                        size_t n, double tolerance) {
    comparison x = {b->c->name, what, 0, 0};
    for (size_t i = 0; i < n; i++) compare(&x, (double)got[i], (double)want[i]);
    compared(&x, tolerance);
}

static inline void check_half(layer_bench *b, ls_dtype type, ls_dtype grads) {
    const ls_model *m = &b->model;
    layer_way way = {.micro = CHECK_SAMPLES, .threads = 1, .type = LS_F32, .grads = LS_F32};
    layer_result want = result_of(b, &way);
    way.type = type, way.grads = grads;
    layer_result got = result_of(b, &way);
    double unit = type == LS_BF16 || grads == LS_BF16 ? 1.0 / 256 : 1.0 / 2048;
    double tolerance = unit * (b->c->half_units > 0 ? b->c->half_units : 4);
    near(b, "the value in 16 bits", got.y, want.y, (size_t)(CHECK_SAMPLES * b->count), tolerance);
    for (int p = 0; p < m->nparams; p++) {
        const ls_param *q = &m->params[p];
        near(b, q->name, got.grads + q->offset, want.grads + q->offset, q->count, tolerance);
    }
    for (int f = 0; f < m->ninputs; f++)
        if (got.dx[f])
            near(b, m->inputs[f].name, got.dx[f], want.dx[f],
                 (size_t)(CHECK_SAMPLES * field_count(&m->inputs[f])), tolerance);
    if (takes_micro(b, way, 2)) way.micro = 2;
    layer_result parts = result_of(b, &way);
    same_bits(b, &parts, &got, "micro-batch, in 16 bits");
    check_frozen(b, &got, way);
    result_free(&want), result_free(&got), result_free(&parts);
}

/* Without samples gradients are 0. */
static inline void check_empty(const layer_bench *b, layer_way way) {
    const ls_model *m = &b->model;
    way.empty = true;
    layer_result r = result_of(b, &way);
    for (int p = 0; p < m->nparams; p++)
        for (size_t i = 0; !m->params[p].frozen && i < m->params[p].count; i++)
            if (r.grads[m->params[p].offset + i] != 0)
                fail_msg("%s: the gradient of %s is not 0 without samples", b->c->name,
                         m->params[p].name);
    result_free(&r);
}

/* Multiply-adds of the products that a layer declares, for one sample, times 2. */
static inline double products_flops(const ls_works *w, int64_t T) {
    double sum = 0;
    for (int i = 0; i < w->n; i++) {
        const ls_work *x = &w->list[i];
        if (x->kind >= LS_NPRODUCTS) continue;
        double M = (double)(x->M ? x->M : T), K = (double)(x->K ? x->K : T);
        sum += 2 * M * (double)x->N * K * (x->times > 0 ? x->times : 1);
    }
    return sum;
}

/* What plans and prices read of a layer agrees: its products are those that it counts, and a pass
 * backward has two for each. Attention computes scores again and leaves out masked ones, and
 * convolutions pad: their own tests compare with numbers. */
static inline void check_cost(const layer_bench *b) {
    for (int i = 0; i < b->model.nlayers; i++) {
        const ls_layer *l = &b->model.layers[i];
        if (strstr(l->ops->kind, "attention") || strstr(l->ops->kind, "conv")) continue;
        double forward = products_flops(&l->cost.forward, l->T);
        double backward = products_flops(&l->cost.backward, l->T);
        if (forward > 0 &&
            (fabs(forward - l->cost.flops) > 0.5 || fabs(backward - 2 * forward) > 0.5))
            fail_msg("%s: products of %g forward, %g backward, counted %g", l->name, forward,
                     backward, l->cost.flops);
    }
}

static inline void check_all(const layer_bench *b, const layer_result *r, layer_way way) {
    if (b->c->reference) check_reference(b, r);
    check_bits(b, r, way);
    check_frozen(b, r, way);
    check_empty(b, way);
    check_cost(b);
}

static inline void layer_check(const layer_case *c) {
    layer_bench b;
    layer_way way = {.micro = CHECK_SAMPLES, .threads = 1, .type = LS_F32, .grads = LS_F32};
    bench_open(&b, c);
    layer_result r = result_of(&b, &way);
    if (ONLY_THREADS)
        check_threads(&b, &r, way);
    else
        check_all(&b, &r, way);
    result_free(&r);
    bench_close(&b);
    static const ls_dtype types[][2] = {{LS_BF16, LS_F32}, {LS_F32, LS_BF16}, {LS_F16, LS_F16}};
    for (int i = 0; i < 3 && !ONLY_THREADS; i++) {
        bench_open(&b, c);
        round_operands(&b, types[i][0] == LS_F32 ? LS_F16 : types[i][0]);
        check_half(&b, types[i][0], types[i][1]);
        bench_close(&b);
    }
}

/* `build` must fail, with a message that contains `text`. */
static inline void layer_refused(void (*build)(ls_model *), const char *text) {
    ls_model m = {0};
    ls_error e = {0};
    build(&m);
    assert_ls_fails(ls_build_finish(&m, &e), LS_EINVAL, text, e);
    ls_model_free(&m);
}

#endif
