/* yaml.h - reads a YAML file of groups of keys as a flat list.
 *
 *     train:
 *       steps: 50        ->  { "train.steps", "50", line 2 }
 *
 * Anchors, aliases, tags and a second document are refused with a message that names them. So are
 * lists, but ls_yaml_read_lists() and ls_yaml_parse_lists() accept lists of scalars:
 *
 *     data:
 *       path: [a.txt, b.txt]   ->  { "data.path", "a.txt\nb.txt", line 2, is_list }
 *
 * and lists of maps of scalars, whose pairs are separated by tabs:
 *
 *     optim:
 *       groups: [{match: "*.bias", lr_scale: 2}]
 *                    ->  { "optim.groups", "match=*.bias\tlr_scale=2", line 2, is_list, has_maps }
 */
#ifndef LS_BASE_YAML_H
#define LS_BASE_YAML_H

#include <stdbool.h>

#include "base/mem.h"

typedef struct ls_yaml_item {
    char *key; /* "group.key", or "key" at the top level */
    char *value;
    int line;      /* from 1 */
    bool is_list;  /* the value is its elements, one a line */
    bool has_maps; /* they are maps */
} ls_yaml_item;

typedef struct ls_yaml {
    ls_yaml_item *items;
    size_t nitems;
} ls_yaml;

ls_status ls_yaml_read(const char *path, ls_yaml *y_p, ls_error *);
/* The same; lists are accepted. */
ls_status ls_yaml_read_lists(const char *path, ls_yaml *y_p, ls_error *);
/* The same for a text; `what` names it in messages. */
ls_status ls_yaml_parse_lists(const ls_buf *text, const char *what, ls_yaml *y_p, ls_error *);
void ls_yaml_free(ls_yaml *);

#endif
