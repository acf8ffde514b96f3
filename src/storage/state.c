/* state.c - see state.h. */
#include "storage/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b) {
    return strcmp((*(const ls_tensor *const *)a)->name, (*(const ls_tensor *const *)b)->name);
}

/* Hashes the step, unless negative; the loss scale, if one is in use; then the name, dims and data
 * of each tensor, sorted by name. */
static ls_hash hash_tensors(const ls_tensor *t, size_t n, int64_t step, const ls_scaler *scaler) {
    const ls_tensor **sorted = LS_NEW_ARRAY(const ls_tensor *, n);
    for (size_t i = 0; i < n; i++) sorted[i] = &t[i];
    qsort(sorted, n, sizeof *sorted, by_name);
    ls_hasher *h = ls_hasher_new();
    if (step >= 0) ls_hasher_add(h, &step, sizeof step);
    if (scaler && scaler->scale > 0) {
        const double scale[] = {scaler->scale, (double)scaler->good, (double)scaler->left,
                                (double)scaler->skipped};
        ls_hasher_add(h, scale, sizeof scale);
    }
    for (size_t i = 0; i < n; i++) {
        ls_hasher_add(h, sorted[i]->name, strlen(sorted[i]->name) + 1);
        int64_t ndims = sorted[i]->ndims;
        ls_hasher_add(h, &ndims, sizeof ndims);
        ls_hasher_add(h, sorted[i]->dims, (size_t)ndims * sizeof *sorted[i]->dims);
        ls_hasher_add(h, sorted[i]->data, sorted[i]->count * sizeof(float));
    }
    free(sorted);
    return ls_hasher_finish(h);
}

ls_hash ls_state_hash_weights(const ls_tensor *t, size_t n) { return hash_tensors(t, n, -1, NULL); }

ls_hash ls_state_hash_moments(const ls_tensor *t, size_t n, int64_t step, const ls_scaler *s) {
    return hash_tensors(t, n, step, s);
}

static ls_tensor tensor_of(const ls_param *p, const char *suffix, const float *flat) {
    ls_tensor t = {.ndims = p->ndims, .count = p->count, .data = flat + p->offset};
    snprintf(t.name, sizeof t.name, "%s%s", p->name, suffix);
    for (int d = 0; d < p->ndims; d++) t.dims[d] = p->dims[d];
    return t;
}

ls_tensor *ls_state_weights(const ls_train_state *s) {
    ls_tensor *t = LS_NEW_ARRAY(ls_tensor, (size_t)s->model->nparams);
    for (int i = 0; i < s->model->nparams; i++)
        t[i] = tensor_of(&s->model->params[i], "", s->params);
    return t;
}

ls_tensor *ls_state_moments(const ls_train_state *s) {
    ls_tensor *t = LS_NEW_ARRAY(ls_tensor, 2 * (size_t)s->model->nparams);
    for (int i = 0; i < s->model->nparams; i++) {
        t[2 * i] = tensor_of(&s->model->params[i], ".exp_avg", s->m);
        t[2 * i + 1] = tensor_of(&s->model->params[i], ".exp_avg_sq", s->v);
    }
    return t;
}
