/* compute_reference.c - see compute_reference.h. */
#include "train/compute_reference.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/plural.h"
#include "dataset/data_files.h"
#include "dataset/reference.h"
#include "layers/layers.h"
#include "storage/checkpoint.h"

/* ---- computing ---- */

/* Rows [first, first + n) of a part. */
typedef struct some_rows {
    int part;
    uint64_t first, n;
} some_rows;

/* Computes the log-probabilities of the rows, placed by the numbers of their pairs. */
static ls_status compute_rows(const ls_member *m, some_rows r, char *samples, double *logps,
                              ls_error *e) {
    const ls_corpus *c = &m->data->text;
    const ls_model *model = &m->layout->model;
    size_t size = ls_record_size(model), nbytes = m->data->sample_nbytes;
    double *records = LS_NEW_ARRAY(double, r.n *size);
    ls_status s = LS_OK;
    for (uint64_t j = 0; s == LS_OK && j < r.n; j++)
        s = ls_corpus_chat_row(c, r.part, r.first + j, samples + j * nbytes, e);
    if (s == LS_OK) s = ls_infer_records(&m->infer, (int64_t)r.n, samples, records, e);
    for (uint64_t j = 0; s == LS_OK && j < r.n; j++)
        memcpy(logps + 2 * ls_chats_pair(&c->chats, r.part, r.first + j),
               records + j * size + LS_RECORD_VALUES + LS_DPO_LOGP, 2 * sizeof *logps);
    free(records);
    return s;
}

/* This worker's share of the rows. Returns early if the worker is recalled. */
static ls_status compute_share(const ls_member *m, double *logps, ls_error *e) {
    uint64_t size = (uint64_t)m->nworkers, w = (uint64_t)m->worker, most = (uint64_t)m->infer.n;
    char *samples = ls_alloc(most * m->data->sample_nbytes);
    ls_status s = LS_OK;
    for (int part = 0; part < 2; part++) {
        uint64_t n = m->data->text.chats.rows[part].nrows;
        uint64_t i = n * w / size, end = n * (w + 1) / size;
        for (; s == LS_OK && i < end && !ls_board_recalled(m->slot); i += most)
            s = compute_rows(m, (some_rows){part, i, end - i < most ? end - i : most}, samples,
                             logps, e);
    }
    free(samples);
    return s;
}

static ls_status compute_all(ls_member *m, double *logps, ls_error *e) {
    uint64_t n = m->data->text.chats.n;
    LS_TRY(ls_world_gather_params(&m->worlds[0], &m->layout->plan.share, e));
    ls_status s = compute_share(m, logps, e);
    bool recalled = ls_board_recalled(m->slot);
    if (s == LS_OK && recalled) s = ls_fail(e, LS_EABORT, "worker %d is recalled", m->worker);
    if (!recalled) s = ls_member_wait(m, s, e);
    if (s == LS_OK) s = ls_all_reduce(m->group, logps, logps, 2 * n, LS_F64, LS_SUM, e);
    ls_world_drop_params(&m->worlds[0],
                         &m->layout->plan.share); /* others may share them: all have read */
    return s;
}

ls_status ls_reference_compute(ls_member *m, ls_chats *c, ls_error *e) {
    double *logps = LS_NEW_ARRAY(double, 2 * c->n);
    ls_status s = compute_all(m, logps, e);
    for (uint64_t i = 0; s == LS_OK && i < 2 * c->n; i++) c->reference[i] = (float)logps[i];
    c->has_reference = s == LS_OK;
    free(logps);
    return s;
}

/* ---- in the run directory ---- */

static ls_chats *pairs_of(ls_loop *l) { return &l->data.text.chats; }

/* Worker 0 writes the file. */
static ls_status compute(ls_loop *l, ls_error *e) {
    ls_chats *c = pairs_of(l);
    int64_t began = ls_clock_ns();
    if (l->m.worker == 0)
        ls_log("computing the reference's log-probabilities of %llu pair%s, before the first step",
               (unsigned long long)c->n, ls_plural((int64_t)c->n));
    LS_TRY(ls_reference_compute(&l->m, c, e));
    ls_status s = LS_OK;
    if (l->m.worker == 0) s = ls_dataset_save(&l->data, l->run->dir, e);
    if (l->m.worker == 0 && s == LS_OK)
        ls_log("the reference is computed: %.1f s", (double)(ls_clock_ns() - began) / 1e9);
    return ls_member_wait(&l->m, s, e);
}

/* On worker 0, if the run directory had none: takes the copy of the checkpoint. */
static ls_status restore(ls_loop *l, ls_error *e) {
    const char *run = l->run->dir;
    char *checkpoint = ls_checkpoint_path(run, l->steps);
    ls_hash tokens = l->data.text.record.tokens;
    bool there = false;
    ls_status s = ls_data_file_copy(run, checkpoint, LS_REFERENCE_FILE, &there, e);
    free(checkpoint);
    if (s == LS_OK) s = ls_reference_read(run, tokens, pairs_of(l), &there, e);
    if (s != LS_OK || there) return s;
    return ls_fail(e, LS_EINVAL,
                   "%s/" LS_REFERENCE_FILE ": is missing, and was computed before step 1, from "
                   "weights that have changed; resuming the run (--resume) takes the copy of a "
                   "checkpoint",
                   run);
}

ls_status ls_reference_begin(ls_loop *l, ls_error *e) {
    if (!ls_config_has_pairs(&l->run->config)) return LS_OK;
    ls_chats *c = pairs_of(l);
    bool restores = l->m.worker == 0 && !c->has_reference && l->steps > 0;
    LS_TRY(ls_member_wait(&l->m, restores ? restore(l, e) : LS_OK, e));
    int32_t known = c->has_reference;
    LS_TRY(ls_broadcast(l->m.group, &known, 1, LS_I32, 0, e));
    if (!known) return compute(l, e);
    LS_TRY(ls_broadcast(l->m.group, c->reference, 2 * c->n, LS_F32, 0, e));
    c->has_reference = true;
    return LS_OK;
}
