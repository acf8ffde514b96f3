/* gemm_device.c - see gemm_device.h. */
#include "tensor/gemm_device.h"

#include <assert.h>

/* Groups for three quarters of an H100's 132 multiprocessors: with fewer, smaller tiles are
 * faster. */
enum { TILE = 128, ENOUGH_GROUPS = 99 };

static int64_t tiles(int64_t M, int64_t N, int64_t size) {
    return ls_device_groups(M, size) * ls_device_groups(N, size);
}

static ls_device_kernel in_f32(const ls_gemm_job *g) {
    if (g->M <= LS_GEMM_FEW_ROWS) return LS_KERNEL_gemm_rows;
    if (g->M <= LS_GEMM_SOME_ROWS) return LS_KERNEL_gemm_some;
    return tiles(g->M, g->N, TILE) < ENOUGH_GROUPS ? LS_KERNEL_gemm_small : LS_KERNEL_gemm;
}

static ls_device_kernel in_blocks(const ls_gemm_job *g) {
    if (g->units.rows || g->M > LS_GEMM_SOME_ROWS) return LS_KERNEL_gemm_blocks;
    return g->M <= LS_GEMM_FEW_ROWS ? LS_KERNEL_gemm_rows_blocks : LS_KERNEL_gemm_some_blocks;
}

ls_device_kernel ls_gemm_device_kernel(const ls_gemm_job *g) {
    return g->bf16 ? in_blocks(g) : in_f32(g);
}

static bool at_16_bytes(const void *p, int64_t distance) {
    return (uintptr_t)p % 16 == 0 && distance % 4 == 0;
}

/* Are four neighbours of lines, whose elements are `along` apart, read at once? (product.k) */
static bool is_wide(const void *p, int64_t line, int64_t along, int64_t nlines) {
    return line == 1 && along != 1 && at_16_bytes(p, along) && nlines % 4 == 0;
}

int64_t ls_gemm_device_wide(const ls_gemm_job *g) {
    return is_wide(g->a.p, g->a.rs, g->a.cs, g->M) | is_wide(g->b.p, g->b.cs, g->b.rs, g->N) << 1 |
           at_16_bytes(g->c, g->ldc) << 2;
}

/* The most rows of a kernel for few of them; 0: it is another. */
static int64_t most_rows(ls_device_kernel k) {
    if (k == LS_KERNEL_gemm_rows || k == LS_KERNEL_gemm_rows_blocks) return LS_GEMM_FEW_ROWS;
    return k == LS_KERNEL_gemm_some || k == LS_KERNEL_gemm_some_blocks ? LS_GEMM_SOME_ROWS : 0;
}

static bool is_in_blocks(ls_device_kernel k) {
    return k == LS_KERNEL_gemm_blocks || k == LS_KERNEL_gemm_rows_blocks ||
           k == LS_KERNEL_gemm_some_blocks;
}

/* A kernel for few rows, which has the first parameters of the others. */
static void by_rows(const ls_compute *c, const ls_gemm_job *g, ls_device_kernel kernel) {
    assert(g->M <= most_rows(kernel) && !g->units.rows);
    LS_LAUNCH(c, kernel, ls_device_groups(g->N, LS_GEMM_FEW_COLUMNS), 1, {.l = g->M}, {.l = g->N},
              {.l = g->K}, {.from = g->a.p}, {.l = g->a.rs}, {.l = g->a.cs}, {.from = g->b.p},
              {.l = g->b.rs}, {.l = g->b.cs}, {.p = g->c}, {.l = g->ldc},
              {.l = g->start == LS_GEMM_ADD}, {.from = g->start == LS_GEMM_BIAS ? g->bias : NULL});
}

void ls_gemm_device_by(const ls_compute *c, const ls_gemm_job *g, ls_device_kernel kernel) {
    int64_t tile = kernel == LS_KERNEL_gemm ? TILE : LS_GEMM_SMALL_TILE;
    assert(!g->a.bf16 && !g->b.bf16 && !g->packed_b && !g->w.rows.data);
    assert(g->bf16 == is_in_blocks(kernel));
    assert(g->M <= INT32_MAX / 2 && g->N <= INT32_MAX / 2 && g->K <= INT32_MAX / 2);
    if (most_rows(kernel)) {
        by_rows(c, g, kernel);
        return;
    }
    LS_LAUNCH(c, kernel, ls_device_groups(g->N, tile), ls_device_groups(g->M, tile), {.l = g->M},
              {.l = g->N}, {.l = g->K}, {.from = g->a.p}, {.l = g->a.rs}, {.l = g->a.cs},
              {.from = g->b.p}, {.l = g->b.rs}, {.l = g->b.cs}, {.p = g->c}, {.l = g->ldc},
              {.l = g->start == LS_GEMM_ADD}, {.from = g->start == LS_GEMM_BIAS ? g->bias : NULL},
              {.l = ls_gemm_device_wide(g)}, {.l = g->units.rows}, {.l = g->units.first},
              {.from = g->units.row});
}

void ls_gemm_device(const ls_compute *c, const ls_gemm_job *g) {
    ls_gemm_device_by(c, g, ls_gemm_device_kernel(g));
}
