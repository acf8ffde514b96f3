/* fit.c - see fit.h.
 *
 * Every combination is planned, and the plan gives the memory that it needs and what it costs. From
 * the most to the least costly:
 *   - the optimizer's state in a file (a disk is slow);
 *   - more computing (always costs time);
 *   - more bytes sent (computing may hide it);
 *   - smaller micro-batches (thinner matrix products).
 */
#include "train/fit.h"

#include <stdlib.h>

#include "base/cores.h"
#include "base/log.h"
#include "base/math.h"
#include "base/plural.h"
#include "config/needs.h"
#include "train/layout.h"

/* The settings that a fit chooses, except bucket_mb, which is not an integer. */
static const struct {
    const char *key;
    size_t in_config, in_fit;
} settings[] = {
    {"parallel.zero", offsetof(ls_config, parallel.zero), offsetof(ls_fit, zero)},
    {"parallel.recompute", offsetof(ls_config, parallel.recompute), offsetof(ls_fit, recompute)},
    {"parallel.recompute_layers", offsetof(ls_config, parallel.recompute_layers),
     offsetof(ls_fit, recompute_layers)},
    {"train.micro_batch", offsetof(ls_config, train.micro_batch), offsetof(ls_fit, micro_batch)},
};
enum { NSETTINGS = sizeof settings / sizeof *settings };

static int64_t *integer_at(void *p, size_t offset) {
    return (int64_t *)(void *)((char *)p + offset);
}

/* The settings of a config. */
static ls_fit fit_of(const ls_config *c) {
    ls_config from = *c;
    ls_fit f = {.state = c->parallel.optimizer_state,
                .accumulate = c->parallel.accumulate,
                .bucket_mb = c->parallel.bucket_mb};
    for (int i = 0; i < NSETTINGS; i++)
        *integer_at(&f, settings[i].in_fit) = *integer_at(&from, settings[i].in_config);
    return f;
}

static void set(ls_config *c, const ls_fit *f) {
    ls_fit from = *f;
    for (int i = 0; i < NSETTINGS; i++)
        *integer_at(c, settings[i].in_config) = *integer_at(&from, settings[i].in_fit);
    c->parallel.optimizer_state = f->state;
    c->parallel.accumulate = f->accumulate;
    c->parallel.bucket_mb = f->bucket_mb;
}

void ls_fit_text(const ls_config *c, const ls_fit *f, ls_buf *out) {
    ls_fit was = fit_of(c), is = *f;
    size_t before = out->len;
    for (int i = 0; i < NSETTINGS; i++) {
        int64_t x = *integer_at(&is, settings[i].in_fit);
        if (x == *integer_at(&was, settings[i].in_fit)) continue;
        ls_buf_printf(out, " %s=%lld", settings[i].key, (long long)x);
    }
    if (f->state != was.state) ls_buf_printf(out, " parallel.optimizer_state=file");
    if (f->accumulate != was.accumulate) ls_buf_printf(out, " parallel.accumulate=early");
    if (f->bucket_mb < was.bucket_mb) ls_buf_printf(out, " parallel.bucket_mb=%g", f->bucket_mb);
    if (out->len == before) ls_buf_printf(out, " what is set");
}

static double flops(const ls_plan *p) {
    double sum = 0;
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        if (a->worker != 0) continue;
        const ls_layer *l = &p->share.model->layers[a->layer];
        if (a->kind == LS_BACKWARD && a->back == LS_BACK_PARAMS) continue; /* counted with inputs */
        bool back = a->kind == LS_BACKWARD;
        double samples = (double)ls_share_samples(&p->share, a->micro);
        if (a->kind == LS_FORWARD || a->kind == LS_RECOMPUTE || (back && l->traits.loss))
            sum += l->cost.flops * samples;
        if (back) sum += ls_model_backward_flops(p->share.model, l) * samples;
    }
    return sum;
}

static double sent(const ls_plan *p) {
    double sum = 0;
    for (int i = 0; i < p->nactions; i++)
        if (p->actions[i].worker == LS_ALL_WORKERS) sum += (double)p->actions[i].comm.nbytes;
    return sum / ((double)p->share.model->nfloats * sizeof(float));
}

/* Plans the config with the settings of *f, and sets its costs. */
static ls_status measure(const ls_config *c, int nworkers, ls_fit *f, ls_error *e) {
    ls_config with = *c;
    ls_layout l;
    set(&with, f);
    LS_TRY(ls_layout_make(&with, nworkers, NULL, &l, e));
    ls_memory memory;
    ls_memory_config how = ls_layout_memory_config(&with, nworkers, nworkers);
    ls_plan_memory(&l.plan, &how, &memory);
    f->nbytes = memory.peak;
    f->compute = flops(&l.plan);
    f->sent = sent(&l.plan);
    ls_layout_free(&l);
    return LS_OK;
}

static int by_cost(const void *a, const void *b) {
    const ls_fit *x = a, *y = b;
    if (x->state != y->state) return x->state < y->state ? -1 : 1;
    if (x->compute != y->compute) return x->compute < y->compute ? -1 : 1;
    if (x->sent != y->sent) return x->sent < y->sent ? -1 : 1;
    if (x->micro_batch != y->micro_batch) return x->micro_batch > y->micro_batch ? -1 : 1;
    return (x->nbytes > y->nbytes) - (x->nbytes < y->nbytes);
}

/* The fits found so far. */
typedef struct found {
    ls_fit *fits;
    int n, cap;
    double plain;   /* cost of computing without recompute */
    bool in_memory; /* the optimizer's state must be in memory */
} found;

static ls_status try_fit(const ls_config *c, int nworkers, size_t limit, ls_fit f, found *all,
                         ls_error *e) {
    LS_TRY(measure(c, nworkers, &f, e));
    if (f.recompute == 0 && all->plain == 0) all->plain = f.compute;
    f.compute /= all->plain;
    if (f.nbytes > limit) return LS_OK;
    if (all->n == all->cap) {
        all->cap = all->cap ? 2 * all->cap : 16;
        all->fits = ls_realloc(all->fits, (size_t)all->cap * sizeof *all->fits);
    }
    all->fits[all->n++] = f;
    return LS_OK;
}

/* The next smaller micro-batch to try, a power of two of whole units; 0: there is none. */
static int64_t smaller_micro(int64_t unit, int64_t micro) {
    int64_t n = unit;
    while (2 * n < micro) n *= 2;
    return n < micro ? n : 0;
}

bool ls_fit_lower_micro(ls_config *c) {
    if (!ls_config_was_chosen(c, "train.micro_batch")) return false;
    int64_t n = smaller_micro(ls_layout_micro_unit(c), c->train.micro_batch);
    if (n) c->train.micro_batch = n;
    return n > 0;
}

/* Numbers of layers in a segment, in the order of the trials. */
static const int64_t segments[] = {0, 2, 1, 4, 6, 8, 12, 16};
enum { NSEGMENTS = sizeof segments / sizeof *segments };

/* Tries every zero, recompute, optimizer_state and micro_batch with f's other settings. */
static ls_status try_all(const ls_config *c, int nworkers, size_t limit, ls_fit f, found *all,
                         ls_error *e) {
    ls_state_kind own = c->parallel.optimizer_state;
    int64_t states = own == LS_STATE_MEMORY && !all->in_memory ? 2 : 1;
    ls_config with = *c;
    set(&with, &f);
    int64_t least = ls_layout_least_zero(&with), most = ls_layout_most_recomputed(c);
    int64_t unit = ls_layout_micro_unit(c);
    for (int64_t i = 0; i < states * 4 * NSEGMENTS; i++) {
        f.zero = i / NSEGMENTS % 4;
        f.recompute = segments[i % NSEGMENTS];
        f.state = i >= 4 * NSEGMENTS ? LS_STATE_FILE : own;
        if (f.recompute > most || f.zero < least) continue;
        for (int64_t n = c->train.micro_batch; n > 0; n = smaller_micro(unit, n)) {
            f.micro_batch = n;
            if (ls_layout_takes_micro(c, unit, n)) LS_TRY(try_fit(c, nworkers, limit, f, all, e));
        }
    }
    return LS_OK;
}

/* A sixteenth of the limit: less is gathered, or waits to be reduced, at one time. */
static double small_bucket_mb(const ls_config *c, size_t limit) {
    double mb = (double)limit / 1e6 / 16;
    return mb < c->parallel.bucket_mb ? mb : c->parallel.bucket_mb;
}

static bool may_be_early(const ls_config *c, int nworkers) {
    int64_t V = c->train.virtual_workers;
    bool powers = (V & (V - 1)) == 0 && (nworkers & (nworkers - 1)) == 0;
    return powers && V > nworkers && nworkers > 1;
}

static ls_status find(const ls_config *c, int nworkers, size_t limit, found *all, ls_error *e) {
    ls_fit f = fit_of(c);
    f.recompute_layers = 0;
    ls_status s = try_all(c, nworkers, limit, f, all, e);
    f.bucket_mb = small_bucket_mb(c, limit);
    if (s == LS_OK && all->n == 0) s = try_all(c, nworkers, limit, f, all, e);
    if (may_be_early(c, nworkers)) f.accumulate = LS_ACCUMULATE_EARLY;
    if (s == LS_OK && all->n == 0) s = try_all(c, nworkers, limit, f, all, e);
    if (s == LS_OK && all->n) qsort(all->fits, (size_t)all->n, sizeof *all->fits, by_cost);
    return s;
}

ls_status ls_fit_find(const ls_config *c, int nworkers, size_t limit, ls_fit **fits_p, int *n_p,
                      ls_error *e) {
    found all = {0};
    ls_status s = find(c, nworkers, limit, &all, e);
    if (s != LS_OK) {
        free(all.fits);
        return s;
    }
    *fits_p = all.fits;
    *n_p = all.n;
    return LS_OK;
}

/* Finds the fewest recomputed layers, in segments of f, with which a worker is within the limit:
 * the more layers, the less memory. */
static ls_status fewest_layers(const ls_config *c, int nworkers, size_t limit, ls_fit *f,
                               ls_error *e) {
    int64_t most = ls_layout_most_recomputed(c), low = 1, high = most; /* high is enough */
    ls_fit all = *f;
    while (low < high) {
        f->recompute_layers = (low + high) / 2;
        LS_TRY(measure(c, nworkers, f, e));
        if (f->nbytes <= limit)
            high = f->recompute_layers;
        else
            low = f->recompute_layers + 1;
    }
    if (high == most) {
        *f = all;
        return LS_OK;
    }
    f->recompute_layers = high;
    return measure(c, nworkers, f, e);
}

/* Lowers a micro-batch that was chosen until a worker is within the limit. If none is: to the
 * smallest where layers are to be recomputed, too, else not at all. */
static ls_status limit_micro(ls_config *c, int nworkers, size_t limit, ls_error *e) {
    bool recomputes = c->parallel.recompute == LS_AUTO;
    ls_config with = *c;
    if (recomputes) with.parallel.recompute = with.parallel.recompute_layers = 0;
    ls_fit f = fit_of(&with);
    LS_TRY(measure(&with, nworkers, &f, e));
    while (f.nbytes > limit && ls_fit_lower_micro(&with)) {
        f.micro_batch = with.train.micro_batch;
        LS_TRY(measure(&with, nworkers, &f, e));
    }
    if (f.micro_batch == c->train.micro_batch || (f.nbytes > limit && !recomputes)) return LS_OK;
    c->train.micro_batch = f.micro_batch;
    ls_log("to fit into %g MB a worker: train.micro_batch=%lld (%.1f MB)",
           c->parallel.memory_limit_mb, (long long)f.micro_batch, (double)f.nbytes / 1e6);
    return LS_OK;
}

ls_status ls_fit_auto(ls_config *c, int nworkers, ls_error *e) {
    size_t limit = (size_t)ls_math_times(c->parallel.memory_limit_mb, 1e6);
    if (limit && ls_config_was_chosen(c, "train.micro_batch"))
        LS_TRY(limit_micro(c, nworkers, limit, e));
    ls_fit f = fit_of(c);
    f.recompute = f.recompute_layers = 0;
    ls_fit best = f;
    if (c->parallel.recompute != LS_AUTO) return LS_OK;
    int64_t most = ls_layout_most_recomputed(c);
    if (limit) LS_TRY(measure(c, nworkers, &best, e));
    bool enough = best.nbytes <= limit; /* without recompute */
    for (int i = 1; !enough && i < NSEGMENTS; i++) {
        f.recompute = segments[i];
        f.recompute_layers = 0;
        if (f.recompute > most) continue;
        LS_TRY(measure(c, nworkers, &f, e));
        bool fits = f.nbytes <= limit, fitted = best.nbytes <= limit;
        if (fits) LS_TRY(fewest_layers(c, nworkers, limit, &f, e));
        bool better = fits != fitted ? fits
                      : fits         ? f.compute < best.compute
                                     : f.nbytes < best.nbytes;
        if (better) best = f;
    }
    set(c, &best);
    if (best.recompute)
        ls_log("parallel.recompute auto: %lld, of %lld layers (%.1f MB a worker)",
               (long long)best.recompute,
               (long long)(best.recompute_layers ? best.recompute_layers : most),
               (double)best.nbytes / 1e6);
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
    ls_buf text = {0};
    ls_fit_text(c, best, &text);
    ls_fail(e, LS_ENOMEM,
            "a worker needs %.1f MB (%s alone %.1f), parallel.memory_limit_mb is %g; it would be "
            "%.1f with%s (parallel.fit=auto takes it; `lockstep plan --fit %.0f` lists more)",
            (double)m->peak / 1e6, ls_purpose_name(worst), (double)m->nbytes[worst] / 1e6, limit,
            (double)best->nbytes / 1e6, text.data, limit);
    ls_buf_free(&text);
    return LS_ENOMEM;
}

static ls_status keep_limit(ls_config *c, int nworkers, bool in_memory, ls_error *e) {
    size_t limit = (size_t)ls_math_times(c->parallel.memory_limit_mb, 1e6);
    ls_layout l;
    ls_memory m;
    LS_TRY(ls_fit_auto(c, nworkers, e));
    if (limit == 0) return LS_OK;
    LS_TRY(ls_layout_make(c, nworkers, NULL, &l, e));
    ls_memory_config how = ls_layout_memory_config(c, nworkers, nworkers);
    ls_plan_memory(&l.plan, &how, &m);
    ls_layout_free(&l);
    if (m.peak <= limit) return LS_OK;
    found all = {.in_memory = in_memory};
    ls_status s = find(c, nworkers, limit, &all, e);
    bool fits = s == LS_OK && all.n > 0;
    if (s == LS_OK && (!fits || c->parallel.fit == LS_FIT_OFF)) {
        s = refuse(c, &m, fits ? &all.fits[0] : NULL, e);
    } else if (fits) {
        ls_buf text = {0};
        ls_fit_text(c, &all.fits[0], &text);
        set(c, &all.fits[0]);
        ls_log("to fit into %g MB a worker:%s (%.1f MB)", c->parallel.memory_limit_mb, text.data,
               (double)all.fits[0].nbytes / 1e6);
        ls_buf_free(&text);
    }
    free(all.fits);
    return s;
}

ls_status ls_fit_limit(ls_config *c, int nworkers, ls_error *e) {
    return keep_limit(c, nworkers, false, e);
}

/* ---- on several hosts ---- */

/* The least number of workers, from survival.min_workers on, with which the settings are possible:
 * the fewer, the more each of them needs. */
static ls_status find_fewest(const ls_config *c, int *n_p, ls_error *e) {
    ls_config with = *c;
    int64_t ranks = ls_config_ranks(c), most = ls_config_most_workers(c);
    ls_status s = LS_EINVAL;
    *n_p = 1;
    if (ls_config_has_crew(c)) return LS_OK;
    if (with.parallel.recompute == LS_AUTO) with.parallel.recompute = 0;
    for (int64_t n = (c->survival.min_workers + ranks - 1) / ranks * ranks; n <= most; n += ranks) {
        ls_layout l;
        *n_p = (int)n;
        s = ls_layout_make(&with, *n_p, NULL, &l, e);
        if (s == LS_OK) ls_layout_free(&l);
        if (s != LS_EINVAL) return s;
    }
    return s;
}

/* The choice is the same on all hosts, but a host may have more threads. */
static ls_status check_threads(const ls_config *c, int nworkers, int threads, ls_error *e) {
    ls_config with = *c;
    with.parallel.threads = threads;
    ls_fit f = fit_of(&with);
    LS_TRY(measure(&with, nworkers, &f, e));
    if ((double)f.nbytes <= c->parallel.memory_limit_mb * 1e6) return LS_OK;
    return ls_fail(e, LS_ENOMEM,
                   "a worker needs %.1f MB with the %d threads that it has on this host, and "
                   "parallel.memory_limit_mb is %g; use fewer parallel.threads, the same on all "
                   "hosts",
                   (double)f.nbytes / 1e6, threads, c->parallel.memory_limit_mb);
}

ls_status ls_fit_limit_hosts(ls_config *c, int here, int all, ls_error *e) {
    int n = all, threads = ls_config_threads(c, here, ls_cores());
    ls_config with = *c;
    if (c->parallel.memory_limit_mb <= 0) return ls_fit_auto(c, here, e);
    ls_layout_config_distributed(&with);
    if (with.parallel.threads == LS_AUTO) with.parallel.threads = 1;
    if (!all) with.parallel.transport = LS_TRANSPORT_TCP; /* they may all be on different hosts */
    if (!all) LS_TRY(find_fewest(&with, &n, e));
    ls_status s = keep_limit(&with, n, !all, e);
    if (s == LS_ENOMEM && !all)
        return ls_fail(e, s,
                       "%s; planned for %d worker%s, the fewest that the hosts may have "
                       "(survival.min_workers)",
                       e->msg, n, ls_plural(n));
    if (s == LS_OK) s = check_threads(&with, n, threads, e);
    ls_fit chosen = fit_of(&with);
    set(c, &chosen);
    return s;
}
