/* compiled.h - compiled kernels: those in the user's cache and, for NVIDIA GPUs, those that were
 * compiled for a package and are installed beside the library. Compiling takes seconds, and is done
 * once for a text, an architecture or a device, and a version of the compiler.
 *
 * A file of the cache is a line with the hash of what follows, and the code. One that is damaged is
 * made again. An installed file is what `nvcc -fatbin` writes, for some architectures
 * (scripts/build_fatbin.sh); its name has the key of the text, lockstep-kernels-KEY.fatbin.
 */
#ifndef LS_DEVICE_COMPILED_H
#define LS_DEVICE_COMPILED_H

#include <stdbool.h>

#include "base/hash.h"
#include "device/nvrtc.h"

/* A place in the cache, locked if it can be: of several processes one compiles. */
typedef struct ls_compiled {
    char *dir, *path;
    int lock; /* -1: it could not be had */
} ls_compiled;

/* key: of all that decides the code; ending: of the file's name. Did the cache have it? Appends the
 * code to *code_p then. */
bool ls_compiled_open(ls_compiled *c_p, ls_hash key, const char *ending, ls_buf *code_p);
/* Writes the code to its place. A cache that can't be written is logged. */
void ls_compiled_keep(const ls_compiled *, const ls_buf *code);
void ls_compiled_close(ls_compiled *);

/* NVIDIA's code for an architecture, from the cache, or compiled; the caller frees the buffer. */
ls_status ls_compiled_kernels(const ls_nvrtc *, const char *architecture, ls_buf *code_p,
                              ls_error *);

/* Appends the text of all kernels for nvcc, after a line with its key and the options that the bits
 * need. */
void ls_compiled_text(ls_buf *);

/* The path of the installed file with this text's kernels, or NULL; the caller frees it. */
char *ls_compiled_installed(void);

#endif
