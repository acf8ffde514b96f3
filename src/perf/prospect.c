/* prospect.c - see prospect.h. */
#include "perf/prospect.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "model/types.h"
#include "perf/calibrate.h"
#include "perf/estimate.h"
#include "perf/expense.h"
#include "report/timeline.h"

/* ---- the world ---- */

/* Reads "200Gb/s" as seconds per byte. */
static bool read_bandwidth(const char *text, size_t length, double *byte_s_p) {
    static const char scales[] = "kMGT";
    char *end = NULL;
    double x = strtod(text, &end), scale = 1;
    if (end == text || !(x > 0 && x < 1e15)) return false;
    for (const char *s = scales; *end && *s; s++) {
        scale *= 1e3;
        if (*end != *s) continue;
        x *= scale;
        end++;
        break;
    }
    if (*end != 'b' && *end != 'B') return false;
    x /= *end == 'b' ? 8 : 1;
    *byte_s_p = 1 / x;
    return strncmp(end + 1, "/s", 2) == 0 && end + 3 == text + length;
}

/* Reads "3us" as seconds. */
static bool read_time(const char *text, double *s_p) {
    static const struct {
        const char *unit;
        double s;
    } units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    char *end = NULL;
    double x = strtod(text, &end);
    if (end == text || !(x >= 0 && x < 1e9)) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].unit) == 0) {
            *s_p = x * units[i].s;
            return true;
        }
    return false;
}

static ls_status read_link(const char *text, ls_forecast_world *w, ls_error *e) {
    size_t length = strcspn(text, ",");
    if (text[length] && read_bandwidth(text, length, &w->byte_s) &&
        read_time(text + length + 1, &w->latency_s))
        return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "--link: '%.40s' is not the bandwidth and latency of a host's network card, "
                   "such as 200Gb/s,3us or 1.25GB/s,50us",
                   text);
}

ls_status ls_forecast_world_read(const ls_forecast_world_options *o, ls_forecast_world *w,
                                 ls_error *e) {
    *w = (ls_forecast_world){.algorithm = o->algorithm};
    if (o->algorithm && !ls_fabric_knows(o->algorithm))
        return ls_fail(e, LS_EINVAL,
                       "--algorithm: '%.40s' does not exist; docs/design/collectives.md lists them",
                       o->algorithm);
    if (o->link) LS_TRY(read_link(o->link, w, e));
    if (o->host_workers && !o->link)
        return ls_fail(e, LS_EINVAL,
                       "--host-workers: the link between the hosts is missing; add --link, e.g. "
                       "--link 200Gb/s,3us");
    w->host_workers = o->host_workers ? o->host_workers : o->link ? 1 : 0;
    return LS_OK;
}

ls_status ls_forecast_world_open(const ls_forecast_world_options *o, ls_machine *m,
                                 ls_forecast_world *w, ls_error *e) {
    LS_TRY(ls_forecast_world_read(o, w, e));
    w->machine = m;
    if (o->machine) return ls_machine_read(o->machine, m, e);
    ls_log("measuring this machine, which takes 45 seconds of processor time; --machine FILE reads "
           "what "
           "`lockstep bench machine --save FILE` has measured");
    return ls_calibrate(m, e);
}

ls_status ls_forecast_world_check(const ls_forecast_world *w, int n, ls_error *e) {
    if (!w->host_workers || n < w->host_workers || n % w->host_workers == 0) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "--host-workers %d: %d workers don't fill a whole number of such hosts",
                   w->host_workers, n);
}

void ls_forecast_note_device(const ls_config *c, const ls_machine *m) {
    if (!ls_config_has_device(c) || m->device.product > 0) return;
    ls_log("times are predicted for the cores; `lockstep bench machine --device %s --save FILE` "
           "measures the device, for --machine FILE",
           c->parallel.device);
}

/* ---- one plan ---- */

static ls_status predict_plan(const ls_config *c, const ls_plan *p, ls_prospect *x, ls_error *e) {
    LS_TRY(ls_forecast_world_check(&x->world, p->share.nworkers, e));
    LS_TRY(ls_forecast_plan(c, p, &x->world, &x->by.plan, e));
    x->step_s = x->by.plan.step_s;
    x->units_per_s = x->by.plan.units_per_s;
    LS_TRY(ls_forecast_phases(c, p->share.nworkers, &x->world, x->phases_s, e));
    return ls_expense_run_s(c, p->share.nworkers, &x->world, x->step_s, &x->run_s, e);
}

static ls_status predict_crew(const ls_config *c, const ls_plan *p, ls_prospect *x, ls_error *e) {
    if (c->sync.mode == LS_SYNC_SSP) {
        LS_TRY(ls_clocked_forecast(c, p, x->nworkers, &x->world, &x->by.clocked, e));
        x->step_s = ls_clocked_step_s(&x->by.clocked);
    } else {
        LS_TRY(ls_pushed_forecast(c, p, x->nworkers, &x->world, &x->by.pushed, e));
        x->step_s = ls_pushed_step_s(&x->by.pushed);
    }
    x->units_per_s = (double)c->train.batch * ls_config_units(c) / x->step_s;
    x->run_s = x->step_s * (double)c->train.steps;
    return LS_OK;
}

ls_status ls_prospect_make(const ls_forecast_world_options *o, bool estimate, const ls_config *c,
                           const ls_plan *p, ls_prospect *x, ls_error *e) {
    if (!estimate) {
        LS_TRY(ls_forecast_world_open(o, &x->machine, &x->world, e));
    } else {
        LS_TRY(ls_forecast_world_read(o, &x->world, e));
        LS_TRY(ls_machine_estimate(ls_config_compute(c) == LS_BF16, &x->machine, e));
        x->world.machine = &x->machine;
    }
    ls_forecast_note_device(c, &x->machine);
    return ls_config_has_crew(c) ? predict_crew(c, p, x, e) : predict_plan(c, p, x, e);
}

void ls_prospect_free(ls_prospect *x) { ls_machine_free(&x->machine); }

ls_status ls_prospect_draw(const ls_prospect *x, const ls_config *c, const ls_plan *p,
                           const char *path, ls_error *e) {
    ls_site site = ls_forecast_site(c, p, &x->world);
    ls_sim sim;
    ls_timeline t;
    LS_TRY(ls_timeline_check_path(path, e));
    LS_TRY(ls_sim_run(p, &site, true, &sim, e));
    ls_timeline_open(&t, p, "predicted", x->machine.name, 1);
    ls_timeline_add(&t, p, 0, sim.spans, (size_t)sim.nspans);
    ls_status s = ls_timeline_write(&t, path, e);
    ls_timeline_free(&t);
    ls_sim_free(&sim);
    return s;
}
