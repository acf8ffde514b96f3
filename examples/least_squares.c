/* least_squares.c - a linear model y = x . w + b, fitted by gradient descent on many workers.
 *
 *     cc least_squares.c -o least_squares $(pkg-config --cflags --libs lockstep)
 *     lockstep run -n 4 ./least_squares
 *
 * Data-parallel: each worker has all weights. The samples are cut into V slices, one for each
 * virtual worker, and a worker adds up the gradient over each of its slices; the sums of all slices
 * are added in one order; then all workers take the same step. So the weights stay equal on all of
 * them, have the same bits for 1, 2, 3 ... V workers, and only gradients are ever sent.
 */
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/virtual.h>

enum { SAMPLES = 10000, V = 8, INPUTS = 3, WEIGHTS = INPUTS + 1, STEPS = 50 };
static const double TRUE_W[WEIGHTS] = {2, -1, 0.5, 3}; /* the last is b */

static void check(ls_status s, const ls_error *e) {
    if (s == LS_OK) return;
    fprintf(stderr, "least_squares: %s: %s\n", ls_status_name(s), e->msg);
    exit(1);
}

/* Number k of a fixed sequence, uniform in [-1, 1): a function of k alone (splitmix64), so
 * that the data is the same for any number of workers. */
static double number(uint64_t k) {
    uint64_t x = (k + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 11) / (double)(1ull << 52) - 1;
}

/* Sample i: x [WEIGHTS], ending in 1 for b, and y with a little noise. */
static double sample(uint64_t i, double *x) {
    double y = 0.1 * number(i * WEIGHTS + INPUTS);
    for (uint64_t j = 0; j < WEIGHTS; j++) {
        x[j] = j < INPUTS ? number(i * WEIGHTS + j) : 1;
        y += x[j] * TRUE_W[j];
    }
    return y;
}

/* sum [WEIGHTS + 1] = the gradient of (x . w - y)^2 over samples [first, end), then their loss. */
static void gradient(uint64_t first, uint64_t end, const double *w, double *sum) {
    for (int j = 0; j <= WEIGHTS; j++) sum[j] = 0;
    for (uint64_t i = first; i < end; i++) {
        double x[WEIGHTS], error = -sample(i, x);
        for (int j = 0; j < WEIGHTS; j++) error += x[j] * w[j];
        for (int j = 0; j < WEIGHTS; j++) sum[j] += 2 * error * x[j];
        sum[WEIGHTS] += error * error;
    }
}

/* The first sample of virtual worker v. */
static uint64_t slice(int v) { return SAMPLES * (uint64_t)v / V; }

int main(void) {
    ls_group *g;
    ls_error e;
    check(ls_group_open(NULL, &g, &e), &e);
    int first, end, rank = ls_group_rank(g);
    ls_group_virtual_workers(g, V, &first, &end);

    double w[WEIGHTS] = {0};
    for (int step = 0; step <= STEPS; step++) {
        double of[V][WEIGHTS + 1], sum[WEIGHTS + 1];
        for (int v = first; v < end; v++) gradient(slice(v), slice(v + 1), w, of[v - first]);
        /* LS_SUM, and one division by all samples: slices may differ in length, and LS_AVG would
         * weight them equally. The loss is sent with the gradient: one call per step. */
        check(ls_all_reduce_virtual(g, of, sum, WEIGHTS + 1, LS_F64, LS_SUM, V, &e), &e);
        if (rank == 0 && step % 10 == 0)
            printf("step %3d  loss %.6f\n", step, sum[WEIGHTS] / (double)SAMPLES);
        for (int j = 0; j < WEIGHTS; j++) w[j] -= 0.3 * sum[j] / (double)SAMPLES;
    }
    if (rank == 0) printf("w = %.17g %.17g %.17g, b = %.17g\n", w[0], w[1], w[2], w[3]);

    ls_group_close(g);
    return 0;
}
