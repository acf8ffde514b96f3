/* prediction.c - see prediction.h. */
#include "model/prediction.h"

#include <stdio.h>
#include <string.h>

/* The value that layer `i` computes. */
static void set_value(const ls_model *m, int i, ls_prediction *p) {
    const ls_layer *l = &m->layers[i];
    p->layer = i;
    memcpy(p->dims, l->y_dims, sizeof p->dims);
    p->width = (int64_t)l->y_floats;
    p->rows = 1;
}

/* The loss is layer `i`. */
static ls_prediction prediction_of(const ls_model *m, int i) {
    const ls_layer *l = &m->layers[i];
    const ls_field *f = l->nfields ? ls_model_field_at(m, l->field_at[0]) : NULL;
    ls_prediction p = {.kind = (ls_output_kind)l->end.predicts};
    snprintf(p.name, sizeof p.name, "%s", f ? f->name : l->name);
    if (l->half.ntables) {
        p.layer = i;
        p.is_fused = true;
        p.dims[0] = l->T;
        p.dims[1] = l->V;
    } else {
        set_value(m, l->inputs[0], &p);
    }
    p.rows = l->T;
    p.width = l->V;
    return p;
}

int ls_predictions_of(const ls_model *m, ls_prediction *list_p) {
    int n = 0;
    for (int i = 0; i < m->nlayers && n < LS_PREDICTIONS; i++)
        if (m->layers[i].traits.loss && m->layers[i].end.predicts)
            list_p[n++] = prediction_of(m, i);
    return n;
}

void ls_predictions_need(const ls_model *m, const ls_prediction *list, int n, bool *layers,
                         bool *fields) {
    memset(layers, 0, (size_t)m->nlayers * sizeof *layers);
    memset(fields, 0, (size_t)m->ninputs * sizeof *fields);
    for (int k = 0; k < n; k++) layers[list[k].layer] = true;
    for (int i = m->nlayers - 1; i >= 0; i--) {
        const ls_layer *l = &m->layers[i];
        for (int k = 0; layers[i] && k < l->ninputs; k++) layers[l->inputs[k]] = true;
        for (int k = 0; layers[i] && !l->traits.loss && k < l->nfields; k++) {
            const ls_field *f = ls_model_field_at(m, l->field_at[k]);
            if (f) fields[f - m->inputs] = true;
        }
    }
}
