/* whole_rule.h - the two parts of a rule that updates whole parameters, for whole.c. */
#ifndef LS_OPTIM_WHOLE_RULE_H
#define LS_OPTIM_WHOLE_RULE_H

#include "optim/whole.h"

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
