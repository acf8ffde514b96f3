/* chaos.h - a step of all workers in one thread that runs any action that is ready, of a random
 * worker and lane, to expose a missing dependency. */
#ifndef LS_TEST_EXEC_CHAOS_H
#define LS_TEST_EXEC_CHAOS_H

#include "base/random.h"
#include "exec/exec_state.h"

static ls_status step_chaos(ls_exec **execs, uint64_t seed, const ls_step_in *in,
                            ls_step_out *out_p, ls_error *e) {
    int n = execs[0]->c.plan->share.nworkers, left = n;
    ls_status s = LS_OK;
    for (int w = 0; w < n; w++) {
        ls_exec_begin(execs[w], in);
        ls_progress_begin(&execs[w]->at, &execs[w]->lanes, 0);
        execs[w]->ncalls = 0;
    }
    for (uint64_t draw = 0; s == LS_OK && left > 0; draw++) {
        uint32_t random[4];
        ls_random_words(seed, LS_STREAM_FAKE, (uint64_t)in->step, draw, random);
        ls_exec *x = execs[random[0] % (uint32_t)n];
        if (ls_progress_is_over(&x->at)) continue;
        if (random[1] % 2)
            s = ls_exec_move_comm(x, false, e);
        else if (ls_progress_may_compute(&x->at))
            s = ls_exec_compute_next(x, e);
        left -= ls_progress_is_over(&x->at);
    }
    *out_p = execs[0]->out;
    return s;
}

#endif
