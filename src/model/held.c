/* held.c - see held.h. */
#include "model/held.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/frozen.h"
#include "tensor/stored.h"

enum { PART = 1 << 16 }; /* numbers that are sent at a time */

static ls_status send(const ls_compute *on, const float *from, size_t n, float *to, ls_error *e) {
    ls_device_copy_to(on->device, LS_DEVICE_COMPUTE, to, from, n * sizeof *to);
    return ls_device_finish(on->device, LS_DEVICE_COMPUTE, e);
}

ls_status ls_held_send(const ls_compute *on, ls_stored value, size_t count, float *to,
                       ls_error *e) {
    float *part = LS_NEW_ARRAY(float, PART);
    ls_status s = LS_OK;
    for (size_t at = 0; at < count && s == LS_OK; at += PART) {
        size_t n = count - at < PART ? count - at : PART;
        ls_stored_read(on->k, value, (int64_t)at, (int64_t)n, part);
        s = send(on, part, n, to + at, e);
    }
    free(part);
    return s;
}

static ls_status send_all(ls_held *h, const ls_compute *on, const ls_model *m,
                          const ls_frozen_value *frozen, ls_error *e) {
    int n = 0;
    const ls_constants *constants = ls_model_constants(m, &n);
    float *to = (float *)(void *)h->memory;
    h->frozen = LS_NEW_ARRAY(ls_frozen_value, (size_t)m->nparams + 1);
    h->constants = LS_NEW_ARRAY(const float *, (size_t)n + 1);
    ls_frozen_place(m, LS_F32, to, h->frozen);
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].frozen)
            LS_TRY(ls_held_send(on, frozen[i], m->params[i].count, to + m->params[i].offset, e));
    for (int i = 0; i < n; i++) {
        float *there = to + ls_model_constants_at(m, i);
        h->constants[i] = there;
        LS_TRY(send(on, constants[i].p, constants[i].n, there, e));
    }
    return LS_OK;
}

ls_status ls_held_open(ls_held *h, const ls_compute *on, const ls_model *m,
                       const ls_frozen_value *frozen, size_t weights, ls_error *e) {
    ls_device *d = on->device;
    size_t nbytes = ls_model_held_floats(m) * sizeof(float);
    void *p = NULL;
    if (h->frozen) return LS_OK;
    if (weights) LS_TRY(ls_device_alloc(d, weights, "weights of samples", &p, e));
    h->weights = p;
    if (nbytes) LS_TRY(ls_device_alloc(d, nbytes, "frozen parameters", &p, e));
    if (nbytes) h->memory = p;
    return send_all(h, on, m, frozen, e);
}

void ls_held_close(ls_held *h, const ls_compute *on) {
    ls_device *d = on->device;
    if (!d) return;
    ls_device_free(d, h->memory);
    ls_device_free(d, h->weights);
    free(h->frozen);
    free(h->constants);
    *h = (ls_held){0};
}
