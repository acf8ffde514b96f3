/* estimate.c - see estimate.h. */
#include "perf/estimate.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/mem.h"
#include "perf/typical.h"
#include "tensor/compute.h"
#include "tensor/gemm.h"

enum { ROWS = 256, SIDE = 512, PASS = ROWS * SIDE, RUNS = 4 };

/* The operands of both kernels. */
typedef struct operands {
    ls_compute compute;
    float *x, *y;      /* [ROWS][SIDE] */
    float *weights;    /* [SIDE][SIDE] */
    uint16_t *stored;  /* the same in bf16 */
    uint16_t *outputs; /* x in bf16 */
    bool bf16;
} operands;

static void run_product(const operands *o) {
    ls_gemm_job g = {.M = ROWS, .N = SIDE, .K = SIDE, .bf16 = o->bf16, .c = o->y, .ldc = SIDE};
    g.a = o->bf16 ? ls_matrix_bf16(o->outputs, SIDE) : ls_matrix_of(o->x, SIDE);
    g.b = o->bf16 ? ls_matrix_bf16(o->stored, SIDE) : ls_matrix_of(o->weights, SIDE);
    g.start = LS_GEMM_ZERO;
    ls_gemm_in_thread(&o->compute, 0, &g);
}

static void run_pass(const operands *o) { o->compute.k->gelu(PASS, o->x, o->y); }

/* The least of several runs, the first of which warms up. */
static double seconds_of(void (*kernel)(const operands *), const operands *o) {
    double least = 0;
    for (int i = 0; i <= RUNS; i++) {
        double begin = ls_clock_thread_s();
        kernel(o);
        double s = ls_clock_thread_s() - begin;
        if (i == 1 || (i > 1 && s < least)) least = s;
    }
    return least > 1e-9 ? least : 1e-9;
}

/* Scales all speeds of a kind so that the greatest is `speed`. */
static void scale(ls_speeds *t, double speed) {
    int n = t->n[0] * t->n[1] * t->n[2];
    double by = speed / t->points[n - 1].alone;
    for (int i = 0; i < n; i++)
        t->points[i] = (ls_speed){t->points[i].alone * by, t->points[i].busy * by};
}

ls_status ls_machine_estimate(bool bf16, ls_machine *m_p, ls_error *e) {
    operands o = {.bf16 = bf16};
    LS_TRY(ls_compute_init(&o.compute, 1, 0, e));
    o.x = LS_NEW_ARRAY(float, PASS);
    o.y = LS_NEW_ARRAY(float, PASS);
    o.weights = LS_NEW_ARRAY(float, SIDE *SIDE);
    o.outputs = LS_NEW_ARRAY(uint16_t, PASS);
    o.stored = LS_NEW_ARRAY(uint16_t, SIDE * SIDE);
    for (int i = 0; i < PASS; i++) o.x[i] = (float)(i % 1021) / 1021 - 0.5f;
    for (int i = 0; i < SIDE * SIDE; i++) o.weights[i] = (float)(i % 1019) / 1019 - 0.5f;
    o.compute.k->narrow(LS_BF16, PASS, o.x, o.outputs);
    o.compute.k->narrow(LS_BF16, SIDE * SIDE, o.weights, o.stored);
    double product = 2.0 * ROWS * SIDE * SIDE / seconds_of(run_product, &o);
    double pass = PASS / seconds_of(run_pass, &o);
    ls_machine_typical((int)ls_cores(), m_p);
    snprintf(m_p->name, sizeof m_p->name, "this machine, estimated");
    for (int k = 0; k < LS_NWORK_KINDS; k++)
        scale(&m_p->speeds[k], k < LS_NPRODUCTS ? product : pass);
    free(o.x);
    free(o.y);
    free(o.weights);
    free(o.outputs);
    free(o.stored);
    ls_compute_close(&o.compute);
    return LS_OK;
}
