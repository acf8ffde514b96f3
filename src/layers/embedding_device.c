/* embedding_device.c - see embedding_device.h. */
#include "layers/embedding_device.h"

enum { ITEMS = 256 };

void ls_embedding_device_forward(const ls_layer *l, const ls_layer_call *c, const void *ids,
                                 const float *wte, const float *wpe) {
    ls_compute_launch(c->compute, &(ls_device_call){.kernel = LS_KERNEL_embedding,
                                                    .groups_x = c->n * c->T,
                                                    .groups_y = ls_device_groups(l->C, ITEMS),
                                                    .args = {{.l = l->C},
                                                             {.l = c->T},
                                                             {.from = ids},
                                                             {.l = ls_layer_tokens_row(c)},
                                                             {.from = wte},
                                                             {.from = wpe},
                                                             {.p = c->y}}});
}

static void add_to_rows(const ls_layer *l, const ls_layer_call *c, const void *ids, const float *dy,
                        float *dwte) {
    ls_compute_launch(c->compute, &(ls_device_call){.kernel = LS_KERNEL_embedding_dwte,
                                                    .groups_x = c->n * c->T,
                                                    .groups_y = 1,
                                                    .args = {{.l = c->n * c->T},
                                                             {.l = l->C},
                                                             {.l = c->T},
                                                             {.from = ids},
                                                             {.l = ls_layer_tokens_row(c)},
                                                             {.from = dy},
                                                             {.p = dwte}}});
}

static void add_to_positions(const ls_layer *l, const ls_layer_call *c, const float *dy,
                             float *dwpe) {
    ls_compute_launch(c->compute,
                      &(ls_device_call){.kernel = LS_KERNEL_embedding_dwpe,
                                        .groups_x = ls_device_groups(c->T * l->C, ITEMS),
                                        .groups_y = 1,
                                        .args = {{.l = c->n},
                                                 {.l = l->C},
                                                 {.l = c->T},
                                                 {.from = dy},
                                                 {.l = !c->grads_start},
                                                 {.p = dwpe}}});
}

void ls_embedding_device_backward(const ls_layer *l, const ls_layer_call *c, const void *ids,
                                  const float *dy, float *dwte, float *dwpe) {
    if (dwte) add_to_rows(l, c, ids, dy, dwte);
    if (dwpe) add_to_positions(l, c, dy, dwpe);
}
