/* pooling_test.c - maxima and means of windows, forward and backward, against loops over
 * windows. */
#include "tensor/pooling.h"

#include "tensor/check_group.h"
#include "tensor/layer_groups.h"

/* Adds what output pixel o of one channel contributes: the references scatter, the kernels
 * gather. */
typedef struct reference {
    double max, sum;
    int64_t first, count; /* the place of the maximum, and the pixels inside */
    int64_t at;           /* the input pixel of the maximum */
} reference;

static reference window_at(const ls_pooling *p, const float *x, int64_t oy, int64_t ox, int64_t c) {
    reference w = {.max = -INFINITY};
    for (int64_t r = 0; r < p->window[0]; r++)
        for (int64_t s = 0; s < p->window[1]; s++) {
            int64_t iy = oy * p->stride[0] + r - p->padding[0];
            int64_t ix = ox * p->stride[1] + s - p->padding[1];
            if (iy < 0 || iy >= p->in[0] || ix < 0 || ix >= p->in[1]) continue;
            double value = (double)x[(iy * p->in[1] + ix) * p->C + c];
            w.sum += value;
            w.count++;
            if (value <= w.max) continue;
            w.max = value, w.first = r * p->window[1] + s, w.at = iy * p->in[1] + ix;
        }
    if (p->count_padding) w.count = p->window[0] * p->window[1];
    return w;
}

static void add_average(const ls_pooling *p, int64_t oy, int64_t ox, double add, double *dx) {
    for (int64_t r = 0; r < p->window[0]; r++)
        for (int64_t s = 0; s < p->window[1]; s++) {
            int64_t iy = oy * p->stride[0] + r - p->padding[0];
            int64_t ix = ox * p->stride[1] + s - p->padding[1];
            if (iy >= 0 && iy < p->in[0] && ix >= 0 && ix < p->in[1]) dx[iy * p->in[1] + ix] += add;
        }
}

static void check_channel(const ls_pooling *p, const values *v, int64_t c) {
    double max_dx[CELLS] = {0}, average_dx[CELLS] = {0}, mean = 0;
    int64_t C = p->C, pixels = p->in[0] * p->in[1];
    for (int64_t o = 0; o < p->out[0] * p->out[1]; o++) {
        int64_t oy = o / p->out[1], ox = o % p->out[1];
        double dy = (double)v->in[1][o * C + c];
        reference w = window_at(p, v->in[0], oy, ox, c);
        assert_true((double)v->out[0][o * C + c] == w.max);
        assert_true(v->out[1][o * C + c] == (float)w.first);
        assert_close(v->out[3][o * C + c], w.sum / (double)w.count, 1e-6, "average", C, o);
        max_dx[w.at] += dy;
        add_average(p, oy, ox, dy / (double)w.count, average_dx);
    }
    for (int64_t i = 0; i < pixels; i++) {
        assert_close(v->out[2][i * C + c], max_dx[i], 4e-6, "max dx", C, i);
        assert_close(v->out[4][i * C + c], average_dx[i], 4e-6, "average dx", C, i);
        double dy = (double)v->in[1][c] / (double)pixels;
        assert_close(v->out[6][i * C + c], dy, 1e-7 * fabs(dy), "mean dx", C, i);
        mean += (double)v->in[0][i * C + c] / (double)pixels;
    }
    assert_close(v->out[5][c], mean, 2e-6, "mean", C, c);
}

static void check_pooling(int64_t n, const values *v, bool square) {
    ls_pooling p = pooling_of(n, square);
    for (int64_t c = 0; c < n; c++) check_channel(&p, v, c);
    int64_t in = p.in[0] * p.in[1] * n, out = p.out[0] * p.out[1] * n;
    const int64_t written[] = {out, out, in, out, in, n, in};
    for (int i = 0; i < 7; i++) assert_untouched(v, i, written[i]);
}
static void check_pooling_square(int64_t n, const values *v) { check_pooling(n, v, true); }
static void check_pooling_oblong(int64_t n, const values *v) { check_pooling(n, v, false); }

static void test_pooling(void **state) {
    (void)state;
    each(do_pooling_square, check_pooling_square);
    each(do_pooling_oblong, check_pooling_oblong);
}

/* All windows, strides and paddings of small images, where some pixels are in no window. */
static void test_shapes(void **state) {
    (void)state;
    static values v;
    static uint16_t place[CELLS];
    const ls_kernels *k = NULL;
    ls_error e;
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    for (int i = 0; i < 5 * 4 * 3 * 6; i++) {
        ls_pooling p = {.samples = 1, .C = 2, .in = {5, 1 + i / 60}, .count_padding = i & 1};
        for (int d = 0; d < 2; d++) {
            p.window[d] = 1 + (i + d) % 5, p.stride[d] = 1 + (i / 5 + d) % 4;
            p.padding[d] = (i / 20 + d) % 3 % p.window[d];
            p.out[d] = ls_pooling_out(p.in[d], p.window[d], p.stride[d], p.padding[d]);
        }
        fill(&v, false);
        k->pooling.max(&p, v.in[0], v.out[0], place);
        for (int64_t j = 0; j < p.out[0] * p.out[1] * p.C; j++) v.out[1][j] = (float)place[j];
        k->pooling.max_dx(&p, v.in[1], place, v.out[2]);
        k->pooling.average(&p, v.in[0], v.out[3]);
        k->pooling.average_dx(&p, v.in[1], v.out[4]);
        k->pooling.mean(1, p.in[0] * p.in[1], p.C, v.in[0], v.out[5]);
        k->pooling.mean_dx(1, p.in[0] * p.in[1], p.C, v.in[1], v.out[6]);
        for (int64_t c = 0; c < p.C; c++) check_channel(&p, &v, c);
    }
}

/* The first of equals wins, a NaN wins over all, and samples do not mix. */
static void test_ties(void **state) {
    (void)state;
    const ls_pooling p = {
        .samples = 3, .C = 1, .in = {1, 4}, .out = {1, 2}, .window = {1, 2}, .stride = {1, 2}};
    const float x[] = {5, 5, -0.0f, 0, 1, NAN, NAN, 7, -INFINITY, -INFINITY, 2, 3};
    const float dy[] = {1, 2, 3, 4, 5, 6}, want[] = {1, 0, 2, 0, 0, 3, 4, 0, 5, 0, 0, 6};
    const uint16_t places[] = {0, 0, 1, 0, 0, 1};
    const ls_kernels *k = NULL;
    for (int i = 0; (k = ls_kernels_at(i)); i++) {
        float y[6], dx[12];
        uint16_t place[6];
        k->pooling.max(&p, x, y, place);
        k->pooling.max_dx(&p, dy, place, dx);
        assert_memory_equal(place, places, sizeof places);
        assert_memory_equal(dx, want, sizeof want);
        assert_true(y[0] == 5 && isnan(y[2]) && isnan(y[3]) && y[4] == -INFINITY && y[5] == 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
