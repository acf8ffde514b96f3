/* threads.c - the mean and the standard deviation of a million numbers, by four threads.
 *
 *     cc threads.c -o threads $(pkg-config --cflags --libs lockstep) -lm
 *     ./threads        # four workers
 *     ./threads 7      # seven
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/group.h>

enum { COUNT = 1000000 };

/* Every worker runs this, each on its part of the numbers. */
static ls_status work(ls_group *g, void *arg, ls_error *e) {
    const double *x = (const double *)arg;
    int64_t rank = ls_group_rank(g), size = ls_group_size(g);
    int64_t first = COUNT * rank / size, end = COUNT * (rank + 1) / size;
    double sum = 0, squares = 0;
    ls_status s;

    for (int64_t i = first; i < end; i++) sum += x[i];
    s = ls_all_reduce(g, &sum, &sum, 1, LS_F64, LS_SUM, e);
    if (s != LS_OK) return s;
    double mean = sum / (double)COUNT;

    for (int64_t i = first; i < end; i++) squares += (x[i] - mean) * (x[i] - mean);
    s = ls_all_reduce(g, &squares, &squares, 1, LS_F64, LS_SUM, e);
    if (s != LS_OK) return s;
    if (rank == 0) printf("mean %.3f, deviation %.3f\n", mean, sqrt(squares / (double)COUNT));
    return LS_OK;
}

int main(int argc, char **argv) {
    ls_error e;
    double *x = (double *)malloc(COUNT * sizeof *x);
    if (!x) return 1;
    for (int i = 0; i < COUNT; i++) x[i] = i % 1000;
    ls_status s = ls_run_threads(argc > 1 ? atoi(argv[1]) : 4, work, x, &e);
    if (s != LS_OK) fprintf(stderr, "threads: %s: %s\n", ls_status_name(s), e.msg);
    free(x);
    return s != LS_OK;
}
