/* replicas_test.c - sync.mode local, diloco and gossip: published outcomes of the outer step, and
 * the same bits for any number of workers, any sharding and transport, and after a resumption. */
/* ctest: busy seconds=8 */
/* ctest: long-asan: exec/mix and train/recorded_bits run the same code */
#include <math.h>
#include <string.h>

#include "optim/outer.h"
#include "train/replica_sync.h"
#include "train/tiny_run.h"

/* ---- known outcomes ---- */

enum { REPLICAS = 2, LAYERS = 2 };

/* A model of one float a layer: its common parameters, and its replicas. */
typedef struct toy {
    ls_config config;
    ls_compute compute;
    ls_optim_group outer;
    float common[LAYERS], momentum[LAYERS], replicas[REPLICAS][LAYERS];
} toy;

static toy new_toy(float value) {
    toy t;
    ls_error e = {0};
    memset(&t, 0, sizeof t);
    ls_config_defaults(&t.config);
    t.config.sync.mode = LS_SYNC_DILOCO;
    t.config.sync.replicas = REPLICAS;
    t.outer = (ls_optim_group){.rule = LS_RULE_MOMENTUM, .lr_scale = 1};
    assert_ls_ok(ls_compute_init(&t.compute, 1, 0, &e), e);
    for (int i = 0; i < LAYERS; i++) {
        t.common[i] = value;
        for (int r = 0; r < REPLICAS; r++) t.replicas[r][i] = value;
    }
    return t;
}

/* Fragment p has layer p; LS_SYNC_ALL, and a model of one fragment, have both. */
static void part_of(const toy *t, int fragment, size_t *first_p, size_t *end_p) {
    bool all = fragment == LS_SYNC_ALL || t->config.sync.fragments == 1;
    *first_p = all ? 0 : (size_t)fragment;
    *end_p = all ? LAYERS : (size_t)fragment + 1;
}

static void outer(toy *t, int fragment, double lr) {
    float delta[LAYERS] = {0};
    ls_outer_change c = {.outer = &t->outer,
                         .step = {.lr = lr, .grad_scale = 1.0 / REPLICAS},
                         .given = delta,
                         .flat = {2, {t->common, t->momentum}}};
    for (int i = 0; i < LAYERS; i++)
        for (int r = 0; r < REPLICAS; r++) delta[i] += t->common[i] - t->replicas[r][i];
    part_of(t, fragment, &c.part_first, &c.part_end);
    ls_outer_apply(&c, &t->compute, 0, LAYERS);
}

static void adopt(toy *t, int fragment) {
    for (int r = 0; r < REPLICAS; r++) {
        ls_outer_change c = {
            .mixing = t->config.sync.mixing, .given = t->common, .flat = {1, {t->replicas[r]}}};
        part_of(t, fragment, &c.part_first, &c.part_end);
        ls_outer_apply(&c, &t->compute, 0, LAYERS);
    }
}

/* What follows the training step that makes `steps` complete. */
static void synchronize(toy *t, int64_t steps, double lr) {
    ls_sync_due due = ls_sync_due_after(&t->config, steps);
    if (due.outer != LS_SYNC_NOTHING) outer(t, due.outer, lr);
    if (due.adopt != LS_SYNC_NOTHING) adopt(t, due.adopt);
}

/* torchft's test_diloco_mocked_updates: weights 1, gradients 2, inner rate 1, outer rate 2 without
 * momentum, two fragments, each every 6 steps. All numbers are exact in binary. */
static void test_torchft(void **state) {
    (void)state;
    static const struct {
        int64_t delay;
        double mixing;
        float layers[LAYERS][16];
    } known[] = {
        {0,
         0,
         {{1, -1, -3, -11, -13, -15, -17, -19, -21, -35, -37, -39, -41, -43, -45, -59},
          {1, -1, -3, -5, -7, -9, -23, -25, -27, -29, -31, -33, -47, -49, -51, -53}}},
        {0,
         0.5,
         {{1, -1, -3, -8, -10, -12, -14, -16, -18, -24.5F, -26.5F, -28.5F, -30.5F, -32.5F, -34.5F,
           -40.25F},
          {1, -1, -3, -5, -7, -9, -17, -19, -21, -23, -25, -27, -32, -34, -36, -38}}},
        {0,
         1,
         {{1, -1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29},
          {1, -1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29}}},
        {1,
         0,
         {{1, -1, -3, -7, -9, -11, -13, -15, -17, -27, -29, -31, -33, -35, -37, -47},
          {1, -1, -3, -5, -7, -9, -19, -21, -23, -25, -27, -29, -39, -41, -43, -45}}},
        {1,
         0.5,
         {{1, -1, -3, -6, -8, -10, -12, -14, -16, -21.5F, -23.5F, -25.5F, -27.5F, -29.5F, -31.5F,
           -35.75F},
          {1, -1, -3, -5, -7, -9, -15, -17, -19, -21, -23, -25, -29, -31, -33, -35}}},
        {1,
         1,
         {{1, -1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29},
          {1, -1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29}}},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        toy t = new_toy(1);
        t.config.sync.every = 6;
        t.config.sync.fragments = 2;
        t.config.sync.delay = known[k].delay;
        t.config.sync.mixing = known[k].mixing;
        for (int64_t steps = 1; steps < 16; steps++) {
            for (int r = 0; r < REPLICAS; r++)
                for (int i = 0; i < LAYERS; i++) t.replicas[r][i] -= 2;
            synchronize(&t, steps, 2);
            for (int r = 0; r < REPLICAS; r++)
                for (int i = 0; i < LAYERS; i++)
                    assert_true(t.replicas[r][i] == known[k].layers[i][steps]);
        }
        ls_compute_close(&t.compute);
    }
}

/* Replicas with the losses a (x - b)^2 / 2 that are averaged every H steps of rate .1 settle at
 * sum w b / sum w, w = 1 - (1 - .1 a)^H, which is not the minimum of their sum unless H is 1. */
static void test_fixed_points(void **state) {
    (void)state;
    static const double a[REPLICAS] = {1, 4}, b[REPLICAS] = {0, 1};
    static const struct {
        int64_t every;
        double at;
    } known[] = {{1, 0.8}, {2, 0.771084337}, {10, 0.604126008}, {100, 0.50000664}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        toy t = new_toy(3);
        t.config.sync.every = known[k].every;
        t.outer.rule = LS_RULE_SGD;
        for (int64_t steps = 1; steps <= 1000; steps++) {
            for (int r = 0; r < REPLICAS; r++)
                for (int i = 0; i < LAYERS; i++)
                    t.replicas[r][i] -= (float)(0.1 * a[r] * (t.replicas[r][i] - b[r]));
            synchronize(&t, steps, 1);
        }
        for (int i = 0; i < LAYERS; i++) assert_true(fabs(t.common[i] - known[k].at) < 1e-6);
        ls_compute_close(&t.compute);
    }
}

/* The steps of the warm-up end with an average; then each fragment has its turn. */
static void test_schedule(void **state) {
    (void)state;
    toy t = new_toy(0);
    t.config.sync.warmup = 3;
    t.config.sync.every = 10;
    t.config.sync.fragments = 3;
    t.config.sync.delay = 2;
    for (int64_t s = 1; s <= 3; s++) {
        ls_sync_due due = ls_sync_due_after(&t.config, s);
        assert_true(due.averages && due.outer == LS_SYNC_ALL && due.adopt == LS_SYNC_ALL);
    }
    int outers[3] = {0}, adopts[3] = {0};
    for (int64_t s = 4; s <= 3 + 100; s++) {
        ls_sync_due due = ls_sync_due_after(&t.config, s);
        assert_false(due.averages);
        if (due.outer != LS_SYNC_NOTHING) assert_int_equal(due.updates, outers[due.outer]++);
        if (due.adopt != LS_SYNC_NOTHING) assert_true(++adopts[due.adopt] <= outers[due.adopt]);
    }
    for (int i = 0; i < 3; i++) assert_int_equal(adopts[i], 10);
    ls_compute_close(&t.compute);
}

/* ---- the same bits ---- */

enum { MOST_SETS = 20, OWN_SETS = 6 };

typedef struct mode {
    const char *sets[OWN_SETS];
    bool half; /* 16 bits: masters of workers that share no memory are not sharded */
} mode;

static const mode modes[] = {
    {{"sync.mode=diloco", "sync.replicas=4", "sync.every=4"}, false},
    {{"sync.mode=local", "sync.replicas=2", "sync.every=3", "optim.optimizer=sgd"}, false},
    {{"sync.mode=diloco", "sync.replicas=8", "sync.every=6", "sync.fragments=3", "sync.delay=1",
      "sync.mixing=0.5"},
     false},
    {{"sync.mode=diloco", "sync.replicas=4", "sync.every=3", "sync.outer=adamw", "sync.warmup=2",
      "train.compute=bf16"},
     true},
    {{"sync.mode=diloco", "sync.replicas=4", "sync.every=4", "sync.deltas=int8"}, false},
    {{"sync.mode=local", "sync.replicas=2", "sync.every=4", "sync.fragments=2", "sync.deltas=int4"},
     false},
    {{"sync.mode=gossip", "sync.replicas=4"}, false},
    {{"sync.mode=gossip", "sync.replicas=8", "sync.graph=random", "sync.algorithm=sgp"}, false},
    {{"sync.mode=gossip", "sync.replicas=8", "sync.graph=torus", "sync.every=2",
      "train.compute=bf16"},
     true},
};
enum { NMODES = sizeof modes / sizeof *modes };

/* Sixteen steps, over an uneven batch at the end of an epoch. break_at: the run ends there, and
 * n + 1 workers continue; 0: it does not. */
static result run_with(const mode *m, int n, const char *zero, const char *how, int break_at) {
    const char *sets[MOST_SETS] = {
        "log.every=1000", "train.steps=16", "optim.warmup=2", "train.eval_every=0", zero, how};
    int nsets = 6;
    for (int i = 0; i < OWN_SETS && m->sets[i]; i++) sets[nsets++] = m->sets[i];
    return train_parts(n, sets, nsets, break_at);
}

static void assert_same(const mode *m, int n, const char *zero, const char *how, int break_at,
                        const result *want) {
    result got = run_with(m, n, zero, how, break_at);
    if (memcmp(&got, want, sizeof got) != 0)
        print_error("%s %s: other bits with %d workers, %s, %s\n", m->sets[0], m->sets[1], n, zero,
                    how);
    same(got, *want);
}

static void test_same_bits(void **state) {
    (void)state;
    char weights[NMODES][LS_HASH_TEXT];
    for (int i = 0; i < NMODES; i++) {
        const mode *m = &modes[i];
        static const char thread[] = "parallel.transport=thread", tcp[] = "parallel.transport=tcp";
        result one = run_with(m, 1, "parallel.zero=0", thread, 0);
        const char *over_tcp = m->half ? "parallel.zero=0" : "parallel.zero=1";
        const struct {
            int n;
            const char *zero, *how;
        } ways[] = {{2, "parallel.zero=0", thread},
                    {8, "parallel.zero=1", thread},
                    {3, over_tcp, tcp},
                    {3, "parallel.zero=1", thread},
                    {3, "parallel.zero=1", "parallel.executor=sequential"},
                    {6, "parallel.zero=0", "parallel.executor=sequential"},
                    {5, over_tcp, tcp},
                    {5, "parallel.zero=0", thread},
                    {5, "parallel.zero=0", "parallel.bucket_mb=0.02"}};
        for (int w = 0; w < 9; w++)
            if (runs_case(i + w, 3)) assert_same(m, ways[w].n, ways[w].zero, ways[w].how, 0, &one);
        memcpy(weights[i], one.weights, sizeof one.weights);
        for (int k = 0; k < i; k++) assert_string_not_equal(weights[i], weights[k]);
    }
}

/* A run may end between two synchronizations, and continue with other workers. */
static void test_resumed(void **state) {
    (void)state;
    for (int i = 0; i < NMODES; i++) {
        mode m = modes[i];
        int k = 0;
        while (k < OWN_SETS && m.sets[k]) k++;
        if (k == OWN_SETS) continue;
        m.sets[k] = "optim.schedule=constant";
        result whole = run_with(&m, 2, "parallel.zero=0", "parallel.transport=thread", 0);
        for (int at = 6; at <= 8; at++)
            if (runs_case(at + i, 3))
                assert_same(&m, at % 3 + 1, "parallel.zero=1", "parallel.transport=thread", at,
                            &whole);
    }
}

/* ---- what makes no sense ---- */

static void assert_refused(const char *const *sets, int nsets, const char *why) {
    bool unfinished = false;
    ls_error e = {0};
    char *run = ls_format("%s/run-%d", folder, nruns++);
    ls_train_options o = {
        .config = "configs/tiny.yaml", .sets = sets, .nsets = nsets, .nworkers = 2, .run = run};
    assert_int_equal(ls_train(&o, &unfinished, &e), LS_EINVAL);
    if (!strstr(e.msg, why)) print_error("'%s' does not say '%s'\n", e.msg, why);
    assert_non_null(strstr(e.msg, why));
    free(run);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *sets[4];
        int n;
        const char *why;
    } bad[] = {
        {{"sync.replicas=2"}, 1, "sync.replicas acts only with sync.mode: local, diloco, gossip"},
        {{"sync.mode=local", "sync.outer_lr=0.5"},
         2,
         "sync.outer_lr acts only with sync.mode: diloco"},
        {{"sync.graph=ring"}, 1, "sync.graph acts only with sync.mode: gossip"},
        {{"sync.deltas=int8"}, 1, "sync.deltas acts only with sync.mode: local, diloco"},
        {{"sync.mode=gossip", "sync.deltas=int8"},
         2,
         "sync.deltas acts only with sync.mode: local, diloco"},
        {{"sync.mode=local", "sync.algorithm=sgp"},
         2,
         "sync.algorithm acts only with sync.mode: gossip"},
        {{"sync.mode=gossip", "sync.outer_lr=0.5"},
         2,
         "sync.outer_lr acts only with sync.mode: diloco"},
        {{"sync.mode=gossip", "sync.warmup=3"},
         2,
         "sync.warmup acts only with sync.mode: local, diloco"},
        {{"sync.mode=gossip", "sync.replicas=1"}, 2, "one replica has no neighbour"},
        {{"sync.mode=gossip", "sync.replicas=4", "parallel.zero=3"},
         3,
         "gossip does not go with parallel.zero: 3"},
        {{"sync.mode=diloco", "sync.replicas=3"}, 2, "there are 8 (train.virtual_workers)"},
        {{"sync.mode=diloco", "parallel.zero=2"}, 2, "diloco does not go with parallel.zero: 2"},
        {{"sync.mode=diloco", "train.reduce_dtype=bf16"},
         2,
         "not go with train.reduce_dtype: bf16"},
        {{"sync.mode=diloco", "optim.optimizer=lamb"}, 2, "not go with optim.optimizer: lamb"},
        {{"sync.mode=diloco", "compress.kind=int8"}, 2, "compress.kind"},
        {{"sync.mode=diloco", "optim.ema=0.9"}, 2, "optim.ema"},
        {{"sync.mode=diloco", "survival.audit=5"}, 2, "survival.audit"},
        {{"sync.mode=diloco", "sync.every=4", "sync.fragments=5"}, 3, "sync.fragments 5 is more"},
        {{"sync.mode=diloco", "sync.every=4", "sync.fragments=2", "sync.delay=2"},
         4,
         "must be less than sync.every / sync.fragments, 2"},
        {{"sync.mode=diloco", "optim.optimizer=schedule-free", "optim.schedule=constant"},
         3,
         "not go with optim.optimizer: schedule-free"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_refused(bad[i].sets, bad[i].n, bad[i].why);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchft),  cmocka_unit_test(test_fixed_points),
        cmocka_unit_test(test_schedule), cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_resumed),  cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
