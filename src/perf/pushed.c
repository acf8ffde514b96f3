/* pushed.c - see pushed.h. */
#include "perf/pushed.h"

#include <math.h>

#include "perf/clocked.h"

/* A worker computes, and waits until its gradient is applied. Where workers serve shards, each also
 * applies its shard's part of all gradients: together a whole update for each gradient of its
 * own. */
double ls_pushed_step_s(const ls_pushed *k) {
    double part_s = k->nservers ? k->update_s / k->nservers : k->update_s;
    double workers_s = (k->gradient_s + part_s) / k->nworkers;
    double servers_s = k->nservers ? part_s : 0;
    return fmax(fmax(workers_s, servers_s), k->link_s);
}

static ls_status price_update(const ls_config *c, const ls_plan *p, const ls_forecast_world *w,
                              double *s_p, ls_error *e) {
    ls_config one = *c;
    one.parallel.threads = 1; /* that a server has */
    ls_site site = ls_forecast_site(&one, p, w);
    ls_sim sim;
    LS_TRY(ls_sim_run(p, &site, false, &sim, e));
    *s_p = sim.kinds_s[LS_UPDATE];
    ls_sim_free(&sim);
    return LS_OK;
}

ls_status ls_pushed_forecast(const ls_config *c, const ls_plan *p, int n,
                             const ls_forecast_world *w, ls_pushed *k_p, ls_error *e) {
    ls_pushed k = {.nworkers = n, .nservers = (int)c->sync.servers};
    size_t out = p->share.nbytes.params, in = p->share.nbytes.slot;
    LS_TRY(ls_clocked_gradient(c, n, c->train.virtual_workers, w, &k.gradient_s, e));
    LS_TRY(price_update(c, p, w, &k.update_s, e));
    k.link_s = (double)(out > in ? out : in) * w->byte_s; /* each way has its bandwidth */
    *k_p = k;
    return LS_OK;
}
