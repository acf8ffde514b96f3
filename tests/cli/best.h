/* best.h - which of a run's checkpoints is the best one. */
#ifndef LS_TEST_BEST_H
#define LS_TEST_BEST_H

#include "cli/program.h"

/* Returns the step with the lowest validation loss before `steps` in a run's metrics.jsonl. */
static inline int lowest_of(const char *run, int steps, double *loss_p) {
    char path[256], line[1024];
    int step = 0, best = 0;
    double loss = 0;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, run);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "{\"step\": %d, \"val_loss\": %lf", &step, &loss) != 2) continue;
        if (step >= steps || (best && loss >= *loss_p)) continue;
        best = step;
        *loss_p = loss;
    }
    fclose(f);
    assert_true(best > 0);
    return best;
}

/* The step that a link of a run's checkpoints leads to. */
static inline int step_at(const char *run, const char *link) {
    char path[256], to[64] = "";
    snprintf(path, sizeof path, "%s/%s/checkpoints/%s", folder, run, link);
    assert_true(readlink(path, to, sizeof to - 1) > 5);
    return atoi(to + 5);
}

#endif
