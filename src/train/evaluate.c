/* evaluate.c - see evaluate.h. */
#include "train/evaluate.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/round_up.h"
#include "infer/ranking.h"
#include "table/step_rows.h"

/* The i-th of n samples out of `all`: spread evenly over the validation part. */
static uint64_t sample_at(uint64_t i, uint64_t n, uint64_t all) { return i * all / n; }

/* The memory that a device needs for n samples. */
static size_t device_nbytes(const ls_infer *f, int64_t n, size_t *samples_p) {
    *samples_p = ls_round_up(ls_infer_device_nbytes(f->model, n), 64);
    return *samples_p + (size_t)n * f->model->sample_nbytes;
}

/* Where the worker's device can evaluate the model, and has room, *f becomes what does so. */
static ls_status use_device(const ls_member *m, ls_infer *f, ls_error *e) {
    ls_exec_device d;
    ls_error why;
    size_t samples = 0, arena = ls_exec_device_arena(m->execs[0]);
    int64_t n = f->n;
    if (!m->layout->plan.share.on_device || !ls_infer_runs_on_device(f->model)) return LS_OK;
    while (n > 1 && device_nbytes(f, n, &samples) > arena) n--;
    ls_status s =
        ls_exec_lend_device(m->execs[0], f->params, device_nbytes(f, n, &samples), &d, &why);
    if (s == LS_ENOMEM) {
        ls_log("evaluation runs on cores: %s", why.msg);
        return LS_OK;
    }
    if (s != LS_OK) *e = why;
    LS_TRY(s);
    f->compute = d.compute;
    f->params = d.params;
    f->frozen = d.frozen;
    f->constants = d.constants;
    f->memory = d.memory;
    f->samples = (char *)d.memory + samples;
    f->n = n;
    return LS_OK;
}

/* The state on a device, where averages of the weights have been in its place. */
static ls_status give_back(const ls_member *m, ls_error *e) {
    ls_exec_device d;
    bool other = m->infer.params != m->worlds[0].params;
    if (!other || !m->layout->plan.share.state_on_device) return LS_OK;
    return ls_exec_lend_device(m->execs[0], m->worlds[0].params, 0, &d, e);
}

/* records [n] of this worker's part of the samples; the rest stays 0. Returns early if the worker
 * is recalled. */
static ls_status compute_records(const ls_member *m, const ls_dataset *d, uint64_t n,
                                 double *records, ls_error *e) {
    size_t record = ls_record_size(m->infer.model);
    uint64_t size = (uint64_t)m->nworkers, w = (uint64_t)m->worker;
    uint64_t first = n * w / size, end = n * (w + 1) / size, part = (uint64_t)m->infer.n;
    char *samples = ls_alloc(part * d->sample_nbytes);
    ls_infer f = m->infer;
    ls_status s = use_device(m, &f, e);
    for (uint64_t i = first; s == LS_OK && i < end && !ls_board_recalled(m->slot); i += part) {
        uint64_t k = end - i < part ? end - i : part;
        for (uint64_t j = 0; s == LS_OK && j < k; j++)
            s = ls_dataset_val_sample(d, sample_at(i + j, n, d->nval),
                                      samples + j * d->sample_nbytes, e);
        if (s == LS_OK) s = ls_infer_records(&f, (int64_t)k, samples, records + i * record, e);
    }
    free(samples);
    return s == LS_OK && f.compute->device ? give_back(m, e) : s;
}

/* The bytes of text in the targets of all n samples; 0: they are no text. */
static ls_status count_bytes(const ls_dataset *d, uint64_t n, double *nbytes_p, ls_error *e) {
    char *sample = ls_alloc(d->sample_nbytes);
    double nbytes = 0;
    ls_status s = LS_OK;
    for (uint64_t i = 0; s == LS_OK && ls_dataset_is_text(d) && i < n; i++) {
        s = ls_dataset_val_sample(d, sample_at(i, n, d->nval), sample, e);
        if (s == LS_OK) nbytes += ls_dataset_text_nbytes(d, sample);
    }
    free(sample);
    *nbytes_p = nbytes;
    return s;
}

/* The ranks of held-out items, of as many users as samples are evaluated. */
static ls_status add_ranks(ls_member *m, const ls_dataset *d, uint64_t nusers, ls_evaluation *v_p,
                           ls_error *e) {
    ls_ranking *r = NULL;
    if (!ls_ranking_is_wanted(&m->layout->model)) return LS_OK;
    LS_TRY(ls_ranking_open(&m->infer, d, nusers, &r, e));
    uint64_t n = ls_ranking_users(r), size = (uint64_t)m->nworkers, w = (uint64_t)m->worker;
    size_t record = ls_ranking_size(r);
    double *records = LS_NEW_ARRAY(double, n *record);
    ls_status s = LS_OK;
    for (uint64_t i = n * w / size; s == LS_OK && i < n * (w + 1) / size; i++) {
        if (ls_board_recalled(m->slot)) break;
        s = ls_ranking_record(r, i, records + i * record, e);
    }
    s = ls_step_rows_serve(m->rows, s, e);
    bool recalled = ls_board_recalled(m->slot);
    if (s == LS_OK && recalled) s = ls_fail(e, LS_EABORT, "worker %d is recalled", m->worker);
    if (!recalled) s = ls_member_wait(m, s, e);
    if (s == LS_OK) s = ls_all_reduce(m->group, records, records, n * record, LS_F64, LS_SUM, e);
    if (s == LS_OK) ls_ranking_add(r, records, v_p);
    free(records);
    ls_ranking_close(r);
    return s;
}

typedef struct evaluating {
    const ls_evaluate_request *q;
    ls_evaluation *v_p;
    double **records_p; /* or NULL */
} evaluating;

static ls_status evaluate(ls_member *m, void *arg, ls_error *e) {
    const evaluating *x = arg;
    const ls_evaluate_request *q = x->q;
    const ls_dataset *d = q->data;
    uint64_t n = q->nsamples == 0 || q->nsamples > d->nval ? d->nval : q->nsamples;
    const ls_model *model = &m->layout->model;
    size_t record = ls_record_size(model);
    double *records = LS_NEW_ARRAY(double, n *record), nbytes = 0;
    ls_status s = compute_records(m, d, n, records, e);
    s = ls_step_rows_serve(m->rows, s, e);
    if (s == LS_OK) s = count_bytes(d, n, &nbytes, e);
    bool recalled = ls_board_recalled(m->slot);
    if (s == LS_OK && recalled) s = ls_fail(e, LS_EABORT, "worker %d is recalled", m->worker);
    if (!recalled) s = ls_member_wait(m, s, e);
    if (s == LS_OK) s = ls_all_reduce(m->group, records, records, n * record, LS_F64, LS_SUM, e);
    if (s == LS_OK) *x->v_p = ls_evaluation_of_records(model, records, n, nbytes);
    if (s == LS_OK) s = add_ranks(m, d, q->nsamples, x->v_p, e);
    if (s == LS_OK && x->records_p)
        *x->records_p = records;
    else
        free(records);
    return s;
}

ls_status ls_with_evaluated_weights(ls_member *m, int64_t steps, ls_use_weights *use, void *arg,
                                    ls_error *e) {
    const ls_plan *p = &m->layout->plan;
    ls_world *w = &m->worlds[0];
    void *average = NULL;
    bool ema = m->run->config.train.eval_weights == LS_EVAL_EMA;
    bool averages = ema || ls_optim_averages(&p->share.optim);
    if (!averages || m->scaler.skipped >= steps) {
        LS_TRY(ls_world_gather_params(w, &p->share, e));
        ls_status s = use(m, arg, e);
        ls_world_drop_params(w, &p->share);
        return s;
    }
    LS_TRY(ls_world_gather_average(w, &p->share, ls_exec_compute(m->execs[0]), ema, &average, e));
    const void *params = m->infer.params;
    m->infer.params = average;
    ls_status s = use(m, arg, e);
    m->infer.params = params;
    ls_unmap(average, p->share.nbytes.params);
    return s;
}

ls_status ls_evaluate(ls_member *m, const ls_evaluate_request *q, ls_evaluation *v_p,
                      double **records_p, ls_error *e) {
    evaluating x = {q, v_p, records_p};
    return ls_with_evaluated_weights(m, q->steps, evaluate, &x, e);
}
