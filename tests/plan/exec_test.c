/* exec_test.c - executors against each other, bit for bit, and against one sum over the whole
 * batch.
 *
 * Workers are threads here, so that the thread sanitizer sees them. */
#include "plan/exec.h"

#include <math.h>

#include "../coll/team.h"
#include "base/random.h"
#include "spans.h"

enum { T = 6, VOCAB = 40, NSAMPLES = 13, BATCH = 8, STEPS = 5, TRACED = 2, MOST = 8 };

typedef struct setup {
    ls_model model;
    ls_plan plan;
    uint32_t tokens[NSAMPLES * T + 1];
    bool sequential, overlap;
    bool chaos, own; /* of the sequential: random actions; no memory in one copy */
    uint64_t seed;
    int zero, recompute;
    const char *algorithm; /* not over shared memory, but over messages */
    int threads;
    /* of worker 0, where moments are gathered */
    float *params, *m, *v;
    double losses[STEPS], norms[STEPS];
} setup;

static void set_up(setup *s, int n, int V, int64_t micro) {
    ls_error e = {0};
    ls_gpt_config c = {.layers = 2, .width = 24, .heads = 3, .context = T, .vocab = VOCAB};
    assert_ls_ok(ls_gpt_create(&c, &s->model, &e), e);
    ls_plan_config p = {&s->model, n, V, BATCH, micro, true, 20000, s->zero, s->recompute, 1};
    assert_ls_ok(ls_plan_make(&p, &s->plan, &e), e);
    s->params = LS_NEW_ARRAY(float, 3 * s->model.nfloats);
    s->m = s->params + s->model.nfloats;
    s->v = s->m + s->model.nfloats;
    for (size_t i = 0; i < NSAMPLES * T + 1; i++) {
        uint32_t w[4];
        ls_random_words(3, LS_STREAM_SAMPLE, 0, i, w);
        s->tokens[i] = w[0] % VOCAB;
    }
}

static void tear_down(setup *s) {
    free(s->params);
    ls_plan_free(&s->plan);
    ls_model_free(&s->model);
}

static ls_exec_config config_of(const setup *s, const ls_world *w, ls_board_slot *slot,
                                int worker) {
    ls_exec_config c = {.plan = &s->plan,
                        .world = w,
                        .slot = slot,
                        .worker = worker,
                        .threads = s->threads,
                        .busy = 64,
                        .overlap = s->overlap,
                        .loader = {s->tokens, NSAMPLES, 5, BATCH, T, s->plan.c.V, 0, 0}};
    ls_plan_range(&s->plan, worker, &c.loader.a, &c.loader.b);
    return c;
}

static ls_step_in step_in(int64_t i) {
    return (ls_step_in){.step = i, .lr = 1e-2, .clip = 0.5, .adamw = {0.9, 0.95, 1e-8, 0.1}};
}

static void draw(const setup *s, const ls_world *w) {
    ls_model_init(&s->model, 7, 0, s->model.nfloats, w->params);
}

static void keep(setup *s, const ls_world *w) {
    memcpy(s->params, w->params, 3 * s->model.nfloats * sizeof(float));
}

/* What worker w owns, where each has its own. */
static void take_shards(setup *s, const ls_world *w, int worker) {
    const float *const from[] = {w->params, w->m, w->v};
    float *const to[] = {s->params, s->m, s->v};
    for (int k = 0; k < s->plan.nbuckets; k++) {
        ls_bucket b = ls_plan_shard(&s->plan, k, worker);
        for (int i = 0; i < 3; i++)
            memcpy(to[i] + b.first, from[i] + b.first, (b.end - b.first) * sizeof(float));
    }
}

/* A step of which all actions are noted. */
static void begin_trace(const setup *s, ls_exec *x, int worker, ls_trace *t) {
    ls_trace_open(t, &s->plan, worker, 1);
    ls_trace_begin_step(t);
    ls_exec_trace(x, t);
}

static void end_trace(const setup *s, ls_exec *x, ls_trace *t) {
    int n = ls_trace_nspans(t);
    ls_span *spans = LS_NEW_ARRAY(ls_span, (size_t)n);
    ls_exec_trace(x, NULL);
    ls_trace_spans(t, 0, spans);
    assert_spans(&s->plan, t->worker, spans, n);
    free(spans);
    ls_trace_free(t);
}

static ls_status run_steps(setup *s, ls_world *w, ls_exec *x, ls_error *e) {
    int worker = ls_group_rank(w->group);
    if (!w->one || worker == 0) draw(s, w);
    if (!w->one) ls_world_drop_params(w, &s->plan);
    LS_TRY(ls_barrier(w->group, e));
    for (int64_t i = 0; i < STEPS; i++) {
        ls_step_in in = step_in(i);
        ls_step_out out = {0};
        ls_trace trace;
        if (i == TRACED) begin_trace(s, x, worker, &trace);
        LS_TRY(ls_exec_step(x, &in, &out, e));
        if (i == TRACED) end_trace(s, x, &trace);
        if (worker == 0) s->losses[i] = out.loss;
        if (worker == 0) s->norms[i] = out.grad_norm;
    }
    LS_TRY(ls_world_collect(w, &s->plan, e));
    if (worker == 0) keep(s, w);
    return ls_barrier(w->group, e);
}

static ls_status worker_main(ls_group *g, void *arg, ls_error *e) {
    setup *s = arg;
    ls_world w;
    ls_board_slot slot;
    ls_exec *x = NULL;
    LS_TRY(ls_world_open(&w, &s->plan, g, e));
    ls_exec_config c = config_of(s, &w, &slot, ls_group_rank(g));
    LS_TRY(ls_exec_create(&c, &x, e));
    ls_status status = run_steps(s, &w, x, e);
    ls_exec_free(x);
    ls_world_close(&w);
    return status;
}

static void run_sequential(setup *s) {
    int n = s->plan.c.nworkers;
    ls_error e = {0};
    ls_exec *execs[MOST];
    ls_group *groups[MOST];
    ls_world worlds[MOST];
    ls_board_slot slot;
    assert_ls_ok(ls_group_open_threads(n, NULL, groups, &e), e);
    assert_ls_ok(ls_world_open_all(worlds, &s->plan, groups, !s->own, &e), e);
    for (int w = 0; w < n; w++) {
        ls_exec_config c = config_of(s, &worlds[w], &slot, w);
        assert_ls_ok(ls_exec_create(&c, &execs[w], &e), e);
    }
    for (int w = 0; w < n; w++)
        if (w == 0 || !worlds[w].one) draw(s, &worlds[w]);
    for (int64_t i = 0; i < STEPS; i++) {
        ls_step_in in = step_in(i);
        ls_step_out out = {0};
        ls_trace traces[MOST];
        for (int w = 0; i == TRACED && w < n; w++) begin_trace(s, execs[w], w, &traces[w]);
        if (s->chaos)
            assert_ls_ok(ls_exec_step_chaos(execs, s->seed, &in, &out, &e), e);
        else
            assert_ls_ok(ls_exec_step_all(execs, &in, &out, &e), e);
        for (int w = 0; i == TRACED && w < n; w++) end_trace(s, execs[w], &traces[w]);
        s->losses[i] = out.loss;
        s->norms[i] = out.grad_norm;
    }
    keep(s, &worlds[0]);
    for (int w = 1; s->own && w < n; w++) take_shards(s, &worlds[w], w);
    for (int w = 0; w < n; w++) {
        ls_exec_free(execs[w]);
        ls_world_close(&worlds[w]);
        ls_group_close(groups[w]);
    }
}

static void run(setup *s) {
    ls_group_options o = {.timeout_s = 60, .algorithm = s->algorithm};
    if (s->sequential)
        run_sequential(s);
    else
        run_threads(s->plan.c.nworkers, &o, worker_main, s, NULL);
}

typedef struct variant {
    int n, V;
    int64_t micro;
    bool overlap;
    int threads;
    int zero;
    const char *algorithm;
} variant;

static void same_as_oracle(variant x) {
    setup oracle = {.sequential = true, .threads = 1, .zero = 1};
    setup s = {
        .overlap = x.overlap, .threads = x.threads, .algorithm = x.algorithm, .zero = x.zero};
    set_up(&oracle, x.n, x.V, x.micro);
    set_up(&s, x.n, x.V, x.micro);
    run(&oracle);
    run(&s);
    size_t nbytes = s.model.nfloats * sizeof(float);
    if (memcmp(s.params, oracle.params, 3 * nbytes) != 0)
        print_error("%d workers, overlap %d, zero %d, %s\n", x.n, x.overlap, x.zero,
                    x.algorithm ? x.algorithm : "shared");
    assert_memory_equal(s.params, oracle.params, nbytes);
    assert_memory_equal(s.m, oracle.m, nbytes);
    assert_memory_equal(s.v, oracle.v, nbytes);
    assert_memory_equal(s.losses, oracle.losses, sizeof s.losses);
    assert_memory_equal(s.norms, oracle.norms, sizeof s.norms);
    tear_down(&oracle);
    tear_down(&s);
}

static void test_lanes(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 3, 5, 8};
    for (int i = 0; i < 5; i++) {
        same_as_oracle((variant){workers[i], 8, 1, false, 1, 1, NULL});
        same_as_oracle((variant){workers[i], 8, 1, true, 1, 1, NULL});
    }
    same_as_oracle((variant){2, 4, 2, true, 2, 1, NULL});
    same_as_oracle((variant){1, 1, 8, true, 2, 1, NULL});
}

/* Sums that are sent, not read. */
static void test_messages(void **state) {
    (void)state;
    same_as_oracle((variant){3, 8, 1, false, 1, 1, "direct"});
    same_as_oracle((variant){5, 8, 1, true, 1, 1, "ring"});
}

/* Whatever is sharded, over shared memory and over messages, with and without a thread. */
static void test_sharding(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 3, 5, 8};
    for (int zero = 0; zero <= 3; zero++)
        for (int i = 0; i < 5; i++)
            for (int way = 0; way < 4; way++)
                same_as_oracle(
                    (variant){workers[i], 8, 1, way % 2, 1, zero, way / 2 ? "direct" : NULL});
    setup again = {.threads = 1, .zero = 3, .recompute = 3};
    setup all = {.sequential = true, .threads = 1, .zero = 0, .own = true};
    setup one = {.sequential = true, .threads = 1, .zero = 3};
    set_up(&all, 3, 8, 1);
    set_up(&one, 3, 8, 1);
    run(&all);
    run(&one);
    assert_memory_equal(all.params, one.params, 3 * one.model.nfloats * sizeof(float));
    set_up(&again, 3, 8, 1);
    run(&again);
    assert_memory_equal(all.params, again.params, 3 * one.model.nfloats * sizeof(float));
    tear_down(&again);
    tear_down(&all);
    tear_down(&one);
}

/* Any order that the lanes allow: random settings, each worker with memory of its own. */
static void test_chaos(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        uint32_t r[4];
        ls_random_words(seed, LS_STREAM_FAKE, 0, 0, r);
        int n = 1 + (int)(r[0] % 4), zero = (int)(r[1] % 4), micro = 1 + (int)(r[2] % 2);
        setup oracle = {.sequential = true, .threads = 1, .zero = 1};
        setup s = {.sequential = true, .threads = 1, .chaos = true, .seed = seed};
        s.own = zero == 0 || r[3] % 2;
        s.zero = zero;
        s.recompute = (int)(r[2] / 2 % 4);
        set_up(&oracle, n, 4, micro);
        set_up(&s, n, 4, micro);
        run(&oracle);
        run(&s);
        if (memcmp(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float)) != 0)
            print_error("seed %d: %d workers, zero %d, recompute %d, own %d\n", (int)seed, n, zero,
                        s.recompute, s.own);
        assert_memory_equal(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float));
        assert_memory_equal(s.losses, oracle.losses, sizeof s.losses);
        tear_down(&oracle);
        tear_down(&s);
    }
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
        cmocka_unit_test(test_lanes),    cmocka_unit_test(test_messages),
        cmocka_unit_test(test_sharding), cmocka_unit_test(test_chaos),
        cmocka_unit_test(test_one_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
