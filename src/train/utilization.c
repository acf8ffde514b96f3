/* utilization.c - see utilization.h. */
#include "train/utilization.h"

#include "base/cores.h"
#include "base/log.h"
#include "tensor/peak.h"

static bool in_bf16(const ls_config *c) { return c->train.compute == LS_COMPUTE_BF16; }

double ls_utilization_core(const ls_config *c, int workers) {
    const ls_kernels *k = NULL;
    int here = ls_cores();
    int64_t wanted = (int64_t)workers * ls_config_threads(c, workers, here);
    int cores = (int)(wanted < 1 ? 1 : wanted < here ? wanted : here);
    if (ls_kernels_pick(&k, NULL) != LS_OK) return 0;
    return ls_peak_estimate(k, in_bf16(c), cores) / cores;
}

/* The cores of all workers. Those on this host have at most as many as the host, and other hosts
 * are taken to be like this one. */
static double cores_of(const ls_member *m) {
    const ls_run *r = m->run;
    int near = r->nasync ? r->nasync : m->seat.near;
    int all = r->nasync ? r->nasync : ls_group_size(m->group);
    double wanted = r->nasync ? (double)near * ls_member_threads(m) : m->near.computing;
    double here = m->seat.all;
    return (wanted < here ? wanted : here) * all / near;
}

/* Hosts that compute for this one come and go between any two steps. */
static bool has_guests(const ls_run *r) { return r->nasync && (r->listen || r->join); }

void ls_utilization_set(const ls_member *m, ls_metrics *to, bool logs) {
    const ls_run *r = m->run;
    const ls_model *model = ls_layout_evaluated(m->layout);
    const ls_layer *unknown = ls_model_without_flops(model);
    double flops = ls_model_flops(model);
    bool device = ls_config_has_device(&r->config);
    bool known = r->core_flops > 0 && !unknown && !has_guests(r) && flops > 0 && !device;
    ls_metrics_set_peak(to, known ? flops : 0, known ? r->core_flops * cores_of(m) : 0);
    if (!logs || known) return;
    if (unknown)
        ls_log(
            "metrics have no mfu, the share of the processor's peak: layer '%s' does not say how "
            "many operations it takes (flops of ls_layer_sizes)",
            unknown->name);
    else if (device)
        ls_log("metrics have no mfu, the share of the processor's peak: that of a device is not "
               "known");
    else if (has_guests(r))
        ls_log(
            "metrics have no mfu, the share of the processor's peak: it is not known which cores "
            "other hosts bring");
}
