/* waiting_test.c - a line is logged if something takes long, and none if it does not. */
#include "base/waiting.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

/* Replaces that of the C library: in this thread it is so many seconds earlier. */
static _Thread_local int earlier_s;

int clock_gettime(clockid_t clock, struct timespec *t) {
    int failed = (int)syscall(SYS_clock_gettime, clock, t);
    t->tv_sec -= earlier_s;
    return failed;
}

/* Standard error, as a pipe. */
static int stderr_was, from;

static void catch_stderr(void) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    stderr_was = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    from = ends[0];
}

static void release_stderr(void) {
    dup2(stderr_was, STDERR_FILENO);
    close(stderr_was);
    close(from);
}

static void test_long(void **state) {
    (void)state;
    char line[200] = "";
    catch_stderr();
    ls_waiting_begin(1, "planning %d layers", 1000);
    ssize_t n = read(from, line, sizeof line - 1); /* waits for it */
    ls_waiting_end();
    release_stderr();
    assert_true(n > 0);
    assert_string_equal(line, "lockstep: planning 1000 layers ...\n");
}

static void test_short(void **state) {
    (void)state;
    char line[200];
    catch_stderr();
    for (int i = 0; i < 3; i++) {
        ls_waiting_begin(INT64_C(3600000000000), "an hour");
        ls_waiting_end(); /* does not wait for it */
    }
    fcntl(from, F_SETFL, O_NONBLOCK);
    ssize_t n = read(from, line, sizeof line);
    release_stderr();
    assert_int_equal(n, -1);
}

/* A process that was stopped for 35 s logs one line when it continues, not one for every 10 s. */
static void test_stopped(void **state) {
    (void)state;
    char line[200] = "";
    catch_stderr();
    earlier_s = 35;
    ls_waiting_begin(1, "planning");
    earlier_s = 0;
    FILE *lines = fdopen(dup(from), "r");
    assert_non_null(lines);
    for (int i = 0; i < 2; i++) assert_non_null(fgets(line, sizeof line, lines));
    fclose(lines);
    ls_waiting_end();
    release_stderr();
    assert_string_equal(line, "lockstep: planning ... (30 s so far)\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_long), cmocka_unit_test(test_short),
                                       cmocka_unit_test(test_stopped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
