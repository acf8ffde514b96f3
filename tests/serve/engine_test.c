/* engine_test.c - a reply has the same tokens alone and among others, with any size of steps, and
 * with so little memory that pages are taken away and found again; on a device those of the
 * cores. */
/* ctest: seconds=3 */
#include "serve/engine.h"

#include <unistd.h>

#include "device/drivers.h"
#include "folder.h"
#include "serve/replies.h"
#include "test.h"
#include "train/tiny_run.h"
#include "weights/small_text.h"

enum { REPLIES = 9, TOKENS = 140, MOST = 20 };

static ls_trained models[2], *trained = &models[0]; /* on cores; on a device */
static const char *device;                          /* NULL: the cores */
static ls_token_tree *tree;
static ls_constraint *constraint;
static ls_kept_type kept;
static int guesses;
static int64_t longer; /* prompts are as much longer as the model's context is than 48 tokens */

static void open_model(const char *path) {
    ls_error e = {0};
    assert_ls_ok(
        ls_trained_open(path, &(ls_trained_options){.writes = true, .device = device}, trained, &e),
        e);
    longer = trained->config.model.context / 48;
    tree = ls_token_tree_new(trained->tokenizer, ls_tokenizer_used(trained->tokenizer));
    ls_grammar *g = NULL;
    static const char regex[] = "([a-e]+ [0-9]*)*";
    assert_ls_ok(ls_grammar_of_regex(regex, sizeof regex - 1, &tree->bytes, &g, &e), e);
    constraint = ls_constraint_new(tree, g);
}

static void close_model(void) {
    ls_constraint_free(constraint);
    ls_token_tree_free(tree);
    ls_trained_close(trained);
}

/* A published model, whose texts fit in a page; and a run, whose texts need several. */
static void open_small(void) {
    char *path = ls_format("%s/m.gguf", folder);
    small_write_whole(&small_models[0], path);
    open_model(path);
    free(path);
}

static void open_run(void) {
    static const char *const usual[] = {"model.context=240", "train.steps=1", "optim.warmup=0",
                                        NULL};
    static const char *const none[] = {NULL};
    char *path = ls_format("%s/run", folder);
    ls_error e = {0};
    assert_ls_ok(try_run(path, 1, usual, none, &e), e);
    open_model(path);
    free(path);
}

/* Half of the replies sample, half take the likeliest; some note probabilities, also of the prompt.
 * All but a few prompts begin alike. Two must match an expression, which they can for ever. */
typedef struct asked {
    ls_reply_rule rules[REPLIES];
    ls_reply replies[REPLIES];
    int nleft;
} asked;

static int64_t prompt_of(int i, uint32_t *tokens) {
    int64_t n = (4 + 3 * i) * longer;
    for (int64_t t = 0; t < n; t++) tokens[t] = (uint32_t)(3 + (t * 7 + (i % 4 == 3 ? i : 0)) % 50);
    return n;
}

static void make(asked *x, int i) {
    uint32_t tokens[TOKENS + 8];
    int64_t n = prompt_of(i, tokens);
    ls_reply_rule *o = &x->rules[i];
    *o = (ls_reply_rule){.most = MOST - i, .top = i % 3 == 0 ? 2 : -1, .echo = i % 6 == 0};
    o->sampler.temperature = i % 2;
    o->frequency = i == 5 ? 0.5 : 0;
    o->constraint = i == 4 || i == 7 ? constraint : NULL;
    ls_reply_make(&x->replies[i], o, trained->tokenizer, tokens, n);
    x->replies[i].seed = 11;
    x->replies[i].number = (uint64_t)i;
    x->replies[i].left = count_left;
    x->replies[i].arg = &x->nleft;
}

static ls_engine *open_engine(int texts, int64_t rows, int npages) {
    ls_engine *g = NULL;
    ls_error e = {0};
    size_t page = ls_infer_page_floats(&trained->model, kept) * sizeof(float);
    ls_engine_options o = {
        .texts = texts, .rows = rows, .kept = kept, .guesses = guesses, .progress = nothing};
    o.memory_nbytes = page * (size_t)npages;
    assert_ls_ok(ls_engine_open(trained, &o, &g, &e), e);
    return g;
}

static asked *write_alone(void) {
    asked *x = LS_NEW(asked);
    for (int i = 0; i < REPLIES; i++) {
        ls_engine *g = open_engine(1, 64, 100);
        make(x, i);
        ls_engine_lock(g);
        ls_engine_add(g, &x->replies[i]);
        ls_engine_unlock(g);
        wait_until_left(g, &x->nleft, i + 1);
        ls_engine_close(g);
        assert_true(x->replies[i].n - x->replies[i].nprompt <= MOST - i);
    }
    return x;
}

/* at_once: the engine sees all of them before it begins; else they come one by one. */
static asked *write_together(ls_engine *g, bool at_once) {
    asked *x = LS_NEW(asked);
    for (int i = 0; i < REPLIES; i++) make(x, i);
    ls_engine_lock(g);
    for (int i = 0; i < REPLIES; i++) {
        ls_engine_add(g, &x->replies[i]);
        if (at_once) continue;
        ls_engine_unlock(g);
        if (i % 3 == 0) usleep(2000);
        ls_engine_lock(g);
    }
    ls_engine_unlock(g);
    wait_until_left(g, &x->nleft, REPLIES);
    return x;
}

static void free_all(asked *x) {
    for (int i = 0; i < REPLIES; i++) ls_reply_free(&x->replies[i]);
    free(x);
}

/* npages: as many as a text needs, and some. */
typedef struct way {
    int texts;
    int64_t rows;
    int npages;
    bool preempts, finds;
} way;

static void compare_each_way(const way *ways, int n, const asked *want) {
    for (int i = 0; i < n; i++) {
        ls_engine *g = open_engine(ways[i].texts, ways[i].rows, ways[i].npages);
        for (int round = 0; round < 2; round++) {
            asked *x = write_together(g, round == 0);
            for (int k = 0; k < REPLIES; k++) same_reply(&x->replies[k], &want->replies[k]);
            free_all(x);
        }
        ls_engine_lock(g);
        ls_engine_counts c = ls_engine_count(g);
        ls_engine_unlock(g);
        assert_int_equal(c.pages_used, 0);
        assert_int_equal(c.written_tokens, 2 * (REPLIES * MOST - REPLIES * (REPLIES - 1) / 2));
        if (ways[i].preempts) assert_true(c.preempted > 0);
        if (ways[i].finds) assert_true(c.found_tokens > 0);
        ls_engine_close(g);
    }
}

static void write_each_way(const way *ways, int n) {
    asked *want = write_alone();
    compare_each_way(ways, n, want);
    free_all(want);
}

static void test_published(void **state) {
    static const way ways[] = {{16, 256, 100, false, false},
                               {16, 7, 100, false, false},
                               {3, 64, 100, false, false},
                               {1, 5, 100, false, false},
                               {16, 64, 2, false, false}};
    (void)state;
    open_small();
    write_each_way(ways, 5);
    close_model();
}

static void test_run(void **state) {
    static const way ways[] = {{16, 256, 100, false, true}, {16, 7, 100, false, true},
                               {3, 64, 100, false, true},   {1, 5, 100, false, true},
                               {16, 64, 6, true, false},    {16, 90, 4, true, false}};
    (void)state;
    open_run();
    write_each_way(ways, 6);
    close_model();
}

/* Keys and values in fewer bits: replies differ from those of f32, but not from each other. */
static void test_fewer_bits(void **state) {
    static const way ways[] = {
        {16, 256, 100, false, true}, {3, 7, 100, false, true}, {16, 64, 6, true, false}};
    (void)state;
    open_run();
    asked *f32 = write_alone();
    for (kept = LS_KEPT_F16; kept <= LS_KEPT_Q8; kept++) {
        asked *x = write_alone();
        int differ = 0;
        for (size_t i = 1; i < x->replies[0].nnotes; i++)
            differ += x->replies[0].notes[i].logprob != f32->replies[0].notes[i].logprob;
        assert_true(differ > 0);
        free_all(x);
        write_each_way(ways, 3);
    }
    kept = LS_KEPT_F32;
    free_all(f32);
    close_model();
}

/* Guesses change no token. Those of a text that takes the likeliest token, and soon repeats itself,
 * are right. */
static void test_guesses(void **state) {
    enum { LONG = 120 };
    const ls_reply_rule rule = {.most = LONG, .top = 1};
    ls_reply r[2];
    (void)state;
    open_run();
    for (guesses = 0; guesses <= 7; guesses += 7) {
        int left = 0;
        ls_engine *g = open_engine(3, 64, 100);
        ls_reply *x = &r[guesses > 0];
        ls_reply_make(x, &rule, trained->tokenizer, (const uint32_t[]){5, 6, 7, 8, 5, 6, 7}, 7);
        x->left = count_left;
        x->arg = &left;
        ls_engine_lock(g);
        ls_engine_add(g, x);
        ls_engine_unlock(g);
        wait_until_left(g, &left, 1);
        ls_engine_counts c = ls_engine_count(g);
        assert_int_equal(c.written_tokens, LONG);
        assert_int_equal(c.right_tokens > 0, guesses > 0);
        assert_true(c.right_tokens <= c.guessed_tokens);
        ls_engine_close(g);
    }
    same_reply(&r[1], &r[0]);
    ls_reply_free(&r[0]);
    ls_reply_free(&r[1]);
    guesses = 0;
    asked *want = write_alone();
    for (guesses = 1; guesses <= 7; guesses += 3)
        for (int npages = 6; npages <= 100; npages += 94) {
            ls_engine *g = open_engine(16, 40, npages);
            asked *x = write_together(g, true);
            for (int k = 0; k < REPLIES; k++) same_reply(&x->replies[k], &want->replies[k]);
            free_all(x);
            ls_engine_close(g);
        }
    guesses = 0;
    free_all(want);
    close_model();
}

/* Replies that nobody wants any more leave, also those that wait; so do all when the engine
 * ends. */
static void test_dropped(void **state) {
    (void)state;
    open_small();
    ls_engine *g = open_engine(2, 8, 100);
    asked *x = LS_NEW(asked);
    for (int i = 0; i < REPLIES; i++) make(x, i);
    ls_engine_lock(g);
    for (int i = 0; i < REPLIES; i++) ls_engine_add(g, &x->replies[i]);
    for (int i = 0; i < REPLIES; i += 2) x->replies[i].dropped = true;
    ls_engine_unlock(g);
    wait_until_left(g, &x->nleft, REPLIES);
    for (int i = 0; i < REPLIES; i++)
        assert_true((x->replies[i].state == LS_REPLY_ENDED) == (i % 2 == 1));
    for (int i = 0; i < REPLIES; i++) ls_reply_free(&x->replies[i]);
    x->nleft = 0;
    for (int i = 0; i < REPLIES; i++) make(x, i);
    ls_engine_lock(g);
    for (int i = 0; i < REPLIES; i++) ls_engine_add(g, &x->replies[i]);
    ls_engine_unlock(g);
    ls_engine_close(g);
    assert_int_equal(x->nleft, REPLIES);
    free_all(x);
    close_model();
}

/* ls_reply.left: notes which ones left, one after the other. */
static char in_order[REPLIES + 2];

static void note_left(void *arg, ls_reply *r) {
    in_order[strlen(in_order)] = (char)('a' + (r - ((asked *)arg)->replies));
    ++((asked *)arg)->nleft;
}

/* A request of one text does not wait for all texts of one before it. */
static void test_turns(void **state) {
    (void)state;
    open_small();
    ls_engine *g = open_engine(1, 64, 100);
    asked *x = LS_NEW(asked);
    ls_engine_lock(g);
    for (int i = 0; i < REPLIES; i++) {
        make(x, i);
        x->replies[i].left = note_left;
        x->replies[i].arg = x;
        if (i == 5) x->replies[i].number = 0; /* "f" is a request of its own */
        if (i > 5) x->replies[i].number = (uint64_t)i - 6;
        ls_engine_add(g, &x->replies[i]);
    }
    assert_int_equal(ls_engine_waiting(g, 1), 3);
    assert_int_equal(ls_engine_waiting(g, 3), 7);
    assert_int_equal(ls_engine_waiting(g, 9), REPLIES);
    ls_engine_unlock(g);
    wait_until_left(g, &x->nleft, REPLIES);
    ls_engine_close(g);
    assert_string_equal(in_order, "afgbhcide");
    free_all(x);
    close_model();
}

static void test_refused(void **state) {
    ls_engine *g = NULL;
    ls_error e = {0};
    const ls_engine_options o = {.texts = 2, .rows = 8, .memory_nbytes = 1000, .progress = nothing};
    (void)state;
    open_small();
    assert_ls_fails(ls_engine_open(trained, &o, &g, &e), LS_EINVAL, "--cache-mb", e);
    const ls_engine_options far = {.texts = 2, .rows = 8, .context = 1 << 20, .progress = nothing};
    assert_ls_fails(ls_engine_open(trained, &far, &g, &e), LS_EINVAL,
                    "--context 1048576: the model reads ", e);
    close_model();
}

/* Another program truncates the model's file: nothing that is computed of it is given out. */
static void test_lost(void **state) {
    char *path = ls_format("%s/m.gguf", folder);
    ls_error e = {0};
    asked *x = LS_NEW(asked);
    (void)state;
    open_small();
    ls_engine *g = open_engine(4, 64, 100);
    make(x, 0);
    assert_int_equal(truncate(path, 100), 0);
    ls_engine_lock(g);
    ls_engine_add(g, &x->replies[0]);
    ls_engine_unlock(g);
    for (int i = 0; e.code == LS_OK; i++) {
        assert_true(i < 60000);
        usleep(1000);
        ls_engine_lock(g);
        ls_engine_failed(g, &e);
        ls_engine_unlock(g);
    }
    assert_non_null(strstr(e.msg, "m.gguf"));
    assert_int_equal(x->replies[0].n, x->replies[0].nprompt);
    assert_int_equal(x->nleft, 0);
    ls_engine_close(g);
    assert_int_equal(x->nleft, 1);
    ls_reply_free(&x->replies[0]);
    free(x);
    close_model();
    free(path);
}

/* ---- on devices ---- */

/* The model again, computed by the device. */
static void open_there(const char *name) {
    char *path = ls_format("%s/%s", folder, name);
    ls_error e = {0};
    trained = &models[1];
    const ls_trained_options o = {.writes = true, .device = device_name};
    assert_ls_ok(ls_trained_open(path, &o, trained, &e), e);
    free(path);
}

static void close_there(void) {
    ls_trained_close(trained);
    trained = &models[0];
}

/* Replies of cores, and those of a device with any steps, pages that texts share, and too few of
 * them. */
static void test_run_there(void **state) {
    static const way ways[] = {
        {16, 256, 100, false, true}, {16, 64, 6, true, false}, {3, 7, 100, false, true}};
    (void)state;
    open_run();
    asked *want = write_alone();
    open_there("run");
    compare_each_way(ways, ncases(2, 3), want);
    guesses = 4;
    compare_each_way(ways + 1, 1, want);
    guesses = 0;
    close_there();
    free_all(want);
    close_model();
}

/* The same in fewer bits. */
static void test_fewer_bits_there(void **state) {
    static const way ways[] = {{16, 64, 6, true, false}, {16, 256, 100, false, true}};
    (void)state;
    open_run();
    for (kept = LS_KEPT_F16; kept <= LS_KEPT_Q8; kept++) {
        asked *want = write_alone();
        open_there("run");
        compare_each_way(ways, ncases(1, 2), want);
        close_there();
        free_all(want);
    }
    kept = LS_KEPT_F32;
    close_model();
}

static void test_published_there(void **state) {
    static const way ways[] = {{16, 256, 100, false, false}, {3, 5, 2, false, false}};
    (void)state;
    open_small();
    asked *want = write_alone();
    open_there("m.gguf");
    compare_each_way(ways, 2, want);
    close_there();
    free_all(want);
    close_model();
}

static void test_dropped_there(void **state) {
    device = device_name;
    test_dropped(state);
    device = NULL;
}

int main(void) {
    const struct CMUnitTest there[] = {
        cmocka_unit_test(test_run_there), cmocka_unit_test(test_fewer_bits_there),
        cmocka_unit_test(test_published_there), cmocka_unit_test(test_dropped_there)};
    static const char *const devices[] = {"c:5", "cuda", "opencl"};
    int ndevices = all_cases() || only_device() ? 3 : 2; /* OpenCL's compiler takes minutes */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),  cmocka_unit_test(test_run),
        cmocka_unit_test(test_fewer_bits), cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_dropped),    cmocka_unit_test(test_turns),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_lost)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder) +
           run_on(ndevices, devices, there, sizeof there / sizeof *there, make_folder,
                  remove_folder);
}
