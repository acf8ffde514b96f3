/* host_memory.c - see host_memory.h. */
#include "train/host_memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "base/ram.h"
#include "model/types.h"
#include "networks/network.h"
#include "plan/memory.h"
#include "tensor/dtype.h"
#include "train/layout.h"
#include "train/run.h"

static const char *where(const ls_ram *r) {
    return r->of_group ? "its control group may use" : "this machine has";
}

const char *ls_host_memory_text(double nbytes, char text[32]) {
    if (isinf(nbytes))
        snprintf(text, 32, "an unknown amount");
    else if (nbytes >= 1e9)
        snprintf(text, 32, "%.1f GB", nbytes / 1e9);
    else
        snprintf(text, 32, "%.1f MB", nbytes / 1e6);
    return text;
}

ls_status ls_host_memory_for_model(const ls_config *c, ls_error *e) {
    ls_model m;
    char wanted[32], has[32], each[3][32];
    LS_TRY(ls_network_create(c, &m, e));
    double n = (double)m.nfloats, param = (double)ls_dtype_size(ls_config_compute(c));
    double frozen = (double)m.frozen_floats * param;
    double grad = (double)ls_dtype_size(ls_config_reduce(c));
    bool in_file = c->parallel.optimizer_state == LS_STATE_FILE;
    double state = in_file ? 0 : (ls_config_compute(c) == LS_F32 ? 2 : 3) * (double)sizeof(float);
    size_t count = m.count;
    ls_model_free(&m);
    ls_ram r = ls_ram_allowed();
    double all = n * (param + grad + state) + frozen;
    if (all <= r.nbytes) return LS_OK;
    return ls_fail(
        e, LS_ENOMEM,
        "a model of %zu parameters needs %s of memory at least (parameters %s, gradients "
        "%s, optimizer %s); %s %s; use a smaller model, or more machines",
        count, ls_host_memory_text(all, wanted), ls_host_memory_text(n * param + frozen, each[0]),
        ls_host_memory_text(n * grad, each[1]), ls_host_memory_text(n * state, each[2]), where(&r),
        ls_host_memory_text(r.nbytes, has));
}

/* The three largest lines: "activations 21.0 GB, gradients 9.1 GB, ...". */
static void list_largest(ls_memory m, char *text, size_t nbytes) {
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < 3 && n < nbytes; i++) {
        char size[32];
        ls_purpose most = ls_memory_worst(&m);
        if (m.nbytes[most] == 0) return;
        n += (size_t)snprintf(text + n, nbytes - n, "%s%s %s", i ? ", " : "", ls_purpose_name(most),
                              ls_host_memory_text((double)m.nbytes[most], size));
        m.nbytes[most] = 0;
    }
}

static const char *advice(const ls_config *c, ls_purpose most) {
    bool calls = most == LS_MEM_ACTIVATIONS || most == LS_MEM_WORK;
    if (calls && c->train.micro_batch > ls_layout_micro_unit(c))
        return "a smaller train.micro_batch";
    if (calls && !ls_config_has_tokens(c)) return "parallel.recompute=2, or a smaller model";
    if (calls) return "parallel.recompute=2, or a smaller model.context";
    if (most == LS_MEM_WRITING) return "a smaller model.context, or no train.sample_prompts";
    if (most == LS_MEM_SAMPLES) return "a smaller train.batch";
    return "fewer workers or virtual workers, or a smaller model";
}

ls_host_need ls_host_memory_need(const ls_config *c, const ls_plan *p, int workers, int hosts,
                                 bool copy) {
    ls_host_need x = {.copies = copy ? (double)p->share.nbytes.copy : 0};
    /* one of async's processes has no threads that compute */
    ls_memory_config how = ls_layout_memory_of(c, p, workers > 1 ? workers - 1 : 1);
    ls_ram r = ls_ram_allowed();
    ls_plan_memory(p, &how, &x.most);
    /* one copy for all workers that share memory; others divide it */
    double all_tables = (double)p->share.nbytes.tables;
    x.tables = all_tables / p->share.nworkers * workers / hosts;
    if (copy) x.copies -= all_tables - x.tables;
    x.ahead = (double)ls_run_ahead_nbytes(c, p);
    /* Some workers need less than the one that needs most; the sum over all is known, too. */
    double all = (double)x.most.peak * workers, calls = 0;
    for (int i = LS_MEM_ACTIVATIONS; i <= LS_MEM_SAMPLES; i++) calls += (double)x.most.nbytes[i];
    calls += (double)x.most.nbytes[LS_MEM_FROZEN];
    double sum = (double)ls_share_host_nbytes(&p->share) + calls * workers;
    if (workers == p->share.nworkers && sum < all) all = sum;
    x.all = all + x.tables + x.ahead + x.copies;
    x.has = r.nbytes;
    x.where = where(&r);
    return x;
}

ls_status ls_host_memory_for_plan(const ls_config *c, const ls_plan *p, int workers, int hosts,
                                  bool copy, ls_error *e) {
    ls_host_need x = ls_host_memory_need(c, p, workers, hosts, copy);
    char wanted[32], has[32], each[32], beside[80] = "", among[64] = "", size[32], largest[160];
    if (x.all <= x.has) return LS_OK;
    list_largest(x.most, largest, sizeof largest);
    if (x.tables > 0)
        snprintf(among, sizeof among, ", tables %s", ls_host_memory_text(x.tables, size));
    if (x.ahead > 0)
        snprintf(among, sizeof among, ", gradients ahead %s", ls_host_memory_text(x.ahead, size));
    if (copy)
        snprintf(beside, sizeof beside, ", and %s for checkpoints",
                 ls_host_memory_text(x.copies, size));
    return ls_fail(
        e, LS_ENOMEM, "%d worker%s need%s %s of memory: each %s at most (%s)%s%s; %s %s; use %s",
        workers, ls_plural(workers), workers == 1 ? "s" : "", ls_host_memory_text(x.all, wanted),
        ls_host_memory_text((double)x.most.peak, each), largest, among, beside, x.where,
        ls_host_memory_text(x.has, has), advice(c, ls_memory_worst(&x.most)));
}
