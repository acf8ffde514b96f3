/* table.h - a parameter that is used row by row, as the token embedding, from 16 bits or f32.
 *
 * It is too large to be widened whole: rows are widened as they are needed, and so are their
 * gradients. Where all is f32 nothing is copied.
 */
#ifndef LS_MODEL_TABLE_H
#define LS_MODEL_TABLE_H

#include "model/layer.h"
#include "tensor/dtype.h"

/* Rows [first, first + n) of parameter i, [n, C]: in place, or widened into room [n * C]. */
const float *ls_table_rows(const ls_layer *, const ls_layer_call *, int i, int64_t first, int64_t n,
                           float *room);

/* Row `row` of it, by the calling thread alone; room [C]. */
const float *ls_table_row(const ls_layer *, const ls_layer_call *, int i, int64_t row, float *room);

/* Gradient rows that are being added to. */
typedef struct ls_table_grad {
    float *p;   /* [n, C] */
    bool start; /* the chains start at 0 */
} ls_table_grad;

ls_table_grad ls_table_grad_begin(const ls_layer *, const ls_layer_call *, int i, int64_t first,
                                  int64_t n, float *room);
void ls_table_grad_end(const ls_layer *, const ls_layer_call *, int i, int64_t first, int64_t n,
                       const ls_table_grad *);

/* n elements of a flat buffer, widened to f32 or rounded, with all threads. */
void ls_table_widen(const ls_compute *, ls_dtype, size_t n, const void *from, float *to);
void ls_table_narrow(const ls_compute *, ls_dtype, size_t n, const float *from, void *to);
/* n weights of f32 that were mapped (ls_map), *nbytes_p bytes, become rounded ones in a mapping of
 * their own. After a failure they are as they were. */
ls_status ls_table_round(const ls_compute *, ls_dtype, size_t n, void **weights_p, size_t *nbytes_p,
                         ls_error *);

#endif
