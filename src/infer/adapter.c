/* adapter.c - see adapter.h. */
#include "infer/adapter.h"

#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/file.h"
#include "base/intern.h"
#include "base/round_up.h"
#include "layers/linear.h"
#include "layers/lora_merge.h"
#include "model/types.h"
#include "networks/network.h"
#include "storage/adapter_file.h"
#include "storage/run_adapters.h"
#include "tensor/dtype.h"

enum { COMPARED = 256 }; /* elements of each weight that are compared */

/* A model with the adapter, and what it stands beside. */
typedef struct reading {
    const ls_trained *t;
    const char *path;
    ls_run_adapters with;
    ls_adapter *a;
} reading;

/* ---- the model with the adapter ---- */

/* A form of other programs has no config of its own: the model's, with the adapter. */
static ls_status open_file(reading *r, ls_error *e) {
    ls_run_adapters *w = &r->with;
    char *from = realpath(r->t->path, NULL), *path = realpath(r->path, NULL);
    w->config = r->t->config;
    w->config.model.from = ls_intern(from ? from : r->t->path);
    w->config.model.adapter = ls_intern(path ? path : r->path);
    free(from);
    free(path);
    LS_TRY(ls_adapter_file_adopt(&w->config, e));
    LS_TRY(ls_network_create(&w->config, &w->model, e));
    w->params = LS_NEW_ARRAY(float, w->model.nfloats);
    const ls_train_state s = {.model = &w->model, .flat = {1, {w->params}}};
    return ls_adapter_file_load(&w->config, &s, e);
}

/* ---- does it belong to the model? ---- */

static ls_status fail_other(const reading *r, const char *what, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%s: is an adapter of another model than %s: they differ in %s",
                   r->path, r->t->path, what);
}

static ls_status check_config(const reading *r, ls_error *e) {
    const ls_config *a = &r->with.config, *b = &r->t->config;
    const struct {
        const char *key;
        bool same;
    } keys[] = {
        {"model.kind", a->model.kind == b->model.kind},
        {"model.layers", a->model.layers == b->model.layers},
        {"model.heads", a->model.heads == b->model.heads},
        {"model.rope", a->model.rope == b->model.rope && a->model.rope_base == b->model.rope_base},
        {"model.rope_factor", a->model.rope_factor == b->model.rope_factor},
        {"model.rope_low", a->model.rope_low == b->model.rope_low},
        {"model.rope_high", a->model.rope_high == b->model.rope_high},
        {"model.rope_original", a->model.rope_original == b->model.rope_original},
        {"model.rope_scale", a->model.rope_scale == b->model.rope_scale},
        {"model.rope_short", strcmp(a->model.rope_short, b->model.rope_short) == 0},
        {"model.rope_long", strcmp(a->model.rope_long, b->model.rope_long) == 0},
        {"model.rope_dims", a->model.rope_dims == b->model.rope_dims},
        {"model.rope_truncate", a->model.rope_truncate == b->model.rope_truncate},
        {"model.rope_local_base", a->model.rope_local_base == b->model.rope_local_base},
        {"model.no_rope_every", a->model.no_rope_every == b->model.no_rope_every},
        {"model.norm_eps", a->model.norm_eps == b->model.norm_eps},
        {"model.window", a->model.window == b->model.window},
        {"model.full_attention_every",
         a->model.full_attention_every == b->model.full_attention_every},
        {"model.query_scalar", a->model.query_scalar == b->model.query_scalar},
        {"model.block", a->model.block == b->model.block},
        {"model.experts_per_token", a->model.experts_per_token == b->model.experts_per_token}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!keys[i].same) return fail_other(r, keys[i].key, e);
    if (ls_config_compute(a) != ls_config_compute(b))
        return ls_fail(e, LS_EINVAL, "%s: computes in %s, and %s in %s: --set train.compute=%s",
                       r->path, ls_dtype_name(ls_config_compute(a)), r->t->path,
                       ls_dtype_name(ls_config_compute(b)), ls_dtype_name(ls_config_compute(a)));
    return LS_OK;
}

static const ls_param *find_param(const ls_model *m, const char *name) {
    for (int i = 0; i < m->nparams; i++)
        if (strcmp(m->params[i].name, name) == 0) return &m->params[i];
    return NULL;
}

/* All parameters but those of the adapter are the model's, and are not trained. */
static ls_status check_params(const reading *r, ls_error *e) {
    const ls_model *m = &r->t->model, *with = &r->with.model;
    for (int i = 0; i < with->nparams; i++) {
        const ls_param *p = &with->params[i], *q = find_param(m, p->name);
        if (p->adapter) continue;
        bool same = q && q->ndims == p->ndims;
        for (int d = 0; same && d < p->ndims; d++) same = q->dims[d] == p->dims[d];
        if (!same) return fail_other(r, p->name, e);
        if (!p->frozen)
            return ls_fail(e, LS_EINVAL,
                           "%s: has trained %s, too (lora.train), so it can't be computed "
                           "beside other texts; serve it by itself",
                           r->path, p->name);
    }
    return LS_OK;
}

/* The values of a parameter of the model. */
static ls_stored stored_of(const ls_trained *t, int i) {
    const ls_param *p = &t->model.params[i];
    if (p->frozen) return ls_trained_frozen(t)[i];
    return (ls_stored){.data = ls_flat_at(t->infer.dtype, t->params, p->offset),
                       .type = ls_block_of_dtype(t->infer.dtype)};
}

/* n numbers as the type has them. */
static void round_to(const ls_kernels *k, ls_dtype type, size_t n, float *x) {
    if (!ls_dtype_is_half(type)) return;
    uint16_t *half = LS_NEW_ARRAY(uint16_t, n + 1);
    k->narrow(type, n, x, half);
    k->widen(type, n, half, x);
    free(half);
}

/* The beginning of each weight of the run is that of the model. */
static ls_status compare(const reading *r, const ls_frozen_file *f, ls_error *e) {
    const ls_trained *t = r->t;
    const ls_kernels *k = t->compute.k;
    float own[COMPARED], other[COMPARED];
    for (int i = 0; i < r->with.model.nparams; i++) {
        const ls_param *p = &r->with.model.params[i];
        const ls_param *q = p->adapter ? NULL : find_param(&t->model, p->name);
        int64_t n = p->count < COMPARED ? (int64_t)p->count : COMPARED;
        if (!q) continue;
        ls_stored_read(k, f->values[i], 0, n, own);
        ls_stored_read(k, stored_of(t, (int)(q - t->model.params)), 0, n, other);
        round_to(k, t->infer.dtype, (size_t)n, own);
        if (memcmp(own, other, (size_t)n * sizeof *own) != 0)
            return ls_fail(e, LS_EINVAL, "%s: was trained on other weights than those of %s: %s",
                           r->path, t->path, p->name);
    }
    return LS_OK;
}

static ls_status check_weights(const reading *r, ls_error *e) {
    ls_frozen_file f = {0};
    LS_TRY(ls_frozen_file_open(r->with.checkpoint, &r->with.model, &f, e));
    ls_status s = compare(r, &f, e);
    ls_frozen_file_close(&f);
    return s;
}

/* ---- its numbers ---- */

static const ls_layer *find_layer(const ls_model *m, const ls_layer *l) {
    for (int i = 0; i < m->nlayers; i++)
        if (strcmp(m->layers[i].name, l->name) == 0) return &m->layers[i];
    return NULL;
}

static float *copy_param(reading *r, const ls_layer *l, int i, float **room) {
    const ls_param *p = &r->with.model.params[l->params[i]];
    float *to = *room;
    memcpy(to, r->with.params + p->offset, p->count * sizeof *to);
    round_to(r->t->compute.k, r->t->infer.dtype, p->count, to);
    *room += ls_round_up(p->count, 16);
    return to;
}

static ls_status take_layer(reading *r, const ls_compute *c, const ls_layer *l, float **room,
                            ls_error *e) {
    int numbers[3];
    const ls_layer *base = find_layer(&r->t->model, l);
    if (!ls_lora_find(l, numbers)) return LS_OK;
    if (!base || !ls_linear_takes_adapters(base)) return fail_other(r, l->name, e);
    const ls_linear_own *o = &LS_LAYER_OWN_OF(ls_linear_own, l);
    ls_row_adapter *a = &r->a->of[base->params[0]];
    *a = (ls_row_adapter){.rank = o->rank, .scale = o->scale};
    a->a = copy_param(r, l, numbers[0], room);
    a->b = copy_param(r, l, numbers[1], room);
    if (o->rank > r->a->rank) r->a->rank = o->rank;
    if (!numbers[2]) return LS_OK;
    int64_t out = ls_linear_outputs(l);
    float *g = copy_param(r, l, numbers[2], room), *inverse = LS_NEW_ARRAY(float, (size_t)out);
    ls_lora_norms_find(&(ls_lora_values){l, a->a, a->b, g}, c, stored_of(r->t, base->params[0]),
                       inverse, g);
    free(inverse);
    a->g = g;
    return LS_OK;
}

static ls_status take_layers(reading *r, ls_error *e) {
    const ls_model *m = &r->with.model;
    ls_compute c;
    void *p = NULL;
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].adapter)
            r->a->nbytes += ls_round_up(m->params[i].count, 16) * sizeof(float);
    LS_TRY(ls_map(r->a->nbytes, "an adapter", &p, e));
    r->a->memory = p;
    r->a->of = LS_NEW_ARRAY(ls_row_adapter, (size_t)r->t->model.nparams);
    LS_TRY(ls_compute_init(&c, ls_cores(), ls_model_scratch_floats(m), e));
    float *room = r->a->memory;
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < m->nlayers; i++)
        s = take_layer(r, &c, &m->layers[i], &room, e);
    ls_compute_close(&c);
    return s;
}

/* ---- on a device ---- */

static void move(const float **at, const float *from, const float *to) {
    if (*at) *at = to + (*at - from);
}

ls_status ls_adapter_place(const ls_trained *t, ls_adapter *a, ls_error *e) {
    ls_device *d = t->infer.compute->device;
    const float *here = a->memory;
    void *there = NULL;
    if (!d) return LS_OK;
    LS_TRY(ls_device_alloc(d, a->nbytes, "an adapter", &there, e));
    a->device = d;
    a->there = there;
    for (int i = 0; i < t->model.nparams; i++) {
        move(&a->of[i].a, here, there);
        move(&a->of[i].b, here, there);
        move(&a->of[i].g, here, there);
    }
    ls_device_copy_to(d, LS_DEVICE_COMPUTE, there, here, a->nbytes);
    return ls_device_finish(d, LS_DEVICE_COMPUTE, e);
}

/* ---- opening ---- */

static ls_status check_base(const reading *r, ls_error *e) {
    for (int i = 0; i < r->t->model.nlayers; i++)
        if (ls_lora_is(&r->t->model.layers[i]))
            return ls_fail(
                e, LS_EINVAL,
                "%s: has adapters itself, so others can't be loaded beside it; serve the "
                "model on which it was trained",
                r->t->path);
    return LS_OK;
}

static ls_status read_adapter(reading *r, ls_error *e) {
    bool file = ls_adapter_file_is(r->path);
    LS_TRY(check_base(r, e));
    LS_TRY(file ? open_file(r, e) : ls_run_adapters_open(r->path, false, &r->with, e));
    LS_TRY(check_config(r, e));
    LS_TRY(check_params(r, e));
    if (!file) LS_TRY(check_weights(r, e));
    LS_TRY(take_layers(r, e));
    return ls_adapter_place(r->t, r->a, e);
}

ls_status ls_adapter_open(const ls_trained *t, const char *path, ls_adapter *a_p, ls_error *e) {
    ls_adapter a = {.path = ls_strdup(path)};
    reading *r = LS_NEW(reading);
    *r = (reading){.t = t, .path = path, .a = &a};
    ls_status s = read_adapter(r, e);
    ls_run_adapters_close(&r->with);
    free(r);
    if (s == LS_OK)
        *a_p = a;
    else
        ls_adapter_close(&a);
    return s;
}

void ls_adapter_close(ls_adapter *a) {
    free(a->path);
    free(a->of);
    if (a->memory) ls_unmap(a->memory, a->nbytes);
    if (a->there) ls_device_free(a->device, a->there);
    *a = (ls_adapter){0};
}
