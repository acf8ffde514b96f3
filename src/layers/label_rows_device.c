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
    ls_compute_launch(c->compute, &(ls_device_call){.kernel = LS_KERNEL_label_rows,
                                                    .groups_x = ls_device_groups(rows, ITEMS),
                                                    .groups_y = 1,
                                                    .args = {{.l = rows},
                                                             {.l = c->T},
                                                             {.from = labels_of(l, c)},
                                                             {.l = labels_row(c)},
                                                             {.p = ls_label_rows_list(c)}}});
}

static void move(const ls_label_rows *b, ls_device_kernel kernel, const void *from, void *to) {
    int64_t C = b->l->C;
    ls_compute_launch(
        b->c->compute,
        &(ls_device_call){.kernel = kernel,
                          .groups_x = b->v.rows,
                          .groups_y = ls_device_groups(C, ITEMS),
                          .args = {{.l = C}, {.from = b->row}, {.from = from}, {.p = to}}});
}

void ls_label_rows_device_gather(const ls_label_rows *b, float *h) {
    move(b, LS_KERNEL_rows_gather, b->c->x[0], h);
}

void ls_label_rows_device_scatter(const ls_label_rows *b) {
    move(b, LS_KERNEL_rows_scatter, b->v.dh, b->c->dx[0]);
}

void ls_label_rows_device_count(const ls_layer *l, const ls_layer_call *c, float *pairs) {
    ls_compute_launch(c->compute, &(ls_device_call){.kernel = LS_KERNEL_label_counts,
                                                    .groups_x = c->n,
                                                    .groups_y = 1,
                                                    .args = {{.l = c->T},
                                                             {.from = labels_of(l, c)},
                                                             {.l = labels_row(c)},
                                                             {.from = c->weights},
                                                             {.f = c->loss_scale},
                                                             {.p = pairs}}});
}

void ls_label_rows_device_sum(const ls_label_rows *b, const float *pairs, bool start, bool last) {
    ls_compute_launch(b->c->compute, &(ls_device_call){.kernel = LS_KERNEL_label_losses,
                                                       .groups_x = b->c->n,
                                                       .groups_y = 1,
                                                       .args = {{.l = b->v.rows},
                                                                {.l = b->c->T},
                                                                {.from = b->row},
                                                                {.from = b->v.losses},
                                                                {.from = pairs},
                                                                {.l = start},
                                                                {.l = last},
                                                                {.p = b->c->losses}}});
}
