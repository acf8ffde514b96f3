/* whole_test.c - rules that need all of a parameter, against plain loops in double precision, with
 * values that others publish, and to the same bits for any number of threads and any processor. */
/* ctest: no-tsan: exec_test updates with threads */
#include "optim/apply.h"

#include <float.h>
#include <math.h>

#include "base/mem.h"
#include "test.h"

enum { STEPS = 20, FREEZE = 8, NPARAMS = 6, MOST = 70 * 45 };
enum { TABLES = 4 }; /* the last ones, of rules that train tables; these are matrices */

static const double LR = 1e-2, SCALE = 0.25;

static const struct {
    int ndims;
    int64_t dims[LS_PARAM_DIMS];
    bool decay;
} shapes[NPARAMS] = {{2, {40, 30}, true}, {1, {50}, false},   {2, {17, 90}, true},
                     {2, {70, 45}, true}, {1, {1500}, false}, {4, {3, 5, 7, 11}, true}};

typedef struct setup {
    ls_model model;
    ls_optim optim;
    size_t n;
    float *first; /* [n] the weights before the first step */
} setup;

static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 23) - 1.0;
}

/* Sets all elements of parameters, 0 between them. */
static void draw(const ls_model *m, uint64_t seed, float *x) {
    memset(x, 0, m->nfloats * sizeof *x);
    for (int i = 0; i < m->nparams; i++)
        for (size_t k = 0; k < m->params[i].count; k++)
            x[m->params[i].offset + k] = (float)uniform(&seed);
}

static void set_up(setup *s, ls_update_rule rule) {
    *s = (setup){.optim = {.ngroups = 1,
                           .groups = {{.rule = rule,
                                       .beta1 = 0.9,
                                       .beta2 = 0.95,
                                       .eps = 1e-8,
                                       .weight_decay = 0.1,
                                       .momentum = 0.9,
                                       .lr_scale = 1,
                                       .freeze = rule == LS_RULE_ONEBIT_LAMB ? FREEZE : 0}}}};
    ls_layer *l = ls_model_add_layer(&s->model, "layer");
    for (int i = 0; i < NPARAMS; i++) {
        ls_param p = {.ndims = shapes[i].ndims, .decay = shapes[i].decay};
        char name[] = "a";
        name[0] = (char)('a' + i);
        memcpy(p.dims, shapes[i].dims, sizeof p.dims);
        ls_model_add_param(&s->model, l, name, &p);
    }
    if (rule == LS_RULE_ROWWISE_ADAGRAD) l->half.ntables = TABLES;
    ls_optim_place(&s->optim, &s->model);
    s->n = s->model.nfloats;
    s->first = LS_NEW_ARRAY(float, s->n);
    draw(&s->model, 1, s->first);
}

static void tear_down(setup *s) {
    ls_model_free(&s->model);
    free(s->first);
}

/* Each of the parameters that the rule trains begins and ends blocks; the others are elsewhere. */
static void check_places(const setup *s, ls_update_rule rule) {
    const ls_model *m = &s->model;
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        bool is_table = p->ndims == 2 && i >= NPARAMS - TABLES;
        bool whole = rule == LS_RULE_ADAFACTOR || (ls_optim_rules[rule].tables && is_table) ||
                     (!ls_optim_rules[rule].tables && p->ndims >= 2 &&
                      (p->ndims == 2 || !ls_optim_rules[rule].matrices));
        assert_int_equal(p->cut.whole, whole);
        assert_int_equal(s->optim.groups[p->group].rule, whole ? rule : ls_optim_rules[rule].rest);
        if (whole) assert_int_equal(p->offset % LS_BLOCK, 0);
        size_t next = i + 1 < m->nparams ? m->params[i + 1].offset : m->nfloats;
        if (whole) assert_int_equal(next % LS_BLOCK, 0);
        assert_true(next >= p->offset + p->count);
    }
}

/* STEPS steps; returns [LS_FLAT_MOST][n]: weights, states. */
static float *run(const setup *s, int nthreads, const char *cpu, ls_dtype grads_type) {
    ls_compute c;
    ls_error e = {0};
    void *room = NULL;
    size_t nbytes = ls_whole_nbytes(&s->optim, &s->model, grads_type);
    setenv("LOCKSTEP_CPU", cpu, 1);
    assert_ls_ok(ls_compute_init(&c, nthreads, 16, &e), e);
    ls_pool_share_cores(c.pool);
    unsetenv("LOCKSTEP_CPU");
    assert_true(nbytes > 0);
    assert_ls_ok(ls_map(nbytes, "room", &room, &e), e);
    float *state = LS_NEW_ARRAY(float, LS_FLAT_MOST * s->n), *g = LS_NEW_ARRAY(float, s->n);
    uint16_t *half = LS_NEW_ARRAY(uint16_t, s->n);
    ls_optim_update u = {.optim = &s->optim,
                         .model = &s->model,
                         .grads_type = grads_type,
                         .params_type = LS_F32,
                         .grads = grads_type == LS_F32 ? (void *)g : half,
                         .params = state,
                         .flat = ls_flat_of_state(state, NULL, ls_optim_nstates(&s->optim), s->n),
                         .room = room};
    memcpy(state, s->first, s->n * sizeof *state);
    for (int t = 0; t < STEPS; t++) {
        draw(&s->model, (uint64_t)t + 100, g);
        c.k->narrow(LS_BF16, s->n, g, half);
        u.step = (ls_optim_step){.updates = t, .lr = LR, .grad_scale = SCALE};
        ls_optim_apply(&u, &c, 0, s->n);
    }
    free(g), free(half);
    ls_unmap(room, nbytes);
    ls_compute_close(&c);
    return state;
}

/* ---- the formulas ---- */

typedef struct exact {
    size_t count, rows, columns; /* of the last two dims; rows 0: a vector */
    double w[MOST], m[MOST], v[MOST], g[MOST];
    double fresh[MOST], average, ratio; /* of 1-bit LAMB */
} exact;

static double norm(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static void exact_momentum(exact *x, double decay, double by) {
    for (size_t i = 0; i < x->count; i++) {
        x->m[i] = 0.9 * x->m[i] + by * (x->g[i] + decay * x->w[i]);
        x->w[i] -= LR * x->m[i];
    }
}

/* Adam's ratios with decay, to u. */
static void exact_ratios(exact *x, int t, double decay, double *u) {
    for (size_t i = 0; i < x->count; i++) {
        x->m[i] = 0.9 * x->m[i] + 0.1 * x->g[i];
        x->v[i] = 0.95 * x->v[i] + 0.05 * x->g[i] * x->g[i];
        double mean = x->m[i] / (1 - pow(0.9, t));
        u[i] = mean / (sqrt(x->v[i] / (1 - pow(0.95, t))) + 1e-8) + decay * x->w[i];
    }
}

static void exact_adafactor(exact *x, int t, double decay) {
    static double u[MOST];
    double weight = pow(t, -0.8), eps = FLT_EPSILON, R = (double)x->rows, C = (double)x->columns;
    size_t size = x->rows * x->columns;
    for (size_t i = 0; i < x->count && !x->rows; i++) {
        x->v[i] += weight * (x->g[i] * x->g[i] - x->v[i]);
        u[i] = x->g[i] / sqrt(fmax(x->v[i], eps * eps));
    }
    for (size_t b = 0; x->rows && b < x->count / size; b++) {
        double *rows = x->m + b * x->rows, *columns = x->v + b * x->columns, mean = 0;
        const double *g = x->g + b * size;
        for (size_t r = 0; r < x->rows; r++) {
            double n = norm(g + r * x->columns, x->columns);
            rows[r] += weight * (n * n / C - rows[r]);
            mean += rows[r] / R;
        }
        for (size_t k = 0; k < x->columns; k++) {
            double sum = 0;
            for (size_t r = 0; r < x->rows; r++) sum += pow(g[r * x->columns + k], 2);
            columns[k] += weight * (sum / R - columns[k]);
        }
        for (size_t i = 0; i < size; i++) {
            double variance = rows[i / x->columns] * columns[i % x->columns] / fmax(mean, eps);
            u[b * size + i] = g[i] / sqrt(fmax(variance, eps * eps));
        }
    }
    double n = sqrt((double)x->count), rate = fmin(LR, 1 / sqrt(t));
    double by = fmax(1e-3, norm(x->w, x->count) / n) * rate / fmax(1, norm(u, x->count) / n);
    for (size_t i = 0; i < x->count; i++) x->w[i] = x->w[i] * (1 - LR * decay) - by * u[i];
}

/* c [M, N] = a [M, K] b [K, N]; at, bt: the operand is stored transposed. */
static void product(size_t M, size_t N, size_t K, const double *a, bool at, const double *b,
                    bool bt, double *c) {
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            double sum = 0;
            for (size_t k = 0; k < K; k++)
                sum += a[at ? k * M + i : i * K + k] * b[bt ? j * K + k : k * N + j];
            c[i * N + j] = sum;
        }
}

/* X is not transposed: a tall one has the iteration a x + x (b a + c a a), a = x^T x. */
static void exact_muon(exact *x, double decay) {
    static double u[MOST], y[MOST], a[90 * 90], s[90 * 90];
    size_t M = x->rows, N = x->columns, R = M < N ? M : N;
    for (size_t i = 0; i < x->count; i++) {
        x->m[i] = 0.9 * x->m[i] + 0.1 * x->g[i];
        u[i] = 0.1 * x->g[i] + 0.9 * x->m[i];
    }
    double size = norm(u, x->count);
    for (size_t i = 0; i < x->count; i++) u[i] /= size;
    for (int step = 0; step < 5; step++) {
        if (M <= N)
            product(M, M, N, u, false, u, true, a);
        else
            product(N, N, M, u, true, u, false, a);
        product(R, R, R, a, false, a, false, s);
        for (size_t i = 0; i < R * R; i++) s[i] = -4.7750 * a[i] + 2.0315 * s[i];
        if (M <= N)
            product(M, N, M, s, false, u, false, y);
        else
            product(M, N, N, u, false, s, false, y);
        for (size_t i = 0; i < x->count; i++) u[i] = 3.4445 * u[i] + y[i];
    }
    double rate = LR * 0.2 * sqrt((double)(M > N ? M : N));
    for (size_t i = 0; i < x->count; i++) x->w[i] = x->w[i] * (1 - LR * decay) - rate * u[i];
}

/* Adam's ratio once v is frozen and g is the first moment. */
static void frozen_ratios(exact *x, int t, double *u) {
    for (size_t i = 0; i < x->count; i++) {
        x->m[i] = x->g[i];
        double below = sqrt(x->v[i] / (1 - pow(0.95, FREEZE))) + 1e-8;
        u[i] = x->m[i] / (1 - pow(0.9, t)) / below;
    }
}

/* Algorithm 1 of its paper, with the limits of DeepSpeed's program, and the average of factors
 * without its bias towards 0. */
static void exact_onebit_lamb(exact *x, int t, double decay) {
    static double u[MOST];
    double c = 1 - pow(0.95, FREEZE), most = 0, by = norm(x->w, x->count);
    if (t <= FREEZE) {
        exact_ratios(x, t, decay, u);
        by /= norm(u, x->count);
        x->average = 0.9 * x->average + 0.1 * by;
        for (size_t i = 0; i < x->count; i++) x->w[i] -= LR * by * u[i];
        memcpy(x->fresh, x->v, sizeof x->v);
        x->ratio = 1;
        return;
    }
    for (size_t i = 0; i < x->count; i++) {
        double g = (x->g[i] - 0.9 * x->m[i]) / 0.1;
        x->fresh[i] = 0.95 * x->fresh[i] + 0.05 * g * g;
        most = fmax(most, (sqrt(x->v[i] / c) + 1e-8) / (sqrt(x->fresh[i] / c) + 1e-8));
    }
    frozen_ratios(x, t, u);
    double plain = norm(u, x->count);
    for (size_t i = 0; i < x->count; i++) u[i] += decay * x->w[i];
    double share = fmin(1, plain / norm(u, x->count));
    double ratio = fmin(fmax(most * share + 1 - share, 0.5), 4);
    x->ratio = fmin(fmax(ratio, 0.9 * x->ratio), 1.1 * x->ratio);
    by = x->average / (1 - pow(0.9, FREEZE)) * x->ratio;
    for (size_t i = 0; i < x->count; i++) x->w[i] -= LR * by * u[i];
}

/* `width` elements have one sum of squares. */
static void exact_adagrad(exact *x, size_t width, double decay) {
    for (size_t r = 0; r < x->count / width; r++) {
        double mean = 0;
        for (size_t i = r * width; i < (r + 1) * width; i++) {
            x->g[i] += decay * x->w[i];
            mean += x->g[i] * x->g[i] / (double)width;
        }
        x->v[r] += mean;
        for (size_t i = r * width; i < (r + 1) * width; i++)
            x->w[i] -= LR * x->g[i] / (sqrt(x->v[r]) + 1e-8);
    }
}

/* One step of a parameter; t from 1. */
static void exact_step(ls_update_rule rule, int t, bool decays, exact *x) {
    static double u[MOST];
    double decay = decays ? 0.1 : 0, w = norm(x->w, x->count), g = norm(x->g, x->count), by = 1;
    switch (rule) {
    case LS_RULE_LARS: exact_momentum(x, decay, 0.001 * w / (g + decay * w + 1e-8)); break;
    case LS_RULE_MOMENTUM: exact_momentum(x, decay, 1); break;
    case LS_RULE_LAMB:
        exact_ratios(x, t, decay, u);
        by = w / norm(u, x->count);
        for (size_t i = 0; i < x->count; i++) x->w[i] -= LR * by * u[i];
        break;
    case LS_RULE_ADAMW: /* what the others leave */
        exact_ratios(x, t, 0, u);
        for (size_t i = 0; i < x->count; i++) x->w[i] = x->w[i] * (1 - LR * decay) - LR * u[i];
        break;
    case LS_RULE_ONEBIT_LAMB: exact_onebit_lamb(x, t, decay); break;
    case LS_RULE_ONEBIT_ADAM: /* what that leaves */
        if (t <= FREEZE)
            exact_ratios(x, t, 0, u);
        else
            frozen_ratios(x, t, u);
        for (size_t i = 0; i < x->count; i++) x->w[i] = x->w[i] * (1 - LR * decay) - LR * u[i];
        break;
    case LS_RULE_ADAFACTOR: exact_adafactor(x, t, decay); break;
    case LS_RULE_ROWWISE_ADAGRAD: exact_adagrad(x, x->columns, decay); break;
    case LS_RULE_ADAGRAD: exact_adagrad(x, 1, decay); break;
    case LS_RULE_MUON: exact_muon(x, decay); break;
    default: fail();
    }
}

static void check_param(const setup *s, int param, const float *got) {
    static exact x;
    const ls_param *p = &s->model.params[param];
    float *g = LS_NEW_ARRAY(float, s->n);
    x = (exact){.count = p->count};
    if (p->ndims > 1) {
        x.rows = (size_t)p->dims[p->ndims - 2];
        x.columns = (size_t)p->dims[p->ndims - 1];
    }
    for (size_t i = 0; i < p->count; i++) x.w[i] = (double)s->first[p->offset + i];
    for (int t = 0; t < STEPS; t++) {
        draw(&s->model, (uint64_t)t + 100, g);
        for (size_t i = 0; i < p->count; i++) x.g[i] = SCALE * (double)g[p->offset + i];
        exact_step(s->optim.groups[p->group].rule, t + 1, p->decay, &x);
    }
    for (size_t i = 0; i < p->count; i++)
        assert_true(fabs((double)got[p->offset + i] - x.w[i]) < 2e-6);
    free(g);
}

static void test_against_double(void **state) {
    (void)state;
    for (int rule = LS_NUPDATES; rule < LS_NRULES; rule++) {
        setup s;
        set_up(&s, (ls_update_rule)rule);
        check_places(&s, (ls_update_rule)rule);
        float *got = run(&s, 2, "portable", LS_F32);
        for (int i = 0; rule != LS_RULE_SOAP && i < NPARAMS; i++) check_param(&s, i, got);
        free(got);
        tear_down(&s);
    }
}

/* ---- a parameter or two, whose updates are known ---- */

typedef struct known {
    ls_optim optim;
    ls_model model;
    ls_compute compute;
    ls_layer *layer;
    ls_optim_update u;
    size_t n, nbytes;
    float *x, *g; /* [n] each: the parameters, with the states behind them, and their gradients */
    void *room;
} known;

static void known_begin(known *k, const ls_optim_group *rule) {
    *k = (known){.optim = {.ngroups = 1, .groups = {*rule}}};
    k->layer = ls_model_add_layer(&k->model, "layer");
}

/* With the parameters that were added. */
static void known_place(known *k, int nstates, int threads) {
    ls_error e = {0};
    ls_optim_place(&k->optim, &k->model);
    k->n = k->model.nfloats;
    k->nbytes = ls_whole_nbytes(&k->optim, &k->model, LS_F32);
    assert_ls_ok(ls_map(k->nbytes, "room", &k->room, &e), e);
    assert_ls_ok(ls_compute_init(&k->compute, threads, 16, &e), e);
    k->x = LS_NEW_ARRAY(float, (1 + (size_t)nstates) * k->n);
    k->g = LS_NEW_ARRAY(float, k->n);
    k->u = (ls_optim_update){.optim = &k->optim,
                             .model = &k->model,
                             .grads = k->g,
                             .params = k->x,
                             .flat = ls_flat_of_state(k->x, NULL, nstates, k->n),
                             .room = k->room};
    k->u.grads_type = k->u.params_type = LS_F32;
}

static void known_step(known *k, int t, double lr) {
    k->u.step = (ls_optim_step){.updates = t, .lr = lr, .grad_scale = 1};
    ls_optim_apply(&k->u, &k->compute, 0, k->n);
}

static void known_end(known *k) {
    free(k->x), free(k->g);
    ls_unmap(k->room, k->nbytes);
    ls_compute_close(&k->compute);
    ls_model_free(&k->model);
}

/* ---- SOAP, whose basis a plain loop would find only with the same method ---- */

/* GG is the mean of G G^T over the shorter side; Q is orthonormal. */
static void check_basis(const setup *s, const ls_param *p, const float *state) {
    static double gg[40 * 40];
    size_t R = p->dims[0] < p->dims[1] ? (size_t)p->dims[0] : (size_t)p->dims[1];
    size_t N = p->count / R, line = R == (size_t)p->dims[0] ? N : 1, step = line == 1 ? R : 1;
    float *g = LS_NEW_ARRAY(float, s->n);
    const float *got = state + 3 * s->n + p->offset, *q = state + 4 * s->n + p->offset;
    memset(gg, 0, sizeof gg);
    for (int t = 0; t < STEPS; t++) {
        draw(&s->model, (uint64_t)t + 100, g);
        const float *x = g + p->offset;
        for (size_t i = 0; i < R * R; i++) {
            double sum = 0;
            for (size_t k = 0; k < N; k++)
                sum += (double)x[i / R * line + k * step] * (double)x[i % R * line + k * step];
            gg[i] = 0.95 * gg[i] + 0.05 * SCALE * SCALE * sum;
        }
    }
    for (size_t i = 0; i < R * R; i++) {
        double product = 0;
        for (size_t k = 0; k < R; k++)
            product += (double)q[k * R + i / R] * (double)q[k * R + i % R];
        assert_true(fabs(product - (i % (R + 1) == 0)) < 1e-6);
        assert_true(fabs((double)got[i] - gg[i]) < 1e-6);
    }
    free(g);
}

static void test_soap_basis(void **state) {
    (void)state;
    setup s;
    set_up(&s, LS_RULE_SOAP);
    float *got = run(&s, 2, "portable", LS_F32);
    check_basis(&s, &s.model.params[0], got);
    check_basis(&s, &s.model.params[2], got);
    free(got);
    tear_down(&s);
}

/* Rows that are orthogonal: the basis is that of the rows, so from the second update on it is Adam,
 * whose first updates of a constant gradient are the rate times its sign. The smallest row comes
 * last in Q. */
static void test_known_soap(void **state) {
    (void)state;
    static const float grads[2][3] = {{0, 0.5f, 0}, {3, 0, 0}};
    known k;
    known_begin(&k,
                &(ls_optim_group){
                    .rule = LS_RULE_SOAP, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .lr_scale = 1});
    ls_model_add_param(&k.model, k.layer, "x", &(ls_param){.ndims = 2, .dims = {2, 3}});
    known_place(&k, 4, 1);
    memcpy(k.g, grads, sizeof grads);
    for (int t = 0; t < 25; t++) { /* with two renewals of the basis */
        known_step(&k, t, 0.01);
        for (int i = 0; i < 6; i++)
            assert_true(fabs((double)k.x[i] + (i == 1 || i == 3 ? 0.01 * t : 0)) < 1e-5);
    }
    const float *q = k.x + 4 * k.n;
    assert_true(fabsf(q[1]) == 1 && fabsf(q[2]) == 1 && q[0] == 0 && q[3] == 0);
    known_end(&k);
}

static void test_same_bits(void **state) {
    (void)state;
    const ls_kernels *k = NULL;
    for (int rule = LS_NUPDATES; rule < LS_NRULES; rule++) {
        setup s;
        set_up(&s, (ls_update_rule)rule);
        for (int type = 0; type < 2; type++) {
            ls_dtype grads = type ? LS_BF16 : LS_F32;
            float *want = run(&s, 1, "portable", grads);
            for (int v = 0; (k = ls_kernels_at(v)); v++) {
                float *got = run(&s, 1 + v % 3, k->name, grads);
                assert_memory_equal(got, want, LS_FLAT_MOST * s.n * sizeof *got);
                free(got);
            }
            free(want);
        }
        tear_down(&s);
    }
}

/* The sum of squares of (1, 2, 3) after each of five steps of LAMB against it, with rate 0.003:
 * from the documentation of optax, which prints one digit after the point. */
static void test_known_lamb(void **state) {
    (void)state;
    static const double want[] = {13.9, 13.8, 13.8, 13.7, 13.6};
    known k;
    known_begin(&k, &(ls_optim_group){.rule = LS_RULE_LAMB,
                                      .beta1 = 0.9,
                                      .beta2 = 0.999,
                                      .eps = 1e-6,
                                      .weight_decay = 1e-12,
                                      .lr_scale = 1});
    ls_model_add_param(&k.model, k.layer, "x", &(ls_param){.ndims = 1, .dims = {3}, .decay = true});
    known_place(&k, 2, 1);
    for (int i = 0; i < 3; i++) k.x[i] = (float)(i + 1);
    for (int t = 0; t < 5; t++) {
        double sum = 0;
        for (int i = 0; i < 3; i++) k.g[i] = 2 * k.x[i];
        known_step(&k, t, 0.003);
        for (int i = 0; i < 3; i++) sum += (double)k.x[i] * (double)k.x[i];
        assert_true(fabs(sum - want[t]) < 0.0501);
    }
    known_end(&k);
}

/* Adafactor's states have the shapes of PyTorch's. */
static void test_shapes(void **state) {
    (void)state;
    setup s;
    set_up(&s, LS_RULE_ADAFACTOR);
    const ls_param *p = s.model.params;
    ls_param rows = ls_optim_state_param(&s.optim, &p[5], 0);
    ls_param columns = ls_optim_state_param(&s.optim, &p[5], 1);
    assert_true(rows.count == 105 && rows.dims[2] == 7 && rows.dims[3] == 1);
    assert_true(columns.count == 165 && columns.dims[2] == 1 && columns.dims[3] == 11);
    assert_string_equal(ls_optim_state_name(&s.optim, &p[5], 1), "col_var");
    assert_string_equal(ls_optim_state_name(&s.optim, &p[1], 0), "variance");
    assert_null(ls_optim_state_name(&s.optim, &p[1], 1));
    assert_int_equal(ls_optim_state_param(&s.optim, &p[1], 0).count, 50);
    tear_down(&s);
    set_up(&s, LS_RULE_ROWWISE_ADAGRAD);
    ls_param sums = ls_optim_state_param(&s.optim, &s.model.params[2], 0);
    assert_true(sums.count == 17 && sums.dims[0] == 17 && sums.dims[1] == 1);
    assert_string_equal(ls_optim_state_name(&s.optim, &s.model.params[2], 0), "sum");
    assert_int_equal(ls_optim_state_param(&s.optim, &s.model.params[0], 0).count, 40 * 30);
    tear_down(&s);
}

/* The row-wise Adagrad of TorchRec, by hand: rows (1, 3) and (0, 0), twice, the second time with a
 * rate of 1 / 1.25; the third row's ids are in no sample. Rows of 3,000 numbers go over several
 * blocks. */
static void test_known_rowwise(void **state) {
    (void)state;
    static const float wide[] = {1, 3, 0, 0, 4, 0};
    known k;
    known_begin(
        &k, &(ls_optim_group){
                .rule = LS_RULE_ROWWISE_ADAGRAD, .eps = 1e-10, .lr_scale = 1, .lr_decay = 0.25});
    ls_model_add_param(&k.model, k.layer, "x", &(ls_param){.ndims = 2, .dims = {3, 2}});
    ls_model_add_param(&k.model, k.layer, "y", &(ls_param){.ndims = 2, .dims = {2, 3000}});
    k.layer->half.ntables = 2;
    known_place(&k, 1, 2);
    size_t n = k.n, y = k.model.params[1].offset;
    const float *x = k.x;
    memcpy(k.g, wide, sizeof wide);
    for (size_t i = 0; i < 3000; i++) k.g[y + 3000 + i] = 2;
    for (int t = 0; t < 2; t++) known_step(&k, t, 0.5);
    double rates[] = {1 / sqrt(5) + 0.8 / sqrt(10), 0, 1 / sqrt(8) + 0.8 / sqrt(16)};
    for (int i = 0; i < 6; i++)
        assert_true(fabs((double)x[i] + 0.5 * rates[i / 2] * (double)wide[i]) < 1e-6);
    assert_true(x[n] == 10 && x[n + 1] == 0 && x[n + 2] == 16 && x[n + 3] == 0);
    for (size_t i = 0; i < 6000; i++)
        assert_true(fabs((double)x[y + i] + (i < 3000 ? 0 : 0.5 + 0.8 / sqrt(8))) < 1e-6);
    assert_true(x[n + y] == 0 && x[n + y + 1] == 8);
    known_end(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_double), plain_unit_test(test_same_bits),
        cmocka_unit_test(test_known_lamb),     cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_soap_basis),     cmocka_unit_test(test_known_soap),
        cmocka_unit_test(test_known_rowwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
