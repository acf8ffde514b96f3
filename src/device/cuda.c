/* cuda.c - see cuda.h. */
#include "device/cuda.h"

#include "base/library.h"

enum { OLDEST = 12000 };

static const ls_symbol symbols[] = {
#define SYMBOL(name, symbol, parameters) {symbol, offsetof(ls_cuda, name)},
    LS_CUDA_FUNCTIONS(SYMBOL)};

static ls_library library = LS_LIBRARY;
static ls_cuda functions;

static void load(void) {
    ls_error why = {0};
    size_t n = sizeof symbols / sizeof *symbols;
    int got = 0;
    if (ls_library_load("libcuda.so.1", symbols, n, &functions, &why) != LS_OK) {
        ls_fail(&library.trouble, LS_EINVAL,
                "device cuda needs an NVIDIA GPU and its driver, 525 or newer, which can't be "
                "loaded: %s",
                why.msg);
    } else if ((got = functions.version(&functions.driver)) != 0) {
        ls_fail(&library.trouble, LS_EINVAL,
                "device cuda: NVIDIA's driver does not answer (error %d)", got);
    } else if (functions.driver < OLDEST) {
        ls_fail(&library.trouble, LS_EINVAL,
                "device cuda: NVIDIA's driver is too old: it supports CUDA %d.%d, and 12.0 is "
                "needed; install driver 525 or newer",
                functions.driver / 1000, functions.driver % 1000 / 10);
    } else if ((got = functions.init(0)) != 0 && got != LS_CUDA_NO_DEVICE) {
        const char *text = NULL;
        functions.error_text(got, &text);
        ls_fail(&library.trouble, LS_EINVAL,
                "device cuda: NVIDIA's driver can't be used: %s (error %d); nvidia-smi may say why",
                text ? text : "not known", got);
    }
}

ls_status ls_cuda_load(const ls_cuda **cuda_p, ls_error *e) {
    LS_TRY(ls_library_need(&library, load, e));
    *cuda_p = &functions;
    return LS_OK;
}
