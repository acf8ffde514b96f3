/* print_model_test.c - the table of a model's layers. */
#include "model/print_model.h"

#include "mlp_model.h"

static void test_table(void **state) {
    (void)state;
    static const char expected[] =
        "layer          kind           output           parameters MFLOP/sample     saved kB\n"
        "bytes          input          [13]                      0        0.000          0.1\n"
        "fc1            linear         [20]                    280        0.001          0.1\n"
        "gelu           gelu           [20]                      0        0.000          0.1\n"
        "fc2            linear         [20]                    420        0.001          0.1\n"
        "add            add            [20]                      0        0.000          0.1"
        "  of gelu, fc2\n"
        "fc3            linear         [7]                     147        0.000          0.0\n"
        "cross_entropy  cross_entropy  loss                      0        0.000          0.0\n";
    ls_model m;
    ls_buf out = {0};
    mlp_make(&m);
    ls_model_print(&m, LS_F32, &out);
    assert_string_equal(out.data, expected);
    ls_buf_free(&out);
    ls_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
