/* convolutions.h - the convolutions of a residual network, on one core, beside oneDNN's. */
#ifndef BENCH_CONVOLUTIONS_H
#define BENCH_CONVOLUTIONS_H

#include "tensor/conv.h"

typedef struct bench_convolutions {
    const ls_compute *compute; /* one thread */
    int rounds;
    bool onednn, json;
} bench_convolutions;

/* Prints a table, or lines of JSON. LS_ENOMEM; LS_EINVAL: see conv_library.h. */
ls_status bench_convolutions_run(const bench_convolutions *, ls_error *);

#endif
