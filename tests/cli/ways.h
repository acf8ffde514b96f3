/* ways.h - for tests of runs that have the same bits in whatever way workers divide a step. */
#ifndef LS_TEST_WAYS_H
#define LS_TEST_WAYS_H

#include "cli/program.h"

/* Four steps of a config and a model; what `way` sets counts more. */
static inline void train_way(const char *config, const char *run, const char *model,
                             const char *way) {
    char *line = ls_format("train %s -o @/%s --set train.steps=4 %s %s", config, run, model, way);
    expect(line, 0, NULL);
    free(line);
}

/* ways [n]: each ends with the weights of one worker, whose run remains: "one". `make check` tries
 * every `each`-th way, beginning with way `first`. */
static inline void train_ways(const char *config, const char *model, const char *const *ways, int n,
                              int first, int each) {
    train_way(config, "one", model, "-n 1");
    for (int i = 0; i < n; i++) {
        if (!runs_case(i + each - first, each)) continue;
        train_way(config, "many", model, ways[i]);
        same_hash("one", "many");
        shell_of_run("many", "rm -r $r");
    }
}

#endif
