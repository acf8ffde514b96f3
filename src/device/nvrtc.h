/* nvrtc.h - NVIDIA's compiler, libnvrtc, loaded when it is first used: it makes code for a GPU from
 * the text of the kernels. It needs neither a GPU nor a driver. */
#ifndef LS_DEVICE_NVRTC_H
#define LS_DEVICE_NVRTC_H

#include <stddef.h>

#include "base/mem.h"

typedef struct ls_nvrtc_program *ls_nvrtc_program;

/* X(name, symbol, parameters): functions of libnvrtc, which return an nvrtcResult. */
#define LS_NVRTC_FUNCTIONS(X)                                                                      \
    X(version, "nvrtcVersion", (int *major_p, int *minor_p))                                       \
    X(architecture_count, "nvrtcGetNumSupportedArchs", (int *n_p))                                 \
    X(architectures, "nvrtcGetSupportedArchs", (int *list))                                        \
    X(create, "nvrtcCreateProgram",                                                                \
      (ls_nvrtc_program * program_p, const char *text, const char *name, int n,                    \
       const char *const *headers, const char *const *names))                                      \
    X(destroy, "nvrtcDestroyProgram", (ls_nvrtc_program * program_p))                              \
    X(compile, "nvrtcCompileProgram", (ls_nvrtc_program, int n, const char *const *options))       \
    X(log_size, "nvrtcGetProgramLogSize", (ls_nvrtc_program, size_t * nbytes_p))                   \
    X(log, "nvrtcGetProgramLog", (ls_nvrtc_program, char *log))                                    \
    X(code_size, "nvrtcGetCUBINSize", (ls_nvrtc_program, size_t * nbytes_p))                       \
    X(code, "nvrtcGetCUBIN", (ls_nvrtc_program, char *code))                                       \
    X(assembly_size, "nvrtcGetPTXSize", (ls_nvrtc_program, size_t * nbytes_p))                     \
    X(assembly, "nvrtcGetPTX", (ls_nvrtc_program, char *text))

typedef struct ls_nvrtc {
#define LS_NVRTC_MEMBER(name, symbol, parameters) int(*name) parameters;
    LS_NVRTC_FUNCTIONS(LS_NVRTC_MEMBER)
#undef LS_NVRTC_MEMBER
    int major, minor; /* its version */
} ls_nvrtc;

/* Any thread. newest: of CUDA, e.g. 12 for 12.x: a newer one's code can't be loaded by the driver.
 * Of several that are installed, the newest that knows the architecture, "sm_90a". LS_EINVAL: there
 * is none, or only one that the driver is too old for. It stays loaded. */
ls_status ls_nvrtc_load(int newest, const char *architecture, const ls_nvrtc **nvrtc_p, ls_error *);

/* The options of all compilations, but for the architecture; ended by NULL. */
extern const char *const ls_nvrtc_options[];

/* What a compilation made; ls_nvrtc_made_free(). The assembly (PTX) is for people and checks; for a
 * GPU that is newer than the compiler, it is the code: its instructions are rounded each, so the
 * driver makes the same bits of it. */
typedef struct ls_nvrtc_made {
    ls_buf code, assembly, log;
} ls_nvrtc_made;

/* Compiles a text for an architecture, "sm_90a". LS_EINVAL: this compiler knows newer ones alone.
 * LS_EIO: the text has an error. Also with an error, the log is set. */
ls_status ls_nvrtc_compile(const ls_nvrtc *, const char *text, const char *architecture,
                           ls_nvrtc_made *made_p, ls_error *);
void ls_nvrtc_made_free(ls_nvrtc_made *);

#endif
