/* drivers.h - tests on the devices whose drivers this machine has. */
#ifndef LS_TEST_DEVICE_DRIVERS_H
#define LS_TEST_DEVICE_DRIVERS_H

#include "device/device.h"
#include "test.h"

#ifdef __SANITIZE_ADDRESS__
/* OpenCL's drivers have compilers, which leak, in threads of their own. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif

/* Runs test functions, which open `device_name`, on every kind of device; those that this machine lacks
 * are skipped. */
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

static inline int run_on_devices(const struct CMUnitTest *tests, size_t n, CMFixtureFunction open,
                                 CMFixtureFunction close) {
    static const char *const names[] = {"c:5", "opencl", "cuda"};
    const struct CMUnitTest there[] = {cmocka_unit_test(device_is_there)};
    int failed = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ls_device *d = NULL;
        device_name = names[i];
        if (!is_tested(device_name)) continue;
        failed += cmocka_run_group_tests_name(device_name, there, NULL, NULL);
        if (ls_device_open(device_name, &d, NULL) != LS_OK) continue;
        ls_device_close(d);
        failed += _cmocka_run_group_tests(device_name, tests, n, open, close);
    }
    return failed;
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
