/* experts_test.c - mixtures of experts: forward and backward of their layers on a device have the
 * bits of the host. How the rows are spread over the experts is known there alone. */
#include "device/both_sides.h"
#include "layers/moe.h"
#include "layers/routing.h"

/* ---- layers ---- */

enum { T = 21, V = 37, WIDTH = 20 };

static void end(ls_model *m, ls_value *x) {
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(T));
    ls_linear_cross_entropy(m, x, labels, .classes = V);
    ls_layers_note_loads(m);
}
static ls_value *rows(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(T, WIDTH)); }
static ls_value *layer(ls_model *m, ls_value *x, ls_moe_options o) { return (ls_moe)(m, x, o); }

/* Weights of all logits, and of the chosen ones. */
static void plain(ls_model *m) {
    end(m,
        layer(m, ls_gelu(m, rows(m)), (ls_moe_options){.experts = 5, .per_token = 2, .width = 22}));
}
static void normalized(ls_model *m) {
    ls_moe_options o = {
        .experts = 8, .per_token = 3, .width = 70, .shared = 1, .normalize = true, .balance = 0.5f};
    end(m, layer(m, ls_gelu(m, rows(m)), o));
}
/* A few rows of an expert are dropped, or nearly all; two routers add to the notes. */
static void dropped(ls_model *m) {
    ls_moe_options o = {
        .experts = 4, .per_token = 2, .width = 12, .balance = 0.1f, .capacity = 0.8f};
    ls_value *x = layer(m, ls_gelu(m, rows(m)), o);
    o.capacity = 0.1f;
    o.name = "again";
    end(m, layer(m, x, o));
}
/* Biases choose. */
static void biases(ls_model *m) {
    ls_moe_options o = {.experts = 6,
                        .per_token = 2,
                        .width = 12,
                        .normalize = true,
                        .balance = 0.1f,
                        .bias_rate = 0.01f};
    end(m, layer(m, ls_gelu(m, rows(m)), o));
}
/* More experts than rows, each of all of them, and one. */
static void many(ls_model *m) {
    ls_moe_options o = {.experts = 128, .per_token = 5, .width = 8, .balance = 0.1f};
    end(m, layer(m, ls_gelu(m, rows(m)), o));
}
static void all(ls_model *m) {
    ls_moe_options o = {.experts = 3, .per_token = 3, .width = 9, .normalize = true};
    ls_value *x = layer(m, ls_gelu(m, rows(m)), o);
    o = (ls_moe_options){.name = "one", .experts = 1, .per_token = 1, .width = 9};
    end(m, layer(m, x, o));
}
/* Experts of a slice, of rows of several samples. */
static void slices(ls_model *m) {
    ls_value *x = ls_gelu(m, rows(m));
    ls_moe_options o = {.experts = 7, .per_token = 3, .width = 10};
    ls_router_values r = ls_layers_route(m, x, &o);
    x = ls_layers_experts_slice(m, x, r, &o, (ls_experts_slice){"first", 0, 2, 1, false});
    o.capacity = 0.7f;
    end(m, ls_layers_experts_slice(m, x, r, &o, (ls_experts_slice){"middle", 2, 5, 3, false}));
}
/* One loss of all routers, of which the second has biases. */
static void sums(ls_model *m) {
    ls_moe_options o = {.name = "a", .experts = 5, .per_token = 2, .width = 6};
    ls_value *sum = NULL, *x = ls_layers_moe(m, ls_gelu(m, rows(m)), &o, true, &sum);
    o.name = "b", o.bias_rate = 0.1f;
    x = ls_layers_moe(m, x, &o, true, &sum);
    ls_layers_router_loss(m, sum, 0.3f, 2);
    end(m, x);
}
/* A row of a sample: experts have at most three. */
static void one_row(ls_model *m) {
    ls_value *x = ls_linear(m, ls_input(m, "x", LS_F32, LS_DIMS(9)), .out = 40, .out_in = true);
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(1));
    ls_moe_options o = {.experts = 4, .per_token = 2, .width = 33, .balance = 0.1f};
    x = layer(m, ls_reshape(m, x, LS_DIMS(1, 40)), o);
    ls_linear_cross_entropy(m, x, labels, .classes = 3);
}
/* Experts have at most twelve rows. */
static void some_rows(ls_model *m) {
    ls_value *x = ls_linear(m, ls_input(m, "x", LS_F32, LS_DIMS(9)), .out = 160, .out_in = true);
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(4));
    ls_moe_options o = {.experts = 3, .per_token = 2, .width = 70, .balance = 0.1f};
    ls_linear_cross_entropy(m, layer(m, ls_reshape(m, x, LS_DIMS(4, 40)), o), labels, .classes = 3);
}
/* One expert has all rows of three samples: fifteen, and eighteen, which is too many for the kernel
 * of some. */
static void one_expert(ls_model *m, int64_t sample_rows) {
    ls_value *x =
        ls_linear(m, ls_input(m, "x", LS_F32, LS_DIMS(9)), .out = sample_rows * 40, .out_in = true);
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(sample_rows));
    ls_moe_options o = {.experts = 1, .per_token = 1, .width = 70};
    x = layer(m, ls_reshape(m, x, LS_DIMS(sample_rows, 40)), o);
    ls_linear_cross_entropy(m, x, labels, .classes = 3);
}
static void fifteen_rows(ls_model *m) { one_expert(m, 5); }
static void eighteen_rows(ls_model *m) { one_expert(m, 6); }
/* Experts with rows for several tiles. */
static void wide(ls_model *m) {
    enum { ROWS = 130, COLUMNS = 68 };
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(ROWS, COLUMNS));
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(ROWS));
    ls_moe_options o = {.experts = 2, .per_token = 1, .width = 132, .balance = 0.1f};
    ls_linear_cross_entropy(m, layer(m, ls_gelu(m, x), o), labels, .classes = 3);
}

static void test_layers(void **state) {
    (void)state;
    check(plain, V);
    check(normalized, V);
    check(dropped, V);
    check(biases, V);
}
static void test_numbers_of_experts(void **state) {
    (void)state;
    check(many, V);
    check(all, V);
    check(slices, V);
    check(one_row, 3);
    check(some_rows, 3);
    check(fifteen_rows, 3);
    check(eighteen_rows, 3);
    check(wide, 3);
}
static void test_one_loss(void **state) {
    (void)state;
    check(sums, V);
}

/* ---- launches ---- */

static const ls_device_ops *uncounted;
static int nlaunches;

static ls_status count_launch(ls_device *d, ls_device_stream s, const ls_device_call *c,
                              ls_error *e) {
    nlaunches++;
    return uncounted->launch(d, s, c, e);
}

/* The kernels that a layer of n experts launches, forward and backward. */
static int launches_of(int n) {
    ls_model m = {0};
    ls_error e = {0};
    ls_device_ops counting;
    sides s;
    ls_moe_options o = {.experts = n, .per_token = 2, .width = 8};
    end(&m, layer(&m, ls_gelu(&m, rows(&m)), o));
    assert_ls_ok(ls_build_finish(&m, &e), e);
    sides_open(&s, 1, ls_model_scratch_floats(&m));
    uncounted = s.device.device->ops;
    counting = *uncounted;
    counting.launch = count_launch;
    shared h = shared_of(&s, &m, V);
    for (int i = 0; i < m.nlayers; i++) {
        if (strcmp(m.layers[i].ops->kind, "experts") != 0) continue;
        nlaunches = 0;
        s.device.device->ops = &counting;
        check_layer(&s, &m, &m.layers[i], &h, true, true);
        s.device.device->ops = uncounted;
    }
    shared_free(&s, &h);
    sides_close(&s);
    ls_model_free(&m);
    return nlaunches;
}

/* One launch computes for all experts. */
static void test_launches(void **state) {
    int few = launches_of(2);
    (void)state;
    assert_in_range(few, 16, 22);
    assert_int_equal(launches_of(64), few);
}

/* ---- the choice ---- */

enum { ROWS = 37, EXPERTS = 70, K = 6 };

/* Logits of a few values, so that there are many equal ones, 0 and -0 too; of some rows NaN, also
 * the first ones, or infinite. */
static pair logits_of(sides *s) {
    pair p = pair_integers(s, ROWS * EXPERTS, 5);
    for (int i = 0; i < ROWS * EXPERTS; i++) {
        int32_t n = ((int32_t *)p.host)[i];
        ((float *)p.host)[i] = n == 2 && i % 3 == 0 ? -0.0f : (float)n / 2 - 1;
        if (i / EXPERTS % 9 == 4 && i % EXPERTS < 3) ((float *)p.host)[i] = NAN;
        if (i / EXPERTS % 9 == 3 && n == 2) ((float *)p.host)[i] = i % 2 ? NAN : -INFINITY;
    }
    pair_send(s, &p);
    return p;
}

static void check_choice(int64_t k, bool of_scores, int64_t capacity) {
    sides s;
    sides_open(&s, (uint64_t)(k + capacity), 1);
    pair logits = logits_of(&s), scores = logits_of(&s);
    pair memory = pair_empty(&s, ls_routing_floats(ROWS, EXPERTS, k) * sizeof(float));
    ls_routing r = {.rows = ROWS,
                    .experts = EXPERTS,
                    .k = k,
                    .normalized = of_scores,
                    .sample = ROWS,
                    .capacity = capacity};
    for (int side = 0; side < 2; side++) {
        ls_routing_place(&r, side ? memory.device : memory.host);
        ls_routing_choose(side ? &s.device : &s.host, side ? logits.device : logits.host,
                          !of_scores ? NULL
                          : side     ? scores.device
                                     : scores.host,
                          &r);
    }
    char *got = malloc(memory.nbytes);
    ls_error e = {0};
    assert_non_null(got);
    ls_device_copy_from(s.device.device, LS_DEVICE_COMPUTE, got, memory.device, memory.nbytes);
    assert_ls_ok(ls_device_finish(s.device.device, LS_DEVICE_COMPUTE, &e), e);
    ls_routing host = r, device = r;
    ls_routing_place(&host, memory.host);
    ls_routing_place(&device, (float *)(void *)got);
    int32_t taken = host.first[EXPERTS];
    assert_true(capacity ? taken < ROWS * k : taken == ROWS * k);
    assert_memory_equal(device.first, host.first, (EXPERTS + 1) * sizeof *host.first);
    assert_memory_equal(device.choice, host.choice, (size_t)taken * sizeof *host.choice);
    assert_memory_equal(device.expert, host.expert, (size_t)(ROWS * k) * sizeof *host.expert);
    for (int64_t i = 0; i < ROWS * k; i++) {
        assert_int_equal(device.slot[i], host.slot[i]);
        if (!isnan(host.weight[i]) || !isnan(device.weight[i]))
            assert_memory_equal(&device.weight[i], &host.weight[i], sizeof *host.weight);
    }
    free(got);
    pair_free(&s, &logits), pair_free(&s, &scores), pair_free(&s, &memory);
    sides_close(&s);
}

static void test_choice(void **state) {
    (void)state;
    check_choice(1, false, 0);
    check_choice(K, true, 0);
    check_choice(EXPERTS, false, 0);
    check_choice(K, false, 2);
    check_choice(K, true, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers), cmocka_unit_test(test_numbers_of_experts),
        cmocka_unit_test(test_one_loss), cmocka_unit_test(test_launches),
        cmocka_unit_test(test_choice)};
    return run_layers_on_devices(tests, sizeof tests / sizeof *tests);
}
