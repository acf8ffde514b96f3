/* builder_test.c - models made by calls: names, shapes, fields, and what the first error says. */
#include "model/builder.h"

#include "test.h"

static ls_value *image(ls_model *m) { return ls_input(m, "image", LS_U8, LS_DIMS(4, 3, 1)); }
static ls_value *label(ls_model *m) { return ls_input(m, "label", LS_I32, LS_SCALAR); }

static void test_names(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *x = image(&m), *y = label(&m);
    x = ls_flatten(&m, x);
    for (int i = 0; i < 2; i++) {
        ls_scope(&m, "block.%d", i);
        ls_scope(&m, "inner");
        x = ls_linear(&m, ls_linear(&m, x, .out = 5), .out = 5);
        ls_scope_end(&m);
        ls_scope_end(&m);
    }
    x = ls_linear(&m, x, .name = "head", .out = 7);
    ls_cross_entropy(&m, x, y, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    static const char *const names[] = {"block.0.inner.linear", "block.0.inner.linear_2",
                                        "block.1.inner.linear", "block.1.inner.linear_2", "head"};
    assert_string_equal(m.layers[0].name, "image");
    for (int i = 0; i < 5; i++) assert_string_equal(m.layers[1 + i].name, names[i]);
    assert_string_equal(m.params[1].name, "block.0.inner.linear.bias");
    assert_string_equal(m.params[8].name, "head.weight");
    assert_int_equal(m.params[8].dims[1], 7);
    assert_int_equal(m.ninputs, 2);
    assert_int_equal(m.inputs[1].offset, 64);
    assert_int_equal(m.sample_nbytes, 68);
    assert_int_equal(m.classes[1], 7);
    ls_model_free(&m);
}

/* A field that several layers read is converted once, unless it is scaled. */
static void test_fields(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *x = image(&m), *y = label(&m);
    ls_value *a = ls_linear(&m, ls_flatten(&m, x), .out = 2), *b = ls_add(&m, x, x);
    ls_value *c = ls_affine(&m, x, 2, 1);
    a = ls_add(&m, a, ls_linear(&m, ls_flatten(&m, ls_add(&m, b, c)), .out = 2));
    ls_cross_entropy(&m, a, y, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    int nconversions = 0;
    for (int i = 0; i < m.nlayers; i++) nconversions += m.layers[i].nfields > 0;
    assert_int_equal(nconversions, 3); /* the field, the scaled field, the loss */
    ls_model_free(&m);
}

/* A layer's slice and its chunk are set by themselves. Layers of later chunks have the parameters
 * of earlier ones, and may have their own, which share no block with others. */
static void test_slices_and_chunks(void **state) {
    (void)state;
    static const char *const given[] = {"even", "odd", "even", "own"};
    static const char *const names[] = {"even", "odd", "even.chunk.1", "own.chunk.1"};
    ls_model m = {0};
    ls_error e = {0};
    ls_value *y = label(&m), *x = ls_flatten(&m, image(&m)), *of[4];
    for (int i = 0; i < 4; i++) {
        ls_build_chunk(&m, i / 2, 2);
        ls_build_slice(&m, i % 2, 2);
        of[i] = ls_linear(&m, x, .name = given[i], .out = 3, .no_bias = true);
    }
    ls_cross_entropy(&m, ls_concat(&m, 0, of[0], of[1], of[2], of[3]), y, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    for (int i = 0; i < 4; i++) {
        const ls_layer *l = &m.layers[m.nlayers - 6 + i];
        assert_string_equal(l->name, names[i]);
        assert_int_equal(l->slice, i % 2);
        assert_int_equal(l->chunk, i / 2);
        assert_int_equal(l->params[0], i == 2 ? 0 : i < 2 ? i : 2);
    }
    assert_int_equal(m.nparams, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(m.params[i].offset, i * LS_BLOCK);
    assert_int_equal(m.params[2].cut.slice, 1);
    assert_int_equal(m.params[2].cut.chunk, 1);
    assert_string_equal(m.params[2].name, "own.weight");
    ls_model_free(&m);
}

/* Samples follow each other in memory: the numbers of the second one are aligned, too. */
static void test_alignment(void **state) {
    (void)state;
    ls_model m = {0};
    ls_input(&m, "x", LS_F32, LS_DIMS(3));
    ls_input(&m, "mask", LS_U8, LS_DIMS(3));
    assert_int_equal(m.inputs[1].offset + m.inputs[1].nbytes, 67);
    assert_int_equal(m.sample_nbytes, 68);
    ls_model_free(&m);
}

typedef void build(ls_model *);
enum { NULL_LINE = __LINE__ + 1 };
static void with_null(ls_model *m) { ls_gelu(m, NULL); }
static void with_no_out(ls_model *m) { ls_linear(m, image(m), .name = "head", .out = 0); }
static void with_twice(ls_model *m) {
    ls_linear(m, ls_linear(m, image(m), .name = "a", .out = 1), .name = "a", .out = 1);
}
static void with_shapes(ls_model *m) {
    ls_scope(m, "tail");
    ls_value *x = image(m);
    ls_add(m, x, ls_linear(m, x, .out = 5));
    ls_gelu(m, NULL); /* the first error counts */
}
static void with_label(ls_model *m) {
    ls_value *x = ls_flatten(m, image(m));
    ls_cross_entropy(m, x, x, LS_DEFAULTS);
}
static void with_logits(ls_model *m) { ls_cross_entropy(m, image(m), label(m), LS_DEFAULTS); }
static void with_type(ls_model *m) { ls_input(m, "x", LS_F64, LS_DIMS(1)); }
static void with_long_dims(ls_model *m) {
    ls_input(m, "y", LS_F32, LS_DIMS(INT64_C(1) << 50, INT64_C(1) << 50));
}
static void with_dims(ls_model *m) { ls_input(m, "x", LS_F32, LS_DIMS(3, -1)); }
static void with_field(ls_model *m) { label(m), label(m); }
static void with_size(ls_model *m) { ls_input(m, "x", LS_F32, LS_DIMS(INT32_MAX, INT32_MAX)); }
static void with_scope(ls_model *m) { ls_scope(m, "a"); }
static void with_end(ls_model *m) { ls_scope_end(m); }
static void with_long(ls_model *m) {
    ls_linear(m, image(m),
              .name =
                  "a-name-of-more-than-seventy-nine-bytes-is-refused-and-this-one-has-some-more-"
                  "than-that",
              .out = 1);
}
static void with_long_param(ls_model *m) {
    ls_linear(m, image(m),
              .name = "a-name-of-seventy-six-bytes-is-possible-and-leaves-too-little-for-a-weight.",
              .out = 1);
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        build *build;
        const char *says;
    } cases[] = {
        {with_null, "gelu 'gelu': an input is NULL"},
        {with_no_out, "linear 'head': out is 0; it is at least 1"},
        {with_twice, "linear 'a': another layer has this name"},
        {with_shapes, "add 'tail.add': the inputs have other shapes: [4, 3, 1] and [4, 3, 5]"},
        {with_label, "cross_entropy 'cross_entropy': the label is no i32 field"},
        {with_logits,
         "the logits are [4, 3, 1], and the labels []; one row of logits a label is needed"},
        {with_type, "field 'x': its type is f64; u8, i32 and f32 are possible"},
        {with_dims, "field 'x': [3, -1] has a dimension below 1"},
        {with_long_dims, "field 'y': a sample of [1.126e+15, 1.126e+15] has more than 2 GB"},
        {with_field, "the model has a field 'label' already"},
        {with_size, "a sample of [2147483647, 2147483647] has more than 2 GB"},
        {with_scope, "scope 'a' is not ended"},
        {with_end, "no scope is open"},
        {with_long, "a name has 1 to 79 bytes, with those of its scopes"},
        {with_long_param,
         "the parameter's name "
         "'a-name-of-seventy-six-bytes-is-possible-and-leaves-too-little-for-a-weight..weight' is "
         "longer than 79 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_model m = {0};
        ls_error e = {0};
        cases[i].build(&m);
        assert_int_equal(ls_build_finish(&m, &e), LS_EINVAL);
        if (!strstr(e.msg, cases[i].says)) fail_msg("case %zu: %s", i, e.msg);
        char place[64];
        snprintf(place, sizeof place, "builder_test.c:%d: gelu", NULL_LINE);
        assert_true(i > 0 || strstr(e.msg, place) == e.msg);
        ls_model_free(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_fields), cmocka_unit_test(test_slices_and_chunks),
        cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
