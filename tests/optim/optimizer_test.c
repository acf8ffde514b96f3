/* optimizer_test.c - each optimizer with clipping, and the average of its weights, against a plain
 * loop in double precision, the promise, and groups of parameters. */
/* ctest: no-tsan: exec_test updates with threads */
#include "optim/apply.h"

#include <math.h>

#include "base/mem.h"
#include "config/relations.h"
#include "networks/gpt2.h"
#include "optim/gradient_norm.h"
#include "test.h"

enum { STEPS = 20, FREEZE = 8 };

static const double LR = 1e-2, LIMIT = 3.0;

typedef struct setup {
    ls_model model;
    size_t n;
    float *first; /* [n] the weights before the first step */
} setup;

static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 23) - 1.0;
}

static int set_up(void **state) {
    static setup s;
    ls_error e = {0};
    ls_gpt_config c = {1, 20, 2, 9, 31};
    assert_ls_ok(ls_gpt_create(&c, &s.model, &e), e);
    s.n = s.model.nfloats;
    s.first = LS_NEW_ARRAY(float, s.n);
    uint64_t r = 1;
    for (size_t i = 0; i < s.n; i++) s.first[i] = (float)uniform(&r);
    *state = &s;
    return 0;
}

static int tear_down(void **state) {
    setup *s = *state;
    ls_model_free(&s->model);
    free(s->first);
    return 0;
}

static void compute_open(ls_compute *c, int nthreads, const char *cpu) {
    ls_error e = {0};
    setenv("LOCKSTEP_CPU", cpu, 1);
    assert_ls_ok(ls_compute_init(c, nthreads, 16, &e), e);
    ls_pool_share_cores(c->pool);
    unsetenv("LOCKSTEP_CPU");
}

/* Gradients of step t: zero in the padding, of changing size, some steps above the clip's limit. */
static void gradients(const setup *s, int t, float *g) {
    uint64_t r = (uint64_t)t + 100;
    memset(g, 0, s->n * sizeof *g);
    for (int i = 0; i < s->model.nparams; i++)
        for (size_t k = 0; k < s->model.params[i].count; k++)
            g[s->model.params[i].offset + k] = (float)(0.02 * (1 + t % 5) * uniform(&r));
}

static double clip_factor(const ls_compute *c, const setup *s, const float *g) {
    size_t n = s->n;
    double *sums = LS_NEW_ARRAY(double, n / LS_BLOCK);
    ls_norm_blocks(c, &(ls_norm_input){&s->model, LS_F32, g}, 0, n, sums);
    double factor = ls_clip_factor(ls_norm_total(sums, n / LS_BLOCK), LIMIT);
    free(sums);
    return factor;
}

static ls_optim optim_of(ls_update_rule rule, bool nesterov) {
    return (ls_optim){.ema = 0.9,
                      .ngroups = 1,
                      .groups = {{.rule = rule,
                                  .beta1 = 0.9,
                                  .beta2 = 0.95,
                                  .eps = 1e-8,
                                  .weight_decay = 0.1,
                                  .momentum = 0.8,
                                  .nesterov = nesterov,
                                  .lr_scale = 0.5,
                                  .lr_decay = rule == LS_RULE_ADAGRAD ? 0.2 : 0,
                                  .warmup = 5,
                                  .freeze = rule == LS_RULE_ONEBIT_ADAM ? FREEZE : 0}}};
}

/* STEPS steps, each in ranges of `cut` elements; returns [1 + states][n]: weights, states. */
static float *run(const setup *s, const ls_optim *o, int nthreads, const char *cpu, size_t cut) {
    ls_compute c;
    compute_open(&c, nthreads, cpu);
    int nstates = ls_optim_nstates(o);
    float *state = LS_NEW_ARRAY(float, LS_FLAT_MOST * s->n), *g = LS_NEW_ARRAY(float, s->n);
    ls_optim_update u = {.optim = o,
                         .model = &s->model,
                         .grads_type = LS_F32,
                         .params_type = LS_F32,
                         .grads = g,
                         .params = state,
                         .flat = ls_flat_of_state(state, NULL, nstates, s->n)};
    memcpy(state, s->first, s->n * sizeof *state);
    for (int t = 0; t < STEPS; t++) {
        gradients(s, t, g);
        u.step = (ls_optim_step){.updates = t, .lr = 2 * LR, .grad_scale = clip_factor(&c, s, g)};
        for (size_t at = 0; at < s->n; at += cut)
            ls_optim_apply(&u, &c, at, at + cut < s->n ? at + cut : s->n);
    }
    free(g);
    ls_compute_close(&c);
    return state;
}

static double exact_factor(const float *g, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)g[i] * (double)g[i];
    return sqrt(sum) > LIMIT ? LIMIT / sqrt(sum) : 1;
}

typedef struct element {
    double p, states[LS_OPTIM_STATES];
} element;

static double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

/* As its authors' program computes it, which has no average but follows y = (1 - beta1) z + beta1 x
 * from step to step; here x is made of these. */
static void exact_schedule_free(const ls_optim_group *o, int t, double g, double decay,
                                element *x) {
    double *z = &x->states[0], *v = &x->states[1], y = x->p, weights = 0;
    for (int i = 1; i <= t; i++) weights += pow(fmin(1, (double)i / (double)o->warmup), 2);
    double share = pow(fmin(1, (double)t / (double)o->warmup), 2) / weights;
    if (t == 1) *z = y;
    *v = o->beta2 * *v + (1 - o->beta2) * g * g;
    double d = g / (sqrt(*v / (1 - pow(o->beta2, t))) + o->eps) + decay * y;
    x->p = y + share * (*z - y) + LR * (o->beta1 * (1 - share) - 1) * d;
    *z -= LR * d;
    x->states[2] = x->p + (1 - 1 / o->beta1) * (*z - x->p);
}

/* One step of one element, by the papers' formulas; t from 1. */
static void exact_step(const ls_optim_group *o, int t, double g, bool decays, element *x) {
    double decay = decays ? o->weight_decay : 0, *m = &x->states[0], *v = &x->states[1];
    bool adds = o->rule != LS_RULE_ADAMW && o->rule != LS_RULE_LION &&
                o->rule != LS_RULE_SCHEDULE_FREE && o->rule != LS_RULE_ONEBIT_ADAM;
    double p = adds ? x->p : x->p * (1 - LR * decay), mean = 0;
    if (adds) g += decay * x->p;
    switch (o->rule) {
    case LS_RULE_ADAM:
    case LS_RULE_ADAMW:
        *m = o->beta1 * *m + (1 - o->beta1) * g;
        *v = o->beta2 * *v + (1 - o->beta2) * g * g;
        mean = *m / (1 - pow(o->beta1, t));
        x->p = p - LR * mean / (sqrt(*v / (1 - pow(o->beta2, t))) + o->eps);
        break;
    case LS_RULE_ONEBIT_ADAM: /* frozen, it is given the first moment */
        *m = t > FREEZE ? g : o->beta1 * *m + (1 - o->beta1) * g;
        if (t <= FREEZE) *v = o->beta2 * *v + (1 - o->beta2) * g * g;
        mean = *m / (1 - pow(o->beta1, t));
        x->p = p - LR * mean / (sqrt(*v / (1 - pow(o->beta2, fmin(t, FREEZE)))) + o->eps);
        break;
    case LS_RULE_SGD: x->p = p - LR * g; break;
    case LS_RULE_MOMENTUM:
        *m = o->momentum * *m + g;
        x->p = p - LR * (o->nesterov ? g + o->momentum * *m : *m);
        break;
    case LS_RULE_LION:
        x->p = p - LR * sign(o->beta1 * *m + (1 - o->beta1) * g);
        *m = o->beta2 * *m + (1 - o->beta2) * g;
        break;
    case LS_RULE_ADAGRAD:
        *m += g * g;
        x->p = p - LR / (1 + (t - 1) * o->lr_decay) * g / (sqrt(*m) + o->eps);
        break;
    case LS_RULE_SCHEDULE_FREE: exact_schedule_free(o, t, g, decay, x); break;
    default: break; /* whole_test.c */
    }
}

/* A step moves a weight by at most about LR = 1e-2; 20 of them agree to 2e-6. */
static void compare_with_double(const setup *s, const ls_optim *o) {
    float *got = run(s, o, 1, "portable", s->n), *g = LS_NEW_ARRAY(float, s->n);
    element *want = LS_NEW_ARRAY(element, s->n);
    int clipped = 0;
    for (size_t i = 0; i < s->n; i++) want[i].p = (double)s->first[i];
    for (int t = 0; t < STEPS; t++) {
        gradients(s, t, g);
        double factor = exact_factor(g, s->n);
        clipped += factor < 1;
        for (int i = 0; i < s->model.nparams; i++) {
            const ls_param *q = &s->model.params[i];
            for (size_t k = q->offset; k < q->offset + q->count; k++) {
                exact_step(&o->groups[0], t + 1, factor * (double)g[k], q->ndims == 2, &want[k]);
                double *mean = &want[k].states[ls_optim_ema(o)];
                *mean = t == 0 ? want[k].p : o->ema * *mean + (1 - o->ema) * want[k].p;
            }
        }
    }
    assert_in_range(clipped, 1, STEPS - 1); /* both cases of clipping occurred */
    for (size_t i = 0; i < s->n; i++) {
        assert_true(fabs((double)got[i] - want[i].p) <= 2e-6);
        for (int k = 0; k < ls_optim_nstates(o); k++) {
            double x = want[i].states[k], y = (double)got[(size_t)(k + 1) * s->n + i];
            assert_true(fabs(y - x) <= 1e-7 + 1e-5 * fabs(x));
        }
    }
    free(got), free(g), free(want);
}

static void test_against_double(void **arg) {
    for (int rule = 0; rule < LS_NUPDATES; rule++)
        for (int nesterov = 0; nesterov < (rule == LS_RULE_MOMENTUM ? 2 : 1); nesterov++) {
            ls_optim o = optim_of((ls_update_rule)rule, nesterov);
            compare_with_double(*arg, &o);
        }
}

/* Ranges need not end where parameters or vectors do. */
static void test_same_bits(void **arg) {
    const setup *s = *arg;
    const ls_kernels *k = NULL;
    static const size_t cuts[] = {7, 100, 1024, 5000, SIZE_MAX / 2};
    for (int rule = 0; rule < LS_NUPDATES; rule++) {
        ls_optim o = optim_of((ls_update_rule)rule, true);
        float *want = run(s, &o, 1, "portable", s->n);
        for (int v = 0; (k = ls_kernels_at(v)); v++)
            for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
                float *got = run(s, &o, 1 + (int)i % 3, k->name, cuts[i]);
                assert_memory_equal(got, want, LS_FLAT_MOST * s->n * sizeof *got);
                free(got);
            }
        free(want);
    }
}

/* With no gradient only decay changes a weight: padding never changes, and vectors only in a group
 * that sets their decay itself. */
static void check_decay(const setup *s, bool decays_all) {
    ls_compute c;
    compute_open(&c, 2, "portable");
    float *state = LS_NEW_ARRAY(float, LS_FLAT_MOST * s->n), *zero = LS_NEW_ARRAY(float, s->n);
    memcpy(state, s->first, s->n * sizeof *state);
    ls_optim o = optim_of(LS_RULE_ADAMW, false);
    o.ema = 0;
    o.groups[0].decays_all = decays_all;
    const ls_optim_update u = {.optim = &o,
                               .model = &s->model,
                               .step = {.lr = 1.0, .grad_scale = 1},
                               .grads_type = LS_F32,
                               .params_type = LS_F32,
                               .grads = zero,
                               .params = state,
                               .flat = ls_flat_of_state(state, NULL, 2, s->n)};
    ls_optim_apply(&u, &c, 0, s->n);
    for (int i = 0; i < s->model.nparams; i++) {
        const ls_param *q = &s->model.params[i];
        for (size_t k = q->offset; k < q->offset + q->count; k++) {
            bool decays = q->ndims == 2 || decays_all;
            double want = (double)s->first[k] * (decays ? 1 - 0.5 * 0.1 : 1.0);
            assert_true(fabs((double)state[k] - want) <= 1e-7);
            state[k] = s->first[k];
        }
    }
    assert_memory_equal(state, s->first, s->n * sizeof *state);
    free(state), free(zero);
    ls_compute_close(&c);
}

static void test_decay(void **arg) {
    check_decay(*arg, false);
    check_decay(*arg, true);
}

/* The first step's corrections make it a step of lr against the sign of the gradient. */
static void test_first_step(void **state) {
    (void)state;
    ls_optim o = optim_of(LS_RULE_ADAMW, false);
    ls_update_scalars u =
        ls_optim_scalars(&o.groups[0], &(ls_optim_step){.lr = 2 * LR, .grad_scale = 0.25}, false);
    assert_true(fabs((double)u.correct1 - 10) < 1e-5);
    assert_true(fabs((double)u.correct2 - 20) < 1e-5);
    assert_true(u.grad_scale == 0.25f && u.weight_decay == 0);
    float g = -3, p = 1, m = 0, v = 0, *const states[] = {&m, &v};
    ls_kernels_named("portable")->update[LS_RULE_ADAMW](1, &u, &g, &p, states);
    assert_true(fabs((double)p - (1 + LR)) < 1e-6);
    u = ls_optim_scalars(&o.groups[0],
                         &(ls_optim_step){.updates = 999999, .lr = LR, .grad_scale = 1}, true);
    assert_true(u.correct1 == 1 && u.correct2 == 1 && u.weight_decay == 0.1f);
}

/* Lion moves by lr times the sign, also of the smallest numbers, and not at all without a gradient.
 * PyTorch's SGD with momentum 0.9 and lr 0.1 on a gradient of 1: 1, 0.9, 0.71, 0.439. */
static void test_known_steps(void **state) {
    (void)state;
    static const float grads[] = {1e-45f, -1e-45f, 0, -0.0f, 3e38f, -3e38f},
                       want[] = {-1, 1, 0, 0, -1, 1}, sgd[] = {0.9f, 0.71f, 0.439f};
    const ls_kernels *k = NULL;
    for (int v = 0; (k = ls_kernels_at(v)); v++) {
        ls_update_scalars u = {.lr = 1, .beta1 = 0, .beta2 = 0.5f, .grad_scale = 1};
        float p[6] = {0}, m[6] = {0}, *states[] = {m};
        k->update[LS_RULE_LION](6, &u, grads, p, states);
        for (int i = 0; i < 6; i++) assert_true(p[i] == want[i]);
        float one = 1, x = 1, b = 0, *velocity[] = {&b};
        u = (ls_update_scalars){.lr = 0.1f, .momentum = 0.9f, .grad_scale = 1};
        for (int i = 0; i < 3; i++) {
            k->update[LS_RULE_MOMENTUM](1, &u, &one, &x, velocity);
            assert_true(fabs((double)(x - sgd[i])) < 1e-6);
        }
    }
}

/* ---- running values: by momentum towards the batch's mean, for any rule, clip and decay ---- */

enum { WEIGHTS = 40, RUNNING = 1500 };

static void check_running(ls_update_rule rule, ls_dtype grads_type) {
    ls_model m = {0};
    ls_layer *l = ls_model_add_layer(&m, "layer");
    ls_model_add_param(&m, l, "weight", &(ls_param){.ndims = 1, .dims = {WEIGHTS}});
    ls_model_add_param(&m, l, "running",
                       &(ls_param){.ndims = 1, .dims = {RUNNING}, .momentum = 0.1f});
    m.nfloats = 2 * LS_BLOCK;
    ls_optim o = optim_of(rule, false);
    o.groups[0].decays_all = true;
    ls_compute c;
    compute_open(&c, 2, "portable");
    size_t n = m.nfloats, first = m.params[1].offset;
    float *state = LS_NEW_ARRAY(float, LS_FLAT_MOST *n), *g = LS_NEW_ARRAY(float, n);
    uint16_t *half = LS_NEW_ARRAY(uint16_t, n);
    double *want = LS_NEW_ARRAY(double, 2 * RUNNING), *ema = want + RUNNING;
    ls_optim_update u = {.optim = &o,
                         .model = &m,
                         .grads_type = grads_type,
                         .params_type = LS_F32,
                         .grads = grads_type == LS_F32 ? (void *)g : half,
                         .params = state,
                         .flat = ls_flat_of_state(state, NULL, ls_optim_nstates(&o), n)};
    uint64_t r = 9;
    for (int t = 0; t < 5; t++) {
        double samples = t == 3 ? 7 : 16;
        for (size_t i = 0; i < n; i++) g[i] = (float)uniform(&r);
        c.k->narrow(LS_BF16, n, g, half);
        if (grads_type != LS_F32) c.k->widen(LS_BF16, n, half, g);
        u.step = (ls_optim_step){.updates = t, .lr = 1, .grad_scale = 0.25, .samples = samples};
        ls_optim_apply(&u, &c, 0, n);
        for (size_t i = 0; i < RUNNING; i++) {
            want[i] = 0.9 * want[i] + 0.1 * (double)g[first + i] / samples;
            ema[i] = t == 0 ? want[i] : o.ema * ema[i] + (1 - o.ema) * want[i];
        }
    }
    for (size_t i = 0; i < RUNNING; i++) {
        assert_true(fabs((double)state[first + i] - want[i]) < 1e-7);
        assert_true(fabs((double)u.flat.of[1 + ls_optim_ema(&o)][first + i] - ema[i]) < 1e-7);
        for (int k = 0; k < ls_optim_ema(&o); k++) assert_true(u.flat.of[1 + k][first + i] == 0);
    }
    for (int k = 0; k < ls_optim_nstates(&o); k++)
        assert_int_equal(ls_optim_state_name(&o, &m.params[1], k) != NULL, k == ls_optim_ema(&o));
    free(state), free(g), free(half), free(want);
    ls_compute_close(&c);
    ls_model_free(&m);
}

static void test_running_values(void **state) {
    (void)state;
    for (int rule = 0; rule < LS_NUPDATES; rule++) check_running((ls_update_rule)rule, LS_F32);
    check_running(LS_RULE_ADAMW, LS_BF16);
}

/* A pattern of optim.groups does not match running values. */
static void test_groups_of_running(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_layer *l = ls_model_add_layer(&m, "layer");
    ls_model_add_param(&m, l, "a.weight", &(ls_param){.ndims = 1, .dims = {2}});
    ls_model_add_param(&m, l, "a.running_mean",
                       &(ls_param){.ndims = 1, .dims = {2}, .momentum = 0.1f});
    ls_optim o;
    ls_config c;
    ls_config_defaults(&c);
    assert_ls_ok(ls_config_set(&c, "optim.groups=[{match: \"a.*\", lr_scale: 2}]", &e), e);
    assert_ls_ok(ls_optim_of(&c, &m, &o, &e), e);
    assert_int_equal(m.params[0].group, 1);
    assert_int_equal(m.params[1].group, 0);
    assert_ls_ok(ls_config_set(&c, "optim.groups=[{match: \"*running*\", lr_scale: 2}]", &e), e);
    assert_ls_fails(ls_optim_of(&c, &m, &o, &e), LS_EINVAL,
                    "'*running*' matches no parameter that is trained; their names are like "
                    "a.weight",
                    e);
    ls_model_free(&m);
}

/* ---- groups ---- */

static ls_config config_with(const char *groups) {
    ls_config c;
    ls_error e = {0};
    ls_config_defaults(&c);
    assert_ls_ok(ls_config_set(&c, groups, &e), e);
    return c;
}

/* The first pattern that matches counts; what a group does not set is the config's. */
static void test_groups(void **arg) {
    setup *s = *arg;
    ls_error e = {0};
    ls_config c = config_with("optim.groups=[{match: \"*.bias\", lr_scale: 2, optimizer: sgd}, "
                              "{match: \"h.*\", weight_decay: 0.5, momentum: 0.75}]");
    ls_optim o;
    assert_ls_ok(ls_optim_of(&c, &s->model, &o, &e), e);
    assert_int_equal(o.ngroups, 3);
    assert_int_equal(ls_optim_nstates(&o), 2);
    assert_int_equal(o.groups[1].rule, LS_RULE_SGD);
    assert_true(o.groups[1].lr_scale == 2 && o.groups[1].beta2 == 0.95);
    assert_true(o.groups[2].decays_all && o.groups[2].weight_decay == 0.5);
    assert_true(!o.groups[1].decays_all && o.groups[1].weight_decay == 0.1);
    for (int i = 0; i < s->model.nparams; i++) {
        ls_param *p = &s->model.params[i];
        size_t n = strlen(p->name);
        bool bias = strcmp(p->name + n - 5, ".bias") == 0;
        assert_int_equal(p->group, bias ? 1 : p->name[0] == 'h' ? 2 : 0);
        assert_int_equal(ls_optim_state_name(&o, p, 0) == NULL, bias);
        p->group = 0;
    }
}

/* The names of the states of a config's optimizers. */
static void list_states(setup *s, const char *set, double ema, const char *want) {
    ls_error e = {0};
    ls_config c = config_with(set);
    ls_optim o;
    ls_buf names = {0};
    c.optim.ema = ema;
    assert_ls_ok(ls_optim_of(&c, &s->model, &o, &e), e);
    ls_buf_append(&names, "", 0);
    ls_optim_list_states(&o, &names);
    assert_string_equal(names.data, want);
    ls_buf_free(&names);
    for (int i = 0; i < s->model.nparams; i++) s->model.params[i].group = 0;
}

static void test_states(void **arg) {
    list_states(*arg, "optim.optimizer=adam", 0, "exp_avg, exp_avg_sq");
    list_states(*arg, "optim.optimizer=sgd", 0, "");
    list_states(*arg, "optim.optimizer=sgd", 0.9, "ema");
    list_states(*arg, "optim.optimizer=schedule-free", 0, "z, exp_avg_sq, y");
    list_states(*arg,
                "optim.groups=[{match: \"*.bias\", optimizer: sgd, momentum: 0.5}, "
                "{match: wte.*, optimizer: lion}]",
                0.9, "exp_avg, exp_avg_sq, momentum_buffer, ema");
}

static void refuse_groups(setup *s, const char *groups, const char *says) {
    ls_error e = {0};
    ls_config c = config_with(groups);
    ls_optim o;
    assert_ls_fails(ls_optim_of(&c, &s->model, &o, &e), LS_EINVAL, says, e);
    for (int i = 0; i < s->model.nparams; i++) s->model.params[i].group = 0;
}

static void test_bad_groups(void **arg) {
    refuse_groups(*arg, "optim.groups=[{match: conv*, lr_scale: 2}]",
                  "optim.groups: 'conv*' matches no parameter");
    refuse_groups(*arg, "optim.groups=[{match: h.*}, {match: h.0.*}]",
                  "'h.0.*' matches only parameters that earlier groups have");
    refuse_groups(*arg, "optim.groups=[{lr_scale: 2}]", "group 1 of optim.groups: has no `match`");
    refuse_groups(*arg, "optim.groups=[{match: h.*}, {match: wte.*, warmup: 2}]",
                  "group 2 of optim.groups: 'warmup' is not a key of a group");
    refuse_groups(*arg, "optim.groups=[{match: h.*, lr_scale: fast}]",
                  "lr_scale: 'fast' is not a number from 0 to 1000");
    refuse_groups(*arg, "optim.groups=[{match: h.*, beta1: 1}]",
                  "optim.beta1: 1 is out of range; expected 0 to 0.999999");
    refuse_groups(*arg, "optim.groups=[{match: h.*, optimizer: adamax}]",
                  "'adamax' is not one of adamw, adam, sgd, lion, adagrad, schedule-free, lars");
}

/* Replicas that take steps of their own update parts of parameters: a rule that needs a whole one
 * is refused. */
static void test_whole_apart(void **arg) {
    (void)arg;
    static const char *const modes[] = {"sync.mode=local", "sync.mode=diloco", "sync.mode=gossip"};
    int n = 0;
    for (int r = 0; r < LS_NRULES; r++) {
        char set[64];
        ls_config c;
        ls_error e = {0};
        if (!ls_optim_rules[r].whole) continue;
        snprintf(set, sizeof set, "optim.optimizer=%s", ls_optim_rules[r].name);
        ls_config_defaults(&c);
        assert_ls_ok(ls_config_set(&c, set, &e), e);
        assert_ls_ok(ls_config_set(&c, "parallel.zero=0", &e), e); /* for onebit_lamb */
        assert_ls_ok(ls_config_set(&c, modes[n++ % 3], &e), e);
        assert_ls_fails(ls_config_check(&c, "config", &e), LS_EINVAL, ls_optim_rules[r].name, e);
        assert_non_null(strstr(e.msg, "sync.mode"));
    }
    assert_int_equal(n, 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_apart),
        cmocka_unit_test(test_against_double),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_decay),
        cmocka_unit_test(test_first_step),
        cmocka_unit_test(test_known_steps),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_bad_groups),
        cmocka_unit_test(test_running_values),
        cmocka_unit_test(test_groups_of_running),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
