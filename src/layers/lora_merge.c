/* lora_merge.c - see lora_merge.h. */
#include "layers/lora_merge.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "layers/linear.h"
#include "tensor/gemm.h"

void ls_lora_add_to(const ls_lora_values *v, const ls_lora_rows *r) {
    const ls_linear_own *o = &LS_LAYER_OWN_OF(ls_linear_own, v->layer);
    int64_t in = v->layer->C;
    r->compute->k->affine(r->n * o->rank, v->b + r->first * o->rank, o->scale, 0, r->room);
    ls_gemm_in_thread(r->compute, r->thread,
                      &(ls_gemm_job){.M = r->n,
                                     .N = in,
                                     .K = o->rank,
                                     .a = ls_matrix_of(r->room, o->rank),
                                     .b = ls_matrix_of(v->a, in),
                                     .c = r->rows,
                                     .ldc = in,
                                     .start = LS_GEMM_ADD});
}

void ls_lora_merge(const ls_lora_values *v, const ls_compute *c, int64_t first, int64_t n,
                   float *rows) {
    const ls_linear_own *o = &LS_LAYER_OWN_OF(ls_linear_own, v->layer);
    int64_t in = v->layer->C;
    float *room = LS_NEW_ARRAY(float, (size_t)(n * o->rank));
    ls_lora_add_to(v, &(ls_lora_rows){c, 0, first, n, rows, room});
    free(room);
    for (int64_t i = 0; v->magnitude && i < n; i++) {
        float norm = sqrtf(c->k->sum_squares(in, rows + i * in));
        float factor = norm > 0 ? v->magnitude[first + i] * (1 / norm) : 0;
        c->k->affine(in, rows + i * in, factor, 0, rows + i * in);
    }
}
