/* state.c - see state.h. */
#include "storage/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "share/codes.h"

/* The hash of values is that of these in f32, however they are stored. */
static void hash_values(ls_hasher *h, const ls_tensor *t) {
    enum { PART = 1 << 16 };
    if (t->type == LS_BLOCK_F32) {
        ls_hasher_add(h, t->data, t->count * sizeof(float));
        return;
    }
    float *part = LS_NEW_ARRAY(float, PART);
    for (size_t i = 0; i < t->count; i += PART) {
        size_t n = t->count - i < PART ? t->count - i : PART;
        ls_tensor_read(t, i, n, part);
        ls_hasher_add(h, part, n * sizeof *part);
    }
    free(part);
}

/* Hashes the step, unless negative; the loss scale, if one is in use; then the name, dims and data
 * of each tensor, sorted by name. */
static ls_hash hash_tensors(const ls_tensor **sorted, size_t n, int64_t step,
                            const ls_scaler *scaler) {
    if (n) qsort(sorted, n, sizeof *sorted, ls_tensor_by_name);
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
        hash_values(h, sorted[i]);
    }
    return ls_hasher_finish(h);
}

ls_hash ls_state_hash_weights(const ls_tensor *t, size_t n, const ls_safetensors *frozen) {
    size_t more = frozen ? frozen->n : 0;
    const ls_tensor **all = LS_NEW_ARRAY(const ls_tensor *, n + more);
    for (size_t i = 0; i < n; i++) all[i] = &t[i];
    for (size_t i = 0; i < more; i++) all[n + i] = &frozen->tensors[i];
    ls_hash h = hash_tensors(all, n + more, -1, NULL);
    free(all);
    return h;
}

ls_hash ls_state_hash_optimizer(const ls_tensor *t, size_t n, int64_t step, const ls_scaler *s) {
    const ls_tensor **all = LS_NEW_ARRAY(const ls_tensor *, n);
    for (size_t i = 0; i < n; i++) all[i] = &t[i];
    ls_hash h = hash_tensors(all, n, step, s);
    free(all);
    return h;
}

ls_tensor ls_state_tensor(const ls_param *p, const char *suffix, const float *data) {
    ls_tensor t = {.ndims = p->ndims, .count = p->count, .data = data};
    snprintf(t.name, sizeof t.name, "%s%s%s", p->name, suffix ? "." : "", suffix ? suffix : "");
    for (int d = 0; d < p->ndims; d++) t.dims[d] = p->dims[d];
    return t;
}

ls_tensor ls_state_frozen_tensor(const ls_param *p, ls_frozen_value v) {
    ls_tensor t = ls_state_tensor(p, NULL, v.data);
    t.type = v.type;
    return t;
}

void ls_state_error_name(int vw, char text[LS_STATE_ERROR_NAME]) {
    snprintf(text, LS_STATE_ERROR_NAME, "error.%d", vw);
}

void ls_state_factor_name(int vw, char text[LS_STATE_ERROR_NAME]) {
    snprintf(text, LS_STATE_ERROR_NAME, "factor.%d", vw);
}

bool ls_state_factor(const ls_plan *p, const ls_param *param, ls_param *factor_p) {
    const ls_code_piece *x = ls_share_factor_of(&p->share, param);
    if (!x) return false;
    *factor_p = *param;
    factor_p->ndims = 2;
    factor_p->dims[0] = (int64_t)(x->nfactor / x->cols);
    factor_p->dims[1] = (int64_t)x->cols;
    factor_p->count = x->nfactor;
    factor_p->offset = p->share.model->nfloats + x->factor_at;
    return true;
}

static ls_state_tensors new_tensors(const ls_model *m, int each) {
    return (ls_state_tensors){.list = LS_NEW_ARRAY(ls_tensor, (size_t)(m->nparams * each)),
                              .from = LS_NEW_ARRAY(int, (size_t)m->nparams + 1),
                              .vws = LS_NEW_ARRAY(int, (size_t)(m->nparams * each)),
                              .replica = LS_NEW_ARRAY(int, (size_t)(m->nparams * each))};
}

/* Updates so far: steps that did not overflow. */
static int64_t updates(const ls_train_state *s) {
    return s->step - (s->scaler.scale > 0 ? s->scaler.skipped : 0);
}

/* The buffer that has a parameter's weights. */
static int weights_at(const ls_train_state *s, const ls_param *p) {
    return s->optim ? ls_optim_weights(s->optim, p, updates(s)) : 0;
}

/* Buffer k of a parameter, or of the table that it is a window of. */
static const float *values_of(const ls_train_state *s, const ls_param *p, int k) {
    if (p->window.rows) return s->tables + ls_optim_table_at(s->optim, s->model, p, k);
    return s->flat.of[k] + p->offset;
}

static ls_tensor tensor_of(const ls_train_state *s, const ls_param *p, const char *suffix, int k) {
    ls_param whole = p->window.rows ? ls_param_whole(p) : *p;
    return ls_state_tensor(&whole, suffix, values_of(s, p, k));
}

ls_state_tensors ls_state_weights(const ls_train_state *s) {
    ls_state_tensors t = new_tensors(s->model, 1);
    for (int i = 0; i < s->model->nparams; i++) {
        const ls_param *p = &s->model->params[i];
        if (!p->frozen) t.list[t.n++] = tensor_of(s, p, NULL, weights_at(s, p));
        t.from[i + 1] = (int)t.n;
    }
    return t;
}

void ls_state_replica_name(char *name, int replica) {
    size_t n = strlen(name);
    snprintf(name + n, LS_TENSOR_NAME - n, ".replica.%d", replica - 1);
}

/* Appends the states of a parameter; those of a replica with the parameter itself. */
static void add_states(const ls_train_state *s, const ls_param *p, int replica,
                       ls_state_tensors *t) {
    size_t at = (size_t)replica * s->model->nfloats + p->offset;
    for (int k = replica ? 0 : 1; k < s->flat.n; k++) {
        bool common = s->replicas && !replica;
        const char *name = k == 0   ? NULL
                           : common ? ls_optim_outer_state_name(s->optim, k - 1)
                                    : ls_optim_state_name(s->optim, p, k - 1);
        if (k > 0 && !name) continue;
        /* the average stands with the weights, and the parameter in its place */
        int buffer = k && k == ls_optim_weights(s->optim, p, 1) ? 0 : k;
        const float *data = replica ? s->flat.of[buffer] + at : values_of(s, p, buffer);
        t->replica[t->n] = replica;
        const ls_param all = p->window.rows ? ls_param_whole(p) : *p;
        const ls_param shape = k ? ls_optim_state_param(s->optim, &all, k - 1) : all;
        t->list[t->n] = ls_state_tensor(&shape, name, data);
        if (replica) ls_state_replica_name(t->list[t->n].name, replica);
        t->n++;
    }
}

/* Appends what is noted of the rows of a table. */
static void add_seen(const ls_train_state *s, const ls_param *p, ls_state_tensors *t) {
    if (!p->window.rows || !s->optim || !ls_optim_sees(s->optim)) return;
    int k = ls_optim_nflats(s->optim);
    ls_param shape = ls_param_whole(p);
    shape.dims[1] = (int64_t)ls_optim_row_floats(s->optim, p, k);
    shape.count = (size_t)(shape.dims[0] * shape.dims[1]);
    t->list[t->n++] = ls_state_tensor(&shape, LS_OPTIM_SEEN, values_of(s, p, k));
}

/* Appends the errors of a virtual worker, and the second factor that stands with them. */
static void add_errors(const ls_train_state *s, const ls_param *p, int vw, ls_state_tensors *t) {
    char name[LS_STATE_ERROR_NAME];
    const float *errors = s->errors + (size_t)vw * s->plan->share.error_floats;
    ls_param factor;
    ls_state_error_name(vw, name);
    t->vws[t->n] = 1 + vw;
    t->list[t->n++] = ls_state_tensor(p, name, errors + p->offset);
    if (!ls_state_factor(s->plan, p, &factor)) return;
    ls_state_factor_name(vw, name);
    t->vws[t->n] = 1 + vw;
    t->list[t->n++] = ls_state_tensor(&factor, name, errors + factor.offset);
}

ls_state_tensors ls_state_optimizer(const ls_train_state *s) {
    ls_state_tensors t = new_tensors(s->model, 1 + s->flat.n * (1 + s->replicas) + 2 * s->nerrors);
    for (int i = 0; i < s->model->nparams; i++) {
        const ls_param *p = &s->model->params[i];
        for (int r = 0; r <= s->replicas && !p->frozen; r++) add_states(s, p, r, &t);
        add_seen(s, p, &t);
        for (int v = 0; v < s->nerrors && !p->frozen; v++) add_errors(s, p, v, &t);
        t.from[i + 1] = (int)t.n;
    }
    return t;
}

void ls_state_tensors_free(ls_state_tensors *t) {
    free(t->list);
    free(t->from);
    free(t->vws);
    free(t->replica);
    *t = (ls_state_tensors){0};
}

size_t ls_state_put(const ls_train_state *s, float *to, size_t first, size_t end,
                    const float *from) {
    bool all = !s->owned || s->all_params;
    size_t n = 0;
    for (int k = 0; k < (all ? 1 : s->nowned); k++) {
        size_t a = all || s->owned[k].first < first ? first : s->owned[k].first;
        size_t b = all || s->owned[k].end > end ? end : s->owned[k].end;
        if (a >= b) continue;
        n += b - a;
        if (from) memcpy(to + a, from + (a - first), (b - a) * sizeof *from);
    }
    return n;
}

ls_status ls_state_write_weights(const ls_train_state *s, const char *path, ls_error *e) {
    ls_state_tensors weights = ls_state_weights(s);
    for (int i = 0; i < s->model->nparams; i++)
        if (s->model->params[i].frozen)
            weights.list[weights.n++] = ls_state_frozen_tensor(&s->model->params[i], s->frozen[i]);
    ls_status status = ls_safetensors_write_wide(path, weights.list, weights.n, e);
    ls_state_tensors_free(&weights);
    return status;
}
