/* recommenders.c - kinds factors and two_towers: the scores of a user for items are dot products of
 * two vectors.
 *
 * factors: rows of two tables, and a number of each item; where a sample has one item alone, as to
 * predict ratings, also a number of each user, and one for all. Koren, Bell & Volinsky, "Matrix
 * factorization techniques for recommender systems", IEEE Computer 42 (2009) 30-37.
 *
 * two_towers: the rows pass through layers of their own, each linear and a ReLU but the last one.
 * Covington, Adams & Sargin, "Deep neural networks for YouTube recommendations", RecSys 2016. */
#include "networks/recommenders.h"

#include "networks/usual.h"

static const float NEARLY_ZERO = 1e-6F;

const char *const *ls_recommender_fields(ls_model_kind kind) {
    static const char *const of_ratings[LS_RECOMMENDER_FIELDS] = {"user", "items"};
    return kind == LS_MODEL_FACTORS || kind == LS_MODEL_TWO_TOWERS ? of_ratings : NULL;
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

ls_value *ls_recommender_build(const ls_config *c, ls_model *m, ls_value *const *x) {
    return c->model.kind == LS_MODEL_FACTORS ? build_factors(c, m, x[0], x[1])
                                             : build_towers(c, m, x[0], x[1]);
}
