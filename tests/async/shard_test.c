/* shard_test.c - pulls and pushes: exact sums, the stability of delayed gradients, rates by
 * staleness, and servers that are killed at any instruction. */
/* ctest: no-tsan: its processes are killed; the applications have one thread */
#include "async/shard.h"

#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "test.h"

enum { N = 5 * LS_BLOCK };

/* One parameter of N numbers, in memory that outlives a killed process. */
typedef struct setup {
    ls_param param;
    ls_model model;
    ls_optim optim;
    ls_async_parameters p;
    ls_compute compute;
    ls_async_shard *shards;
    int nshards;
    float *grads, *pulled; /* [N] */
} setup;

static void *shared(size_t nbytes) {
    ls_error e = {0};
    void *p = NULL;
    assert_ls_ok(ls_map_shared(nbytes, "a test", &p, &e), e);
    return p;
}

/* sgd: w -= lr g; else AdamW. */
static void set_up(setup *s, int nshards, bool sgd, double lr) {
    ls_error e = {0};
    memset(s, 0, sizeof *s);
    s->param = (ls_param){.name = "w", .count = N};
    s->model = (ls_model){.params = &s->param, .nparams = 1, .nfloats = N, .count = N};
    s->optim = ls_optim_usual();
    if (sgd) s->optim.groups[0] = (ls_optim_group){.rule = LS_RULE_SGD, .lr_scale = 1};
    float *state = shared((1 + LS_OPTIM_STATES) * N * sizeof *state);
    s->p = (ls_async_parameters){
        .model = &s->model,
        .optim = &s->optim,
        .schedule = {.kind = LS_SCHEDULE_CONSTANT, .lr = lr, .steps = 1},
        .grads_type = LS_F32,
        .params_type = LS_F32,
        .params = state,
        .flat = ls_flat_of_state(state + N, state, ls_optim_nstates(&s->optim), N),
        .mark = shared(N / LS_BLOCK * sizeof(atomic_uint))};
    s->nshards = nshards;
    s->shards = shared((size_t)nshards * sizeof *s->shards);
    s->grads = shared(N * sizeof *s->grads);
    s->pulled = shared(N * sizeof *s->pulled);
    assert_ls_ok(ls_async_shards_begin(s->shards, nshards, &s->model, &e), e);
    assert_ls_ok(ls_compute_init(&s->compute, 1, 0, &e), e);
}

static void tear_down(setup *s) {
    ls_compute_close(&s->compute);
    munmap(s->p.params, (1 + LS_OPTIM_STATES) * N * sizeof(float));
    munmap(s->p.mark, N / LS_BLOCK * sizeof(atomic_uint));
    munmap(s->shards, (size_t)s->nshards * sizeof *s->shards);
    munmap(s->grads, N * sizeof *s->grads);
    munmap(s->pulled, N * sizeof *s->pulled);
}

static void fill(float *x, double value) {
    for (int i = 0; i < N; i++) x[i] = (float)value;
}

/* Pulls all shards, which must have one version; returns it. */
static int64_t pull(setup *s) {
    int64_t version = ls_async_pull(&s->p, &s->shards[0], s->pulled);
    for (int i = 1; i < s->nshards; i++)
        assert_int_equal(ls_async_pull(&s->p, &s->shards[i], s->pulled), version);
    return version;
}

/* The gradient is `value` everywhere. */
static void push(setup *s, double value, int64_t base) {
    fill(s->grads, value);
    for (int i = 0; i < s->nshards; i++) {
        ls_async_shard *shard = &s->shards[i];
        const ls_async_push p = {.grads = s->grads, .grad_scale = 1, .samples = 1, .base = base};
        ls_async_apply(&s->p, shard, &p, ls_async_version(shard), &s->compute);
    }
}

static void expect_all(setup *s, double value) {
    pull(s);
    for (int i = 0; i < N; i++)
        if ((double)s->pulled[i] != value)
            fail_msg("%d: %.9g, not %.9g", i, (double)s->pulled[i], value);
}

/* The shards lie one after the other, cut at blocks, and have everything. */
static void test_shards(void **state) {
    (void)state;
    static const int counts[] = {1, 2, 3, 4, 5, 8};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        setup s;
        set_up(&s, counts[k], true, 1);
        size_t at = 0;
        for (int i = 0; i < s.nshards; at = s.shards[i++].end) {
            assert_int_equal(s.shards[i].first, at);
            assert_int_equal(s.shards[i].end % LS_BLOCK, 0);
        }
        assert_int_equal(at, N);
        tear_down(&s);
    }
}

/* Worker r of n pushes r + 1, at rate 2, from 1 on: after round i the value is n(n+1)(i+1) + 1. */
static void test_rounds(void **state) {
    (void)state;
    static const int counts[] = {1, 2, 3, 5, 8};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        setup s;
        int n = counts[k];
        set_up(&s, n, true, 2);
        fill(s.p.params, 1);
        for (int i = 0; i < 10; i++) {
            for (int r = 0; r < n; r++) push(&s, -(r + 1), (int64_t)i * n);
            expect_all(&s, n * (n + 1) * (i + 1) + 1);
        }
        assert_int_equal(pull(&s), 10 * n);
        tear_down(&s);
    }
}

/* 50 pushes of v make 50 v, exactly. */
static void test_pushes(void **state) {
    (void)state;
    setup s;
    set_up(&s, 3, true, 1);
    for (int i = 0; i < 50; i++) push(&s, -7.5, i);
    expect_all(&s, 50 * 7.5);
    tear_down(&s);
}

/* Gradient descent on x^2 / 2 whose gradients are `delay` versions old; |x| after many steps. */
static double descend(int delay, double lr) {
    enum { STEPS = 4000, DELAYS = 16 };
    setup s;
    set_up(&s, 2, true, lr);
    double old[DELAYS];
    fill(s.p.params, 1);
    for (int step = 0; step < STEPS; step++) {
        int64_t version = pull(&s);
        old[step % DELAYS] = (double)s.pulled[0];
        int64_t base = version > delay ? version - delay : 0;
        push(&s, old[base % DELAYS], base);
        if (!(fabs(old[step % DELAYS]) < 1e12)) break;
    }
    pull(&s);
    double x = fabs((double)s.pulled[0]);
    tear_down(&s);
    return x;
}

/* Descent is stable below a rate of 2 sin(pi / (2 (2 delay + 1))), and not above. */
static void test_stability(void **state) {
    (void)state;
    static const int delays[] = {0, 1, 2, 4, 8};
    for (size_t k = 0; k < sizeof delays / sizeof *delays; k++) {
        double bound = 2 * sin(M_PI / (2 * (2 * delays[k] + 1)));
        double below = descend(delays[k], 0.98 * bound), above = descend(delays[k], 1.02 * bound);
        print_message("delay %d: bound %.6f; below it %.1e, above it %.1e\n", delays[k], bound,
                      below, above);
        assert_true(below < 1e-2);
        assert_false(above < 1e2);
    }
}

static void assert_near(double got, double want, double most) {
    if (!(fabs(got - want) <= most)) fail_msg("%.9g is not %.9g", got, want);
}

static void test_delay_aware(void **state) {
    (void)state;
    setup s;
    set_up(&s, 1, true, 0.8);
    assert_near(ls_async_rate(&s.p, 3, 7), 0.8, 0);
    s.p.delay_aware = true;
    assert_near(ls_async_rate(&s.p, 7, 7), 0.8, 0);
    assert_near(ls_async_rate(&s.p, 6, 7), 0.8, 0);
    assert_near(ls_async_rate(&s.p, 3, 7), 0.2, 1e-15);
    fill(s.p.params, 1);
    for (int i = 0; i < 3; i++) push(&s, 0, i);
    push(&s, 1, 0); /* 3 versions old */
    pull(&s);
    assert_near((double)s.pulled[0], 1 - 0.8 / 3, 1e-7);
    tear_down(&s);
}

/* ---- servers that are killed ---- */

static void gradients(setup *s, int step) {
    for (int i = 0; i < N; i++) s->grads[i] = (float)((i * 7 + step * 13) % 1000 - 500) / 5000.0f;
}

static void apply_all(setup *s, int step) {
    const ls_async_push p = {.grads = s->grads, .grad_scale = 1, .samples = 1, .base = step};
    for (int i = 0; i < s->nshards; i++)
        ls_async_apply(&s->p, &s->shards[i], &p, step, &s->compute);
}

/* A process that applies the gradient, and is killed after about `us` microseconds; was it? */
static bool apply_and_die(setup *s, int step, unsigned us) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        apply_all(s, step);
        _exit(0);
    }
    int how = 0;
    usleep(us);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return WIFSIGNALED(how);
}

/* The next server finishes what a killed one began, and a gradient is never applied twice. */
static void test_killed(void **state) {
    (void)state;
    enum { KILLS = 300 };
    setup whole, hurt;
    int nkilled = 0;
    set_up(&whole, 3, false, 1e-2);
    set_up(&hurt, 3, false, 1e-2);
    for (int step = 0; step < KILLS; step++) {
        gradients(&whole, step);
        gradients(&hurt, step);
        apply_all(&whole, step);
        nkilled += apply_and_die(&hurt, step, (unsigned)(step * 37 % 500));
        apply_all(&hurt, step);
        assert_int_equal(pull(&hurt), step + 1);
    }
    assert_memory_equal(whole.p.params, hurt.p.params, N * sizeof(float));
    for (int i = 1; i < whole.p.flat.n; i++)
        assert_memory_equal(whole.p.flat.of[i], hurt.p.flat.of[i], N * sizeof(float));
    print_message("%d of %d servers were killed\n", nkilled, KILLS);
    assert_true(nkilled > 0);
    tear_down(&whole);
    tear_down(&hurt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards),      cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_pushes),      cmocka_unit_test(test_stability),
        cmocka_unit_test(test_delay_aware), cmocka_unit_test(test_killed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
