/* norm.h - operands of the kernels that normalize: group norm, RMS norm, batch norm.
 *
 * Activations are [samples, pixels, C] or [rows, C]. Fields that a kernel doesn't name are not
 * read. gamma and beta are [C]; h is the normalized value (x - mean) * rstd.
 */
#ifndef LS_TENSOR_NORM_H
#define LS_TENSOR_NORM_H

#include <stdbool.h>
#include <stdint.h>

/* Group norm over NHWC: mean and 1/deviation of each sample's groups of C / groups neighbouring
 * channels. A channel's sum over a sample's pixels is 4 chains, pixel p in chain p mod 4, added as
 * (0 + 2) + (1 + 3); a group's sum over its channels is 16 lanes and a tree. */
typedef struct ls_group_norm_job {
    int64_t samples, pixels, C, groups; /* pixels >= 1; groups >= 1 divides C */
    float eps;
    bool relu; /* y = max(0, the norm) */
    const float *gamma, *beta;
    const float *x;     /* [samples, pixels, C] */
    float *y;           /* like x, and doesn't overlap it */
    float *mean, *rstd; /* [samples, groups] */
    const float *dy;    /* like x */
    float *dx;          /* like x; may be dy; NULL: not wanted */
    float *sums;        /* [samples, 2, C]: by channel, of dy * h and of dy */
} ls_group_norm_job;

/* RMS norm over rows of C: y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + eps). */
typedef struct ls_rms_norm_job {
    int64_t rows, C;
    int64_t from, to; /* rms_norm_dparams: columns */
    float eps;
    const float *gamma;
    const float *x;             /* [rows, C] */
    float *y;                   /* like x; may be x */
    float *rstd;                /* [rows] */
    const float *dy, *residual; /* like x; residual may be NULL */
    float *dx;                  /* like x; may be dy or the residual */
    float *dgamma;
} ls_rms_norm_job;

/* Batch norm: mean and variance of each channel over a set of rows. A channel's sum is one chain
 * over runs of 64 rows; the sum of a run is 4 chains, row r in chain r mod 4, added as (0 + 2) + (1
 * + 3). The kernels over columns and those over rows do the share [from, to) of theirs. */
typedef struct ls_batch_norm_job {
    int64_t rows, C; /* rows >= 1 */
    int64_t from, to;
    float eps;
    bool relu; /* y = max(0, the norm) */
    const float *gamma, *beta;
    const float *x;                /* [rows, C] */
    float *y;                      /* like x; may be x */
    float *mean, *variance, *rstd; /* [C]; the variance is divided by rows */
    const float *dy;               /* like x */
    float *dx;                     /* like x; may be dy */
    float *sum_dyh, *sum_dy;       /* [C]: of dy * h and of dy: the gradients of gamma and beta */
} ls_batch_norm_job;

typedef struct ls_norm_kernels {
    /* Computes y, mean, rstd from x, gamma, beta. */
    void (*group_norm)(const ls_group_norm_job *);
    /* Computes dx and sums from dy, x, gamma, mean, rstd (and beta for relu, after which dy is 0
     * where y is). The gradients of gamma and beta are the
     * sums' columns: column_sum(samples, 2 C, 0, C, sums, dgamma), the same from sums + C for beta:
     * chains over samples. */
    void (*group_norm_dx)(const ls_group_norm_job *);

    /* Computes y and rstd from x and gamma. */
    void (*rms_norm)(const ls_rms_norm_job *);
    /* Computes dx = residual + the gradient, from dy, x, gamma, rstd. */
    void (*rms_norm_dx)(const ls_rms_norm_job *);
    /* dgamma += the gradient, from dy, x, rstd, chains over rows. */
    void (*rms_norm_dparams)(const ls_rms_norm_job *);

    /* Columns: computes mean and variance from x. */
    void (*batch_norm_stats)(const ls_batch_norm_job *);
    /* Columns: rstd = 1 / sqrt(variance + eps), also of running variances. */
    void (*batch_norm_rstd)(const ls_batch_norm_job *);
    /* Rows: y from x, mean, rstd, gamma, beta. */
    void (*batch_norm_apply)(const ls_batch_norm_job *);
    /* Columns: sum_dyh and sum_dy from dy, x, mean, rstd (and gamma, beta for relu, after which dy
     * is 0 where y is). */
    void (*batch_norm_sums)(const ls_batch_norm_job *);
    /* Rows: dx from dy, x, mean, rstd, gamma, the sums (and beta for relu). Sums of 0: the gradient
     * for a mean and a variance that do not depend on x. */
    void (*batch_norm_dx)(const ls_batch_norm_job *);
} ls_norm_kernels;

#endif
