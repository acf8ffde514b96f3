/* space_test.c - the file of a search: values of trials, and what is refused. */
#include "search/space.h"

#include <math.h>

#include "test.h"

static ls_config base;

static int make(void **state) {
    ls_error e = {0};
    (void)state;
    ls_config_defaults(&base);
    return ls_config_set(&base, "data.path=x", &e) == LS_OK ? 0 : -1;
}

static ls_status read_text(const char *text, ls_space *s_p, ls_error *e) {
    ls_buf file = {0};
    ls_buf_printf(&file, "%s", text);
    ls_status s = ls_space_parse(&file, "space.yaml", &base, s_p, e);
    ls_buf_free(&file);
    return s;
}

static ls_space space_of(const char *text) {
    ls_space s;
    ls_error e = {0};
    assert_ls_ok(read_text(text, &s, &e), e);
    return s;
}

static double number(const char *text) {
    char *end = NULL;
    double x = strtod(text, &end);
    assert_true(end > text && !*end);
    return x;
}

/* ---- values ---- */

static void test_defaults(void **state) {
    (void)state;
    ls_space s = space_of("method: asha\ntrials: 3\nspace: {optim.lr: {uniform: [0.1, 0.2]}}\n");
    assert_true(s.rules.steps == 1000 && s.rules.grace == 10 && s.rules.reduction == 4);
    assert_string_equal(s.rules.metric, "val_loss");
    assert_true(!s.rules.maximize && s.rules.rule == LS_SPACE_PROMOTE);
    ls_space_free(&s);
    s = space_of("method: pbt\ntrials: 3\nspace: {optim.lr: {uniform: [0.1, 0.2]}}\n");
    assert_true(s.rules.interval == 60 && s.rules.quantile == 0.25 && s.rules.resample == 0.25);
    ls_space_free(&s);
}

/* Means and limits of many trials; a trial's values don't depend on how many there are. */
static void test_draws(void **state) {
    (void)state;
    static const char text[] = "method: random\ntrials: 1000\nseed: 5\nspace:\n"
                               "  optim.lr: {log_uniform: [1e-4, 1]}\n"
                               "  optim.weight_decay: {uniform: [0.1, 0.3]}\n"
                               "  model.layers: {int: [2, 4]}\n"
                               "  optim.optimizer: {choice: [adamw, sgd]}\n";
    ls_space s = space_of(text), few = space_of("method: random\ntrials: 4\nseed: 5\nspace:\n"
                                                "  optim.lr: {log_uniform: [1e-4, 1]}\n");
    double logs = 0, sum = 0, layers[5] = {0}, sgd = 0;
    for (int t = 0; t < 1000; t++) {
        ls_space_point p, q;
        ls_space_point_of(&s, t, &p);
        double lr = number(p.values[0]), decay = number(p.values[1]), n = number(p.values[2]);
        assert_true(lr >= 1e-4 && lr <= 1 && decay >= 0.1 && decay <= 0.3);
        assert_true(n == 2 || n == 3 || n == 4);
        logs += log10(lr);
        sum += decay;
        layers[(int)n]++;
        sgd += strcmp(p.values[3], "sgd") == 0;
        if (t < 4) {
            ls_space_point_of(&few, t, &q);
            assert_string_equal(p.values[0], q.values[0]);
            ls_space_point_free(&q);
        }
        ls_space_point_free(&p);
    }
    /* four standard errors of 1000 draws */
    assert_true(fabs(logs / 1000 + 2) < 4 * 4 / sqrt(12 * 1000));
    assert_true(fabs(sum / 1000 - 0.2) < 4 * 0.2 / sqrt(12 * 1000));
    for (int n = 2; n <= 4; n++) assert_true(fabs(layers[n] - 333.3) < 60);
    assert_true(fabs(sgd - 500) < 64);
    ls_space_free(&s);
    ls_space_free(&few);
}

/* The first range whose conditions hold; without one, the config's value. */
static void test_conditions(void **state) {
    (void)state;
    ls_space s = space_of("method: random\ntrials: 200\nspace:\n"
                          "  optim.optimizer: {choice: [adamw, sgd, lion]}\n"
                          "  optim.lr:\n"
                          "    - {uniform: [1, 2], when: {optim.optimizer: sgd}}\n"
                          "    - {uniform: [0.1, 0.2], when: {optim.optimizer: [adamw, lion]}}\n"
                          "  optim.momentum: {uniform: [0.5, 0.9], when: {optim.optimizer: sgd}}\n"
                          "  optim.nesterov: {choice: [on], when: {optim.momentum: 0.95}}\n");
    int nsgd = 0;
    for (int t = 0; t < 200; t++) {
        ls_space_point p;
        ls_config c;
        ls_error e = {0};
        ls_space_point_of(&s, t, &p);
        bool sgd = strcmp(p.values[0], "sgd") == 0;
        double lr = number(p.values[1]);
        nsgd += sgd;
        assert_true(sgd ? lr >= 1 && lr <= 2 : lr >= 0.1 && lr <= 0.2);
        assert_true(sgd == (p.values[2] != NULL));
        assert_null(p.values[3]);
        assert_ls_ok(ls_space_config(&s, &base, &p, &c, &e), e);
        assert_true(c.optim.lr == lr);
        assert_true(c.optim.momentum == (sgd ? number(p.values[2]) : base.optim.momentum));
        ls_space_point_free(&p);
    }
    assert_in_range(nsgd, 40, 95);
    ls_space_free(&s);
}

/* All combinations, the last key fastest; a key without a range is not multiplied. */
static void test_grid(void **state) {
    (void)state;
    static const char *const want[] = {"optim.optimizer=adamw model.layers=1",
                                       "optim.optimizer=adamw model.layers=2",
                                       "optim.optimizer=sgd optim.lr=0.1 model.layers=1",
                                       "optim.optimizer=sgd optim.lr=0.1 model.layers=2",
                                       "optim.optimizer=sgd optim.lr=1 model.layers=1",
                                       "optim.optimizer=sgd optim.lr=1 model.layers=2"};
    ls_space s = space_of("method: grid\nspace:\n"
                          "  optim.optimizer: {choice: [adamw, sgd]}\n"
                          "  optim.lr: {choice: [0.1, 1], when: {optim.optimizer: sgd}}\n"
                          "  model.layers: {int: [1, 2]}\n");
    assert_int_equal(s.rules.trials, 6);
    for (int t = 0; t < 6; t++) {
        ls_space_point p;
        ls_space_point_of(&s, t, &p);
        char *text = ls_space_point_text(&s, &p);
        assert_string_equal(text, want[t]);
        free(text);
        ls_space_point_free(&p);
    }
    ls_space_free(&s);
}

/* ---- exploring ---- */

/* Ray Tune's rules: 1.2 or 0.8 times a number, a neighbour of a choice, or a new value. */
static void test_explore(void **state) {
    (void)state;
    ls_space s = space_of("method: pbt\ntrials: 2\nresample: 0.25\nspace:\n"
                          "  optim.lr: {uniform: [0.1, 0.2]}\n"
                          "  optim.beta2: {choice: [0.9, 0.95, 0.99, 0.999]}\n"
                          "  optim.beta1: {uniform: [0.1, 0.99]}\n");
    ls_space_point from = {
        {(char *)(uintptr_t) "0.5", (char *)(uintptr_t) "0.95", (char *)(uintptr_t) "0.95"}};
    int up = 0, down = 0, fresh = 0, sooner = 0, later = 0, stayed = 0;
    for (int i = 0; i < 1000; i++) {
        ls_space_point p;
        const ls_space_explorer x = {&base, i % 10, i / 10};
        ls_space_explore(&s, &x, &from, &p);
        double lr = number(p.values[0]), beta1 = number(p.values[2]);
        up += lr == 0.6;
        down += lr == 0.4;
        fresh += lr >= 0.1 && lr <= 0.2;
        sooner += strcmp(p.values[1], "0.9") == 0;
        later += strcmp(p.values[1], "0.99") == 0;
        stayed += beta1 == 0.95; /* 1.14 is out of the key's range */
        assert_true(beta1 <= 0.999);
        ls_space_point_free(&p);
    }
    assert_int_equal(up + down + fresh, 1000);
    assert_true(abs(fresh - 250) < 56 && abs(up - 375) < 62 && abs(down - 375) < 62);
    /* neighbours, 375 each, and a quarter of the 250 new values */
    assert_true(abs(sooner - 437) < 64 && abs(later - 437) < 64);
    assert_true(abs(stayed - 375) < 62);
    ls_space_free(&s);
}

/* Each of n is picked about as often as the others. */
static void test_pick(void **state) {
    (void)state;
    ls_space s = space_of("method: pbt\ntrials: 2\nspace: {optim.lr: {uniform: [0.1, 0.2]}}\n");
    int counts[5] = {0};
    for (int i = 0; i < 1000; i++) {
        int k = ls_space_pick(&s, i % 20, i / 20, 5);
        assert_in_range(k, 0, 4);
        counts[k]++;
    }
    for (int k = 0; k < 5; k++) assert_true(abs(counts[k] - 200) < 51);
    ls_space_free(&s);
}

/* ---- what is refused ---- */

#define LR     "space: {optim.lr: {uniform: [0.1, 0.2]}}\n"
#define RANDOM "method: random\ntrials: 4\n"

static void test_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"method: bayes\ntrials: 4\n" LR,
         ":1: method: 'bayes' is not one of grid, random, asha, pbt"},
        {"method: random\n" LR, "has no 'trials'"},
        {"method: random\ntrails: 4\n" LR, ":2: unknown key 'trails'; did you mean 'trials'?"},
        {"optim.lr: 3\n" RANDOM LR, ":1: unknown key 'optim.lr'; keys of configs belong below"},
        {"method: random\ntrials: 0\n" LR, ":2: trials: '0' is not a whole number from 1 to 1000"},
        {"method: random\ntrials: 1.5\n" LR, "'1.5' is not a whole number"},
        {RANDOM "trials: 5\n" LR, ":3: 'trials' occurs twice; first in line 2"},
        {RANDOM "steps: [1, 2]\n" LR, ":3: steps: is a list"},
        {RANDOM "grace: 3\n" LR, ":3: grace: is not a setting of method random"},
        {"method: grid\ntrials: 3\n" LR, ":2: trials: is not a setting of method grid"},
        {"method: asha\ntrials: 4\nsteps: 10\ngrace: 11\n" LR, "grace: 11 steps are more than"},
        {"method: asha\ntrials: 4\nreduction: 1\n" LR, ":3: reduction: '1' is not a whole number"},
        {"method: pbt\ntrials: 1\n" LR, "method pbt needs at least 2 trials"},
        {"method: pbt\ntrials: 4\nquantile: 0.6\n" LR, "'0.6' is not a number from 0 to 0.5"},
        {"method: pbt\ntrials: 4\nsteps: 100000\ninterval: 2\n" LR,
         "a trial of 100000 steps has at most"},
        {RANDOM "metric: val_accuracy\n" LR, "is a lower or a higher value better? Set mode"},
        {RANDOM, "has no 'space'"},
        {RANDOM "space:\n", "has no 'space'"},
        {RANDOM "space: {}\n", ":3: space: expected keys of the config"},
        {RANDOM "space: [optim.lr]\n", ":3: space: expected keys of the config"},
        {RANDOM "space:\n  optim.rl: {uniform: [0.1, 0.2]}\n", "unknown key 'optim.rl'"},
        {RANDOM "space:\n  optim.lr: 3\n",
         ":4: optim.lr: expected choice, uniform, log_uniform or int"},
        {RANDOM "space:\n  optim.lr: {normal: [0, 1]}\n", "'normal': expected one of choice"},
        {RANDOM "space:\n  optim.lr: {uniform: [0, 1], choice: [1]}\n",
         "'choice': expected one of"},
        {RANDOM "space:\n  optim.lr: {uniform: [0.2, 0.1]}\n", ":4: optim.lr: is empty"},
        {RANDOM "space:\n  optim.lr: {uniform: [0.1]}\n", "expected the lowest and the highest"},
        {RANDOM "space:\n  optim.lr: {uniform: 0.1}\n", "expected the lowest and the highest"},
        {RANDOM "space:\n  optim.lr: {log_uniform: [0, 1]}\n", "log_uniform needs values above 0"},
        {RANDOM "space:\n  optim.lr: {uniform: [0, 2000]}\n", "optim.lr: 2000 is out of range"},
        {RANDOM "space:\n  model.layers: {int: [1, 2.5]}\n", "int takes whole numbers"},
        {RANDOM "space:\n  model.layers: {uniform: [1, 2.5]}\n", "'2.5' is not a whole number"},
        {RANDOM "space:\n  optim.lr: {choice: []}\n", "expected a list of values"},
        {RANDOM "space:\n  optim.lr: {choice: [[1]]}\n",
         "a list or a map can't be one of the values"},
        {RANDOM "space:\n  optim.optimizer: {choice: [adamw, adm]}\n", "'adm' is not one of"},
        {RANDOM "space:\n  optim.lr: []\n", "is an empty list"},
        {RANDOM "space:\n  train.steps: {int: [1, 9]}\n", "train.steps: is the same in all trials"},
        {RANDOM "space:\n  optim.lr: {choice: [1], when: {optim.optimizer: sgd}}\n",
         "'when' names 'optim.optimizer', which is not a key of the space above"},
        {RANDOM "space:\n  optim.lr: {choice: [1], when: 3}\n", "'when' expects keys of the space"},
        {RANDOM "space:\n  model.layers: {int: [1, 2]}\n  optim.lr: {choice: [1], when: "
                "{model.layers: x}}\n",
         ":5: model.layers: 'x' is not a whole number"},
        {"method: grid\nspace:\n  optim.lr: {uniform: [0, 1]}\n",
         ":3: optim.lr: a grid takes the values"},
        {"method: grid\nspace:\n  model.layers: {int: [1, 90]}\n  model.width: {int: [1, 90]}\n",
         "the grid has more than 1000 combinations"},
        {"method: pbt\ntrials: 4\nspace:\n  model.layers: {int: [1, 2]}\n",
         "can't change within a run"},
        {"method: pbt\ntrials: 4\nspace:\n  optim.optimizer: {choice: [sgd]}\n",
         "can't change within a run"},
        {"method: pbt\ntrials: 4\nspace:\n  optim.lr: {uniform: [0, 1]}\n  optim.beta1: {uniform: "
         "[0, 0.5], when: {optim.lr: 1}}\n",
         ":5: optim.beta1: method pbt has no 'when'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ls_space s;
        ls_error e = {0};
        assert_ls_fails(read_text(bad[i][0], &s, &e), LS_EINVAL, bad[i][1], e);
        assert_non_null(strstr(e.msg, "space.yaml"));
    }
}

/* A trial whose config is not possible is named by its values. */
static void test_impossible(void **state) {
    (void)state;
    ls_space s = space_of("method: grid\nspace:\n  train.batch: {choice: [16, 12]}\n");
    ls_error e = {0};
    ls_space_point p;
    ls_config c;
    ls_space_point_of(&s, 0, &p);
    assert_ls_ok(ls_space_config(&s, &base, &p, &c, &e), e);
    assert_int_equal(c.train.steps, 1000);
    ls_space_point_free(&p);
    ls_space_point_of(&s, 1, &p);
    assert_ls_ok(ls_space_config(&s, &base, &p, &c, &e), e);
    assert_int_equal(c.train.virtual_workers, 6); /* left out: 8 where it divides the batch */
    ls_config written = base;
    assert_ls_ok(ls_config_set(&written, "train.virtual_workers=8", &e), e);
    assert_ls_fails(ls_space_config(&s, &written, &p, &c, &e), LS_EINVAL,
                    "virtual_workers 8 does not divide train.batch 12", e);
    assert_non_null(strstr(e.msg, "space.yaml: train.batch=12: train.virtual_workers 8"));
    ls_space_point_free(&p);
    ls_space_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),   cmocka_unit_test(test_draws),
        cmocka_unit_test(test_conditions), cmocka_unit_test(test_grid),
        cmocka_unit_test(test_explore),    cmocka_unit_test(test_pick),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_impossible),
    };
    return cmocka_run_group_tests(tests, make, NULL);
}
