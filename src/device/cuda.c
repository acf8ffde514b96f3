/* cuda.c - see cuda.h. */
#include "device/cuda.h"

#include "base/library.h"

enum { OLDEST = 12000 };

static const ls_symbol symbols[] = {
#define SYMBOL(name, symbol, parameters) {symbol, offsetof(ls_cuda, name)},
    LS_CUDA_FUNCTIONS(SYMBOL)};

static ls_cuda functions;

static ls_status set_up(ls_error *e) {
    const char *text = NULL;
    int got = functions.version(&functions.driver);
    if (got != 0)
        return ls_fail(e, LS_EINVAL, "device cuda: NVIDIA's driver does not answer (error %d)",
                       got);
    if (functions.driver < OLDEST)
        return ls_fail(e, LS_EINVAL,
                       "device cuda: NVIDIA's driver is too old: it supports CUDA %d.%d, and 12.0 "
                       "is needed; install driver 525 or newer",
                       functions.driver / 1000, functions.driver % 1000 / 10);
    got = functions.init(0);
    if (got == 0 || got == LS_CUDA_NO_DEVICE) return LS_OK;
    functions.error_text(got, &text);
    return ls_fail(
        e, LS_EINVAL,
        "device cuda: NVIDIA's driver can't be used: %s (error %d); nvidia-smi may say why",
        text ? text : "not known", got);
}

static ls_library library =
    LS_LIBRARY("libcuda.so.1", symbols, functions,
               .refusal = "device cuda needs an NVIDIA GPU and its driver, 525 or newer, which "
                          "can't be loaded",
               .code = LS_EINVAL, .set_up = set_up);

ls_status ls_cuda_load(const ls_cuda **cuda_p, ls_error *e) {
    LS_TRY(ls_library_need(&library, e));
    *cuda_p = &functions;
    return LS_OK;
}
