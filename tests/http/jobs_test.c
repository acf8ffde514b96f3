/* jobs_test.c - answers that take a while: others are made meanwhile, and those who ask go away at
 * any time. */
#include "http/jobs.h"

#include <pthread.h>
#include <unistd.h>

#include "no_threads.h"
#include "test.h"

enum { NTHREADS = 3, NJOBS = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool may_end;
static int nrun, nfreed, nready, nclosed;

static void add_to(int *n, int more) {
    pthread_mutex_lock(&lock);
    *n += more;
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

static size_t no_bytes(void *stream, char *bytes, size_t most) {
    (void)stream;
    (void)bytes;
    (void)most;
    return LS_HTTP_END;
}

static void close_stream(void *stream) { add_to(stream, 1); }

static const ls_http_source source = {.next = no_bytes, .close = close_stream};

static void make_slow(void *arg, ls_http_answer *a) {
    add_to(&nrun, 1);
    pthread_mutex_lock(&lock);
    while (!may_end) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    ls_buf_printf(&a->body, "answer %s", (const char *)arg);
    a->source = &source;
    a->stream = &nclosed;
}

static void make_quick(void *arg, ls_http_answer *a) {
    ls_buf_printf(&a->body, "quick %s", (const char *)arg);
}

static void free_arg(void *arg) {
    free(arg);
    add_to(&nfreed, 1);
}

static const ls_http_work slow = {make_slow, free_arg}, quick = {make_quick, free_arg};

static void ready(void *arg) { add_to(arg, 1); }

static ls_http_jobs *jobs_open(int nthreads) {
    ls_http_jobs *jobs = NULL;
    ls_error e = {0};
    nrun = nfreed = nready = nclosed = 0;
    let_end(false);
    assert_ls_ok(ls_http_jobs_open(nthreads, ready, &nready, &jobs, &e), e);
    return jobs;
}

static ls_http_answer ask(ls_http_jobs *jobs, const ls_http_work *work, const char *text) {
    ls_http_answer a = {0};
    ls_http_jobs_add(jobs, work, strdup(text), &a);
    return a;
}

static void take(const ls_http_answer *a, const char *want) {
    ls_http_answer made = {0};
    while (!a->pending->ready(a->job, &made)) usleep(1000);
    assert_int_equal(made.body.len, strlen(want));
    assert_memory_equal(made.body.data, want, made.body.len);
    ls_buf_free(&made.body);
    if (made.source) made.source->close(made.stream);
}

static void drop(const ls_http_answer *a) { a->pending->drop(a->job); }

static void test_beside(void **state) {
    ls_http_answer none = {0};
    (void)state;
    ls_http_jobs *jobs = jobs_open(NTHREADS);
    ls_http_answer a = ask(jobs, &slow, "1");
    wait_for(&nrun, 1);
    assert_false(a.pending->ready(a.job, &none));
    ls_http_answer b = ask(jobs, &quick, "2");
    take(&b, "quick 2");
    wait_for(&nready, 1);
    assert_int_equal(ls_http_jobs_count(jobs), 1);
    let_end(true);
    take(&a, "answer 1");
    assert_int_equal(ls_http_jobs_count(jobs), 0);
    ls_http_jobs_close(jobs, true);
    assert_int_equal(nfreed, 2);
    assert_int_equal(nready, 2);
    assert_int_equal(nclosed, 1);
}

/* One thread makes answers in the order of their questions; one that nobody waits for is not
 * made. */
static void test_dropped(void **state) {
    (void)state;
    ls_http_jobs *jobs = jobs_open(1);
    ls_http_answer begun = ask(jobs, &slow, "1"), unmade = ask(jobs, &slow, "2"),
                   last = ask(jobs, &quick, "3");
    wait_for(&nrun, 1);
    drop(&begun);
    drop(&unmade);
    let_end(true);
    take(&last, "quick 3");
    assert_int_equal(nrun, 1);
    assert_int_equal(nclosed, 1); /* the stream of the answer that nobody took */
    ls_http_answer made = ask(jobs, &slow, "4");
    wait_for(&nready, 2);
    drop(&made);
    assert_int_equal(nclosed, 2);
    ls_http_jobs_close(jobs, true);
    assert_int_equal(nfreed, 4);
}

/* The owner goes away without waiting: answers that have begun are completed, the others are not
 * made. */
static void test_ends(void **state) {
    ls_http_answer answers[NJOBS];
    (void)state;
    ls_http_jobs *jobs = jobs_open(NTHREADS);
    for (int i = 0; i < NJOBS; i++) answers[i] = ask(jobs, &slow, "x");
    wait_for(&nrun, NTHREADS);
    assert_int_equal(ls_http_jobs_count(jobs), NJOBS);
    for (int i = 0; i < NJOBS; i++) drop(&answers[i]);
    ls_http_jobs_close(jobs, false);
    let_end(true);
    wait_for(&nfreed, NJOBS);
    wait_for(&nclosed, NTHREADS);
    assert_int_equal(nrun, NTHREADS);
    assert_int_equal(nready, 0);
}

/* The owner waits: its threads have ended when it goes on. */
static void test_waits(void **state) {
    (void)state;
    ls_http_jobs *jobs = jobs_open(NTHREADS);
    ls_http_answer a = ask(jobs, &slow, "1");
    wait_for(&nrun, 1);
    drop(&a);
    let_end(true);
    ls_http_jobs_close(jobs, true);
    assert_int_equal(nfreed, 1);
    assert_int_equal(nclosed, 1);
    ls_http_jobs_close(jobs_open(NTHREADS), true);
    ls_http_jobs_close(NULL, true);
}

static ls_status open_one(ls_error *e) {
    ls_http_jobs *jobs = NULL;
    return ls_http_jobs_open(1, ready, &nready, &jobs, e);
}

static void test_no_thread(void **state) {
    (void)state;
    fails_without_threads(open_one, "no thread to answer requests can be started: ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        plain_unit_test(test_no_thread), cmocka_unit_test(test_beside),
        cmocka_unit_test(test_dropped), cmocka_unit_test(test_ends), cmocka_unit_test(test_waits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
