/* whole.h - updates of parameters whose rule needs all of a parameter: norms, means of rows and
 * columns, products of matrices.
 *
 * Such a parameter has one owner (ls_param.whole), so its update sends nothing. It has two parts:
 *
 *   1. Computing reads gradient, parameter and states, and writes only its room: factors and
 *      values.
 *   2. Applying changes parameter and states, one block of LS_BLOCK after another, each a function
 *      of the block and the room, with the journal as in any update (journal.h).
 *
 * The room says for which parameter and step it is complete. The successor of a worker that was
 * killed computes again if it is not, as nothing has changed yet; else it applies the room's values
 * to the blocks that have not had the step. Sums are over blocks, then over these in order, so the
 * bits don't depend on the number of threads. apply.c calls the rules; this is what they are.
 */
#ifndef LS_OPTIM_WHOLE_H
#define LS_OPTIM_WHOLE_H

#include "optim/optimizer.h"

/* Products [M, K] x [K, N] that the update of a whole parameter computes `times` times; 0: none. */
typedef struct ls_whole_product {
    double times, M, N, K;
} ls_whole_product;
enum { LS_WHOLE_PRODUCTS = 3 };

enum { LS_WHOLE_FACTORS = 4 };

/* The update of one parameter. Pointers are to its first element. */
typedef struct ls_whole_call {
    const ls_compute *c;
    const ls_param *p;
    int64_t updates; /* before this one */
    ls_update_scalars s;
    const float *grads; /* [count] not clipped yet (s.grad_scale) */
    float *params;      /* [count] */
    float *states[LS_OPTIM_STATES];
    double *factors; /* [LS_WHOLE_FACTORS] of the room */
    float *values;   /* [values floats] of the room */
    double *sums;    /* [2][blocks] of the room, within one call */
    float *scratch;  /* [scratch floats] of the room, within one call */
} ls_whole_call;

typedef struct ls_whole_rule {
    size_t (*values)(const ls_param *);  /* floats that applying reads */
    size_t (*scratch)(const ls_param *); /* further floats for computing */
    void (*compute)(const ls_whole_call *);
    /* Elements [from, from + n) of one block. */
    void (*apply)(const ls_whole_call *, size_t from, size_t n);
    void (*products)(const ls_param *, ls_whole_product *list);
} ls_whole_rule;

extern const ls_whole_rule ls_lars, ls_lamb, ls_adafactor, ls_muon, ls_soap, ls_onebit_lamb,
    ls_rowwise;

/* Calls fn for each block [from, from + n) of the parameter, with all threads. */
typedef void ls_whole_block_fn(const ls_whole_call *, void *arg, size_t from, size_t n);
void ls_whole_each_block(const ls_whole_call *, ls_whole_block_fn *fn, void *arg);
/* The sum over the parameter's blocks of sums [blocks]. */
double ls_whole_total(const ls_whole_call *, const double *sums);
/* No floats; no products. */
size_t ls_whole_none(const ls_param *);
void ls_whole_no_products(const ls_param *, ls_whole_product *);

#endif
