/* opencl_test.c - device `opencl`, on whatever device is first: its events, copies, memory and
 * errors. */
#include <stdint.h>

#include "device/calls.h"
#include "device/compiler_log.h"
#include "device/drivers.h"

static void test_events(void **state) {
    ls_device *d = opencl_or_skip();
    (void)state;
    for (int i = 0; i < 20; i++) assert_true(doubles(d, true));
    ls_device_close(d);
}

/* An event that was never recorded holds nobody up; one that is recorded again counts as it was
 * recorded last. */
static void test_recorded_again(void **state) {
    ls_device *d = opencl_or_skip();
    ls_error e = {0};
    float x = 1, y = 0, *p = memory(d, 1), *q = memory(d, 1);
    (void)state;
    ls_device_wait(d, LS_DEVICE_COMPUTE, LS_DEVICE_EVENTS - 1);
    ls_device_record(d, LS_DEVICE_COPY, 0);
    ls_device_copy_to(d, LS_DEVICE_COPY, p, &x, sizeof x);
    ls_device_record(d, LS_DEVICE_COPY, 0);
    ls_device_wait(d, LS_DEVICE_COMPUTE, 0);
    add(d, LS_DEVICE_COMPUTE, 1, p, p, q);
    ls_device_copy_from(d, LS_DEVICE_COMPUTE, &y, q, sizeof y);
    assert_ls_ok(ls_device_finish(d, LS_DEVICE_COMPUTE, &e), e);
    assert_true(y == 2);
    ls_device_close(d);
}

/* Addresses can be computed with; a part of memory is cleared; what was freed is used again. */
static void test_memory(void **state) {
    enum { N = 300 };
    ls_device *d = opencl_or_skip();
    ls_error e = {0};
    float x[N], y[N];
    (void)state;
    for (int turn = 0; turn < 20; turn++) {
        float *kept = memory(d, 7), *p = memory(d, N);
        assert_int_equal((uintptr_t)p % 256, 0);
        for (int i = 0; i < N; i++) x[i] = (float)(i + turn);
        ls_device_copy_to(d, LS_DEVICE_COMPUTE, p, x, sizeof x);
        ls_device_clear(d, LS_DEVICE_COMPUTE, p + 3, 5 * sizeof *p);
        add(d, LS_DEVICE_COMPUTE, 100, p, p + 100, p + 200);
        ls_device_copy_from(d, LS_DEVICE_COMPUTE, y, p, sizeof y);
        assert_ls_ok(ls_device_finish(d, LS_DEVICE_COMPUTE, &e), e);
        for (int i = 0; i < 100; i++) {
            float first = i >= 3 && i < 8 ? 0 : x[i];
            assert_true(y[i] == first && y[i + 100] == x[i + 100]);
            assert_true(y[i + 200] == first + x[i + 100]);
        }
        ls_device_free(d, kept);
        ls_device_free(d, p);
    }
    ls_device_close(d);
}

static void test_errors(void **state) {
    ls_device *d = opencl_or_skip(), *other = NULL;
    ls_error e = {0};
    void *p = NULL;
    (void)state;
    assert_ls_fails(ls_device_open("opencl:999", &other, &e), LS_EINVAL,
                    "device opencl:999: the highest is opencl:", e);
    assert_ls_fails(ls_device_alloc(d, SIZE_MAX / 2, "activations", &p, &e), LS_ENOMEM,
                    "has no room for activations, 9223372036854775807 bytes: it has ", e);
    ls_device_close(d);
}

/* An error of queued work stays, and what is queued later has no effect. */
static void test_groups(void **state) {
    ls_device *d = opencl_or_skip();
    ls_error e = {0};
    float x = 5, *p = memory(d, 1);
    (void)state;
    ls_device_launch(d, LS_DEVICE_COMPUTE,
                     &(ls_device_call){.kernel = LS_KERNEL_add, .groups_x = 1, .groups_y = 70000});
    ls_device_copy_from(d, LS_DEVICE_COMPUTE, &x, p, sizeof x);
    assert_ls_fails(ls_device_finish(d, LS_DEVICE_COMPUTE, &e), LS_EINVAL,
                    "kernel add: 1 x 70000 groups", e);
    assert_true(x == 5);
    ls_device_close(d);
}

/* The line of a log that says what is wrong. */
static void test_log(void **state) {
    int n = 0;
    (void)state;
    const char *line = ls_compiler_log_line("\nk.cl:1: warning: a\nk.cl:2: error: b\n1 error", &n);
    assert_int_equal(n, 16);
    assert_memory_equal(line, "k.cl:2: error: b", 16);
    line = ls_compiler_log_line("\n out of luck\r\n", &n);
    assert_int_equal(n, 11);
    assert_memory_equal(line, "out of luck", 11);
    ls_compiler_log_line("", &n);
    assert_int_equal(n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events), cmocka_unit_test(test_recorded_again),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_groups), cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
