/* netns_worker.c - one worker of scripts/check_netns.sh: opens the group that its environment
 * describes, makes all-reduces of several sizes, checks the results, and prints a line.
 *
 *     netns_worker [all-reduces] [pause between them, ms]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lockstep/group.h"

static float value(int rank, size_t i) { return (float)((i * 7 + (size_t)rank * 13) % 31); }

static ls_status reduce(ls_group *g, size_t count, ls_error *e) {
    int rank = ls_group_rank(g), n = ls_group_size(g);
    float *x = malloc((count + 1) * sizeof *x);
    if (!x) return LS_ENOMEM;
    for (size_t i = 0; i < count; i++) x[i] = value(rank, i);
    ls_status s = ls_all_reduce(g, x, x, count, LS_F32, LS_SUM, e);
    for (size_t i = 0; i < count && s == LS_OK; i++) {
        float sum = 0;
        for (int k = 0; k < n; k++) sum += value(k, i);
        if (x[i] == sum) continue;
        snprintf(e->msg, sizeof e->msg, "element %zu of %zu is %g, not %g", i, count, (double)x[i],
                 (double)sum);
        s = LS_EIO;
    }
    free(x);
    return s;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    static const size_t sizes[] = {1, 1000, 20000, 100000};
    int rounds = argc > 1 ? atoi(argv[1]) : 50, pause_ms = argc > 2 ? atoi(argv[2]) : 0;
    ls_group_options o = {.transport = "tcp", .timeout_s = 60};
    ls_group *g = NULL;
    ls_error e = {0};
    double begin = now();
    ls_status s = ls_group_open(&o, &g, &e);
    double open = now();
    int done = 0;
    for (; done < rounds && s == LS_OK; done++) {
        s = reduce(g, sizes[done % 4], &e);
        struct timespec t = {.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000L};
        nanosleep(&t, NULL);
    }
    double end = now();
    ls_group_close(g);
    if (s != LS_OK) {
        printf("error after %d all-reduces, %.1f s: %s: %s\n", done - 1, end - open,
               ls_status_name(s), e.msg);
        return 1;
    }
    printf("ok: %d all-reduces in %.2f s, formed in %.2f s\n", rounds, end - open, open - begin);
    return 0;
}
