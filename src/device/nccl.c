/* nccl.c - see nccl.h. */
#include "device/nccl.h"

#include "base/library.h"

enum { OLDEST = 2700 }; /* 2.7: ncclSend, ncclRecv */

static const ls_symbol symbols[] = {
#define SYMBOL(name, symbol, parameters) {symbol, offsetof(ls_nccl, name)},
    LS_NCCL_FUNCTIONS(SYMBOL){"ncclGetErrorString", offsetof(ls_nccl, error_text)}};

static ls_nccl functions;

static ls_status set_up(ls_error *e) {
    int version = 0;
    if (functions.version(&version) == LS_NCCL_SUCCESS && version >= OLDEST) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "parallel.device_link: nccl needs NCCL 2.7 or newer, and this is number %d",
                   version);
}

static ls_library library =
    LS_LIBRARY("libnccl.so.2", symbols, functions,
               .refusal = "parallel.device_link: nccl needs libnccl.so.2, 2.7 or newer, which "
                          "can't be loaded (install it, let LD_LIBRARY_PATH name its folder, or "
                          "use host)",
               .code = LS_EINVAL, .set_up = set_up);

ls_status ls_nccl_load(const ls_nccl **nccl_p, ls_error *e) {
    LS_TRY(ls_library_need(&library, e));
    *nccl_p = &functions;
    return LS_OK;
}
