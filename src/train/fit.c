/* fit.c - see fit.h.
 *
 * Every combination is planned, and the plan tells what it needs. Which costs least is told by the
 * plan, too: more computing first (it always costs time), then more bytes sent (which may hide
 * behind computing), then smaller micro-batches (thinner matrix products).
 */
#include "train/fit.h"

#include <stdlib.h>

#include "base/log.h"
#include "train/run.h"

enum { MOST_SEGMENTS = 16 };

bool ls_fit_one_copy(const ls_config *c, int nworkers) {
    int64_t t = c->parallel.transport;
    return nworkers > 1 && c->parallel.zero > 0 && t != LS_TRANSPORT_TCP && t != LS_TRANSPORT_MPI;
}

static double flops(const ls_plan *p) {
    double sum = 0;
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        if (a->worker != 0) continue;
        double forward = p->c.model->layers[a->layer].forward_flops;
        if (a->kind == LS_FORWARD || a->kind == LS_RECOMPUTE) sum += forward;
        if (a->kind == LS_BACKWARD) sum += 2 * forward;
    }
    return sum;
}

static double sent(const ls_plan *p) {
    double sum = 0;
    for (int i = 0; i < p->nactions; i++)
        if (p->actions[i].worker == LS_ALL_WORKERS) sum += (double)p->actions[i].nbytes;
    return sum / ((double)p->c.model->nfloats * sizeof(float));
}

/* The config with a fit's settings, measured. */
static ls_status measure(const ls_config *c, int nworkers, ls_fit *f, ls_error *e) {
    ls_config with = *c;
    ls_model m;
    ls_plan p;
    with.parallel.zero = f->zero;
    with.parallel.recompute = f->recompute;
    with.train.micro_batch = f->micro_batch;
    LS_TRY(ls_run_plan(&with, nworkers, &m, &p, e));
    ls_memory memory;
    ls_plan_memory(&p, (int)c->parallel.threads, ls_fit_one_copy(&with, nworkers), &memory);
    f->nbytes = memory.peak;
    f->compute = flops(&p);
    f->sent = sent(&p);
    ls_plan_free(&p);
    ls_model_free(&m);
    return LS_OK;
}

static int by_cost(const void *a, const void *b) {
    const ls_fit *x = a, *y = b;
    if (x->compute != y->compute) return x->compute < y->compute ? -1 : 1;
    if (x->sent != y->sent) return x->sent < y->sent ? -1 : 1;
    if (x->micro_batch != y->micro_batch) return x->micro_batch > y->micro_batch ? -1 : 1;
    return (x->nbytes > y->nbytes) - (x->nbytes < y->nbytes);
}

ls_status ls_fit_find(const ls_config *c, int nworkers, size_t limit, ls_fit **fits_p, int *n_p,
                      ls_error *e) {
    static const int64_t segments[] = {0, 2, 1, 4, 6, 8, 12, MOST_SEGMENTS};
    enum { NSEGMENTS = sizeof segments / sizeof *segments };
    ls_fit *fits = NULL;
    int n = 0, cap = 0;
    double plain = 0;
    for (int64_t zero = 0; zero <= 3; zero++)
        for (int64_t micro = c->train.micro_batch; micro >= 1; micro /= 2)
            for (int i = 0; i < NSEGMENTS; i++) {
                ls_fit f = {.zero = zero, .recompute = segments[i], .micro_batch = micro};
                if (segments[i] > 2 * c->model.layers) continue;
                ls_status s = measure(c, nworkers, &f, e);
                if (s != LS_OK) {
                    free(fits);
                    return s;
                }
                if (f.recompute == 0 && plain == 0) plain = f.compute;
                f.compute /= plain;
                if (f.nbytes > limit) continue;
                if (n == cap) {
                    cap = cap ? 2 * cap : 16;
                    fits = ls_realloc(fits, (size_t)cap * sizeof *fits);
                }
                fits[n++] = f;
            }
    if (n) qsort(fits, (size_t)n, sizeof *fits, by_cost);
    *fits_p = fits;
    *n_p = n;
    return LS_OK;
}

static ls_status refuse(const ls_config *c, const ls_memory *m, const ls_fit *best, ls_error *e) {
    ls_purpose worst = ls_memory_worst(m);
    double limit = c->parallel.memory_limit_mb;
    if (!best)
        return ls_fail(
            e, LS_ENOMEM,
            "a worker needs %.1f MB (%s alone %.1f), parallel.memory_limit_mb is %g, and "
            "no parallel.zero, parallel.recompute or train.micro_batch meets it; use "
            "more workers or a smaller model",
            (double)m->peak / 1e6, ls_purpose_name(worst), (double)m->nbytes[worst] / 1e6, limit);
    return ls_fail(
        e, LS_ENOMEM,
        "a worker needs %.1f MB (%s alone %.1f), parallel.memory_limit_mb is %g; it would "
        "be %.1f with parallel.zero=%lld parallel.recompute=%lld train.micro_batch=%lld "
        "(parallel.fit=auto takes it; `lockstep plan --fit %.0f` lists more)",
        (double)m->peak / 1e6, ls_purpose_name(worst), (double)m->nbytes[worst] / 1e6, limit,
        (double)best->nbytes / 1e6, (long long)best->zero, (long long)best->recompute,
        (long long)best->micro_batch, limit);
}

ls_status ls_fit_limit(ls_config *c, int nworkers, ls_error *e) {
    size_t limit = (size_t)(c->parallel.memory_limit_mb * 1e6);
    ls_model model;
    ls_plan p;
    ls_memory m;
    if (limit == 0) return LS_OK;
    LS_TRY(ls_run_plan(c, nworkers, &model, &p, e));
    ls_plan_memory(&p, (int)c->parallel.threads, ls_fit_one_copy(c, nworkers), &m);
    ls_plan_free(&p);
    ls_model_free(&model);
    if (m.peak <= limit) return LS_OK;
    ls_fit *fits = NULL;
    int n = 0;
    LS_TRY(ls_fit_find(c, nworkers, limit, &fits, &n, e));
    ls_status s = LS_OK;
    if (n == 0 || c->parallel.fit == LS_FIT_OFF) {
        s = refuse(c, &m, n ? &fits[0] : NULL, e);
    } else {
        c->parallel.zero = fits[0].zero;
        c->parallel.recompute = fits[0].recompute;
        c->train.micro_batch = fits[0].micro_batch;
        ls_log("to fit into %g MB a worker: parallel.zero=%lld parallel.recompute=%lld "
               "train.micro_batch=%lld (%.1f MB)",
               c->parallel.memory_limit_mb, (long long)fits[0].zero, (long long)fits[0].recompute,
               (long long)fits[0].micro_batch, (double)fits[0].nbytes / 1e6);
    }
    free(fits);
    return s;
}
