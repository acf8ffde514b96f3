/* chat_test.c - training on conversations: the same bits for any layout, packed and not to the same
 * loss, resumed without the files, and what is refused. */
/* ctest: seconds=20 */
#include <math.h>
#include <pty.h>

#include "chat/show.h"
#include "cli/models.h"
#include "infer/conversations.h"

#define TEMPLATE                                                                                   \
    "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }};{% endfor %}"                       \
    "{% if add_generation_prompt %}<assistant>{% endif %}"
#define TUNE                                                                                       \
    "train @/chat.yaml --set model.from=@/a --set data.path=@/chats.jsonl "                        \
    "--set data.template=@/chat.jinja "

static void write_model(void) {
    static bool done;
    ls_buf chats = {0};
    if (done) return;
    done = true;
    small_write_whole(&small_models[0], gguf);
    free(import("@/m.gguf -o @/a"));
    for (int i = 0; i < 24; i++)
        ls_buf_printf(&chats,
                      "{\"messages\": [{\"role\": \"user\", \"content\": \"%d?\"}, {\"role\": "
                      "\"assistant\", \"content\": \"%.*s\"}]}\n",
                      i, 1 + i % 9, "yes it is");
    write_file("chats.jsonl", chats.data, chats.len);
    ls_buf_free(&chats);
    write_text("chat.jinja", TEMPLATE);
    write_text("chat.yaml", "model: {context: 46}\ndata: {format: chat, val_fraction: 0.2}\n"
                            "train: {steps: 3, batch: 12, virtual_workers: 6, eval_every: 0}\n"
                            "optim: {lr: 0.001, min_lr: 0, warmup: 0}\ncheckpoint: {every: 2}\n");
}

/* A run prints what is trained on. */
static void test_shown(void **state) {
    (void)state;
    write_model();
    expect(TUNE "-n 1 -o @/shown", 0,
           "24 conversations, 624 tokens, of which 130 are trained on and 494 are not");
    expect(TUNE "-n 1 -o @/shown2", 0,
           "    <user>0?;<assistant>\xe2\x9f\xa6"
           "y;\xe2\x9f\xa7\n");
    expect(TUNE "-n 1 -o @/shown3 --set data.loss=all", 0,
           "of which 600 are trained on and 24 are not");
    expect(TUNE "-n 1 -o @/cut --set model.context=22", 0,
           "conversations are longer than model.context 22: 74 tokens were cut off, and 0 "
           "conversations were left out");
    expect(TUNE "-n 1 -o @/cut2 --set model.context=20", 0, "and 14 conversations were left out");
    expect("eval @/shown", 0, "nats/token");
    expect("generate @/shown --prompt <user>1?;<assistant> --tokens 4", 0, "<user>1?;<assistant>");
}

/* What a terminal shows of a run's first lines. */
static void shows_on_terminal(const char *line, const char *no_color, const char *says) {
    char *output = calloc(1, MAX_OUTPUT + 1), *argv[MAX_ARGS], text[4096];
    size_t n = 0;
    int terminal = -1, status = 0;
    pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
    if (pid == 0) {
        setenv("TERM", "xterm", 1);
        setenv("NO_COLOR", no_color, 1);
        split_line(line, argv, text, sizeof text);
        exec_program(argv);
    }
    for (ssize_t got = 1; got > 0 && n < MAX_OUTPUT;) {
        got = read(terminal, output + n, MAX_OUTPUT - n);
        if (got > 0) n += (size_t)got;
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(terminal);
    if (status || !strstr(output, says))
        fail_msg("%s: status %d\n%s\nnot: %s", line, status, output, says);
    free(output);
}

/* In colour on a terminal, unless the user wants none; a template that ends answers with a line
 * end. */
static void test_colours(void **state) {
    (void)state;
    write_model();
    shows_on_terminal(TUNE "-n 1 -o @/coloured", "",
                      "    <user>0?;<assistant>\033[32my;\033[0m\r\n");
    shows_on_terminal(TUNE "-n 1 -o @/plain", "1",
                      "    <user>0?;<assistant>" LS_SHOWN_BEGIN "y;" LS_SHOWN_END "\r\n");
    shows_on_terminal("tokens @/a --chat @/chats.jsonl --template @/chat.jinja", "",
                      "\033[32my;\033[0m\r\n");
}

static void test_layouts(void **state) {
    static const char *const layouts[] = {
        "-n 2 --set parallel.zero=0", "-n 3 --set parallel.zero=3",
        "-n 5 --set parallel.zero=2 --set parallel.transport=thread",
        "-n 1 --set parallel.threads=2", "-n 2 --set train.micro_batch=2"};
    (void)state;
    write_model();
    for (int packed = 0; packed < 2; packed++) {
        char one[256], other[256], run[32];
        for (int i = -1; i < (int)(sizeof layouts / sizeof *layouts); i++) {
            snprintf(run, sizeof run, "layout%d-%d", packed, i + 1);
            expectf(0, "validation loss", TUNE "-o @/%s --set data.packing=%s %s", run,
                    packed ? "on" : "off", i < 0 ? "-n 1" : layouts[i]);
            hash_of(run, i < 0 ? one : other);
            if (i >= 0) assert_string_equal(other, one);
        }
    }
}

/* The number that follows `label` in metrics.jsonl for the first time. */
static double number_of(const char *run, const char *label) {
    size_t n = 0;
    char *path = ls_format("%s/metrics.jsonl", run), *text = read_file(path, &n);
    const char *at = strstr(text, label);
    assert_non_null(at);
    double x = strtod(at + strlen(label), NULL);
    free(path);
    free(text);
    return x;
}

/* All conversations in one batch: their order and rows do not change its loss, the mean over all
 * tokens that are trained on. */
static void test_packed(void **state) {
    (void)state;
    write_model();
#define ALL TUNE "-n 1 --set train.batch=60 --set train.steps=1 --set optim.lr=1e-9 "
    expect(ALL "-o @/single", 0, "20 training samples of a conversation, up to 46 tokens");
    expect(ALL "-o @/packed --set data.packing=on", 0,
           "15 training samples of several conversations, up to 46 tokens");
    double loss = number_of("single", "\"loss\": "), val = number_of("single", "\"val_loss\": ");
    assert_true(loss > 1 && val > 1);
    assert_true(fabs(number_of("packed", "\"loss\": ") - loss) <= 1e-6 * loss);
    assert_true(fabs(number_of("packed", "\"val_loss\": ") - val) <= 1e-6 * val);
    expect("eval @/single --before", 0, "perplexity");
    expect("eval @/packed --before", 0, "perplexity"); /* the model before reads packed samples */
}

/* Many steps are left when the run is stopped, however late that is. */
#define STOPPED TUNE "--set train.steps=24 --set checkpoint.keep=24 "

/* A run has its tokens, and needs neither the conversations nor the template. */
static void test_resume(void **state) {
    (void)state;
    write_model();
    expect(STOPPED "-n 2 -o @/straight", 0, "validation loss");
    pace("again", 2);
    program p = program_start(STOPPED "-n 2 -o @/again", 0);
    wait_for_file("again/checkpoints/step-2/manifest.json");
    kill(p.pid, SIGTERM);
    char *output = NULL;
    program_end(&p, &output);
    free(output);
    pace("again", 0);
    char *record = ls_format("%s/again/published.json", folder);
    assert_int_equal(unlink(record), 0);
    free(record);
    char *from = ls_format("%s/chats.jsonl", folder), *to = ls_format("%s/gone", folder);
    assert_int_equal(rename(from, to), 0);
    expect(STOPPED "-n 3 -o @/again --resume", 0, NULL);
    assert_int_equal(rename(to, from), 0);
    free(from), free(to);
    same_files("again/published.json", "straight/published.json");
    same_hash("straight", "again");
}

/* The text that a line prints. */
static char *text_of(const char *line) {
    char *output = NULL;
    if (run_program(line, &output)) fail_msg("lockstep %s: %s", line, output);
    return output;
}

static void writes_alike(const char *a, const char *b) {
    char *x = text_of(a), *y = text_of(b);
    assert_string_equal(x, y);
    free(x), free(y);
}

/* A checkpoint alone has the template, and draws text as the model's makers want it. */
static void test_alone(void **state) {
    static const char settings[] = "{\"do_sample\": true, \"temperature\": 0.3, \"top_k\": 4}";
    (void)state;
    write_model();
    free(import("@/m.gguf -o @/drawn"));
    write_text("drawn/generation_config.json", settings);
    expect("train @/chat.yaml --set model.from=@/drawn --set data.path=@/chats.jsonl -n 1 "
           "--set data.template=@/chat.jinja -o @/tuned",
           0, NULL);
    char *from = ls_format("%s/tuned/checkpoints/step-3", folder);
    char *to = ls_format("%s/alone", folder);
    assert_int_equal(rename(from, to), 0);
    free(from), free(to);
    writes_alike("generate @/alone --prompt x --tokens 20",
                 "generate @/alone --prompt x --tokens 20 --temperature 0.3 --top-k 4");
    writes_alike("generate @/drawn --prompt x --tokens 20",
                 "generate @/drawn --prompt x --tokens 20 --temperature 0.3 --top-k 4");
    char *drawn = text_of("generate @/alone --prompt x --tokens 20");
    char *hot = text_of("generate @/alone --prompt x --tokens 20 --temperature 3 --top-k 0");
    assert_string_not_equal(drawn, hot);
    free(drawn), free(hot);
    expect("chat @/alone --tokens 5", 0, NULL); /* nobody says anything */
    expect("export @/alone --to safetensors -o @/out", 0, "hash ");
    same_files("chat.jinja", "out/chat_template.jinja");
    size_t n = 0;
    char *written = read_file("out/generation_config.json", &n);
    assert_non_null(strstr(written, "\"temperature\": 0.3"));
    assert_non_null(strstr(written, "\"top_k\": 4"));
    free(written);
}

/* The loss that a line prints. */
static double loss_of(const char *line) {
    char *output = NULL;
    int code = run_program(line, &output);
    const char *at = strstr(output, "model    loss ");
    if (code || !at) fail_msg("lockstep %s: exit code %d\n%s", line, code, output);
    double loss = strtod(at + strlen("model    loss "), NULL);
    free(output);
    return loss;
}

static void evaluates_alike(const char *a, const char *b) {
    double loss = loss_of(a);
    assert_true(loss > 0);
    if (loss_of(b) != loss) fail_msg("%s %.5f, %s %.5f", a, loss, b, loss_of(b));
}

/* A file of its own for validation; other forms of lines. */
static void test_forms(void **state) {
    (void)state;
    write_model();
    write_text("forms.jsonl",
               "{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", "
               "\"value\": \"b\"}]}\n\n"
               "{\"instruction\": \"i\", \"input\": \"\", \"output\": \"o\"}\n"
               "{\"prompt\": \"1 2\", \"completion\": \" 3\"}\n{\"text\": \"a b c\"}\n");
    expect(TUNE "-n 1 -o @/forms --set data.val_path=@/forms.jsonl", 0, "of 4 samples");
    char *a = ls_format("%s/a", folder), *gone = ls_format("%s/gone", folder);
    assert_int_equal(rename(a, gone), 0); /* a run has its tokenizer and its template */
    evaluates_alike("eval @/forms", "eval @/forms --chat @/forms.jsonl");
    expect("eval @/forms --chat @/forms.jsonl", 0, "forms.jsonl: 4 conversations, ");
    assert_int_equal(rename(gone, a), 0);
    free(a), free(gone);
    expect("eval @/a --chat @/forms.jsonl --set model.context=46 --set data.template=@/chat.jinja",
           0, "/a on the conversations of ");
    expect_line("eval @/forms --chat @/forms.jsonl --data @/forms.jsonl", 1, "not both");
    expect_line("eval @/a", 1, "use --data FILE or --chat FILE");
}

/* The model that a run began with is cut and evaluated in the run's context, not in its own. */
static void test_before(void **state) {
    (void)state;
    write_model();
    expect(TUNE "-n 1 -o @/short --set model.context=22", 0, NULL);
    char *output = output_of("eval @/short --chat @/chats.jsonl --before");
    assert_int_equal(occurrences(output, "longer than model.context 22: "), 2);
    assert_int_equal(occurrences(output, "the first one; what is trained on is "), 2);
    free(output);
    output =
        output_of("eval @/short --chat @/chats.jsonl --before --set data.template=@/chat.jinja");
    assert_int_equal(occurrences(output, "the first one; what is trained on is "), 1); /* alike */
    free(output);
    write_text("some.txt", "the text is longer than one context of twenty-two tokens, by far\n");
    expect("eval @/short --data @/some.txt --before", 0, "some.txt: 44 of ");
    output = output_of("eval @/short --data @/some.txt --before");
    assert_int_equal(occurrences(output, "warning"), 0);
    free(output);
    expect("eval @/short @/a --data @/some.txt --set data.template=@/chat.jinja", 0,
           "not of the same samples");
}

/* The loss of the file's conversations; *context_p: of their samples. */
static double loss_in(const char *context, int64_t *context_p) {
    char *a = ls_format("%s/a", folder), *file = ls_format("%s/chats.jsonl", folder),
         *template = ls_format("%s/chat.jinja", folder);
    const ls_trained_options o = {.samples = LS_READS_CHATS, .sets = &context, .nsets = 1};
    ls_trained t;
    ls_dataset d;
    ls_evaluation v;
    ls_error e = {0};
    assert_ls_ok(ls_trained_open(a, &o, &t, &e), e);
    assert_ls_ok(ls_trained_chats(&t, file, template, &d, &e), e);
    assert_ls_ok(ls_trained_evaluate_data(&t, &d, &v, NULL, &e), e);
    *context_p = t.config.model.context;
    assert_int_equal(d.sample_nbytes, t.model.sample_nbytes);
    ls_dataset_free(&d);
    ls_trained_close(&t);
    free(a), free(file), free(template);
    return v.loss;
}

/* Samples are as long as the longest conversation needs, whatever the model allows. */
static void test_shortened(void **state) {
    (void)state;
    int64_t longest = 0, same = 0, cut = 0;
    write_model();
    double loss = loss_in("model.context=46", &longest);
    assert_true(longest < 40 && longest > 22);
    char *exact = ls_format("model.context=%lld", (long long)longest);
    assert_true(fabs(loss_in(exact, &same) - loss) < 1e-12);
    assert_int_equal(same, longest);
    free(exact);
    assert_true(loss_in("model.context=22", &cut) != loss);
    assert_int_equal(cut, 22);
}

/* A directory of files of conversations is their list; `data` says so, and `tokens` shows them. */
static void test_directory(void **state) {
    (void)state;
    write_model();
    shell_of_run(
        "", "mkdir -p talks/deep && head -8 chats.jsonl >talks/a.jsonl && tail -n +9 chats.jsonl | "
            "gzip >talks/deep/b.jsonl.gz && echo about >talks/README.md");
    expect(TUNE "-n 1 -o @/in-one", 0, NULL);
    expect(TUNE "-n 1 -o @/in-files --set data.path=@/talks", 0,
           "talks: 2 files are read; not read: 1 .md");
    char one[256], files[256];
    hash_of("in-one", one);
    hash_of("in-files", files);
    assert_string_equal(strchr(one, ' '), strchr(files, ' '));
    expect("data @/talks", 0, "24 conversations of 48 messages");
    expect("tokens @/a --chat @/talks --template @/chat.jinja", 0, "24 conversations, ");
    expect("eval @/in-one --chat @/talks", 0, "talks");
    shell_of_run("", "mkdir none && echo about >none/README.md");
    expect(TUNE "-n 1 -o @/no --set data.path=@/none", 1,
           "none: has no files of JSON below it, but");
    expect(TUNE "-n 1 -o @/no --set model.context=3", 1,
           "of 24, nothing that is trained on is within model.context 3; set a larger one");
}

/* lockstep tokens --chat. */
static void test_tokens(void **state) {
    (void)state;
    write_model();
    write_text("two.jsonl", "{\"prompt\": \"a b\", \"completion\": \"c\"}\n"
                            "{\"instruction\": \"i\", \"output\": \"o\"}\n");
#define SHOW "tokens @/a --chat @/two.jsonl "
    expect(SHOW "--template @/chat.jinja", 0,
           "line 1: 5 tokens, 2 trained on\na b\xe2\x9f\xa6"
           "c\"\xe2\x9f\xa7\n");
    expect(SHOW "--template @/chat.jinja", 0, "2 conversations, 26 tokens, of which 4 are trained");
    expect(SHOW "--template @/chat.jinja --json", 0,
           "{\"line\": 2, \"text\": \"<user>i;<assistant>o;\", \"ids\": [28, 85,");
    expect(SHOW "--loss all --template @/chat.jinja", 0, "of which 24 are trained");
    expect(SHOW "--loss some", 1, "--loss is assistant, all or completion, not 'some'");
    expect(SHOW "text", 1, "leave TEXT out");
    expect("tokens @/a --chat @/gone", 1, "gone");
}

static void refuses(const char *line, const char *says) {
    write_text("bad.jsonl", line);
    expect(TUNE "-n 1 -o @/bad --set data.path=@/bad.jsonl", 1, says);
}

/* Lines of all kinds of damage among good ones: the bits of these alone. */
static void test_damaged(void **state) {
    (void)state;
    write_model();
    shell_of_run("", "{ cat chats.jsonl; echo '{\"messages\": 3}'; echo '{\"messages\": [{'; "
                     "echo '{\"a\": 1}'; echo '[1]'; } >some.jsonl");
    expect(TUNE "-n 1 -o @/kept", 0, NULL);
    expect(TUNE "-n 1 -o @/skipped --set data.path=@/some.jsonl", 1, "some.jsonl:");
    expect(TUNE "-n 1 -o @/skipped --set data.path=@/some.jsonl --set data.damaged=skip", 0,
           "some.jsonl:28: is not a JSON object");
    same_hash("kept", "skipped");
}

static void test_refused(void **state) {
    (void)state;
    write_model();
    refuses("{\"a\": 1}\n", "bad.jsonl:1: a line has messages, conversations,");
    refuses("{\"text\": \"a\"}\n{", "bad.jsonl:2: is not valid JSON: string or '}' expected");
    refuses("{\"messages\": []}\n", "\"messages\" is no list of messages, or it is empty");
    refuses("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n",
            "bad.jsonl:1: trains no token: it has no answer of the assistant");
    refuses("", "has no conversation to train on");
    refuses("{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n",
            "set train.loss: dpo to train on such pairs");
    write_text("raises.jinja", "{{ raise_exception('not you') }}");
    expect(TUNE "-n 1 -o @/bad --set data.template=@/raises.jinja", 1,
           "raises.jinja:1:19: the template refuses this conversation: not you");
    expect(TUNE "-n 1 -o @/bad --set data.template=@/gone.jinja", 1, "gone.jinja");
    expect(TUNE "-n 1 -o @/bad --set data.labels=@/x", 1,
           "data.labels acts only with model.kind: other than");
    expect("train configs/tiny.yaml -n 1 -o @/bad --set data.format=chat", 1,
           "data.format: chat does not go with model.kind: gpt2 and no model.from");
}

#define AS_TEXT "train @/text.yaml --set model.from=@/a -n 1 -o @/as-text "

/* Conversations are not trained on as JSON, unless that is asked for; keys of conversations need
 * them. */
static void test_as_text(void **state) {
    (void)state;
    write_model();
    write_text("text.yaml", "model: {context: 46}\noptim: {warmup: 0}\n"
                            "train: {steps: 1, batch: 6, virtual_workers: 6, eval_every: 0}\n");
    expect(AS_TEXT "--set data.path=@/chats.jsonl", 1,
           "chats.jsonl: is JSON with \"messages\": set data.format: chat to train on what it "
           "contains (with a published model, model.from), or data.format: text");
    write_text("alpaca.json", "[\n{\"instruction\": \"a\", \"output\": \"b\"}\n]");
    expect("train configs/tiny.yaml -n 1 -o @/as-text --set data.path=@/alpaca.json", 1,
           "alpaca.json: is JSON with \"instruction\"");
    expect(AS_TEXT "--set data.path=@/chats.jsonl --set data.format=text", 0, "validation loss");
    expect("eval @/a --data @/chats.jsonl --set model.context=46", 0, "--chat reads conversations");
    expect(AS_TEXT "--set data.path=LICENSE --set data.packing=on", 1,
           "data.packing acts only with data.format: chat");
    expect(AS_TEXT "--set data.path=LICENSE --set data.loss=all", 1,
           "data.loss acts only with data.format: chat");
    expect(AS_TEXT "--set data.path=LICENSE --set data.template=@/chat.jinja", 1,
           "data.template acts only with data.format: chat");
}

/* Each key that is not read is named once, whatever file it is in. */
static void test_unread(void **state) {
    (void)state;
    write_model();
    const char *const line = "{\"id\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
                             "{\"role\": \"assistant\", \"content\": \"b\"}]}\n";
    char *two = ls_format("%s%s", line, line), *output = NULL;
    write_text("ids.jsonl", two);
    write_text("ids2.jsonl", two);
    output = output_of(TUNE "-n 1 -o @/ids --set data.path=@/ids.jsonl "
                            "--set data.val_path=@/ids2.jsonl");
    assert_int_equal(occurrences(output, "ids.jsonl: this key is not read: \"id\""), 1);
    assert_int_equal(occurrences(output, "not read"), 1);
    free(two), free(output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shown),     cmocka_unit_test(test_colours),
        plain_unit_test(test_layouts),    cmocka_unit_test(test_packed),
        plain_unit_test(test_resume),     cmocka_unit_test(test_forms),
        cmocka_unit_test(test_directory), cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_damaged),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_alone),     cmocka_unit_test(test_as_text),
        cmocka_unit_test(test_unread),    cmocka_unit_test(test_before),
        cmocka_unit_test(test_shortened),
    };
    return cmocka_run_group_tests(tests, models_make, folder_remove);
}
