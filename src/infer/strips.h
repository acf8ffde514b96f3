/* strips.h - a second copy of the weights of a model, in the order in which products of one row
 * read them (tensor/gemv.h), so that a token takes only the time in which memory delivers them, and
 * in which products of more rows pack them.
 *
 * Rows of tables are read from the weights as the files have them, so both stay in use.
 */
#ifndef LS_INFER_STRIPS_H
#define LS_INFER_STRIPS_H

#include "model/frozen.h"
#include "tensor/compute.h"

typedef struct ls_strips {
    void *memory; /* NULL: there are none */
    size_t nbytes;
    /* What is left to be made: */
    const ls_model *model;
    const ls_compute *compute;
    ls_dtype computes;
    ls_frozen_value *values; /* [nparams] */
    int next;
    char *to;
} ls_strips;

/* Memory for the strips of all matrices that a token is multiplied with and whose types have
 * strips; ls_strips_next() makes them, and sets them in values [nparams]. Products in bf16
 * (computes) have none of 16-bit floats. There are none if they need more than a quarter of the
 * memory that this process may use, or that is not known: tokens then take longer, with the same
 * bits. The operands must outlive them. */
ls_status ls_strips_open(const ls_model *, const ls_compute *, ls_dtype computes,
                         ls_frozen_value *values, ls_strips *s_p, ls_error *);
/* Makes the strips of one matrix more, in the compute's threads; false: there are no more. */
bool ls_strips_next(ls_strips *);
void ls_strips_close(ls_strips *);

#endif
