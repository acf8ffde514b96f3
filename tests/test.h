/* test.h - what every test includes: cmocka, and checks of calls that return an ls_error. */
#ifndef LS_TEST_H
#define LS_TEST_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

/* `call` must succeed; prints the error's message if it does not. */
#define assert_ls_ok(call, e)                                                                      \
    do {                                                                                           \
        if ((call) != LS_OK) {                                                                     \
            print_error("%s\n", (e).msg);                                                          \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

/* `call` must fail with `code` and a message that contains `text`. */
#define assert_ls_fails(call, want, text, e)                                                       \
    do {                                                                                           \
        (e) = (ls_error){0};                                                                       \
        assert_int_equal((call), (want));                                                          \
        if (!strstr((e).msg, (text))) {                                                            \
            print_error("'%s' does not say '%s'\n", (e).msg, (text));                              \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

/* How often `what` occurs in the text. */
static inline int occurrences(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) n++;
    return n;
}

/* Whether a test runs all of its cases: `make check-slow`. */
static inline bool all_cases(void) { return getenv("LOCKSTEP_ALL_CASES") != NULL; }

/* The number of cases that a test runs: `few` in `make check`, `all` in `make check-slow`. */
static inline int ncases(int few, int all) { return all_cases() ? all : few; }

/* Whether a test runs case i: `make check` every n-th, `make check-slow` all. */
static inline bool runs_case(int i, int n) { return all_cases() || i % n == 0; }

/* Under a sanitizer: what takes long runs fewer cases, as the same lines run in each. The thread
 * sanitizer learns nothing from what computes in one thread. */
#if defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1, ONLY_THREADS = 1 };
#elif defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1, ONLY_THREADS = 0 };
#else
enum { SANITIZED = 0, ONLY_THREADS = 0 };
#endif

/* A shell has its background commands ignore these signals, and nohup the last: tests, and programs
 * that they start, begin as they would in the foreground. */
__attribute__((constructor)) static void heed_signals(void) {
    static const int numbers[] = {SIGINT, SIGQUIT, SIGHUP};
    for (int i = 0; i < 3; i++) signal(numbers[i], SIG_DFL);
}

static inline void left_to_slow(void **state) {
    (void)state;
    print_message("left to make check-slow\n"); /* scripts/count_tests.py lists it */
}

/* A test function that only `make check-slow` runs: another one runs most of its code. For a table
 * that is not static. */
#define slow_unit_test_setup_teardown(f, setup, teardown)                                          \
    { #f, all_cases() ? (f) : left_to_slow, setup, teardown, NULL }
#define slow_unit_test(f) slow_unit_test_setup_teardown(f, NULL, NULL)

/* A test function that takes seconds under a sanitizer, where others run most of its code: there
 * only `make check-slow` runs it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define plain_unit_test_setup_teardown slow_unit_test_setup_teardown
#else
#define plain_unit_test_setup_teardown cmocka_unit_test_setup_teardown
#endif
#define plain_unit_test(f) plain_unit_test_setup_teardown(f, NULL, NULL)

/* Ends the test function as skipped, and prints why: scripts/count_tests.py counts these lines. */
#define skip_because(...)                                                                          \
    do {                                                                                           \
        print_message("skipped: " __VA_ARGS__);                                                    \
        print_message("\n");                                                                       \
        skip();                                                                                    \
    } while (0)

#endif
