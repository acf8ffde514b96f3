/* language_test.c - lockstep/infer.h's language models: tokens and logits beside ls_predict(),
 * texts and conversations beside what `lockstep generate` and `chat` write. */
/* ctest: seconds=4 */
#include <math.h>

#include "cli/models.h"

#include "base/json.h"
#include "lockstep/infer.h"

#define RUN                                                                                        \
    "train configs/tiny.yaml -n 2 --set data.path=README.md --set train.steps=8 --set "            \
    "model.vocab=280 " SMALL_MODEL

static int make(void **state) {
    if (models_make(state) != 0) return -1;
    small_write_whole(&small_models[0], gguf);
    expect(RUN "-o @/gpt2", 0, NULL);
    expect(RUN "-o @/llama --set model.kind=llama --set optim.ema=0.5", 0, NULL);
    expect(RUN "-o @/sliced --set parallel.tensor_virtual=3", 0, NULL);
    expect(RUN "-o @/bf16 --set train.compute=bf16", 0, NULL);
    return 0;
}

static ls_language *open_with(const char *name, const ls_language_options *o) {
    char *path = ls_format("%s/%s", folder, name);
    ls_language *l = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_language_open(path, o, &l, &e), e);
    free(path);
    return l;
}

static ls_language *open_model(const char *name) { return open_with(name, NULL); }

/* ---- tokens ---- */

static void test_tokens(void **state) {
    (void)state;
    static const char text[] = "Lockstep, na\xc3\xafve \xe2\x82\xac";
    ls_language *l = open_model("gpt2");
    ls_error e = {0};
    const uint32_t *ids = NULL;
    const char *back = NULL;
    size_t n = 0, nbytes = 0;
    uint32_t mine[64];
    assert_int_equal(ls_language_vocab(l), 280);
    assert_int_equal(ls_language_context(l), 16);
    assert_ls_ok(ls_language_encode(l, text, sizeof text - 1, 0, &ids, &n, &e), e);
    assert_true(n > 3 && n < sizeof text);
    memcpy(mine, ids, n * sizeof *ids);
    assert_ls_ok(ls_language_decode(l, mine, n, &back, &nbytes, &e), e);
    assert_int_equal(nbytes, sizeof text - 1);
    assert_memory_equal(back, text, nbytes);
    assert_ls_ok(ls_language_encode(l, "", 0, 0, &ids, &n, &e), e);
    assert_int_equal(n, 0);
    mine[1] = 280;
    assert_int_equal(ls_language_decode(l, mine, 2, &back, &nbytes, &e), LS_EINVAL);
    assert_output_has(e.msg, "token 1 is 280; the model has 280");
    assert_int_equal(ls_language_encode(l, "\xff", 1, 0, &ids, &n, &e), LS_EINVAL);
    ls_language_close(l);
    ls_language_close(NULL);
}

/* Each position's logits are those that ls_predict() has after the tokens up to it. */
static void test_logits(void **state) {
    (void)state;
    enum { T = 11, V = 280, CONTEXT = 16 };
    static const char *const runs[] = {"gpt2", "llama", "sliced", "bf16"};
    static float all[T][V], one[V];
    const uint32_t ids[T] = {3, 270, 41, 41, 0, 279, 100, 7, 8, 9, 66};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        ls_language *l = open_model(runs[i]);
        ls_predictor *p = NULL;
        ls_error e = {0};
        char *path = ls_format("%s/%s", folder, runs[i]);
        assert_ls_ok(ls_predictor_open(path, &(ls_predictor_options){.logits = 1}, &p, &e), e);
        assert_ls_ok(ls_language_logits(l, ids, T, all[0], &e), e);
        for (int t = 0; t < T; t++) {
            int32_t text[CONTEXT];
            for (int k = 0; k < CONTEXT; k++) text[k] = k <= t ? (int32_t)ids[k] : -1;
            assert_ls_ok(ls_predict(p, 1, (const void *[]){text}, (float *[]){one}, &e), e);
            assert_memory_equal(all[t], one, sizeof one);
        }
        assert_int_equal(ls_language_logits(l, ids, 0, all[0], &e), LS_EINVAL);
        assert_int_equal(ls_language_logits(l, ids, CONTEXT + 1, all[0], &e), LS_EINVAL);
        assert_output_has(e.msg, "17 tokens; the model reads 1 to 16");
        ls_predictor_close(p);
        ls_language_close(l);
        free(path);
    }
}

/* A device gives the cores' logits, and text. */
static void test_device(void **state) {
    (void)state;
    enum { T = 9, V = 280 };
    static const char *const runs[] = {"gpt2", "llama", "sliced", "bf16"};
    static float here[T][V], there[T][V];
    const uint32_t ids[T] = {3, 270, 41, 41, 0, 279, 100, 7, 8};
    ls_writing_options o = {.tokens = 12, .temperature = -1, .seed = 5};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        ls_language *l = open_model(runs[i]);
        ls_language *d = open_with(runs[i], &(ls_language_options){.device = "c:3"});
        ls_language_text a, b;
        ls_error e = {0};
        assert_ls_ok(ls_language_logits(l, ids, T, here[0], &e), e);
        assert_ls_ok(ls_language_logits(d, ids, T, there[0], &e), e);
        assert_memory_equal(here, there, sizeof here);
        assert_ls_ok(ls_language_generate(l, "The", &o, &a, &e), e);
        assert_ls_ok(ls_language_generate(d, "The", &o, &b, &e), e);
        assert_int_equal(a.nbytes, b.nbytes);
        assert_memory_equal(a.text, b.text, a.nbytes);
        ls_language_close(l);
        ls_language_close(d);
    }
}

/* ---- texts ---- */

/* A member of the i-th object that a command has printed. */
static char *member(const char *output, int i, const char *key) {
    ls_json *line = NULL;
    ls_error e = {0};
    for (; i > 0; i--) output = strchr(output, '\n') + 1;
    assert_ls_ok(ls_json_parse(output, strcspn(output, "\n"), "output", &line, &e), e);
    const char *text = ls_json_text(ls_json_get(line, key));
    assert_non_null(text);
    char *copy = ls_strdup(text);
    ls_json_free(line);
    return copy;
}

/* Is it what the command with these options has printed? Bytes that are no character are U+FFFD
 * there: only texts without any are compared. */
static void same_text(const ls_language_text *w, const char *options, const char *command) {
    char *output = output_of("%s --json %s", command, options);
    bool is_answer = strncmp(command, "chat", 4) == 0;
    char *text = member(output, 0, is_answer ? "answer" : "text"), *end = member(output, 0, "end");
    if (!strstr(text, "\xef\xbf\xbd")) {
        assert_int_equal(w->nbytes, strlen(text));
        assert_string_equal(w->text, text);
    }
    assert_string_equal(w->end, end);
    free(output), free(text), free(end);
}

static void test_texts(void **state) {
    (void)state;
    static const char *const stops[] = {"e", "qqq", NULL};
    static const struct {
        ls_writing_options o;
        const char *same;
    } cases[] = {
        {{.tokens = 30}, "--tokens 30 --temperature 0"},
        {{.tokens = 30, .temperature = -1, .seed = 1}, "--tokens 30"},
        {{.tokens = 40, .temperature = 0.7, .seed = 9, .top_k = 30, .top_p = 0.9, .min_p = 0.01},
         "--tokens 40 --temperature 0.7 --seed 9 --top-k 30 --top-p 0.9 --min-p 0.01"},
        {{.tokens = 20, .temperature = 2, .seed = 3, .penalty = 1.5},
         "--tokens 20 --temperature 2 --seed 3 --repetition-penalty 1.5"},
        {{.tokens = 60, .temperature = 1, .seed = 4, .stops = stops},
         "--tokens 60 --seed 4 --stop e --stop qqq"},
    };
    ls_language *l = open_model("gpt2");
    ls_error e = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_language_text w;
        assert_ls_ok(ls_language_generate(l, "and", &cases[i].o, &w, &e), e);
        same_text(&w, cases[i].same, "generate @/gpt2 --prompt and");
        assert_true(w.ntokens <= cases[i].o.tokens && w.ntokens > 0);
    }
    ls_language_text w;
    assert_ls_ok(ls_language_generate(l, "", NULL, &w, &e), e);
    assert_int_equal(w.ntokens, 100);
    same_text(&w, "--temperature 0", "generate @/gpt2");
    ls_language_close(l);
}

static void test_average(void **state) {
    (void)state;
    ls_language *l = open_with("llama", &(ls_language_options){.ema = 1}),
                *last = open_model("llama");
    ls_error e = {0};
    ls_language_text w;
    const uint32_t id = 65;
    static float a[280], b[280];
    assert_ls_ok(ls_language_generate(l, "and", NULL, &w, &e), e);
    same_text(&w, "--temperature 0 --ema", "generate @/llama --prompt and");
    assert_ls_ok(ls_language_logits(l, &id, 1, a, &e), e);
    assert_ls_ok(ls_language_logits(last, &id, 1, b, &e), e);
    assert_memory_not_equal(a, b, sizeof a);
    ls_language_close(l);
    ls_language_close(last);
}

typedef struct heard {
    ls_buf text;
    int calls, most;
} heard;

static int hear(void *arg, const char *text, size_t nbytes) {
    heard *h = arg;
    ls_buf_append(&h->text, text, nbytes);
    return ++h->calls == h->most;
}

/* The text comes piece by piece, and ends when the caller wants. */
static void test_pieces(void **state) {
    (void)state;
    ls_language *l = open_model("gpt2");
    ls_error e = {0};
    for (int most = 0; most < 8; most += 7) {
        heard h = {.most = most};
        ls_language_text w;
        ls_writing_options o = {.tokens = 25, .write = hear, .arg = &h};
        assert_ls_ok(ls_language_generate(l, "the", &o, &w, &e), e);
        assert_int_equal(w.nbytes, h.text.len);
        assert_memory_equal(w.text, h.text.data, w.nbytes);
        assert_string_equal(w.end, most ? "asked" : "length");
        assert_true(most ? h.calls == most : h.calls > 7);
        ls_buf_free(&h.text);
    }
    ls_language_close(l);
}

static void refuse(ls_language *l, const ls_writing_options *o, const char *says) {
    ls_language_text w;
    ls_error e = {0};
    assert_int_equal(ls_language_generate(l, "a", o, &w, &e), LS_EINVAL);
    assert_output_has(e.msg, says);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const empty[] = {"", NULL};
    ls_language *l = open_model("gpt2");
    ls_language_text w;
    ls_error e = {0};
    refuse(l, &(ls_writing_options){.tokens = -1}, "tokens is -1; possible are 0 to 1000000");
    refuse(l, &(ls_writing_options){.temperature = 1001}, "temperature is 1001; possible are 0 to");
    refuse(l, &(ls_writing_options){.top_p = 1.5}, "top_p is 1.5; possible are 0 to 1");
    refuse(l, &(ls_writing_options){.min_p = (double)NAN}, "min_p is ");
    refuse(l, &(ls_writing_options){.penalty = 0.001},
           "penalty is 0.001; possible are 0.01 to 100");
    refuse(l, &(ls_writing_options){.stops = empty}, "stops: a text is empty");
    assert_int_equal(ls_language_generate(l, "\xff", NULL, &w, &e), LS_EINVAL);
    assert_output_has(e.msg, "the prompt: ");
    const ls_language_message m = {"user", "hello"};
    assert_int_equal(ls_language_chat(l, &m, 1, NULL, &w, &e), LS_EINVAL);
    assert_output_has(e.msg, "has no chat template");
    assert_ls_ok(ls_language_generate(l, "a", NULL, &w, &e), e); /* it can still be used */
    ls_language_close(l);
    assert_int_equal(ls_language_open("/nowhere", NULL, &l, &e), LS_EIO);
    assert_int_equal(ls_language_open(NULL, NULL, &l, &e), LS_EINVAL);
    assert_int_equal(ls_language_open("/nowhere", NULL, NULL, &e), LS_EINVAL);
}

/* Messages name the option of the call, and none of a command line. */
static void test_sets(void **state) {
    (void)state;
    static const struct {
        const char *of[2], *says;
    } cases[] = {
        {{"model.width=24"}, "sets model.width: the run is trained with another value"},
        {{"model.widht=24"}, "sets: unknown key 'model.widht'; did you mean 'model.width'?"},
        {{"model.width"}, "sets: 'model.width' has no '='"},
        {{"infer.activations=int9"}, "sets: infer.activations: "},
        {{"lora.targets=[q_proj"}, "sets:2: is not valid YAML"},
    };
    char *path = ls_format("%s/gpt2", folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_language *l = NULL;
        ls_error e = {0};
        const ls_language_options o = {.sets = cases[i].of};
        assert_int_equal(ls_language_open(path, &o, &l, &e), LS_EINVAL);
        assert_output_has(e.msg, cases[i].says);
        assert_null(strstr(e.msg, "--"));
    }
    free(path);
}

/* A model of samples has no tokenizer. */
static void test_no_text(void **state) {
    (void)state;
    static const char rows[] = "a,b,kind\n1,2,x\n2,1,y\n3,4,x\n4,3,y\n5,6,x\n6,5,y\n";
    static const char yaml[] = "model: {kind: mlp, hidden: [2], loss: {cross_entropy: {target: "
                               "kind}}}\ntrain: {steps: 2, batch: 2, virtual_workers: 2}\n"
                               "optim: {warmup: 0}\n";
    ls_language *l = NULL;
    ls_error e = {0};
    write_file("rows.csv", rows, strlen(rows));
    write_file("rows.yaml", yaml, strlen(yaml));
    expect("train @/rows.yaml -o @/rows --set data.path=@/rows.csv", 0, NULL);
    char *path = ls_format("%s/rows", folder);
    assert_int_equal(ls_language_open(path, NULL, &l, &e), LS_EINVAL);
    assert_output_has(e.msg, "writing is for runs on a text");
    free(path);
}

/* ---- conversations ---- */

/* What `lockstep chat` answers to the last of these lines. */
static char *chat(const char *options, const char *lines, int last) {
    char *line = ls_format("chat @/m.gguf --json %s", options);
    char *output = output_with_input(line, lines, 0), *answer = member(output, last, "answer");
    free(line), free(output);
    return answer;
}

static char *ask(ls_language *l, const ls_language_message *m, int n, const ls_writing_options *o) {
    ls_language_text w;
    ls_error e = {0};
    assert_ls_ok(ls_language_chat(l, m, n, o, &w, &e), e);
    return ls_strdup(w.text);
}

static void same_answers(char *a, char *b) {
    assert_string_equal(a, b);
    free(a), free(b);
}

/* The answers are those of the program, whatever was asked before. */
static void test_conversations(void **state) {
    (void)state;
    const ls_writing_options greedy = {.tokens = 3},
                             drawn = {.tokens = 3, .seed = 5, .temperature = 2};
    ls_language *l = open_model("m.gguf");
    ls_language_message m[] = {{"user", "to"}, {"assistant", NULL}, {"user", "be"}};
    char *first = ask(l, m, 1, &greedy);
    m[1].text = first;
    same_answers(ls_strdup(first), chat("--tokens 3 --temperature 0", "to\n", 0));
    same_answers(ask(l, m, 3, &greedy), chat("--tokens 3 --temperature 0", "to\nbe\n", 1));
    free(ask(l, (ls_language_message[]){{"user", "not or be"}}, 1, &drawn));
    same_answers(ask(l, m, 3, &greedy), chat("--tokens 3 --temperature 0", "to\nbe\n", 1));
    free(first);
    for (int i = 0; i < 2; i++)
        same_answers(ask(l, m, 1, &drawn), chat("--tokens 3 --seed 5 --temperature 2", "to\n", 0));
    ls_language_message system[] = {{"system", "be"}, {"user", "to"}};
    same_answers(ask(l, system, 2, &greedy),
                 chat("--tokens 3 --temperature 0 --system be", "to\n", 0));
    ls_language_close(l);
}

static void test_messages(void **state) {
    (void)state;
    ls_language *l = open_model("m.gguf");
    const ls_language_message king[] = {{"king", "to"}, {"user", "be"}}, said = {"assistant", "to"},
                              none = {"user", NULL}, good = {"user", "to"};
    const ls_writing_options few = {.tokens = 2};
    ls_language_text w;
    ls_error e = {0};
    assert_int_equal(ls_language_chat(l, king, 2, &few, &w, &e), LS_EINVAL);
    assert_output_has(e.msg, "message 1 is of 'king'; there are system, user and assistant");
    assert_int_equal(ls_language_chat(l, &said, 1, &few, &w, &e), LS_EINVAL);
    assert_output_has(e.msg, "the last message is of 'assistant'; the user's is answered");
    assert_int_equal(ls_language_chat(l, &none, 1, &few, &w, &e), LS_EINVAL);
    assert_int_equal(ls_language_chat(l, &good, 0, &few, &w, &e), LS_EINVAL);
    assert_ls_ok(ls_language_chat(l, &good, 1, &few, &w, &e), e);
    ls_language_close(l);
    write_file("t.jinja", "{{ messages[0].content }}", 25);
    char *path = ls_format("%s/t.jinja", folder);
    l = open_with("m.gguf", &(ls_language_options){.template_file = path});
    char *a = ask(l, &good, 1, &few);
    char *options = ls_format("--tokens 2 --temperature 0 --template %s", path);
    same_answers(a, chat(options, "to\n", 0));
    ls_language_close(l);
    assert_ls_fails(ls_language_generate(l, "a", &few, &w, &e), LS_EINVAL, "the model is closed",
                    e);
    assert_int_equal(ls_language_vocab(l), 0);
    ls_language_close(l);
    free(path), free(options);
}

static void test_null(void **state) {
    (void)state;
    ls_error e = {0};
    const ls_language_message hello = {"user", "Hello"};
    ls_language_text w;
    assert_true(ls_language_vocab(NULL) == 0 && ls_language_context(NULL) == 0);
    assert_ls_fails(ls_language_logits(NULL, NULL, 1, NULL, &e), LS_EINVAL,
                    "ls_language_logits(): the model is NULL", e);
    assert_int_equal(ls_language_encode(NULL, "a", 1, 0, NULL, NULL, NULL), LS_EINVAL);
    assert_int_equal(ls_language_decode(NULL, NULL, 0, NULL, NULL, NULL), LS_EINVAL);
    assert_int_equal(ls_language_generate(NULL, "a", NULL, &w, NULL), LS_EINVAL);
    assert_int_equal(ls_language_chat(NULL, &hello, 1, NULL, &w, NULL), LS_EINVAL);
    ls_language_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),   cmocka_unit_test(test_logits),
        cmocka_unit_test(test_device),   cmocka_unit_test(test_texts),
        cmocka_unit_test(test_average),  cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_sets),
        cmocka_unit_test(test_no_text),  cmocka_unit_test(test_conversations),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
