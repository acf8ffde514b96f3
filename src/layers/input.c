/* input.c - a field of the samples, and the layer that has it as numbers: y = scale x + shift. */
#include <math.h>
#include <stdio.h>

#include "base/utf8.h"
#include "layers/layers.h"

typedef struct options {
    ls_dtype type; /* of the field */
    float scale, shift;
    int64_t count; /* numbers */
} options;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    float values[256]; /* of each byte of an LS_U8 field */
} job;

static void convert(const job *j, const void *field, float *y) {
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    const unsigned char *bytes = field;
    const int32_t *integers = field;
    const float *floats = field;
    if (o->type == LS_U8)
        for (int64_t k = 0; k < o->count; k++) y[k] = j->values[bytes[k]];
    else if (o->type == LS_I32)
        for (int64_t k = 0; k < o->count; k++) y[k] = fmaf((float)integers[k], o->scale, o->shift);
    else
        for (int64_t k = 0; k < o->count; k++) y[k] = fmaf(floats[k], o->scale, o->shift);
}

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++)
        convert(j, ls_layer_field(j->l, j->c, 0, i),
                (float *)j->c->y + i * LS_LAYER_OWN_OF(options, j->l).count);
}

int ls_layers_device_type(ls_dtype type) { return type == LS_U8 ? 2 : type == LS_I32; }

static void launch(const ls_layer *l, const ls_layer_call *c) {
    enum { ITEMS = 256 };
    const options *o = &LS_LAYER_OWN_OF(options, l);
    int64_t n = c->n * o->count;
    LS_LAUNCH(c->compute, LS_KERNEL_input, ls_device_groups(n, ITEMS), 1, {.l = n}, {.l = o->count},
              {.from = ls_layer_field(l, c, 0, 0)}, {.l = ls_layers_device_type(o->type)},
              {.l = (int64_t)c->sample_nbytes}, {.f = o->scale}, {.f = o->shift}, {.p = c->y});
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    if (c->compute->device) {
        launch(l, c);
        return;
    }
    job j = {.l = l, .c = c};
    for (int i = 0; i < 256; i++) j.values[i] = fmaf((float)i, o->scale, o->shift);
    ls_pool_run(c->compute->pool, run, &j);
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){
        .type = o->type, .is_field = true, .scale = &o->scale, .shift = &o->shift, .nscales = 1};
}

static const ls_layer_ops ops = {.kind = "input", .forward = forward, .describe = describe};

ls_layer *ls_layers_field(ls_model *m, const ls_value *x) {
    char name[LS_NAME - 16]; /* the beginning of a long name; a number follows if it is in use */
    size_t n = (size_t)snprintf(name, sizeof name, "%s", m->inputs[x->field].name);
    if (n >= sizeof name) name[ls_utf8_complete(name, sizeof name - 1)] = 0;
    ls_layer *l = ls_build_layer(m, name, NULL, NULL, 0);
    if (!l) return NULL;
    l->traits.on_device = true;
    ls_build_field(m, l, x);
    return l;
}

ls_value *ls_layers_input(ls_model *m, const ls_value *x, float scale, float shift) {
    ls_layer *l = ls_layers_field(m, x);
    if (!l) return ls_build_failed(m);
    l->ops = &ops;
    LS_LAYER_OWN_AS(options, l) = (options){x->type, scale, shift, ls_value_count(x)};
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, ls_value_count(x));
    return ls_build_value(m, x->dims);
}

static ls_value *as_numbers(ls_model *m, const ls_value *field) {
    return ls_layers_input(m, field, 1, 0);
}

ls_value *(ls_input)(ls_model *m, const char *name, ls_dtype type, ls_dims dims) {
    return ls_build_input(m, name, type, dims, as_numbers);
}
