/* experts_device.c - see experts_device.h. */
#include "layers/experts_device.h"

#include "tensor/gemm_device.h"

/* A group has ITEMS items; that of expert_activate_dx has GROUP_ROWS rows. */
enum { ITEMS = 256, GROUP_ROWS = 16, TILE = LS_GEMM_SMALL_TILE };

/* The places of the expert's choices, and of the first of the layer's. */
static const int32_t *first_of(const ls_expert_there *t) { return t->r->first + t->e; }
static const int32_t *begin_of(const ls_expert_there *t, bool saved) {
    return saved && t->saves ? t->r->first + t->own : NULL;
}
static const int32_t *slots_of(const ls_expert_there *t) {
    return t->r->capacity ? t->r->slot : NULL;
}

void ls_experts_device_gather(const ls_expert_there *t, int64_t C, const float *from, float *to) {
    LS_LAUNCH(t->c, LS_KERNEL_expert_gather, t->r->rows, ls_device_groups(C, ITEMS), {.l = t->r->k},
              {.l = C}, {.from = first_of(t)}, {.from = t->r->choice}, {.from = from}, {.p = to});
}

void ls_experts_device_scatter(const ls_expert_there *t, int64_t C, const float *from, float *to) {
    LS_LAUNCH(t->c, LS_KERNEL_expert_scatter, t->r->rows, ls_device_groups(C, ITEMS),
              {.l = t->r->k}, {.l = C}, {.l = t->own}, {.l = t->end}, {.from = first_of(t)},
              {.from = t->r->choice}, {.from = t->r->expert}, {.from = slots_of(t)}, {.from = from},
              {.p = to});
}

void ls_experts_device_clear(const ls_expert_there *t, int64_t C, float *to) {
    LS_LAUNCH(t->c, LS_KERNEL_expert_clear, t->r->rows, ls_device_groups(C, ITEMS), {.l = t->r->k},
              {.l = C}, {.l = t->own}, {.l = t->end}, {.from = t->r->expert}, {.from = slots_of(t)},
              {.p = to});
}

void ls_experts_device_activate(const ls_expert_there *t, int64_t F, const ls_expert_gates *g) {
    LS_LAUNCH(t->c, LS_KERNEL_expert_activate, t->r->rows, ls_device_groups(F, ITEMS), {.l = F},
              {.from = first_of(t)}, {.from = begin_of(t, true)}, {.from = t->r->choice},
              {.from = t->r->weight}, {.from = g->gate}, {.from = g->up}, {.p = g->h});
}

void ls_experts_device_activate_back(const ls_expert_there *t, int64_t F,
                                     const ls_expert_gates *g) {
    LS_LAUNCH(t->c, LS_KERNEL_expert_activate_dx, ls_device_groups(t->r->rows, GROUP_ROWS), 1,
              {.l = F}, {.from = first_of(t)}, {.from = begin_of(t, true)}, {.from = t->r->choice},
              {.from = t->r->weight}, {.from = g->gate}, {.from = g->up}, {.from = g->dh},
              {.p = g->h}, {.p = g->dgate}, {.p = g->dup}, {.p = g->dweight});
}

void ls_experts_device_product(const ls_expert_there *t, const ls_gemm_job *g, bool saved) {
    bool few = t->r->rows <= LS_GEMM_FEW_ROWS;
    ls_device_kernel tiles = g->bf16 ? LS_KERNEL_expert_gemm_blocks : LS_KERNEL_expert_gemm;
    ls_device_kernel rows =
        g->bf16 ? LS_KERNEL_expert_gemm_rows_blocks : LS_KERNEL_expert_gemm_rows;
    LS_LAUNCH(t->c, few ? rows : tiles, ls_device_groups(g->N, few ? LS_GEMM_FEW_COLUMNS : TILE),
              few ? 1 : ls_device_groups(t->r->rows, TILE), {.l = g->N}, {.l = g->K},
              {.from = first_of(t)}, {.from = begin_of(t, saved)}, {.from = g->a.p},
              {.from = g->b.p}, {.l = g->b.rs}, {.l = g->b.cs}, {.p = g->c},
              {.l = g->start == LS_GEMM_ADD}, {.l = ls_gemm_device_wide(g)});
}

void ls_experts_device_sum(const ls_expert_there *t, const ls_gemm_job *g) {
    LS_LAUNCH(t->c, g->bf16 ? LS_KERNEL_expert_gemm_dw_blocks : LS_KERNEL_expert_gemm_dw,
              ls_device_groups(g->N, TILE), ls_device_groups(g->M, TILE), {.l = g->M}, {.l = g->N},
              {.from = first_of(t)}, {.from = g->a.p}, {.from = g->b.p}, {.p = g->c},
              {.l = g->start == LS_GEMM_ADD}, {.l = ls_gemm_device_wide(g)}, {.l = g->units.rows},
              {.from = t->r->choice});
}
