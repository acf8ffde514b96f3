/* in_flight_test.c - log lines about a step that takes long, and about one that the run awaits. */
#include "train/in_flight.h"

#include <unistd.h>

#include "no_threads.h"
#include "test.h"

static int stderr_was, from;

static int catch_stderr(void **state) {
    (void)state;
    int ends[2];
    if (pipe(ends) != 0) return -1;
    stderr_was = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    from = ends[0];
    return 0;
}

static int release_stderr(void **state) {
    (void)state;
    dup2(stderr_was, STDERR_FILENO);
    close(stderr_was);
    close(from);
    return 0;
}

/* Waits for a line of output. */
static void read_line(char *line, size_t nbytes) {
    size_t n = 0;
    while (n + 1 < nbytes && read(from, line + n, 1) == 1 && line[n] != '\n') n++;
    line[n] = 0;
}

static void test_lines(void **state) {
    (void)state;
    char line[400];
    ls_board_slot slot = {.action = -1};
    ls_in_flight_config c = {.slot = &slot, .steps = 50, .stop_s = 7, .after_s = 0};
    ls_in_flight *f = NULL;
    ls_error e;
    assert_ls_ok(ls_in_flight_open(&c, &f, &e), e);
    ls_in_flight_begin(f, 2);
    read_line(line, sizeof line);
    assert_int_equal(strncmp(line, "step 3/50  in flight, running 0:", 32), 0);
    ls_in_flight_end(f);
    atomic_store(&slot.asked, LS_ASKED_STOP);
    ls_in_flight_begin(f, 3);
    do read_line(line, sizeof line); /* more lines of step 3 may come first */
    while (strncmp(line, "step 3/50", 9) == 0);
    assert_int_equal(
        strncmp(line, "lockstep: interrupted: waiting for step 4, in flight for 0:", 59), 0);
    assert_non_null(strstr(line, "after 7 s (survival.stop_s)"));
    ls_in_flight_close(f);
    ls_in_flight_close(NULL);
    ls_in_flight_begin(NULL, 0);
    ls_in_flight_end(NULL);
}

static ls_status open_one(ls_error *e) {
    ls_in_flight_config c = {.steps = 50, .stop_s = 7};
    ls_in_flight *f = NULL;
    return ls_in_flight_open(&c, &f, e);
}

static void test_no_thread(void **state) {
    (void)state;
    fails_without_threads(open_one, "no thread to watch the step in flight: ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        plain_unit_test(test_no_thread),
        cmocka_unit_test_setup_teardown(test_lines, catch_stderr, release_stderr)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
