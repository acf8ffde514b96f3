/* compiled.h - the kernels compiled for NVIDIA GPUs: those that were compiled for a package and are installed
 * beside the library, and those in the user's cache. Compiling takes seconds, and is done once for a text, an
 * architecture and a version of the compiler.
 *
 * A file of the cache is a line with the hash of what follows, and the code. One that is damaged is made
 * again. An installed file is what `nvcc -fatbin` writes, for some architectures
 * (scripts/build_fatbin.sh); its name has the key of the text, lockstep-kernels-KEY.fatbin.
 */
#ifndef LS_DEVICE_COMPILED_H
#define LS_DEVICE_COMPILED_H

#include "device/nvrtc.h"

/* The code for an architecture, from the cache, or compiled; the caller frees the buffer. A cache that
 * can't be written is logged. Several processes compile once. */
ls_status ls_compiled_kernels(const ls_nvrtc *, const char *architecture, ls_buf *code_p,
                              ls_error *);

/* Appends the text of all kernels for nvcc, after a line with its key and the options that the bits need. */
void ls_compiled_text(ls_buf *);

/* The path of the installed file with this text's kernels, or NULL; the caller frees it. */
char *ls_compiled_installed(void);

#endif
