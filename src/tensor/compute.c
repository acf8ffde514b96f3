/* compute.c - see compute.h. A thread's memory: [GEMM work | scratch], padded to a page. */
#include "tensor/compute.h"

#include "base/mem.h"
#include "base/round_up.h"
#include "tensor/gemm.h"

static size_t stride_of(size_t scratch_floats) {
    return ls_round_up(LS_GEMM_WORK + scratch_floats, 1024);
}

size_t ls_compute_nbytes(int nthreads, size_t scratch_floats) {
    return (size_t)nthreads * stride_of(scratch_floats) * sizeof(float);
}

ls_status ls_compute_init(ls_compute *c, int nthreads, size_t scratch_floats, ls_error *e) {
    *c = (ls_compute){.nthreads = nthreads, .scratch_floats = scratch_floats};
    c->stride = stride_of(scratch_floats);
    c->memory_nbytes = ls_compute_nbytes(nthreads, scratch_floats);
    LS_TRY(ls_kernels_pick(&c->k, e));
    void *p = NULL;
    LS_TRY(ls_map(c->memory_nbytes, "scratch", &p, e));
    c->memory = p;
    ls_status s = ls_pool_create(nthreads, &c->pool, e);
    if (s != LS_OK) ls_compute_close(c);
    return s;
}

void ls_compute_close(ls_compute *c) {
    ls_pool_free(c->pool);
    ls_unmap(c->memory, c->memory_nbytes);
    *c = (ls_compute){0};
}

float *ls_compute_gemm_work(const ls_compute *c, int thread) {
    return c->memory + (size_t)thread * c->stride;
}

float *ls_compute_scratch(const ls_compute *c, int thread) {
    return ls_compute_gemm_work(c, thread) + LS_GEMM_WORK;
}
