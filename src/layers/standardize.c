/* standardize.c - a field as numbers, y = (x - mean) * scale by its last dimension: data.normalize
 * of columns (networks/scales.h). The difference is taken first: of numbers that are large beside
 * their deviation, such as years, scale * x + shift would lose most digits. */
#include <string.h>

#include "layers/layers.h"

typedef struct options {
    ls_dtype type;             /* of the field */
    int64_t count, C;          /* numbers; means */
    const float *mean, *scale; /* [C] one after the other */
    int constants;
} options;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

static void convert(const options *o, const void *field, float *y) {
    const unsigned char *bytes = field;
    const int32_t *integers = field;
    const float *floats = field;
    for (int64_t i = 0; i < o->count; i += o->C)
        for (int64_t k = 0; k < o->C; k++) {
            float x = o->type == LS_U8    ? (float)bytes[i + k]
                      : o->type == LS_I32 ? (float)integers[i + k]
                                          : floats[i + k];
            y[i + k] = (x - o->mean[k]) * o->scale[k];
        }
}

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++)
        convert(o, ls_layer_field(j->l, j->c, 0, i), (float *)j->c->y + i * o->count);
}

static void launch(const ls_layer *l, const ls_layer_call *c) {
    enum { ITEMS = 256 };
    const options *o = &LS_LAYER_OWN_OF(options, l);
    int64_t n = c->n * o->count;
    LS_LAUNCH(c->compute, LS_KERNEL_standardize, ls_device_groups(n, ITEMS), 1, {.l = n},
              {.l = o->count}, {.l = o->C}, {.from = ls_layer_field(l, c, 0, 0)},
              {.l = ls_layers_device_type(o->type)}, {.l = (int64_t)c->sample_nbytes},
              {.from = ls_layer_constants(c, o->constants, o->mean)}, {.p = c->y});
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device)
        launch(l, c);
    else
        ls_pool_run(c->compute->pool, run, &(job){l, c});
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){
        .type = o->type, .is_field = true, .scale = o->scale, .shift = o->mean, .nscales = o->C};
}

static const ls_layer_ops ops = {.kind = "standardize", .forward = forward, .describe = describe};

/* A number times 0 would be NaN where it is infinite: a constant's difference is 0 in training, and
 * any finite one is 0 afterwards. */
ls_value *ls_layers_standardize(ls_model *m, ls_value *x, int64_t n, const float *mean,
                                const float *deviation) {
    options o = {.type = x->type, .count = ls_value_count(x), .C = n};
    ls_layer *l = ls_layers_field(m, x);
    if (!l) return ls_build_failed(m);
    float *numbers = ls_build_constants(m, (size_t)(2 * n), &o.constants);
    memcpy(numbers, mean, (size_t)n * sizeof *numbers);
    for (int64_t k = 0; k < n; k++)
        numbers[n + k] = deviation[k] > 0 ? (float)(1.0 / (double)deviation[k]) : 0;
    o.mean = numbers;
    o.scale = numbers + n;
    l->ops = &ops;
    LS_LAYER_OWN_AS(options, l) = o;
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, o.count);
    return ls_build_value(m, x->dims);
}
