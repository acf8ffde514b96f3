/* restart_test.c - steps that are interrupted anywhere, and continue in another group in which a
 * new worker replaces one: the bits of undisturbed steps, and the other workers' results are not
 * computed again. */
/* ctest: seconds=15 */
/* ctest: long-tsan: exec/exec starts the same threads */
#include <sched.h>

#include "base/random.h"
#include "coll/team.h"
#include "data/tokens.h"
#include "exec/exec.h"
#include "networks/gpt2.h"
#include "share/config.h"
#include "state/store_blocks.h"
#include "state/store_repair.h"
#include "state/store_step.h"

enum {
    T = 6,
    VOCAB = 40,
    NSAMPLES = 13,
    BATCH = 8,
    STEPS = 3,
    MOST = 4,
    THREADS = 1,
    MOST_FLOATS = 1 << 16
};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* many times slower */
enum { BREAKS = 6 };
#else
enum { BREAKS = 40 };
#endif

static const ls_gpt_config SHAPE = {2, 24, 3, T, VOCAB};

typedef struct setup setup;

/* One worker, in all its groups. */
typedef struct place {
    setup *s;
    int worker;
    ls_board_slot slot;
    ls_world world;
    ls_exec *exec;
    ls_exec_helpers helpers;
    atomic_int computed[STEPS]; /* Forward and Backward of each step */
    pthread_t thread;
    ls_group *g;
    ls_status status;
    ls_error e;
} place;

struct setup {
    ls_model model;
    ls_plan plan;
    ls_store *store;
    uint32_t tokens[NSAMPLES * T + 1];
    ls_tokens text; /* the tokens above */
    place places[MOST];
    uint64_t draws;
};

/* Do workers send each other codes of their gradients? A new worker has none of those of the worker
 * that it replaces. */
static bool sends_codes;

static uint32_t draw(setup *s, uint32_t below) {
    uint32_t r[4];
    ls_random_words(11, LS_STREAM_FAKE, 0, s->draws++, r);
    return r[0] % below;
}

static void set_up(setup *s, int n, int zero, int shards, ls_update_rule rule) {
    ls_error e = {0};
    ls_optim optim = ls_optim_usual();
    assert_ls_ok(ls_gpt_create(&SHAPE, &s->model, &e), e);
    optim.groups[0].rule = rule;
    optim.groups[0].momentum = 0.9;
    ls_optim_place(&optim, &s->model);
    ls_share_config p = {.model = &s->model,
                         .nworkers = n,
                         .V = BATCH,
                         .batch = BATCH,
                         .micro_batch = 1,
                         .tree = true,
                         .bucket_nbytes = 20000,
                         .zero = zero,
                         .prefetch = 1,
                         .shards = shards,
                         .compute = LS_F32,
                         .reduce = LS_F32,
                         .compress = {.on = sends_codes,
                                      .codes = true,
                                      .how = {.kind = LS_COMPRESS_INT8, .op = LS_SUM}},
                         .optim = optim};
    assert_ls_ok(ls_plan_make(&p, &s->plan, &e), e);
    assert_ls_ok(ls_store_make(&s->plan.share, &(ls_store_config){.most = n, .threads = THREADS},
                               &s->store, &e),
                 e);
    for (size_t i = 0; i < NSAMPLES * T + 1; i++) {
        uint32_t w[4];
        ls_random_words(3, LS_STREAM_SAMPLE, 0, i, w);
        s->tokens[i] = w[0] % VOCAB;
    }
    s->text = ls_tokens_of(s->tokens, NSAMPLES * T + 1, VOCAB);
    for (int w = 0; w < n; w++) s->places[w] = (place){.s = s, .worker = w};
}

static void close_place(place *p) {
    ls_exec_free(p->exec);
    ls_world_close(&p->world, &p->s->plan.share);
    p->exec = NULL;
}

static void tear_down(setup *s) {
    for (int w = 0; w < s->plan.share.nworkers; w++) close_place(&s->places[w]);
    ls_store_free(s->store);
    ls_plan_free(&s->plan);
    ls_model_free(&s->model);
    free(s);
}

static ls_step_in step_in(int64_t i) {
    return (ls_step_in){.step = i, .updates = i, .lr = 1e-2, .clip = 0.5, .loss_scale = 1};
}

/* ---- a worker ---- */

static const void *count(void *arg, int64_t step, int vw, const double **losses_p) {
    place *p = arg;
    (void)vw;
    (void)losses_p;
    atomic_fetch_add(&p->computed[step], 1);
    return NULL;
}

static bool never_idle(void *arg, const ls_step_in *in) {
    (void)arg;
    (void)in;
    return false;
}

static void decided(void *arg, const ls_store_note *n) {
    const place *p = arg;
    ls_store_decide(p->s->store, p->worker, n);
}

static ls_loader_config samples_of(const setup *s) {
    return (ls_loader_config){.read = ls_tokens_window,
                              .data = &s->text,
                              .sample_nbytes = s->model.sample_nbytes,
                              .order = {.n = NSAMPLES, .seed = 5},
                              .batch = BATCH,
                              .V = s->plan.share.V,
                              .step = 1};
}

static ls_status open_place(place *p, int64_t step, ls_error *e) {
    const ls_plan *plan = &p->s->plan;
    if (p->exec) return ls_world_rejoin(&p->world, &plan->share, p->g, e);
    LS_TRY(ls_world_open(&p->world, &plan->share, p->g, p->s->store, NULL, e));
    p->helpers = (ls_exec_helpers){.given = count, .idle = never_idle, .arg = p};
    ls_exec_config c = {.plan = plan,
                        .world = &p->world,
                        .slot = &p->slot,
                        .worker = p->worker,
                        .threads = THREADS,
                        .busy = 64,
                        .first_step = step,
                        .loader = samples_of(p->s),
                        .decided = decided,
                        .decided_arg = p,
                        .helpers = &p->helpers};
    c.loader.a = ls_share_vw(&plan->share, p->worker, 0);
    c.loader.b = ls_share_vw(&plan->share, p->worker, plan->share.workers[p->worker].nvws - 1) + 1;
    return ls_exec_create(&c, &p->exec, e);
}

/* Each worker writes its shards of a shared copy, or all of a copy of its own. */
static ls_status make_state(place *p, ls_error *e) {
    const ls_plan *plan = &p->s->plan;
    for (int k = 0; k < plan->share.nbuckets; k++) {
        ls_range b = p->world.shares_params ? ls_share_shard(&plan->share, k, p->worker)
                                            : ls_share_range(&plan->share, k);
        ls_model_init(&p->s->model, 7, b.first, b.end, p->world.flat.of[0]);
    }
    ls_store_mark_filled(p->s->store, &plan->share, p->worker, 0);
    LS_TRY(ls_barrier(p->g, e));
    if (p->worker == 0) ls_store_begin(p->s->store, 0, &(ls_scaler){0});
    return ls_barrier(p->g, e);
}

static ls_status run_steps(place *p, ls_error *e) {
    int64_t step = ls_store_steps(p->s->store);
    LS_TRY(open_place(p, step < 0 ? 0 : step, e));
    LS_TRY(ls_barrier(p->g, e));
    if (step < 0)
        LS_TRY(make_state(p, e));
    else
        LS_TRY(ls_world_adopt(&p->world, &p->s->plan.share, ls_exec_compute(p->exec), 0, e));
    step = step < 0 ? 0 : step;
    LS_TRY(ls_exec_take_up(p->exec, step, e));
    for (; step < STEPS; step++) {
        ls_step_in in = step_in(step);
        ls_step_out out;
        LS_TRY(ls_exec_step(p->exec, &in, &out, e));
    }
    return ls_barrier(p->g, e);
}

static void *place_main(void *arg) {
    place *p = arg;
    p->status = run_steps(p, &p->e);
    if (p->status != LS_OK) ls_world_part(&p->world);
    ls_group_close(p->g);
    return NULL;
}

/* ---- groups, one after the other ---- */

static void start(setup *s) {
    ls_group *groups[MOST];
    ls_error e = {0};
    int n = s->plan.share.nworkers;
    assert_ls_ok(ls_group_open_threads(n, NULL, groups, &e), e);
    for (int w = 0; w < n; w++) {
        s->places[w].g = groups[w];
        pthread_create(&s->places[w].thread, NULL, place_main, &s->places[w]);
    }
}

/* True: all workers succeeded. */
static bool end(setup *s) {
    bool well = true;
    for (int w = 0; w < s->plan.share.nworkers; w++) {
        place *p = &s->places[w];
        pthread_join(p->thread, NULL);
        well = well && p->status == LS_OK;
        if (p->status == LS_OK || p->status == LS_EPEER || p->status == LS_EABORT) continue;
        fail_msg("worker %d: %s", w, p->e.msg);
    }
    return well;
}

static void repair(setup *s) {
    ls_error e = {0};
    ls_store_decided d;
    ls_store_find_decided(s->store, &s->plan.share, 0, s->plan.share.nworkers, &d);
    assert_ls_ok(ls_store_repair(s->store, &s->plan.share, 0, s->plan.share.nworkers, &d, &e), e);
}

/* Waits until the worker has reached the action of the step, or has passed it. */
static void recall(place *p, int64_t step, int action) {
    for (;;) {
        int64_t at = atomic_load(&p->slot.step);
        int doing = atomic_load(&p->slot.action);
        if (at > step || (at == step && doing >= action)) break;
        if (step == STEPS - 1 && at == step && doing < 0) break; /* it may have ended */
        sched_yield();
    }
    atomic_store(&p->slot.recalled, 1);
}

static void check_counts(setup *s, int64_t step, int new) {
    for (int w = 0; w < s->plan.share.nworkers; w++) {
        int want = 0;
        for (int i = 0; i < s->plan.nactions; i++) {
            const ls_action *a = &s->plan.actions[i];
            bool computes = a->kind == LS_FORWARD || a->kind == LS_BACKWARD;
            want += a->worker == w && computes;
        }
        int got = atomic_load(&s->places[w].computed[step]);
        if (w == new)
            assert_in_range(got, want, 2 * want);
        else
            assert_int_equal(got, want);
    }
}

static float *copy_state(const setup *s) {
    float *all = LS_NEW_ARRAY(float, LS_FLAT_MOST *MOST_FLOATS);
    ls_error e = {0};
    assert_in_range(s->model.nfloats, 1, MOST_FLOATS);
    assert_ls_ok(ls_store_copy(s->store, STEPS, all, &e), e);
    return all;
}

/* Simulates a worker that was killed while it summed: the gradients that it overwrote are lost. */
static void tear_sum(setup *s, int worker) {
    int64_t step = ls_store_steps(s->store);
    ls_call_mark m = ls_store_sum_mark(s->store, worker, 0, false, step);
    ls_range b = ls_share_shard(&s->plan.share, 0, worker);
    float *grads = ls_store_grads(s->store, worker);
    if (step < 0) return;
    atomic_store(m.at, m.value);
    for (size_t i = b.first; i < b.end; i++) grads[i] += grads[i];
}

typedef enum fault { UNDISTURBED, BROKEN, TORN } fault;

static float *run(int n, int zero, int shards, ls_update_rule rule, fault how, uint64_t seed) {
    setup *s = LS_NEW(setup);
    set_up(s, n, zero, shards, rule);
    s->draws = seed << 32;
    int64_t step = draw(s, STEPS);
    int action = (int)draw(s, (uint32_t)s->plan.nactions), new = (int)draw(s, (uint32_t)n);
    place *first = &s->places[draw(s, (uint32_t)n)];
    start(s);
    if (how != UNDISTURBED) recall(first, step, action);
    if (!end(s)) {
        assert_true(how != UNDISTURBED);
        atomic_store(&first->slot.recalled, 0);
        repair(s);
        if (how == TORN) tear_sum(s, new);
        close_place(&s->places[new]);
        start(s);
        assert_true(end(s));
    }
    repair(s);
    for (int64_t i = 0; zero <= 1 && how != TORN && !sends_codes && i < STEPS; i++)
        check_counts(s, i, new);
    float *state = copy_state(s);
    tear_down(s);
    return state;
}

static void same_bits_of(ls_update_rule rule, uint64_t breaks, int n, int zero, int shards) {
    float *want = run(n, zero, shards, rule, UNDISTURBED, 0);
    for (uint64_t seed = 1; seed <= breaks; seed++) {
        float *got = run(n, zero, shards, rule, seed % 4 ? BROKEN : TORN, seed);
        if (memcmp(got, want, LS_FLAT_MOST * MOST_FLOATS * sizeof *got) != 0)
            fail_msg("zero %d, rule %d, seed %d", zero, (int)rule, (int)seed);
        free(got);
    }
    free(want);
}

static void same_bits(int n, int zero, int shards) {
    same_bits_of(LS_RULE_ADAMW, BREAKS, n, zero, shards);
}

static void test_replicas(void **state) {
    (void)state;
    same_bits(3, 0, 0);
}

static void test_moments_sharded(void **state) {
    (void)state;
    same_bits(4, 1, 0);
    same_bits(4, 1, 2);
}

static void test_all_sharded(void **state) {
    (void)state;
    same_bits(3, 2, 0);
    same_bits(4, 3, 0);
}

static void test_codes(void **state) {
    (void)state;
    sends_codes = true;
    for (int zero = 0; zero < 2; zero++) same_bits_of(LS_RULE_ADAMW, BREAKS / 2, 3, zero, 0);
    sends_codes = false;
}

/* Every optimizer, with its states. */
static void test_optimizers(void **state) {
    (void)state;
    for (int rule = 0; rule < LS_NRULES; rule++) {
        for (int apart = 0; apart < 4; apart += 2)
            if (runs_case(rule + apart / 2, 2))
                same_bits_of((ls_update_rule)rule, BREAKS / 3, 3, apart + rule % 2, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas),    cmocka_unit_test(test_moments_sharded),
        cmocka_unit_test(test_all_sharded), cmocka_unit_test(test_codes),
        cmocka_unit_test(test_optimizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
