/* reply_workers_test.c - replies have the same bytes whoever writes them: this process or several
 * workers, also if these are killed while they do; of workers on devices, too. */
/* ctest: seconds=6 */
/* ctest: no-tsan: its workers are processes, which the thread sanitizer does not see */
#include "serve/reply_workers.h"

#include <signal.h>
#include <unistd.h>

#include "folder.h"
#include "serve/answer.h"
#include "serve/embedding.h"
#include "serve/replies.h"
#include "test.h"
#include "train/tiny_run.h"

enum { WORKERS = 3, PLACES = 24, CHILDREN = 16 };

static ls_trained trained;
static ls_request_model model;
static const char *device; /* of several workers; NULL: cores compute */

static int open_model(void **state) {
    static const char *const usual[] = {"model.context=240", "train.steps=1", "optim.warmup=0",
                                        NULL};
    static const char *const none[] = {NULL};
    if (make_folder(state) != 0) return -1;
    ls_error e = {0};
    char *path = ls_format("%s/run", folder);
    assert_ls_ok(try_run(path, 1, usual, none, &e), e);
    assert_ls_ok(ls_trained_open(path, &(ls_trained_options){.writes = true}, &trained, &e), e);
    model = (ls_request_model){.trained = &trained, .name = "tiny", .context = 240};
    ls_request_model_open(&model);
    free(path);
    return 0;
}

static int close_model(void **state) {
    ls_request_model_close(&model);
    ls_trained_close(&trained);
    return remove_folder(state);
}

static ls_reply_workers *open_workers(int n, int64_t rows) {
    ls_reply_workers *w = NULL;
    ls_error e = {0};
    ls_engine_options engine = {.texts = PLACES, .rows = rows, .progress = nothing};
    engine.memory_nbytes = 256 << 20;
    const ls_worker_options o = {&trained, model, engine, n, n > 1 ? device : NULL};
    assert_ls_ok(ls_reply_workers_open(&o, &w, &e), e);
    assert_int_equal(ls_reply_workers_context(w), 240);
    return w;
}

/* ---- processes ---- */

static int list_children(int pid, int *children) {
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *f = fopen(path, "re");
    while (f && n < CHILDREN && fscanf(f, "%d", &children[n]) == 1) n++;
    if (f) fclose(f);
    return n;
}

/* The process that starts workers: the only child; where a thread has started it, of that
 * thread. */
static void kill_workers(void) {
    int above[CHILDREN], workers[CHILDREN];
    for (int n = list_children(getpid(), above); n-- > 0;)
        for (int k = list_children(above[n], workers); k-- > 0;) kill(workers[k], SIGKILL);
}

static ls_reply_workers_counts count(ls_reply_workers *w) {
    ls_reply_workers_lock(w);
    ls_reply_workers_counts c = ls_reply_workers_count(w);
    ls_reply_workers_unlock(w);
    return c;
}

static void wait_until_alive(ls_reply_workers *w, int64_t lost) {
    for (int i = 0;; i++) {
        ls_reply_workers_counts c = count(w);
        if (c.alive == WORKERS && c.lost >= lost) return;
        assert_true(i < 60000);
        usleep(1000);
    }
}

/* ---- requests ---- */

typedef struct asked {
    ls_text_request request;
    ls_reply *replies;
    ls_text_answer answer;
    int nleft;
} asked;

static void ask(ls_reply_workers *w, ls_request_kind kind, const char *body, asked *x) {
    ls_refusal why;
    *x = (asked){.nleft = 0};
    if (!ls_request_read(&model, kind, body, strlen(body), &x->request, &why))
        fail_msg("%s", why.error.msg);
    size_t n = x->request.nprompts * (size_t)x->request.n;
    x->replies = LS_NEW_ARRAY(ls_reply, n);
    x->answer = (ls_text_answer){
        .request = &x->request, .model = &model, .replies = x->replies, .n = n, .id = "it"};
    ls_reply_workers_lock(w);
    uint64_t id = ls_reply_workers_ask(w, kind, body, strlen(body));
    for (size_t i = 0; i < n; i++) {
        const ls_request_prompt *p = &x->request.prompts[i / (size_t)x->request.n];
        ls_reply *r = &x->replies[i];
        ls_reply_make(r, &x->request.rule, trained.tokenizer, p->tokens, p->n);
        r->seed = x->request.seed;
        r->number = i;
        r->left = count_left;
        r->arg = &x->nleft;
        ls_reply_workers_add(w, id, r);
    }
    ls_reply_workers_unlock(w);
}

static bool is_done(ls_reply_workers *w, const asked *x) {
    ls_reply_workers_lock(w);
    bool done = x->nleft == (int)x->answer.n;
    ls_reply_workers_unlock(w);
    return done;
}

static void wait_for(ls_reply_workers *w, const asked *x) {
    for (int i = 0; !is_done(w, x); i++) {
        assert_true(i < 60000);
        usleep(1000);
    }
}

static void free_asked(asked *x) {
    for (size_t i = 0; i < x->answer.n; i++) ls_reply_free(&x->replies[i]);
    free(x->replies);
    ls_request_free(&x->request);
}

static void assert_same(const asked *a, const asked *b) {
    assert_int_equal(a->answer.n, b->answer.n);
    for (size_t i = 0; i < a->answer.n; i++) {
        const ls_reply *p = &a->replies[i], *q = &b->replies[i];
        same_reply(p, q);
        assert_true((p->stop == NULL) == (q->stop == NULL));
        assert_true((p->vector == NULL) == (q->vector == NULL));
        size_t nbytes = (size_t)ls_infer_width(&trained.model) * sizeof *p->vector;
        if (p->vector) assert_memory_equal(p->vector, q->vector, nbytes);
    }
}

static const struct {
    ls_request_kind kind;
    const char *body;
} requests[] = {
    {LS_REQUEST_TEXT,
     "{\"prompt\": [\"the\", \"a king\"], \"n\": 5, \"seed\": 7, \"max_tokens\": 150}"},
    {LS_REQUEST_TEXT, "{\"prompt\": \"and he said unto\", \"n\": 4, \"seed\": 3, \"logprobs\": 3, "
                      "\"echo\": true, \"max_tokens\": 120}"},
    {LS_REQUEST_TEXT,
     "{\"prompt\": \"the\", \"temperature\": 0, \"max_tokens\": 100, \"stop\": [\"e\", "
     "\"th\"], \"frequency_penalty\": 0.5, \"logit_bias\": {\"5\": 1}}"},
    {LS_REQUEST_TEXT,
     "{\"prompt\": \"the\", \"n\": 3, \"seed\": 5, \"guided_regex\": \"[a-f]{60}\", "
     "\"max_tokens\": 150, \"min_tokens\": 3}"},
    {LS_REQUEST_TEXT,
     "{\"prompt\": \"he said\", \"max_tokens\": 0, \"logprobs\": 1, \"echo\": true}"},
    {LS_REQUEST_EMBEDDING, "{\"input\": [\"the king\", \"a\", \"and it came to pass\"]}"},
};
enum { NREQUESTS = sizeof requests / sizeof *requests };

static asked alone[NREQUESTS];

static void ask_all(ls_reply_workers *w, asked *x) {
    for (int i = 0; i < NREQUESTS; i++) ask(w, requests[i].kind, requests[i].body, &x[i]);
}

static void write_alone(void) {
    ls_reply_workers *w = open_workers(1, 64);
    ask_all(w, alone);
    for (int i = 0; i < NREQUESTS; i++) wait_for(w, &alone[i]);
    ls_reply_workers_close(w);
}

static void compare_all(ls_reply_workers *w, asked *x) {
    for (int i = 0; i < NREQUESTS; i++) {
        wait_for(w, &x[i]);
        assert_same(&alone[i], &x[i]);
        free_asked(&x[i]);
    }
}

static void free_alone(void) {
    for (int i = 0; i < NREQUESTS; i++) free_asked(&alone[i]);
}

/* ---- tests ---- */

static void test_same(void **state) {
    asked x[NREQUESTS];
    (void)state;
    write_alone();
    ls_reply_workers *w = open_workers(WORKERS, 64);
    ask_all(w, x);
    compare_all(w, x);
    ls_reply_workers_counts c = count(w);
    assert_int_equal(c.alive, WORKERS);
    assert_int_equal(c.lost, 0);
    ls_reply_workers_close(w);
    free_alone();
}

static int64_t written(const asked *x) {
    int64_t n = 0;
    for (size_t i = 0; i < x->answer.n; i++) n += x->replies[i].n - x->replies[i].nprompt;
    return n;
}

static void wait_until_written(ls_reply_workers *w, const asked *x, int64_t n) {
    bool more = false;
    for (int i = 0; !more; i++) {
        assert_true(i < 600000);
        usleep(50);
        ls_reply_workers_lock(w);
        more = written(x) > n;
        ls_reply_workers_unlock(w);
    }
}

/* One token a step, so that replies take a while: all workers are killed as soon as the first reply
 * has some. On a busy machine replies may be written by then: more rounds follow until some were
 * not. */
static void kill_each_round(int rounds) {
    asked x[NREQUESTS];
    int early = 0;
    write_alone();
    for (int round = 0; round < rounds || (!early && round < 20); round++) {
        ls_reply_workers *w = open_workers(WORKERS, 1);
        ask_all(w, x);
        wait_until_written(w, &x[0], 5 * (round % rounds));
        kill_workers();
        early += !is_done(w, &x[0]);
        compare_all(w, x);
        wait_until_alive(w, 1);
        ls_reply_workers_close(w);
    }
    assert_true(early > 0);
    free_alone();
}

static void test_killed(void **state) {
    (void)state;
    kill_each_round(4);
}

/* Each worker opens a device of its own after it was forked, also one that is started again. */
static void test_on_devices(void **state) {
    device = "c";
    test_same(state);
    kill_each_round(1);
    device = NULL;
}

/* One line says what is wrong with a device, and no worker is started again. */
static void test_no_device(void **state) {
    ls_reply_workers *w = NULL;
    ls_error e = {0};
    ls_engine_options engine = {.texts = PLACES, .rows = 8, .progress = nothing};
    engine.memory_nbytes = 256 << 20;
    const ls_worker_options o = {&trained, model, engine, WORKERS, "cuda:77"};
    (void)state;
    assert_int_not_equal(ls_reply_workers_open(&o, &w, &e), LS_OK);
    assert_non_null(strstr(e.msg, "device cuda"));
}

/* The process that starts workers takes them with it, and is started again. */
static void test_killed_above(void **state) {
    asked x[NREQUESTS];
    int above[CHILDREN];
    (void)state;
    write_alone();
    ls_reply_workers *w = open_workers(WORKERS, 1);
    ask_all(w, x);
    assert_int_equal(list_children(getpid(), above), 1);
    kill(above[0], SIGKILL);
    compare_all(w, x);
    wait_until_alive(w, WORKERS);
    ask_all(w, x);
    compare_all(w, x);
    ls_reply_workers_close(w);
    free_alone();
}

/* Workers that are killed before they can write, more often than starts fail elsewhere: the server
 * goes on. */
static void test_killed_at_start(void **state) {
    asked x[NREQUESTS];
    ls_error e = {0};
    (void)state;
    write_alone();
    ls_reply_workers *w = open_workers(WORKERS, 64);
    for (int i = 0; i < 300; i++) {
        kill_workers();
        usleep(1000);
    }
    assert_false(ls_reply_workers_failed(w, &e));
    ask_all(w, x);
    compare_all(w, x);
    ls_reply_workers_close(w);
    free_alone();
}

/* A reply that has cost three workers is given up; others are written. On a busy machine each may
 * get a token before its next worker is killed: then again. */
static void test_given_up(void **state) {
    asked x;
    int ngiven = 0, nkills = 0;
    (void)state;
    static const char body[] = "{\"prompt\": \"the\", \"n\": 24, \"seed\": 7, \"max_tokens\": 200}";
    ls_reply_workers *w = open_workers(WORKERS, 1);
    for (int tries = 0; tries < 50 && ngiven == 0; tries++) {
        ask(w, LS_REQUEST_TEXT, body, &x);
        for (int i = 0; i < 3; i++) {
            kill_workers();
            wait_until_alive(w, ++nkills * WORKERS);
        }
        wait_for(w, &x);
        for (size_t i = 0; i < x.answer.n; i++) ngiven += x.replies[i].state != LS_REPLY_ENDED;
        free_asked(&x);
    }
    assert_true(ngiven > 0);
    ask(w, LS_REQUEST_TEXT, body, &x);
    wait_for(w, &x);
    for (size_t i = 0; i < x.answer.n; i++) assert_int_equal(x.replies[i].end, LS_END_LENGTH);
    free_asked(&x);
    ls_reply_workers_close(w);
}

/* If one of several vectors was given up, the answer is an error and has none of them. */
static void test_vector_given_up(void **state) {
    asked x;
    ls_buf out = {0};
    (void)state;
    ls_reply_workers *w = open_workers(WORKERS, 16);
    ask(w, LS_REQUEST_EMBEDDING, "{\"input\": [\"the\", \"a man\"]}", &x);
    wait_for(w, &x);
    ls_embedding_write(&x.answer, &out);
    assert_non_null(strstr(out.data, "\"embedding\": ["));
    out.len = 0;
    free(x.replies[1].vector);
    x.replies[1].vector = NULL;
    ls_embedding_write(&x.answer, &out);
    assert_non_null(strstr(out.data, "given up"));
    assert_null(strstr(out.data, "data"));
    ls_buf_free(&out);
    free_asked(&x);
    ls_reply_workers_close(w);
}

/* Replies that nobody wants make room for others; those that are there at the end are given
 * back. */
static void test_dropped(void **state) {
    asked x, y;
    (void)state;
    ls_reply_workers *w = open_workers(WORKERS, 1);
    ask(w, LS_REQUEST_TEXT, requests[0].body, &x);
    ls_reply_workers_lock(w);
    for (size_t i = 0; i < x.answer.n; i++) ls_reply_workers_drop(w, &x.replies[i]);
    ls_reply_workers_unlock(w);
    wait_for(w, &x);
    ask(w, LS_REQUEST_TEXT, requests[2].body, &y);
    wait_for(w, &y);
    free_asked(&x);
    free_asked(&y);
    ask(w, LS_REQUEST_TEXT, requests[0].body, &x);
    ls_reply_workers_close(w);
    assert_int_equal(x.nleft, x.answer.n);
    free_asked(&x);
}

static void test_refused(void **state) {
    ls_reply_workers *w = NULL;
    ls_error e = {0};
    (void)state;
    ls_engine_options engine = {.texts = 4, .rows = 16, .memory_nbytes = 1, .progress = nothing};
    const ls_worker_options o = {&trained, model, engine, WORKERS, NULL};
    assert_ls_fails(ls_reply_workers_open(&o, &w, &e), LS_EINVAL, "keys and values of one text", e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),         cmocka_unit_test(test_killed),
        cmocka_unit_test(test_killed_above), cmocka_unit_test(test_killed_at_start),
        cmocka_unit_test(test_given_up),     cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_on_devices),
        cmocka_unit_test(test_no_device),    cmocka_unit_test(test_vector_given_up),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
