/* apart_test.c - steps that islands make apart: no worker waits for one of another island, or in a
 * round of Mix for one of islands that do not mix with its own; results and state have the bits of
 * steps that all decide, and workers that are lost leave islands ahead of others, from which other
 * workers continue, to the same bits. */
#include <sched.h>
#include <string.h>

#include "base/random.h"
#include "coll/team.h"
#include "data/tokens.h"
#include "exec/exec.h"
#include "networks/gpt2.h"
#include "share/config.h"
#include "state/apart.h"
#include "state/round.h"
#include "state/store_blocks.h"
#include "state/store_repair.h"

enum { T = 6, VOCAB = 40, NSAMPLES = 29, BATCH = 8, ISLANDS = 4, MOST = 8, APART = 5, NOBODY = -1 };
enum { LOSS_SCALE = 4 }; /* of training; a round has none */

static const ls_gpt_config SHAPE = {2, 24, 3, T, VOCAB};

/* When a worker is lost. ALONE: when it has decided its latest training step, before it changes its
 * island. The others are in the round that follows this step. BEFORE: before the round begins;
 * READY: when the worker knows that all others are ready, before it decides; LAST: as READY, but
 * after others have decided; DECIDED: before it changes its island. */
typedef enum loss { ALONE, BEFORE, READY, LAST, DECIDED } loss;

typedef struct job {
    ls_model model;
    ls_plan plan;
    ls_store *store;
    uint32_t tokens[NSAMPLES * T + 1];
    ls_tokens text;
    int apart;       /* steps apart, from step 0 on; then a step that all decide */
    bool overlap;    /* each worker has a thread that communicates */
    int waits;       /* this worker begins when all others have made all steps apart */
    int stops[MOST]; /* steps after which a worker is lost; 0: it is not */
    loss how[MOST];
    bool mixes;              /* a round of Mix follows each step */
    atomic_int rounds[MOST]; /* apart, that each worker has decided */
    atomic_int steps[MOST];  /* apart, that each worker has made */
    int ahead;               /* of the furthest island, where the view begins */
    float *params;           /* [islands of the plan + 1][nfloats] at the end */
    ls_step_out out[APART + 1];
} job;

typedef struct worker {
    job *j;
    ls_exec *exec;
    ls_world world;
    ls_board_slot slot;
    int rank, breaks_at; /* breaks_at: the step in which it is lost; or NOBODY */
} worker;

static void make_plan(job *j, int n, int zero) {
    ls_error e = {0};
    ls_optim optim = ls_optim_usual();
    optim.groups[0].rule = LS_RULE_ADAMW;
    const ls_share_config p = {.model = &j->model,
                               .nworkers = n,
                               .V = BATCH,
                               .batch = BATCH,
                               .micro_batch = 1,
                               .tree = true,
                               .bucket_nbytes = 20000,
                               .zero = zero,
                               .islands = ISLANDS,
                               .compute = LS_F32,
                               .reduce = LS_F32,
                               .optim = optim};
    assert_ls_ok(ls_plan_make(&p, &j->plan, &e), e);
}

static job *new_job(int n, int zero, int apart) {
    ls_error e = {0};
    job *j = LS_NEW(job);
    assert_ls_ok(ls_gpt_create(&SHAPE, &j->model, &e), e);
    make_plan(j, n, zero);
    const ls_store_config store = {.most = MOST, .threads = 1};
    assert_ls_ok(ls_store_make(&j->plan.share, &store, &j->store, &e), e);
    for (size_t i = 0; i < NSAMPLES * T + 1; i++) {
        uint32_t w[4];
        ls_random_words(3, LS_STREAM_SAMPLE, 0, i, w);
        j->tokens[i] = w[0] % VOCAB;
    }
    j->text = ls_tokens_of(j->tokens, NSAMPLES * T + 1, VOCAB);
    j->apart = apart;
    j->waits = NOBODY;
    j->params = LS_NEW_ARRAY(float, (1 + ISLANDS) * j->model.nfloats);
    return j;
}

static void free_job(job *j) {
    ls_store_free(j->store);
    ls_plan_free(&j->plan);
    ls_model_free(&j->model);
    free(j->params);
    free(j);
}

/* ---- a worker ---- */

static void await_rounds(job *j, int who, int n) {
    while (atomic_load(&j->rounds[who]) < n) sched_yield();
}

static void decided(void *arg, const ls_store_note *n) {
    worker *w = arg;
    job *j = w->j;
    loss how = j->how[w->rank];
    bool mixes = n->task == LS_TASK_MIX, lost = (n->steps - 1) / 3 == w->breaks_at;
    lost = lost && mixes == (how != ALONE);
    assert_true(n->lr == 1e-2 && n->loss_scale == LOSS_SCALE);
    if (lost && how == LAST) await_rounds(j, w->rank ^ 1, w->breaks_at + 1);
    if (!lost || (how != READY && how != LAST)) ls_store_decide(j->store, w->rank, n);
    if (lost) atomic_store(&w->slot.recalled, 1);
    if (mixes && n->apart) atomic_fetch_add(&j->rounds[w->rank], 1);
}

static ls_status open_exec(worker *w, ls_error *e) {
    const ls_plan *p = &w->j->plan;
    ls_exec_config c = {.plan = p,
                        .world = &w->world,
                        .slot = &w->slot,
                        .worker = w->rank,
                        .threads = 1,
                        .busy = 64,
                        .overlap = w->j->overlap,
                        .decided = decided,
                        .decided_arg = w,
                        .loader = {.read = ls_tokens_window,
                                   .data = &w->j->text,
                                   .sample_nbytes = w->j->model.sample_nbytes,
                                   .order = {.n = NSAMPLES, .seed = 5},
                                   .batch = BATCH,
                                   .V = p->share.V,
                                   .step = 1}};
    c.loader.a = ls_share_vw(&p->share, w->rank, 0);
    c.loader.b = ls_share_vw(&p->share, w->rank, p->share.workers[w->rank].nvws - 1) + 1;
    return ls_exec_create(&c, &w->exec, e);
}

/* All replicas begin as the common parameters. */
static ls_status make_state(worker *w, ls_group *g, ls_error *e) {
    const ls_plan *p = &w->j->plan;
    float *drawn = LS_NEW_ARRAY(float, w->j->model.nfloats);
    ls_model_init(&w->j->model, 7, 0, w->j->model.nfloats, drawn);
    for (int k = 0; k < p->share.nbuckets; k++) {
        ls_range b = ls_share_owned(&p->share, k, w->rank);
        if (!w->world.shares_params) b = ls_share_range(&p->share, k);
        memcpy(w->world.flat.of[0] + b.first, drawn + (b.first - ls_share_base(&p->share, k)),
               (b.end - b.first) * sizeof *drawn);
    }
    free(drawn);
    ls_store_mark_filled(w->j->store, &p->share, w->rank, 0);
    LS_TRY(ls_barrier(g, e));
    if (w->rank == 0) ls_store_begin(w->j->store, 0, &(ls_scaler){0});
    return ls_barrier(g, e);
}

static ls_step_in step_in(int64_t i, bool apart) {
    return (ls_step_in){.step = i,
                        .updates = i,
                        .lr = 1e-2,
                        .clip = 0.5,
                        .loss_scale = LOSS_SCALE,
                        .changes = 3 * (i + 1),
                        .apart = apart,
                        .certain = apart};
}

/* There are four workers with an island each, and worker 0 mixes with 1, then with 2. So 2 and 3
 * can make a round without worker 0, and 1 none. */
static void await_others(job *j) {
    if (j->mixes) {
        await_rounds(j, 2, 1);
        await_rounds(j, 3, 1);
        assert_int_equal(atomic_load(&j->rounds[1]), 0);
        return;
    }
    for (int i = 0; i < j->plan.share.nworkers; i++)
        while (i != j->waits && atomic_load(&j->steps[i]) < j->apart) sched_yield();
}

static ls_status mix(worker *w, const ls_step_in *training, const ls_step_out *out, ls_error *e) {
    static const ls_gossip ring = {LS_GRAPH_EXPONENTIAL, LS_GOSSIP_DPSGD, ISLANDS, 0};
    static const double mass[ISLANDS] = {1, 1, 1, 1};
    ls_mixing mixing;
    ls_share_config c = *w->j->plan.share.config;
    ls_plan p;
    ls_exec *x = NULL;
    ls_step_out own;
    const ls_step_in in = {.step = training->step,
                           .lr = 1,
                           .loss_scale = 1,
                           .changes = 3 * training->step + 3,
                           .apart = training->apart,
                           .certain = training->apart,
                           .training = training,
                           .trained = out};
    ls_mixing_make(&ring, training->step, mass, &mixing);
    c.first = NULL;
    c.task = LS_TASK_MIX;
    c.sync.mix = &mixing;
    c.sync.part_end = w->j->model.nfloats;
    LS_TRY(ls_plan_make(&c, &p, e));
    const ls_exec_config xc = {.plan = &p,
                               .world = &w->world,
                               .slot = &w->slot,
                               .worker = w->rank,
                               .threads = 1,
                               .busy = 64,
                               .compute = ls_exec_compute(w->exec),
                               .decided = decided,
                               .decided_arg = w};
    ls_status s = ls_round_check(&w->world, &p.share, in.changes, e);
    if (s == LS_OK) s = ls_exec_create(&xc, &x, e);
    if (s == LS_OK) s = ls_exec_step(x, &in, &own, e);
    ls_exec_free(x);
    ls_plan_free(&p);
    return s;
}

static ls_status run_steps(worker *w, ls_error *e) {
    job *j = w->j;
    ls_apart_notes notes = {.n = j->apart};
    ls_step_out out[APART + 1] = {0};
    size_t each = ls_apart_row(&j->plan.share);
    if (w->rank == j->waits) await_others(j);
    for (int i = 0; i <= APART; i++) {
        ls_step_in in = step_in(i, i < j->apart);
        bool lost = i == w->breaks_at && j->how[w->rank] == BEFORE;
        if (j->stops[w->rank] && i == j->stops[w->rank]) return ls_fail(e, LS_EABORT, "it is lost");
        in.changes -= j->mixes;
        LS_TRY(ls_exec_step(w->exec, &in, &out[i], e));
        if (lost) return ls_fail(e, LS_EABORT, "it is lost");
        if (j->mixes) LS_TRY(mix(w, &in, &out[i], e));
        if (i < j->apart) notes.counts[i] = out[i].batch.count;
        if (i < j->apart) atomic_fetch_add(&j->steps[w->rank], 1);
    }
    notes.rows = LS_NEW_ARRAY(double, (size_t)APART *each);
    ls_status s = j->apart ? ls_apart_join(&w->world, &j->plan.share, &notes, e) : LS_OK;
    for (int i = 0; s == LS_OK && i < j->apart; i++) {
        const ls_step_in in = step_in(i, true);
        ls_exec_joined(w->exec, &in, notes.rows + (size_t)i * each, &out[i]);
    }
    free(notes.rows);
    if (w->rank == 0) memcpy(j->out, out, sizeof out);
    return s;
}

static void copy_params(const worker *w) {
    const ls_plan *p = &w->j->plan;
    for (int k = 0; k < p->share.nbuckets; k++) {
        ls_range b = ls_share_owned(&p->share, k, w->rank);
        bool copies = !p->share.shards_moments && w->rank != p->share.buckets[k].workers.from;
        if (copies && (p->share.buckets[k].island || w->rank))
            continue; /* another one has it, too */
        memcpy(w->j->params + b.first, w->world.flat.of[0] + b.first,
               (b.end - b.first) * sizeof(float));
    }
}

static ls_status begin(worker *w, ls_group *g, ls_error *e) {
    job *j = w->j;
    bool follows = ls_store_steps(j->store) >= 0;
    LS_TRY(ls_world_open(&w->world, &j->plan.share, g, j->store, NULL, e));
    LS_TRY(open_exec(w, e));
    LS_TRY(ls_barrier(g, e));
    if (!follows) return make_state(w, g, e);
    LS_TRY(ls_world_adopt(&w->world, &j->plan.share, ls_exec_compute(w->exec), 3 * APART, e));
    if (w->rank == 0) j->ahead = (int)ls_apart_most_ahead(&w->world, &j->plan.share, 0);
    return ls_exec_take_up(w->exec, 0, e);
}

static ls_status work(ls_group *g, void *arg, ls_error *e) {
    job *j = arg;
    worker w = {.j = j, .rank = ls_group_rank(g)};
    w.breaks_at = j->stops[w.rank] ? j->stops[w.rank] - 1 : NOBODY;
    ls_status s = begin(&w, g, e);
    if (s == LS_OK) s = run_steps(&w, e);
    if (s == LS_OK) copy_params(&w);
    if (s == LS_OK) s = ls_barrier(g, e);
    ls_exec_free(w.exec);
    ls_world_close(&w.world, &j->plan.share);
    return s;
}

/* ---- tests ---- */

static void check_same(const job *a, const job *b) {
    for (int i = 0; i <= APART; i++) {
        assert_true(a->out[i].loss == b->out[i].loss);
        assert_true(a->out[i].grad_norm == b->out[i].grad_norm);
    }
    assert_memory_equal(a->params, b->params, (1 + ISLANDS) * a->model.nfloats * sizeof *a->params);
}

/* All steps are decided by all. */
static job *reference(bool mixes) {
    job *j = new_job(1, 0, 0);
    j->mixes = mixes;
    run_threads(1, NULL, work, j, NULL);
    return j;
}

/* One worker makes no step until those of other islands have made all steps apart. */
static void test_slow_worker(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 3, 4};
    job *all = reference(false);
    for (int zero = 0; zero < 2; zero++)
        for (int i = 0; i < 4; i++) {
            job *j = new_job(workers[i], zero, APART);
            j->waits = workers[i] / 2;
            run_threads(workers[i], NULL, work, j, NULL);
            check_same(j, all);
            free_job(j);
        }
    free_job(all);
}

/* Islands of two workers. */
static void test_islands_of_two(void **state) {
    (void)state;
    job *all = reference(false);
    for (int zero = 0; zero < 2; zero++) {
        job *j = new_job(8, zero, APART);
        run_threads(8, NULL, work, j, NULL);
        check_same(j, all);
        free_job(j);
    }
    free_job(all);
}

/* Workers are lost after stops[] steps, the last of which is decided, but not made. */
static void lose(job *j, const int *stops, int n, int zero) {
    ls_error e = {0}, errors[MOST];
    memcpy(j->stops, stops, sizeof j->stops);
    run_threads(j->plan.share.nworkers, NULL, work, j, errors);
    ls_store_decided d;
    ls_store_find_decided(j->store, &j->plan.share, 0, j->plan.share.nworkers, &d);
    assert_ls_ok(ls_store_repair(j->store, &j->plan.share, 0, j->plan.share.nworkers, &d, &e), e);
    assert_int_equal(ls_store_steps(j->store), 0); /* what all have decided */
    ls_store_restart(j->store, 0, &(ls_scaler){0});
    ls_plan_free(&j->plan);
    make_plan(j, n, zero);
    memset(j->stops, 0, sizeof j->stops);
}

static void test_ahead(void **state) {
    (void)state;
    static const struct {
        int workers, stops[MOST], then, ahead;
    } cases[] = {
        {4, {1, 2, 3, 5}, 4, 5},
        {4, {3, 1, 4, 4}, 2, 4},
        {2, {2, 4}, 3, 4},
        {3, {1, 3, 2}, 1, 3},
        {2, {3, 3}, 8, 3},
        {8, {2, 2, 4, 4, 1, 1, 5, 5}, 3, 5}, /* islands of two: they are decided together */
        {8, {2, 3, 4, 4, 1, 3, 5, 5}, 8, 5},
    };
    job *all = reference(false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int zero = 0; zero < 2; zero++) {
            job *j = new_job(cases[i].workers, zero, APART);
            lose(j, cases[i].stops, cases[i].then, zero);
            j->overlap = i % 2; /* where an island is ahead, a lane ends with nothing to send */
            run_threads(cases[i].then, NULL, work, j, NULL);
            assert_int_equal(j->ahead, cases[i].ahead);
            check_same(j, all);
            free_job(j);
        }
    free_job(all);
}

/* ---- rounds ---- */

static void test_slow_neighbour(void **state) {
    (void)state;
    job *all = reference(true);
    for (int zero = 0; zero < 2; zero++) {
        job *j = new_job(4, zero, APART);
        j->mixes = true;
        j->waits = 0;
        run_threads(4, NULL, work, j, NULL);
        check_same(j, all);
        free_job(j);
    }
    free_job(all);
}

static void test_lost_in_rounds(void **state) {
    (void)state;
    static const struct {
        int workers, stops[MOST];
        loss how[MOST];
        int then, island,
            changes; /* those that this island has had at least, once it is repaired */
    } cases[] = {
        {4, {0, 1}, {ALONE, LAST}, 4, 1, 3},  /* its partner has decided, and gone on */
        {4, {0, 3}, {ALONE, LAST}, 3, 1, 9},  /* its partner of the third round */
        {4, {1, 1}, {READY, READY}, 2, 1, 2}, /* both are ready, neither has decided: again */
        {4, {0, 0, 0, 3}, {0, 0, 0, DECIDED}, 8, 3, 9},
        {4, {0, 0, 2}, {0, 0, BEFORE}, 1, 2, 5},
        {2, {0, 2}, {ALONE, READY}, 4, 3, 5}, /* islands of two workers mix with each other */
        {3, {0, 0, 1}, {0, 0, READY}, 2, 3, 2},
        {8, {0, 0, 0, 1}, {0, 0, 0, READY}, 4, 1, 2}, /* one of the two workers of an island */
        {8, {0, 3, 0, 0, 0, 0, 2}, {0, ALONE, 0, 0, 0, 0, DECIDED}, 3, 3, 5},
    };
    job *all = reference(true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int zero = 0; zero < 2; zero++) {
            int64_t changes[ISLANDS];
            job *j = new_job(cases[i].workers, zero, APART);
            j->mixes = true;
            memcpy(j->how, cases[i].how, sizeof j->how);
            lose(j, cases[i].stops, cases[i].then, zero);
            ls_store_find_ahead(j->store, &j->plan.share, 3 * APART, changes);
            assert_true(changes[cases[i].island] >= cases[i].changes);
            run_threads(cases[i].then, NULL, work, j, NULL);
            check_same(j, all);
            free_job(j);
        }
    free_job(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_worker),   cmocka_unit_test(test_islands_of_two),
        cmocka_unit_test(test_ahead),         cmocka_unit_test(test_slow_neighbour),
        plain_unit_test(test_lost_in_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
