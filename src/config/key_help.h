/* key_help.h - the reference of the keys of a config, from their table. */
#ifndef LS_CONFIG_KEY_HELP_H
#define LS_CONFIG_KEY_HELP_H

#include "config/config.h"

/* Appends the reference of a group's keys, e.g. "optim", of one key, "optim.lr", or of all keys if
 * group is NULL: key, default, limits, help, what it needs (needs.h). LS_EINVAL: there is no such
 * group or key. */
ls_status ls_config_help(const char *group, ls_buf *, ls_error *);

/* For completion: the name of key i in the order of the table, NULL after the last one; and the
 * words that are its possible values, ended by NULL, or NULL if it is a number or a text. */
const char *ls_config_key_name(int i);
const char *const *ls_config_key_words(int i);

#endif
