/* adapters.c - see adapters.h. */
#include "networks/adapters.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As PEFT has them. */
static const char DEFAULT_TARGETS[] = "q_proj\nv_proj";

static const char *targets_of(const ls_config *c) {
    return *c->lora.targets ? c->lora.targets : DEFAULT_TARGETS;
}

/* A name, the last parts of one, or a pattern of the whole one. */
static bool matches(const char *pattern, const char *name) {
    size_t all = strlen(name), end = strlen(pattern);
    bool ends = end < all && name[all - end - 1] == '.' && strcmp(name + all - end, pattern) == 0;
    return ends || fnmatch(pattern, name, 0) == 0;
}

static bool is_target(const char *pattern, const char *layer) {
    return strcmp(pattern, "all-linear") == 0 || matches(pattern, layer);
}

ls_lora ls_adapters_of(const ls_config *c, ls_model *m, const char *layer) {
    ls_lora o = {.rank = c->lora.rank,
                 .alpha = (float)c->lora.alpha,
                 .rs = c->lora.rs,
                 .dora = c->lora.dora,
                 .dropout = (float)c->lora.dropout};
    if (!o.rank) return o;
    char *name = ls_format("%s.%s", ls_build_scope(m), layer), *list = ls_strdup(targets_of(c));
    char *rest = list, *pattern = NULL;
    bool found = false;
    while ((pattern = strsep(&rest, "\n"))) found = found || is_target(pattern, name);
    free(list);
    free(name);
    return found ? o : (ls_lora){0};
}

/* ---- what is trained ---- */

/* The name without its last parts, which begin at ".lora_"; false: it has no such parts. */
static bool cut(const char *name, char layer[LS_NAME]) {
    const char *at = strstr(name, ".lora_");
    if (at) snprintf(layer, LS_NAME, "%.*s", (int)(at - name), name);
    return at != NULL;
}

static bool has_adapter(const ls_model *m, const char *layer) {
    char of[LS_NAME];
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].adapter && cut(m->params[i].name, of) && strcmp(of, layer) == 0)
            return true;
    return false;
}

/* The last parts of the names of linear layers, each once: "q_proj, k_proj". */
static void list_layers(const ls_model *m, ls_buf *out) {
    for (int i = 0; i < m->nlayers; i++) {
        const char *dot = strrchr(m->layers[i].name, '.');
        if (strcmp(m->layers[i].ops->kind, "linear") != 0 || !dot) continue;
        if (out->len && strstr(out->data, dot + 1)) continue;
        ls_buf_printf(out, "%s%s", out->len ? ", " : "", dot + 1);
    }
}

static ls_status check_target(ls_model *m, const char *pattern, ls_error *e) {
    char layer[LS_NAME];
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].adapter && cut(m->params[i].name, layer) && is_target(pattern, layer))
            return LS_OK;
    ls_buf names = {0};
    list_layers(m, &names);
    ls_status s = ls_fail(e, LS_EINVAL,
                          "lora.targets: '%.60s' matches no linear layer; there are %s; all-linear "
                          "means all of them",
                          pattern, names.len ? names.data : "none");
    ls_buf_free(&names);
    return s;
}

/* Trains the parameters that match, or belong to a layer that does. */
static ls_status train_one(ls_model *m, const char *pattern, ls_error *e) {
    int n = 0;
    for (int i = 0; i < m->nparams; i++) {
        ls_param *p = &m->params[i];
        char layer[LS_NAME];
        if (p->adapter) continue;
        snprintf(layer, sizeof layer, "%s", p->name);
        char *dot = strrchr(layer, '.');
        if (dot) *dot = 0;
        if (!matches(pattern, p->name) && !matches(pattern, layer)) continue;
        if (has_adapter(m, layer))
            return ls_fail(e, LS_EINVAL,
                           "lora.train: '%.60s' matches %s, whose layer has an adapter; leave it "
                           "out of lora.targets or of lora.train",
                           pattern, p->name);
        p->frozen = false;
        n++;
    }
    if (n) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "lora.train: '%.60s' matches no layer or parameter; their names are like %s",
                   pattern, m->params[0].name);
}

typedef ls_status use_pattern(ls_model *, const char *, ls_error *);

static ls_status each(const char *patterns, use_pattern *use, ls_model *m, ls_error *e) {
    char *list = ls_strdup(patterns), *rest = *list ? list : NULL, *pattern = NULL;
    ls_status s = LS_OK;
    while (s == LS_OK && (pattern = strsep(&rest, "\n"))) s = use(m, pattern, e);
    free(list);
    return s;
}

ls_status ls_adapters_freeze(const ls_config *c, ls_model *m, ls_error *e) {
    if (!c->lora.rank) return LS_OK;
    LS_TRY(each(targets_of(c), check_target, m, e));
    for (int i = 0; i < m->nparams; i++) m->params[i].frozen = !m->params[i].adapter;
    return each(c->lora.train, train_one, m, e);
}
