/* intern_test.c - equal texts are one text, whoever asks. */
#include "base/intern.h"

#include <pthread.h>

#include "test.h"

enum { TEXTS = 3000, THREADS = 4 };

static const char *found[THREADS][TEXTS];

static void *ask(void *arg) {
    const char **mine = arg;
    char text[32];
    for (int i = 0; i < TEXTS; i++) {
        snprintf(text, sizeof text, "text %d", i);
        mine[i] = ls_intern(text);
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    char text[32];
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, ask, found[t]), 0);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    for (int i = 0; i < TEXTS; i++) {
        snprintf(text, sizeof text, "text %d", i);
        assert_string_equal(found[0][i], text);
        for (int t = 1; t < THREADS; t++) assert_ptr_equal(found[t][i], found[0][i]);
    }
    assert_string_equal(ls_intern(""), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
