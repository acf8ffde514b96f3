/* cuda.c - see cuda.h. */
#include "device/cuda.h"

#include "base/library.h"

enum { OLDEST = 12000 };

static const ls_symbol symbols[] = {
#define SYMBOL(name, symbol, parameters) {symbol, offsetof(ls_cuda, name)},
    LS_CUDA_FUNCTIONS(SYMBOL)};

static ls_cuda functions;

/* What mends an error of cuInit(). */
static const char *advice(int code) {
    switch (code) {
    case LS_CUDA_STUB: return "take .../stubs, which is for linking, out of LD_LIBRARY_PATH";
    case LS_CUDA_NOT_READY:
        return "GPUs with NVSwitch need the service nvidia-fabricmanager, of the driver's version";
    case LS_CUDA_MISMATCH:
        return "the driver was updated: restart the machine, or the container with its libcuda";
    case LS_CUDA_COMPAT: return "take CUDA's folder compat out of LD_LIBRARY_PATH";
    case LS_CUDA_UNKNOWN:
        return "modprobe nvidia_uvm may help; a container needs /dev/nvidia-uvm (--gpus all)";
    default:
        if (code >= LS_CUDA_MPS && code <= LS_CUDA_MPS_LAST)
            return "look at nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY";
        return "nvidia-smi may say why";
    }
}

static ls_status set_up(ls_error *e) {
    const char *text = NULL;
    int got = functions.version(&functions.driver);
    if (got != 0)
        return ls_fail(e, LS_EINVAL, "device cuda: NVIDIA's driver does not answer (error %d); %s",
                       got, advice(got));
    if (functions.driver < OLDEST)
        return ls_fail(e, LS_EINVAL,
                       "device cuda: NVIDIA's driver is too old: it supports CUDA %d.%d, and 12.0 "
                       "is needed; install driver 525 or newer",
                       functions.driver / 1000, functions.driver % 1000 / 10);
    got = functions.init(0);
    if (got == 0 || got == LS_CUDA_NO_DEVICE) return LS_OK;
    functions.error_text(got, &text);
    return ls_fail(e, LS_EINVAL, "device cuda: NVIDIA's driver can't be used: %s (error %d); %s",
                   text ? text : "not known", got, advice(got));
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
