/* worker_device_test.c - which of the devices that workers see each of them gets. */
#include "train/worker_device.h"

#include <string.h>

#include "test.h"

/* A worker of a machine that sees these devices, one letter each; what it has already, or ' '. */
static ls_device_claim claim(int machine, const char *sees, char has) {
    ls_device_claim c = {.machine = (uint64_t)machine, .n = (int64_t)strlen(sees)};
    if (has != ' ') c.taken = (uint64_t)has;
    for (int64_t i = 0; i < c.n; i++) c.ids[i] = (uint64_t)sees[i];
    return c;
}

/* got: a letter for each of them, ' ' for none. */
static void settles(ls_device_claim *all, const char *got) {
    ls_error e = {0};
    int n = (int)strlen(got);
    assert_ls_ok(ls_device_claims_settle(all, n, "cuda", &e), e);
    for (int i = 0; i < n; i++) assert_int_equal(all[i].taken, got[i] == ' ' ? 0 : got[i]);
}

static void test_hosts(void **state) {
    ls_device_claim all[] = {claim(1, "abc", ' '), claim(2, "ab", ' '), claim(1, "abc", ' '),
                             claim(2, "ab", ' '), claim(1, "abc", ' ')};
    (void)state;
    settles(all, "aabbc");
}

/* A launcher shows each worker one device, of which each is number 0. */
static void test_launcher(void **state) {
    ls_device_claim all[] = {claim(1, "a", ' '), claim(1, "b", ' '), claim(1, "c", ' ')};
    (void)state;
    settles(all, "abc");
}

/* A worker that takes the place of a lost one has the device that the others leave. */
static void test_replaced(void **state) {
    ls_device_claim all[] = {claim(1, "abc", 'c'), claim(1, "abc", 'a'), claim(1, "abc", ' ')};
    (void)state;
    settles(all, "cab");
}

/* The number that all workers were given; devices that each makes for itself; a host without
 * any. */
static void test_others(void **state) {
    ls_device_claim same[] = {claim(1, "b", 'b'), claim(1, "b", 'b')}, none[] = {claim(1, "", ' ')};
    ls_device_claim own[] = {{.machine = 1, .n = 1}, {.machine = 1, .n = 1}};
    (void)state;
    settles(same, "bb");
    settles(own, "  ");
    settles(none, " ");
}

static void test_too_few(void **state) {
    ls_error e;
    ls_device_claim all[] = {claim(2, "ab", ' '), claim(1, "ab", ' '), claim(1, "ab", ' '),
                             claim(1, "ab", ' ')};
    (void)state;
    assert_ls_fails(ls_device_claims_settle(all, 4, "cuda", &e), LS_EINVAL,
                    "device cuda: 3 workers are on the host of worker 3, which sees 2", e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),    cmocka_unit_test(test_launcher),
        cmocka_unit_test(test_replaced), cmocka_unit_test(test_others),
        cmocka_unit_test(test_too_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
