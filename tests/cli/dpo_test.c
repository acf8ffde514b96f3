/* dpo_test.c - training on preferences: the same bits for any layout, resumed or with workers
 * killed; the reference, its file and its copies; what is shown, measured, cut and refused. */
/* ctest: busy seconds=20 */
/* ctest: long-asan: layers/linear_dpo and chat/preference run the same code */
#include <math.h>

#include "cli/hosts.h"
#include "cli/models.h"

#ifdef __SANITIZE_ADDRESS__ /* many times slower */
enum { MANY_LAYOUTS = 1 };  /* kinds of training that all layouts are tried with */
#else
enum { MANY_LAYOUTS = 2 };
#endif

#define TEMPLATE                                                                                   \
    "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }};{% endfor %}"                       \
    "{% if add_generation_prompt %}<assistant>{% endif %}"
#define TUNE                                                                                       \
    "train @/dpo.yaml --set model.from=@/a --set data.path=@/pairs.jsonl "                         \
    "--set data.template=@/chat.jinja "
#define LORA "--set lora.rank=4 --set lora.targets=all-linear "

static void write_model(void) {
    static bool done;
    ls_buf pairs = {0};
    if (done) return;
    done = true;
    small_write_whole(&small_models[0], gguf);
    free(import("@/m.gguf -o @/a"));
    for (int i = 0; i < 24; i++)
        ls_buf_printf(&pairs,
                      "{\"prompt\": [{\"role\": \"user\", \"content\": \"%d?\"}], \"chosen\": "
                      "[{\"role\": \"assistant\", \"content\": \"%.*s\"}], \"rejected\": "
                      "[{\"role\": \"assistant\", \"content\": \"%.*s\"}]}\n",
                      i, 1 + i % 9, "yes it is", 1 + i % 5, "never");
    write_file("pairs.jsonl", pairs.data, pairs.len);
    ls_buf_free(&pairs);
    write_text("chat.jinja", TEMPLATE);
    write_text("dpo.yaml", "model: {context: 40}\ndata: {format: chat, val_fraction: 0.2}\n"
                           "train: {loss: dpo, steps: 4, batch: 12, virtual_workers: 6, "
                           "eval_every: 0}\n"
                           "optim: {lr: 0.01, min_lr: 0, warmup: 0}\ncheckpoint: {every: 2}\n");
}

/* The number that follows `label` in metrics.jsonl for the n-th time, from 0. */
static double number_of(const char *run, const char *label, int n) {
    size_t size = 0;
    char *path = ls_format("%s/metrics.jsonl", run), *text = read_file(path, &size);
    const char *at = strstr(text, label);
    for (; at && n > 0; n--) at = strstr(at + 1, label);
    if (!at) fail_msg("%s: has not enough %s", path, label);
    double x = strtod(at + strlen(label), NULL);
    free(path);
    free(text);
    return x;
}

/* At first the model is its own reference; it learns to prefer the chosen answers. */
static void test_learns(void **state) {
    (void)state;
    write_model();
    expect(TUNE LORA "-n 2 -o @/learns --set train.steps=12 --set train.eval_every=6", 0,
           "24 pairs, 1212 tokens, of which 224 are trained on and 988 are not");
    assert_true(fabs(number_of("learns", "\"loss\": ", 0) - 0.69314718056) < 1e-8);
    assert_true(number_of("learns", "\"rewards/margins\": ", 0) == 0);
    assert_true(number_of("learns", "\"rewards/accuracies\": ", 0) == 0);
    assert_true(number_of("learns", "\"loss\": ", 11) < 0.5);
    assert_true(number_of("learns", "\"rewards/accuracies\": ", 11) == 1);
    double chosen = number_of("learns", "\"rewards/chosen\": ", 11);
    double rejected = number_of("learns", "\"rewards/rejected\": ", 11);
    double margin = number_of("learns", "\"rewards/margins\": ", 11);
    assert_true(margin > 0.5 && fabs(chosen - rejected - margin) < 1e-6);
    assert_true(number_of("learns", "\"logps/chosen\": ", 0) < 0);
    assert_true(number_of("learns", "\"val_loss\": ", 0) < 0.6931);
    assert_true(number_of("learns", "\"val_rewards/margins\": ", 0) > 0);
    char line[128];
    double val = number_of("learns", "\"val_loss\": ", 1);
    snprintf(line, sizeof line, "model    loss %.4f, rewards/accuracies 1.0000, rewards/margins",
             val);
    expect("eval @/learns", 0, line);
    expect("eval @/learns --json", 0, "\"rewards/chosen\": ");
    expect("generate @/learns --prompt <user>1?;<assistant> --tokens 4", 0, "<user>1?;<assistant>");
    expect("export @/learns --to safetensors --merge -o @/merged", 0, "merged");
}

/* The second line that a command prints: the figures of an evaluation. */
static char *figures_of(const char *line) {
    char *output = NULL;
    program p = program_start(line, 0);
    assert_int_equal(program_end(&p, &output), 0);
    char *at = strstr(output, "\nmodel    loss ");
    if (!at) fail_msg("%s: prints no figures: %s", line, output);
    char *figures = strdup(at + 1);
    figures[strcspn(figures, "\n")] = 0;
    free(output);
    return figures;
}

/* Pairs of a file are measured as those of the validation part, beside the model that the run began
 * with. */
static void test_eval_of_a_file(void **state) {
    static const char *const computes[] = {"f32", "bf16"};
    (void)state;
    write_model();
    size_t n = 0;
    char *pairs = read_file("pairs.jsonl", &n), *at = pairs, line[512];
    for (int i = 0; i < 5; i++) at = strchr(at, '\n') + 1;
    write_file("five.jsonl", pairs, (size_t)(at - pairs));
    free(pairs);
    for (int i = 0; i < 2; i++) {
        expectf(0, "validation loss",
                TUNE LORA "-n 1 -o @/five%d --set data.val_path=@/five.jsonl --set "
                          "train.compute=%s",
                i, computes[i]);
        snprintf(line, sizeof line, "eval @/five%d", i);
        char *of_run = figures_of(line);
        snprintf(line, sizeof line, "eval @/five%d --chat @/five.jsonl", i);
        char *of_file = figures_of(line);
        assert_string_equal(of_file, of_run);
        free(of_run), free(of_file);
    }
    expect("eval @/five0 --chat @/five.jsonl --json", 0, "\"samples\": 5");
    expect("eval @/five0 --chat @/five.jsonl", 0, "5 pairs, 239 tokens");
    expect("eval @/a --chat @/five.jsonl --reference @/a --set data.template=@/chat.jinja "
           "--set model.context=40",
           0, "model    loss 0.6931, rewards/accuracies 0.0000, rewards/margins 0.0000");
    free(import("@/m.gguf -o @/blocks --type q8_0"));
    expect(
        "eval @/blocks --chat @/five.jsonl --reference @/blocks --set data.template=@/chat.jinja "
        "--set model.context=40 --set infer.activations=int8",
        0, "model    loss 0.6931, rewards/accuracies 0.0000, rewards/margins 0.0000");
    expect_line("eval @/a --chat @/five.jsonl", 1, "give the model before it was trained on");
    expect_line("eval @/five0 --reference @/a", 1, "--reference is for a file of chosen and");
    expect_line("eval @/five0 --chat @/five.jsonl --reference @/m.gguf --set data.template=/x", 1,
                "/x: can't be opened");
    char *a = ls_format("%s/a", folder), *gone = ls_format("%s/a-gone", folder);
    assert_int_equal(rename(a, gone), 0);
    expect_line("eval @/five0 --chat @/five.jsonl", 1, "give it, or a copy, with --reference");
    expect("eval @/five0 --chat @/five.jsonl --reference @/a-gone", 0, "5 pairs of ");
    assert_int_equal(rename(gone, a), 0);
    free(a), free(gone);
}

/* A run shows a pair, and the rewards in its line. */
static void test_shown(void **state) {
    (void)state;
    write_model();
    char *output = output_of(TUNE LORA "-n 1 -o @/shown --set log.every=1");
    assert_output_has(output, "    chosen:\n    <user>0?;<assistant>\xe2\x9f\xa6"
                              "y;\xe2\x9f\xa7\n    rejected:\n    <user>0?;<assistant>\xe2\x9f\xa6"
                              "n;\xe2\x9f\xa7\n");
    assert_output_has(output, "loss 0.6931  accuracies 0.0000  margins 0.0000  chosen 0.0000  "
                              "rejected 0.0000  ");
    assert_output_has(output, "computing the reference's log-probabilities of 24 pairs, before the "
                              "first step");
    assert_output_has(output, "training samples of a pair of answers, up to 40 tokens each");
    free(output);
    expect("tokens @/a --chat @/pairs.jsonl --template @/chat.jinja", 0,
           "line 1, rejected: 22 tokens, 2 trained on\n");
    expect("tokens @/a --chat @/pairs.jsonl --template @/chat.jinja --json", 0,
           "\"rejected\": {\"text\": \"<user>0?;<assistant>n;\", \"ids\": [");
    expect("plan @/dpo.yaml -n 2 --set model.from=@/a --set data.path=@/pairs.jsonl", 0,
           "linear_dpo");
}

/* Texts are cut at the context; pairs of which no answers are left are left out. */
static void test_cut(void **state) {
    (void)state;
    write_model();
    expect(TUNE "-n 1 -o @/cut --set model.context=24", 0,
           "warning: 15 pairs are longer than model.context 24: 47 tokens were cut off, and 0 "
           "pairs were left out");
    expect(TUNE "-n 1 -o @/cut2 --set model.context=20", 0,
           "of which no two different answers remained");
    expect(TUNE "-n 1 -o @/cut3 --set model.context=12", 1, "has no pair to train on");
}

static void test_layouts(void **state) {
    static const char *const layouts[] = {
        "-n 2 --set parallel.zero=0",
        "-n 3 --set parallel.zero=3",
        "-n 3 --set parallel.zero=1 --set parallel.transport=tcp",
        "-n 5 --set parallel.zero=2 --set parallel.transport=thread",
        "-n 1 --set parallel.threads=2",
        "-n 2 --set train.micro_batch=2 --set parallel.recompute=2",
        "-n 2 --set parallel.executor=sequential"};
    static const char *const kinds[] = {LORA, "", LORA "--set train.compute=bf16 ",
                                        LORA "--set dpo.loss=ipo "};
    (void)state;
    write_model();
    for (int kind = 0; kind < 4; kind++) {
        char one[256], other[256], run[32];
        for (int i = -1; i < (int)(sizeof layouts / sizeof *layouts); i++) {
            if (kind >= MANY_LAYOUTS && i > 1) continue;
            if (i > 1 && !runs_case(i + kind, 2)) continue;
            snprintf(run, sizeof run, "layout%d-%d", kind, i + 1);
            expectf(0, "validation loss", TUNE "-o @/%s %s%s", run, kinds[kind],
                    i < 0 ? "-n 1" : layouts[i]);
            hash_of(run, i < 0 ? one : other);
            if (i >= 0) assert_string_equal(other, one);
        }
    }
    same_files("layout0-0/reference.json", "layout0-2/reference.json");
}

/* ---- the reference ---- */

/* Many steps are left when the run is stopped, however late that is. */
#define STOPPED TUNE LORA "--set train.steps=24 --set checkpoint.keep=24 "

static void stop_after_two(const char *run) {
    pace(run, 2);
    program p = startf(STOPPED "-n 2 -o @/%s", run);
    char *path = ls_format("%s/checkpoints/step-2/manifest.json", run);
    wait_for_file(path);
    kill(p.pid, SIGTERM);
    char *output = NULL;
    program_end(&p, &output);
    free(output);
    free(path);
    pace(run, 0);
}

static void remove_file(const char *name) {
    char *path = ls_format("%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
    free(path);
}

/* A run has its tokens and its reference, and needs neither the pairs nor the template. */
static void test_resume(void **state) {
    (void)state;
    write_model();
    expect(STOPPED "-n 2 -o @/straight", 0, "validation loss");
    stop_after_two("again");
    char *from = ls_format("%s/pairs.jsonl", folder), *to = ls_format("%s/gone", folder);
    assert_int_equal(rename(from, to), 0);
    remove_file("again/reference.json");
    expect(STOPPED "-n 3 -o @/again --resume", 0, "reference.json: was missing; restored from");
    assert_int_equal(rename(to, from), 0);
    free(from), free(to);
    same_hash("straight", "again");
    same_files("straight/reference.json", "again/reference.json");
    same_files("straight/reference.json", "again/checkpoints/step-24/reference.json");
}

static void test_damaged(void **state) {
    (void)state;
    write_model();
    stop_after_two("hurt");
    write_text("hurt/reference.json", "{\"format\": \"lockstep reference\", \"version\": 1}");
    expect(STOPPED "-n 1 -o @/hurt --resume", 1, "its reference.json is not that of the run");
    write_text("hurt/reference.json", "[]");
    expect(STOPPED "-n 1 -o @/hurt --resume", 1, "its reference.json is not that of the run");
    size_t n = 0;
    char *text = read_file("hurt/checkpoints/step-2/reference.json", &n), *at = strstr(text, "[-");
    at[2] = at[2] == '1' ? '2' : '1';
    write_file("hurt/reference.json", text, n - 1);
    free(text);
    expect(STOPPED "-n 1 -o @/hurt --resume", 1,
           "reference.json back, or remove it: --resume takes the checkpoint's copy");
    remove_file("hurt/reference.json");
    expect_line("eval @/hurt", 1, "reference.json: is missing; resuming the run (--resume)");
}

static void test_killed(void **state) {
    (void)state;
    write_model();
#define LONG TUNE LORA "--set train.steps=40 --set survival.balance=off --set log.every=1000 "
    expect(LONG "-n 1 -o @/whole", 0, "validation loss");
    pace("killed", 12);
    host h = host_start(LONG "-n 3 -o @/killed --set parallel.zero=3");
    await_step("killed", 12, &h);
    host_kill_children(&h, 2);
    let_go("killed");
    host_expect(&h, 0, "was killed");
    same_hash("whole", "killed");
}

/* Another program trains on the same samples: with their reference, for any number of workers. */
static void test_bench_export(void **state) {
    enum { SAMPLES = 3 * 4 }; /* two steps before the measured one */
    (void)state;
    write_model();
#define BENCH                                                                                      \
    "bench train @/dpo.yaml --set model.from=@/a --set data.path=@/pairs.jsonl "                   \
    "--set data.template=@/chat.jinja --steps 1 --set train.batch=4 --set "                        \
    "train.virtual_workers=4 "
    expect(BENCH LORA "-n 1 --export @/one", 0, "seconds of a step");
    expect(BENCH LORA "-n 3 --set parallel.transport=thread --export @/three", 0, NULL);
    same_files("one/tokens.u32", "three/tokens.u32");
    same_files("one/trained.safetensors", "three/trained.safetensors");
    size_t size = 0;
    char *samples = read_file("one/tokens.u32", &size);
    size_t nbytes = --size / SAMPLES;
    assert_int_equal(size % SAMPLES, 0);
    for (size_t i = 1; i <= SAMPLES; i++) {
        float reference[2]; /* the last field of a sample */
        memcpy(reference, samples + i * nbytes - sizeof reference, sizeof reference);
        assert_true(reference[0] < -1 && reference[1] < -1);
    }
    free(samples);
}

/* ---- predictions ---- */

/* Seconds of the reference of a pair. */
static double predicted(int workers) {
    static const char begin[] = "  predicted reference    ", end[] = " s  a pair, before the first";
    char *output = NULL;
    program p =
        startf("plan @/dpo.yaml --set model.from=@/a --set data.path=@/pairs.jsonl -n %d --machine "
               "configs/machines/p100.yaml",
               workers);
    assert_int_equal(program_end(&p, &output), 0);
    char *at = strstr(output, begin);
    if (!at || !strstr(at, end)) fail_msg("%s", output);
    double seconds = strtod(at + sizeof begin - 1, NULL);
    free(output);
    return seconds;
}

/* Workers divide the pairs. */
static void test_predicted(void **state) {
    (void)state;
    write_model();
    double one = predicted(1), two = predicted(2);
    assert_true(one > 1e-5 && one < 1);
    assert_true(fabs(one - 2 * two) < 0.02 * one);
}

/* ---- what is refused ---- */

static void refuses(const char *line, const char *says) {
    write_text("bad.jsonl", line);
    expect_line(TUNE "-n 1 -o @/bad --set data.path=@/bad.jsonl", 1, says);
}

static void test_refused(void **state) {
    (void)state;
    write_model();
    refuses("{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n{\"text\": \"a\"}\n",
            "bad.jsonl:2: is no pair of answers");
    refuses("{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"b\"}\n",
            "bad.jsonl:1: \"chosen\" and \"rejected\" are the same");
    refuses("", "has no pair to train on");
    expect_line(TUNE "-n 1 -o @/bad --set data.packing=on", 1,
                "data.packing acts only with data.format: chat and train.loss: auto");
    expect_line(TUNE "-n 1 -o @/bad --set data.loss=all", 1,
                "data.loss acts only with data.format: chat and train.loss: auto");
    expect_line(TUNE "-n 1 -o @/bad --set train.loss=auto --set dpo.loss=ipo", 1,
                "acts only with train.loss: dpo");
    expect_line(TUNE "-n 1 -o @/bad --set dpo.loss=hinge --set dpo.label_smoothing=0.1", 1,
                "this config has dpo.loss: ");
    expect_line(TUNE LORA "-n 1 -o @/bad --set train.freeze=*lora_A*", 1,
                "lora_A.weight is an adapter of a published model (model.from), which is trained");
    expect_line("eval @/a --chat @/pairs.jsonl --reference @/a --set lora.rank=2", 1,
                "is a published model, which is read without adapters");
    expect_line(TUNE "-n 1 -o @/bad --set train.loss=auto", 1, "set train.loss: dpo");
    expect_line("train configs/tiny.yaml -n 1 -o @/bad --set train.loss=dpo", 1,
                "train.loss acts only with data.format: chat");
}

/* Workers of another host have the reference that the first one has computed. */
static void test_other_hosts(void **state) {
    (void)state;
    static const char *const runs[] = {"ahead-alone", "ahead"};
    host h[3] = {{0}};
    int port = free_port();
    write_model();
    setenv("LOCKSTEP_KEY", "a-secret-that-is-long-enough", 1);
    pace_long("ahead", 2);
    for (int i = 0; i < 3; i++) {
        h[i] = host_start(
            TUNE LORA "-n %d -o @/%s --set train.steps=20 --set sync.mode=ssp --%s 127.0.0.1:%d",
            i == 2 ? 2 : 1, runs[i > 0], i == 2 ? "join" : "listen", i ? port : free_port());
    }
    host_await_times(&h[1], "has come from", 2);
    await_step("ahead", steps_of("ahead") + 3, &h[1]); /* in which other workers have taken part */
    let_go("ahead");
    for (int i = 0; i < 3; i++) host_expect(&h[i], 0, NULL);
    assert_false(host_says(&h[1], "workers of other hosts: 0"));
    check_run("ahead-alone", "ahead", &h[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns),    cmocka_unit_test(test_other_hosts),
        cmocka_unit_test(test_shown),     cmocka_unit_test(test_eval_of_a_file),
        cmocka_unit_test(test_cut),       cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_resume),    cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_killed),    cmocka_unit_test(test_bench_export),
        cmocka_unit_test(test_predicted), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, models_make, folder_remove);
}
