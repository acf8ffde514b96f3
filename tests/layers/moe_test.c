/* moe_test.c - the layers of a mixture of experts against loops in double precision; the choice of
 * experts, and the auxiliary loss. */
/* ctest: seconds=8 */
#include "layers/layer_check.h"
#include "layers/moe.h"
#include "layers/routing.h"

enum { T = 37, C = 19, E = 5, K = 2, F = 22 };

static const layer_field ROWS = {.type = LS_F32, .dims = {{T, C}}};
static const layer_field LOGITS = {.type = LS_F32, .dims = {{T, E}}};

/* ---- references ---- */

/* weights [E] of a row: 0 of those that are not chosen. */
static void route(const ls_moe_options *o, const double *logits, double *weights) {
    double sum = 0;
    for (int e = 0; e < o->experts; e++) {
        int before = 0;
        for (int i = 0; i < o->experts; i++)
            before += logits[i] > logits[e] || (logits[i] == logits[e] && i < e);
        bool chosen = before < o->per_token;
        weights[e] = chosen ? exp(logits[e]) : 0;
        if (chosen || !o->normalize) sum += exp(logits[e]);
    }
    for (int e = 0; e < o->experts; e++) weights[e] /= sum;
}

static void add_expert(const double *x, double weight, double *const *params, int e, double *y) {
    const double *gate = params[0] + e * F * C, *up = params[1] + e * F * C,
                 *down = params[2] + e * C * F;
    for (int f = 0; f < F; f++) {
        double g = 0, u = 0;
        for (int c = 0; c < C; c++) g += gate[f * C + c] * x[c], u += up[f * C + c] * x[c];
        double h = weight * g / (1 + exp(-g)) * u;
        for (int c = 0; c < C; c++) y[c] += down[c * F + f] * h;
    }
}

/* The experts [first, end), each of which takes at most `most` rows of a sample, and T rows of each
 * of `samples` samples. */
typedef struct part {
    ls_moe_options o;
    int first, end, most, samples;
} part;

static void experts(const void *arg, double *const *x, double *const *params, double *y) {
    const part *p = arg;
    double weights[E];
    int taken[E] = {0};
    memset(y, 0, sizeof(double) * T * C);
    for (int t = 0; t < T; t++) {
        route(&p->o, x[1] + t * E, weights);
        for (int e = p->first; e < p->end; e++)
            if (weights[e] > 0 && taken[e]++ < p->most)
                add_expert(x[0] + t * C, weights[e], params, e - p->first, y + t * C);
    }
}

static void router(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg;
    for (int i = 0; i < T * E; i++) {
        y[i] = 0;
        for (int c = 0; c < C; c++) y[i] += x[0][i / E * C + c] * params[0][i % E * C + c];
    }
}

/* ---- layers ---- */

static ls_value *build_experts(ls_model *m, ls_value **x, const void *arg) {
    const part *p = arg;
    if (p->first == 0 && p->end == E)
        return ls_layers_experts(m, x[0], (ls_router_values){x[1], NULL}, &p->o);
    return ls_layers_experts_slice(
        m, x[0], (ls_router_values){x[1], NULL}, &p->o,
        (ls_experts_slice){"slice", p->first, p->end, p->samples, false});
}

static ls_value *build_router(ls_model *m, ls_value **x, const void *arg) {
    return ls_layers_router(m, x[0], arg);
}

static void check_part(const char *name, part p) {
    layer_check(&(layer_case){.name = name,
                              .arg = &p,
                              .fields = {ROWS, LOGITS},
                              .nfields = 2,
                              .build = build_experts,
                              .reference = experts,
                              .half_units = 12});
}

static void check_experts(const char *name, ls_moe_options o) {
    check_part(name, (part){o, 0, E, T, 1});
}

static void test_experts(void **state) {
    (void)state;
    ls_moe_options o = {.experts = E, .per_token = K, .width = F};
    check_experts("experts", o);
    o.normalize = true;
    check_experts("experts, normalized", o);
    check_experts("one expert a row", (ls_moe_options){.experts = E, .per_token = 1, .width = F});
    o.per_token = E;
    check_experts("all experts", o);
}

/* Some rows choose none of a slice's experts. */
static void test_slices(void **state) {
    (void)state;
    ls_moe_options o = {.experts = E, .per_token = K, .width = F};
    check_part("the first experts", (part){o, 0, 2, T, 1});
    o.normalize = true;
    check_part("experts in the middle", (part){o, 2, 4, T, 1});
    check_part("the last expert", (part){o, 4, E, T, 1});
}

/* An even part is 14.8 choices. */
static void test_capacity(void **state) {
    (void)state;
    ls_moe_options o = {.experts = E, .per_token = K, .width = F, .capacity = 0.5F};
    check_part("capacity of 8", (part){o, 0, E, 8, 1});
    check_part("of a slice", (part){o, 1, 3, 8, 1});
    o.capacity = 1;
    o.normalize = true;
    check_part("capacity of 15", (part){o, 0, E, 15, 1});
    o.capacity = 0.01F;
    check_part("at least one", (part){o, 0, E, 1, 1});
    check_part("rows of different samples", (part){o, 1, E, T, T});
    assert_int_equal(ls_routing_capacity(0.5F, T, E, K), 8);
    assert_int_equal(ls_routing_capacity(1, T, E, K), 15);
    assert_int_equal(ls_routing_capacity(1.1F, 40, 8, 2), 11);
    assert_int_equal(ls_routing_capacity(1.2F, 50, 3, 1), 20);
    assert_int_equal(ls_routing_capacity(1e-9F, T, E, K), 1);
    assert_int_equal(ls_routing_capacity(1e6F, T, E, K), T);
    assert_int_equal(ls_routing_capacity(0, T, E, K), 0);
}

static void test_router(void **state) {
    (void)state;
    ls_moe_options o = {.experts = E, .per_token = K, .width = F};
    layer_check(&(layer_case){.name = "router",
                              .arg = &o,
                              .fields = {ROWS},
                              .nfields = 1,
                              .build = build_router,
                              .reference = router});
}

/* ---- the choice ---- */

static void test_choice(void **state) {
    (void)state;
    const float logits[3 * 4] = {1, 1, 1, 1, /**/ 0, 2, 1, 2, /**/ 5, -1, 4, 4};
    float memory[3 * 2 * 4 + 8], even[2] = {0.5f, 0.5f};
    ls_compute c;
    ls_error e = {0};
    ls_routing r = {.rows = 3, .experts = 4, .k = 2, .normalized = true};
    assert_ls_ok(ls_compute_init(&c, 2, 1, &e), e);
    assert_ptr_equal(ls_routing_place(&r, memory), memory + sizeof memory / sizeof *memory);
    ls_routing_choose(&c, logits, NULL, &r);
    static const int32_t expert[] = {0, 1, 1, 3, 0, 2}, choice[] = {0, 4, 1, 2, 5, 3},
                         first[] = {0, 2, 4, 5, 6};
    assert_memory_equal(r.expert, expert, sizeof expert);
    assert_memory_equal(r.choice, choice, sizeof choice);
    assert_memory_equal(r.first, first, sizeof first);
    for (int i = 0; i < 6; i++) assert_int_equal(r.choice[r.slot[i]], i);
    assert_memory_equal(r.weight, even, sizeof even);
    ls_compute_close(&c);
}

/* Of 3 rows: the first chooses by biases alone, in the others they change nothing. */
static void test_biases(void **state) {
    (void)state;
    const float logits[3 * 4] = {1, 1, 1, 1, /**/ 0, 9, 1, 9, /**/ 5, -1, 4, 0};
    float bias[4] = {-0.1f, 0, 0.2f, 0.1f}, memory[3 * 2 * 4 + 8 + 3 * 4], y[12], dx[12];
    float sums[4] = {0};
    static const float chosen[] = {0, 0, 1, 1, /**/ 0, 1, 0, 1, /**/ 1, 0, 1, 0};
    ls_moe_options o = {.experts = 4, .per_token = 2, .width = 8, .bias_rate = 0.5f};
    ls_model m = {0};
    ls_compute c;
    ls_error e = {0};
    ls_value *x = ls_affine(&m, ls_input(&m, "x", LS_F32, LS_DIMS(3, 4)), 1, 0);
    probe_add(&m, ls_layers_router_bias(&m, x, &o));
    assert_ls_ok(ls_build_finish(&m, &e), e);
    assert_ls_ok(ls_compute_init(&c, 2, 1, &e), e);
    const ls_layer *l = &m.layers[1];
    assert_true(m.nparams == 1 && m.params[0].balances && m.params[0].momentum == 0.5f);
    assert_string_equal(m.params[0].name, "choice.bias");
    ls_layer_call call = {.compute = &c,
                          .n = 1,
                          .T = 3,
                          .type = LS_F32,
                          .params = bias,
                          .grads = sums,
                          .grads_start = true,
                          .x = {logits},
                          .y = y,
                          .dx = {dx},
                          .work = memory};
    l->ops->forward(l, &call);
    assert_memory_equal(y, chosen, sizeof chosen);
    l->ops->backward(l, &call);
    call.grads_start = false;
    l->ops->backward(l, &call);
    for (int i = 0; i < 12; i++) assert_true(dx[i] == 0);
    static const float twice[] = {2 * (4 - 6), 2 * (4 - 6), 2 * (8 - 6), 2 * (8 - 6)};
    assert_memory_equal(sums, twice, sizeof twice);
    ls_compute_close(&c);
    ls_model_free(&m);
}

/* ---- the auxiliary loss ---- */

enum { SAMPLES = 3 };

typedef struct balance_result {
    double losses[SAMPLES], notes[(2 + E) * SAMPLES];
    float dx[SAMPLES * T * E];
} balance_result;

static ls_model balance_model(float factor, float capacity) {
    ls_model m = {0};
    ls_error e = {0};
    ls_value *x = ls_affine(&m, ls_input(&m, "x", LS_F32, LS_DIMS(T, E)), 1, 0);
    ls_moe_options o = {.experts = E, .per_token = K, .width = F, .balance = factor};
    o.capacity = capacity;
    ls_layers_router_balance(&m, (ls_router_values){x, NULL}, &o);
    probe_add(&m, x);
    ls_layers_note_loads(&m);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    return m;
}

static void compute_balance(const float *x, const double *weights, ls_moe_options o, int64_t micro,
                            balance_result *r) {
    ls_model m = balance_model(o.balance, o.capacity);
    const ls_layer *l = &m.layers[1];
    ls_compute c;
    ls_error e = {0};
    assert_true(l->traits.auxiliary && m.nlosses == 2 && m.nauxiliary == 1);
    assert_int_equal(m.nnotes, 1 + E + (o.capacity > 0));
    assert_ls_ok(ls_compute_init(&c, 2, ls_model_scratch_floats(&m), &e), e);
    float *work = LS_NEW_ARRAY(float, ls_layer_work_floats(l, micro, false));
    for (int64_t i = 0; i < SAMPLES; i += micro) {
        ls_layer_call call = {.compute = &c,
                              .n = SAMPLES - i < micro ? SAMPLES - i : micro,
                              .T = T,
                              .type = LS_F32,
                              .x = {x + i * T * E},
                              .dx = {r->dx + i * T * E},
                              .work = work,
                              .loss_scale = 0.25F,
                              .losses = r->losses + i,
                              .notes = r->notes + i,
                              .notes_stride = SAMPLES,
                              .weights = weights + i};
        l->ops->backward(l, &call);
    }
    free(work);
    ls_compute_close(&c);
    ls_model_free(&m);
}

/* The balance loss of a sample. Sets loads [E] by the choices at logits `at`. */
static double balance_reference(const double *x, const double *at, double *loads) {
    const ls_moe_options o = {.experts = E, .per_token = K};
    const ls_moe_options all = {.experts = E, .per_token = E};
    double p[E] = {0}, weights[E], sum = 0;
    memset(loads, 0, E * sizeof *loads);
    for (int t = 0; t < T; t++) {
        route(&o, at + t * E, weights);
        for (int e = 0; e < E; e++) loads[e] += (weights[e] > 0) / (double)T;
        route(&all, x + t * E, weights);
        for (int e = 0; e < E; e++) p[e] += weights[e] / (double)T;
    }
    for (int e = 0; e < E; e++) sum += loads[e] * p[e];
    return E * sum;
}

static void test_balance(void **state) {
    (void)state;
    float x[SAMPLES * T * E];
    const double weights[SAMPLES] = {1, 0.5, 2}, step = 1e-5;
    static balance_result r, again;
    for (int i = 0; i < SAMPLES * T * E; i++) x[i] = (float)(2 * layer_random(3, (uint64_t)i));
    compute_balance(x, weights, (ls_moe_options){.balance = 0.5f}, SAMPLES, &r);
    compute_balance(x, weights, (ls_moe_options){.balance = 0.5f}, 1, &again);
    assert_memory_equal(&r, &again, sizeof r);
    for (int s = 0; s < SAMPLES; s++) {
        double at[T * E], moved[T * E], loads[E], total = 0;
        for (int i = 0; i < T * E; i++) at[i] = moved[i] = (double)x[s * T * E + i];
        double balance = balance_reference(at, at, loads);
        assert_true(fabs(r.losses[s] - 0.5 * balance) < 1e-6);
        assert_true(fabs(r.notes[s] - balance) < 1e-6);
        for (int e = 0; e < E; e++) {
            double load = r.notes[(1 + e) * SAMPLES + s];
            assert_true(fabs(load - loads[e] / K) < 1e-12);
            total += load;
        }
        assert_true(fabs(total - 1) < 1e-12);
        for (int i = 0; i < T * E; i++) {
            moved[i] = at[i] + step;
            double up = balance_reference(moved, at, loads);
            moved[i] = at[i] - step;
            double slope = (up - balance_reference(moved, at, loads)) / (2 * step);
            moved[i] = at[i];
            assert_true(fabs((double)r.dx[s * T * E + i] - 0.25 * 0.5 * weights[s] * slope) < 1e-7);
        }
    }
}

/* An even load has the least loss, k. */
static void test_even_load(void **state) {
    (void)state;
    float x[SAMPLES * T * E] = {0};
    const double weights[SAMPLES] = {1, 1, 1};
    static balance_result r;
    compute_balance(x, weights, (ls_moe_options){.balance = 1}, SAMPLES, &r);
    for (int s = 0; s < SAMPLES; s++) {
        assert_true(fabs(r.losses[s] - K) < 1e-5);
        assert_true(r.notes[1 * SAMPLES + s] == 0.5 && r.notes[3 * SAMPLES + s] == 0); /* ties */
    }
}

/* All rows choose the first two experts. */
static void test_dropped(void **state) {
    (void)state;
    float x[SAMPLES * T * E] = {0};
    const double weights[SAMPLES] = {1, 1, 1};
    static balance_result r;
    compute_balance(x, weights, (ls_moe_options){.balance = 1, .capacity = 1}, SAMPLES, &r);
    for (int s = 0; s < SAMPLES; s++)
        assert_true(fabs(r.notes[(1 + E) * SAMPLES + s] - (double)(T - 15) / T) < 1e-11);
}

/* ---- one loss of all routers ---- */

enum { ROUTERS = 2 };

typedef struct joint_result {
    double losses[SAMPLES];
    float dx[ROUTERS][SAMPLES * T * E];
} joint_result;

static void call_once(const ls_layer *l, ls_layer_call call, bool back) {
    float *work = LS_NEW_ARRAY(float, ls_layer_work_floats(l, call.n, false) + 1);
    call.work = work;
    (back ? l->ops->backward : l->ops->forward)(l, &call);
    free(work);
}

/* x [ROUTERS][SAMPLES * T * E]; the layers are: input, sums, input, sums, loss. */
static void compute_joint(float (*x)[SAMPLES * T * E], const double *weights, float factor,
                          joint_result *r) {
    static const char *const names[ROUTERS] = {"x", "y"};
    ls_model m = {0};
    ls_compute c;
    ls_error e = {0};
    ls_value *sums = NULL, *in[ROUTERS];
    const ls_moe_options o = {.experts = E, .per_token = K, .width = F};
    float y[ROUTERS][SAMPLES * 2 * E], dy[ROUTERS][SAMPLES * 2 * E];
    int layers[ROUTERS];
    for (int i = 0; i < ROUTERS; i++) {
        in[i] = ls_affine(&m, (ls_input)(&m, names[i], LS_F32, LS_DIMS(T, E)), 1, 0);
        sums = ls_layers_router_sums(&m, (ls_router_values){in[i], NULL}, &o, sums);
        layers[i] = m.nlayers - 1;
    }
    ls_layers_router_loss(&m, sums, factor, ROUTERS);
    const int loss = m.nlayers - 1;
    for (int i = 0; i < ROUTERS; i++) probe_add(&m, in[i]);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    assert_true(m.layers[loss].traits.auxiliary && m.nauxiliary == 1);
    assert_ls_ok(ls_compute_init(&c, 2, ls_model_scratch_floats(&m), &e), e);
    const ls_layer_call call = {
        .compute = &c, .n = SAMPLES, .T = 1, .type = LS_F32, .training = true};
    for (int i = 0; i < ROUTERS; i++) {
        ls_layer_call add = call;
        add.x[0] = x[i];
        add.x[1] = i ? y[i - 1] : NULL;
        add.y = y[i];
        call_once(&m.layers[layers[i]], add, false);
    }
    ls_layer_call lose = call;
    lose.x[0] = y[ROUTERS - 1];
    lose.dx[0] = dy[ROUTERS - 1];
    lose.loss_scale = 0.25F;
    lose.losses = r->losses;
    lose.weights = weights;
    call_once(&m.layers[loss], lose, true);
    for (int i = ROUTERS - 1; i >= 0; i--) {
        ls_layer_call back = call;
        back.x[0] = x[i];
        back.dy = dy[i];
        back.dx[0] = r->dx[i];
        back.dx[1] = i ? dy[i - 1] : NULL;
        call_once(&m.layers[layers[i]], back, true);
    }
    ls_compute_close(&c);
    ls_model_free(&m);
}

/* As transformers: the choices, and the softmax, are means over the rows of all routers. */
static double joint_reference(double (*x)[T * E], double (*at)[T * E]) {
    const ls_moe_options o = {.experts = E, .per_token = K}, all = {.experts = E, .per_token = E};
    double p[E] = {0}, f[E] = {0}, weights[E], sum = 0;
    for (int i = 0; i < ROUTERS; i++)
        for (int t = 0; t < T; t++) {
            route(&o, at[i] + t * E, weights);
            for (int e = 0; e < E; e++) f[e] += (weights[e] > 0) / (double)(ROUTERS * T);
            route(&all, x[i] + t * E, weights);
            for (int e = 0; e < E; e++) p[e] += weights[e] / (double)(ROUTERS * T);
        }
    for (int e = 0; e < E; e++) sum += f[e] * p[e];
    return E * sum;
}

static void test_joint(void **state) {
    (void)state;
    static float x[ROUTERS][SAMPLES * T * E];
    static joint_result r;
    const double weights[SAMPLES] = {1, 0.5, 2}, step = 1e-5;
    for (int i = 0; i < ROUTERS * SAMPLES * T * E; i++)
        x[i / (SAMPLES * T * E)][i % (SAMPLES * T * E)] = (float)(2 * layer_random(4, (uint64_t)i));
    compute_joint(x, weights, 0.5f, &r);
    for (int s = 0; s < SAMPLES; s++) {
        double at[ROUTERS][T * E], moved[ROUTERS][T * E];
        for (int i = 0; i < ROUTERS; i++)
            for (int k = 0; k < T * E; k++) at[i][k] = moved[i][k] = (double)x[i][s * T * E + k];
        assert_true(fabs(r.losses[s] - 0.5 * joint_reference(at, at)) < 1e-6);
        for (int i = 0; i < ROUTERS; i++)
            for (int k = 0; k < T * E; k++) {
                moved[i][k] = at[i][k] + step;
                double up = joint_reference(moved, at);
                moved[i][k] = at[i][k] - step;
                double slope = (up - joint_reference(moved, at)) / (2 * step);
                moved[i][k] = at[i][k];
                double got = (double)r.dx[i][s * T * E + k];
                assert_true(fabs(got - 0.25 * 0.5 * weights[s] * slope) < 1e-7);
            }
    }
}

/* ---- the whole ---- */

static void test_parameters(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *x = ls_input(&m, "x", LS_F32, LS_DIMS(T, C));
    x = ls_moe(&m, x, .name = "mlp", .experts = E, .per_token = K, .width = F, .shared = 2,
               .balance = 0.01f);
    probe_add(&m, x);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    static const struct {
        const char *name;
        int64_t dims[3];
    } params[] = {{"mlp.gate.weight", {E, C}},
                  {"mlp.experts.gate_proj", {E, F, C}},
                  {"mlp.experts.up_proj", {E, F, C}},
                  {"mlp.experts.down_proj", {E, C, F}},
                  {"mlp.shared_experts.gate_proj.weight", {2 * F, C}},
                  {"mlp.shared_experts.up_proj.weight", {2 * F, C}},
                  {"mlp.shared_experts.down_proj.weight", {C, 2 * F}}};
    assert_int_equal(m.nparams, 7);
    for (int i = 0; i < 7; i++) {
        assert_string_equal(m.params[i].name, params[i].name);
        for (int d = 0; d < m.params[i].ndims; d++)
            assert_int_equal(m.params[i].dims[d], params[i].dims[d]);
    }
    assert_int_equal(m.nauxiliary, 1);
    ls_model_free(&m);
}

static ls_value *rows(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(T, C)); }
static void no_experts(ls_model *m) { ls_moe(m, rows(m), .per_token = 1, .width = 8); }
static void too_many(ls_model *m) {
    ls_moe(m, rows(m), .experts = 129, .per_token = 1, .width = 8);
}
static void too_few(ls_model *m) { ls_moe(m, rows(m), .experts = 4, .per_token = 5, .width = 8); }
static void no_width(ls_model *m) { ls_moe(m, rows(m), .experts = 4, .per_token = 2); }
static void negative(ls_model *m) {
    ls_moe(m, rows(m), .experts = 4, .per_token = 2, .width = 8, .balance = -1);
}
static void no_capacity(ls_model *m) {
    ls_moe(m, rows(m), .experts = 4, .per_token = 2, .width = 8, .capacity = -1);
}
static void fast_bias(ls_model *m) {
    ls_moe(m, rows(m), .experts = 4, .per_token = 2, .width = 8, .bias_rate = 2);
}
static void image(ls_model *m) {
    ls_moe(m, ls_input(m, "x", LS_F32, LS_DIMS(2, 3, 4)), .experts = 4, .per_token = 2, .width = 8);
}

static void test_refused(void **state) {
    (void)state;
    layer_refused(no_experts, "moe: experts is 0; 1 to 128 are possible");
    layer_refused(too_many, "moe: experts is 129; 1 to 128 are possible");
    layer_refused(too_few, "moe: per_token is 5; 1 to 4 are possible, the number of experts");
    layer_refused(no_width, "moe: width is 0; it is at least 1");
    layer_refused(negative, "moe: balance is -1; it is at least 0");
    layer_refused(no_capacity, "moe: capacity is -1; it is at least 0");
    layer_refused(fast_bias, "moe: bias_rate is 2; it is from 0 to 1");
    layer_refused(image, "the input is [2, 3, 4]; [T, C] or [C] is needed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_experts),    cmocka_unit_test(test_slices),
        cmocka_unit_test(test_capacity),   cmocka_unit_test(test_router),
        cmocka_unit_test(test_biases),     cmocka_unit_test(test_choice),
        cmocka_unit_test(test_balance),    cmocka_unit_test(test_even_load),
        cmocka_unit_test(test_joint),      cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_parameters), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
