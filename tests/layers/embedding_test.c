/* embedding_test.c - rows of a table chosen by ids, and their sums. */
#include "layers/layer_check.h"

enum { IDS = 6, ROWS = 5, WIDTH = 21 };

static const layer_field LIST = {.type = LS_I32, .dims = {{2, 3}}, .least = -1, .below = ROWS};

static ls_value *build_each(ls_model *m, ls_value **x, const void *arg) {
    bool positions = *(const bool *)arg;
    return ls_embedding(m, x[0], .name = "words", .rows = ROWS, .width = WIDTH,
                        .positions = positions);
}

static void each(const void *arg, double *const *x, double *const *params, double *y) {
    for (int i = 0; i < IDS; i++)
        for (int c = 0; c < WIDTH; c++) {
            int id = (int)x[0][i];
            *y = *(const bool *)arg ? params[1][i * WIDTH + c] : 0;
            *y++ += id < 0 ? 0 : params[0][id * WIDTH + c];
        }
}

static void test_each(void **state) {
    (void)state;
    static const bool positions[] = {false, true};
    for (int i = 0; i < 2; i++)
        layer_check(&(layer_case){.name = "embedding",
                                  .arg = &positions[i],
                                  .fields = {LIST},
                                  .nfields = 1,
                                  .build = build_each,
                                  .reference = each});
}

static ls_value *build_sum(ls_model *m, ls_value **x, const void *arg) {
    bool mean = *(const bool *)arg;
    return ls_embedding_sum(m, x[0], .rows = ROWS, .width = WIDTH, .mean = mean);
}

static void sum(const void *arg, double *const *x, double *const *params, double *y) {
    int n = 0;
    for (int i = 0; i < IDS; i++) n += x[0][i] >= 0;
    double factor = *(const bool *)arg && n > 0 ? 1.0 / n : 1.0;
    for (int c = 0; c < WIDTH; c++) {
        y[c] = 0;
        for (int i = 0; i < IDS; i++)
            y[c] += x[0][i] < 0 ? 0 : params[0][(int)x[0][i] * WIDTH + c] * factor;
    }
}

static void test_sum(void **state) {
    (void)state;
    static const bool mean[] = {false, true};
    static const layer_field empty = {.type = LS_I32, .dims = {{2, 3}}, .least = -1, .below = 0};
    for (int i = 0; i < 3; i++)
        layer_check(&(layer_case){.name = "embedding_sum",
                                  .arg = &mean[i % 2],
                                  .fields = {i == 2 ? empty : LIST},
                                  .nfields = 1,
                                  .build = build_sum,
                                  .reference = sum});
}

/* Two tables that one field chooses from: the data's reader checks the smaller number. */
static void test_model(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *ids = ls_input(&m, "ids", LS_I32, LS_DIMS(IDS));
    ls_value *id = ls_input(&m, "id", LS_I32, LS_SCALAR);
    ls_value *x = ls_mean(&m, ls_embedding(&m, ids, .rows = 9, .width = 3), 0);
    x = ls_add(&m, x, ls_embedding_sum(&m, ids, .rows = ROWS, .width = 3));
    x = ls_add(&m, x, ls_embedding(&m, id, .rows = 7, .width = 3, .positions = true));
    probe_add(&m, x);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    assert_int_equal(m.classes[0], ROWS);
    assert_int_equal(m.classes[1], 7);
    assert_true(m.padded[0] && m.padded[1]);
    assert_string_equal(m.params[1].name, "embedding_sum.weight");
    assert_string_equal(m.params[3].name, "embedding_2.positions");
    assert_int_equal(m.params[3].dims[0], 1);
    ls_model_free(&m);
}

static ls_value *ids(ls_model *m) { return ls_input(m, "ids", LS_I32, LS_DIMS(2, 1, 1, 3)); }
static void with_numbers(ls_model *m) {
    ls_embedding(m, ls_input(m, "x", LS_F32, LS_DIMS(3)), .rows = 2, .width = 1);
}
static void with_null(ls_model *m) { ls_embedding(m, NULL, .rows = 2, .width = 1); }
static void with_no_rows(ls_model *m) { ls_embedding(m, ids(m), .width = 1); }
static void with_rows(ls_model *m) { ls_embedding_sum(m, ids(m), .rows = 1LL << 31, .width = 1); }
static void with_no_width(ls_model *m) { ls_embedding_sum(m, ids(m), .rows = 1); }
static void with_dims(ls_model *m) { ls_embedding(m, ids(m), .rows = 1, .width = 1); }

static void test_refusals(void **state) {
    (void)state;
    layer_refused(with_numbers, "embedding 'embedding': the ids are no field of i32");
    layer_refused(with_null, "the ids are no field of i32");
    layer_refused(with_no_rows, "rows is 0; 1 to 2147483647 are possible");
    layer_refused(with_rows, "embedding_sum 'embedding_sum': rows is 2147483648");
    layer_refused(with_no_width, "width is 0; 1 to 2147483647 are possible");
    layer_refused(with_dims, "the ids have 4 dimensions; the rows need one more");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each), cmocka_unit_test(test_sum),
                                       cmocka_unit_test(test_model),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
