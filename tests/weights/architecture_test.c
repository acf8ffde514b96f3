/* architecture_test.c - numbers as people write them, and how architectures differ. */
#include "weights/architecture.h"

#include <math.h>

#include "weights/published_config.h"

static void test_shortest(void **state) {
    (void)state;
    static const double numbers[] = {1e-5, 1e-6, 500000, 0.1, 1.5, 0, 1, 123456.7, 1e-5};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_true(ls_shortest_f32((float)numbers[i]) == numbers[i]);
    float x = nextafterf(1, 2);
    assert_true((float)ls_shortest_f32(x) == x);
}

static void test_difference(void **state) {
    (void)state;
    ls_architecture a = good(mistral), b = a;
    a.window = b.window = 0;
    b.family = LS_FAMILY_LLAMA;
    b.bos = 5;
    b.norm_eps = (double)(float)1e-5;
    assert_null(ls_architecture_difference(&a, &b));
    b.layers = 7;
    char *text = ls_architecture_difference(&a, &b);
    assert_string_equal(text, "layers: 32, not 7");
    free(text);
    b = a;
    b.rope.base = 5e5;
    text = ls_architecture_difference(&a, &b);
    assert_non_null(strstr(text, "base of the rotation: 10000, not 500000"));
    free(text);
    b = good(qwen2);
    text = ls_architecture_difference(&a, &b);
    assert_non_null(strstr(text, "the family is mistral, not qwen2"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortest),
        cmocka_unit_test(test_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
