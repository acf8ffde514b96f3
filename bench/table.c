/* table.c - rows of a table that a worker reads and updates in a second: lockstep/table.h.
 *
 *     lockstep run -n 2 build/bench/table ROWS WIDTH IDS STEPS
 *
 * Each worker reads IDS rows of ROWS in a step, drawn as bench/peers/table.py draws them, adds a
 * gradient for each and updates the table (row-wise Adagrad). Prints one JSON object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lockstep/table.h"

static void stop_if(ls_status s, const ls_error *e) {
    if (s == LS_OK) return;
    fprintf(stderr, "bench table: %s\n", e->msg);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, by_size);
    return x[n / 2];
}

/* A linear congruential generator: Knuth's MMIX. */
static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 16;
}

/* Changes every row once, so that the memory of all is there. */
static void touch(ls_table *t, int worker, int workers, int64_t rows, int width) {
    enum { PART = 1 << 18 };
    int64_t *ids = malloc(PART * sizeof *ids);
    float *zeros = calloc((size_t)PART * (size_t)width, sizeof *zeros);
    ls_error e;
    if (!ids || !zeros) exit(1);
    for (int64_t first = 0; first < rows; first += (int64_t)PART * workers) {
        size_t n = 0;
        for (int64_t i = first + worker; i < rows && n < PART; i += workers) ids[n++] = i;
        stop_if(ls_table_add(t, worker, ids, n, zeros, &e), &e);
        stop_if(ls_table_update(t, 0, &e), &e);
    }
    free(ids);
    free(zeros);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: table ROWS WIDTH IDS STEPS\n");
        return 2;
    }
    int64_t rows = atoll(argv[1]);
    int width = atoi(argv[2]), nsteps = atoi(argv[4]);
    size_t n = (size_t)atoll(argv[3]);
    ls_group *g;
    ls_table *t;
    ls_error e;
    stop_if(ls_group_open(NULL, &g, &e), &e);
    int rank = ls_group_rank(g), size = ls_group_size(g);
    ls_table_config c = {.width = width,
                         .rows = rows,
                         .optimizer = LS_ROW_ADAGRAD,
                         .bound = 0.01,
                         .virtual_workers = size};
    stop_if(ls_table_open(g, &c, &t, &e), &e);
    int64_t *ids = malloc(n * sizeof *ids);
    float *values = malloc(n * (size_t)width * sizeof *values);
    double *reads = malloc((size_t)nsteps * sizeof *reads);
    double *steps = malloc((size_t)nsteps * sizeof *steps);
    if (!ids || !values || !reads || !steps) return 1;
    uint64_t state = (uint64_t)rank + 1;
    touch(t, rank, size, rows, width);
    for (int i = -1; i < nsteps; i++) { /* the first step warms up, and is not counted */
        for (size_t k = 0; k < n; k++) ids[k] = (int64_t)(next(&state) % (uint64_t)rows);
        stop_if(ls_barrier(g, &e), &e);
        double begin = now();
        stop_if(ls_table_read(t, ids, n, values, &e), &e);
        double read = now();
        stop_if(ls_table_add(t, rank, ids, n, values, &e), &e);
        stop_if(ls_table_update(t, 0.01, &e), &e);
        stop_if(ls_barrier(g, &e), &e);
        if (i < 0) continue;
        reads[i] = read - begin;
        steps[i] = now() - begin;
    }
    double step_s = median(steps, nsteps), read_s = median(reads, nsteps);
    if (rank == 0)
        printf("{\"system\": \"lockstep\", \"workers\": %d, \"rows\": %lld, \"width\": %d, "
               "\"ids\": %zu, "
               "\"read_s\": %.6f, \"step_s\": %.6f, \"rows_per_s\": %.0f}\n",
               size, (long long)rows, width, n, read_s, step_s, (double)n * size / step_s);
    ls_table_close(t);
    ls_group_close(g);
    free(ids);
    free(values);
    free(reads);
    free(steps);
    return 0;
}
