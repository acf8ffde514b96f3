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
/* Keys of the caller's choice may have any lists and maps as their value, a tree, which becomes one
 * text in YAML's flow style; it has the line ends of the file, so that lines can be named:
 *
 *     model:
 *       layers:
 *         - linear: {out: 10}
 *         - relu
 *
 * becomes {"model.layers", "[{\"linear\": {\"out\": \"10\"}}, \n\"relu\"]", line 3, is_tree}.
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
    bool is_tree;  /* the value is a tree */
} ls_yaml_item;

typedef struct ls_yaml {
    ls_yaml_item *items;
    size_t nitems;
} ls_yaml;

ls_status ls_yaml_read(const char *path, ls_yaml *y_p, ls_error *);
/* Is a list or a map that is the value of this key a tree? */
typedef bool ls_yaml_is_tree(const char *key);
/* As ls_yaml_read(), but lists are accepted, and trees where is_tree is not NULL. */
ls_status ls_yaml_read_lists(const char *path, ls_yaml_is_tree *, ls_yaml *y_p, ls_error *);
/* Reads a text in place of a file; `what` names it in messages. */
ls_status ls_yaml_parse_lists(const ls_buf *text, const char *what, ls_yaml_is_tree *, ls_yaml *y_p,
                              ls_error *);
void ls_yaml_free(ls_yaml *);

/* ---- trees ---- */

typedef enum ls_yaml_kind { LS_YAML_TEXT, LS_YAML_LIST, LS_YAML_MAP } ls_yaml_kind;

typedef struct ls_yaml_node ls_yaml_node;
struct ls_yaml_node {
    ls_yaml_kind kind;
    char *key;  /* in a map; else NULL */
    char *text; /* LS_YAML_TEXT */
    int line;
    ls_yaml_node **items; /* [nitems] of a list or map */
    int nitems;
};

/* Parses the text of a tree, which begins in line `line` of the file `what`. */
ls_status ls_yaml_parse_tree(const char *text, const char *what, int line, ls_yaml_node **root_p,
                             ls_error *);
void ls_yaml_node_free(ls_yaml_node *); /* NULL is fine */
/* The item of a map; NULL: there is none. */
const ls_yaml_node *ls_yaml_node_find(const ls_yaml_node *, const char *key);

#endif
