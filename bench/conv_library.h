/* conv_library.h - oneDNN's convolutions, if it is installed: the reference in measurements. */
#ifndef BENCH_CONV_LIBRARY_H
#define BENCH_CONV_LIBRARY_H

#include "tensor/conv.h"

typedef struct conv_library {
    void *engine, *stream;
} conv_library;

/* A product of one convolution, prepared for its shape; the library chooses the layout of
 * weights. */
typedef struct conv_product {
    const conv_library *library;
    void *primitive, *memories[3], *weights;
    int args[3];
} conv_product;

typedef enum conv_kind { CONV_Y, CONV_DX, CONV_DW, CONV_KINDS } conv_kind;

/* With one thread. LS_EINVAL: it is not installed, or is not version 2. */
ls_status conv_library_open(conv_library *, ls_error *);
void conv_library_close(conv_library *);

/* x and dy (or y) of the job are NHWC; dx and y are written in their place. */
ls_status conv_product_open(const conv_library *, const ls_conv *, const ls_conv_job *, conv_kind,
                            conv_product *, ls_error *);
void conv_product_run(const conv_product *);
void conv_product_close(conv_product *);

#endif
