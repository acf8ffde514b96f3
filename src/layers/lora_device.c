/* lora_device.c - see lora_device.h. */
#include "layers/lora_device.h"

enum { ITEMS = 256, GROUP_ROWS = 16 }; /* of a group */

void ls_lora_device_scale(const ls_compute *c, int64_t n, float *x, float scale) {
    LS_LAUNCH(c, LS_KERNEL_affine, ls_device_groups(n, ITEMS), 1, {.l = n}, {.from = x},
              {.f = scale}, {.f = 0}, {.p = x});
}

void ls_lora_device_norms(const ls_compute *c, const ls_lora_norms *f) {
    LS_LAUNCH(c, LS_KERNEL_lora_norms, ls_device_groups(f->out, GROUP_ROWS), 1, {.l = f->out},
              {.l = f->in}, {.l = f->rank}, {.f = f->scale}, {.from = f->w}, {.from = f->a},
              {.from = f->b}, {.from = f->magnitude}, {.p = f->inverse}, {.p = f->g});
}

void ls_lora_device_columns(const ls_compute *c, const ls_lora_columns *f) {
    int64_t n = f->rows * f->C;
    LS_LAUNCH(c, LS_KERNEL_columns_multiply, ls_device_groups(n, ITEMS), 1, {.l = n}, {.l = f->C},
              {.from = f->x}, {.from = f->factors}, {.from = f->other}, {.from = f->bias},
              {.p = f->y});
}
