/* no_device.c - stands for the devices in programs that compute by cores alone, and are linked
 * without them. */
#include <stdlib.h>

#include "device/device.h"

void ls_device_launch(ls_device *d, ls_device_stream s, const ls_device_call *l) {
    (void)d;
    (void)s;
    (void)l;
    abort();
}
