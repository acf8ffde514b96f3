/* label_rows_device.c - see label_rows_device.h. */
#include "layers/label_rows_device.h"

enum { ITEMS = 256 };

static const void *labels_of(const ls_layer *l, const ls_layer_call *c) {
    return ls_layer_field(l, c, 0, 0);
}

static int64_t labels_row(const ls_layer_call *c) {
    return (int64_t)(c->sample_nbytes / sizeof(int32_t));
}

void ls_label_rows_device_find(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T;
    LS_LAUNCH(c->compute, LS_KERNEL_label_rows, ls_device_groups(rows, ITEMS), 1, {.l = rows},
              {.l = c->T}, {.from = labels_of(l, c)}, {.l = labels_row(c)},
              {.p = ls_label_rows_list(c)});
}

static void move(const ls_label_rows *b, ls_device_kernel kernel, const void *from, void *to) {
    int64_t C = b->l->C;
    LS_LAUNCH(b->c->compute, kernel, b->v.rows, ls_device_groups(C, ITEMS), {.l = C},
              {.from = b->row}, {.from = from}, {.p = to});
}

void ls_label_rows_device_gather(const ls_label_rows *b, float *h) {
    move(b, LS_KERNEL_rows_gather, b->c->x[0], h);
}

void ls_label_rows_device_scatter(const ls_label_rows *b) {
    move(b, LS_KERNEL_rows_scatter, b->v.dh, b->c->dx[0]);
}

void ls_label_rows_device_count(const ls_layer *l, const ls_layer_call *c, float *pairs) {
    int field = 0;
    int64_t all = ls_labels_all(l, &field);
    LS_LAUNCH(c->compute, LS_KERNEL_label_counts, c->n, 1, {.l = all},
              {.from = ls_layer_field(l, c, field, 0)}, {.l = labels_row(c)}, {.from = c->weights},
              {.f = c->loss_scale}, {.p = pairs});
}

void ls_label_rows_device_sum(const ls_label_rows *b, const float *pairs, bool start, bool last) {
    LS_LAUNCH(b->c->compute, LS_KERNEL_label_losses, b->c->n, 1, {.l = b->v.rows}, {.l = b->c->T},
              {.from = b->row}, {.from = b->v.losses}, {.from = pairs}, {.l = start}, {.l = last},
              {.p = b->c->losses});
}
