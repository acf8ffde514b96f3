/* heads_device.c - see heads_device.h. */
#include "layers/heads_device.h"

#include <assert.h>
#include <math.h>

#include "base/random.h"
#include "layers/kept.h"

/* COMMON: parameters that kernels of whole samples begin with; COLUMNS: of a group of heads_few;
 * ITEMS: of heads_keep */
enum { TILE = 64, COMMON = 17, COLUMNS = 128, ITEMS = 256 };

static int64_t tiles_of(int64_t n) { return ls_device_groups(n, TILE); }

/* A kernel in f32, or the same with products in bf16. */
#define KERNEL_OF(a, name) ((a)->bf16 ? LS_KERNEL_##name##_blocks : LS_KERNEL_##name)

static ls_device_call call_of(const ls_heads *a, ls_device_kernel kernel, int64_t groups) {
    assert(!a->stored);
    assert(a->positions_nbytes % sizeof(int32_t) == 0);
    return (ls_device_call){.kernel = kernel,
                            .groups_x = groups,
                            .groups_y = 1,
                            .args = {{.l = a->T},
                                     {.l = a->S},
                                     {.l = a->D},
                                     {.l = a->heads},
                                     {.l = a->heads / a->kv_heads},
                                     {.l = a->causal},
                                     {.l = a->window},
                                     {.f = 1.0f / sqrtf((float)a->D)},
                                     {.from = a->q},
                                     {.l = a->q_row},
                                     {.from = a->k},
                                     {.from = a->v},
                                     {.l = a->kv_row},
                                     {.from = a->mask},
                                     {.l = (int64_t)a->mask_nbytes},
                                     {.from = a->positions},
                                     {.l = (int64_t)(a->positions_nbytes / sizeof(int32_t))}}};
}

/* The mask of the probabilities, as a kernel's last parameters, from number `at` on. */
static void set_mask(const ls_heads *a, int at, ls_device_call *call) {
    if (!a->drop || !ls_dropout_acts(a->drop, a->call)) return; /* a limit of 0: none */
    ls_dropout_place place = ls_dropout_place_of(a->drop, a->call, 0);
    int64_t row = ls_device_groups(a->S, LS_DROPOUT_BLOCK) * (LS_DROPOUT_BLOCK / 4); /* places */
    uint64_t base = ((uint64_t)place.layer << 40) + (uint64_t)(a->drop->first * a->T * row);
    ls_device_arg *args = call->args + at;
    args[0].l = (int64_t)ls_random_key(place.seed, LS_STREAM_DROPOUT);
    args[1].l = (int64_t)((uint64_t)place.step << 32 | place.sample);
    args[2].l = a->drop->together ? a->drop->together : 1;
    args[3].l = (int64_t)base;
    args[4].l = ls_dropout_limit(&place);
    args[5].f = ls_dropout_scale(&place);
}

void ls_heads_device_forward(const ls_heads *a) {
    ls_device_call call =
        call_of(a, KERNEL_OF(a, heads_forward), a->n * a->heads * tiles_of(a->T) * tiles_of(a->D));
    call.args[COMMON].p = a->stat;
    call.args[COMMON + 1].p = a->y;
    set_mask(a, COMMON + 2, &call);
    ls_compute_launch(a->compute, &call);
}

/* ---- texts that are continued ---- */

/* Where keys and values are, and how: F16 is 1, Q8 2 of kernels (packed.k). */
typedef struct kept_pages {
    float *kept; /* the layer's part of the first page */
    int64_t page, type;
} kept_pages;

static kept_pages pages_of(const ls_heads *a) {
    const ls_past *past = &a->call->past;
    assert(!past->texts == !past->rows);
    if (past->texts)
        return (kept_pages){past->rows->kept + past->at, (int64_t)past->page, past->type};
    return (kept_pages){past->kept, (int64_t)ls_kept_page(a->kv_heads, a->D), past->type};
}

/* Attention of n entries of a list, or of the call's rows. */
static void attend(const ls_heads *a, const kept_pages *p, ls_device_kernel kernel, int64_t columns,
                   const int32_t *list, int64_t n) {
    const ls_past *past = &a->call->past;
    LS_LAUNCH(a->compute, kernel, n * a->heads * ls_device_groups(a->D, columns), 1, {.l = a->T},
              {.l = a->D}, {.l = a->heads}, {.l = a->heads / a->kv_heads}, {.l = a->window},
              {.f = 1.0f / sqrtf((float)a->D)}, {.from = a->q}, {.l = a->q_row}, {.from = p->kept},
              {.l = p->page}, {.l = past->n}, {.from = list},
              {.from = past->rows ? past->rows->tables : NULL}, {.p = a->y}, {.l = p->type},
              {.l = a->bf16});
}

static void keep(const ls_heads *a, const kept_pages *p) {
    const ls_past *past = &a->call->past;
    bool packed = p->type != LS_KEPT_F32;
    int64_t row = a->kv_heads * (packed ? ls_kept_blocks(a->D) : a->D);
    LS_LAUNCH(a->compute, packed ? LS_KERNEL_heads_keep_packed : LS_KERNEL_heads_keep, a->T,
              ls_device_groups(2 * row, ITEMS), {.l = a->kv_heads}, {.l = a->D}, {.from = a->k},
              {.from = a->v}, {.l = a->kv_row}, {.l = past->n},
              {.from = past->rows ? past->rows->slots : NULL}, {.p = p->kept}, {.l = p->page},
              {.l = p->type}, {.l = a->bf16});
}

void ls_heads_device_continue(const ls_heads *a) {
    const ls_past *past = &a->call->past;
    const ls_past_rows *rows = past->rows;
    ls_device_kernel few = KERNEL_OF(a, heads_few), blocks = KERNEL_OF(a, heads_pages);
    kept_pages p = pages_of(a);
    if (p.type != LS_KEPT_F32)
        few = LS_KERNEL_heads_few_packed, blocks = LS_KERNEL_heads_pages_packed;
    assert(a->n == 1 && a->causal && !a->stored && !a->mask && !a->positions);
    keep(a, &p);
    if (rows) {
        attend(a, &p, few, COLUMNS, rows->few, rows->nfew);
        attend(a, &p, blocks, TILE, rows->blocks, rows->nblocks);
    } else if (a->T <= LS_HEADS_FEW) {
        attend(a, &p, few, COLUMNS, NULL, a->T);
    } else {
        attend(a, &p, blocks, TILE, NULL, tiles_of(a->T));
    }
}

static ls_device_call back_call(const ls_heads *a, ls_device_kernel kernel, int64_t groups) {
    ls_device_call call = call_of(a, kernel, groups);
    assert(a->dy.cs == 1 && !a->dy.bf16);
    call.args[COMMON].p = a->stat;
    call.args[COMMON + 1].from = a->dy.p;
    call.args[COMMON + 2].l = a->dy.rs;
    call.args[COMMON + 3].p = a->dq;
    return call;
}

void ls_heads_device_backward(const ls_heads *a) {
    int64_t queries = a->n * a->heads * tiles_of(a->T);
    int64_t keys = a->n * a->kv_heads * tiles_of(a->S) * tiles_of(a->D);
    ls_device_call dot = back_call(a, KERNEL_OF(a, heads_dot), queries);
    ls_device_call dkv = back_call(a, KERNEL_OF(a, heads_dkv), keys);
    ls_device_call dq = back_call(a, KERNEL_OF(a, heads_dq), queries);
    dkv.args[COMMON + 4].p = a->dk;
    dkv.args[COMMON + 5].p = a->dv;
    set_mask(a, COMMON + 4, &dot);
    set_mask(a, COMMON + 6, &dkv);
    set_mask(a, COMMON + 4, &dq);
    ls_compute_launch(a->compute, &dot);
    ls_compute_launch(a->compute, &dkv);
    ls_compute_launch(a->compute, &dq);
}
