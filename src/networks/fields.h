/* fields.h - model.input: the fields of a sample that a model reads.
 *
 *     {image: [28, 28, 1]}                      bytes of an image, as [height, width, channels]
 *     {x: [13], price: []}                      numbers
 *     {tokens: {type: i32, dims: [128]}}        any type: u8, i32, f32
 *     {user: {type: i32, dims: [], ids: 610}}   numbers from 0 to 609
 */
#ifndef LS_NETWORKS_FIELDS_H
#define LS_NETWORKS_FIELDS_H

#include "config/config.h"
#include "model/builder.h"

typedef struct ls_fields {
    ls_field list[LS_SOURCE_FIELDS]; /* [n] name, type, dims */
    int n;
} ls_fields;

ls_status ls_fields_read(const ls_config_tree *, ls_fields *f_p, ls_error *);
/* Writes them as a config has them. */
void ls_fields_write(const ls_fields *, ls_config_tree *);
/* NULL: there is none. */
const ls_field *ls_fields_find(const ls_fields *, const char *name);

#endif
