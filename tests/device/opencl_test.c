/* opencl_test.c - device `opencl`, on whatever device is first: its events, copies, memory and
 * errors. */
#include <stdint.h>
#include <stdlib.h>

#include "base/file.h"
#include "device/calls.h"
#include "device/compiler_log.h"
#include "device/drivers.h"
#include "device/opencl.h"
#include "folder.h"

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

/* ---- devices that don't round quotients of floats rightly ---- */

static ls_opencl real;

static cl_int lesser_info(cl_device_id id, cl_device_info what, size_t size, void *value,
                          size_t *size_p) {
    cl_int got = real.GetDeviceInfo(id, what, size, value, size_p);
    cl_device_fp_config flags = 0;
    if (got != CL_SUCCESS || what != CL_DEVICE_SINGLE_FP_CONFIG || size < sizeof flags) return got;
    memcpy(&flags, value, sizeof flags);
    flags &= ~(cl_device_fp_config)CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    memcpy(value, &flags, sizeof flags);
    return CL_SUCCESS;
}

/* Floats of all sizes, below 2^-126 too. */
static void draw(size_t n, bool positive, uint32_t seed, float *x) {
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t bits = (seed >> 3) ^ (seed << 20), exponent = (seed >> 7) % 254;
        bits = (bits & 0x807fffff) | exponent << 23;
        if (positive) bits &= 0x7fffffff;
        memcpy(&x[i], &bits, sizeof bits);
    }
}

enum { NUMBERS = 100000 };

/* Adagrad's quotients and roots. */
static void divide(ls_device *d, const float *grad, const float *sum, float *param) {
    float *on[] = {memory(d, NUMBERS), memory(d, NUMBERS), memory(d, NUMBERS)};
    ls_error e = {0};
    const size_t nbytes = NUMBERS * sizeof(float);
    ls_device_copy_to(d, LS_DEVICE_COMPUTE, on[0], grad, nbytes);
    ls_device_clear(d, LS_DEVICE_COMPUTE, on[1], nbytes);
    ls_device_copy_to(d, LS_DEVICE_COMPUTE, on[2], sum, nbytes);
    ls_device_launch(d, LS_DEVICE_COMPUTE,
                     &(ls_device_call){.kernel = LS_KERNEL_adagrad,
                                       .groups_x = (NUMBERS + 255) / 256,
                                       .groups_y = 1,
                                       .args = {{.l = NUMBERS},
                                                {.f = 1},
                                                {.f = 0},
                                                {.f = -1},
                                                {.f = 0},
                                                {.from = on[0]},
                                                {.p = on[1]},
                                                {.p = on[2]}}});
    ls_device_copy_from(d, LS_DEVICE_COMPUTE, param, on[1], nbytes);
    assert_ls_ok(ls_device_finish(d, LS_DEVICE_COMPUTE, &e), e);
    for (int i = 0; i < 3; i++) ls_device_free(d, on[i]);
}

static void test_divides_in_double(void **state) {
    ls_device *d = opencl_or_skip(), *c = opened("c");
    ls_error e = {0};
    const ls_opencl *table = NULL;
    (void)state;
    float *grad = LS_NEW_ARRAY(float, NUMBERS), *sum = LS_NEW_ARRAY(float, NUMBERS);
    float *want = LS_NEW_ARRAY(float, NUMBERS), *got = LS_NEW_ARRAY(float, NUMBERS);
    ls_device_close(d);
    assert_ls_ok(ls_opencl_load(&table, &e), e);
    ls_opencl *loaded = (ls_opencl *)(uintptr_t)table;
    real = *table;
    loaded->GetDeviceInfo = lesser_info;
    ls_status s = ls_device_open("opencl", &d, &e);
    *loaded = real;
    assert_ls_ok(s, e);
    draw(NUMBERS, false, 1, grad);
    draw(NUMBERS, true, 2, sum);
    divide(c, grad, sum, want);
    divide(d, grad, sum, got);
    for (size_t i = 0; i < NUMBERS; i++)
        if (memcmp(&got[i], &want[i], sizeof *got) != 0)
            fail_msg("%a, %a: %a, not %a", (double)grad[i], (double)sum[i], (double)got[i],
                     (double)want[i]);
    ls_device_close(c);
    ls_device_close(d);
    free(grad), free(sum), free(want), free(got);
}

/* Kernels divide floats by DIV alone, which clang's code shows. */
static void test_no_other_divisions(void **state) {
    ls_error e = {0};
    ls_buf text = {0};
    (void)state;
    if (system("command -v clang >/dev/null") != 0) skip_because("there is no clang");
    char *path = ls_format("%s/kernels.cl", folder), *code = ls_format("%s/kernels.ll", folder);
    char *line = ls_format("clang -x cl -cl-std=CL3.0 -DDIVIDES_IN_DOUBLE -Xclang "
                           "-finclude-default-header -target spir64 -O0 -emit-llvm -S %s -o %s",
                           path, code);
    ls_buf_printf(&text, "%s\n%s", ls_device_opencl_text, ls_device_kernels_text);
    assert_ls_ok(ls_file_write(path, text.data, text.len, &e), e);
    assert_int_equal(system(line), 0);
    ls_buf_free(&text);
    assert_ls_ok(ls_file_read(code, SIZE_MAX, &text, &e), e);
    assert_non_null(strstr(text.data, " = fdiv double "));
    assert_null(strstr(text.data, " = fdiv float "));
    assert_null(strstr(text.data, "@_Z4sqrtf("));
    ls_buf_free(&text);
    free(path), free(code), free(line);
}

/* ---- what a compiler says ---- */

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
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_recorded_again),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_divides_in_double),
        cmocka_unit_test(test_no_other_divisions),
        cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
