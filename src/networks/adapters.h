/* adapters.h - lora.*: which layers of a model get an adapter, and what else is trained.
 */
#ifndef LS_NETWORKS_ADAPTERS_H
#define LS_NETWORKS_ADAPTERS_H

#include "config/config.h"
#include "model/builder.h"

/* The adapter of a linear layer that the config's model is about to get, in the open scopes; rank
 * 0: it gets none. */
ls_lora ls_adapters_of(const ls_config *, ls_model *, const char *layer);
/* lora.alpha of the layer of this name, which may have its own (lora.alpha_pattern). */
double ls_adapters_alpha(const ls_config *, const char *layer);

/* Freezes all other parameters, except for those of lora.train. Does nothing without lora.rank.
 * LS_EINVAL: a target or a pattern matches nothing. The model must be linked afterwards. */
ls_status ls_adapters_freeze(const ls_config *, ls_model *, ls_error *);

#endif
