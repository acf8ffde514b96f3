/* conv_library.h - oneDNN's convolutions, if it is installed: the reference in measurements. */
#ifndef LS_CLI_CONV_LIBRARY_H
#define LS_CLI_CONV_LIBRARY_H

#include "tensor/conv.h"

typedef struct cli_conv_library {
    void *engine, *stream;
} cli_conv_library;

/* A product of one convolution, prepared for its shape; the library chooses the layout of
 * weights. */
typedef struct cli_conv_product {
    const cli_conv_library *library;
    void *primitive, *memories[3], *weights;
    int args[3];
} cli_conv_product;

typedef enum cli_conv_kind { CLI_CONV_Y, CLI_CONV_DX, CLI_CONV_DW, CLI_CONV_KINDS } cli_conv_kind;

/* With one thread. LS_EINVAL: it is not installed, or is not version 2. */
ls_status cli_conv_library_open(cli_conv_library *, ls_error *);
void cli_conv_library_close(cli_conv_library *);

/* x and dy (or y) of the job are NHWC; dx and y are written in their place. */
ls_status cli_conv_product_open(const cli_conv_library *, const ls_conv *, const ls_conv_job *,
                                cli_conv_kind, cli_conv_product *, ls_error *);
void cli_conv_product_run(const cli_conv_product *);
void cli_conv_product_close(cli_conv_product *);

#endif
