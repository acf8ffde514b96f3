/* bench.c - see bench.h. */
#include "train/bench.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/random.h"
#include "train/run.h"

enum { MAX_STEPS = 10000, ROUNDS = 400000, TRIES = 5 };

/* Where workers leave what they measured: in `val_losses`, which has room for it: [step seconds]
 * [MAX_STEPS], then the times of each worker's action kinds. */
typedef struct bench_run {
    ls_run run; /* first, so that a worker finds the rest */
    int64_t warmup, steps;
} bench_run;

static ls_status measure(bench_run *b, ls_member *m, ls_error *e) {
    double *seconds = b->run.val_losses, *times = seconds + MAX_STEPS;
    ls_step_out out;
    for (int64_t i = 0; i < b->warmup + b->steps; i++) {
        if (i == b->warmup)
            for (int x = 0; x < m->nexecs; x++) ls_exec_reset_times(m->execs[x]);
        ls_step_in in = ls_run_step(&b->run, i);
        int64_t begin = ls_clock_ns();
        LS_TRY(ls_member_step(m, &in, &out, e));
        if (m->worker == 0 && i >= b->warmup)
            seconds[i - b->warmup] = (double)(ls_clock_ns() - begin) / 1e9;
    }
    for (int x = 0; x < m->nexecs; x++)
        for (int k = 0; k < LS_NACTION_KINDS; k++)
            times[(m->worker + x) * LS_NACTION_KINDS + k] =
                (double)ls_exec_times(m->execs[x])[k] / 1e9 / (double)b->steps;
    return ls_local_barrier(&m->local, e);
}

static ls_status bench_worker(int worker, void *arg, ls_error *e) {
    bench_run *b = arg;
    ls_member m = {0};
    ls_status s = ls_member_join(&m, &b->run, worker, e);
    if (s == LS_OK) s = measure(b, &m, e);
    ls_member_leave(&m);
    return s;
}

/* Random tokens for two batches; a validation part only as room for the results. */
static uint32_t *fake_corpus(ls_run *r) {
    const ls_config *c = &r->config;
    uint64_t T = (uint64_t)c->model.context, n = 2 * (uint64_t)c->train.batch * T + 1;
    uint32_t *ids = LS_NEW_ARRAY(uint32_t, n), w[4];
    for (uint64_t i = 0; i < n; i++) {
        ls_random_words(1, LS_STREAM_SAMPLE, 1, i, w);
        ids[i] = w[0] % (uint32_t)c->model.vocab;
    }
    r->corpus.train = ids;
    r->corpus.ntrain = 2 * (uint64_t)c->train.batch;
    r->corpus.nval = MAX_STEPS + (uint64_t)r->nworkers * LS_NACTION_KINDS;
    return ids;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void collect(const bench_run *b, ls_bench_train *out) {
    const ls_config *c = &b->run.config;
    double *seconds = b->run.val_losses, *times = seconds + MAX_STEPS;
    qsort(seconds, (size_t)b->steps, sizeof *seconds, by_value);
    out->step_seconds = seconds[b->steps / 2];
    double tokens = (double)c->train.batch * (double)c->model.context;
    out->tokens_per_s = tokens / out->step_seconds;
    out->flops_per_s = ls_model_flops(&b->run.model) * (double)c->train.batch / out->step_seconds;
    for (int k = 0; k < LS_NACTION_KINDS; k++)
        for (int w = 0; w < b->run.nworkers; w++)
            out->seconds[k] += times[w * LS_NACTION_KINDS + k] / (double)b->run.nworkers;
}

ls_status ls_bench_train_run(const ls_config *c, int nworkers, int64_t warmup, int64_t steps,
                             ls_bench_train *b_p, ls_error *e) {
    if (steps < 1 || steps > MAX_STEPS)
        return ls_fail(e, LS_EINVAL, "%lld steps: 1 to %d are possible", (long long)steps,
                       MAX_STEPS);
    bench_run b = {.run = {.config = *c, .region = {.fd = -1}}, .warmup = warmup, .steps = steps};
    b.run.nworkers = ls_run_workers(c, nworkers);
    int busy = b.run.nworkers * (int)c->parallel.threads;
    ls_bench_train out = {.nworkers = b.run.nworkers,
                          .threads = (int)c->parallel.threads,
                          .steps = steps,
                          .warmup = warmup};
    out.peak_flops_per_s = ls_bench_peak(busy < ls_cores() ? busy : ls_cores());
    uint32_t *ids = fake_corpus(&b.run);
    ls_status s = ls_run_build(&b.run, e);
    if (s == LS_OK) s = ls_run_launch(&b.run, bench_worker, e);
    if (s == LS_OK) collect(&b, &out);
    free(ids);
    ls_run_free(&b.run);
    if (s == LS_OK) *b_p = out;
    return s;
}

/* ---- peak ---- */

typedef struct peak_thread {
    pthread_t thread;
    const ls_kernels *k;
    pthread_barrier_t *together;
    int64_t begin_ns, end_ns;
    float result; /* so that the work is not left out */
} peak_thread;

static void *peak_main(void *arg) {
    peak_thread *p = arg;
    pthread_barrier_wait(p->together);
    p->begin_ns = ls_clock_ns();
    p->result = p->k->fma_peak(ROUNDS);
    p->end_ns = ls_clock_ns();
    return NULL;
}

/* The threads time themselves: the caller may not get a core until they end. */
static double peak_once(const ls_kernels *k, int cores) {
    peak_thread *threads = LS_NEW_ARRAY(peak_thread, (size_t)cores);
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, (unsigned)cores);
    for (int i = 0; i < cores; i++) {
        threads[i] = (peak_thread){.k = k, .together = &together};
        if (pthread_create(&threads[i].thread, NULL, peak_main, &threads[i])) abort();
    }
    double flops = 0;
    for (int i = 0; i < cores; i++) {
        pthread_join(threads[i].thread, NULL);
        double seconds = (double)(threads[i].end_ns - threads[i].begin_ns) / 1e9;
        flops += ROUNDS * 192.0 * 16.0 * 2.0 / seconds;
    }
    pthread_barrier_destroy(&together);
    free(threads);
    return flops;
}

double ls_bench_peak(int cores) {
    const ls_kernels *k = NULL;
    if (ls_kernels_pick(&k, NULL) != LS_OK) return 0;
    double best = 0;
    for (int i = 0; i < TRIES; i++) {
        double peak = peak_once(k, cores);
        if (peak > best) best = peak;
    }
    return best;
}
