/* worker.c - see worker.h. */
#include "train/worker.h"

#include <stdlib.h>

#include "train/begin.h"
#include "train/loop.h"
#include "train/summary.h"

static ls_status run_worker(ls_loop *l, ls_error *e) {
    LS_TRY(ls_tracer_check(&l->job->trace, l->m.group, e));
    LS_TRY(ls_begin_folder(l, e));
    if (l->run->started) LS_TRY(ls_member_compare_settings(&l->m, e));
    bool first = ls_group_rank(l->m.group) == 0;
    bool complete = ls_loop_is_complete(l) && !l->follows;
    if (complete) LS_TRY(ls_begin_is_over(l, &complete, e));
    if (complete) {
        if (first) ls_summary_complete(l);
        return LS_OK;
    }
    LS_TRY(ls_begin_steps(l, e));
    LS_TRY(ls_loop_run(l, e));
    /* A launcher ends all workers once one has ended with an exit code, so all wait for worker
     * 0. */
    bool stops = l->asked == LS_ASKED_STOP && !ls_loop_is_complete(l);
    if (stops) atomic_store(l->job->unfinished, 1);
    const ls_summary summary = ls_summary_of(l);
    LS_TRY(ls_outputs_end_view(l, e));
    ls_status s = first && l->asked == LS_ASKED_STOP ? ls_summary_print(l, &summary, e) : LS_OK;
    if (first && s == LS_OK && l->out.lost.code) s = ls_fail(e, LS_EIO, "%s", l->out.lost.msg);
    return stops ? ls_member_wait(&l->m, s, e) : s;
}

static ls_loop *new_loop(const ls_train_job *job, ls_board_slot *me) {
    ls_loop *l = LS_NEW(ls_loop);
    *l = (ls_loop){.job = job, .host = &job->host, .run = job->host.run};
    ls_saver_open(l);
    l->m = ls_member_of(l->host, NULL, me, &l->data);
    return l;
}

/* fails: a start that failed by an error of its own, not because another worker was lost, abandons
 * the directory. */
static void free_loop(ls_loop *l, ls_status how, bool fails) {
    ls_async_steps_close(l, how == LS_OK);
    ls_outputs_close(l);
    l->m.failed = how != LS_OK;
    ls_member_leave(&l->m);
    ls_dataset_free(&l->data);
    ls_validation_end(l);
    free(l->apart);
    ls_outputs_leave_folder(l, fails);
    free(l);
}

/* Did a worker end by an error of its own? One of another host that fails does not end the run: the
 * others go on without that host. */
static bool fails_itself(const ls_loop *l, ls_status how, const ls_error *e) {
    bool reported = l->host->survival.view.nhosts > 1 && e && !e->msg[0]; /* by that worker */
    return how != LS_OK && how != LS_EPEER && how != LS_EABORT && how != LS_ETIMEOUT && !reported;
}

ls_status ls_train_worker(ls_group *g, ls_board_slot *me, void *arg, ls_error *e) {
    ls_train_job *job = arg;
    bool rested = job->loop != NULL;
    ls_loop *l = rested ? job->loop : new_loop(job, me);
    l->follows = ls_host_has_state(l->host);
    l->asked = LS_ASKED_NOTHING;
    l->evicts = false;
    l->m.group = g;
    ls_status s = run_worker(l, e);
    if (l->host->runtime->may_rest(l->host, s)) {
        ls_member_part(&l->m);
        job->loop = l;
        return s;
    }
    free_loop(l, s, fails_itself(l, s, e));
    if (rested) job->loop = NULL;
    return s;
}
