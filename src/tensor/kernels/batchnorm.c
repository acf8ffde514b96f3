/* batchnorm.c - batch norm over a set of rows, forward and backward. Ioffe & Szegedy, arXiv
 * 1502.03167.
 *
 * The kernels go through the rows run by run, each time through all channels, so that memory is
 * read in order.
 */
#include "tensor/kernels/channels.h"

/* Rows whose sum is added to that of the rows before them. */
enum { RUN = 64 };

/* Elements of the rows from r on, up to `end`, that belong to the same run. */
static int64_t run_size(const ls_batch_norm_job *b, int64_t r, int64_t end) {
    return (end - r < RUN ? end - r : RUN) * b->C;
}

static void set_zero(const ls_batch_norm_job *b, float *sums) {
    for (int64_t c = b->from; c < b->to; c++) sums[c] = 0;
}

static void divide(const ls_batch_norm_job *b, float *sums) {
    const v16 count = v_set1((float)b->rows);
    for (int64_t c = b->from; c < b->to; c += LS_LANES) {
        int64_t n = b->to - c;
        v_store_n(sums + c, v_div(v_load_n(sums + c, n), count), n);
    }
}

static void add(float *sums, v16 x, int64_t n) { v_store_n(sums, v_add(v_load_n(sums, n), x), n); }

void LS_K(batch_norm_stats)(const ls_batch_norm_job *b) {
    int64_t C = b->C;
    set_zero(b, b->mean);
    set_zero(b, b->variance);
    for (int64_t r = 0; r < b->rows; r += RUN)
        for (int64_t c = b->from; c < b->to; c += LS_LANES) {
            int64_t n = b->to - c, rows = run_size(b, r, b->rows) / C;
            const float *x = b->x + r * C + c;
            add(b->mean + c, n < LS_LANES ? sum_of(x, rows, C, n) : sum_of(x, rows, C, LS_LANES),
                n);
        }
    divide(b, b->mean);
    for (int64_t r = 0; r < b->rows; r += RUN)
        for (int64_t c = b->from; c < b->to; c += LS_LANES) {
            int64_t n = b->to - c, rows = run_size(b, r, b->rows) / C;
            const float *x = b->x + r * C + c;
            v16 mu = v_load_n(b->mean + c, n);
            add(b->variance + c,
                n < LS_LANES ? squares_of(x, rows, C, n, mu) : squares_of(x, rows, C, LS_LANES, mu),
                n);
        }
    divide(b, b->variance);
}

void LS_K(batch_norm_rstd)(const ls_batch_norm_job *b) {
    for (int64_t c = b->from; c < b->to; c += LS_LANES) {
        int64_t n = b->to - c;
        v16 root = v_sqrt(v_add(v_load_n(b->variance + c, n), v_set1(b->eps)));
        v_store_n(b->rstd + c, v_div(v_set1(1.0f), root), n);
    }
}

/* Channels [c, end), or the first 16 of them. */
static channels channels_at(const ls_batch_norm_job *b, int64_t c, int64_t end) {
    int64_t n = end - c;
    return (channels){.mean = v_load_n(b->mean + c, n),
                      .rstd = v_load_n(b->rstd + c, n),
                      .gamma = v_load_n(b->gamma + c, n),
                      .beta = v_load_n(b->beta + c, n),
                      .n = n,
                      .relu = b->relu};
}

void LS_K(batch_norm_apply)(const ls_batch_norm_job *b) {
    int64_t C = b->C;
    for (int64_t r = b->from; r < b->to; r += RUN)
        for (int64_t c = 0; c < C; c += LS_LANES) {
            channels a = channels_at(b, c, C);
            int64_t at = r * C + c, size = run_size(b, r, b->to) - c;
            if (a.n < LS_LANES)
                apply(&a, b->x + at, b->y + at, size, C, a.n);
            else
                apply(&a, b->x + at, b->y + at, size, C, LS_LANES);
        }
}

void LS_K(batch_norm_sums)(const ls_batch_norm_job *b) {
    int64_t C = b->C;
    set_zero(b, b->sum_dyh);
    set_zero(b, b->sum_dy);
    for (int64_t r = 0; r < b->rows; r += RUN)
        for (int64_t c = b->from; c < b->to; c += LS_LANES) {
            channels a = channels_at(b, c, b->to);
            int64_t at = r * C + c, size = run_size(b, r, b->rows) - c;
            back_sums s = a.n < LS_LANES
                              ? back_sums_of(&a, b->x + at, b->dy + at, size, C, a.n)
                              : back_sums_of(&a, b->x + at, b->dy + at, size, C, LS_LANES);
            add(b->sum_dyh + c, s.dyh, a.n);
            add(b->sum_dy + c, s.dy, a.n);
        }
}

/* dx = rstd * (gamma * dy - mean(gamma * dy) - h * mean(gamma * dy * h)). */
void LS_K(batch_norm_dx)(const ls_batch_norm_job *b) {
    int64_t C = b->C;
    const v16 count = v_set1((float)b->rows);
    for (int64_t r = b->from; r < b->to; r += RUN)
        for (int64_t c = 0; c < C; c += LS_LANES) {
            channels a = channels_at(b, c, C);
            int64_t at = r * C + c;
            back_sums means = {v_mul(a.gamma, v_div(v_load_n(b->sum_dyh + c, a.n), count)),
                               v_mul(a.gamma, v_div(v_load_n(b->sum_dy + c, a.n), count))};
            back_rows rows = {b->x + at, b->dy + at, b->dx + at, run_size(b, r, b->to) - c, C};
            if (a.n < LS_LANES)
                apply_dx(&a, &means, &rows, a.n);
            else
                apply_dx(&a, &means, &rows, LS_LANES);
        }
}
