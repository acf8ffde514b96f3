/* frozen.c - see frozen.h. */
#include "model/frozen.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/table.h"
#include "tensor/dtype.h"

int ls_model_freeze(ls_model *m, const char *pattern) {
    int n = 0;
    for (int i = 0; i < m->nparams; i++) {
        if (fnmatch(pattern, m->params[i].name, 0) != 0) continue;
        m->params[i].frozen = true;
        n++;
    }
    return n;
}

void ls_frozen_place(const ls_model *m, ls_dtype type, const void *buffer,
                     ls_frozen_value *values) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        values[i] = (ls_frozen_value){NULL, type};
        if (p->frozen) values[i].data = ls_flat_at(type, buffer, p->offset);
    }
}

void ls_frozen_init(const ls_model *m, uint64_t seed, float *buffer) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (p->frozen) ls_model_init_param(m, seed, i, 0, p->count, buffer + p->offset);
    }
}

void ls_frozen_round(const ls_model *m, const ls_compute *c, const ls_frozen_value *from,
                     ls_dtype type, void *buffer) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (p->frozen)
            ls_table_narrow(c, type, p->count, from[i].data,
                            ls_flat_at_mut(type, buffer, p->offset));
    }
}

/* Row i of a frozen parameter [.., n] in f32: in place, or in room [n]. */
static const float *row_of(const ls_compute *c, const ls_frozen_value *v, size_t i, size_t n,
                           float *room) {
    if (v->type == LS_F32) return (const float *)v->data + i * n;
    c->k->widen(v->type, n, ls_flat_at(v->type, v->data, i * n), room);
    return room;
}

void ls_frozen_norms(const ls_model *m, const ls_compute *c, const ls_frozen_value *values,
                     size_t first, size_t end, float *params) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (!p->norms_of || p->frozen) continue;
        const ls_param *of = &m->params[p->norms_of - 1];
        size_t n = (size_t)of->dims[1];
        float *room = LS_NEW_ARRAY(float, n);
        for (size_t k = 0; k < p->count; k++) {
            if (p->offset + k < first || p->offset + k >= end) continue;
            const float *row = row_of(c, &values[p->norms_of - 1], k, n, room);
            params[p->offset + k] = sqrtf(c->k->sum_squares((int64_t)n, row));
        }
        free(room);
    }
}
