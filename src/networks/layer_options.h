/* layer_options.h - options of a layer or a loss, as a config gives them: {out: 10, name: head}. */
#ifndef LS_NETWORKS_LAYER_OPTIONS_H
#define LS_NETWORKS_LAYER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/model.h"
#include "networks/value_names.h"

enum { LS_MOST_OPTIONS = 9, LS_OPTIONS_NBYTES = 192 };

typedef enum ls_option_type {
    LS_OPTION_INT,
    LS_OPTION_INTS, /* a list of at most `most` */
    LS_OPTION_REAL,
    LS_OPTION_REALS, /* the same */
    LS_OPTION_FLAG,
    LS_OPTION_VALUE /* a value of the model, by its name */
} ls_option_type;

typedef struct ls_layer_option {
    const char *name; /* as in the options' struct; NULL: none */
    ls_option_type type;
    size_t offset; /* in the struct: an int64_t or several, a float or several, a bool, an ls_value
                    * * */
    double low, high;
    size_t most;
    double usual; /* the value of a number that is not given */
} ls_layer_option;

/* Options that are members of the struct `type`. */
#define LS_OPT_INT(type, member, low, high)                                                        \
    { #member, LS_OPTION_INT, offsetof(type, member), low, high, 0, 0 }
#define LS_OPT_INT_OR(type, member, low, high, usual)                                              \
    { #member, LS_OPTION_INT, offsetof(type, member), low, high, 0, usual }
#define LS_OPT_REAL(type, member, low, high)                                                       \
    { #member, LS_OPTION_REAL, offsetof(type, member), low, high, 0, 0 }
#define LS_OPT_REAL_OR(type, member, low, high, usual)                                             \
    { #member, LS_OPTION_REAL, offsetof(type, member), low, high, 0, usual }
#define LS_OPT_FLAG(type, member)                                                                  \
    { #member, LS_OPTION_FLAG, offsetof(type, member), 0, 1, 0, 0 }
#define LS_OPT_VALUE(type, member)                                                                 \
    { #member, LS_OPTION_VALUE, offsetof(type, member), 0, 0, 0, 0 }
#define LS_OPT_REALS(type, member, low, high)                                                      \
    {                                                                                              \
#member, LS_OPTION_REALS, offsetof(type, member), low, high,                               \
            sizeof(((type *)0)->member) / sizeof(float), 0                                         \
    }
/* Dimensions: an ls_dims. */
#define LS_OPT_DIMS(type, member, low, high)                                                       \
    { #member, LS_OPTION_INTS, offsetof(type, member), low, high, LS_MAX_DIMS, 0 }

typedef struct ls_option_list {
    const char *kind;
    const char *lone; /* the option that `kind: VALUE` sets; NULL: options are a map */
    ls_layer_option of[LS_MOST_OPTIONS];
} ls_option_list;

/* Sets options in a struct whose first member is the name, which the node keeps. value: of
 * `kind: value`; NULL: none. The caller reads the options `others`, which end with NULL. */
void ls_options_read(const ls_list_at *, const ls_option_list *, const ls_yaml_node *value,
                     const char *const *others, void *options);

/* A whole number. False: the text is none. */
bool ls_option_whole(const char *text, int64_t *x_p);

#endif
