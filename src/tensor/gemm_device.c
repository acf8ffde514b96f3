/* gemm_device.c - see gemm_device.h. */
#include "tensor/gemm_device.h"

#include <assert.h>

void ls_gemm_device(const ls_compute *c, const ls_gemm_job *g) {
    enum { TILE = 64 };
    assert(!g->bf16 && !g->a.bf16 && !g->b.bf16 && !g->packed_b && !g->w.rows.data);
    ls_compute_launch(
        c, &(ls_device_call){.kernel = LS_KERNEL_gemm,
                             .groups_x = ls_device_groups(g->N, TILE),
                             .groups_y = ls_device_groups(g->M, TILE),
                             .args = {{.l = g->M},
                                      {.l = g->N},
                                      {.l = g->K},
                                      {.from = g->a.p},
                                      {.l = g->a.rs},
                                      {.l = g->a.cs},
                                      {.from = g->b.p},
                                      {.l = g->b.rs},
                                      {.l = g->b.cs},
                                      {.p = g->c},
                                      {.l = g->ldc},
                                      {.l = g->start == LS_GEMM_ADD},
                                      {.from = g->start == LS_GEMM_BIAS ? g->bias : NULL}}});
}
