/* device_option.h - the option --device of commands that use a trained model. */
#ifndef LS_CLI_DEVICE_OPTION_H
#define LS_CLI_DEVICE_OPTION_H

#include "cli/cli.h"

#define CLI_DEVICE_OPTION                                                                          \
    {                                                                                              \
        "device", 0, "DEVICE",                                                                     \
            "what runs the layers: cuda, cuda:1, opencl, c or auto (default: the cores)"           \
    }

/* The name of a device, which lives on, in place of auto the one that is there; NULL: the cores.
 * Before there are threads. */
const char *cli_device(const ls_args *, int option);

#endif
