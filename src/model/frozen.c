/* frozen.c - see frozen.h. */
#include "model/frozen.h"

#include <fnmatch.h>

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
