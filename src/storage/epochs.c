/* epochs.c - see epochs.h. */
#include "storage/epochs.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/math.h"
#include "base/waiting.h"
#include "config/relations.h"
#include "data/batches.h"
#include "dataset/data_paths.h"
#include "dataset/dataset.h"
#include "dataset/decisions.h"
#include "dataset/samples.h"
#include "optim/learning_rate.h"
#include "storage/origin.h"

enum { MOST_STEPS = 1000000000 }; /* of train.steps */

ls_status ls_epochs_set(ls_config *c, uint64_t nsamples, ls_error *e) {
    const ls_batches b = ls_batches_of(c);
    if (c->train.epochs <= 0) return LS_OK;
    double want = ls_math_times(c->train.epochs, (double)nsamples);
    if (want < 1) want = 1;
    int64_t steps = ls_batches_steps(&b, want, nsamples, MOST_STEPS + 1);
    if (steps > MOST_STEPS)
        return ls_fail(e, LS_EINVAL,
                       "train.epochs %.15g of %llu samples take more than %d steps, the most of a "
                       "run; set fewer, or a larger train.batch",
                       c->train.epochs, (unsigned long long)nsamples, MOST_STEPS);
    c->train.steps = steps;
    char *where = ls_format("train.epochs %.15g", c->train.epochs);
    ls_status s = ls_config_check_steps(c, where, e);
    free(where);
    return s;
}

/* ---- of a run that has begun ---- */

/* Keys that decide the steps can't change when a run resumes, but for train.epochs itself. */
static bool take_steps(ls_config *c, const char *run) {
    char *path = ls_format("%s/config.yaml", run);
    ls_config *was = LS_NEW(ls_config);
    bool same = ls_file_exists(path) && ls_config_read(path, was, NULL) == LS_OK &&
                was->train.epochs == c->train.epochs && was->train.steps > 0;
    if (same) c->train.steps = was->train.steps;
    free(was);
    free(path);
    return same;
}

/* Nothing is counted if the run lacks its data: it is not complete yet. */
static ls_status count_saved(const ls_config *c, const char *run, uint64_t *n_p, ls_error *e) {
    ls_order order;
    if (!run || !ls_dataset_is_saved(run, c)) return LS_OK;
    LS_TRY(ls_dataset_order_of(run, c, &order, e));
    *n_p = order.n;
    return LS_OK;
}

/* ---- of a new one ---- */

static ls_status count_new(const ls_config *c, ls_corpus *made, uint64_t *n_p, ls_error *e) {
    LS_TRY(ls_data_paths_check(c, e));
    if (!ls_config_has_corpus(c)) return ls_samples_count(c, n_p, e);
    LS_TRY(ls_corpus_make(made, c, e));
    *n_p = made->ntrain;
    return LS_OK;
}

static ls_status count(const ls_config *c, const char *run, ls_corpus *made, uint64_t *n_p,
                       ls_error *e) {
    ls_corpus own = {0};
    *n_p = 0;
    LS_TRY(count_saved(c, run, n_p, e));
    if (*n_p) return LS_OK;
    ls_waiting_begin(LS_WAITING_NS, "counting the samples of an epoch");
    ls_status s = count_new(c, &own, n_p, e);
    ls_waiting_end();
    if (s == LS_OK && made)
        *made = own;
    else
        ls_corpus_free(&own);
    return s;
}

ls_status ls_epochs_resolve(ls_config *c, const char *run, ls_corpus *made, ls_error *e) {
    uint64_t n = 0;
    if (c->train.epochs > 0 && !(run && take_steps(c, run))) {
        LS_TRY(count(c, run, made, &n, e));
        LS_TRY(ls_epochs_set(c, n, e));
    }
    return ls_schedule_check(c, n, e);
}

/* Other keys stay as they are: a training of the command decides what they leave open. */
ls_status ls_epochs_replace(ls_config *c, ls_error *e) {
    if (c->train.epochs <= 0 && !ls_decisions_have_steps(c)) return ls_schedule_check(c, 0, e);
    ls_config *known = LS_NEW(ls_config);
    *known = *c;
    ls_status s = ls_origin_resolve(known, NULL, e);
    if (s == LS_OK) s = ls_origin_complete(known, NULL, e);
    if (s == LS_OK) s = ls_epochs_resolve(known, NULL, NULL, e);
    char *steps = ls_format("train.steps=%lld", (long long)known->train.steps);
    free(known);
    c->train.epochs = 0;
    if (s == LS_OK) s = ls_config_set(c, steps, e); /* they are written: no rows decide them */
    free(steps);
    return s;
}
