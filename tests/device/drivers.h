/* drivers.h - tests on the devices whose drivers this machine has. */
#ifndef LS_TEST_DEVICE_DRIVERS_H
#define LS_TEST_DEVICE_DRIVERS_H

#include "device/cuda.h"
#include "device/device.h"
#include "test.h"

#ifdef __SANITIZE_ADDRESS__
/* OpenCL's drivers have compilers, which leak, in threads of their own. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif

/* Runs test functions, which open `device_name`, on every kind of device; those that this machine
 * lacks are skipped. */
static const char *device_name;

/* LOCKSTEP_TEST_DEVICE: the one that is tested, which must be there (scripts/device_run.sh). */
static inline const char *only_device(void) { return getenv("LOCKSTEP_TEST_DEVICE"); }
static inline bool is_tested(const char *name) {
    const char *only = only_device();
    size_t n = strcspn(name, ":");
    return !only || (strcspn(only, ":") == n && memcmp(only, name, n) == 0);
}

static inline void device_is_there(void **state) {
    ls_error e = {0};
    ls_device *d = NULL;
    (void)state;
    ls_status s = ls_device_open(device_name, &d, &e);
    if (s == LS_EINVAL && !only_device()) skip_because("%s", e.msg);
    assert_ls_ok(s, e);
    ls_device_close(d);
}

/* Tests open a device for each case, and a GPU's context takes a third of a second to make: that of
 * device cuda stays. */
static inline void keep_context(void) {
    const ls_cuda *cuda = NULL;
    ls_cuda_context context = NULL;
    int id = 0;
    if (ls_cuda_load(&cuda, NULL) == LS_OK && cuda->device_get(&id, 0) == 0)
        cuda->context_retain(&context, id);
}

static inline int run_on(int nnames, const char *const *names, const struct CMUnitTest *tests,
                         size_t n, CMFixtureFunction open, CMFixtureFunction close) {
    const struct CMUnitTest there[] = {cmocka_unit_test(device_is_there)};
    int failed = 0;
    for (int i = 0; i < nnames; i++) {
        ls_device *d = NULL;
        device_name = names[i];
        if (!is_tested(device_name)) continue;
        failed += cmocka_run_group_tests_name(device_name, there, NULL, NULL);
        if (strcmp(device_name, "cuda") == 0) keep_context();
        if (ls_device_open(device_name, &d, NULL) != LS_OK) continue;
        ls_device_close(d);
        failed += _cmocka_run_group_tests(device_name, tests, n, open, close);
    }
    return failed;
}

static inline int run_on_devices(const struct CMUnitTest *tests, size_t n, CMFixtureFunction open,
                                 CMFixtureFunction close) {
    return run_on(3, (const char *const[]){"c:5", "opencl", "cuda"}, tests, n, open, close);
}

/* As run_on_devices(), for tests of layers: OpenCL's compiler takes minutes for all their kernels,
 * so it is left to make check-slow. */
static inline int run_layers_on_devices(const struct CMUnitTest *tests, size_t n) {
    const struct CMUnitTest left[] = {cmocka_unit_test(left_to_slow)};
    if (all_cases() || only_device()) return run_on_devices(tests, n, NULL, NULL);
    return run_on(2, (const char *const[]){"c:5", "cuda"}, tests, n, NULL, NULL) +
           cmocka_run_group_tests_name("opencl", left, NULL, NULL);
}

/* The device `opencl`; skips the test function where there is none. */
static inline ls_device *opencl_or_skip(void) {
    ls_error e = {0};
    ls_device *d = NULL;
    ls_status s = ls_device_open("opencl", &d, &e);
    if (s == LS_EINVAL) skip_because("%s", e.msg);
    assert_ls_ok(s, e);
    return d;
}

#endif
