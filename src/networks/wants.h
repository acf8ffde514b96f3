/* wants.h - losses and metrics as a config asks for them (model.loss, model.metrics):
 *
 *     KIND
 *     {KIND: {target: FIELD, of: VALUE, option: value}}
 *     [one of these, ...]
 */
#ifndef LS_NETWORKS_WANTS_H
#define LS_NETWORKS_WANTS_H

#include "base/yaml.h"
#include "config/config.h"

enum { LS_MOST_WANTS = 16 };

typedef struct ls_want {
    const char *kind;
    const char *target, *of;     /* NULL: not given */
    const ls_yaml_node *node;    /* the whole item, for its line */
    const ls_yaml_node *options; /* NULL: none */
} ls_want;

typedef struct ls_wants {
    ls_yaml_node *root; /* has the texts of the items */
    ls_want list[LS_MOST_WANTS];
    int n; /* 0: the key is empty */
} ls_wants;

/* key: for messages. LS_EINVAL: it has another form; the message names file and line. */
ls_status ls_wants_read(const ls_config_tree *, const char *key, ls_wants *, ls_error *);
void ls_wants_free(ls_wants *);

#endif
