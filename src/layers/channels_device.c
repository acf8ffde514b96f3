/* channels_device.c - see channels_device.h. */
#include "layers/channels_device.h"

enum { ITEMS = 256, CHANNELS = 64, JOINED = 16, PART = 4096 }; /* of a group */

static int64_t blocks_of(const ls_channels *n) {
    return n->samples * ls_device_groups(n->C, CHANNELS);
}

void ls_channels_sum(const ls_channels *n, const float *mean, float count, float *sums,
                     int64_t sums_row) {
    LS_LAUNCH(n->compute, LS_KERNEL_norm_sums, blocks_of(n), 1, {.l = n->rows}, {.l = n->C},
              {.l = n->run}, {.l = n->size}, {.f = count}, {.from = n->x}, {.from = mean},
              {.p = sums}, {.l = sums_row});
}

void ls_channels_join(const ls_channels *n, const float *sums, int64_t sums_row, float count,
                      bool root, float *y) {
    int64_t parts = n->C / n->size, rows = n->samples * parts;
    LS_LAUNCH(n->compute, LS_KERNEL_norm_join, ls_device_groups(rows, JOINED), 1, {.l = rows},
              {.l = parts}, {.l = n->size}, {.f = count}, {.l = root}, {.f = n->eps},
              {.from = sums}, {.l = sums_row}, {.p = y});
}

void ls_channels_apply(const ls_channels *n) {
    int64_t count = n->samples * n->rows * n->C;
    LS_LAUNCH(n->compute, LS_KERNEL_norm_apply, ls_device_groups(count, ITEMS), 1, {.l = count},
              {.l = n->rows}, {.l = n->C}, {.l = n->size}, {.l = n->relu}, {.from = n->x},
              {.from = n->mean}, {.from = n->rstd}, {.from = n->gamma}, {.from = n->beta},
              {.p = n->y});
}

void ls_channels_sum_back(const ls_channels *n) {
    LS_LAUNCH(n->compute, LS_KERNEL_norm_sums_back, blocks_of(n), 1, {.l = n->rows}, {.l = n->C},
              {.l = n->run}, {.l = n->size}, {.l = n->relu}, {.from = n->x}, {.from = n->dy},
              {.from = n->mean}, {.from = n->rstd}, {.from = n->gamma}, {.from = n->beta},
              {.p = n->sums});
}

void ls_channels_group_dx(const ls_channels *n) {
    int64_t means = n->samples * (n->C / n->size);
    LS_LAUNCH(n->compute, LS_KERNEL_group_norm_dx,
              means * ls_device_groups(n->rows * n->size, PART), 1, {.l = n->rows}, {.l = n->C},
              {.l = n->size}, {.f = (float)n->size * (float)n->rows}, {.l = n->relu},
              {.from = n->x}, {.from = n->dy}, {.from = n->mean}, {.from = n->rstd},
              {.from = n->gamma}, {.from = n->beta}, {.from = n->sums}, {.p = n->dx});
}

void ls_channels_batch_dx(const ls_channels *n) {
    int64_t count = n->rows * n->C;
    LS_LAUNCH(n->compute, LS_KERNEL_batch_norm_dx, ls_device_groups(count, ITEMS), 1, {.l = count},
              {.l = n->C}, {.f = (float)n->rows}, {.l = n->relu}, {.from = n->x}, {.from = n->dy},
              {.from = n->mean}, {.from = n->rstd}, {.from = n->gamma}, {.from = n->beta},
              {.from = n->sums}, {.p = n->dx});
}
