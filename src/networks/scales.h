/* scales.h - data.normalize of columns: what numbers of fields become before the first layer, and
 * how a target is predicted.
 *
 *     {age: {mean: 38.2, deviation: 13.6}, x: {mean: [1, 500], deviation: [2, 0]}}
 *                       (x - mean) / deviation, and 0 where the deviation is 0; one number is of
 *                       all numbers of the field, several are by its last dimension
 *     auto              as measured on the training part, which replaces it
 *     off               nothing
 *     left out          auto, if model.kind is mlp and it reads no image; else nothing
 *
 * The target of a mean squared error is predicted as a number of this scale, times deviation, plus
 * mean; the loss is divided by deviation^2, so that predicting the mean has a loss of about 1.
 *
 * {mean: [...], deviation: [...]} is of pixels: pixels.h. */
#ifndef LS_NETWORKS_SCALES_H
#define LS_NETWORKS_SCALES_H

#include "base/yaml.h"
#include "config/config.h"
#include "networks/fields.h"

/* What a mean and a deviation may be; a smaller deviation counts as 0. The squares of a target's
 * differences are numbers of a loss. */
#define LS_SCALE_MOST         1e37F
#define LS_SCALE_LEAST        1e-37F
#define LS_SCALE_TARGET_MOST  1e15F
#define LS_SCALE_TARGET_LEAST 1e-15F

typedef struct ls_field_scale {
    char field[LS_FIELD_NAME];
    int64_t n;               /* 1: all numbers of the field alike; else its last dimension */
    float *mean, *deviation; /* [n] */
} ls_field_scale;

typedef struct ls_scales { /* zero-initialised: none */
    ls_field_scale *list;  /* [n] */
    int n;
} ls_scales;

/* Is this tree a map of fields? */
bool ls_scales_are_of_fields(const ls_yaml_node *);
/* None, if data.normalize has none of fields. LS_EINVAL: it is none of the above. */
ls_status ls_scales_read(const ls_config *, ls_scales *s_p, ls_error *);
/* Appends a scale of zeros; the pointer is valid until the next is added. */
ls_field_scale *ls_scales_add(ls_scales *, const char *field, int64_t n);
/* NULL: there is none. */
const ls_field_scale *ls_scales_find(const ls_scales *, const char *field);
/* Writes them as a config has them, with 9 digits: exactly. */
void ls_scales_write(const ls_scales *, ls_config_tree *);
void ls_scales_free(ls_scales *);

/* Is the key left out, where that may mean `auto`? */
bool ls_scales_are_unsaid(const ls_config *);
/* The fields of model.input, which the config has, whose numbers `auto` scales. *target_p: the
 * place of the target among them; -1: it is not scaled. */
ls_status ls_scales_wanted(const ls_config *, ls_fields *f_p, int *target_p, ls_error *);

#endif
