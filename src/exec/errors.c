/* errors.c - see errors.h. */
#include "exec/errors.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "plan/memory.h"

ls_status ls_errors_map(const ls_plan *p, float **errors_p, ls_error *e) {
    size_t nbytes = ls_plan_errors_nbytes(p);
    void *m = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED)
        return ls_fail(e, LS_ENOMEM, "no memory for compression errors, %.1f MB: %s",
                       (double)nbytes / 1e6, strerror(errno));
    *errors_p = m;
    return LS_OK;
}

void ls_errors_unmap(const ls_plan *p, float *errors) { munmap(errors, ls_plan_errors_nbytes(p)); }

static bool runs(const ls_plan *p, int worker, int vw) {
    int i = ls_plan_vw_index(p, worker, vw);
    return i >= 0 && i < ls_plan_nvws(p, worker) && ls_plan_vw(p, worker, i) == vw;
}

ls_status ls_errors_collect(ls_group *g, const ls_plan *p, int64_t steps, float *errors,
                            ls_error *e) {
    int rank = ls_group_rank(g);
    for (int worker = 1; worker < p->c.nworkers; worker++)
        for (int i = 0; i < ls_plan_nvws(p, worker); i++) {
            float *x = ls_errors_of(errors, p, steps, ls_plan_vw(p, worker, i));
            if (rank == worker) LS_TRY(ls_send(g, x, p->c.model->nfloats, LS_F32, 0, e));
            if (rank == 0) LS_TRY(ls_recv(g, x, p->c.model->nfloats, LS_F32, worker, e));
        }
    return LS_OK;
}

void ls_errors_drop(const ls_plan *p, int worker, float *errors) {
    size_t nbytes = p->c.model->nfloats * sizeof *errors;
    for (int half = 0; half < 2; half++)
        for (int vw = 0; vw < p->c.V; vw++)
            if (!runs(p, worker, vw))
                madvise(ls_errors_of(errors, p, half, vw), nbytes, MADV_DONTNEED);
}
