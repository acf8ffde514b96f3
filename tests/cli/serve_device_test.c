/* serve_device_test.c - lockstep serve --device answers many requests at once, byte by byte, as it answers each
 * alone on cores, also with adapters; options that do not work with a device are refused. */
/* ctest: seconds=4 */
#include <pthread.h>

#include "cli/models.h"
#include "http/client.h"

enum { QUESTIONS = 6 };

typedef struct question {
    char url[160], body[512];
    char *answer; /* its choices, or its data */
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
    q->answer = strndup(from, to ? (size_t)(to - from) : strlen(from));
    ls_buf_free(&a.body);
    ls_http_client_close(c);
    return NULL;
}

/* The same beginnings, draws, probabilities, also of the prompt, and a vector; of these models in turn. */
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

/* line: serve and its options */
static void ask_all(const char *line, const char *const models[3], bool at_once, question *list) {
    program p = startf("%s --port 0 --cache-mb 8", line);
    pthread_t threads[QUESTIONS];
    char text[1024], url[128], *output = NULL;
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
    for (int i = 0; i < QUESTIONS; i++) {
        write_question(&list[i], url, models, i);
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &list[i]), 0);
        if (!at_once) pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < QUESTIONS && at_once; i++) pthread_join(threads[i], NULL);
    kill(p.pid, SIGTERM);
    assert_int_equal(program_end(&p, &output), 0);
    free(output);
}

static int make_model(void **state) {
    if (models_make(state) != 0) return -1;
    small_write_whole(&small_models[0], gguf);
    return 0;
}

/* The server on cores with one text at a time, and that on a device with many. */
static void same(const char *line, const char *const models[3]) {
    question want[QUESTIONS] = {0}, got[QUESTIONS] = {0};
    char there[400];
    snprintf(there, sizeof there, "%s --device c:7 --texts 4 --step-tokens 9", line);
    ask_all(line, models, false, want);
    ask_all(there, models, true, got);
    for (int i = 0; i < QUESTIONS; i++) {
        assert_string_equal(got[i].answer, want[i].answer);
        free(got[i].answer), free(want[i].answer);
    }
}

static void test_same(void **state) {
    (void)state;
    same("serve @/m.gguf", no_adapters);
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
    same("serve @/base --adapter law=@/law --adapter poems=@/poems", models);
    expect("serve @/base --device c --adapter law=@/none", 1, "none");
}

static void test_refused(void **state) {
    (void)state;
    expect("serve @/m.gguf --device c --workers 2", 2, "one process computes on a device");
    expect("serve @/m.gguf --device c --cache q8", 2, "keys and values in f32 alone");
    expect("serve @/m.gguf --device gpu", 1, "devices are c, opencl and cuda");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_adapters),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, make_model, folder_remove);
}
