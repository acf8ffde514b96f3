/* compiled.h - the kernels compiled for an NVIDIA GPU, in the user's cache: compiling takes seconds, and is
 * done once for a text, an architecture and a version of the compiler.
 *
 * A file is a line with the hash of what follows, and the code. One that is damaged is made again.
 */
#ifndef LS_DEVICE_COMPILED_H
#define LS_DEVICE_COMPILED_H

#include "device/nvrtc.h"

/* The code for an architecture, from the cache, or compiled; the caller frees the buffer. A cache that
 * can't be written is logged. Several processes compile once. */
ls_status ls_compiled_kernels(const ls_nvrtc *, const char *architecture, ls_buf *code_p,
                              ls_error *);

#endif
