/* help.h - the reference of the keys of a config, from their table. */
#ifndef LS_CONFIG_HELP_H
#define LS_CONFIG_HELP_H

#include "config/config.h"

/* Appends the reference of the keys of a group, e.g. "optim", or of all where it is NULL: key,
 * default, limits, help. LS_EINVAL: there is no such group. */
ls_status ls_config_help(const char *group, ls_buf *, ls_error *);

/* The keys in the order of the table, for completion: the name of key i, or NULL behind the last;
 * and the words that it may be, ended by NULL, or NULL where it is a number or a text. */
const char *ls_config_key_name(int i);
const char *const *ls_config_key_words(int i);

#endif
