/* main.c - lockstep-sim: simulates the clusters of seeds, one after the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "world.h"

static const char usage[] =
    "usage: lockstep-sim [--seeds A..B] [--jobs N] [--first] [--trace]\n"
    "                    [--cut] [--no-fence]\n"
    "\n"
    "Simulates clusters with faults, one for each seed, whose hosts agree on views "
    "(cluster/views.h).\n"
    "Prints each seed that fails, and what it violates; the same seed replays exactly.\n"
    "\n"
    "  --seeds A..B  seeds, or a single seed; 1..1000 by default\n"
    "  --jobs N      number of processes\n"
    "  --first       stops at the first seed that fails\n"
    "  --trace       prints every event with its time\n"
    "  --cut         each view cuts the log after its first step\n"
    "  --no-fence    a write to the run directory of a later view is a violation\n"
    "\n"
    "Exit code 1: a seed failed.\n";

typedef struct args {
    uint64_t first, last;
    int jobs;
    bool stops_at_first;
    options options;
} args;

static bool read_seeds(const char *text, args *a) {
    char *end;
    a->first = a->last = strtoull(text, &end, 10);
    if (end == text) return false;
    if (*end == 0) return true;
    if (strncmp(end, "..", 2) != 0) return false;
    text = end + 2;
    a->last = strtoull(text, &end, 10);
    return end != text && *end == 0 && a->last >= a->first;
}

static bool read_args(int argc, char **argv, args *a) {
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--trace") == 0)
            a->options.trace = true;
        else if (strcmp(argv[i], "--first") == 0)
            a->stops_at_first = true;
        else if (strcmp(argv[i], "--cut") == 0)
            a->options.cuts_log = true;
        else if (strcmp(argv[i], "--no-fence") == 0)
            a->options.no_fence = true;
        else if (strcmp(argv[i], "--seeds") == 0 && read_seeds(value, a))
            i++;
        else if (strcmp(argv[i], "--jobs") == 0 && (a->jobs = atoi(value)) > 0)
            i++;
        else
            return false;
    }
    return true;
}

/* Runs every n-th seed for n jobs. Returns the number that failed. */
static int64_t run_seeds(const args *a, int job, tally *t) {
    world *w = LS_NEW(world);
    int64_t failed = 0;
    for (uint64_t seed = a->first + (uint64_t)job; seed <= a->last; seed += (uint64_t)a->jobs) {
        world_run(w, seed, &a->options, t);
        if (!w->violated[0]) continue;
        failed++;
        printf("seed %llu: %s\n", (unsigned long long)seed, w->violated);
        fflush(stdout);
        if (a->stops_at_first) break;
    }
    world_free(w);
    free(w->events);
    free(w);
    return failed;
}

static void print_tally(const tally *t, int64_t failed) {
    printf("%lld seeds, %lld failed: %lld events, %lld faults, %lld views (%lld began beside "
           "another), %lld terms, %lld decisions, %lld steps repeated, %lld times without state, "
           "%lld writes refused, %lld times a host left out, %lld cuts open again\n",
           (long long)t->seeds, (long long)failed, (long long)t->events, (long long)t->faults,
           (long long)t->views, (long long)t->overlaps, (long long)t->terms, (long long)t->decided,
           (long long)t->replayed, (long long)t->fallbacks, (long long)t->refused,
           (long long)t->outs, (long long)t->opened);
}

static void add(tally *sum, const tally *t) {
    int64_t *x = &sum->events;
    const int64_t *y = &t->events;
    for (size_t i = 0; i < sizeof *sum / sizeof *x; i++) x[i] += y[i];
}

static int run_jobs(const args *a) {
    struct result {
        tally t;
        int64_t failed;
    } *results = mmap(NULL, (size_t)a->jobs * sizeof *results, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    tally sum = {0};
    int64_t failed = 0;
    bool bad = results == MAP_FAILED;
    if (bad) return 2;
    for (int job = 1; job < a->jobs; job++)
        if (fork() == 0) {
            results[job].failed = run_seeds(a, job, &results[job].t);
            _exit(0);
        }
    results[0].failed = run_seeds(a, 0, &results[0].t);
    int how;
    while (wait(&how) > 0) bad |= !WIFEXITED(how) || WEXITSTATUS(how) != 0;
    for (int job = 0; job < a->jobs; job++) {
        add(&sum, &results[job].t);
        failed += results[job].failed;
    }
    print_tally(&sum, failed);
    return bad ? 2 : failed > 0;
}

int main(int argc, char **argv) {
    args a = {.first = 1, .last = 1000, .jobs = 1};
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (!read_args(argc, argv, &a)) {
        fputs(usage, stderr);
        return 2;
    }
    return run_jobs(&a);
}
