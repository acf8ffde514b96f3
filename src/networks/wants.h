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

/* The kinds that a key may name: entries [n] of `size` bytes, which begin with an
 * ls_option_list. */
typedef struct ls_want_kinds {
    const char *key; /* model.loss or model.metrics */
    const void *list;
    size_t size;
    int n;
} ls_want_kinds;

typedef struct ls_want {
    const char *kind;
    const void *entry;           /* its kind's */
    const char *target, *of;     /* NULL: not given */
    const ls_yaml_node *node;    /* the whole item, for its line */
    const ls_yaml_node *options; /* NULL: none */
} ls_want;

typedef struct ls_wants {
    ls_yaml_node *root; /* has the texts of the items */
    ls_want list[LS_MOST_WANTS];
    int n; /* 0: the key is empty */
} ls_wants;

/* LS_EINVAL: it has another form, or there is no such kind; the message names file and line. */
ls_status ls_wants_read(const ls_config_tree *, const ls_want_kinds *, ls_wants *, ls_error *);
void ls_wants_free(ls_wants *);
/* The entry of a kind; NULL: there is none. */
const void *ls_wants_find(const ls_want_kinds *, const char *kind);
/* Appends the names of the kinds: "cross_entropy, mean_squared_error". */
void ls_wants_put_kinds(const ls_want_kinds *, ls_buf *);

#endif
