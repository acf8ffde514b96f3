/* gradient.c - see gradient.h. */
#include "async/gradient.h"

static ls_status take_memory(ls_async_gradient *g, ls_error *e) {
    const ls_plan *p = g->c.plan;
    void *params = NULL, *wide = NULL, *parts = NULL;
    LS_TRY(ls_map(p->share.nbytes.params, "a worker's parameters", &params, e));
    g->world.params = params;
    if (p->share.wide) LS_TRY(ls_map(p->share.nbytes.wide, "sums over micro-batches", &wide, e));
    g->world.wide = wide;
    LS_TRY(ls_map(p->share.nbytes.scalars, "norms and losses", &parts, e));
    g->world.parts = g->world.sums = parts;
    return LS_OK;
}

ls_status ls_async_gradient_open(ls_async_gradient *g, const ls_async_gradient_config *c,
                                 int64_t step, ls_error *e) {
    *g = (ls_async_gradient){.c = *c, .next = step};
    g->world.grads = c->grads;
    g->world.frozen = c->frozen;
    LS_TRY(take_memory(g, e));
    ls_exec_config x = {.plan = c->plan,
                        .world = &g->world,
                        .slot = &g->slot,
                        .threads = c->threads,
                        .busy = c->busy,
                        .cores = c->cores,
                        .loader = c->loader,
                        .first_step = step};
    x.loader.a = 0;
    x.loader.b = c->plan->share.V;
    return ls_exec_create(&x, &g->exec, e);
}

void ls_async_gradient_close(ls_async_gradient *g) {
    const ls_plan *p = g->c.plan;
    if (!p) return;
    ls_exec_free(g->exec);
    ls_unmap(g->world.params, p->share.nbytes.params);
    ls_unmap(g->world.wide, p->share.nbytes.wide);
    ls_unmap(g->world.parts, p->share.nbytes.scalars);
    *g = (ls_async_gradient){0};
}

void *ls_async_gradient_params(const ls_async_gradient *g) { return g->world.params; }

ls_status ls_async_gradient_compute(ls_async_gradient *g, int64_t step, ls_step_out *out_p,
                                    ls_optim_step *update_p, ls_error *e) {
    ls_step_in in = {.step = step, .updates = step, .clip = g->c.clip, .loss_scale = 1};
    if (step != g->next) ls_exec_seek(g->exec, step);
    g->next = step + 1;
    LS_TRY(ls_exec_gradient(g->exec, &in, e));
    ls_exec_measure(g->exec, &in, out_p, update_p);
    return LS_OK;
}

const void *ls_async_gradient_of_batch(const ls_async_gradient *g) {
    const ls_plan *p = g->c.plan;
    return (const char *)g->c.grads +
           (size_t)ls_share_sum_slot(&p->share, 0, 0) * p->share.nbytes.slot;
}
