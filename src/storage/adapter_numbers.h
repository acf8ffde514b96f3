/* adapter_numbers.h - the ranks and alphas of adapters' layers, which may differ: as peft's
 * rank_pattern and alpha_pattern, and as keys of a config.
 */
#ifndef LS_STORAGE_ADAPTER_NUMBERS_H
#define LS_STORAGE_ADAPTER_NUMBERS_H

#include "base/json.h"
#include "config/config.h"
#include "model/param.h"
#include "weights/tensor_names.h"

typedef struct ls_layer_numbers {
    char layer[LS_NAME];
    int64_t rank;
    double alpha;
} ls_layer_numbers;

/* Free the list. */
typedef struct ls_adapter_numbers {
    ls_layer_numbers *list;
    size_t n;
    int64_t rank; /* of layers that no pattern names */
    double alpha;
} ls_adapter_numbers;

void ls_adapter_numbers_add(ls_adapter_numbers *, const char *layer, int64_t rank, double alpha);

/* {"q_proj": 4}: the last part of a name where all layers that end so have the number, else whole
 * names. Empty: all have the usual one. */
ls_json *ls_adapter_numbers_ranks(const ls_adapter_numbers *);
ls_json *ls_adapter_numbers_alphas(const ls_adapter_numbers *);

/* Sets lora.rank, lora.alpha and their patterns. LS_EINVAL: the patterns are too long; `path` is
 * the file that has them. */
ls_status ls_adapter_numbers_set(const ls_adapter_numbers *, const char *path, ls_config *,
                                 ls_error *);

/* A linear layer of a published model, which can have an adapter: its name. */
bool ls_adapter_takes(const ls_name *, char layer[LS_NAME_MOST]);
/* Sets lora.targets to the layers of the list: "q_proj" if all of the model that end so are there,
 * else whole names. LS_EINVAL as above. */
ls_status ls_adapter_numbers_target(const ls_adapter_numbers *, const ls_architecture *,
                                    const char *path, ls_config *, ls_error *);

#endif
