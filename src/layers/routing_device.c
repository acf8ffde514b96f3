/* routing_device.c - see routing_device.h. */
#include "layers/routing_device.h"

enum { GROUP_ROWS = 16 };

/* Marks what each expert drops of each sample. */
static void drop(const ls_compute *c, const ls_routing *r) {
    LS_LAUNCH(c, LS_KERNEL_routing_drop, r->rows / r->sample, r->experts, {.l = r->sample * r->k},
              {.l = r->capacity}, {.from = r->expert}, {.p = r->slot});
}

void ls_routing_device_choose(const ls_compute *c, const float *logits, const float *scores,
                              const ls_routing *r) {
    LS_LAUNCH(c, LS_KERNEL_routing, ls_device_groups(r->rows, GROUP_ROWS), 1, {.l = r->rows},
              {.l = r->experts}, {.l = r->k}, {.l = r->normalized}, {.from = logits},
              {.from = scores}, {.p = r->expert}, {.p = r->weight});
    if (r->capacity) drop(c, r);
    LS_LAUNCH(c, LS_KERNEL_routing_places, r->experts + 1, 1, {.l = r->rows * r->k},
              {.l = r->capacity > 0}, {.from = r->expert}, {.p = r->slot}, {.p = r->choice},
              {.p = r->first});
}

void ls_routing_device_back(const ls_compute *c, const float *logits, const float *dweight,
                            const ls_routing *r, float *dlogits) {
    LS_LAUNCH(c, LS_KERNEL_routing_back, ls_device_groups(r->rows, GROUP_ROWS), 1, {.l = r->rows},
              {.l = r->experts}, {.l = r->k}, {.l = r->normalized}, {.from = logits},
              {.from = dweight}, {.from = r->expert}, {.from = r->weight}, {.p = dlogits});
}

void ls_routing_device_softmax(const ls_compute *c, int64_t rows, int64_t n, const float *x,
                               const float *bias, float *y) {
    LS_LAUNCH(c, LS_KERNEL_softmax, ls_device_groups(rows, GROUP_ROWS), 1, {.l = rows}, {.l = n},
              {.from = x}, {.from = bias}, {.p = y});
}
