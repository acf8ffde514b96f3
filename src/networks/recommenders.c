/* recommenders.c - kinds factors, two_towers, dlrm and wide_deep. In the first two the scores of a
 * user for items are dot products of two vectors.
 *
 * factors: rows of two tables, and a number of each item; where a sample has one item alone, as to
 * predict ratings, also a number of each user, and one for all. Koren, Bell & Volinsky, "Matrix
 * factorization techniques for recommender systems", IEEE Computer 42 (2009) 30-37.
 *
 * two_towers: the rows pass through layers of their own, each linear and a ReLU but the last one.
 * Covington, Adams & Sargin, "Deep neural networks for YouTube recommendations", RecSys 2016.
 *
 * dlrm: the dot products of all pairs among the rows of a sample's ids and what layers make of its
 * numbers; they and the latter pass through further layers. Naumov et al., "Deep learning
 * recommendation model for personalization and recommendation systems", 2019.
 *
 * wide_deep: a number of each id and a linear layer of the numbers, plus layers of the rows of all
 * ids and the numbers. Cheng et al., "Wide & deep learning for recommender systems", DLRS 2016. */
#include "networks/recommenders.h"

#include <string.h>

#include "networks/usual.h"

static const float NEARLY_ZERO = 1e-6F;

const char *const *ls_recommender_fields(ls_model_kind kind) {
    static const char *const of_ratings[LS_RECOMMENDER_FIELDS] = {"user", "items"};
    static const char *const of_clicks[LS_RECOMMENDER_FIELDS] = {"ids", "x"};
    switch (kind) {
    case LS_MODEL_FACTORS:
    case LS_MODEL_TWO_TOWERS: return of_ratings;
    case LS_MODEL_DLRM:
    case LS_MODEL_WIDE_DEEP: return of_clicks;
    default: return NULL;
    }
}

/* A number of each id: [ids]. */
static ls_value *add_biases(ls_model *m, ls_value *ids, const char *name) {
    ls_value *x =
        (ls_embedding)(m, ids,
                       (ls_embedding_options){.name = name, .width = 1, .deviation = NEARLY_ZERO});
    return (ls_flatten)(m, x);
}

static ls_value *add_rows(const ls_config *c, ls_model *m, ls_value *ids, const char *name) {
    return (ls_embedding)(m, ids,
                          (ls_embedding_options){
                              .name = name, .width = c->model.width, .deviation = 0.1F});
}

static ls_value *build_factors(const ls_config *c, ls_model *m, ls_value *user, ls_value *items) {
    ls_value *u = add_rows(c, m, user, "user"), *v = add_rows(c, m, items, "item");
    ls_value *scores = (ls_dot)(m, u, v);
    scores = (ls_add)(m, scores, add_biases(m, items, "item_bias"));
    if (!ls_build_is_good(m) || ls_value_count(items) > 1) return scores;
    scores = (ls_add)(m, scores, add_biases(m, user, "user_bias"));
    ls_value *mean =
        (ls_learned)(m, LS_DIMS(1), (ls_learned_options){.name = "mean", .deviation = NEARLY_ZERO});
    return (ls_add)(m, scores, mean);
}

static ls_value *add_tower(const ls_config *c, ls_model *m, ls_value *x, const char *name) {
    static const int64_t usual[] = {64};
    int64_t widths[LS_MOST_WIDTHS];
    int n = ls_widths_read(m, "model.hidden", c->model.hidden, usual, 1, widths);
    for (int i = 0; i < n; i++) {
        (ls_scope)(m, "%s_tower.%d", name, i);
        if (i > 0) x = (ls_relu)(m, x);
        x = (ls_linear)(m, x, (ls_linear_options){.out = widths[i]});
        ls_scope_end(m);
    }
    return x;
}

static ls_value *build_towers(const ls_config *c, ls_model *m, ls_value *user, ls_value *items) {
    ls_value *u = add_tower(c, m, add_rows(c, m, user, "user"), "user");
    ls_value *v = add_tower(c, m, add_rows(c, m, items, "item"), "item");
    return (ls_dot)(m, u, v);
}

/* ---- ids and numbers ---- */

/* Linear layers, each with a ReLU, of the widths of a key; then one of `last`, unless it is 0. */
static ls_value *add_layers(ls_model *m, ls_value *x, const char *key, const char *text,
                            int64_t last) {
    static const int64_t usual[] = {64};
    int64_t widths[LS_MOST_WIDTHS + 1];
    int n = ls_widths_read(m, key, text, usual, 1, widths);
    if (n >= 0 && last) widths[n++] = last;
    for (int i = 0; i < n; i++) {
        (ls_scope)(m, "%s.%d", key + strlen("model."), i);
        x = (ls_relu)(m, (ls_linear)(m, x, (ls_linear_options){.out = widths[i]}));
        ls_scope_end(m);
    }
    return x;
}

static ls_value *add_head(ls_model *m, ls_value *x) {
    return (ls_linear)(m, x, (ls_linear_options){.name = "head", .out = 1});
}

static ls_value *build_dlrm(const ls_config *c, ls_model *m, ls_value *ids, ls_value *x) {
    ls_value *rows = add_rows(c, m, ids, "rows");
    if (!x) {
        rows = (ls_interaction)(m, rows);
        return add_head(m, add_layers(m, rows, "model.hidden", c->model.hidden, 0));
    }
    ls_value *bottom = add_layers(m, x, "model.bottom", c->model.bottom, c->model.width);
    ls_value *first = (ls_reshape)(m, bottom, LS_DIMS(1, c->model.width));
    ls_value *all = (ls_concat)(m, 0, (ls_values){{first, rows}});
    ls_value *top = (ls_concat)(m, 0, (ls_values){{bottom, (ls_interaction)(m, all)}});
    return add_head(m, add_layers(m, top, "model.hidden", c->model.hidden, 0));
}

static ls_value *build_wide_deep(const ls_config *c, ls_model *m, ls_value *ids, ls_value *x) {
    ls_value *wide = (ls_embedding_sum)(m, ids,
                                        (ls_embedding_sum_options){
                                            .name = "wide", .width = 1, .deviation = NEARLY_ZERO});
    ls_value *deep = (ls_flatten)(m, add_rows(c, m, ids, "rows"));
    if (x) {
        ls_value *line =
            (ls_linear)(m, x, (ls_linear_options){.name = "wide_x", .out = 1, .no_bias = true});
        wide = (ls_add)(m, wide, line);
        deep = (ls_concat)(m, 0, (ls_values){{deep, x}});
    }
    deep = add_head(m, add_layers(m, deep, "model.hidden", c->model.hidden, 0));
    return (ls_add)(m, wide, deep);
}

ls_value *ls_recommender_build(const ls_config *c, ls_model *m, ls_value *const *x) {
    switch (c->model.kind) {
    case LS_MODEL_FACTORS: return build_factors(c, m, x[0], x[1]);
    case LS_MODEL_TWO_TOWERS: return build_towers(c, m, x[0], x[1]);
    case LS_MODEL_DLRM: return build_dlrm(c, m, x[0], x[1]);
    default: return build_wide_deep(c, m, x[0], x[1]);
    }
}
