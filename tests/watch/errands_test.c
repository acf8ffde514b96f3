/* errands_test.c - slow questions: the server answers others meanwhile, and ends without waiting for them. */
#include "watch/errands.h"

#include <pthread.h>
#include <unistd.h>

#include "test.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool may_end;
static int nrun, nfreed;

static void slow(void *arg, ls_buf *out) {
    pthread_mutex_lock(&lock);
    nrun++;
    pthread_cond_broadcast(&changed);
    while (!may_end) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    ls_buf_printf(out, "answer %s", (const char *)arg);
}

static void quick(void *arg, ls_buf *out) { ls_buf_printf(out, "quick %s", (const char *)arg); }

static void free_arg(void *arg) {
    free(arg);
    pthread_mutex_lock(&lock);
    nfreed++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for(const int *n, int want) {
    pthread_mutex_lock(&lock);
    while (*n < want) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void let_end(bool may) {
    pthread_mutex_lock(&lock);
    may_end = may;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static ls_http_answer ask(ls_errands *e, ls_errand_run *run, const char *text) {
    ls_http_answer a = {0};
    assert_true(ls_errands_ask(e, run, free_arg, strdup(text), &a));
    return a;
}

static void read_answer(const ls_http_answer *a, char *text) {
    size_t n = 0, got;
    while ((got = a->source->next(a->stream, text + n, 5)) != LS_HTTP_END) {
        n += got;
        if (!got) usleep(1000);
    }
    text[n] = 0;
    a->source->close(a->stream);
}

static void test_beside(void **state) {
    char text[64], none[8];
    (void)state;
    nrun = nfreed = 0;
    let_end(false);
    ls_errands *e = ls_errands_open();
    ls_http_answer a = ask(e, slow, "1");
    wait_for(&nrun, 1);
    assert_int_equal(a.source->next(a.stream, none, sizeof none), 0);
    ls_http_answer b = ask(e, quick, "2");
    read_answer(&b, text);
    assert_string_equal(text, "quick 2");
    assert_int_equal(ls_errands_waiting(e), 1);
    let_end(true);
    read_answer(&a, text);
    assert_string_equal(text, "answer 1");
    assert_int_equal(ls_errands_waiting(e), 0);
    ls_errands_close(e);
    assert_int_equal(nfreed, 2);
}

/* No more than a few wait; the server and clients go away in any order. */
static void test_ends(void **state) {
    ls_http_answer answers[LS_ERRANDS_MOST], more = {0};
    (void)state;
    nrun = nfreed = 0;
    let_end(false);
    ls_errands *e = ls_errands_open();
    for (int i = 0; i < LS_ERRANDS_MOST; i++) answers[i] = ask(e, slow, "x");
    wait_for(&nrun, LS_ERRANDS_THREADS);
    assert_false(ls_errands_ask(e, quick, free_arg, NULL, &more));
    assert_null(more.source);
    for (int i = 0; i < LS_ERRANDS_MOST / 2; i++) answers[i].source->close(answers[i].stream);
    ls_errands_close(e);
    for (int i = LS_ERRANDS_MOST / 2; i < LS_ERRANDS_MOST; i++)
        answers[i].source->close(answers[i].stream);
    let_end(true);
    wait_for(&nfreed, LS_ERRANDS_MOST);
    assert_int_equal(nrun, LS_ERRANDS_THREADS); /* nobody waits for the others */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside), cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
