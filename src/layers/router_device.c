/* router_device.c - see router_device.h. */
#include "layers/router_device.h"

#include <string.h>

enum { ITEMS = 256 };

void ls_router_device_balance(const ls_layer_call *c, const ls_routing *r, float factor,
                              const float *p, const ls_router_notes *notes) {
    LS_LAUNCH(c->compute, LS_KERNEL_router_balance, c->n, 1, {.l = c->T}, {.l = r->experts},
              {.l = r->k}, {.f = factor}, {.f = c->loss_scale}, {.from = p}, {.from = r->expert},
              {.from = c->weights}, {.p = c->losses}, {.p = notes->to}, {.l = notes->stride},
              {.l = notes->dropped}, {.l = notes->routers}, {.l = notes->begins},
              {.l = notes->capacity}, {.p = c->dx[0]});
}

void ls_router_device_sums(const ls_layer_call *c, const ls_routing *r, int64_t T, const float *p,
                           const float *before) {
    LS_LAUNCH(c->compute, LS_KERNEL_router_sums, c->n, 1, {.l = T}, {.l = r->experts}, {.l = r->k},
              {.from = p}, {.from = r->expert}, {.from = before}, {.p = c->y});
}

void ls_router_device_sums_back(const ls_layer_call *c, const ls_routing *r, int64_t T,
                                const float *p) {
    LS_LAUNCH(c->compute, LS_KERNEL_router_sums_dx, ls_device_groups(r->rows, ITEMS), 1,
              {.l = r->rows}, {.l = T}, {.l = r->experts}, {.from = p}, {.from = c->dy},
              {.p = c->dx[0]});
}

void ls_router_device_loss(const ls_layer_call *c, int64_t E, double factor) {
    int64_t bits = 0;
    memcpy(&bits, &factor, sizeof bits);
    LS_LAUNCH(c->compute, LS_KERNEL_router_loss, ls_device_groups(c->n, ITEMS), 1, {.l = c->n},
              {.l = E}, {.l = bits}, {.f = c->loss_scale}, {.from = c->x[0]}, {.from = c->weights},
              {.p = c->losses}, {.p = c->dx[0]});
}

void ls_router_device_chosen(const ls_compute *c, const ls_routing *r, float *y) {
    LS_LAUNCH(c, LS_KERNEL_router_chosen, ls_device_groups(r->rows * r->experts, ITEMS), 1,
              {.l = r->rows}, {.l = r->experts}, {.l = r->k}, {.from = r->expert}, {.p = y});
}

void ls_router_device_loads(const ls_compute *c, const ls_routing *r, bool add, float *sum) {
    LS_LAUNCH(c, LS_KERNEL_router_loads, 1, 1, {.l = r->experts}, {.l = r->rows * r->k},
              {.from = r->first}, {.l = add}, {.p = sum});
}
