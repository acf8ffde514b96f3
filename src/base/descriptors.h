/* descriptors.h - how many files and sockets this process may have open (ulimit -n). */
#ifndef LS_BASE_DESCRIPTORS_H
#define LS_BASE_DESCRIPTORS_H

#include "base/error.h"

/* Raises the limit to `wanted` if it is lower, as far as the hard limit allows. LS_EINVAL: it stays
 * below `least`; the message begins with what needs them, as in "workers over TCP". */
ls_status ls_descriptors_raise(int least, int wanted, const char *what, ls_error *);

#endif
