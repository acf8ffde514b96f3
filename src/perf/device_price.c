/* device_price.c - see device_price.h. */
#include "perf/device_price.h"

#include <math.h>

/* Floats that a pass reads and writes for an element; 0: devices have no such pass. */
static const double floats[LS_NWORK_KINDS] = {
    [LS_WORK_NORM] = 2,       [LS_WORK_NORM_DX] = 4,       [LS_WORK_NORM_DPARAMS] = 2,
    [LS_WORK_COLUMN_SUM] = 1, [LS_WORK_GELU] = 2,          [LS_WORK_GELU_BACK] = 3,
    [LS_WORK_SOFTMAX] = 2,    [LS_WORK_SOFTMAX_AGAIN] = 2, [LS_WORK_SOFTMAX_DX] = 3,
    [LS_WORK_LOSS] = 1,       [LS_WORK_LOSS_DX] = 2,       [LS_WORK_ADD] = 3,
    [LS_WORK_WIDEN] = 1.5,    [LS_WORK_NARROW] = 1.5,      [LS_WORK_SQUARES] = 1,
    [LS_WORK_UPDATE] = 7};

double ls_device_pass_s(const ls_machine_device *d, ls_work_kind k, double elements) {
    return elements > 0 ? d->launch_s + elements * floats[k] * sizeof(float) / d->memory : 0;
}

double ls_device_round_s(const ls_machine_device *d, double elements, int kernels) {
    return kernels * d->launch_s + 2 * elements * sizeof(float) / d->memory;
}

/* Each of its operands, all in f32, is read, and its result written, once. */
static double product_s(const ls_machine_device *d, double rate, double M, double N, double K) {
    double nbytes = (M * K + K * N + M * N) * sizeof(float);
    return fmax(2 * M * N * K / rate, nbytes / d->memory);
}

/* What is done several times a sample is one kernel for all of them. */
double ls_device_work_s(const ls_machine_device *d, const ls_work *w, double T, double n,
                        bool bf16) {
    double times = w->times > 0 ? w->times * n : 1, rows = n * T;
    if (w->kind >= LS_NPRODUCTS)
        return ls_device_pass_s(d, w->kind, w->elements * (w->times > 0 ? times : n));
    double M = w->M ? (double)w->M : rows, K = w->K ? (double)w->K : rows;
    double rate = bf16 && !w->in_f32 ? d->product_bf16 : d->product;
    return d->launch_s + times * product_s(d, rate, M, (double)w->N, K);
}

double ls_device_to_s(const ls_machine_device *d, double nbytes) {
    return d->launch_s + nbytes / d->to;
}

double ls_device_from_s(const ls_machine_device *d, double nbytes) {
    return d->launch_s + nbytes / d->from;
}
