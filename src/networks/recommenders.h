/* recommenders.h - models of users and items, from a config. */
#ifndef LS_NETWORKS_RECOMMENDERS_H
#define LS_NETWORKS_RECOMMENDERS_H

#include "config/config.h"
#include "model/builder.h"

/* The fields that a kind reads, as many as its kind has; NULL: it is no recommender. */
enum { LS_RECOMMENDER_FIELDS = 2 };
const char *const *ls_recommender_fields(ls_model_kind);

/* x: those fields, in their order. The scores of a sample's items, [items]. */
ls_value *ls_recommender_build(const ls_config *, ls_model *, ls_value *const *x);

#endif
