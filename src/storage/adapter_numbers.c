/* adapter_numbers.c - see adapter_numbers.h. */
#include "storage/adapter_numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "base/suffix.h"

void ls_adapter_numbers_add(ls_adapter_numbers *a, const char *layer, int64_t rank, double alpha) {
    a->list = ls_grow(a->list, a->n, sizeof *a->list);
    ls_layer_numbers *l = &a->list[a->n++];
    *l = (ls_layer_numbers){.rank = rank, .alpha = alpha};
    snprintf(l->layer, sizeof l->layer, "%s", layer);
}

static const char *last_part(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static bool is_same(const ls_layer_numbers *a, const ls_layer_numbers *b, bool ranks) {
    return ranks ? a->rank == b->rank : a->alpha == b->alpha;
}

/* Do all layers whose names end like this one have its number? */
static bool all_have(const ls_adapter_numbers *a, const ls_layer_numbers *l, bool ranks) {
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(last_part(a->list[i].layer), last_part(l->layer)) == 0 &&
            !is_same(&a->list[i], l, ranks))
            return false;
    return true;
}

static ls_json *pattern_of(const ls_adapter_numbers *a, bool ranks) {
    const ls_layer_numbers usual = {.rank = a->rank, .alpha = a->alpha};
    ls_json *o = ls_json_new_object();
    for (size_t i = 0; i < a->n; i++) {
        const ls_layer_numbers *l = &a->list[i];
        if (is_same(l, &usual, ranks)) continue;
        const char *name = all_have(a, l, ranks) ? last_part(l->layer) : l->layer;
        if (ranks)
            ls_json_set_integer(o, name, l->rank);
        else
            ls_json_set_number(o, name, l->alpha);
    }
    return o;
}

ls_json *ls_adapter_numbers_ranks(const ls_adapter_numbers *a) { return pattern_of(a, true); }

ls_json *ls_adapter_numbers_alphas(const ls_adapter_numbers *a) { return pattern_of(a, false); }

/* Frees the pattern. */
static ls_status set_list(ls_json *pattern, const char *path, const char **list_p, ls_error *e) {
    const char *name = NULL;
    const ls_json *value = NULL;
    ls_buf list = {0};
    for (void *it = NULL; (it = ls_json_next(pattern, it, &name, &value));) {
        ls_buf_printf(&list, "%s%s=", list.len ? "\n" : "", name);
        ls_json_write(value, 0, &list);
    }
    bool fits = list.len < LS_CONFIG_TREE;
    if (fits) *list_p = ls_intern(list.len ? list.data : "");
    ls_buf_free(&list);
    ls_json_free(pattern);
    if (fits) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: too many layers have ranks or alphas of their own; their names have more "
                   "than %d bytes",
                   path, LS_CONFIG_TREE - 1);
}

ls_status ls_adapter_numbers_set(const ls_adapter_numbers *a, const char *path, ls_config *c,
                                 ls_error *e) {
    c->lora.rank = a->rank;
    c->lora.alpha = a->alpha;
    LS_TRY(set_list(ls_adapter_numbers_ranks(a), path, &c->lora.rank_pattern, e));
    return set_list(ls_adapter_numbers_alphas(a), path, &c->lora.alpha_pattern, e);
}

bool ls_adapter_takes(const ls_name *id, char layer[LS_NAME_MOST]) {
    bool is = id->ndims == 2 && id->expert < 0 && ls_has_suffix(id->param, ".weight") &&
              strcmp(id->gguf, "token_embd.weight") != 0;
    if (is) snprintf(layer, LS_NAME_MOST, "%.*s", (int)(strlen(id->param) - 7), id->param);
    return is;
}

static bool has_layer(const ls_adapter_numbers *a, const char *layer) {
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->list[i].layer, layer) == 0) return true;
    return false;
}

/* Are all layers of the model whose names end like this one in the list? */
static bool has_all(const ls_adapter_numbers *a, const ls_architecture *arch, const char *layer) {
    ls_name id;
    char other[LS_NAME_MOST];
    for (int i = 0; ls_name_at(arch, i, &id); i++)
        if (ls_adapter_takes(&id, other) && strcmp(last_part(other), last_part(layer)) == 0 &&
            !has_layer(a, other))
            return false;
    return true;
}

static bool in_list(const char *list, const char *name) {
    for (const char *at = list; (at = strstr(at, name)); at++) {
        char end = at[strlen(name)];
        if ((at == list || at[-1] == '\n') && (!end || end == '\n')) return true;
    }
    return false;
}

ls_status ls_adapter_numbers_target(const ls_adapter_numbers *a, const ls_architecture *arch,
                                    const char *path, ls_config *c, ls_error *e) {
    ls_buf list = {0};
    for (size_t i = 0; i < a->n; i++) {
        const char *layer = a->list[i].layer;
        const char *name = has_all(a, arch, layer) ? last_part(layer) : layer;
        if (list.len && in_list(list.data, name)) continue;
        ls_buf_printf(&list, "%s%s", list.len ? "\n" : "", name);
    }
    bool fits = list.len < LS_CONFIG_TREE;
    if (fits) c->lora.targets = ls_intern(list.len ? list.data : "");
    ls_buf_free(&list);
    if (fits) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: some blocks have adapters and others do not; their names have more than "
                   "%d bytes",
                   path, LS_CONFIG_TREE - 1);
}
