/* dot_test.c - dot products of a vector with rows, and of all pairs of rows. */
#include "layers/layer_check.h"

enum { ROWS = 5, C = 19 };

static const layer_field VECTOR = {.type = LS_F32, .dims = {{C}}};
static const layer_field MATRIX = {.type = LS_F32, .dims = {{ROWS, C}}};

static ls_value *build_dot(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_dot(m, x[0], x[1]);
}

static void dot_rows(const double *a, const double *b, int rows, double *y) {
    for (int r = 0; r < rows; r++) {
        y[r] = 0;
        for (int i = 0; i < C; i++) y[r] += a[i] * b[r * C + i];
    }
}

static void with_rows(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg, (void)params;
    dot_rows(x[0], x[1], ROWS, y);
}

static void with_one(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg, (void)params;
    dot_rows(x[0], x[1], 1, y);
}

static ls_value *build_own(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_dot(m, x[0], x[0]);
}

static void with_itself(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg, (void)params;
    dot_rows(x[0], x[0], 1, y);
}

static void test_dot(void **state) {
    (void)state;
    layer_check(&(layer_case){.name = "dot",
                              .fields = {VECTOR, MATRIX},
                              .nfields = 2,
                              .build = build_dot,
                              .reference = with_rows});
    layer_check(&(layer_case){.name = "dot of two vectors",
                              .fields = {VECTOR, VECTOR},
                              .nfields = 2,
                              .build = build_dot,
                              .reference = with_one});
    layer_check(&(layer_case){.name = "dot with itself",
                              .fields = {VECTOR},
                              .nfields = 1,
                              .build = build_own,
                              .reference = with_itself});
}

static ls_value *build_interaction(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_interaction(m, x[0]);
}

static void pairs(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg, (void)params;
    for (int r = 1; r < ROWS; r++)
        for (int k = 0; k < r; k++) dot_rows(x[0] + r * C, x[0] + k * C, 1, y++);
}

static void test_interaction(void **state) {
    (void)state;
    layer_check(&(layer_case){.name = "interaction",
                              .fields = {MATRIX},
                              .nfields = 1,
                              .build = build_interaction,
                              .reference = pairs});
}

static void other_width(ls_model *m) {
    ls_dot(m, ls_input(m, "a", LS_F32, LS_DIMS(3)), ls_input(m, "b", LS_F32, LS_DIMS(2, 4)));
}

static void one_row(ls_model *m) { ls_interaction(m, ls_input(m, "a", LS_F32, LS_DIMS(1, 4))); }

static void test_refused(void **state) {
    (void)state;
    layer_refused(other_width, "the inputs are [3] and [2, 4]");
    layer_refused(one_row, "the input is [1, 4]; [rows, C] with two rows or more");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dot),
        cmocka_unit_test(test_interaction),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
