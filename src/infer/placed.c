/* placed.c - see placed.h. */
#include "infer/placed.h"

/* The first layer without kernels; NULL: all have some. */
static const ls_layer *without_kernels(const ls_model *m) {
    for (int i = 0; i < m->nlayers + m->nlate; i++)
        if (!m->layers[i].traits.on_device) return &m->layers[i];
    return NULL;
}

static ls_status check(const char *device, const ls_infer *f, ls_error *e) {
    const ls_model *m = f->model;
    const ls_layer *l = without_kernels(m);
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].frozen && f->frozen[i].int8)
            return ls_fail(e, LS_EINVAL, "device %s: does not know infer.activations: int8",
                           device);
    if (!l) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "device %s: layer %s (%s) has no kernels for a device; leave --device out: cores have them",
        device, l->name, l->ops->kind);
}

/* Takes the weights away; the device stays. */
static void empty(ls_placed *p) {
    ls_held_close(&p->held, &p->compute);
    ls_device_free(p->compute.device, p->params);
    p->params = NULL;
}

static ls_status send(ls_placed *p, const ls_infer *f, ls_error *e) {
    ls_device *d = p->compute.device;
    size_t n = f->model->nfloats;
    ls_stored params = {.data = f->params, .type = ls_block_of_dtype(f->dtype)};
    if (n) LS_TRY(ls_device_alloc(d, n * sizeof(float), "parameters", &p->params, e));
    LS_TRY(ls_held_send(&p->compute, params, n, p->params, e));
    return ls_held_open(&p->held, &p->compute, f->model, f->frozen, 0, e);
}

ls_status ls_placed_open(ls_placed *p, const char *device, ls_infer *f, ls_error *e) {
    ls_device *d = p->compute.device;
    LS_TRY(check(device, f, e));
    if (d)
        empty(p);
    else
        LS_TRY(ls_device_open(device, &d, e));
    p->compute = *f->compute;
    p->compute.device = d;
    ls_status s = send(p, f, e);
    if (s != LS_OK) {
        ls_placed_close(p);
        return s;
    }
    f->compute = &p->compute;
    f->params = p->params;
    f->frozen = p->held.frozen;
    f->constants = p->held.constants;
    return LS_OK;
}

void ls_placed_close(ls_placed *p) {
    ls_device *d = p->compute.device;
    if (!d) return;
    empty(p);
    ls_device_close(d);
    *p = (ls_placed){0};
}
