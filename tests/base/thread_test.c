/* thread_test.c - a thread takes no signals; its starter's are as before. A limit that
 * prevents a start is named. */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>

#include "test.h"

static void *look(void *mask) {
    pthread_sigmask(SIG_SETMASK, NULL, mask);
    return mask;
}

static void test_signals(void **state) {
    (void)state;
    sigset_t inside, before, after;
    pthread_t thread;
    void *result = NULL;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(ls_thread_start(&thread, look, &inside), 0);
    pthread_join(thread, &result);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_ptr_equal(result, &inside);
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        assert_int_equal(sigismember(&inside, signals[i]), 1);
        assert_int_equal(sigismember(&after, signals[i]), sigismember(&before, signals[i]));
    }
}

static void test_why(void **state) {
    (void)state;
    assert_non_null(strstr(ls_thread_why(EAGAIN), "ulimit -u"));
    assert_string_equal(ls_thread_why(EPERM), strerror(EPERM));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_signals), cmocka_unit_test(test_why)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
