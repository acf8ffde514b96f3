/* clocked.c - see clocked.h. */
#include "perf/clocked.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "train/layout.h"

/* Workers take gradients in order. The next one to be free takes the next gradient, and begins it
 * when its parameters are there. */
double ls_clocked_step_s(const ls_clocked *k) {
    enum { MOST = 256 };
    int64_t steps = k->until < MOST ? k->until : MOST, warm = k->staleness + 1;
    double *idle = LS_NEW_ARRAY(double, (size_t)k->nworkers); /* when each is free */
    double *made = LS_NEW_ARRAY(double, (size_t)steps + 1);   /* when each version is there */
    for (int64_t clock = 0; clock < steps; clock++) {
        double begins = made[clock > k->staleness ? clock - k->staleness : 0], last = 0;
        for (int vw = 0; vw < k->V; vw++) {
            int w = 0;
            for (int i = 1; i < k->nworkers; i++)
                if (idle[i] < idle[w]) w = i;
            idle[w] = fmax(idle[w], begins) + k->gradient_s * (w == 0 ? k->slow : 1);
            last = fmax(last, idle[w]);
        }
        made[clock + 1] = fmax(made[clock], last) + k->update_s;
    }
    double s = steps > warm ? (made[steps] - made[warm]) / (double)(steps - warm)
                            : made[steps] / (double)steps;
    free(made);
    free(idle);
    return s;
}

/* ---- prices ---- */

static double sum_of(const ls_sim *sim, const ls_action_kind *kinds, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += sim->kinds_s[kinds[i]];
    return s;
}

ls_status ls_clocked_gradient(const ls_config *c, int n, int64_t nvirtual,
                              const ls_forecast_world *w, double *s_p, ls_error *e) {
    static const ls_action_kind kinds[] = {LS_LOAD, LS_FORWARD, LS_RECOMPUTE, LS_BACKWARD};
    ls_config one = *c;
    ls_layout l;
    ls_sim sim;
    one.sync.mode = LS_SYNC_ALL_REDUCE;
    one.train.virtual_workers = n * nvirtual;
    one.train.batch = c->train.batch / c->train.virtual_workers * n * nvirtual;
    LS_TRY(ls_layout_make(&one, n, NULL, &l, e));
    ls_site site = ls_forecast_site(&one, &l.plan, w);
    ls_status s = ls_sim_run(&l.plan, &site, false, &sim, e);
    if (s == LS_OK) {
        *s_p = sum_of(&sim, kinds, 4) +
               (double)l.plan.share.nbytes.params * w->machine->shared_copy_byte_s;
        ls_sim_free(&sim);
    }
    ls_layout_free(&l);
    return s;
}

/* The main process copies gradients and older parameters, adds, and updates. */
static ls_status price_update(const ls_config *c, const ls_plan *p, int n,
                              const ls_forecast_world *w, double *s_p, ls_error *e) {
    static const ls_action_kind kinds[] = {LS_ADD, LS_NORM, LS_UPDATE};
    ls_site site = ls_forecast_site(c, p, w);
    site.threads = ls_forecast_threads(c, n, w->machine); /* as many as a worker */
    ls_sim sim;
    LS_TRY(ls_sim_run(p, &site, false, &sim, e));
    double copied = (double)p->share.nbytes.slot * p->share.V + (double)p->share.nbytes.params;
    *s_p = sum_of(&sim, kinds, 3) + copied * w->machine->shared_copy_byte_s;
    ls_sim_free(&sim);
    return LS_OK;
}

ls_status ls_clocked_forecast(const ls_config *c, const ls_plan *p, int n,
                              const ls_forecast_world *w, ls_clocked *k_p, ls_error *e) {
    ls_clocked k = {.nworkers = n,
                    .V = p->share.V,
                    .staleness = c->sync.staleness,
                    .until = c->train.steps,
                    .slow = 1};
    LS_TRY(ls_clocked_gradient(c, n, 1, w, &k.gradient_s, e));
    LS_TRY(price_update(c, p, n, w, &k.update_s, e));
    *k_p = k;
    return LS_OK;
}
