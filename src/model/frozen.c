/* frozen.c - see frozen.h. */
#include "model/frozen.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/stored_table.h"
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
        values[i] = (ls_frozen_value){.type = ls_block_of_dtype(type)};
        if (p->frozen) values[i].data = ls_flat_at(type, buffer, p->offset);
    }
}

static bool layer_reads_stored(const ls_layer *l, int param) {
    for (int k = 0; k < l->nparams; k++)
        if (l->params[k] == param && k < l->nparams - l->half.ntables && !l->half.reads_stored[k])
            return false;
    return true;
}

bool ls_model_reads_stored(const ls_model *m, int i) {
    for (int l = 0; l < m->nlayers; l++)
        if (!layer_reads_stored(&m->layers[l], i)) return false;
    return true;
}

static bool layer_multiplies(const ls_layer *l, int k) {
    return l->half.in_products[k] ||
           ((l->traits.loss || l->traits.has_logits) && k >= l->nparams - l->half.ntables);
}

bool ls_model_multiplies(const ls_model *m, int i) {
    for (int l = 0; l < m->nlayers; l++)
        for (int k = 0; k < m->layers[l].nparams; k++)
            if (m->layers[l].params[k] == i && layer_multiplies(&m->layers[l], k)) return true;
    return false;
}

void ls_frozen_init(const ls_model *m, uint64_t seed, float *buffer) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (p->frozen) ls_model_init_param(m, seed, i, 0, p->count, buffer + p->offset);
    }
}

enum { PART = 1 << 16 }; /* elements that are widened at a time */

void ls_frozen_round_param(const ls_frozen_rounding *r, int i, ls_frozen_value from) {
    const ls_param *p = &r->model->params[i];
    float *part = LS_NEW_ARRAY(float, PART);
    for (size_t at = 0; at < p->count; at += PART) {
        size_t n = p->count - at < PART ? p->count - at : PART;
        if (from.data)
            ls_stored_read(r->compute->k, from, (int64_t)at, (int64_t)n, part);
        else
            ls_model_init_param(r->model, r->seed, i, at, n, part);
        ls_table_narrow(r->compute, r->type, n, part,
                        ls_flat_at_mut(r->type, r->buffer, p->offset + at));
    }
    free(part);
}

void ls_frozen_round(const ls_frozen_rounding *r, const ls_frozen_value *from) {
    for (int i = 0; i < r->model->nparams; i++)
        if (r->model->params[i].frozen && from[i].type != ls_block_of_dtype(r->type))
            ls_frozen_round_param(r, i, from[i]);
}

void ls_frozen_place_rounded(const ls_model *m, ls_dtype type, const void *buffer,
                             const ls_frozen_value *from, ls_frozen_value *values) {
    ls_frozen_place(m, type, buffer, values);
    for (int i = 0; i < m->nparams; i++)
        if (from[i].data && from[i].type == values[i].type) values[i] = from[i];
}

void ls_frozen_norms(const ls_model *m, const ls_compute *c, const ls_frozen_value *values,
                     size_t first, size_t end, float *params) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (!p->init.norms_of || p->frozen) continue;
        const ls_param *of = &m->params[p->init.norms_of - 1];
        size_t n = (size_t)of->dims[1];
        float *room = LS_NEW_ARRAY(float, n);
        for (size_t k = 0; k < p->count; k++) {
            if (p->offset + k < first || p->offset + k >= end) continue;
            ls_stored_read(c->k, values[p->init.norms_of - 1], (int64_t)(k * n), (int64_t)n, room);
            params[p->offset + k] = sqrtf(c->k->sum_squares((int64_t)n, room));
        }
        free(room);
    }
}
