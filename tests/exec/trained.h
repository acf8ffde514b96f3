/* trained.h - a model that threads train as workers, from the same initial weights, so that tests
 * can compare what any layout gives. */
#ifndef LS_TEST_EXEC_TRAINED_H
#define LS_TEST_EXEC_TRAINED_H

#include "coll/team.h"
#include "exec/exec.h"
#include "share/config.h"

typedef struct trained {
    /* Set by the test. */
    ls_model model; /* trained_run() takes it over */
    ls_share_config how;
    ls_read_sample *read;
    const void *data; /* read()'s */
    uint64_t nsamples;
    int64_t steps;
    double lr, clip, loss_scale;
    const float *initial;        /* [nfloats] initial weights; NULL: they are drawn */
    bool overlap, mixes_threads; /* mixes_threads: every other worker has two */
    /* The result. */
    ls_plan plan;
    float *params;    /* [nfloats] of worker 0, at the end */
    ls_step_out *out; /* [steps] of worker 0 */
    uint64_t sent[8]; /* bytes that each worker has sent in messages */
} trained;

static inline ls_status trained_steps(trained *t, ls_exec *x, bool first, ls_error *e) {
    for (int64_t i = 0; i < t->steps; i++) {
        ls_step_in in = {
            .step = i, .updates = i, .lr = t->lr, .clip = t->clip, .loss_scale = t->loss_scale};
        ls_step_out out = {0};
        LS_TRY(ls_exec_step(x, &in, &out, e));
        if (first) t->out[i] = out;
    }
    return LS_OK;
}

static inline ls_status trained_worker(ls_group *g, void *arg, ls_error *e) {
    trained *t = arg;
    const ls_plan *p = &t->plan;
    ls_world w;
    ls_board_slot slot = {0};
    ls_exec *x = NULL;
    int rank = ls_group_rank(g);
    LS_TRY(ls_world_open(&w, &p->share, g, NULL, NULL, e));
    ls_exec_config c = {.plan = p,
                        .world = &w,
                        .slot = &slot,
                        .worker = rank,
                        .threads = t->mixes_threads ? 1 + rank % 2 : 1,
                        .busy = 64,
                        .overlap = t->overlap,
                        .loader = {.read = t->read,
                                   .data = t->data,
                                   .sample_nbytes = t->model.sample_nbytes,
                                   .order = {.n = t->nsamples, .seed = 3},
                                   .batch = (uint64_t)t->how.batch,
                                   .V = t->how.V,
                                   .a = ls_share_vw(&p->share, rank, 0),
                                   .step = p->share.vw_step}};
    c.loader.b = ls_share_vw(&p->share, rank, p->share.workers[rank].nvws - 1) + 1;
    LS_TRY(ls_exec_create(&c, &x, e));
    for (int k = 0; k < p->share.nbuckets; k++) {
        ls_range b =
            w.shares_params ? ls_share_shard(&p->share, k, rank) : ls_share_range(&p->share, k);
        ls_model_init(&t->model, 1, b.first, b.end, w.flat.of[0]);
        if (t->initial)
            memcpy(w.flat.of[0] + b.first, t->initial + b.first, (b.end - b.first) * sizeof(float));
    }
    LS_TRY(ls_barrier(g, e));
    uint64_t before = ls_group_counters(g).bytes_sent;
    LS_TRY(trained_steps(t, x, rank == 0, e));
    t->sent[rank] = ls_group_counters(g).bytes_sent - before;
    LS_TRY(ls_barrier(g, e));
    if (rank == 0) memcpy(t->params, w.flat.of[0], t->model.nfloats * sizeof(float));
    LS_TRY(ls_barrier(g, e));
    ls_exec_free(x);
    ls_world_close(&w, &p->share);
    return LS_OK;
}

/* Trains t->model as t->how says, in f32, with sums in the tree's order. */
static inline void trained_run(trained *t) {
    ls_error e = {0};
    t->how.model = &t->model;
    t->how.tree = true;
    t->how.compute = t->how.reduce = LS_F32;
    assert_ls_ok(ls_plan_make(&t->how, &t->plan, &e), e);
    t->params = LS_NEW_ARRAY(float, t->model.nfloats);
    t->out = LS_NEW_ARRAY(ls_step_out, (size_t)t->steps);
    run_threads(t->how.nworkers, NULL, trained_worker, t, NULL);
}

static inline void trained_free(trained *t) {
    ls_plan_free(&t->plan);
    ls_model_free(&t->model);
    free(t->params);
    free(t->out);
}

/* Both have the same bits after every step. */
static inline void trained_same(const trained *a, const trained *b) {
    for (int64_t i = 0; i < a->steps; i++)
        assert_true(a->out[i].loss == b->out[i].loss && a->out[i].grad_norm == b->out[i].grad_norm);
    assert_memory_equal(a->params, b->params, a->model.nfloats * sizeof(float));
}

#endif
