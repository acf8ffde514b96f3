/* measure.c - see measure.h. */
#include "model/measure.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/model.h"

/* What depends on a layer's output. */
enum { A_LOSS = 1, A_MEASURE = 2 };

/* needed [nlayers]. Layers read only layers before them, so one way back over them finds all. */
static void find_needed(const ls_model *m, char *needed) {
    for (int i = 0; i < m->nmeasures; i++)
        for (int k = 0; k < m->measures[i].layer.ninputs; k++)
            needed[m->measures[i].layer.inputs[k]] |= A_MEASURE;
    for (int i = m->nlayers - 1; i >= 0; i--) {
        const ls_layer *l = &m->layers[i];
        if (l->traits.loss) needed[i] |= A_LOSS;
        for (int k = 0; k < l->ninputs; k++) needed[l->inputs[k]] |= needed[i];
    }
}

static void renumber(ls_layer *l, const int *number) {
    for (int k = 0; k < l->ninputs; k++) l->inputs[k] = number[l->inputs[k]];
    l->chosen.scores = number[l->chosen.scores];
}

/* Sorts the layers, those that `is_late` last. */
static void sort(ls_model *m, const char *is_late) {
    int n = m->nlayers, at = 0, *number = LS_NEW_ARRAY(int, (size_t)n);
    ls_layer *sorted = LS_NEW_ARRAY(ls_layer, (size_t)n);
    for (int late = 0; late < 2; late++) {
        if (late) m->nlate = n - at;
        for (int i = 0; i < n; i++) {
            if (is_late[i] != late) continue;
            sorted[at] = m->layers[i];
            number[i] = at++;
        }
    }
    for (int i = 0; i < n; i++) renumber(&sorted[i], number);
    for (int i = 0; i < m->nmeasures; i++) renumber(&m->measures[i].layer, number);
    memcpy(m->layers, sorted, (size_t)n * sizeof *sorted);
    m->nlayers -= m->nlate;
    free(sorted);
    free(number);
}

ls_status ls_measures_place(ls_model *m, ls_error *e) {
    char *needed = LS_NEW_ARRAY(char, (size_t)m->nlayers + 1);
    const ls_layer *trained = NULL;
    find_needed(m, needed);
    for (int i = 0; i < m->nlayers; i++) {
        needed[i] = needed[i] == A_MEASURE;
        if (needed[i] && m->layers[i].nparams && !trained) trained = &m->layers[i];
    }
    ls_status s = LS_OK;
    if (trained)
        s = ls_fail(e, LS_EINVAL,
                    "layer '%s' has parameters, but no loss depends on it, only a metric does: it "
                    "would not be trained",
                    trained->name);
    else
        sort(m, needed);
    free(needed);
    size_t at = LS_RECORD_VALUES + (size_t)m->nnotes;
    for (int i = 0; i < m->nmeasures; i++) {
        m->measures[i].at = at;
        at += (size_t)m->measures[i].nvalues;
    }
    return s;
}

size_t ls_record_size(const ls_model *m) {
    size_t n = LS_RECORD_VALUES + (size_t)m->nnotes;
    for (int i = 0; i < m->nmeasures; i++) n += (size_t)m->measures[i].nvalues;
    return n;
}
