/* row_device.c - see row_device.h. */
#include "model/row_device.h"

enum { GAMMA, BETA };
enum { ITEMS = 256, NORM_ROWS = 16 }; /* of a group */

void ls_row_device_norm(const ls_layer *l, const ls_layer_call *c, float *h, float *mean,
                        float *rstd) {
    int64_t rows = c->n * c->T;
    LS_LAUNCH(c->compute, LS_KERNEL_layernorm, ls_device_groups(rows, NORM_ROWS), 1, {.l = rows},
              {.l = l->C}, {.from = c->x[0]}, {.from = ls_layer_param(l, c, GAMMA)},
              {.from = ls_layer_param(l, c, BETA)}, {.p = h}, {.p = mean}, {.p = rstd});
}

static void norm_dparams(const ls_layer *l, const ls_layer_call *c, const float *mean,
                         const float *rstd, const float *dh) {
    LS_LAUNCH(c->compute, LS_KERNEL_layernorm_dparams, ls_device_groups(l->C, ITEMS), 1,
              {.l = c->n * c->T}, {.l = l->C}, {.from = dh}, {.from = c->x[0]}, {.from = mean},
              {.from = rstd}, {.l = !c->grads_start}, {.p = ls_layer_grad(l, c, GAMMA)},
              {.p = ls_layer_grad(l, c, BETA)});
}

static void norm_dx(const ls_layer *l, const ls_layer_call *c, const float *mean, const float *rstd,
                    const float *dh, const float *residual) {
    int64_t rows = c->n * c->T;
    LS_LAUNCH(c->compute, LS_KERNEL_layernorm_dx, ls_device_groups(rows, NORM_ROWS), 1, {.l = rows},
              {.l = l->C}, {.from = dh}, {.from = c->x[0]}, {.from = ls_layer_param(l, c, GAMMA)},
              {.from = mean}, {.from = rstd}, {.from = residual}, {.p = c->dx[0]});
}

void ls_row_device_norm_back(const ls_layer *l, const ls_layer_call *c, const float *mean,
                             const float *rstd, const float *dh, const float *residual) {
    if (ls_layer_trains(l, GAMMA) || ls_layer_trains(l, BETA)) norm_dparams(l, c, mean, rstd, dh);
    if (c->dx[0]) norm_dx(l, c, mean, rstd, dh, residual);
}

void ls_row_device_gelu(const ls_compute *c, int64_t n, const float *x, float *y) {
    LS_LAUNCH(c, LS_KERNEL_gelu, ls_device_groups(n, ITEMS), 1, {.l = n}, {.from = x}, {.p = y});
}

void ls_row_device_gelu_back(const ls_compute *c, int64_t n, const float *x, float *d, float *y) {
    LS_LAUNCH(c, LS_KERNEL_gelu_back, ls_device_groups(n, ITEMS), 1, {.l = n}, {.from = x},
              {.p = d}, {.p = y});
}

void ls_row_device_add(const ls_compute *c, int64_t n, const float *x, const float *a, float *y) {
    LS_LAUNCH(c, LS_KERNEL_add, ls_device_groups(n, ITEMS), 1, {.l = n}, {.from = x}, {.from = a},
              {.p = y});
}

void ls_row_device_column_sum(const ls_compute *c, int64_t rows, ls_matrix x, bool adds,
                              float *sum) {
    int64_t columns = x.rs; /* rows are as far apart as they are long */
    LS_LAUNCH(c, LS_KERNEL_column_sum, ls_device_groups(columns, ITEMS), 1, {.l = rows},
              {.l = columns}, {.from = x.p}, {.l = x.rs}, {.l = adds}, {.p = sum});
}
