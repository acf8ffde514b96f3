/* layer_groups.h - calls the f32 kernels of vision's and tables' layers, in groups: see
 * groups.h. */
#ifndef LS_TEST_LAYER_GROUPS_H
#define LS_TEST_LAYER_GROUPS_H

#include "tensor/groups.h"

/* Outputs 2i and 2i + 1: activation i and its gradient. */
static inline void do_activations(const ls_kernels *k, int64_t n, values *v) {
    for (int i = 0; i < LS_NACTIVATIONS; i++) {
        float *y = v->out[2 * i], *dx = v->out[2 * i + 1];
        k->activation[i](n, v->in[0], y);
        start_from(v, 2 * i + 1, 1, n);
        k->activation_dx[i](n, i == LS_SILU ? v->in[0] : y, dx, dx); /* in place of dy */
    }
}

/* Outputs: the gated values, in place of x too; their gradients dgate, dx; pairs turned, and turned
 * back in place. */
static inline void do_gates(const ls_kernels *k, int64_t n, values *v) {
    const float *gate = v->in[0], *x = v->in[1], *turn = v->in[3];
    k->silu_gate(n, gate, x, v->out[0]);
    start_from(v, 1, 1, n);
    k->silu_gate(n, gate, v->out[1], v->out[1]);
    start_from(v, 3, 2, n);
    k->silu_gate_dx(n, gate, x, v->out[3], v->out[2], v->out[3]); /* in place of dy */
    int64_t D = n / 2 * 2;
    k->rope(ROWS, D, turn, false, x, v->out[4]);
    start_from(v, 5, 1, ROWS * D);
    k->rope(ROWS, D, turn, true, v->out[5], v->out[5]);
}

static const ls_dropout_place DROPOUT = {.seed = 3, .step = 5, .sample = 7, .layer = 11, .p = 0.3f};
enum { CHANNELS = 3 };

/* Dropout from the middle of a block on. */
static inline void do_elements_f32(const ls_kernels *k, int64_t n, values *v) {
    uint8_t bytes[CHANNELS * MAX_N];
    for (int64_t i = 0; i < CHANNELS * n; i++) bytes[i] = (uint8_t)(i * 37);
    k->multiply(n, v->in[0], v->in[1], v->out[0]);
    start_from(v, 1, 0, n);
    k->multiply(n, v->out[1], v->out[1], v->out[1]);
    k->affine(n, v->in[0], 0.3f, -7.0f, v->out[2]);
    start_from(v, 3, 0, n);
    k->affine(n, v->out[3], 1e3f, 0.1f, v->out[3]);
    k->bytes_affine(n, CHANNELS, bytes, v->in[1], v->in[2], v->out[4]);
    k->dropout(&DROPOUT, 29, n, v->in[0], v->out[5]);
    start_from(v, 6, 0, n);
    k->dropout(&DROPOUT, 29, n, v->out[6], v->out[6]);
}

/* One sample of 3 pixels and n channels, or two of n pixels and 2 channels. */
static inline ls_group_norm_job group_norm_of(int64_t n, bool tall, values *v) {
    return (ls_group_norm_job){.samples = tall ? 2 : 1,
                               .pixels = tall ? n : 3,
                               .C = tall ? 2 : n,
                               .groups = tall || n % 2 ? 1
                                         : n % 3       ? 2
                                                       : 3,
                               .eps = 1e-5f,
                               .gamma = v->in[1],
                               .beta = v->in[2],
                               .x = v->in[0],
                               .y = v->out[0],
                               .mean = v->out[1],
                               .rstd = v->out[2],
                               .dy = v->in[3],
                               .dx = v->out[3],
                               .sums = v->out[4]};
}

static inline void do_group_norm(const ls_kernels *k, int64_t n, values *v, bool tall) {
    if (n == 0) return; /* a group has at least a pixel */
    ls_group_norm_job g = group_norm_of(n, tall, v);
    k->norm.group_norm(&g);
    k->norm.group_norm_dx(&g);
    start_from(v, 5, 3, g.samples * g.pixels * g.C);
    g.dy = g.dx = v->out[5]; /* in place */
    k->norm.group_norm_dx(&g);
}
static inline void do_group_norm_wide(const ls_kernels *k, int64_t n, values *v) {
    do_group_norm(k, n, v, false);
}
static inline void do_group_norm_tall(const ls_kernels *k, int64_t n, values *v) {
    do_group_norm(k, n, v, true);
}

static inline ls_rms_norm_job rms_norm_of(int64_t n, values *v) {
    return (ls_rms_norm_job){.rows = n ? ROWS : 0,
                             .C = n,
                             .from = n / 3,
                             .to = n,
                             .eps = 1e-6f,
                             .gamma = v->in[1],
                             .x = v->in[0],
                             .y = v->out[0],
                             .rstd = v->out[1],
                             .dy = v->in[3],
                             .dx = v->out[2],
                             .dgamma = v->out[4]};
}

static inline void do_rms_norm(const ls_kernels *k, int64_t n, values *v) {
    ls_rms_norm_job m = rms_norm_of(n, v);
    k->norm.rms_norm(&m);
    k->norm.rms_norm_dx(&m);
    start_from(v, 4, 2, n);
    k->norm.rms_norm_dparams(&m);
    start_from(v, 3, 2, m.rows * n);
    m.residual = m.dx = v->out[3]; /* in place of the residual */
    k->norm.rms_norm_dx(&m);
}

/* 3 rows of n channels, or n rows of 3 channels, with ReLU. */
static inline ls_batch_norm_job batch_norm_of(int64_t n, bool tall, values *v) {
    return (ls_batch_norm_job){.rows = tall ? n : ROWS,
                               .C = tall ? ROWS : n,
                               .eps = 1e-5f,
                               .relu = tall,
                               .gamma = v->in[1],
                               .beta = v->in[2],
                               .x = v->in[0],
                               .y = v->out[0],
                               .mean = v->out[1],
                               .variance = v->out[2],
                               .rstd = v->out[3],
                               .dy = v->in[3],
                               .dx = v->out[6],
                               .sum_dyh = v->out[4],
                               .sum_dy = v->out[5]};
}

/* In two ranges of columns and two of rows. */
static inline void do_batch_norm(const ls_kernels *k, int64_t n, values *v, bool tall) {
    if (n == 0) return; /* no row, or no channel */
    ls_batch_norm_job b = batch_norm_of(n, tall, v);
    for (int part = 0; part < 2; part++) {
        b.from = part ? b.C / 3 : 0, b.to = part ? b.C : b.C / 3;
        k->norm.batch_norm_stats(&b);
        k->norm.batch_norm_rstd(&b);
        k->norm.batch_norm_sums(&b);
    }
    for (int part = 0; part < 2; part++) {
        b.from = part ? b.rows / 3 : 0, b.to = part ? b.rows : b.rows / 3;
        k->norm.batch_norm_apply(&b);
        k->norm.batch_norm_dx(&b);
    }
    start_from(v, 7, 3, b.rows * b.C);
    b.dy = b.dx = v->out[7], b.from = 0; /* in place */
    k->norm.batch_norm_dx(&b);
}
static inline void do_batch_norm_wide(const ls_kernels *k, int64_t n, values *v) {
    do_batch_norm(k, n, v, false);
}
static inline void do_batch_norm_tall(const ls_kernels *k, int64_t n, values *v) {
    do_batch_norm(k, n, v, true);
}

/* An image of n channels, as large as fits: windows 3 x 3 at every other pixel, with padding, or
 * windows 2 x 3 at every pixel, with padding at the sides that counts. */
static inline ls_pooling pooling_of(int64_t n, bool square) {
    int64_t side = 8;
    while (side * side * n > CELLS) side--;
    ls_pooling p = {.samples = 1,
                    .C = n,
                    .in = {side, side},
                    .window = {square ? 3 : 2, 3},
                    .stride = {square ? 2 : 1, square ? 2 : 1},
                    .padding = {square ? 1 : 0, 1},
                    .count_padding = !square};
    for (int d = 0; d < 2; d++)
        p.out[d] = ls_pooling_out(p.in[d], p.window[d], p.stride[d], p.padding[d]);
    return p;
}

/* Places are copied to floats. */
static inline void do_pooling(const ls_kernels *k, int64_t n, values *v, bool square) {
    static uint16_t place[CELLS];
    ls_pooling p = pooling_of(n, square);
    int64_t pixels = p.in[0] * p.in[1];
    k->pooling.max(&p, v->in[0], v->out[0], place);
    for (int64_t i = 0; i < p.out[0] * p.out[1] * n; i++) v->out[1][i] = (float)place[i];
    k->pooling.max_dx(&p, v->in[1], place, v->out[2]);
    k->pooling.average(&p, v->in[0], v->out[3]);
    k->pooling.average_dx(&p, v->in[1], v->out[4]);
    k->pooling.mean(1, pixels, n, v->in[0], v->out[5]);
    k->pooling.mean_dx(1, pixels, n, v->in[1], v->out[6]);
}
static inline void do_pooling_square(const ls_kernels *k, int64_t n, values *v) {
    do_pooling(k, n, v, true);
}
static inline void do_pooling_oblong(const ls_kernels *k, int64_t n, values *v) {
    do_pooling(k, n, v, false);
}

static const float SMOOTHING = 0.1f, LOSS_SCALE = 0.125f;

/* Output 1: the losses' doubles, a row of ROWS for each loss and one for cross-entropy without
 * smoothing. The second row has no label. */
static inline void do_losses(const ls_kernels *k, int64_t n, values *v) {
    if (n == 0) return; /* there must be a label */
    int32_t label[ROWS] = {(int32_t)n / 2, -1, (int32_t)n - 1};
    double losses[4][ROWS];
    k->softmax(ROWS, n, v->in[0], v->out[0]);
    ls_loss_rows l = {.rows = ROWS,
                      .n = n,
                      .x = v->in[0],
                      .label = label,
                      .stat = v->out[2],
                      .smoothing = SMOOTHING,
                      .target = v->in[1],
                      .scale = LOSS_SCALE};
    for (int i = 0; i < LS_NLOSSES; i++) {
        l.losses = losses[i];
        l.dx = v->out[i ? 4 + i : 3];
        k->loss[i](&l);
        k->loss_dx[i](&l);
    }
    start_from(v, 4, 0, ROWS * n);
    l.smoothing = 0, l.weight = v->in[2], l.losses = losses[3];
    l.x = l.dx = v->out[4]; /* in place */
    k->loss[LS_LOSS_CROSS_ENTROPY](&l);
    k->loss_dx[LS_LOSS_CROSS_ENTROPY](&l);
    memcpy(v->out[1], losses, sizeof losses);
}

/* ---- codecs of compressed sums ---- */

/* Passes over vectors; the indexes that `above` finds are whole numbers in output 6. */
static inline void do_compress_passes(const ls_kernels *k, int64_t n, values *v) {
    const ls_compress_kernels *c = &k->compress;
    uint32_t index[MAX_N + 15];
    c->add_error(n, 0.75f, v->in[0], v->in[1], v->out[0]);
    c->add_error(n, 1.0f, NULL, v->in[1], v->out[1]);
    c->subtract(n, v->in[0], v->in[1], v->out[2]);
    v->out[3][0] = c->abs_max(n, v->in[0]);
    v->out[3][1] = c->abs_sum(n, v->in[0]);
    v->out[4][0] = c->dot(n, v->in[0], v->in[1]);
    start_from(v, 5, 1, n);
    c->subtract_scaled(n, 0.3f, v->in[0], v->out[5]);
    for (int t = 0; t < 3; t++) {
        int64_t found = c->above(n, v->in[2], (float)t - 0.5f, 5, index, t == 2 ? n / 3 : n);
        for (int64_t i = 0; i < found; i++) v->out[6][t * MAX_N + i] = (float)index[i];
        v->out[7][t] = (float)found;
    }
}

/* Packed and unpacked; each packed form is copied as it is, as whole numbers. */
static inline void do_compress_packing(const ls_kernels *k, int64_t n, values *v) {
    const ls_compress_kernels *c = &k->compress;
    uint32_t words[MAX_N / LS_PACK + 1] = {0};
    int8_t bytes[MAX_N] = {0};
    uint8_t halves[MAX_N + LS_PACK] = {0};
    float inverse = 100.0f / (1.0f + c->abs_max(n, v->in[3]));
    int64_t groups = (n + LS_PACK - 1) / LS_PACK;
    c->pack_signs(n, v->in[0], words);
    c->unpack_signs(n, words, 1.5f, v->out[0]);
    for (int64_t i = 0; i < groups; i++) v->out[1][i] = (float)(words[i] >> 12);
    c->pack_i8(n, v->in[3], inverse, bytes);
    for (int64_t i = 0; i < n; i++) v->out[2][i] = bytes[i];
    c->unpack_i8(n, bytes, 0.37f, v->out[3]);
    c->pack_i4(n, v->in[3], inverse * 0.06f, halves);
    for (int64_t i = 0; i < groups * LS_PACK / 2; i++) v->out[4][i] = halves[i];
    c->unpack_i4(n, halves, 0.37f, v->out[5]);
}

#endif
