/* label_rows_device.h - the rows of a call that have a label (label_rows.h), found and moved by the
 * call's device, with the bits of the host. In f32.
 *
 * The host knows how many rows there are, from the samples that it has itself
 * (ls_layer_call.host_samples); their numbers are in the device's work memory alone. */
#ifndef LS_LAYERS_LABEL_ROWS_DEVICE_H
#define LS_LAYERS_LABEL_ROWS_DEVICE_H

#include "layers/label_rows.h"

/* The list of rows with a label. */
void ls_label_rows_device_find(const ls_layer *, const ls_layer_call *);
/* h [rows, C] = the block's rows of the call's x; the call's dx has dh in these rows. */
void ls_label_rows_device_gather(const ls_label_rows *, float *h);
void ls_label_rows_device_scatter(const ls_label_rows *);
/* pairs [n]: of each sample the factor of its rows' gradients, and how many they are. */
void ls_label_rows_device_count(const ls_layer *, const ls_layer_call *, float *pairs);
/* Adds the block's losses to those of its samples. start, last: it is the call's first, or last. */
void ls_label_rows_device_sum(const ls_label_rows *, const float *pairs, bool start, bool last);

#endif
