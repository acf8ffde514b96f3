/* fake_nvrtc.c - libnvrtc for tests: what it makes is for fake_cuda.c alone.
 *
 * Variables of the environment, read at each call:
 *   FAKE_NVRTC_VERSION=13.0   its version
 *   FAKE_NVRTC_FAIL=LOG       compiling fails with this log
 *   FAKE_NVRTC_NEWEST=90      the newest architecture
 *   FAKE_NVRTC_OLDEST=75      the oldest
 *   FAKE_NVRTC_BUILTINS=1     it needs libnvrtc-builtins.so.VERSION, as NVIDIA's does
 * and written: FAKE_NVRTC_COMPILED, how many texts it has compiled.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/nvrtc.h"

struct ls_nvrtc_program {
    char code[64];
};

#define FUNCTION(name, symbol, parameters) int fake_##name parameters __asm__(symbol);
LS_NVRTC_FUNCTIONS(FUNCTION)

static const char *setting(const char *name, const char *otherwise) {
    const char *x = getenv(name);
    return x ? x : otherwise;
}

int fake_version(int *major_p, int *minor_p) {
    return sscanf(setting("FAKE_NVRTC_VERSION", "13.0"), "%d.%d", major_p, minor_p) != 2;
}

int fake_architecture_count(int *n_p) {
    *n_p = 2;
    return 0;
}

int fake_architectures(int *list) {
    list[0] = atoi(setting("FAKE_NVRTC_OLDEST", "75"));
    list[1] = atoi(setting("FAKE_NVRTC_NEWEST", "90"));
    return 0;
}

int fake_create(ls_nvrtc_program *program_p, const char *text, const char *name, int n,
                const char *const *headers, const char *const *names) {
    if (!strstr(text, "KERNEL(gemm)") || !name || n || headers || names) return 1;
    *program_p = calloc(1, sizeof **program_p);
    return 0;
}

int fake_destroy(ls_nvrtc_program *program_p) {
    free(*program_p);
    return 0;
}

/* The loader looks for it by this name. */
static bool has_builtins(void) {
    char name[64];
    snprintf(name, sizeof name, "libnvrtc-builtins.so.%s", setting("FAKE_NVRTC_VERSION", "13.0"));
    return dlopen(name, RTLD_NOW | RTLD_LOCAL) != NULL;
}

int fake_compile(ls_nvrtc_program p, int n, const char *const *options) {
    char count[16];
    bool exact = false;
    const char *architecture = "";
    for (int i = 0; i < n; i++) {
        if (strncmp(options[i], "--gpu-architecture=", 19) == 0) architecture = options[i] + 19;
        if (strcmp(options[i], "-fmad=false") == 0) exact = true;
    }
    int major = 0, minor = 0;
    fake_version(&major, &minor);
    if (major < 12 && strchr(architecture, 'a')) return 5; /* it has no sm_90a yet */
    if (getenv("FAKE_NVRTC_FAIL") || !exact) return 6;
    if (getenv("FAKE_NVRTC_BUILTINS") && !has_builtins()) return 7;
    snprintf(p->code, sizeof p->code, "code of the fake for %s", architecture);
    snprintf(count, sizeof count, "%d", atoi(setting("FAKE_NVRTC_COMPILED", "0")) + 1);
    setenv("FAKE_NVRTC_COMPILED", count, 1);
    return 0;
}

int fake_log_size(ls_nvrtc_program p, size_t *nbytes_p) {
    (void)p;
    *nbytes_p = strlen(setting("FAKE_NVRTC_FAIL", "")) + 1;
    return 0;
}

int fake_log(ls_nvrtc_program p, char *log) {
    (void)p;
    strcpy(log, setting("FAKE_NVRTC_FAIL", ""));
    return 0;
}

int fake_code_size(ls_nvrtc_program p, size_t *nbytes_p) {
    *nbytes_p = strlen(p->code) + 1;
    return 0;
}

int fake_code(ls_nvrtc_program p, char *code) {
    strcpy(code, p->code);
    return 0;
}

int fake_assembly_size(ls_nvrtc_program p, size_t *nbytes_p) {
    *nbytes_p = strlen(p->code) + 1;
    return 0;
}

int fake_assembly(ls_nvrtc_program p, char *text) {
    strcpy(text, p->code);
    return 0;
}
