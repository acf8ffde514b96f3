/* routing_device.h - the experts of rows (routing.h) on a device: queued there, with the bits of
 * the host. */
#ifndef LS_LAYERS_ROUTING_DEVICE_H
#define LS_LAYERS_ROUTING_DEVICE_H

#include "layers/routing.h"

void ls_routing_device_choose(const ls_compute *, const float *logits, const float *scores,
                              const ls_routing *);
void ls_routing_device_back(const ls_compute *, const float *logits, const float *dweight,
                            const ls_routing *, float *dlogits);

/* y [rows, n] = the softmax of each row of x, plus bias [n] (NULL: 0). */
void ls_routing_device_softmax(const ls_compute *, int64_t rows, int64_t n, const float *x,
                               const float *bias, float *y);

#endif
