/* loss_test.c - softmax and losses over rows, against formulas in double precision. */
#include "tensor/loss.h"

#include "tensor/check_group.h"
#include "tensor/layer_groups.h"

/* log(sum(e^x)). */
static double log_sum(int64_t n, const float *x) {
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) max = fmax(max, (double)x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp((double)x[i] - max);
    return log(sum) + max;
}

/* Row r of cross-entropy with a label. */
static double cross_entropy(int64_t n, const float *x, int64_t label, double smoothing) {
    double loss = 0, whole = log_sum(n, x);
    for (int64_t i = 0; i < n; i++) {
        double q = smoothing / (double)n + (i == label ? 1 - smoothing : 0);
        loss += q * (whole - (double)x[i]);
    }
    return loss;
}

static void check_row(int64_t n, const values *v, int64_t r, double losses[4][ROWS]) {
    const float *x = v->in[0] + r * n, *t = v->in[1] + r * n;
    const double smoothing = (double)SMOOTHING, scale = (double)LOSS_SCALE;
    double whole = log_sum(n, x), binary = 0, squares = 0, weight = (double)v->in[2][r];
    int64_t label = r == 0 ? n / 2 : n - 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = r * n + i;
        double a = (double)x[i], b = (double)t[i], p = exp(a - whole), own = i == label;
        double q = smoothing / (double)n + own * (1 - smoothing), with = r == 1 ? 0 : 1;
        assert_close(v->out[0][at], p, 2e-6 * p, "softmax", n, at);
        assert_close(v->out[3][at], with * scale * (p - q), with * 1e-7, "smoothed dx", n, at);
        assert_close(v->out[4][at], with * scale * weight * (p - own), with * 1e-6, "dx", n, at);
        double sigmoid = 1 / (1 + exp(-a));
        assert_close(v->out[5][at], scale * (sigmoid - b), 1e-6, "binary dx", n, at);
        assert_close(v->out[6][at], scale * 2 * (a - b), 1e-6, "squares dx", n, at);
        binary += -b * log(sigmoid) - (1 - b) * log(1 - sigmoid);
        squares += (a - b) * (a - b);
    }
    double smooth = r == 1 ? 0 : cross_entropy(n, x, label, smoothing);
    double plain = r == 1 ? 0 : cross_entropy(n, x, label, 0);
    const double want[4] = {smooth, binary, squares, plain};
    for (int i = 0; i < 4; i++)
        if (fabs(losses[i][r] - want[i]) > 1e-6 * (1 + fabs(want[i])))
            fail_msg("loss %d of row %lld, size %lld: %g, not %g", i, (long long)r, (long long)n,
                     losses[i][r], want[i]);
}

static void check_losses(int64_t n, const values *v) {
    if (n == 0) return;
    double losses[4][ROWS];
    memcpy(losses, v->out[1], sizeof losses);
    for (int64_t r = 0; r < ROWS; r++) check_row(n, v, r, losses);
    for (int i = 0; i < 7; i++)
        if (i != 1 && i != 2) assert_untouched(v, i, ROWS * n);
    assert_untouched(v, 1, sizeof losses / sizeof(float));
    assert_untouched(v, 2, 2 * ROWS);
    assert_true(v->out[2][2] == UNTOUCHED); /* the row without a label */
}

static void test_losses(void **state) {
    (void)state;
    each(do_losses, check_losses);
}

/* Without a weight, dx of cross-entropy is the derivative of its loss by differences. */
static void test_differences(void **state) {
    (void)state;
    const ls_kernels *k = NULL;
    ls_error e;
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    for (int which = 0; which < LS_NLOSSES; which++)
        for (int i = 0; i < 5; i++) {
            float x[5] = {1, -2, 0.5f, 3, 0}, t[5] = {0, 1, 0.5f, 0.25f, 1}, dx[5], stat[2];
            const int32_t label = 2;
            double loss[2];
            ls_loss_rows l = {.rows = 1,
                              .n = 5,
                              .x = x,
                              .label = &label,
                              .smoothing = 0.2f,
                              .stat = stat,
                              .target = t,
                              .scale = 1,
                              .dx = dx,
                              .losses = loss};
            k->loss[which](&l);
            k->loss_dx[which](&l);
            float at = x[i], slope = dx[i];
            for (int side = 0; side < 2; side++) {
                x[i] = at + (side ? 0x1p-7f : -0x1p-7f);
                l.losses = loss + side;
                k->loss[which](&l);
            }
            assert_close(slope, (loss[1] - loss[0]) * 64, 1e-4, "derivative", which, i);
        }
}

/* Large logits, masked ones, which have probability 0, and NaN, which is not hidden. */
static void test_ends(void **state) {
    (void)state;
    const ls_kernels *k = NULL;
    for (int i = 0; (k = ls_kernels_at(i)); i++) {
        float x[] = {1000, -INFINITY, 1000, -1000, 1, NAN}, y[6], stat[6], dx[2];
        double losses[3];
        const int32_t label[] = {0, 0, 1};
        k->softmax(2, 2, x, y);
        assert_true(y[0] == 1 && y[1] == 0 && y[2] == 1 && y[3] == 0);
        k->softmax(1, 2, x + 4, y);
        assert_true(isnan(y[0]) && isnan(y[1]));
        ls_loss_rows l = {
            .rows = 3, .n = 2, .x = x, .label = label, .stat = stat, .losses = losses};
        k->loss[LS_LOSS_CROSS_ENTROPY](&l);
        assert_true(losses[0] == 0 && losses[1] == 0 && isnan(losses[2]));
        const float logits[] = {-1e30f, 1e30f}, target[] = {1, 1};
        l = (ls_loss_rows){.rows = 2,
                           .n = 1,
                           .x = logits,
                           .target = target,
                           .losses = losses,
                           .scale = 1,
                           .dx = dx};
        k->loss[LS_LOSS_BINARY](&l);
        k->loss_dx[LS_LOSS_BINARY](&l);
        assert_true(losses[0] == (double)1e30f && losses[1] == 0 && dx[0] == -1 && dx[1] == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
