/* recommenders.h - models of users and items, and of ids and numbers, from a config. */
#ifndef LS_NETWORKS_RECOMMENDERS_H
#define LS_NETWORKS_RECOMMENDERS_H

#include "config/config.h"
#include "model/builder.h"

/* The fields that a kind reads; NULL: it is no recommender. The data may lack `x`. */
enum { LS_RECOMMENDER_FIELDS = 2 };
const char *const *ls_recommender_fields(ls_model_kind);

/* x: those fields, in their order; NULL: the data lack it. The scores of a sample's items, [items],
 * or the logit of a click, [1]. */
ls_value *ls_recommender_build(const ls_config *, ls_model *, ls_value *const *x);

#endif
