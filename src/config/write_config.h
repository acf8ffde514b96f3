/* write_config.h - a config as YAML. */
#ifndef LS_CONFIG_WRITE_CONFIG_H
#define LS_CONFIG_WRITE_CONFIG_H

#include "config/config.h"

/* Appends every key and its value as YAML, in the order of the table; but train.micro_batch only if
 * it was written or chosen. Reading it back gives an equal config. */
void ls_config_write(const ls_config *, ls_buf *);

#endif
