/* heads_device.h - attention by heads (heads.h) on a device: queued there, with the bits of the
 * host.
 *
 * All pointers of ls_heads are addresses of the device. f32 alone.
 *
 * A group of the kernels has a block of 64 queries, the CPU's, and goes over tiles of 64 keys;
 * scores are in registers, and are computed again for each sum that needs them. No memory is needed
 * but that of the operands: sums over rows of probabilities and gradients wait in dq.
 */
#ifndef LS_LAYERS_HEADS_DEVICE_H
#define LS_LAYERS_HEADS_DEVICE_H

#include "layers/heads.h"

void ls_heads_device_forward(const ls_heads *);
void ls_heads_device_backward(const ls_heads *);

/* ls_heads_continue() of one text, or of several with past.rows: keys and values are in pages as
 * cores have them (kept.h). Up to four rows of a text are attended one by one, more in blocks of
 * 64. */
enum { LS_HEADS_FEW = 4 };
void ls_heads_device_continue(const ls_heads *);

#endif
