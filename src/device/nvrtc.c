/* nvrtc.c - see nvrtc.h. */
#include "device/nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/floats.h"
#include "base/library.h"
#include "base/log.h"
#include "device/compiler_log.h"

enum { MAX_OPTIONS = 8, MAX_ARCHITECTURES = 256 };

/* Multiply-adds are only those that the text has. Division and square root are as IEEE says, and
 * small numbers stay: that is the default, said here all the same. The text has C++17's
 * hexadecimal floats, which are CUDA 12's default. */
const char *const ls_nvrtc_options[] = {"-fmad=false", "-prec-div=true", "-prec-sqrt=true",
                                        "-ftz=false",  "-std=c++17",     NULL};

static const ls_symbol symbols[] = {
#define SYMBOL(name, symbol, parameters) {symbol, offsetof(ls_nvrtc, name)},
    LS_NVRTC_FUNCTIONS(SYMBOL)};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ls_nvrtc loaded; /* major 0: not yet */

/* When it compiles, libnvrtc opens libnvrtc-builtins by name alone, which the loader does not look
 * for beside libnvrtc, but finds where it is loaded already. */
static void load_builtins(const char *file, const ls_nvrtc *c) {
    LS_FLOATS(); /* as ls_library_load() */
    const char *slash = strrchr(file, '/');
    if (!slash) return;
    char *path =
        ls_format("%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - file), file, c->major, c->minor);
    dlopen(path, RTLD_NOW | RTLD_LOCAL); /* if it is elsewhere, the loader may find it */
    free(path);
}

/* False: it can't be loaded; *why_p says why. */
static bool load_file(const char *file, ls_nvrtc *to, ls_error *why_p) {
    size_t n = sizeof symbols / sizeof *symbols;
    if (ls_library_load(file, symbols, n, to, why_p) != LS_OK) return false;
    if (to->version(&to->major, &to->minor) != 0) {
        ls_fail(why_p, LS_EIO, "%s does not say its version", file);
        return false;
    }
    load_builtins(file, to);
    return true;
}

static int number_of(const char *architecture) {
    return atoi(architecture + strcspn(architecture, "0123456789"));
}

/* The architectures that it compiles for, ascending; returns how many, 0: it does not say. */
static int architectures(const ls_nvrtc *c, int list[MAX_ARCHITECTURES]) {
    int n = 0;
    if (c->architecture_count(&n) != 0 || n < 1 || n > MAX_ARCHITECTURES) return 0;
    return c->architectures(list) == 0 ? n : 0;
}

static bool knows(const ls_nvrtc *c, int architecture) {
    int list[MAX_ARCHITECTURES], n = architectures(c, list);
    for (int i = 0; i < n; i++)
        if (list[i] == architecture) return true;
    return n == 0; /* compiling shows it */
}

/* What was found so far, major 0: none. */
typedef struct found {
    ls_nvrtc best, other, newer; /* other: it does not know the architecture */
    ls_error why;                /* the last one could not be loaded */
} found;

static void try_file(const char *file, int newest, int architecture, found *f) {
    ls_nvrtc c = {0};
    if (f->best.major || !load_file(file, &c, &f->why)) return;
    ls_nvrtc *place = c.major > newest ? &f->newer : knows(&c, architecture) ? &f->best : &f->other;
    if (!place->major) *place = c;
}

/* Where the loader finds it, and where CUDA's installer and Python's packages write it. */
static ls_status find(int newest, int architecture, ls_nvrtc *to, ls_error *e) {
    static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                        "libnvrtc.so"};
    const char *home = getenv("CUDA_HOME");
    found f = {0};
    if (!home || !*home) home = "/usr/local/cuda";
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            char *path = k == 0   ? ls_format("%s", files[i])
                         : k == 1 ? ls_format("%s/lib64/%s", home, files[i])
                                  : ls_format("%s/lib/%s", home, files[i]);
            try_file(path, newest, architecture, &f);
            free(path);
        }
    const ls_nvrtc newer = f.newer;
    *to = f.best.major ? f.best : f.other;
    if (to->major) return LS_OK;
    if (newer.major)
        return ls_fail(e, LS_EINVAL,
                       "device cuda: libnvrtc is of CUDA %d.%d, and NVIDIA's driver supports %d.x: "
                       "install a newer driver, or libnvrtc.so.%d (CUDA %d's package cuda-nvrtc)",
                       newer.major, newer.minor, newest, newest, newest);
    return ls_fail(
        e, LS_EINVAL,
        "device cuda needs NVIDIA's compiler libnvrtc.so.12 or .13 (CUDA's package "
        "cuda-nvrtc, or Python's nvidia-cuda-nvrtc; LD_LIBRARY_PATH or CUDA_HOME lead to "
        "it): %s",
        f.why.msg);
}

ls_status ls_nvrtc_load(int newest, const char *architecture, const ls_nvrtc **nvrtc_p,
                        ls_error *e) {
    ls_status s = LS_OK;
    ls_nvrtc now = {0};
    pthread_mutex_lock(&lock);
    if (!loaded.major) {
        s = find(newest, number_of(architecture), &now, e);
        if (s == LS_OK) loaded = now;
    }
    pthread_mutex_unlock(&lock);
    if (s == LS_OK) *nvrtc_p = &loaded;
    return s;
}

/* The compiler's name of what it compiles for. A GPU that is newer than the compiler gets assembly
 * for the newest that this knows, which the driver compiles (*by_driver_p). */
static ls_status target_of(const ls_nvrtc *c, const char *architecture, char *target, size_t size,
                           bool *by_driver_p, ls_error *e) {
    int list[MAX_ARCHITECTURES], n = architectures(c, list), wanted = number_of(architecture);
    bool known = knows(c, wanted), newer = !known && wanted > list[n - 1];
    if (!known && !newer)
        return ls_fail(e, LS_EINVAL,
                       "device cuda: libnvrtc %d.%d compiles for sm_%d to sm_%d, and this GPU is "
                       "%s: install another version of CUDA's package cuda-nvrtc",
                       c->major, c->minor, list[0], list[n - 1], architecture);
    if (newer)
        snprintf(target, size, "compute_%d", list[n - 1]);
    else if (c->major < 12) /* before sm_90a had a name */
        snprintf(target, size, "sm_%d", wanted);
    else
        snprintf(target, size, "%s", architecture);
    *by_driver_p = newer;
    return LS_OK;
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

static ls_status compile(const ls_nvrtc *c, ls_nvrtc_program p, const char *target, bool by_driver,
                         ls_nvrtc_made *made, ls_error *e) {
    const char *options[MAX_OPTIONS];
    char wanted[64];
    int n = 0, length = 0;
    snprintf(wanted, sizeof wanted, "--gpu-architecture=%s", target);
    options[n++] = wanted;
    for (int i = 0; ls_nvrtc_options[i]; i++) options[n++] = ls_nvrtc_options[i];
    int got = c->compile(p, n, options);
    take(p, c->log_size, c->log, &made->log);
    if (got == 0 && !by_driver) got = take(p, c->code_size, c->code, &made->code);
    if (got == 0 && by_driver) got = take(p, c->assembly_size, c->assembly, &made->code);
    if (got == 0 && !by_driver) take(p, c->assembly_size, c->assembly, &made->assembly);
    if (got == 0) return LS_OK;
    const char *line = ls_compiler_log_line(made->log.data ? made->log.data : "", &length);
    return ls_fail(e, LS_EIO,
                   "device cuda: the kernels can't be compiled for %s by libnvrtc %d.%d (error "
                   "%d): %.*s",
                   target, c->major, c->minor, got, length, line);
}

ls_status ls_nvrtc_compile(const ls_nvrtc *c, const char *text, const char *architecture,
                           ls_nvrtc_made *made_p, ls_error *e) {
    ls_nvrtc_program p = NULL;
    *made_p = (ls_nvrtc_made){0};
    char target[32];
    bool by_driver = false;
    LS_TRY(target_of(c, architecture, target, sizeof target, &by_driver, e));
    if (by_driver)
        ls_log(
            "libnvrtc %d.%d does not know %s: NVIDIA's driver compiles the kernels for it, which "
            "may take minutes; a newer package cuda-nvrtc does it once",
            c->major, c->minor, architecture);
    int got = c->create(&p, text, "kernels.cu", 0, NULL, NULL);
    if (got != 0)
        return ls_fail(e, LS_EIO, "device cuda: libnvrtc %d.%d can't begin (error %d)", c->major,
                       c->minor, got);
    ls_status s = compile(c, p, target, by_driver, made_p, e);
    c->destroy(&p);
    return s;
}

void ls_nvrtc_made_free(ls_nvrtc_made *made) {
    ls_buf_free(&made->code);
    ls_buf_free(&made->assembly);
    ls_buf_free(&made->log);
}
