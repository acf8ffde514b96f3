/* begin.c - see begin.h. */
#include "train/begin.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "coll/virtual.h"
#include "optim/learning_rate.h"
#include "storage/checkpoint.h"
#include "storage/lock.h"
#include "train/compute_reference.h"

/* What earlier views have done. All workers use the values of worker 0, whose host took part in
 * those views; each host notes them for later views. */
typedef struct agreed {
    int64_t steps; /* complete */
    int64_t n;     /* workers of worker 0's host */
    int64_t begun_at, saved, evaluated, data;
    int64_t mark[2]; /* of the run directory (storage/lock.h); 0: none */
} agreed;

/* May workers be on other hosts than worker 0? */
static bool is_distributed(const ls_loop *l) {
    return l->host->survival.view.nhosts > 1 || l->run->started;
}

static void to_words(const char *number, int64_t words[2]) {
    ls_hash h = {0};
    if (*number && !ls_hash_parse(number, &h)) h = (ls_hash){0};
    words[0] = (int64_t)h.hi;
    words[1] = (int64_t)h.lo;
}

/* Does this worker have the directory of worker 0? */
static ls_status check_directory(const ls_loop *l, const agreed *a, ls_error *e) {
    char text[LS_LOCK_NUMBER];
    int64_t own[2];
    if (!is_distributed(l) || !(a->mark[0] | a->mark[1])) return LS_OK;
    LS_TRY(ls_lock_mark_of(l->run->dir, text, e));
    to_words(text, own);
    if (own[0] == a->mark[0] && own[1] == a->mark[1]) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: %s; name the directory of the run with -o, the same on all hosts, on a "
                   "shared file system",
                   l->run->dir,
                   ls_file_exists(l->run->dir) ? "is another directory than that of worker 0"
                                               : "does not exist on this host");
}

static agreed own_agreed(const ls_loop *l) {
    ls_run_notes *notes = l->host->notes;
    agreed a = {.steps = l->out.folder ? l->out.folder->notes->step : 0,
                .n = l->host->survival.view.n};
    if (l->out.folder && ls_folder_phase_of(&notes->folder) != LS_FOLDER_MADE)
        atomic_store(&notes->folder.step, a.steps);
    a.begun_at = atomic_load(&notes->folder.step);
    a.saved = atomic_load(&notes->saved);
    a.evaluated = atomic_load(&notes->evaluated);
    a.data = atomic_load(&notes->data);
    char mark[LS_LOCK_NUMBER];
    if (l->out.folder && is_distributed(l) && ls_lock_mark(&l->out.folder->lock, mark))
        to_words(mark, a.mark);
    return a;
}

static ls_status agree_on_done(ls_loop *l, agreed *a_p, ls_error *e) {
    ls_run_notes *notes = l->host->notes;
    agreed a = own_agreed(l);
    LS_TRY(ls_broadcast(l->m.group, &a, sizeof a / sizeof(int64_t), LS_I64, 0, e));
    l->steps = a.steps;
    atomic_store(&notes->folder.step, a.begun_at);
    atomic_store(&notes->saved, a.saved);
    atomic_store(&notes->evaluated, a.evaluated);
    atomic_store(&notes->data, a.data);
    ls_folder_set_made(&notes->folder);
    ls_saver_begin(l, a.saved, (int)a.n);
    *a_p = a;
    return LS_OK;
}

/* A run has the same samples in all its views, whatever happens to its directory. A run that began
 * before tokens were recorded gets a record. */
static ls_status open_data(ls_loop *l, ls_error *e) {
    const ls_run *r = l->run;
    LS_TRY(ls_dataset_open(&l->data, r->dir, &r->config, &l->host->layout.model, e));
    LS_TRY(ls_schedule_check(&r->config, l->data.ntrain, e));
    ls_hash h = ls_dataset_identity(&l->data);
    ls_run_notes *notes = l->host->notes;
    int64_t mark = (int64_t)((h.hi ^ h.lo) | 1);
    int64_t was = atomic_load(&notes->data); /* 0: not known yet */
    if (was && was != mark) return ls_dataset_fail_changed(&l->data, r->dir, e);
    atomic_store(&notes->data, mark);
    return ls_group_rank(l->m.group) == 0 ? ls_dataset_save(&l->data, r->dir, e) : LS_OK;
}

ls_status ls_begin_folder(ls_loop *l, ls_error *e) {
    bool first = ls_group_rank(l->m.group) == 0;
    LS_TRY(ls_member_wait(&l->m, first ? ls_outputs_take_folder(l, e) : LS_OK, e));
    agreed a;
    LS_TRY(agree_on_done(l, &a, e));
    ls_status s = check_directory(l, &a, e);
    if (l->run->started) ls_corpus_free(l->host->made);     /* of a worker that did not write it */
    if (s == LS_OK && !l->data.ntrain) s = open_data(l, e); /* else an earlier view opened it */
    LS_TRY(ls_agree(l->m.group, s, e));
    return ls_validation_begin(l, a.evaluated, e);
}

ls_status ls_begin_is_over(ls_loop *l, bool *over_p, ls_error *e) {
    int32_t lacks = l->steps == l->run->config.train.steps && l->out.folder &&
                    ls_history_lacks_evaluation(l->run->dir, l->steps);
    LS_TRY(ls_broadcast(l->m.group, &lacks, 1, LS_I32, 0, e));
    *over_p = !lacks;
    return LS_OK;
}

/* A view that ended before all workers knew that the outputs are open made no step: the next one
 * opens them as the first does. */
static ls_status open_outputs(ls_loop *l, int64_t ready_ns, ls_error *e) {
    atomic_int *noted = &l->host->notes->has_outputs;
    int32_t has = atomic_load(noted);
    LS_TRY(ls_all_reduce(l->m.group, &has, &has, 1, LS_I32, LS_MAX, e));
    l->out.follow = has;
    ls_status s = ls_outputs_open(l, ready_ns, e);
    if (s == LS_OK) s = ls_async_steps_begin(l, e);
    LS_TRY(ls_agree(l->m.group, s, e));
    atomic_store(noted, 1);
    return LS_OK;
}

ls_status ls_begin_steps(ls_loop *l, ls_error *e) {
    const ls_run *r = l->run;
    int64_t ready_ns = ls_clock_ns();
    l->m.data = &l->data;
    LS_TRY(ls_member_join(&l->m, e));
    if (r->nasync) LS_TRY(ls_async_steps_open(l, e));
    char *path = ls_checkpoint_path(r->dir, l->steps);
    ls_status s = ls_member_begin(&l->m, l->steps, path, e);
    free(path);
    LS_TRY(s);
    LS_TRY(ls_validation_open_prompts(l, e));
    LS_TRY(ls_reference_begin(l, e));
    return open_outputs(l, ready_ns, e);
}
