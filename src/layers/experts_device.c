/* experts_device.c - see experts_device.h. */
#include "layers/experts_device.h"

#include "tensor/gemm_device.h"

/* A group has ITEMS items; that of expert_activate_dx has GROUP_ROWS rows. */
enum { ITEMS = 256, GROUP_ROWS = 16, TILE = LS_GEMM_SMALL_TILE };

int64_t ls_experts_device_rows(int64_t rows, int64_t k, int64_t n) {
    return rows * (k < n ? k : n);
}

static int64_t count_of(const ls_experts_there *t) { return t->end - t->own; }
static int64_t rows_of(const ls_experts_there *t) {
    return ls_experts_device_rows(t->r->rows, t->r->k, count_of(t));
}
static const int32_t *first_of(const ls_experts_there *t) { return t->r->first + t->own; }

/* The most parts of `size` rows that the experts' rows have: each has one that is not full. */
static int64_t parts_of(const ls_experts_there *t, int64_t size) {
    int64_t rows = rows_of(t), n = count_of(t) < rows ? count_of(t) : rows;
    return n + (rows - n) / size;
}

void ls_experts_device_gather(const ls_experts_there *t, int64_t C, const float *from, float *to) {
    LS_LAUNCH(t->c, LS_KERNEL_expert_gather, rows_of(t), ls_device_groups(C, ITEMS), {.l = t->r->k},
              {.l = C}, {.l = count_of(t)}, {.from = first_of(t)}, {.from = t->r->choice},
              {.from = from}, {.p = to});
}

void ls_experts_device_scatter(const ls_experts_there *t, int64_t C, const float *from, float *to) {
    LS_LAUNCH(t->c, LS_KERNEL_expert_scatter, t->r->rows, ls_device_groups(C, ITEMS),
              {.l = t->r->k}, {.l = C}, {.l = t->own}, {.l = t->end}, {.from = first_of(t)},
              {.from = t->r->expert}, {.from = t->r->slot}, {.from = from}, {.p = to});
}

void ls_experts_device_activate(const ls_experts_there *t, int64_t F, const ls_expert_gates *g) {
    LS_LAUNCH(t->c, LS_KERNEL_expert_activate, rows_of(t), ls_device_groups(F, ITEMS), {.l = F},
              {.l = count_of(t)}, {.from = first_of(t)}, {.from = t->r->choice},
              {.from = t->r->weight}, {.from = g->gate}, {.from = g->up}, {.p = g->h});
}

void ls_experts_device_activate_back(const ls_experts_there *t, int64_t F,
                                     const ls_expert_gates *g) {
    LS_LAUNCH(t->c, LS_KERNEL_expert_activate_dx, ls_device_groups(rows_of(t), GROUP_ROWS), 1,
              {.l = F}, {.l = count_of(t)}, {.from = first_of(t)}, {.from = t->r->choice},
              {.from = t->r->weight}, {.from = g->gate}, {.from = g->up}, {.p = g->h}, {.p = g->dh},
              {.p = g->dup}, {.p = g->dweight});
}

/* The kernels of products, by the call's rows: an expert has no more. */
typedef struct kernels {
    int64_t rows, columns; /* of a group's tile */
    ls_device_kernel f32, bf16;
} kernels;

static const kernels *kernels_for(int64_t rows) {
    static const kernels all[] = {
        {LS_GEMM_FEW_ROWS, LS_GEMM_FEW_COLUMNS, LS_KERNEL_expert_gemm_rows,
         LS_KERNEL_expert_gemm_rows_blocks},
        {LS_GEMM_SOME_ROWS, LS_GEMM_FEW_COLUMNS, LS_KERNEL_expert_gemm_some,
         LS_KERNEL_expert_gemm_some_blocks},
        {TILE, TILE, LS_KERNEL_expert_gemm, LS_KERNEL_expert_gemm_blocks}};
    return &all[rows <= LS_GEMM_FEW_ROWS ? 0 : rows <= LS_GEMM_SOME_ROWS ? 1 : 2];
}

void ls_experts_device_product(const ls_experts_there *t, const ls_gemm_job *g) {
    const kernels *k = kernels_for(t->r->rows);
    LS_LAUNCH(t->c, g->bf16 ? k->bf16 : k->f32, ls_device_groups(g->N, k->columns),
              parts_of(t, k->rows), {.l = g->N}, {.l = g->K}, {.l = count_of(t)},
              {.from = first_of(t)}, {.from = g->a.p}, {.from = g->b.p}, {.l = g->b.rs},
              {.l = g->b.cs}, {.p = g->c}, {.l = g->start == LS_GEMM_ADD},
              {.l = ls_gemm_device_wide(g)});
}

void ls_experts_device_sum(const ls_experts_there *t, const ls_gemm_job *g) {
    LS_LAUNCH(t->c, g->bf16 ? LS_KERNEL_expert_gemm_dw_blocks : LS_KERNEL_expert_gemm_dw,
              ls_device_groups(g->N, TILE), ls_device_groups(g->M, TILE) * count_of(t), {.l = g->M},
              {.l = g->N}, {.from = first_of(t)}, {.from = g->a.p}, {.from = g->b.p}, {.p = g->c},
              {.l = g->start == LS_GEMM_ADD}, {.l = ls_gemm_device_wide(g)}, {.l = g->units.rows},
              {.from = t->r->choice});
}
