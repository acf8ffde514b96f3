/* program_model_test.c - the model of a program, its keys, and ls_model_check(). */
#include "networks/program_model.h"

#include "networks/network.h"
#include "test.h"

static bool wrong; /* the gradient of `halve` */

static void halve_forward(const ls_layer_args *a) {
    for (int64_t i = 0; i < a->samples * a->in[0].count; i++) a->out[i] = a->in[0].data[i] / 2;
}
static void halve_backward(const ls_layer_args *a) {
    for (int64_t i = 0; i < a->samples * a->in[0].count; i++)
        a->din[0][i] = wrong ? a->dout[i] : a->dout[i] / 2;
}
static const ls_layer_kind halve = {
    .name = "halve", .forward = halve_forward, .backward = halve_backward};

static const char *asked = "width"; /* the key that is read as a whole number */

static void build(ls_model *m, const ls_keys *k) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(6));
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    x = ls_linear(m, x, .name = "first", .out = ls_key_int(k, asked));
    x = ls_own_layer(m, &halve, x, .name = ls_key_string(k, "name"));
    x = ls_affine(m, x, (float)ls_key_float(k, "scale"), 0);
    ls_cross_entropy(m, ls_linear(m, x, .name = "head", .out = 3), label, LS_DEFAULTS);
}

static const ls_key_spec keys[] = {
    {.name = "width", .type = LS_KEY_INT, .low = 1, .high = 99, .usual = "5"},
    {.name = "scale", .type = LS_KEY_FLOAT, .usual = "1.5"},
    {.name = "name", .type = LS_KEY_STRING, .usual = "half"},
    {0}};
static const ls_program mine = {.name = "mine", .keys = keys, .build = build};

static void test_model(void **state) {
    (void)state;
    ls_config c;
    ls_model m;
    ls_error e = {0};
    assert_ls_ok(ls_program_use(&mine, &e), e);
    ls_config_defaults(&c);
    assert_ls_ok(ls_config_set(&c, "mine.width=7", &e), e);
    assert_false(ls_network_is_open(&c));
    assert_ls_ok(ls_network_create(&c, &m, &e), e);
    assert_string_equal(m.params[0].name, "first.weight");
    assert_int_equal(m.params[0].dims[1], 7);
    assert_string_equal(m.layers[2].name, "half");
    ls_model_free(&m);
    asked = "depth";
    assert_int_equal(ls_network_create(&c, &m, &e), LS_EINVAL);
    asked = "width";
    assert_non_null(strstr(e.msg, "the program has no key 'depth' that is a whole number"));
    assert_int_equal(ls_program_use(&(ls_program){.name = "mine"}, &e), LS_EINVAL);
    assert_int_equal(ls_program_use(NULL, &e), LS_EINVAL);
}

static void count_lines(void *arg, const char *line) {
    int *n = arg;
    assert_null(strchr(line, '\n'));
    ++*n;
}

static void test_check(void **state) {
    (void)state;
    ls_error e = {0};
    int nlines = 0;
    assert_ls_ok(ls_model_check(&mine, NULL, count_lines, &nlines, &e), e);
    assert_int_equal(nlines, 6);
    wrong = true;
    nlines = 0;
    assert_int_equal(ls_model_check(&mine, NULL, count_lines, &nlines, &e), LS_EINVAL);
    assert_int_equal(nlines, 6);
    assert_non_null(strstr(e.msg, "layer 'half': the gradient of input 0 is wrong"));
    wrong = false;
    assert_ls_ok(ls_model_check(&mine, NULL, NULL, NULL, &e), e);
    assert_int_equal(ls_model_check(&mine, "/none.yaml", NULL, NULL, &e), LS_EIO);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model), cmocka_unit_test(test_check)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
