/* model_metrics.c - see model_metrics.h. */
#include "networks/model_metrics.h"

#include <stdio.h>
#include <string.h>

#include "layers/layers.h"
#include "networks/layer_options.h"

typedef struct metric_options {
    const char *name;
    int64_t k, candidates;
} metric_options;

/* What a metric is made of. ignored: a class that does not count. */
typedef struct operands {
    ls_value *x, *target;
    int64_t k, candidates;
    int32_t ignored;
} operands;

struct ls_metric_entry {
    ls_option_list options;
    bool of_classes;
    ls_value *(*add)(ls_model *, const operands *);
    int64_t usual_k; /* of those that count the first k; 0: of others */
    bool ranks;      /* items of users */
};

static ls_value *add_accuracy(ls_model *m, const operands *o) {
    return ls_layers_is_top(m, o->x, o->target, 1, o->ignored);
}
static ls_value *add_top(ls_model *m, const operands *o) {
    return ls_layers_is_top(m, o->x, o->target, o->k, o->ignored);
}
static ls_value *add_auc(ls_model *m, const operands *o) { return (ls_auc)(m, o->x, o->target); }
static ls_value *add_confusion(ls_model *m, const operands *o) {
    return ls_layers_confusion(m, o->x, o->target, o->ignored);
}
static ls_value *add_mse(ls_model *m, const operands *o) {
    return (ls_squared_error)(m, o->x, o->target);
}
static ls_value *add_rmse(ls_model *m, const operands *o) {
    return (ls_root_squared_error)(m, o->x, o->target);
}
static ls_value *add_mae(ls_model *m, const operands *o) {
    return (ls_absolute_error)(m, o->x, o->target);
}
static ls_value *add_hr(ls_model *m, const operands *o) {
    return ls_layers_ranking(m, LS_MEASURE_HIT, o->x, o->k, o->candidates);
}
static ls_value *add_ndcg(ls_model *m, const operands *o) {
    return ls_layers_ranking(m, LS_MEASURE_NDCG, o->x, o->k, o->candidates);
}
static ls_value *add_r2(ls_model *m, const operands *o) { return (ls_r2)(m, o->x, o->target); }

#define RANKING_OPTIONS                                                                            \
    {                                                                                              \
        LS_OPT_INT(metric_options, k, 1, 1000000),                                                 \
            LS_OPT_INT(metric_options, candidates, 1, 1000000)                                     \
    }

static const ls_metric_entry entries[] = {
    {{"accuracy", NULL, {{0}}}, true, .add = add_accuracy},
    {{"auc", NULL, {{0}}}, true, .add = add_auc},
    {{"confusion", NULL, {{0}}}, true, .add = add_confusion},
    {{"hr", "k", RANKING_OPTIONS}, .add = add_hr, .usual_k = 10, .ranks = true},
    {{"mae", NULL, {{0}}}, .add = add_mae},
    {{"mse", NULL, {{0}}}, .add = add_mse},
    {{"ndcg", "k", RANKING_OPTIONS}, .add = add_ndcg, .usual_k = 10, .ranks = true},
    {{"r2", NULL, {{0}}}, .add = add_r2},
    {{"rmse", NULL, {{0}}}, .add = add_rmse},
    {{"top", "k", {LS_OPT_INT(metric_options, k, 1, INT32_MAX)}},
     true,
     .add = add_top,
     .usual_k = 5},
};
static const ls_want_kinds kinds = {"model.metrics", entries, sizeof *entries,
                                    sizeof entries / sizeof *entries};

/* ---- reading ---- */

static ls_status fail_ranks(const ls_config_tree *t, const ls_want *item, ls_error *e) {
    return ls_fail(
        e, LS_EINVAL,
        "%s:%d: model.metrics: %s ranks items of users: set data.ratings, or leave it out", t->file,
        item->node->line, item->kind);
}

ls_status ls_metrics_read(const ls_config *c, ls_metric_list *s, ls_error *e) {
    *s = (ls_metric_list){0};
    LS_TRY(ls_wants_read(&c->model.metrics, &kinds, &s->wants, e));
    for (; s->n < s->wants.n; s->n++) {
        const ls_want *item = &s->wants.list[s->n];
        const ls_metric_entry *entry = item->entry;
        if (entry->ranks && !ls_config_has_ratings(c)) {
            ls_status status = fail_ranks(&c->model.metrics, item, e);
            ls_metrics_free(s);
            return status;
        }
        s->list[s->n] = (ls_metric_wanted){entry, item, entry->of_classes};
    }
    return LS_OK;
}

void ls_metrics_free(ls_metric_list *s) {
    ls_wants_free(&s->wants);
    *s = (ls_metric_list){0};
}

/* ---- building ---- */

/* The operands that the item names, or else those of a loss. False: the model has failed. */
static bool find_operands(const ls_metric_wanted *w, const ls_list_at *at, const ls_losses *losses,
                          ls_value *last, operands *o) {
    const ls_want *item = w->item;
    const ls_loss_wanted *loss = ls_losses_find(losses, item->target);
    const char *target = item->target ? item->target : loss ? loss->target : NULL;
    if (!target) {
        ls_build_fail(at->m,
                      "%s: the model has several losses; name the field that it is "
                      "compared with: {target: FIELD}",
                      item->kind);
        return false;
    }
    o->x = item->of ? ls_names_get(at, item->node, item->of) : loss ? loss->x : last;
    if (!o->x)
        ls_build_fail(at->m, "%s: its loss has no logits; name them by {of: VALUE}", item->kind);
    if (!ls_build_is_good(at->m)) return false;
    o->target = ls_target_get(at, target, w->of_classes);
    o->x = ls_names_numbers(at, o->x);
    bool is_of_loss = loss && loss->x == o->x && loss->of_classes;
    o->ignored = is_of_loss ? loss->ignored : -1;
    return ls_build_is_good(at->m);
}

/* "accuracy", "top5", "ndcg10_full", "ndcg10_sampled99" */
static void write_name(const ls_metric_wanted *w, const operands *o, char name[LS_MEASURE_NAME]) {
    char k[24] = "", among[32] = "";
    if (w->entry->usual_k) snprintf(k, sizeof k, "%lld", (long long)o->k);
    if (w->entry->ranks) snprintf(among, sizeof among, "_full");
    if (o->candidates) snprintf(among, sizeof among, "_sampled%lld", (long long)o->candidates);
    snprintf(name, LS_MEASURE_NAME, "%.9s%.6s%.16s", w->item->kind, k, among);
}

static void build(const ls_metric_wanted *w, const ls_list_at *at, const ls_losses *losses,
                  ls_value *last) {
    static const char *const others[] = {"target", "of", NULL};
    metric_options given = {.k = w->entry->usual_k};
    operands o = {0};
    char name[LS_MEASURE_NAME];
    ls_list_go(at, w->item->node);
    ls_options_read(at, &w->entry->options, w->item->options, others, &given);
    ls_list_go(at, w->item->node);
    if (!ls_build_is_good(at->m) || !find_operands(w, at, losses, last, &o)) return;
    o.k = given.k;
    o.candidates = given.candidates;
    write_name(w, &o, name);
    ls_value *measure = w->entry->add(at->m, &o);
    if (ls_build_is_good(at->m))
        ls_build_metric(at->m, given.name ? given.name : name, measure, false);
}

void ls_metrics_build(const ls_metric_list *s, const ls_list_at *at, const ls_losses *losses,
                      ls_value *last) {
    for (int i = 0; i < s->n && ls_build_is_good(at->m); i++) build(&s->list[i], at, losses, last);
}
