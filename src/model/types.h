/* types.h - the types of the model that a config describes. */
#ifndef LS_MODEL_TYPES_H
#define LS_MODEL_TYPES_H

#include "config/config.h"
#include "tensor/dtype.h"

/* Types of parameters and activations, and of gradients. */
ls_dtype ls_config_compute(const ls_config *);
ls_dtype ls_config_reduce(const ls_config *);

#endif
