/* exec_test.c - executors against each other, bit for bit, and against one sum over the whole
 * batch.
 *
 * Workers are threads here, so that the thread sanitizer sees them. */
#include "plan/exec.h"

#include <math.h>

#include "base/random.h"
#include "net/spawn.h"
#include "test.h"

enum { T = 6, VOCAB = 40, NSAMPLES = 13, BATCH = 8, STEPS = 5 };

typedef struct setup {
    ls_model model;
    ls_plan plan;
    ls_region region;
    ls_local_shared local_shared;
    ls_world world;
    uint32_t tokens[NSAMPLES * T + 1];
    bool sequential, overlap;
    int threads;
    double losses[STEPS], norms[STEPS];
} setup;

static void set_up(setup *s, int n, int V, int64_t micro) {
    ls_error e = {0};
    ls_gpt_config c = {.layers = 2, .width = 24, .heads = 3, .context = T, .vocab = VOCAB};
    assert_ls_ok(ls_gpt_create(&c, &s->model, &e), e);
    ls_plan_config p = {&s->model, n, V, BATCH, micro, true, 20000};
    assert_ls_ok(ls_plan_make(&p, &s->plan, &e), e);
    size_t arena = ls_world_cost(&s->plan) + ls_local_shared_cost(n);
    assert_ls_ok(ls_region_create(n, arena, false, &s->region, &e), e);
    ls_local_share(&s->region, n, &s->local_shared);
    ls_world_take(&s->world, &s->plan, &s->region);
    ls_model_init(&s->model, 7, 0, s->model.nfloats, s->world.params);
    for (size_t i = 0; i < NSAMPLES * T + 1; i++) {
        uint32_t w[4];
        ls_random_words(3, LS_STREAM_SAMPLE, 0, i, w);
        s->tokens[i] = w[0] % VOCAB;
    }
}

static void tear_down(setup *s) {
    ls_world_free(&s->world);
    ls_region_close(&s->region);
    ls_plan_free(&s->plan);
    ls_model_free(&s->model);
}

static ls_exec_config config_of(const setup *s, ls_local *g, int worker) {
    ls_exec_config c = {.plan = &s->plan,
                        .world = &s->world,
                        .region = (ls_region *)(uintptr_t)&s->region,
                        .local = g,
                        .worker = worker,
                        .threads = s->threads,
                        .overlap = s->overlap,
                        .loader = {s->tokens, NSAMPLES, 5, BATCH, T, s->plan.c.V, 0, 0}};
    ls_plan_range(&s->plan, worker, &c.loader.a, &c.loader.b);
    return c;
}

static ls_step_in step_in(int64_t i) {
    return (ls_step_in){.step = i, .lr = 1e-2, .clip = 0.5, .adamw = {0.9, 0.95, 1e-8, 0.1}};
}

static ls_status worker_main(int worker, void *arg, ls_error *e) {
    setup *s = arg;
    const ls_kernels *k = NULL;
    ls_local g;
    ls_exec *x = NULL;
    LS_TRY(ls_kernels_pick(&k, e));
    ls_local_join(&g, &s->region, &s->local_shared, k, worker, s->plan.c.nworkers, 64, 20);
    ls_exec_config c = config_of(s, &g, worker);
    LS_TRY(ls_exec_create(&c, &x, e));
    ls_status status = LS_OK;
    for (int64_t i = 0; i < STEPS && status == LS_OK; i++) {
        ls_step_in in = step_in(i);
        ls_step_out out = {0};
        status = ls_exec_step(x, &in, &out, e);
        if (worker == 0) s->losses[i] = out.loss;
        if (worker == 0) s->norms[i] = out.grad_norm;
    }
    ls_exec_free(x);
    return status;
}

static void run_sequential(setup *s) {
    const ls_kernels *k = NULL;
    ls_error e = {0};
    ls_exec *execs[8];
    ls_local g;
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    ls_local_join(&g, &s->region, &s->local_shared, k, 0, 1, 1, 20);
    for (int w = 0; w < s->plan.c.nworkers; w++) {
        ls_exec_config c = config_of(s, &g, w);
        assert_ls_ok(ls_exec_create(&c, &execs[w], &e), e);
    }
    for (int64_t i = 0; i < STEPS; i++) {
        ls_step_in in = step_in(i);
        ls_step_out out = {0};
        assert_ls_ok(ls_exec_step_all(execs, &in, &out, &e), e);
        s->losses[i] = out.loss;
        s->norms[i] = out.grad_norm;
    }
    for (int w = 0; w < s->plan.c.nworkers; w++) ls_exec_free(execs[w]);
}

static void run(setup *s) {
    if (s->sequential) {
        run_sequential(s);
        return;
    }
    ls_error e = {0};
    ls_launch l = {s->plan.c.nworkers, worker_main, NULL, s, &s->region};
    assert_ls_ok(ls_spawn_threads.run(&l, &e), e);
}

static void same_as_oracle(int n, int V, int64_t micro, bool overlap, int threads) {
    setup oracle = {.sequential = true, .threads = 1}, s = {.overlap = overlap, .threads = threads};
    set_up(&oracle, n, V, micro);
    set_up(&s, n, V, micro);
    run(&oracle);
    run(&s);
    size_t nbytes = s.model.nfloats * sizeof(float);
    assert_memory_equal(s.world.params, oracle.world.params, nbytes);
    assert_memory_equal(s.world.m, oracle.world.m, nbytes);
    assert_memory_equal(s.world.v, oracle.world.v, nbytes);
    assert_memory_equal(s.losses, oracle.losses, sizeof s.losses);
    assert_memory_equal(s.norms, oracle.norms, sizeof s.norms);
    tear_down(&oracle);
    tear_down(&s);
}

static void test_lanes(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 3, 5, 8};
    for (int i = 0; i < 5; i++) {
        same_as_oracle(workers[i], 8, 1, false, 1);
        same_as_oracle(workers[i], 8, 1, true, 1);
    }
    same_as_oracle(2, 4, 2, true, 2);
    same_as_oracle(1, 1, 8, true, 2);
}

/* The sum over virtual workers is the gradient of the mean loss over the batch: the same, but for
 * rounding, as with one virtual worker, whose gradients the tests of the model check. */
static void test_one_sum(void **state) {
    (void)state;
    setup one = {.threads = 1}, many = {.threads = 1};
    set_up(&one, 1, 1, 8);
    set_up(&many, 3, 8, 1);
    run(&one);
    run(&many);
    for (int i = 0; i < STEPS; i++) { /* with the uneven last batch of the epoch */
        assert_true(fabs(one.losses[i] - many.losses[i]) < 1e-4 * one.losses[i]);
        assert_true(fabs(one.norms[i] - many.norms[i]) < 1e-3 * one.norms[i]);
    }
    assert_true(fabs(one.losses[0] - log(VOCAB)) < 0.1); /* knows nothing yet */
    assert_true(fabs(one.losses[0] - many.losses[0]) < 1e-6);
    tear_down(&one);
    tear_down(&many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_one_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
