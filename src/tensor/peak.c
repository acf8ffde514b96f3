/* peak.c - see peak.h. */
#include "tensor/peak.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

/* Rounds of multiply-adds, each of FLOPS_OF_ROUND operations. */
enum { TOGETHER_ROUNDS = 400000, TOGETHER_TRIES = 5, ESTIMATE_ROUNDS = 4000, ESTIMATE_TRIES = 4 };
static const double FLOPS_OF_ROUND = 192.0 * 16.0 * 2.0;

static double flops_of(const ls_kernels *k, bool bf16, int64_t rounds) {
    return (double)rounds * FLOPS_OF_ROUND * (bf16 ? k->bf16_depth : 1);
}

double ls_peak_of_thread(const ls_kernels *k, bool bf16, int64_t rounds) {
    double begin = ls_clock_thread_s();
    volatile float result = (bf16 ? k->bf16_peak : k->fma_peak)(rounds);
    (void)result;
    return flops_of(k, bf16, rounds) / (ls_clock_thread_s() - begin);
}

typedef struct peak_thread {
    pthread_t thread;
    const ls_kernels *k;
    bool bf16;
    pthread_barrier_t *together;
    double flops; /* a second */
} peak_thread;

/* The thread times itself: its parent may not get a core until it ends. */
static void *together_main(void *arg) {
    peak_thread *p = arg;
    pthread_barrier_wait(p->together);
    int64_t begin = ls_clock_ns();
    volatile float result = (p->bf16 ? p->k->bf16_peak : p->k->fma_peak)(TOGETHER_ROUNDS);
    (void)result;
    double seconds = (double)(ls_clock_ns() - begin) / 1e9;
    p->flops = flops_of(p->k, p->bf16, TOGETHER_ROUNDS) / seconds;
    return NULL;
}

static void *estimate_main(void *arg) {
    peak_thread *p = arg;
    for (int i = 0; i < ESTIMATE_TRIES; i++) {
        double flops = ls_peak_of_thread(p->k, p->bf16, ESTIMATE_ROUNDS);
        if (flops > p->flops) p->flops = flops;
    }
    return NULL;
}

/* Returns how many threads there are: the system may have a limit. */
static int begin(peak_thread *threads, int n, peak_thread like, void *(*run)(void *)) {
    for (int i = 0; i < n; i++) {
        threads[i] = like;
        if (pthread_create(&threads[i].thread, NULL, run, &threads[i])) return i;
    }
    return n;
}

static double end(peak_thread *threads, int n) {
    double flops = 0;
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i].thread, NULL);
        flops += threads[i].flops;
    }
    return flops;
}

double ls_peak_together(const ls_kernels *k, bool bf16, int cores) {
    peak_thread *threads = LS_NEW_ARRAY(peak_thread, (size_t)cores);
    pthread_barrier_t together;
    double best = 0;
    pthread_barrier_init(&together, NULL, (unsigned)cores);
    for (int i = 0; i < TOGETHER_TRIES; i++) {
        const peak_thread like = {.k = k, .bf16 = bf16, .together = &together};
        if (begin(threads, cores, like, together_main) < cores) abort();
        double flops = end(threads, cores);
        if (flops > best) best = flops;
    }
    pthread_barrier_destroy(&together);
    free(threads);
    return best;
}

double ls_peak_estimate(const ls_kernels *k, bool bf16, int cores) {
    peak_thread *threads = LS_NEW_ARRAY(peak_thread, (size_t)cores);
    int n = begin(threads, cores, (peak_thread){.k = k, .bf16 = bf16}, estimate_main);
    double flops = end(threads, n);
    free(threads);
    return n ? flops * cores / n : 0;
}
