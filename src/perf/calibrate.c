/* calibrate.c - see calibrate.h.
 *
 * The whole list of probes is run PASSES times, so that a machine that is slow for a while does not
 * affect one size only. Each pass has a few rounds of a few milliseconds. The result is the median
 * of all rounds: a step does not reach the best time that a kernel has alone.
 */
#include "perf/calibrate.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/log.h"
#include "base/median.h"
#include "cluster/workers.h"
#include "coll/endpoint.h"
#include "coll/request.h"
#include "coll/virtual.h"
#include "perf/probe.h"

enum { PASSES = 3, ROUNDS = 3, TIMES = PASSES * ROUNDS, MAX_PROBES = 448 };
static const double round_s = 3e-3;

static const double rows_axis[] = {16, 64, 256, 1024}, side_axis[] = {32, 128, 512, 2048},
                    pass_axis[] = {16384, 262144, 4194304}, keys_axis[] = {64, 256, 1024};

/* ---- probes ---- */

typedef struct probes {
    ls_probe list[MAX_PROBES];
    double alone[MAX_PROBES]; /* seconds */
    int n;
} probes;

static bool is_dw(ls_work_kind k) {
    return k == LS_WORK_PRODUCT_DW || k == LS_WORK_PRODUCT_DW_BF16;
}

/* For dw, K is the number of rows, and M a side of the weights. */
static void add_products(probes *p, ls_work_kind k) {
    bool dw = is_dw(k);
    const double *first = dw ? side_axis : rows_axis, *last = dw ? rows_axis : side_axis;
    for (int i = 0; i < 64; i++)
        p->list[p->n++] = (ls_probe){.kind = k,
                                     .M = (int64_t)first[i / 16],
                                     .N = (int64_t)side_axis[i / 4 % 4],
                                     .K = (int64_t)last[i % 4]};
}

static void list_probes(probes *p) {
    for (int k = 0; k < LS_NWORK_KINDS; k++) {
        const double *axis = ls_work_is_softmax((ls_work_kind)k) ? keys_axis : pass_axis;
        if (k < LS_NPRODUCTS) add_products(p, (ls_work_kind)k);
        for (int i = 0; k >= LS_NPRODUCTS && i < 3; i++)
            p->list[p->n++] = (ls_probe){.kind = (ls_work_kind)k, .n = (int64_t)axis[i]};
    }
}

/* ---- threads that measure at the same time ---- */

typedef struct prober {
    pthread_t thread;
    const probes *probes;
    pthread_barrier_t *together;
    bool alone;
    double *times; /* [probes][TIMES] seconds of one run */
    ls_status status;
    ls_error error;
} prober;

static double time_runs(ls_probe_bench *b, const ls_probe *p, int64_t runs) {
    double begin = ls_clock_thread_s();
    for (int64_t i = 0; i < runs; i++) ls_probe_run(b, p);
    return (ls_clock_thread_s() - begin) / (double)runs;
}

/* Every core makes as many runs as one alone makes in a round, so all compute all the time. */
static void run_probe(prober *t, ls_probe_bench *b, int i, int pass) {
    const ls_probe *p = &t->probes->list[i];
    double once = t->alone ? time_runs(b, p, 1) : t->probes->alone[i];
    if (t->alone) once = fmin(once, time_runs(b, p, 1));
    int64_t runs = once < round_s ? (int64_t)(round_s / (once + 1e-9)) + 1 : 1;
    for (int r = 0; r < ROUNDS; r++) {
        pthread_barrier_wait(t->together);
        t->times[i * TIMES + pass * ROUNDS + r] = time_runs(b, p, runs);
    }
}

static void *prober_main(void *arg) {
    prober *t = arg;
    ls_probe_bench b;
    t->status = ls_probe_open(&b, &t->error);
    for (int pass = 0; pass < PASSES; pass++)
        for (int i = 0; i < t->probes->n; i++) {
            if (t->status == LS_OK)
                run_probe(t, &b, i, pass);
            else
                for (int r = 0; r < ROUNDS; r++) pthread_barrier_wait(t->together);
        }
    ls_probe_close(&b);
    return NULL;
}

/* seconds [probes]: the time of one run while `cores` cores run the same. */
static ls_status probe_on(const probes *p, int cores, double *seconds, ls_error *e) {
    prober *threads = LS_NEW_ARRAY(prober, (size_t)cores);
    pthread_barrier_t together;
    ls_status s = LS_OK;
    pthread_barrier_init(&together, NULL, (unsigned)cores);
    for (int i = 0; i < cores; i++) {
        prober *t = &threads[i];
        *t = (prober){.probes = p, .together = &together, .alone = cores == 1};
        t->times = LS_NEW_ARRAY(double, (size_t)p->n *TIMES);
        if (pthread_create(&t->thread, NULL, prober_main, t)) abort();
    }
    for (int i = 0; i < p->n; i++) seconds[i] = 0;
    for (int i = 0; i < cores; i++) {
        pthread_join(threads[i].thread, NULL);
        if (threads[i].status != LS_OK) s = threads[i].status, *e = threads[i].error;
        for (int k = 0; k < p->n; k++)
            seconds[k] += ls_median(threads[i].times + k * TIMES, TIMES) / cores;
        free(threads[i].times);
    }
    pthread_barrier_destroy(&together);
    free(threads);
    return s;
}

/* ---- the tables ---- */

static void fill_table(ls_machine *m, const probes *p, const double *busy, ls_work_kind k) {
    const int n[3] = {k < LS_NPRODUCTS ? 4 : 3, 4, 4};
    bool dw = is_dw(k);
    double seen[3];
    const double *axis[3] = {dw ? side_axis : rows_axis, side_axis, dw ? rows_axis : side_axis};
    if (k >= LS_NPRODUCTS) axis[0] = pass_axis;
    for (int i = 0; i < 3 && ls_work_is_softmax(k); i++) {
        seen[i] = ls_probe_units(&(ls_probe){.kind = k, .n = (int64_t)keys_axis[i]});
        axis[0] = seen;
    }
    ls_speeds_make(&m->speeds[k], k < LS_NPRODUCTS ? 3 : 1, n, axis);
    ls_speed *to = m->speeds[k].points;
    for (int i = 0; i < p->n; i++) {
        double units = ls_probe_units(&p->list[i]);
        if (p->list[i].kind != k) continue;
        *to++ = (ls_speed){units / p->alone[i], units / busy[i]};
    }
}

static ls_status measure_speeds(ls_machine *m, ls_error *e) {
    probes *p = LS_NEW(probes);
    double busy[MAX_PROBES];
    list_probes(p);
    ls_status s = probe_on(p, 1, p->alone, e);
    memcpy(busy, p->alone, sizeof busy);
    if (s == LS_OK && m->cores > 1) s = probe_on(p, m->cores, busy, e);
    for (int k = 0; k < LS_NWORK_KINDS; k++) fill_table(m, p, busy, (ls_work_kind)k);
    free(p);
    return s;
}

/* ---- the executor's overhead per call ---- */

static void measure_overhead(ls_machine *m) {
    enum { TRIES = 20000 };
    atomic_int place = 0;
    int64_t begin = ls_clock_ns(), sum = 0;
    for (int i = 0; i < TRIES; i++) {
        atomic_store(&place, i);
        sum += ls_clock_ns();
        atomic_store(&place, i);
        sum -= ls_clock_ns();
    }
    double seconds = (double)(ls_clock_ns() - begin) / 1e9 / TRIES;
    m->action_s = seconds + (sum == 1 ? 1e-12 : 0);
    m->call_s = seconds / 4;
}

/* ---- collectives ---- */

enum { FLOATS = 2 << 20, PLACES = 4, FEW = 64, CARE = 50, CALLS = 15 };

/* The workers write it to memory that they share with their parent. */
typedef struct results {
    double start_s, sum_s, copy_s; /* per call */
    ls_link link;
} results;

typedef struct bucket {
    ls_group *g;
    float *memory; /* [PLACES][FLOATS] */
    size_t *counts;
    int rank, n;
} bucket;

static ls_status time_call(const bucket *b, bool sum, size_t floats, double *s_p, ls_error *e) {
    double times[CALLS];
    for (int i = 0; i < CALLS; i++) {
        float *x = b->memory + (size_t)(i % PLACES) * FLOATS;
        float *own = x + floats / (size_t)b->n * (size_t)b->rank;
        ls_request *r = NULL;
        for (int k = 0; k < b->n; k++) b->counts[k] = floats / (size_t)b->n;
        LS_TRY(ls_barrier(b->g, e));
        int64_t begin = ls_clock_ns();
        if (sum)
            LS_TRY(ls_reduce_scatter_virtual_start(b->g,
                                                   &(ls_virtual_sum){.V = b->n,
                                                                     .in = x,
                                                                     .stride = floats,
                                                                     .out = own,
                                                                     .dtype = LS_F32,
                                                                     .counts = b->counts},
                                                   &r, e));
        else
            LS_TRY(ls_all_gather_v_start(b->g, own, x, b->counts, LS_F32, &r, e));
        LS_TRY(ls_wait(&r, -1, e));
        times[i] = (double)(ls_clock_ns() - begin) / 1e9;
    }
    *s_p = ls_median(times, CALLS);
    return LS_OK;
}

static ls_status shared_worker(ls_group *g, ls_board_slot *me, void *arg, ls_error *e) {
    results *r = arg;
    bucket b = {.g = g, .rank = ls_group_rank(g), .n = ls_group_size(g)};
    size_t nbytes = (size_t)PLACES * FLOATS * sizeof(float);
    double start = 0, sum = 0, copy = 0;
    (void)me;
    b.memory = ls_group_alloc(g, nbytes);
    if (!b.memory) return ls_fail(e, LS_ENOMEM, "no shared memory to measure collectives with");
    b.counts = LS_NEW_ARRAY(size_t, (size_t)b.n);
    memset(b.memory, 1, nbytes);
    size_t floats = FLOATS / (size_t)b.n / 64 * 64 * (size_t)b.n;
    ls_status s = time_call(&b, true, FEW * 64 * (size_t)b.n, &start, e);
    if (s == LS_OK) s = time_call(&b, true, floats, &sum, e);
    if (s == LS_OK) s = time_call(&b, false, floats, &copy, e);
    if (b.rank == 0) {
        r->start_s = start;
        r->sum_s = sum;
        r->copy_s = copy;
    }
    free(b.counts);
    ls_group_free(g, b.memory);
    return s;
}

static ls_status link_worker(ls_group *g, ls_board_slot *me, void *arg, ls_error *e) {
    results *r = arg;
    ls_endpoint *end = g->end;
    ls_link_plan plan = {.hosts = end->hosts, .care = CARE, .timeout_ns = (int64_t)60e9};
    ls_link link;
    bool given = false;
    (void)me;
    LS_TRY(ls_link_agree(end->net, end->k, &plan, &link, &given, e));
    if (ls_group_rank(g) == 0) r->link = link;
    return LS_OK;
}

static ls_status run_workers(int n, const char *transport, ls_worker_main *worker, results *r,
                             ls_error *e) {
    ls_workers w = {.n = n,
                    .transport = transport,
                    .arena_nbytes = (size_t)(PLACES + 1) * FLOATS * sizeof(float) + (16 << 20),
                    .timeout_s = 60};
    return ls_workers_run(&w, worker, r, e);
}

static ls_status measure_groups(ls_machine *m, ls_error *e) {
    void *memory =
        mmap(NULL, sizeof(results), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return ls_fail(e, LS_ENOMEM, "no memory to measure with");
    results *r = memory;
    int n = m->cores > 1 ? m->cores : 2;
    ls_status s = run_workers(n, "shm", shared_worker, r, e);
    if (s == LS_OK) s = run_workers(2, "tcp", link_worker, r, e);
    double part = FLOATS / (double)n * sizeof(float);
    m->shared_start_s = r->start_s / log2(n);
    m->shared_sum_byte_s = fmax(0, r->sum_s - r->start_s) / (part * n);
    m->shared_copy_byte_s = fmax(0, r->copy_s - r->start_s) / (part * (n - 1));
    m->link = r->link;
    munmap(memory, sizeof(results));
    return s;
}

/* ---- the machine ---- */

/* The processor's name, as the kernel reports it. */
static void find_name(char *name, size_t nbytes) {
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    snprintf(name, nbytes, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(name, nbytes, "%.100s", colon + 2);
        break;
    }
    if (f) fclose(f);
    for (char *c = name; *c; c++)
        if (*c == '"' || *c == '\\' || *c < ' ') *c = ' ';
}

ls_status ls_calibrate(ls_machine *m_p, ls_error *e) {
    ls_machine m = {.cores = ls_cores()};
    bool started = false;
    int n = 0;
    LS_TRY(ls_workers_started(&started, &n, e));
    if (started)
        return ls_fail(e, LS_EINVAL,
                       "bench machine measures one machine; start it without a "
                       "launcher");
    if (ls_cores_are_described())
        ls_log("warning: HWLOC_SYNTHETIC describes %d cores; their speeds are measured on the "
               "cores that "
               "are here",
               m.cores);
    find_name(m.name, sizeof m.name);
    ls_status s = measure_groups(&m, e);
    if (s == LS_OK) measure_overhead(&m);
    if (s == LS_OK) s = measure_speeds(&m, e);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_machine_free(&m);
    return s;
}
