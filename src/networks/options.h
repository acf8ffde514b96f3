/* options.h - options of a layer or a loss, as a config gives them: {out: 10, name: head}. */
#ifndef LS_NETWORKS_OPTIONS_H
#define LS_NETWORKS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/yaml.h"
#include "lockstep/model.h"

enum { LS_MOST_OPTIONS = 9, LS_OPTIONS_NBYTES = 192 };

typedef enum ls_option_type {
    LS_OPTION_INT,
    LS_OPTION_REAL,
    LS_OPTION_REALS, /* a list of at most `most` */
    LS_OPTION_FLAG
} ls_option_type;

typedef struct ls_layer_option {
    const char *name; /* as in the options' struct; NULL: none */
    ls_option_type type;
    size_t offset; /* in the struct: an int64_t, a float, floats, a bool */
    double low, high;
    size_t most;
} ls_layer_option;

typedef struct ls_option_list {
    const char *kind;
    const char *lone; /* the option that `kind: VALUE` sets; NULL: options are a map */
    ls_layer_option of[LS_MOST_OPTIONS];
} ls_option_list;

/* Where a model is built, and the file that errors name; errors stick to the model. */
typedef struct ls_list_at {
    ls_model *m;
    const char *file;
} ls_list_at;

/* The calls that follow are those of this node's line. */
void ls_list_go(const ls_list_at *, const ls_yaml_node *);

/* Sets options in a struct whose first member is the name, which the node keeps. value: of
 * `kind: value`; NULL: none. An option `other` is skipped (NULL: none). */
void ls_options_read(const ls_list_at *, const ls_option_list *, const ls_yaml_node *value,
                     const char *other, void *options);

/* A whole number. False: the text is none. */
bool ls_option_whole(const char *text, int64_t *x_p);

#endif
