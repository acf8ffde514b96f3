/* mentioned.h - the names that a config has for fields of the samples. */
#ifndef LS_CONFIG_MENTIONED_H
#define LS_CONFIG_MENTIONED_H

#include "config/config.h"

/* Appends each name that may be a field's, one a line: the keys of model.input, model.sample_weight,
 * and all texts of model.loss, model.metrics and model.layers, of which some are other words. */
void ls_config_put_mentioned(const ls_config *, ls_buf *);

#endif
