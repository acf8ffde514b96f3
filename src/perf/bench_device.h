/* bench_device.h - how fast a device is (device/device.h): its copies, the kernels of GPT-2 in f32,
 * and a product in bf16.
 *
 * Sizes are those of GPT-2 124 M, but on a device that the host's cores run (`c`, PoCL) those of a
 * small model. Time is a clock's: work is queued until it takes long enough, and waited for.
 */
#ifndef LS_PERF_BENCH_DEVICE_H
#define LS_PERF_BENCH_DEVICE_H

#include "perf/bench_kernels.h"

/* Bytes or operations a second. */
typedef struct ls_device_figures {
    char name[96];
    size_t memory_nbytes;          /* 0: not known */
    size_t nbytes;                 /* of a copy */
    double to, from;               /* copies from and to the host's memory */
    double pinned_to, pinned_from; /* from and to pinned memory */
    double memory;                 /* read and written by a copy within the device */
    double product, product_bf16;  /* FLOP/s of y = x W, of `rows` rows, in f32 and in bf16 */
    int64_t rows, in, out;
    double launch_s; /* of a kernel that does next to nothing, among others */
} ls_device_figures;

/* A kernel, or several that do one thing. */
typedef struct ls_bench_launch {
    const char *name, *shape; /* "y = x W", "qkv"; "layer norm", "" */
    int64_t rows;             /* positions of tokens */
    bool is_product;          /* per_s are FLOP/s, else bytes read and written, without caches */
    double per_s, seconds;
} ls_bench_launch;

typedef struct ls_bench_device {
    const char *device;
    int64_t rows[LS_BENCH_ROWS]; /* [nrows] numbers of rows; 0: 4096, or 64 in a small model */
    int nrows, rounds;           /* times that each is measured */
    bool small;                  /* sizes of a small model on any device */
    /* Called with the device's name before the first result, and with each result as it comes. */
    void (*begin)(void *arg, const char *name, const char *sizes);
    void (*launch)(void *arg, const ls_bench_launch *);
    void *arg;
} ls_bench_device;

/* LS_EINVAL, LS_EIO, LS_ENOMEM: the device can't be opened, fails, has too little memory. */
ls_status ls_bench_device_run(const ls_bench_device *, ls_error *);
/* The device itself. `rows` is not used, and nothing is called. */
ls_status ls_bench_device_machine(const ls_bench_device *, ls_device_figures *, ls_error *);

#endif
