/* nvrtc.c - see nvrtc.h. */
#include "device/nvrtc.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "device/compiler_log.h"

enum { MAX_OPTIONS = 8, MAX_ARCHITECTURES = 256 };

/* Multiply-adds are only those that the text has. Division and square root are as IEEE says, and
 * small numbers stay: that is the default, said here all the same. */
const char *const ls_nvrtc_options[] = {"-fmad=false", "-prec-div=true", "-prec-sqrt=true",
                                        "-ftz=false", NULL};

static const ls_symbol symbols[] = {
#define SYMBOL(name, symbol, parameters) {symbol, offsetof(ls_nvrtc, name)},
    LS_NVRTC_FUNCTIONS(SYMBOL)};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ls_nvrtc loaded; /* major 0: not yet */

/* False: it can't be loaded; *why_p says why. */
static bool load_file(const char *file, ls_nvrtc *to, ls_error *why_p) {
    size_t n = sizeof symbols / sizeof *symbols;
    if (ls_library_load(file, symbols, n, to, why_p) != LS_OK) return false;
    if (to->version(&to->major, &to->minor) == 0) return true;
    ls_fail(why_p, LS_EIO, "%s does not say its version", file);
    return false;
}

/* Where the loader finds it, and where CUDA's installer writes it. */
static ls_status find(int newest, ls_nvrtc *to, ls_error *e) {
    const char *home = getenv("CUDA_HOME");
    char *own = ls_format("%s/lib64/libnvrtc.so", home && *home ? home : "/usr/local/cuda");
    const char *files[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", own};
    ls_error why = {0};
    ls_nvrtc newer = {0};
    bool found = false;
    for (size_t i = 0; i < sizeof files / sizeof *files && !found; i++) {
        if (!load_file(files[i], to, &why)) continue;
        found = to->major <= newest;
        if (!found && !newer.major) newer = *to;
    }
    free(own);
    if (found) return LS_OK;
    if (newer.major)
        return ls_fail(e, LS_EINVAL,
                       "device cuda: libnvrtc is of CUDA %d.%d, and NVIDIA's driver supports %d.x: "
                       "install a newer driver, or libnvrtc.so.%d (CUDA %d's package cuda-nvrtc)",
                       newer.major, newer.minor, newest, newest, newest);
    return ls_fail(e, LS_EINVAL,
                   "device cuda needs NVIDIA's compiler libnvrtc.so.12 or .13 (CUDA's package "
                   "cuda-nvrtc; LD_LIBRARY_PATH or CUDA_HOME lead to it): %s",
                   why.msg);
}

ls_status ls_nvrtc_load(int newest, const ls_nvrtc **nvrtc_p, ls_error *e) {
    ls_status s = LS_OK;
    ls_nvrtc now = {0};
    pthread_mutex_lock(&lock);
    if (!loaded.major) {
        s = find(newest, &now, e);
        if (s == LS_OK) loaded = now;
    }
    pthread_mutex_unlock(&lock);
    if (s == LS_OK) *nvrtc_p = &loaded;
    return s;
}

static ls_status check_architecture(const ls_nvrtc *c, const char *architecture, ls_error *e) {
    int n = 0, list[MAX_ARCHITECTURES];
    int wanted = atoi(architecture + strcspn(architecture, "0123456789"));
    if (c->architecture_count(&n) != 0 || n < 1 || n > MAX_ARCHITECTURES ||
        c->architectures(list) != 0)
        return LS_OK; /* compiling shows it */
    for (int i = 0; i < n; i++)
        if (list[i] == wanted) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "device cuda: libnvrtc %d.%d compiles for sm_%d to sm_%d, and this GPU is %s: "
                   "install another version of CUDA's package cuda-nvrtc",
                   c->major, c->minor, list[0], list[n - 1], architecture);
}

/* Appends what the two functions give. */
static int take(ls_nvrtc_program p, int (*size)(ls_nvrtc_program, size_t *),
                int (*get)(ls_nvrtc_program, char *), ls_buf *to) {
    size_t nbytes = 0;
    int got = size(p, &nbytes);
    if (got != 0) return got;
    char *bytes = ls_alloc(nbytes + 1);
    got = get(p, bytes);
    if (got == 0) ls_buf_append(to, bytes, nbytes);
    free(bytes);
    return got;
}

static ls_status compile(const ls_nvrtc *c, ls_nvrtc_program p, const char *architecture,
                         ls_nvrtc_made *made, ls_error *e) {
    const char *options[MAX_OPTIONS];
    char target[64];
    int n = 0, length = 0;
    snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
    options[n++] = target;
    for (int i = 0; ls_nvrtc_options[i]; i++) options[n++] = ls_nvrtc_options[i];
    int got = c->compile(p, n, options);
    take(p, c->log_size, c->log, &made->log);
    if (got == 0) got = take(p, c->code_size, c->code, &made->code);
    if (got == 0) take(p, c->assembly_size, c->assembly, &made->assembly);
    if (got == 0) return LS_OK;
    const char *line = ls_compiler_log_line(made->log.data ? made->log.data : "", &length);
    return ls_fail(e, LS_EIO,
                   "device cuda: the kernels can't be compiled for %s by libnvrtc %d.%d (error "
                   "%d): %.*s",
                   architecture, c->major, c->minor, got, length, line);
}

ls_status ls_nvrtc_compile(const ls_nvrtc *c, const char *text, const char *architecture,
                           ls_nvrtc_made *made_p, ls_error *e) {
    ls_nvrtc_program p = NULL;
    *made_p = (ls_nvrtc_made){0};
    LS_TRY(check_architecture(c, architecture, e));
    int got = c->create(&p, text, "kernels.cu", 0, NULL, NULL);
    if (got != 0)
        return ls_fail(e, LS_EIO, "device cuda: libnvrtc %d.%d can't begin (error %d)", c->major,
                       c->minor, got);
    ls_status s = compile(c, p, architecture, made_p, e);
    c->destroy(&p);
    return s;
}

void ls_nvrtc_made_free(ls_nvrtc_made *made) {
    ls_buf_free(&made->code);
    ls_buf_free(&made->assembly);
    ls_buf_free(&made->log);
}
