/* export_onnx.h - lockstep export RUN|MODEL --to onnx: a network for any program that runs ONNX. */
#ifndef LS_CLI_EXPORT_ONNX_H
#define LS_CLI_EXPORT_ONNX_H

#include <stdbool.h>

#include "base/error.h"

typedef struct cli_onnx {
    const char *from, *to;
    bool ema, json;
    bool external; /* numbers are in a file of their own, however few they are */
} cli_onnx;

/* Writes the graph, and prints what it reads and computes. */
ls_status cli_export_onnx(const cli_onnx *, ls_error *);

#endif
