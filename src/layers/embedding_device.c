/* embedding_device.c - see embedding_device.h. */
#include "layers/embedding_device.h"

enum { ITEMS = 256 };

void ls_embedding_device_forward(const ls_layer *l, const ls_layer_call *c,
                                 const ls_device_ids *ids, const float *wte, const float *wpe) {
    LS_LAUNCH(c->compute, LS_KERNEL_embedding, c->n * c->T, ls_device_groups(l->C, ITEMS),
              {.l = l->C}, {.l = c->T}, {.from = ids->p}, {.l = ls_layer_tokens_row(c)},
              {.l = ids->first}, {.l = l->V}, {.from = wte}, {.from = wpe},
              {.from = c->past.rows ? c->past.rows->places : NULL}, {.p = c->y});
}

static void add_to_rows(const ls_layer *l, const ls_layer_call *c, const ls_device_ids *ids,
                        const float *dy, float *dwte) {
    LS_LAUNCH(c->compute, LS_KERNEL_embedding_dwte, c->n * c->T, 1, {.l = c->n * c->T}, {.l = l->C},
              {.l = c->T}, {.from = ids->p}, {.l = ls_layer_tokens_row(c)}, {.l = ids->first},
              {.l = l->V}, {.from = dy}, {.p = dwte});
}

static void add_to_positions(const ls_layer *l, const ls_layer_call *c, const float *dy,
                             float *dwpe) {
    LS_LAUNCH(c->compute, LS_KERNEL_embedding_dwpe, ls_device_groups(c->T * l->C, ITEMS), 1,
              {.l = c->n}, {.l = l->C}, {.l = c->T}, {.from = dy}, {.l = !c->grads_start},
              {.p = dwpe});
}

void ls_embedding_device_backward(const ls_layer *l, const ls_layer_call *c,
                                  const ls_device_ids *ids, const float *dy, float *dwte,
                                  float *dwpe) {
    if (dwte) add_to_rows(l, c, ids, dy, dwte);
    if (dwpe) add_to_positions(l, c, dy, dwpe);
}
