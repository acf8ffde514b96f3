/* waiting_test.c - a line is logged if something takes long, and none if it does not. */
#include "base/waiting.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "test.h"

/* Replaces that of the C library: in this thread it is so many seconds earlier, or this time. */
static _Thread_local int earlier_s, frozen_s;

int clock_gettime(clockid_t clock, struct timespec *t) {
    int failed = (int)syscall(SYS_clock_gettime, clock, t);
    t->tv_sec -= earlier_s;
    if (frozen_s) *t = (struct timespec){.tv_sec = frozen_s};
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

/* Due after 5, 10, 20, 40 s ...; of those that have passed in a pause, one counts. */
static void test_report(void **state) {
    (void)state;
    static const struct {
        int after_s;
        bool due;
    } looks[] = {{0, false}, {4, false},  {5, true},  {5, false},  {9, false},
                 {11, true}, {19, false}, {70, true}, {79, false}, {80, true}};
    int s = 0;
    frozen_s = 1000;
    ls_waiting_report r = ls_waiting_report_begin();
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        frozen_s = 1000 + looks[i].after_s;
        assert_int_equal(ls_waiting_report_due(&r, &s), looks[i].due);
        if (looks[i].due) assert_int_equal(s, looks[i].after_s);
    }
    frozen_s = 0;
}

/* A line about the wait for workers is written although this worker's messages are held until it
 * has met them. */
static void test_held(void **state) {
    (void)state;
    char text[200] = "";
    catch_stderr();
    ls_log_hold(true);
    ls_log("held");
    ls_log_at_once("waiting");
    ssize_t n = read(from, text, sizeof text - 1);
    ls_log_release(false);
    release_stderr();
    assert_true(n > 0);
    assert_string_equal(text, "lockstep: waiting\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_long), cmocka_unit_test(test_short),
                                       cmocka_unit_test(test_stopped),
                                       cmocka_unit_test(test_report), cmocka_unit_test(test_held)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
