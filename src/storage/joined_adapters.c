/* joined_adapters.c - see joined_adapters.h. */
#include "storage/joined_adapters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "networks/adapters.h"

/* "model.layers.0.self_attn.q_proj" of "….weight" */
static void layer_of(const char *tensor, char layer[LS_NAME_MOST]) {
    snprintf(layer, LS_NAME_MOST, "%.*s", (int)(strlen(tensor) - strlen(".weight")), tensor);
}

static bool is_joined(const ls_name *id) { return id->rows != id->dims[0]; }

/* The parameter of the layer's adapter, or NULL. */
static const ls_param *find(const ls_run_adapters *r, const char *layer, const char *which) {
    char name[LS_NAME + 32];
    snprintf(name, sizeof name, "%s.%s", layer, which);
    for (int i = 0; i < r->model.nparams; i++)
        if (r->model.params[i].adapter && strcmp(r->model.params[i].name, name) == 0)
            return &r->model.params[i];
    return NULL;
}

bool ls_joined_adapters_has(const ls_architecture *a, const ls_param *p) {
    char layer[LS_NAME], of[LS_NAME_MOST];
    ls_name id;
    if (a->family != LS_FAMILY_PHI3) return false; /* others have a name for each expert */
    ls_adapter_layer(p, layer);
    for (int i = 0; p->adapter && ls_name_at(a, i, &id); i++) {
        if (!is_joined(&id)) continue;
        layer_of(id.name, of);
        if (strcmp(of, layer) == 0) return true;
    }
    return false;
}

/* All parts have the rank and the alpha of the first. */
static ls_status check_part(const ls_run_adapters *r, const char *layer, ls_joined_adapter *j,
                            ls_error *e) {
    const ls_param *a = find(r, layer, "lora_A.weight");
    if (!a) return LS_OK;
    double alpha = ls_adapters_alpha(&r->config, layer);
    if (j->rank && (j->rank != a->dims[0] || j->alpha != alpha))
        return ls_fail(e, LS_EINVAL,
                       "%s: %s has another rank or alpha than the layers with which it is one in "
                       "files of its model; use --merge",
                       r->checkpoint, layer);
    j->rank = a->dims[0];
    j->alpha = alpha;
    return LS_OK;
}

/* Adds part k to the joined adapter. */
static void add_part(const ls_run_adapters *r, const ls_name *id, int k, ls_joined_adapter *j) {
    char layer[LS_NAME_MOST];
    layer_of(id->name, layer);
    const ls_param *a = find(r, layer, "lora_A.weight"), *b = find(r, layer, "lora_B.weight");
    if (!a || !b) return;
    int64_t rank = j->rank / j->parts;
    memcpy(j->a + k * rank * j->width, r->params + a->offset, a->count * sizeof *j->a);
    for (int64_t i = 0; i < id->dims[0]; i++)
        memcpy(j->b + (id->first + i) * j->rank + k * rank, r->params + b->offset + i * rank,
               (size_t)rank * sizeof *j->b);
}

/* The tensor whose first part is tensor `at` of the architecture; *has_p: it has an adapter. */
static ls_status join(const ls_run_adapters *r, const ls_architecture *arch, int at,
                      ls_joined_adapter *j_p, ls_error *e) {
    ls_name id;
    char part[LS_NAME_MOST], layer[LS_NAME_MOST];
    ls_joined_adapter j = {.parts = 0};
    ls_name_at(arch, at, &id);
    for (; ls_name_part(arch, id.file, j.parts, part); j.parts++) {
        layer_of(part, layer);
        LS_TRY(check_part(r, layer, &j, e));
        if (find(r, layer, "lora_magnitude_vector"))
            return ls_fail(e, LS_EINVAL,
                           "%s: %s is a part of %s in models of the family %s, for whose DoRA "
                           "adapters there is no form: use --merge",
                           r->checkpoint, layer, id.file, ls_family_name(arch->family));
    }
    *j_p = j;
    if (!j.rank) return LS_OK;
    j.rank *= j.parts;
    j.rows = id.rows;
    j.width = id.dims[1];
    layer_of(id.file, j.layer);
    memcpy(j.gguf, id.gguf, sizeof j.gguf);
    j.a = LS_NEW_ARRAY(float, (size_t)(j.rank * j.width));
    j.b = LS_NEW_ARRAY(float, (size_t)(j.rows * j.rank));
    for (int k = 0; k < j.parts; k++) {
        ls_name_at(arch, at + k, &id);
        add_part(r, &id, k, &j);
    }
    *j_p = j;
    return LS_OK;
}

ls_status ls_joined_adapters_make(const ls_run_adapters *r, const ls_architecture *a,
                                  ls_joined_adapters *j_p, ls_error *e) {
    ls_joined_adapters j = {0};
    ls_status s = LS_OK;
    ls_name id;
    for (int i = 0; s == LS_OK && ls_name_at(a, i, &id); i++) {
        ls_joined_adapter one;
        if (!is_joined(&id) || id.first) continue;
        s = join(r, a, i, &one, e);
        if (s != LS_OK || !one.a) continue;
        j.list = ls_grow(j.list, j.n, sizeof *j.list);
        j.list[j.n++] = one;
    }
    if (s == LS_OK)
        *j_p = j;
    else
        ls_joined_adapters_free(&j);
    return s;
}

void ls_joined_adapters_free(ls_joined_adapters *j) {
    for (size_t i = 0; i < j->n; i++) {
        free(j->list[i].a);
        free(j->list[i].b);
    }
    free(j->list);
    *j = (ls_joined_adapters){0};
}
