/* solo.c - see solo.h. */
#include "exec/solo.h"

#include "base/mem.h"

static ls_status map(size_t nbytes, void **p_p, ls_error *e) {
    return nbytes ? ls_map(nbytes, "a gradient that is computed twice", p_p, e) : LS_OK;
}

static ls_status take_memory(ls_solo *x, const ls_model *model, void *grads, double *parts,
                             ls_error *e) {
    void *wide = NULL, *sums = parts;
    x->grads_nbytes = grads ? 0 : model->nfloats * ls_dtype_size(x->plan->share.reduce);
    x->wide_nbytes = x->plan->share.wide ? model->nfloats * sizeof(float) : 0;
    x->sums_nbytes = parts ? 0 : x->plan->share.nscalars * sizeof(double);
    LS_TRY(map(x->grads_nbytes, &grads, e));
    x->world.grads = grads;
    LS_TRY(map(x->wide_nbytes, &wide, e));
    x->world.wide = wide;
    LS_TRY(map(x->sums_nbytes, &sums, e));
    x->world.parts = sums;
    return LS_OK;
}

ls_status ls_solo_open(ls_solo *x, const ls_solo_config *c, const ls_solo_task *t, ls_error *e) {
    *x = (ls_solo){.plan = c->plan};
    LS_TRY(take_memory(x, c->plan->share.model, t->grads, t->parts, e));
    x->world.params = c->params;
    x->world.frozen = c->frozen;
    ls_exec_config ec = {.plan = c->plan,
                         .world = &x->world,
                         .slot = &x->slot,
                         .worker = t->vw,
                         .threads = c->threads,
                         .busy = c->busy,
                         .cores = c->cores,
                         .first_step = t->steps,
                         .rows = c->rows,
                         .loader = c->loader};
    ec.loader.a = t->vw;
    ec.loader.b = t->vw + 1;
    return ls_exec_create(&ec, &x->exec, e);
}

void ls_solo_move(ls_solo *x, const ls_solo_task *t) {
    x->world.grads = t->grads;
    x->world.parts = t->parts;
    ls_exec_aim(x->exec, t->vw, t->steps);
}

void ls_solo_close(ls_solo *x) {
    ls_exec_free(x->exec);
    if (x->grads_nbytes) ls_unmap(x->world.grads, x->grads_nbytes);
    ls_unmap(x->world.wide, x->wide_nbytes);
    if (x->sums_nbytes) ls_unmap(x->world.parts, x->sums_nbytes);
    *x = (ls_solo){0};
}
