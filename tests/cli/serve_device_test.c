/* serve_device_test.c - lockstep serve --device answers many requests at once, byte by byte, as it
 * answers each alone on cores, also with adapters, keys and values in fewer bits, and little
 * memory; options that do not work with a device are refused. Device `cuda` has a driver made for
 * tests (fake_cuda.c). */
/* ctest: seconds=4 */
/* ctest: no-tsan: a server forks workers beside threads; engine_test has devices with threads */
/* The program is this test, with arguments: that driver needs functions that it exports. */
#undef LOCKSTEP_PROGRAM
#define LOCKSTEP_PROGRAM "/proc/self/exe"
#include <pthread.h>

#include "cli/cli.h"
#include "cli/models.h"
#include "device/drivers.h"
#include "http/client.h"

enum { QUESTIONS = 6 };

typedef struct question {
    char url[160], body[512];
    char *answer;   /* its choices, or its data */
    char print[64]; /* the fingerprint of the answer; "": it is not known yet */
} question;

static void *ask(void *arg) {
    question *q = arg;
    ls_http_client *c = NULL;
    ls_http_reply a = {0};
    ls_error e = {0};
    assert_ls_ok(ls_http_client_open(&(ls_http_client_options){0}, &c, &e), e);
    assert_ls_ok(ls_http_client_ask(c, &(ls_http_question){.url = q->url, .body = q->body}, &a, &e),
                 e);
    ls_buf_append(&a.body, "", 1);
    const char *from = strstr(a.body.data, "\"choices\"");
    if (!from) from = strstr(a.body.data, "\"data\"");
    if (a.status != 200 || !from) fail_msg("status %d: %s", a.status, a.body.data);
    const char *to =
        strstr(from, "\"usage\""); /* how many tokens were cached depends on what came before */
    const char *print = strstr(a.body.data, "\"system_fingerprint\"");
    if (print) (void)sscanf(print, "\"system_fingerprint\": \"%63[^\"]", q->print);
    q->answer = strndup(from, to ? (size_t)(to - from) : strlen(from));
    ls_buf_free(&a.body);
    ls_http_client_close(c);
    return NULL;
}

/* The same beginnings, draws, probabilities, also of the prompt, and a vector; of these models in
 * turn. */
static void write_question(question *q, const char *url, const char *const models[3], int i) {
    bool embeds = i == QUESTIONS - 1;
    const char *model = models[i % 3];
    snprintf(q->url, sizeof q->url, "%s/%s", url, embeds ? "embeddings" : "completions");
    if (embeds)
        snprintf(q->body, sizeof q->body, "{\"model\": \"%s\", \"input\": \"to be or not to be\"}",
                 model);
    else
        snprintf(q->body, sizeof q->body,
                 "{\"model\": \"%s\", \"prompt\": \"to be or not to be %.*s\", \"max_tokens\": %d, "
                 "\"seed\": %d, "
                 "\"temperature\": %d, \"logprobs\": 2, \"echo\": %s, \"ignore_eos\": true}",
                 model, 2 * i, "or not to be", 3 + i, i, i % 2, i == 2 ? "true" : "false");
}

static const char *const no_adapters[3] = {"m", "m", "m"};

/* Asks for a token until the fingerprint of the model is known, a moment after the start. */
static void await_fingerprint(const char *url, const char *model, char print[64]) {
    for (*print = 0; !*print; usleep(1000)) {
        question q = {0};
        snprintf(q.url, sizeof q.url, "%s/completions", url);
        snprintf(q.body, sizeof q.body, "{\"model\": \"%s\", \"prompt\": \"a\", \"max_tokens\": 1}",
                 model);
        ask(&q);
        memcpy(print, q.print, sizeof q.print);
        free(q.answer);
    }
}

/* A file that is made when a server has begun, and removed by what fails of its device
 * (FAKE_CUDA_FAIL_ONCE). */
static const char *fails_once;

/* line: serve and its options. says: what it says while it begins, or NULL. */
static void ask_all(const char *line, const char *const models[3], bool at_once, const char *says,
                    question *list) {
    program p = startf("%s --port 0 --cache-mb 8", line);
    pthread_t threads[QUESTIONS];
    char text[1024] = "", url[128], *output = NULL;
    const char *printed = NULL;
    size_t n = 0;
    while (!printed || !strchr(printed, '\n')) { /* it may also say something on standard error */
        ssize_t got = read(p.out, text + n, sizeof text - 1 - n);
        if (got <= 0) fail_msg("lockstep serve: %.*s", (int)n, text);
        n += (size_t)got;
        text[n] = 0;
        printed = strstr(text, "http");
    }
    assert_int_equal(sscanf(printed, "%127s", url), 1);
    if (says && !strstr(text, says)) fail_msg("lockstep serve: %s", text);
    if (fails_once && at_once) write_text(fails_once, "");
    for (int i = 0; i < QUESTIONS; i++) {
        write_question(&list[i], url, models, i);
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &list[i]), 0);
        if (!at_once) pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < QUESTIONS && at_once; i++) pthread_join(threads[i], NULL);
    await_fingerprint(url, models[1], list[0].print);
    kill(p.pid, SIGTERM);
    assert_int_equal(program_end(&p, &output), 0);
    free(output);
}

static int make_model(void **state) {
    if (models_make(state) != 0) return -1;
    small_write_whole(&small_models[0], gguf);
    setenv("XDG_CACHE_HOME", folder, 1);
    setenv("LD_LIBRARY_PATH", FAKE_CUDA ":" FAKE_NVRTC, 1);
    return 0;
}

/* The server on cores with one text at a time, and that on a device with many. */
static void same(const char *line, const char *const models[3], const char *options,
                 const char *says) {
    question want[QUESTIONS] = {0}, got[QUESTIONS] = {0};
    char there[400];
    snprintf(there, sizeof there, "%s %s --step-tokens 9", line, options);
    ask_all(line, models, false, NULL, want);
    ask_all(there, models, true, says, got);
    assert_string_equal(got[0].print, want[0].print);
    for (int i = 0; i < QUESTIONS; i++) {
        assert_string_equal(got[i].answer, want[i].answer);
        free(got[i].answer), free(want[i].answer);
    }
}

static void test_same(void **state) {
    (void)state;
    same("serve @/m.gguf", no_adapters, "--device c:7 --texts 4", NULL);
    same("serve @/m.gguf --cache q8", no_adapters, "--device c:8 --texts 4", NULL);
    same("serve @/m.gguf --cache f16", no_adapters, "--device cuda --texts 4", NULL);
}

static void train(const char *run, const char *sets) {
    char *output = output_of("train configs/tiny.yaml -o @/%s --set model.kind=llama "
                             "--set model.heads=4 --set model.context=64 --set train.steps=3 "
                             "--set optim.warmup=1 --set optim.lr=0.02 --set train.eval_every=0 %s",
                             run, sets);
    free(output);
}

/* Two adapters and the model alone in each step. */
static void test_adapters(void **state) {
    static const char *const models[3] = {"base", "law", "poems"};
    (void)state;
    train("base", "");
    train("law", "--set train.from=@/base --set lora.rank=4");
    train("poems", "--set train.from=@/base --set lora.rank=3 --set lora.dora=on");
    same("serve @/base --adapter law=@/law --adapter poems=@/poems", models,
         "--device c:7 --texts 4", NULL);
    expect("serve @/base --device c --adapter law=@/none", 1, "none");
}

/* A GPU that has less memory than --cache-mb: it gets as many pages as fit. */
static void test_fewer_pages(void **state) {
    (void)state;
    setenv("FAKE_CUDA_MEMORY", "2000000", 1);
    same("serve @/m.gguf", no_adapters, "--device cuda --texts 64",
         "keys and values: the device has memory for ");
    setenv("FAKE_CUDA_MEMORY", "100000", 1);
    expect_line("serve @/m.gguf --port 0 --device cuda", 1, "has no room for ");
    unsetenv("FAKE_CUDA_MEMORY");
}

/* Several workers: each with a GPU of its own, or all with one. */
static void test_workers(void **state) {
    static const char *const models[3] = {"base", "law", "poems"};
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    same("serve @/base --adapter law=@/law --adapter poems=@/poems --cache f16", models,
         "--device cuda --workers 2", NULL);
    same("serve @/m.gguf", no_adapters, "--device cuda:1 --workers 3", NULL);
    expect_line("serve @/m.gguf --port 0 --device cuda --workers 3", 1,
                "this host has 2: give no more --workers, or let them share one by its number");
    unsetenv("FAKE_CUDA_DEVICES");
}

/* The device of a worker fails: others write its replies on, and it is started again. */
static void test_failed(void **state) {
    char file[200];
    (void)state;
    snprintf(file, sizeof file, "%s/once", folder);
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:700", 1);
    setenv("FAKE_CUDA_FAIL_ONCE", file, 1);
    fails_once = "once";
    same("serve @/m.gguf", no_adapters, "--device cuda:0 --workers 2", NULL);
    assert_false(file_exists("once"));
    fails_once = NULL;
    unsetenv("FAKE_CUDA_FAIL"), unsetenv("FAKE_CUDA_FAIL_ONCE");
}

static void test_refused(void **state) {
    (void)state;
    expect_line("serve @/m.gguf --device c --workers 2 --set infer.activations=int8", 1,
                "infer.activations: int8");
    expect("serve @/m.gguf --device gpu", 1, "devices are c, opencl and cuda");
}

int main(int argc, char **argv) {
    static const ls_command *const commands[] = {&cmd_train, &cmd_serve, NULL};
    if (argc > 1) return cli_main(argc, argv, commands);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_fewer_pages), cmocka_unit_test(test_workers),
        cmocka_unit_test(test_failed),      cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, make_model, folder_remove);
}
