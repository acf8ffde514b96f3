/* stored_table.h - a parameter that is used row by row, like the token embedding, in 16 bits or
 * f32.
 *
 * A table is too large to be widened as a whole: products read it as it is stored
 * (tensor/stored.h), single rows and gradients are widened as they are needed. In f32 nothing is
 * copied.
 */
#ifndef LS_MODEL_STORED_TABLE_H
#define LS_MODEL_STORED_TABLE_H

#include "model/layer.h"
#include "tensor/dtype.h"

/* Parameter i from row `row` on, as it is stored; a layer's trained parameters have one type. */
ls_stored ls_table_stored(const ls_layer *, const ls_layer_call *, int i, int64_t row);

/* Row `row` of it, in place or widened by the calling thread alone; room [C]. */
const float *ls_table_row(const ls_layer *, const ls_layer_call *, int i, int64_t row, float *room);

/* Rows of a gradient, while sums are added to them. */
typedef struct ls_table_grad {
    float *p;   /* [n, C]; NULL: the table is frozen */
    bool start; /* the chains start at 0 */
} ls_table_grad;

ls_table_grad ls_table_grad_begin(const ls_layer *, const ls_layer_call *, int i, int64_t first,
                                  int64_t n, float *room);
/* Where a product that completes rows of a gradient rounds them; NULL: ls_table_grad_end() does. */
uint16_t *ls_table_grad_rounded(const ls_layer *, const ls_layer_call *, int i, int64_t first);
void ls_table_grad_end(const ls_layer *, const ls_layer_call *, int i, int64_t first, int64_t n,
                       const ls_table_grad *);

/* n elements of a flat buffer, widened to f32 or rounded, with all threads. */
void ls_table_widen(const ls_compute *, ls_dtype, size_t n, const void *from, float *to);
void ls_table_narrow(const ls_compute *, ls_dtype, size_t n, const float *from, void *to);
/* Rounds n weights in f32, a mapping (ls_map) of *nbytes_p bytes, into a mapping of their own and
 * unmaps the old one. On failure nothing has changed. */
ls_status ls_table_round(const ls_compute *, ls_dtype, size_t n, void **weights_p, size_t *nbytes_p,
                         ls_error *);

#endif
