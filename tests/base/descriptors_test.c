/* descriptors_test.c - a low limit of open files is raised, or named in one line. */
#include "base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* In a process with these limits: 0, the limit is `after` then; 1: refused; 2: anything else. */
static int try(rlim_t soft, rlim_t hard, rlim_t after) {
    int how = 0;
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit r = {soft, hard};
        ls_error e = {0};
        if (setrlimit(RLIMIT_NOFILE, &r) != 0) _exit(3);
        ls_status s = ls_descriptors_raise(22, 40, "workers over TCP", &e);
        getrlimit(RLIMIT_NOFILE, &r);
        if (s == LS_OK) _exit(r.rlim_cur == after ? 0 : 2);
        _exit(s == LS_EINVAL && strstr(e.msg, "workers over TCP need at least 22 open files") &&
                      strstr(e.msg, "ulimit -n")
                  ? 1
                  : 2);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return WEXITSTATUS(how);
}

static void test_limits(void **state) {
    (void)state;
    assert_int_equal(try(64, 64, 64), 0);
    assert_int_equal(try(40, 64, 40), 0);
    assert_int_equal(try(12, 64, 40), 0);
    assert_int_equal(try(12, 30, 30), 0);
    assert_int_equal(try(22, 22, 22), 0);
    assert_int_equal(try(21, 21, 0), 1);
    assert_int_equal(try(12, 16, 0), 1);
}

/* Gives the message of a file too many, in a process whose limit is returned. */
static int message(char *msg_p, size_t size) {
    int ends[2], how = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int next = dup(0);
        struct rlimit r = {(rlim_t)next + 1, (rlim_t)next + 1};
        ls_error inner = {0}, e = {0};
        close(next);
        if (setrlimit(RLIMIT_NOFILE, &r) != 0 || open("/dev/null", O_RDONLY) != next) _exit(1);
        if (open("/dev/null", O_RDONLY) >= 0) _exit(2);
        ls_fail(&inner, LS_EIO, "a: can't be opened: %s", strerror(errno));
        ls_fail(&e, LS_EIO, "b: %s", inner.msg);
        size_t n = strlen(e.msg);
        _exit(write(ends[1], e.msg, n) == (ssize_t)n ? next + 1 : 3);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], msg_p, size - 1);
    assert_true(n > 0);
    msg_p[n] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return WEXITSTATUS(how);
}

/* Any error of a file too many names the limit, once; a long message has no room for it. */
static void test_message(void **state) {
    (void)state;
    char msg[256], expected[256];
    ls_error e = {0};
    int allowed = message(msg, sizeof msg);
    snprintf(expected, sizeof expected,
             "b: a: can't be opened: Too many open files; `ulimit -n` allows %d: raise it",
             allowed);
    assert_string_equal(msg, expected);
    char text[sizeof e.msg - 30];
    memset(text, 'a', sizeof text);
    memcpy(text, strerror(EMFILE), strlen(strerror(EMFILE)));
    text[sizeof text - 1] = '\0';
    ls_fail(&e, LS_EIO, "%s", text);
    assert_string_equal(e.msg, text);
    ls_fail(&e, LS_EIO, "%s", strerror(ENFILE));
    assert_string_equal(e.msg, "Too many open files in system");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_message)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
