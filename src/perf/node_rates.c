/* node_rates.c - see node_rates.h. */
#include "perf/node_rates.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/mem.h"
#include "tensor/kernels.h"
#include "tensor/pool.h"

/* More than the caches of a node: that much for each core, up to MOST. */
static const size_t EACH = (size_t)64 << 20, MOST = (size_t)2 << 30;
enum { ROUNDS = 3 };

/* Threads on the cores of one node, and memory of one. */
typedef struct bench {
    const ls_kernels *k;
    ls_pool *pool;
    int node;
    float *memory;
    size_t nbytes;
} bench;

static void bind(void *arg, int thread, int nthreads) {
    const bench *b = arg;
    (void)nthreads;
    ls_cores_bind_node(b->node, thread);
}

static void unbind(void *arg, int thread, int nthreads) {
    (void)arg, (void)thread, (void)nthreads;
    ls_cores_unbind();
}

static void part_of(const bench *b, int thread, int nthreads, int64_t *first_p, int64_t *end_p) {
    ls_pool_share((int64_t)(b->nbytes / sizeof(float)), 1024, thread, nthreads, first_p, end_p);
}

static void touch(void *arg, int thread, int nthreads) {
    const bench *b = arg;
    int64_t first = 0, end = 0;
    part_of(b, thread, nthreads, &first, &end);
    for (int64_t i = first; i < end; i++) b->memory[i] = 1;
}

static void read_part(void *arg, int thread, int nthreads) {
    const bench *b = arg;
    int64_t first = 0, end = 0;
    part_of(b, thread, nthreads, &first, &end);
    volatile float sum = b->k->sum_squares(end - first, b->memory + first);
    (void)sum;
}

/* The fastest round: other programs only make it slower. */
static double read_rate(bench *b) {
    double best = 0;
    ls_pool_run(b->pool, touch, b);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begin = ls_clock_ns();
        ls_pool_run(b->pool, read_part, b);
        double rate = (double)b->nbytes / ((double)(ls_clock_ns() - begin) / 1e9);
        if (rate > best) best = rate;
    }
    return best;
}

static ls_status measure_from(bench *b, int of, double *rate_p, ls_error *e) {
    void *memory = NULL;
    LS_TRY(ls_map(b->nbytes, "a measurement of memory", &memory, e));
    b->memory = memory;
    ls_status s = LS_OK;
    if (ls_cores_place_on(memory, b->nbytes, of))
        *rate_p = read_rate(b);
    else
        s = ls_fail(e, LS_EINVAL,
                    "the system does not let this process have memory of NUMA node %d", of);
    ls_unmap(memory, b->nbytes);
    return s;
}

static ls_status measure_node(bench *b, int nodes, double *rates, ls_error *e) {
    int n = ls_cores_of_node(b->node);
    b->nbytes = EACH * (size_t)n < MOST ? EACH * (size_t)n : MOST;
    LS_TRY(ls_pool_create(n, &b->pool, e));
    ls_pool_run(b->pool, bind, b);
    ls_status s = LS_OK;
    for (int of = 0; s == LS_OK && of < nodes; of++) s = measure_from(b, of, &rates[of], e);
    ls_pool_run(b->pool, unbind, b);
    ls_pool_free(b->pool);
    return s;
}

ls_status ls_node_rates_measure(ls_node_rates *r_p, ls_error *e) {
    int nodes = ls_cores_nodes();
    ls_node_rates r = {.nodes = nodes};
    bench b = {0};
    ls_status s = LS_OK;
    if (nodes > 1) {
        LS_TRY(ls_kernels_pick(&b.k, e));
        r.rate = LS_NEW_ARRAY(double, (size_t)nodes *(size_t)nodes);
        for (b.node = 0; s == LS_OK && b.node < nodes; b.node++)
            s = measure_node(&b, nodes, r.rate + b.node * nodes, e);
    }
    if (s == LS_OK)
        *r_p = r;
    else
        ls_node_rates_free(&r);
    return s;
}

void ls_node_rates_free(ls_node_rates *r) {
    free(r->rate);
    *r = (ls_node_rates){0};
}
