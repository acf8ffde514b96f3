/* writer.h - a config as YAML. */
#ifndef LS_CONFIG_WRITER_H
#define LS_CONFIG_WRITER_H

#include "config/config.h"

/* Appends the whole config as YAML with every key, groups in table order; reading it back gives an
 * equal config. */
void ls_config_write(const ls_config *, ls_buf *);

#endif
