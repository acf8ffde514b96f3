/* exec_all.c - runs all workers in one thread: the oracle of exec.h. */
#include "exec/exec_state.h"

/* Runs a communication of all workers, each of which is polled in turn. */
static ls_status run_comm_all(ls_exec **execs, int n, int index, ls_error *e) {
    const ls_action *a = &execs[0]->c.plan->actions[index];
    if (!ls_plan_runs(execs[0]->c.plan, a, execs[0]->in->step)) {
        for (int w = 0; w < n; w++) LS_TRY(ls_exec_run_action(execs[w], index, e));
        return LS_OK;
    }
    int left = 0;
    for (int w = 0; w < n; w++) {
        if (!ls_action_concerns(a, w)) continue;
        left++;
        int64_t begin = ls_exec_enter(execs[w], index);
        LS_TRY(ls_exec_start_comm(execs[w], a, &execs[w]->request, e));
        ls_exec_leave(execs[w], index, begin, false);
    }
    while (left > 0)
        for (int w = 0; w < n; w++) {
            bool done = false;
            if (!execs[w]->request) continue;
            int64_t begin = ls_exec_enter(execs[w], index);
            LS_TRY(ls_test(&execs[w]->request, &done, e));
            if (done) LS_TRY(ls_exec_finish_comm(execs[w], a, e));
            ls_exec_leave(execs[w], index, begin, done);
            left -= done;
        }
    return LS_OK;
}

ls_status ls_exec_step_all(ls_exec **execs, const ls_step_in *in, ls_step_out *out_p, ls_error *e) {
    const ls_plan *p = execs[0]->c.plan;
    const ls_share *sh = &p->share;
    for (int w = 0; w < sh->nworkers; w++) ls_exec_begin(execs[w], in);
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        if (a->worker == LS_ALL_WORKERS || a->kind == LS_SEND)
            LS_TRY(run_comm_all(execs, sh->nworkers, i, e));
        else
            LS_TRY(ls_exec_run_action(execs[a->worker], i, e));
    }
    *out_p = execs[0]->out;
    return LS_OK;
}
