/* device_nccl.c - see device_nccl.h. */
#include "device/device_nccl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/device_cuda.h"

struct ls_device_nccl {
    ls_device *device;
    const ls_nccl *nccl;
    ls_nccl_comm comm;
};

static ls_status check(const ls_nccl *nccl, int got, const char *what, ls_error *e) {
    if (got == LS_NCCL_SUCCESS) return LS_OK;
    const char *text = nccl->error_text(got);
    return ls_fail(e, LS_EIO, "%s failed: %s (NCCL's error %d; NCCL_DEBUG=INFO says more)", what,
                   text ? text : "not known", got);
}

ls_status ls_device_nccl_id(ls_nccl_id *id, ls_error *e) {
    const ls_nccl *nccl = NULL;
    LS_TRY(ls_nccl_load(&nccl, e));
    return check(nccl, nccl->make_id(id), "ncclGetUniqueId", e);
}

ls_status ls_device_nccl_open(ls_device *d, const ls_nccl_id *id, int rank, int n,
                              ls_device_nccl **x_p, ls_error *e) {
    ls_device_nccl x = {.device = d};
    if (strcmp(d->ops->kind, "cuda") != 0)
        return ls_fail(e, LS_EINVAL, "parallel.device_link: nccl is for devices cuda, and not %s",
                       d->ops->kind);
    LS_TRY(ls_nccl_load(&x.nccl, e));
    LS_TRY(ls_device_cuda_enter(d, e));
    int got = x.nccl->open(&x.comm, n, *id, rank);
    ls_device_cuda_leave(d);
    LS_TRY(check(x.nccl, got, "ncclCommInitRank", e));
    *x_p = LS_NEW(ls_device_nccl);
    **x_p = x;
    return LS_OK;
}

void ls_device_nccl_close(ls_device_nccl *x) {
    if (!x) return;
    if (ls_device_cuda_enter(x->device, NULL) == LS_OK) {
        x->nccl->abort(x->comm);
        ls_device_cuda_leave(x->device);
    }
    free(x);
}

static int exchange(const ls_device_nccl *x, ls_cuda_stream s, const ls_device_message *m, int n) {
    int got = x->nccl->group_start(), end = LS_NCCL_SUCCESS;
    if (got != LS_NCCL_SUCCESS) return got;
    for (int i = 0; i < n && got == LS_NCCL_SUCCESS; i++)
        got = m[i].to ? x->nccl->receive(m[i].to, m[i].nbytes, LS_NCCL_UINT8, m[i].peer, x->comm, s)
                      : x->nccl->send(m[i].from, m[i].nbytes, LS_NCCL_UINT8, m[i].peer, x->comm, s);
    end = x->nccl->group_end();
    return got == LS_NCCL_SUCCESS ? end : got;
}

ls_status ls_device_nccl_exchange(ls_device_nccl *x, const ls_device_message *m, int n,
                                  ls_error *e) {
    LS_TRY(ls_device_cuda_enter(x->device, e));
    int got = exchange(x, ls_device_cuda_stream(x->device, LS_DEVICE_COMPUTE), m, n);
    ls_device_cuda_leave(x->device);
    return check(x->nccl, got, "a message between devices", e);
}
