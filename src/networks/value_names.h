/* value_names.h - the values of a model by their names: fields of model.input, and layers of a list
 * that have a name.
 *
 * A layer in a repetition is block.0.fc; what follows in the same turn of it may say fc. */
#ifndef LS_NETWORKS_VALUE_NAMES_H
#define LS_NETWORKS_VALUE_NAMES_H

#include "base/yaml.h"
#include "model/builder.h"
#include "networks/pixels.h"
#include "networks/scales.h"

typedef struct ls_named {
    char name[LS_NAME + LS_FIELD_NAME]; /* with its scope */
    ls_value *value;
    ls_value *numbers; /* a field's as data.normalize says, once a layer has read them; else NULL */
    bool is_used;
} ls_named;

typedef struct ls_names {
    ls_named *list; /* [n] */
    int n;
    char scope[LS_NAME]; /* begins names in open repetitions: "block.1." */
    ls_pixel_scale pixels;
    ls_scales scales;
    bool reads_pixels; /* a layer has read pixels, as `pixels` says */
} ls_names;

/* Where a model is built, and the file that errors name; errors stick to the model. */
typedef struct ls_list_at {
    ls_model *m;
    const char *file;
    ls_names *names;
} ls_list_at;

/* The calls that follow are those of this node's line. */
void ls_list_go(const ls_list_at *, const ls_yaml_node *);

/* Notes a value; the model fails if another one has its name. */
void ls_names_add(const ls_list_at *, const char *name, ls_value *);
/* The value of this name, which counts as used. NULL: there is none. */
ls_value *ls_names_find(const ls_list_at *, const char *name);
/* As ls_names_find(), but a missing value is an error at the node's line. */
ls_value *ls_names_get(const ls_list_at *, const ls_yaml_node *, const char *name);
/* The value as a layer reads it: bytes of an image are numbers, and numbers of a field are scaled,
 * as data.normalize says. */
ls_value *ls_names_numbers(const ls_list_at *, ls_value *);
void ls_names_free(ls_names *);

/* Opens a repetition's scope, and returns where it began, for closing it. */
size_t ls_names_open(const ls_list_at *, const char *name, int turn);
void ls_names_close(const ls_list_at *, size_t begin);

#endif
