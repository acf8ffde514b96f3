/* own.h - keys that a program built with the library adds to the table (lockstep/program.h). */
#ifndef LS_CONFIG_OWN_H
#define LS_CONFIG_OWN_H

#include "config/config.h"
#include "lockstep/program.h"

/* Adds a program's keys as the group `name`, in place of an earlier program's, and gives model.kind
 * the value `program`. has_data: it has data of its own, and configs name no files. specs may be
 * NULL. LS_EINVAL: a name is not possible, or a default is out of range. Before any config is read;
 * one thread. */
ls_status ls_config_use_program(const char *name, const ls_key_spec *specs, bool has_data,
                                ls_error *);
/* The name of the program; NULL: there is none. */
const char *ls_config_program(void);
/* Appends the line of a config file that names this program; nothing, if there is none. */
void ls_config_put_owner(ls_buf *out);
/* The program that a config file names in its first line; "" if it names none. */
typedef struct ls_config_owner {
    char name[64];
} ls_config_owner;
ls_config_owner ls_config_read_owner(const char *path);
bool ls_config_program_has_data(void);
/* From now on a config may name files or not, whatever the program has: for those that read only
 * the models of runs. */
void ls_config_program_take_any_data(void);
bool ls_config_program_takes_any_data(void);

/* Sets what a program changes in the defaults: its strings, and model.kind. */
void ls_config_own_defaults(ls_config *);

/* The value of a program's key. LS_EINVAL: it has no key of this name and type. */
ls_status ls_config_own_int(const ls_config *, const char *name, int64_t *value_p, ls_error *);
ls_status ls_config_own_float(const ls_config *, const char *name, double *value_p, ls_error *);
ls_status ls_config_own_string(const ls_config *, const char *name, const char **value_p,
                               ls_error *);

#endif
