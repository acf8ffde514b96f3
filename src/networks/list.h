/* list.h - the layers of model.layers: a list of names, each with options.
 *
 *     - conv2d: {channels: 32, kernel: 3}       a layer
 *     - relu                                    one without options
 *     - dropout: 0.1                            one with its only option
 *     - linear: {out: 16, name: a}              its value has a name
 *     - linear: {out: 16, of: x, name: b}       of a named value: a field, or a layer before
 *     - concat: [a, b]                          of several
 *     - residual: [group_norm, relu, conv2d: {channels: 32, kernel: 3}]      x + the layers of x
 *     - residual: {layers: [...], shortcut: [...]}         the shortcut's layers of x + ...
 *     - repeat: {times: 3, layers: [...]}       names: repeat.0.conv2d, ...
 */
#ifndef LS_NETWORKS_LIST_H
#define LS_NETWORKS_LIST_H

#include "networks/layer_options.h"

/* The value of the last layer. x: what the first layer reads unless it names a value; NULL: it must
 * name one. */
ls_value *ls_list_build(const ls_list_at *, const ls_yaml_node *list, ls_value *x);

/* Calls the function for each name of a value that a layer of the list reads, in the list or
 * outside of it. is_ids: the layer takes whole numbers. */
typedef void ls_list_name(void *arg, const char *name, bool is_ids);
void ls_list_names(const ls_yaml_node *list, ls_list_name *, void *arg);
/* Does the first layer read what nothing in the list names? is_ids_p: it takes whole numbers. */
bool ls_list_has_input(const ls_yaml_node *list, bool *is_ids_p);

#endif
