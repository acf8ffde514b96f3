/* nccl.c - see nccl.h. */
#include "device/nccl.h"

#include "base/library.h"

enum { OLDEST = 2700 }; /* 2.7: ncclSend, ncclRecv */

static const ls_symbol symbols[] = {
#define SYMBOL(name, symbol, parameters) {symbol, offsetof(ls_nccl, name)},
    LS_NCCL_FUNCTIONS(SYMBOL){"ncclGetErrorString", offsetof(ls_nccl, error_text)}};

static ls_library library = LS_LIBRARY;
static ls_nccl functions;

static void load(void) {
    ls_error why = {0};
    size_t n = sizeof symbols / sizeof *symbols;
    int version = 0;
    if (ls_library_load("libnccl.so.2", symbols, n, &functions, &why) != LS_OK) {
        ls_fail(
            &library.trouble, LS_EINVAL,
            "parallel.device_link: nccl needs libnccl.so.2, 2.7 or newer, which can't be loaded: "
            "%s; install it, let LD_LIBRARY_PATH name its folder, or use host",
            why.msg);
    } else if (functions.version(&version) != LS_NCCL_SUCCESS || version < OLDEST) {
        ls_fail(&library.trouble, LS_EINVAL,
                "parallel.device_link: nccl needs NCCL 2.7 or newer, and this is number %d",
                version);
    }
}

ls_status ls_nccl_load(const ls_nccl **nccl_p, ls_error *e) {
    LS_TRY(ls_library_need(&library, load, e));
    *nccl_p = &functions;
    return LS_OK;
}
