/* strips.c - see strips.h. */
#include "infer/strips.h"

#include <math.h>

#include "base/mem.h"
#include "base/ram.h"
#include "base/round_up.h"
#include "tensor/gemv.h"

enum { LINE = 64, PART = 4 }; /* of memory */

/* Bytes of the strips of parameter i; 0: it has none. */
static size_t nbytes_of(const ls_model *m, ls_dtype computes, const ls_frozen_value *values,
                        int i) {
    const ls_param *p = &m->params[i];
    if (!p->frozen || p->ndims != 2 || !ls_gemv_has_strips(values[i].type, p->dims[1])) return 0;
    if (computes != LS_F32 && ls_block_elements(values[i].type) == 1) return 0;
    if (!ls_model_reads_stored(m, i) || !ls_model_multiplies(m, i)) return 0;
    return ls_round_up(ls_block_nbytes(values[i].type, (int64_t)p->count), LINE);
}

ls_status ls_strips_open(const ls_model *m, const ls_compute *c, ls_dtype computes,
                         ls_frozen_value *values, ls_strips *s_p, ls_error *e) {
    ls_strips s = {.model = m, .compute = c, .computes = computes, .values = values};
    for (int i = 0; i < m->nparams; i++) s.nbytes += nbytes_of(m, computes, values, i);
    double allowed = ls_ram_allowed().nbytes;
    if (s.nbytes == 0 || isinf(allowed) || (double)s.nbytes > allowed / PART) return LS_OK;
    LS_TRY(ls_map(s.nbytes, "weights in strips", &s.memory, e));
    s.to = s.memory;
    *s_p = s;
    return LS_OK;
}

bool ls_strips_next(ls_strips *s) {
    if (!s->memory) return false;
    size_t nbytes = 0;
    while (s->next < s->model->nparams &&
           (nbytes = nbytes_of(s->model, s->computes, s->values, s->next)) == 0)
        s->next++;
    if (nbytes == 0) return false;
    const int64_t *dims = s->model->params[s->next].dims;
    ls_gemv_strips(s->compute, s->values[s->next], dims[0], dims[1], s->to);
    s->values[s->next++].strips = s->to;
    s->to += nbytes;
    return true;
}

void ls_strips_close(ls_strips *s) {
    ls_unmap(s->memory, s->nbytes);
    *s = (ls_strips){0};
}
