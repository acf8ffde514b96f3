/* device_option.c - see device_option.h. */
#include "cli/device_option.h"

#include <stdlib.h>

#include "base/intern.h"
#include "train/worker_device.h"

const char *cli_device(const ls_args *a, int option) {
    const char *name = cli_value(a, option);
    if (!name || !*name) return NULL;
    ls_config *c = LS_NEW(ls_config);
    c->parallel.device = ls_intern(name);
    ls_worker_device_resolve(c);
    name = *c->parallel.device ? c->parallel.device : NULL;
    free(c);
    return name;
}
