/* adapters.c - see adapters.h. */
#include "networks/adapters.h"

#include <fnmatch.h>
#include <math.h>
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

/* An entry of lora.rank_pattern or lora.alpha_pattern, NAME=NUMBER: cuts it at its last '='. */
static bool cut_entry(char *entry, double least, double most, double *value_p) {
    char *at = strrchr(entry, '='), *end = NULL;
    if (!at || at == entry) return false;
    *at++ = 0;
    *value_p = strtod(at, &end);
    return end > at && !*end && *value_p >= least && *value_p <= most;
}

static bool cut_rank(char *entry, double *value_p) {
    return cut_entry(entry, 1, 65536, value_p) && *value_p == floor(*value_p);
}

static bool cut_alpha(char *entry, double *value_p) { return cut_entry(entry, 1e-6, 1e6, value_p); }

typedef bool cut_number(char *, double *);

/* The number of the first entry that matches; those that are wrong are refused later. */
static double number_of(const char *patterns, cut_number *cut, const char *layer, double usual) {
    char *list = ls_strdup(patterns), *rest = list, *entry = NULL;
    double value = 0;
    bool found = false;
    while (!found && *patterns && (entry = strsep(&rest, "\n")))
        found = cut(entry, &value) && matches(entry, layer);
    free(list);
    return found ? value : usual;
}

double ls_adapters_alpha(const ls_config *c, const char *layer) {
    return number_of(c->lora.alpha_pattern, cut_alpha, layer, c->lora.alpha);
}

static int64_t rank_of(const ls_config *c, const char *layer) {
    return (int64_t)number_of(c->lora.rank_pattern, cut_rank, layer, (double)c->lora.rank);
}

ls_lora ls_adapters_of(const ls_config *c, ls_model *m, const char *layer) {
    ls_lora o = {.rs = c->lora.rs, .dora = c->lora.dora, .dropout = (float)c->lora.dropout};
    if (!c->lora.rank) return o;
    char *name = ls_format("%s.%s", ls_build_scope(m), layer), *list = ls_strdup(targets_of(c));
    char *rest = list, *pattern = NULL;
    bool found = false;
    while ((pattern = strsep(&rest, "\n"))) found = found || is_target(pattern, name);
    if (found) {
        o.rank = rank_of(c, name);
        o.alpha = (float)ls_adapters_alpha(c, name);
    }
    free(list);
    free(name);
    return o;
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
                          "means all of them%s",
                          pattern, names.len ? names.data : "none",
                          strchr(pattern, ',') ? "; several are a list: [A, B]" : "");
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

/* The entry is that of a layer with an adapter. */
static ls_status check_entry(ls_model *m, const char *key, const char *entry, ls_error *e) {
    char *name = ls_strdup(entry), layer[LS_NAME];
    bool ranks = strcmp(key, "lora.rank_pattern") == 0, found = false;
    double value = 0;
    bool is = ranks ? cut_rank(name, &value) : cut_alpha(name, &value);
    for (int i = 0; is && !found && i < m->nparams; i++)
        found = m->params[i].adapter && cut(m->params[i].name, layer) && matches(name, layer);
    free(name);
    if (!is)
        return ls_fail(e, LS_EINVAL, "%s: '%.60s' is not NAME=%s", key, entry,
                       ranks ? "RANK, a whole number from 1 to 65536" : "ALPHA, 1e-6 to 1e6");
    if (found) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: '%.60s' matches no layer with an adapter (lora.targets)", key,
                   entry);
}

static ls_status check_rank(ls_model *m, const char *entry, ls_error *e) {
    return check_entry(m, "lora.rank_pattern", entry, e);
}

static ls_status check_alpha(ls_model *m, const char *entry, ls_error *e) {
    return check_entry(m, "lora.alpha_pattern", entry, e);
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
    LS_TRY(each(c->lora.rank_pattern, check_rank, m, e));
    LS_TRY(each(c->lora.alpha_pattern, check_alpha, m, e));
    for (int i = 0; i < m->nparams; i++) m->params[i].frozen = !m->params[i].adapter;
    return each(c->lora.train, train_one, m, e);
}
