/* export_adapters.h - lockstep export RUN: adapters alone, for programs that load them beside their
 * base. */
#ifndef LS_CLI_EXPORT_ADAPTERS_H
#define LS_CLI_EXPORT_ADAPTERS_H

#include <stdbool.h>

#include "base/error.h"

typedef struct cli_adapters {
    const char *from, *to;
    const char *base; /* of peft: the base model's name; NULL: its path here */
    bool gguf;        /* as llama.cpp loads them; else as peft does */
    bool ema, json;
} cli_adapters;

/* Writes the run's adapters, and prints what was written. */
ls_status cli_export_adapters(const cli_adapters *, ls_error *);

#endif
