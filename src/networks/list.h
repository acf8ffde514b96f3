/* list.h - the layers of model.layers: a list of names, each with options.
 *
 *     - conv2d: {channels: 32, kernel: 3}       a layer
 *     - relu                                    one without options
 *     - dropout: 0.1                            one with its only option
 *     - residual: [group_norm, relu, conv2d: {channels: 32, kernel: 3}]      x + the layers of x
 *     - residual: {layers: [...], shortcut: [...]}         the shortcut's layers of x + ...
 *     - repeat: {times: 3, layers: [...]}       names: repeat.0.conv2d, ...
 */
#ifndef LS_NETWORKS_LIST_H
#define LS_NETWORKS_LIST_H

#include "model/builder.h"
#include "networks/options.h"

/* The value of the last layer. */
ls_value *ls_list_build(const ls_list_at *, const ls_yaml_node *list, ls_value *x);

#endif
