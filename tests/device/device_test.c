/* device_test.c - device `c`: its streams and events, its memory, and mistakes of its user that it
 * shows. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pages.h"
#include "device/calls.h"

static bool doubles_on(int seed, bool events) {
    char name[32];
    snprintf(name, sizeof name, "c:%d", seed);
    ls_device *d = opened(name);
    bool right = doubles(d, events);
    ls_device_close(d);
    return right;
}

static void test_events(void **state) {
    int wrong = 0;
    (void)state;
    for (int seed = 0; seed < 20; seed++) assert_true(doubles_on(seed, true));
    for (int seed = 0; seed < 20; seed++) wrong += !doubles_on(seed, false);
    assert_true(wrong >= 5);
}

/* A copy runs late: what changes in the host's memory before it is done is what arrives. */
static void test_late(void **state) {
    int late = 0;
    (void)state;
    for (int seed = 0; seed < 20; seed++) {
        char name[32];
        ls_error e = {0};
        float x = 1, y = 0;
        snprintf(name, sizeof name, "c:%d", seed);
        ls_device *d = opened(name);
        float *dx = memory(d, 1);
        ls_device_copy_to(d, LS_DEVICE_COMPUTE, dx, &x, sizeof x);
        x = 2;
        ls_device_copy_from(d, LS_DEVICE_COMPUTE, &y, dx, sizeof y);
        assert_ls_ok(ls_device_finish(d, LS_DEVICE_COMPUTE, &e), e);
        late += y == 2;
        ls_device_close(d);
    }
    assert_in_range(late, 1, 19);
}

/* Memory of the device begins with NaNs, and `clear` sets it to 0. */
static void test_contents(void **state) {
    ls_error e = {0};
    float x[2] = {0, 1};
    ls_device *d = opened("c");
    float *p = memory(d, 2);
    (void)state;
    ls_device_clear(d, LS_DEVICE_COMPUTE, p + 1, sizeof *p);
    ls_device_copy_from(d, LS_DEVICE_COMPUTE, x, p, sizeof x);
    assert_ls_ok(ls_device_finish(d, LS_DEVICE_COMPUTE, &e), e);
    assert_true(x[0] != x[0]);
    assert_true(x[1] == 0);
    ls_device_close(d);
}

/* The signal by which a process ends that touches the device's memory; 0: none. */
static int touches(bool behind) {
    ls_device *d = opened("c");
    float *p = memory(d, 64);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        if (behind) {
            add(d, LS_DEVICE_COMPUTE, 65, p, p, p);
            ls_device_finish(d, LS_DEVICE_COMPUTE, NULL);
        } else {
            *(volatile float *)p = 1;
        }
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ls_device_close(d);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Memory that is given back, and a device that is closed, while queued work uses them. */
static void test_given_back(void **state) {
    (void)state;
    for (int seed = 0; seed < 20; seed++) {
        char name[16];
        float x = 3, y = 0, z = 0;
        snprintf(name, sizeof name, "c:%d", seed);
        ls_device *d = opened(name);
        float *p = memory(d, 1), *q = memory(d, 1);
        ls_device_copy_to(d, LS_DEVICE_COMPUTE, p, &x, sizeof x);
        ls_device_copy_to(d, LS_DEVICE_COPY, q, &x, sizeof x);
        ls_device_copy_from(d, LS_DEVICE_COMPUTE, &y, p, sizeof y);
        ls_device_free(d, p);
        ls_device_copy_from(d, LS_DEVICE_COPY, &z, q, sizeof z);
        ls_device_close(d);
        assert_true(y == 3 && z == 3);
    }
}

static void test_protected(void **state) {
    (void)state;
    assert_int_equal(touches(false), SIGSEGV);
    assert_int_equal(touches(true), SIGSEGV); /* a kernel that writes beyond its memory */
}

static void test_shared(void **state) {
    (void)state;
    read_of_child("c:1", "c:2");
    free_of_read("c:1");
    assert_true(ls_device_shares("c:7") && ls_device_shares("cuda"));
    assert_false(ls_device_shares("opencl"));
}

/* The system gets no page back that a device has pinned: copies would go to the old one. */
static void test_pinned(void **state) {
    enum { NBYTES = 1 << 16 };
    ls_error e = {0};
    ls_device *d = opened("c");
    char *p = mmap(NULL, NBYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_ptr_not_equal(p, MAP_FAILED);
    p[0] = p[NBYTES - 1] = 7;
    assert_ls_ok(ls_device_pin(d, p, NBYTES, &e), e);
    ls_pages_return(p, NBYTES);
    assert_true(p[0] == 7 && p[NBYTES - 1] == 7);
    ls_device_unpin(d, p);
    ls_pages_return(p, NBYTES);
    assert_true(p[0] == 0 && p[NBYTES - 1] == 0);
    munmap(p, NBYTES);
    ls_device_close(d);
}

static void test_names(void **state) {
    ls_device *d = NULL;
    ls_error e;
    (void)state;
    assert_ls_fails(ls_device_open("tpu", &d, &e), LS_EINVAL, "device tpu: not known", e);
    assert_ls_fails(ls_device_open("c:x", &d, &e), LS_EINVAL, "device c:x", e);
    assert_ls_fails(ls_device_open("c:-1", &d, &e), LS_EINVAL, "device c:-1", e);
    assert_ls_fails(ls_device_open("c:", &d, &e), LS_EINVAL, "device c:", e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),    cmocka_unit_test(test_late),
        cmocka_unit_test(test_contents),  cmocka_unit_test(test_given_back),
        cmocka_unit_test(test_protected), cmocka_unit_test(test_names),
        cmocka_unit_test(test_shared),    cmocka_unit_test(test_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
