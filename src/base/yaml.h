/* yaml.h - a YAML file of groups of keys, read as a flat list.
 *
 *     train:
 *       steps: 50        ->  { "train.steps", "50", line 2 }
 *
 * Scalars only: lists, anchors, aliases, tags and a second document are refused by name.
 */
#ifndef LS_BASE_YAML_H
#define LS_BASE_YAML_H

#include "base/mem.h"

typedef struct ls_yaml_item {
    char *key; /* "group.key", or the key alone where it stands at the top */
    char *value;
    int line; /* from 1 */
} ls_yaml_item;

typedef struct ls_yaml {
    ls_yaml_item *items;
    size_t nitems;
} ls_yaml;

ls_status ls_yaml_read(const char *path, ls_yaml *y_p, ls_error *);
void ls_yaml_free(ls_yaml *);

#endif
