/* embedding_device.c - see embedding_device.h. */
#include "layers/embedding_device.h"

#include <assert.h>

enum { ITEMS = 256 };

static int64_t groups_of(int64_t n) { return (n + ITEMS - 1) / ITEMS; }

/* The distance of samples, in tokens. */
static int64_t tokens_row(const ls_layer_call *c) {
    assert(c->sample_nbytes % sizeof(uint32_t) == 0);
    return (int64_t)(c->sample_nbytes / sizeof(uint32_t));
}

static void queue(const ls_layer_call *c, const ls_device_call *call) {
    ls_device_launch(c->compute->device, LS_DEVICE_COMPUTE, call);
}

void ls_embedding_device_forward(const ls_layer *l, const ls_layer_call *c, const float *wte,
                                 const float *wpe) {
    queue(c, &(ls_device_call){.kernel = LS_KERNEL_embedding,
                               .groups_x = c->n * c->T,
                               .groups_y = groups_of(l->C),
                               .args = {{.l = l->C},
                                        {.l = c->T},
                                        {.from = c->samples},
                                        {.l = tokens_row(c)},
                                        {.from = wte},
                                        {.from = wpe},
                                        {.p = c->y}}});
}

static void add_to_tokens(const ls_layer *l, const ls_layer_call *c, float *dwte) {
    queue(c, &(ls_device_call){.kernel = LS_KERNEL_embedding_dwte,
                               .groups_x = c->n * c->T,
                               .groups_y = 1,
                               .args = {{.l = c->n * c->T},
                                        {.l = l->C},
                                        {.l = c->T},
                                        {.from = c->samples},
                                        {.l = tokens_row(c)},
                                        {.from = c->dy},
                                        {.p = dwte}}});
}

static void add_to_positions(const ls_layer *l, const ls_layer_call *c, float *dwpe) {
    queue(c, &(ls_device_call){.kernel = LS_KERNEL_embedding_dwpe,
                               .groups_x = groups_of(c->T * l->C),
                               .groups_y = 1,
                               .args = {{.l = c->n},
                                        {.l = l->C},
                                        {.l = c->T},
                                        {.from = c->dy},
                                        {.l = !c->grads_start},
                                        {.p = dwpe}}});
}

void ls_embedding_device_backward(const ls_layer *l, const ls_layer_call *c, float *dwte,
                                  float *dwpe) {
    if (dwte) add_to_tokens(l, c, dwte);
    if (dwpe) add_to_positions(l, c, dwpe);
}
