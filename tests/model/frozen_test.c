/* frozen_test.c - parameters that are not trained: where they lie, their initial weights, which
 * layers have a backward, and what is refused. */
#include "model/frozen.h"

#include <math.h>

#include "base/mem.h"
#include "mlp_model.h"
#include "model/check.h"
#include "networks/gpt2.h"

static void freeze(ls_model *m, const char *pattern, int n) {
    ls_error e = {0};
    assert_int_equal(ls_model_freeze(m, pattern), n);
    assert_ls_ok(ls_model_link(m, &e), e);
}

static const ls_param *param_of(const ls_model *m, const char *name) {
    for (int i = 0; i < m->nparams; i++)
        if (strcmp(m->params[i].name, name) == 0) return &m->params[i];
    fail_msg("there is no parameter '%s'", name);
    return NULL;
}

static const ls_layer *layer_of(const ls_model *m, const char *name) {
    for (int i = 0; i < m->nlayers; i++)
        if (strcmp(m->layers[i].name, name) == 0) return &m->layers[i];
    fail_msg("there is no layer '%s'", name);
    return NULL;
}

/* Frozen parameters leave no gap in the flat buffers, and have a buffer of their own. */
static void test_places(void **state) {
    (void)state;
    ls_model m;
    mlp_make(&m);
    size_t all = m.count;
    freeze(&m, "fc2.*", 2);
    assert_int_equal(param_of(&m, "fc1.weight")->offset, 0);
    assert_int_equal(param_of(&m, "fc1.bias")->offset, 272); /* 13 x 20, padded */
    assert_int_equal(param_of(&m, "fc3.weight")->offset, 304);
    assert_int_equal(param_of(&m, "fc2.weight")->offset, 0);
    assert_int_equal(param_of(&m, "fc2.bias")->offset, 400);
    assert_int_equal(m.frozen_floats, 432);
    assert_int_equal(m.frozen_count, 420);
    assert_int_equal(m.count, all);
    assert_int_equal(m.nfloats, LS_BLOCK);
    const ls_layer *fc2 = layer_of(&m, "fc2");
    assert_true(fc2->link.frozen[0] && fc2->link.frozen[1] && !fc2->link.is_constant);
    assert_int_equal(layer_of(&m, "fc3")->link.offsets[0], 304);
    ls_model_free(&m);
}

/* Initial weights do not depend on what is frozen. */
static void test_initial(void **state) {
    (void)state;
    ls_model whole, m;
    mlp_make(&whole);
    mlp_make(&m);
    freeze(&m, "*.weight", 3);
    ls_frozen_value values[6];
    float *want = LS_NEW_ARRAY(float, whole.nfloats), *params = LS_NEW_ARRAY(float, m.nfloats);
    float *frozen = LS_NEW_ARRAY(float, m.frozen_floats);
    ls_model_init(&whole, 3, 0, whole.nfloats, want);
    ls_model_init(&m, 3, 0, m.nfloats, params);
    ls_frozen_init(&m, 3, frozen);
    ls_frozen_place(&m, LS_F32, frozen, values);
    for (int i = 0; i < m.nparams; i++) {
        const ls_param *p = &m.params[i];
        assert_int_equal(values[i].data != NULL, p->frozen);
        assert_memory_equal(p->frozen ? values[i].data : params + p->offset,
                            want + whole.params[i].offset, p->count * sizeof(float));
    }
    free(want), free(params), free(frozen);
    ls_model_free(&whole), ls_model_free(&m);
}

/* To round a value that has the type changes nothing, but for NaN: all values, in each variant. */
static void test_identity(void **state) {
    (void)state;
    static const struct {
        ls_dtype type;
        int infinity;
    } types[] = {{LS_BF16, 0x7f80}, {LS_F16, 0x7c00}};
    enum { ALL = 1 << 16 };
    uint16_t *from = LS_NEW_ARRAY(uint16_t, ALL), *to = LS_NEW_ARRAY(uint16_t, ALL);
    float *wide = LS_NEW_ARRAY(float, ALL);
    const ls_kernels *k = NULL;
    for (int i = 0; i < ALL; i++) from[i] = (uint16_t)i;
    for (int v = 0; (k = ls_kernels_at(v)); v++)
        for (int t = 0; t < 2; t++) {
            k->widen(types[t].type, ALL, from, wide);
            k->narrow(types[t].type, ALL, wide, to);
            for (int i = 0; i < ALL; i++)
                if ((i & 0x7fff) <= types[t].infinity) assert_int_equal(to[i], i);
        }
    free(from), free(to), free(wide);
}

/* What a file has in the type is used where it is, and its place in the buffer stays untouched; a
 * value of another type is rounded, and one without data has its initial weights. */
static void test_rounded(void **state) {
    (void)state;
    ls_model m;
    ls_compute c;
    ls_error e = {0};
    assert_ls_ok(ls_compute_init(&c, 1, 0, &e), e);
    mlp_make(&m);
    freeze(&m, "*.weight", 3);
    int of[3], n = 0;
    for (int i = 0; i < m.nparams; i++)
        if (m.params[i].frozen) of[n++] = i;
    size_t counts[3], nbytes = m.frozen_floats * sizeof(uint16_t);
    for (int j = 0; j < 3; j++) counts[j] = m.params[of[j]].count;
    uint16_t *stored = LS_NEW_ARRAY(uint16_t, counts[0]), *buffer = ls_alloc(nbytes);
    float *wide = LS_NEW_ARRAY(float, counts[1]), *drawn = LS_NEW_ARRAY(float, counts[2]);
    for (size_t k = 0; k < counts[1]; k++) wide[k] = (float)k + 1.0f / 1024;
    memset(buffer, 0x55, nbytes);
    ls_frozen_value from[6] = {0}, values[6];
    from[of[0]] = (ls_frozen_value){.data = stored, .type = LS_BLOCK_BF16};
    from[of[1]] = (ls_frozen_value){.data = wide, .type = LS_BLOCK_F32};
    const ls_frozen_rounding r = {
        .model = &m, .compute = &c, .type = LS_BF16, .buffer = buffer, .seed = 3};
    ls_model_init_param(&m, 3, of[2], 0, counts[2], drawn);
    from[of[2]] = (ls_frozen_value){.data = drawn, .type = LS_BLOCK_F32};
    ls_frozen_round(&r, from);
    ls_frozen_place_rounded(&m, LS_BF16, buffer, from, values);
    assert_ptr_equal(values[of[0]].data, stored);
    for (size_t k = 0; k < counts[0]; k++)
        assert_int_equal(buffer[m.params[of[0]].offset + k], 0x5555);
    for (int j = 1; j < 3; j++) {
        const uint16_t *at = buffer + m.params[of[j]].offset;
        assert_ptr_equal(values[of[j]].data, at);
        for (size_t k = 0; k < counts[j]; k++) {
            float got, want = j == 1 ? wide[k] : drawn[k];
            c.k->widen(LS_BF16, 1, at + k, &got);
            assert_true(fabsf(got - want) <= fabsf(want) / 256);
        }
    }
    uint16_t *again = LS_NEW_ARRAY(uint16_t, counts[2]);
    memcpy(again, values[of[2]].data, counts[2] * sizeof *again);
    ls_frozen_round_param(&r, of[2], (ls_frozen_value){0});
    assert_memory_equal(values[of[2]].data, again, counts[2] * sizeof *again);
    free(stored), free(buffer), free(wide), free(drawn), free(again);
    ls_compute_close(&c);
    ls_model_free(&m);
}

/* A layer that no trained parameter reaches has no backward, and its reader computes no gradient
 * for it. */
static void test_constant(void **state) {
    (void)state;
    ls_model m;
    mlp_make(&m);
    double flops = ls_model_flops(&m);
    freeze(&m, "fc1.*", 2);
    assert_true(layer_of(&m, "fc1")->link.is_constant && layer_of(&m, "gelu")->link.is_constant);
    assert_false(layer_of(&m, "fc2")->link.is_constant);
    assert_false(ls_model_has_dx(&m, layer_of(&m, "fc2")));
    assert_true(ls_model_has_dx(&m, layer_of(&m, "fc3")));
    double fc1 = 2.0 * MLP_BYTES * MLP_WIDTH, fc2 = 2.0 * MLP_WIDTH * MLP_WIDTH;
    assert_true(ls_model_flops(&m) == flops - fc1 - fc2); /* fc1's dw; fc2's dx */
    freeze(&m, "fc2.weight", 1);
    assert_false(layer_of(&m, "fc2")->link.is_constant); /* its bias is trained */
    freeze(&m, "fc2.*", 2);
    assert_true(layer_of(&m, "fc2")->link.is_constant && layer_of(&m, "add")->link.is_constant);
    ls_model_free(&m);
}

/* The tied embedding is frozen as one parameter of two layers. */
static void test_tied(void **state) {
    (void)state;
    ls_model m;
    ls_error e = {0};
    ls_gpt_config c = {.layers = 1, .width = 8, .heads = 2, .context = 4, .vocab = 30};
    assert_ls_ok(ls_gpt_create(&c, &m, &e), e);
    freeze(&m, "wte.*", 1);
    const ls_layer *embed = &m.layers[0], *head = &m.layers[m.nlayers - 1];
    assert_true(embed->link.frozen[0] && head->link.frozen[2] && !embed->link.is_constant);
    freeze(&m, "wpe.*", 1);
    assert_true(embed->link.is_constant);
    ls_model_free(&m);
}

/* ---- calls ---- */

static ls_value *input(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(6)); }

static void finish(ls_model *m, ls_value *x) {
    ls_cross_entropy(m, x, ls_input(m, "label", LS_I32, LS_SCALAR), LS_DEFAULTS);
}

static void test_calls(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_freeze(&m, "later.bias");
    ls_value *x = ls_linear(&m, input(&m), .name = "first", .out = 5);
    finish(&m, ls_linear(&m, x, .name = "later", .out = 5));
    ls_freeze(&m, "first.*");
    assert_ls_ok(ls_build_finish(&m, &e), e);
    static const bool frozen[] = {true, true, false, true};
    for (int i = 0; i < 4; i++) assert_int_equal(m.params[i].frozen, frozen[i]);
    ls_model_free(&m);
}

static const char *refusal(ls_model *m) {
    static ls_error e;
    e = (ls_error){0};
    assert_int_equal(ls_build_finish(m, &e), LS_EINVAL);
    ls_model_free(m);
    return e.msg;
}

static void test_no_match(void **state) {
    (void)state;
    ls_model m = {0};
    ls_freeze(&m, "frist.*");
    finish(&m, ls_linear(&m, input(&m), .name = "first", .out = 5));
    assert_non_null(strstr(refusal(&m), "frozen_test.c:"));
    m = (ls_model){0};
    ls_freeze(&m, "frist.*");
    finish(&m, ls_linear(&m, input(&m), .name = "first", .out = 5));
    assert_non_null(strstr(refusal(&m), "ls_freeze(): 'frist.*' matches no parameter; their names "
                                        "are like first.weight"));
}

/* A teacher's values are targets, once it is frozen. */
static void test_teacher(void **state) {
    (void)state;
    for (int freezes = 0; freezes < 2; freezes++) {
        ls_model m = {0};
        ls_error e = {0};
        ls_value *x = input(&m), *teacher = ls_linear(&m, x, .name = "teacher", .out = 3);
        ls_mean_squared_error(&m, ls_linear(&m, x, .name = "pupil", .out = 3), teacher,
                              LS_DEFAULTS);
        if (freezes) ls_freeze(&m, "teacher.*");
        if (freezes)
            assert_ls_ok(ls_build_finish(&m, &e), e);
        else
            assert_non_null(
                strstr(refusal(&m), "the targets depend on parameters that are trained"));
        ls_model_free(&m);
    }
}

/* ---- a layer of one's own: y = w x + v ---- */

static void own_forward(const ls_layer_args *a) {
    for (int64_t i = 0; i < a->samples * a->in[0].count; i++)
        a->out[i] = a->param[0].data[0] * a->in[0].data[i] + a->param[1].data[0];
}

static void own_backward(const ls_layer_args *a) {
    for (int64_t i = 0; i < a->samples * a->in[0].count; i++) {
        a->din[0][i] = a->param[0].data[0] * a->dout[i];
        if (a->dparam[0]) a->dparam[0][0] += a->in[0].data[i] * a->dout[i];
        if (a->dparam[1]) a->dparam[1][0] += a->dout[i];
    }
}

/* large: more parameters than numbers. */
static ls_value *own_layer(ls_model *m, const ls_layer_kind *kind, ls_value *x, bool large) {
    int64_t n = large ? 40 : 1;
    return ls_own_layer(m, kind, x, .name = "own",
                        .params = {LS_PARAM("w", LS_ONES, n), LS_PARAM("v", LS_ZEROS, n)});
}

static const ls_layer_kind simple = {
    .name = "line", .nparams = 2, .forward = own_forward, .backward = own_backward};
static const ls_layer_kind careful = {.name = "line",
                                      .nparams = 2,
                                      .forward = own_forward,
                                      .backward = own_backward,
                                      .may_freeze = true};

static void count_wrong(void *arg, const ls_check_result *r) {
    if (r->wrong) print_error("%s: %s\n", r->layer->name, r->wrong);
    *(int *)arg += r->wrong != NULL;
}

static void check(const ls_model *m) {
    ls_check_count count = {0, 0};
    int counted = 0;
    ls_error e = {0};
    assert_ls_ok(ls_check_model(m, count_wrong, &counted, &count, &e), e);
    assert_int_equal(count.wrong + count.open + counted, 0);
}

static void test_own(void **state) {
    (void)state;
    static const char *const patterns[] = {"own.w", "own.v", "own.*"};
    for (int i = 0; i < 6; i++) {
        ls_model m = {0};
        ls_error e = {0};
        ls_value *x = ls_linear(&m, input(&m), .name = "below", .out = 6);
        finish(&m, own_layer(&m, &careful, x, i % 2));
        ls_freeze(&m, patterns[i / 2]);
        assert_ls_ok(ls_build_finish(&m, &e), e);
        check(&m);
        ls_model_free(&m);
    }
    ls_model m = {0};
    finish(&m, own_layer(&m, &simple, ls_linear(&m, input(&m), .name = "below", .out = 6), false));
    ls_freeze(&m, "own.v");
    assert_non_null(strstr(refusal(&m), "'own.v' can't be frozen: the backward of layer 'own'"));
}

/* A layer that has no backward may be frozen as a whole. */
static void test_own_below(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *x = own_layer(&m, &simple, input(&m), false);
    finish(&m, ls_linear(&m, x, .name = "head", .out = 3));
    ls_freeze(&m, "own.*");
    assert_ls_ok(ls_build_finish(&m, &e), e);
    check(&m);
    ls_model_free(&m);
}

static void test_check(void **state) {
    (void)state;
    static const struct {
        const char *pattern;
        int n;
    } cases[] = {{"fc1.*", 2}, {"*.bias", 3}, {"fc3.weight", 1}};
    for (int i = 0; i < 3; i++) {
        ls_model m;
        mlp_make(&m);
        freeze(&m, cases[i].pattern, cases[i].n);
        check(&m);
        ls_model_free(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),    cmocka_unit_test(test_initial),
        cmocka_unit_test(test_identity),  cmocka_unit_test(test_rounded),
        cmocka_unit_test(test_constant),  cmocka_unit_test(test_tied),
        cmocka_unit_test(test_calls),     cmocka_unit_test(test_no_match),
        cmocka_unit_test(test_teacher),   cmocka_unit_test(test_own),
        cmocka_unit_test(test_own_below), cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
