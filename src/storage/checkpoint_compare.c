/* checkpoint_compare.c - see checkpoint_compare.h. */
#include "storage/checkpoint_compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "storage/manifest.h"

/* ---- states, by the manifests' hashes ---- */

static bool same_text(const ls_json *a, const ls_json *b, const char *key) {
    const char *x = ls_json_text(ls_json_get(a, key)), *y = ls_json_text(ls_json_get(b, key));
    return x && y && strcmp(x, y) == 0;
}

/* False: one of the runs has no checkpoint of this step. */
static bool compare_hashes(const char *const runs[2], int64_t step, bool *equal_p) {
    ls_manifest m[2] = {0};
    bool there = true;
    for (int i = 0; i < 2; i++) {
        char *path = ls_checkpoint_path(runs[i], step);
        there = ls_manifest_read(path, &m[i], NULL) == LS_OK && there;
        free(path);
    }
    *equal_p = there && same_text(m[0].json, m[1].json, "weights_hash") &&
               same_text(m[0].json, m[1].json, "optimizer_hash");
    for (int i = 0; i < 2; i++) ls_manifest_free(&m[i]);
    return there;
}

/* From the newest to the oldest. */
static ls_status find_step(const char *const runs[2], ls_checkpoints_compared *c, ls_error *e) {
    int64_t step = INT64_MAX;
    bool equal = false;
    for (;;) {
        LS_TRY(ls_checkpoint_below(runs[0], step, &step, e));
        if (step < 0) return LS_OK;
        if (!compare_hashes(runs, step, &equal)) continue;
        c->ncompared++;
        if (!equal) c->differ = step;
        if (!equal) c->equal = 0;
        if (equal && !c->equal) c->equal = step;
    }
}

/* ---- tensors ---- */

/* The first element that differs; the count: none. */
static size_t first_difference(const ls_tensor *a, const ls_tensor *b, float values[2]) {
    enum { PART = 1 << 14 };
    float *x = LS_NEW_ARRAY(float, PART), *y = LS_NEW_ARRAY(float, PART);
    size_t at = 0;
    for (; at < a->count; at++) {
        size_t n = a->count - at < PART ? a->count - at : PART;
        if (at % PART == 0) {
            ls_tensor_read(a, at, n, x);
            ls_tensor_read(b, at, n, y);
        }
        if (memcmp(&x[at % PART], &y[at % PART], sizeof *x) == 0) continue;
        values[0] = x[at % PART];
        values[1] = y[at % PART];
        break;
    }
    free(x);
    free(y);
    return at;
}

static bool same_shape(const ls_tensor *a, const ls_tensor *b) {
    size_t nbytes = (size_t)a->ndims * sizeof *a->dims;
    return a->ndims == b->ndims && memcmp(a->dims, b->dims, nbytes) == 0;
}

static void add_tensor(const ls_tensor *a, const ls_tensor *b, ls_checkpoints_compared *c) {
    float values[2] = {0};
    bool in_both = a && b && same_shape(a, b);
    size_t element = in_both ? first_difference(a, b, values) : 0;
    c->ntensors++;
    if (in_both && element == a->count) return;
    if (c->ndiffer++) return;
    memcpy(c->tensor, (a ? a : b)->name, sizeof c->tensor);
    c->in_both = in_both;
    c->element = element;
    memcpy(c->values, values, sizeof values);
}

static ls_status compare_files(const char *const paths[2], const char *name,
                               ls_checkpoints_compared *c, ls_error *e) {
    ls_safetensors f[2] = {0};
    ls_status s = LS_OK;
    for (int i = 0; i < 2 && s == LS_OK; i++) {
        char *path = ls_format("%s/%s", paths[i], name);
        s = ls_safetensors_open_stored(path, &f[i], e);
        free(path);
    }
    for (size_t i = 0; s == LS_OK && i < f[0].n; i++)
        add_tensor(&f[0].tensors[i], ls_safetensors_find(&f[1], f[0].tensors[i].name), c);
    for (size_t i = 0; s == LS_OK && i < f[1].n; i++)
        if (!ls_safetensors_find(&f[0], f[1].tensors[i].name))
            add_tensor(NULL, &f[1].tensors[i], c);
    if (s == LS_OK) s = ls_guard_check(e);
    for (int i = 0; i < 2; i++) ls_safetensors_close(&f[i]);
    return s;
}

ls_status ls_checkpoints_compare(const char *run, const char *other, ls_checkpoints_compared *c_p,
                                 ls_error *e) {
    const char *const runs[2] = {run, other};
    *c_p = (ls_checkpoints_compared){0};
    LS_TRY(find_step(runs, c_p, e));
    if (!c_p->differ) return LS_OK;
    char *paths[2];
    ls_status s = LS_OK;
    for (int i = 0; i < 2; i++) {
        ls_checkpoint_info info;
        paths[i] = ls_checkpoint_path(runs[i], c_p->differ);
        if (s == LS_OK) s = ls_checkpoint_verify(paths[i], &info, e);
    }
    const char *const given[2] = {paths[0], paths[1]};
    if (s == LS_OK) s = compare_files(given, LS_WEIGHTS_FILE, c_p, e);
    if (s == LS_OK) s = compare_files(given, LS_OPTIMIZER_FILE, c_p, e);
    for (int i = 0; i < 2; i++) free(paths[i]);
    return s;
}
