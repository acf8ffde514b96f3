/* killed_at.h - runs with a checkpoint after 20 steps that are killed there: a worker, or all. */
#ifndef LS_TEST_KILLED_AT_H
#define LS_TEST_KILLED_AT_H

#include <signal.h>

#include "cli/program.h"

/* line: of two workers or more. The run goes on without the worker, and ends well. */
static inline void kill_worker_at_20(const char *line, const char *run) {
    char checkpoint[128], *output = NULL;
    pid_t pids[8];
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoints/step-20", run);
    hold_after(run, 20);
    program p = program_start(line, 0);
    wait_for_file(checkpoint);
    wait_for_children(p.pid, 2, pids, 8);
    kill(pids[1], SIGKILL);
    let_go(run);
    assert_int_equal(program_end(&p, &output), 0);
    free(output);
}

static inline void kill_run_at_20(const char *line, const char *run) {
    char checkpoint[128];
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoints/step-20", run);
    hold_after(run, 20);
    program p = program_start(line, 0);
    wait_for_file(checkpoint);
    kill_paced(&p, run);
}

#endif
