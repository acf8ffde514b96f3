/* ledger.c - see ledger.h. */
#include "train/ledger.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/json.h"
#include "data/order.h"
#include "train/corpus.h"
#include "train/metrics.h"

typedef struct audit {
    const char *path;
    const ls_config *config;
    ls_ledger l;
    bool *used; /* [nsamples] in the epoch that is being read */
    uint64_t epoch;
    int64_t view;
    ls_error *e;
} audit;

static bool number(const ls_json *line, const char *name, int64_t *value_p) {
    return ls_json_integer(ls_json_get(line, name), value_p);
}

/* The epoch has ended: were all its samples used? */
static ls_status end_epoch(audit *a) {
    for (int64_t i = 0; i < a->l.nsamples; i++)
        if (!a->used[i])
            return ls_fail(a->e, LS_EINVAL, "%s: epoch %llu ends without sample %lld", a->path,
                           (unsigned long long)a->epoch, (long long)i);
    for (int64_t i = 0; i < a->l.nsamples; i++) a->used[i] = false;
    a->l.epochs++;
    a->l.rest = 0;
    a->epoch++;
    return LS_OK;
}

static ls_status use(audit *a, int64_t step, const ls_batch *b) {
    uint64_t n = (uint64_t)a->l.nsamples, seed = (uint64_t)a->config->train.seed;
    if (b->epoch != a->epoch) LS_TRY(end_epoch(a));
    for (uint64_t place = b->first; place < b->first + b->count; place++) {
        uint64_t sample = ls_order_at(seed, b->epoch, n, place);
        if (a->used[sample])
            return ls_fail(a->e, LS_EINVAL,
                           "%s: step %lld uses sample %llu, which epoch %llu used "
                           "before",
                           a->path, (long long)step, (unsigned long long)sample,
                           (unsigned long long)b->epoch);
        a->used[sample] = true;
        a->l.rest++;
    }
    return LS_OK;
}

static void count_workers(audit *a, int64_t view, int64_t workers) {
    ls_ledger *l = &a->l;
    l->changes += l->steps > 0 && view != a->view;
    a->view = view;
    if (!l->least_workers || workers < l->least_workers) l->least_workers = workers;
    if (workers > l->most_workers) l->most_workers = workers;
}

/* Lines of evaluations have no loss. */
static ls_status on_line(const ls_json *line, int64_t step, void *arg) {
    audit *a = arg;
    int64_t epoch = 0, first = 0, count = 0, view = 0, workers = 0;
    if (!ls_json_get(line, "loss")) return LS_OK;
    if (step != a->l.steps + 1)
        return ls_fail(a->e, LS_EINVAL, "%s: has step %lld after step %lld", a->path,
                       (long long)step, (long long)a->l.steps);
    if (!number(line, "epoch", &epoch) || !number(line, "first", &first) ||
        !number(line, "samples", &count) || !number(line, "view", &view) ||
        !number(line, "workers", &workers))
        return ls_fail(a->e, LS_EINVAL,
                       "%s: step %lld does not tell its samples (epoch, first, samples) and who "
                       "did it (view, workers)",
                       a->path, (long long)step);
    ls_batch want =
        ls_batch_of((uint64_t)step - 1, (uint64_t)a->l.nsamples, (uint64_t)a->config->train.batch);
    if ((uint64_t)epoch != want.epoch || (uint64_t)first != want.first ||
        (uint64_t)count != want.count)
        return ls_fail(a->e, LS_EINVAL,
                       "%s: step %lld has samples %lld to %lld of epoch %lld; it should have %llu "
                       "to %llu of epoch %llu",
                       a->path, (long long)step, (long long)first, (long long)(first + count - 1),
                       (long long)epoch, (unsigned long long)want.first,
                       (unsigned long long)(want.first + want.count - 1),
                       (unsigned long long)want.epoch);
    LS_TRY(use(a, step, &want));
    count_workers(a, view, workers);
    a->l.steps = step;
    return LS_OK;
}

/* The epoch may end with the last step. */
static ls_status read_lines(audit *a) {
    a->used = LS_NEW_ARRAY(bool, (size_t)a->l.nsamples);
    ls_status s = ls_metrics_read(a->path, on_line, a, a->e);
    if (s == LS_OK && a->l.rest == a->l.nsamples) s = end_epoch(a);
    free(a->used);
    return s;
}

ls_status ls_ledger_check(const char *run, ls_ledger *l_p, ls_error *e) {
    char *path = ls_format("%s/config.yaml", run);
    ls_config config;
    ls_corpus corpus;
    ls_status s = ls_config_read(path, &config, e);
    free(path);
    if (s != LS_OK) return s;
    LS_TRY(ls_corpus_open(&corpus, run, &config, e));
    audit a = {.path = run, .config = &config, .e = e};
    a.l.nsamples = (int64_t)corpus.ntrain;
    ls_corpus_free(&corpus);
    s = read_lines(&a);
    *l_p = a.l;
    return s;
}
