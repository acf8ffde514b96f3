/* validation.c - see validation.h. */
#include "train/validation.h"

#include <stdlib.h>

#include "base/log.h"
#include "train/evaluate.h"
#include "train/inputs.h"
#include "train/loop.h"

/* ---- a view begins, and a loop ends ---- */

/* The best evaluation so far, as earlier views noted it; if their state is lost, as the manifests
 * of the checkpoints record it. */
ls_status ls_validation_begin(ls_loop *l, int64_t noted, ls_error *e) {
    ls_run_notes *notes = l->host->notes;
    int64_t wanted = l->run->config.train.eval_samples, most = (int64_t)l->data.nval;
    ls_best b = {.nsamples = wanted < most ? wanted : most};
    if (l->out.folder && l->follows)
        ls_best_load(&b, &notes->best);
    else if (l->out.folder)
        ls_best_find(&b, l->run->dir, l->steps);
    LS_TRY(ls_broadcast(l->m.group, &b, sizeof b, LS_U8, 0, e));
    l->val.best = b;
    l->val.noted = noted;
    ls_best_save(&b, &notes->best);
    return LS_OK;
}

void ls_validation_end(ls_loop *l) {
    free(l->val.records);
    ls_prompts_close(&l->val.prompts);
}

ls_status ls_validation_open_prompts(ls_loop *l, ls_error *e) {
    ls_prompts_close(&l->val.prompts); /* of an earlier view */
    return ls_prompts_open(&l->val.prompts, &l->m, e);
}

/* ---- evaluations ---- */

void ls_validation_note(const ls_loop *l) { atomic_store(&l->host->notes->evaluated, l->steps); }

bool ls_validation_is_best(const ls_loop *l) {
    return l->val.best.step == l->steps && l->steps > 0;
}

void ls_validation_cut_answers(ls_loop *l, int64_t answered) { l->val.answered = answered; }

void ls_validation_draw(ls_loop *l, bool last) {
    ls_report_picture(&l->val.picture, l->run->dir, last);
}

static void note_loss(ls_loop *l) {
    ls_best_note(&l->val.best, l->steps, l->val.latest.loss);
    ls_best_save(&l->val.best, &l->host->notes->best);
}

/* What the model writes after the prompts of train.sample_prompts, in samples.jsonl. *list_p, on
 * worker 0: to be shown; NULL: it was shown, or there are no prompts. */
static ls_status answer(ls_loop *l, ls_answer **list_p, ls_error *e) {
    ls_error why;
    if (!l->val.prompts.n) return LS_OK;
    LS_TRY(ls_prompts_answer(&l->val.prompts, &l->m, l->steps, list_p, e));
    if (*list_p && l->steps <= l->val.answered) { /* they are repeated, with the same texts */
        ls_prompts_free_answers(&l->val.prompts, *list_p);
        *list_p = NULL;
    }
    if (!*list_p) return LS_OK;
    if (ls_answers_write(l->run->dir, l->steps, *list_p, l->val.prompts.n, &why) != LS_OK)
        ls_log("%s; these answers are lost", why.msg);
    l->val.answered = l->steps;
    return LS_OK;
}

/* Metrics of the last step have only the evaluation over the whole validation part. */
static ls_status write_metrics(ls_loop *l, bool whole, ls_error *e) {
    if (!l->out.metrics || (!whole && l->steps == l->run->config.train.steps)) return LS_OK;
    LS_TRY(ls_metrics_evaluation(l->out.metrics, l->steps, &l->val.latest, e));
    ls_mllog_evaluation(l->out.mllog, l->steps, &l->val.latest, whole);
    if (!whole) ls_validation_draw(l, false);
    return LS_OK;
}

/* No worker notes the evaluation before worker 0, which may be lost, has written its line. It is
 * written after the answers: so these are there wherever the line is. */
ls_status ls_validate(ls_loop *l, bool whole, ls_error *e) {
    const ls_evaluate_request q = {.data = l->m.data,
                                   .nsamples =
                                       whole ? 0 : (uint64_t)l->run->config.train.eval_samples,
                                   .steps = l->steps};
    free(l->val.records); /* of an earlier view */
    l->val.records = NULL;
    double **records_p = whole && l->m.worker == 0 ? &l->val.records : NULL;
    ls_mllog_begin(l->out.mllog);
    LS_TRY(ls_evaluate(&l->m, &q, &l->val.latest, records_p, e));
    LS_TRY(ls_member_wait(&l->m, ls_inputs_check(&l->data, &l->m.frozen.file, e), e));
    if (!whole) note_loss(l);
    ls_answer *list = NULL;
    if (whole || l->steps < l->run->config.train.steps) LS_TRY(answer(l, &list, e));
    ls_status s = ls_member_wait(&l->m, write_metrics(l, whole, e), e);
    if (s == LS_OK && list) ls_answers_log(l->run->dir, list, l->val.prompts.n);
    ls_prompts_free_answers(&l->val.prompts, list);
    if (s == LS_OK) ls_validation_note(l);
    return s;
}
