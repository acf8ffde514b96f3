/* groups.h - optim.groups: parameters with settings of their own. */
#ifndef LS_CONFIG_GROUPS_H
#define LS_CONFIG_GROUPS_H

#include "config/config.h"

enum { LS_CONFIG_GROUPS = 15 }; /* at most */

typedef struct ls_config_group {
    char match[128];      /* a pattern of parameters' names, as in a shell: "*.bias" */
    ls_config_optim with; /* the config's settings, with those of the group in their place */
    double lr_scale;
    bool decays_all; /* the group sets weight_decay: it applies to norms and biases, too */
    unsigned sets;   /* bits of the settings that the group has (ls_config_group_sets()) */
} ls_config_group;

/* In their order: the first one that matches a parameter has it. groups [LS_CONFIG_GROUPS].
 * LS_EINVAL: a key that no group has, a value that is not possible, a group without `match`, too
 * many groups. */
ls_status ls_config_read_groups(const ls_config *, const char *where, ls_config_group *groups,
                                int *n_p, ls_error *);

/* Does the group itself set this key of `optim`, e.g. "beta1"? */
bool ls_config_group_sets(const ls_config_group *, const char *setting);

#endif
