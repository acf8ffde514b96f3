/* bench_device_test.c - what `lockstep bench` measures of a device, on device `c`. */
#include "perf/bench_device.h"

#include <string.h>

#include "test.h"

typedef struct seen {
    int nproducts, npasses;
    const char *sizes;
} seen;

static void begin(void *arg, const char *name, const char *sizes) {
    assert_string_equal(name, "the host's cores, in place of a GPU");
    ((seen *)arg)->sizes = sizes;
}

static void launch(void *arg, const ls_bench_launch *x) {
    seen *s = arg;
    bool forward = strcmp(x->name, "y = x W") == 0;
    assert_true(x->seconds > 0 && x->per_s > 0);
    if (x->is_product) assert_int_equal(s->npasses, 0);
    s->nproducts += x->is_product;
    s->npasses += !x->is_product;
    if (forward && strcmp(x->shape, "qkv") == 0) {
        /* 2 x rows x 64 x 192 operations */
        double flops = x->per_s * x->seconds;
        assert_true(flops > 2.0 * 64 * 192 * (double)x->rows * 0.999);
        assert_true(flops < 2.0 * 64 * 192 * (double)x->rows * 1.001);
    }
}

static void test_kernels(void **state) {
    seen s = {0};
    ls_error e = {0};
    const ls_bench_device o = {
        .device = "c", .nrows = 1, .rounds = 1, .begin = begin, .launch = launch, .arg = &s};
    (void)state;
    assert_ls_ok(ls_bench_device_run(&o, &e), e);
    assert_string_equal(s.sizes, "a small model");
    assert_int_equal(s.nproducts, 5 * 3 + 2);
    assert_int_equal(s.npasses, 8);
}

static void test_machine(void **state) {
    ls_device_figures f;
    ls_error e = {0};
    const ls_bench_device o = {.device = "c", .rounds = 1};
    (void)state;
    assert_ls_ok(ls_bench_device_machine(&o, &f, &e), e);
    assert_string_equal(f.name, "the host's cores, in place of a GPU");
    assert_true(f.to > 0 && f.from > 0 && f.pinned_to > 0 && f.pinned_from > 0);
    assert_true(f.memory > 0 && f.product > 0 && f.product_bf16 > 0 && f.launch_s > 0);
    assert_int_equal(f.rows * f.in * f.out, 64 * 64 * 256);
}

static void test_refused(void **state) {
    ls_error e;
    ls_device_figures f;
    const ls_bench_device o = {.device = "tpu", .rounds = 1, .nrows = 1};
    (void)state;
    assert_ls_fails(ls_bench_device_run(&o, &e), LS_EINVAL, "device tpu: not known", e);
    assert_ls_fails(ls_bench_device_machine(&o, &f, &e), LS_EINVAL, "device tpu: not known", e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
