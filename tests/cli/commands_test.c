/* commands_test.c - output and files of the commands. */
/* ctest: seconds=12 */
/* ctest: long-asan: it starts the program hundreds of times; cli/bad_input reads as many words */
#include <ctype.h>

#include "base/json.h"
#include "cli/program.h"

static void test_help(void **state) {
    (void)state;
    expect("--version", 0, "lockstep 0.1.0");
    expect("--help", 0, "usage: lockstep COMMAND");
    expect("help train", 0, "--resume");
    expect("train --help", 0, "--resume");
    expect("help tune", 0, "\n    trials: 20\n    space:\n      optim.lr: {log_uniform");
    expect("help config", 0, "train.virtual_workers");
    expect("help --man", 0, ".TH LOCKSTEP 1");
    expect("help --bash", 0, "complete -F _lockstep lockstep");
    expect("help --cuda", 0, "KERNEL(gemm)");
}

/* Items and examples have lines of their own; variables are those of the reference. */
static void test_man(void **state) {
    (void)state;
    ls_buf page = {0};
    ls_error e = {0};
    char name[64], *man = output_of("help --man");
    assert_non_null(strstr(man, "\n.TP\n\\fBcomm\\fR\ntime and bandwidth of a collective"));
    assert_non_null(strstr(man, "\n.TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIRUN\\fR\nthe run"));
    assert_non_null(strstr(man, "\n.RS 4\n.nf\nmethod: asha      # or grid, random, pbt\n"));
    assert_non_null(strstr(man, "\n.SH EXIT STATUS\n"));
    assert_non_null(strstr(man, "\n.SH SEE ALSO\n"));
    assert_ls_ok(ls_file_read("docs/reference/commands.md", 1 << 20, &page, &e), e);
    for (const char *at = page.data; (at = strstr(at, "`LOCKSTEP_")); at++) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1, "`="), at + 1);
        if (!strstr(man, name)) fail_msg("%s is not in the man page", name);
    }
    free(man);
    ls_buf_free(&page);
}

static void test_run(void **state) {
    (void)state;
    static const char *const left[] = {
        "run/config.yaml",
        "run/tokenizer.json",
        "run/tokens.bin",
        "run/metrics.jsonl",
        "run/loss.svg",
        "run/checkpoints/latest",
        "run/checkpoints/step-50/model.safetensors",
        "run/checkpoints/step-50/optimizer.safetensors",
        "run/checkpoints/step-50/tokenizer.json",
        "run/checkpoints/step-50/config.yaml",
        "run/checkpoints/step-50/manifest.json",
    };
    expect("train configs/tiny.yaml -n 2 -o @/run --set checkpoint.every=10 "
           "--set checkpoint.keep=1",
           0, "bits/byte");
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) assert_true(file_exists(left[i]));
    assert_false(file_exists("run/checkpoints/step-10")); /* keep: 1 */
    expect("ckpt show @/run", 0, "h.1.mlp.c_proj.weight");
    expect("ckpt verify @/run/checkpoints/latest", 0, "good: step 50");
    expect("eval @/run", 0, "bigram");
    expect("eval @/run/checkpoints/step-50 --data README.md", 0, "bits/byte");
    /* the resolved config is itself a valid config */
    expect("train @/run/config.yaml -n 3 -o @/again", 0, NULL);
    char *a = output_of("ckpt hash @/run");
    char *b = output_of("ckpt hash @/again");
    assert_string_equal(a, b);
    assert_int_equal(strncmp(a, "weights ", 8), 0);
    assert_non_null(strstr(a, "\noptimizer "));
    free(a);
    free(b);
}

/* The average of the weights: evaluated at the end of a run, and later; exported; absent without
 * optim.ema. */
static void test_average(void **state) {
    (void)state;
    char *trained = output_of("train configs/tiny.yaml -n 2 -o @/ema --set optim.ema=0.9 --set "
                              "train.eval_weights=ema");
    char *eval = output_of("eval @/ema --ema");
    const char *loss = strstr(eval, "average  loss "), *said = strstr(trained, "validation loss ");
    assert_true(loss && said);
    assert_non_null(strstr(trained, "waited for data: "));
    assert_int_equal(strncmp(loss + 9, said + 11, 11), 0);
    free(trained);
    free(eval);
    expect("eval @/ema --ema --json", 0, "\"weights\": \"ema\"");
    expect("eval @/ema --json", 0, "\"weights\": \"last\"");
    expect("generate @/ema --ema --tokens 1", 0, NULL);
    expect("ckpt export @/ema --ema --to @/ema.safetensors", 0, NULL);
    assert_true(file_exists("ema.safetensors"));
    expect("ckpt export @/ema --to @/ema.safetensors", 1, "exists; give the name of a new file");
    expect("ckpt export @/ema --to @/last.safetensors", 0, NULL);
    assert_true(file_exists("last.safetensors"));
    expect("ckpt export @/ema", 2, "export needs --to FILE");
    expect("ckpt hash @/ema --to x", 2, "--to and --ema belong to export");
    expect("train configs/tiny.yaml -o @/none --set train.steps=2 --set optim.warmup=0 --set "
           "checkpoint.every=1",
           0, NULL);
    expect("eval @/none --ema", 1, "has no average of the weights; a run has one if its config");
    expect("ckpt export @/none --ema --to @/none.safetensors", 1, "has no average of the weights");
    assert_false(file_exists("none.safetensors"));
    expect("plan configs/tiny.yaml -n 2 --set optim.optimizer=lion --set optim.ema=0.9", 0,
           "exp_avg, ema, of the own shard");
    expect("train configs/tiny.yaml -o @/refused --set train.eval_weights=ema", 1,
           "train.eval_weights acts only with optim.ema > 0");
}

/* More threads than the machine has cores: a warning, and threads do not spin while they wait. */
static void test_crowd(void **state) {
    (void)state;
    char line[256], says[128], *output = NULL;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    cores = cores > 1 ? cores : 2;
    snprintf(line, sizeof line,
             "train configs/tiny.yaml -n 2 -o @/crowd --set train.steps=2 --set optim.warmup=1 "
             "--set parallel.threads=%ld",
             cores);
    snprintf(says, sizeof says, "warning: 2 workers with %ld threads each, on ", cores);
    expect(line, 0, says);
    assert_int_equal(
        run_program(
            "train configs/tiny.yaml -n 1 -o @/one --set train.steps=2 --set optim.warmup=1",
            &output),
        0);
    assert_null(strstr(output, "warning"));
    free(output);
}

static void test_generate(void **state) {
    (void)state;
    static const char line[] = "generate @/run --prompt License --tokens 60 --seed 7 --top-k 40";
    char *a = output_of("%s", line);
    char *b = output_of("%s", line);
    assert_string_equal(a, b);
    assert_int_equal(strncmp(a, "License", 7), 0);
    char *c = output_of("generate @/run --prompt License --tokens 60 --seed 8");
    assert_string_not_equal(a, c);
    free(a);
    free(b);
    free(c);
    expect("generate @/run --tokens 0 --prompt License", 0, "License");
    expect("generate @/run --tokens 5 --temperature 0", 0, NULL);
    expect("generate @/run --tokens 100", 0, NULL); /* three times the context */
}

/* A text ends before a stop, and only there; a penalty changes what is drawn. */
static void test_stop(void **state) {
    static const char how[] = "generate @/run --prompt Li --tokens 60 --seed 7 --top-k 40";
    char *json = NULL;
    (void)state;
    char *whole = output_of("%s", how);
    size_t at = 12;
    while (!isalnum((unsigned char)whole[at]) || strchr(whole + 2, whole[at]) < whole + at) at++;
    char *line = ls_format("%s --stop %c --stop zzzz", how, whole[at]);
    char *as_json = ls_format("%s --json", line);
    char *part = output_of("%s", line);
    assert_int_equal(strlen(part), at + 1); /* and a line end */
    assert_int_equal(strncmp(part, whole, at), 0);
    json = output_of("%s", as_json);
    assert_non_null(strstr(json, "\"end\": \"stop\""));
    free(part), free(json), free(as_json), free(line);
    line = ls_format("%s --repetition-penalty 3 --min-p 0.001", how);
    part = output_of("%s", line);
    assert_string_not_equal(part, whole);
    free(part), free(line), free(whole);
    expect("generate @/run --stop= --prompt a", 2, "--stop: the text is empty");
    expect("generate @/run --min-p 2", 2, "'2' is not a number from 0 to 1");
    expect("generate @/run --repetition-penalty 0", 2, "is not a number from 0.01");
}

/* One text per line; the first equals that of --prompt. */
static void test_prompts(void **state) {
    static const char prompts[] = "License\n\nThe \xc3\xa4\nYou";
    static const char how[] = "--tokens 9 --seed 7 --top-p 0.6";
    (void)state;
    write_file("prompts", prompts, sizeof prompts - 1);
    char *one = output_of("generate @/run --prompt License %s", how);
    char *all = output_of("generate @/run --prompts @/prompts %s", how);
    assert_int_equal(strncmp(all, one, strlen(one)), 0);
    assert_non_null(strstr(all, "\n\nThe \xc3\xa4"));
    assert_non_null(strstr(all, "\n\nYou"));
    char *json = output_of("generate @/run --prompts @/prompts %s --json", how);
    int lines = 0;
    for (char *at = json, *end; *at; at = end + 1, lines++) {
        ls_json *j = NULL;
        end = strchr(at, '\n');
        assert_non_null(end);
        assert_int_equal(ls_json_parse(at, (size_t)(end - at), "output", &j, NULL), LS_OK);
        assert_non_null(ls_json_text(ls_json_get(j, "text")));
        assert_string_equal(ls_json_text(ls_json_get(j, "prompt")),
                            ((const char *[]){"License", "", "The \xc3\xa4", "You"})[lines]);
        ls_json_free(j);
    }
    assert_int_equal(lines, 4);
    free(one);
    free(all);
    free(json);
    expect("generate @/run --prompts @/absent", 1, "absent");
    expect("generate @/run --prompts @/prompts --prompt a", 2,
           "give --prompt or --prompts, not both");
    expect("generate @/run --top-p 1.5", 2, "1.5");
    write_file("binary", "a\0b\n", 4);
    expect("generate @/run --prompts @/binary", 1, "has a zero byte, so it is no text");
    write_file("wide", "\xff\xfeY\0o\0u\0", 8);
    expect("generate @/run --prompts @/wide", 1, "is UTF-16LE, not UTF-8; convert it: iconv -f");
}

static void test_plan(void **state) {
    (void)state;
    expect("plan configs/tiny.yaml -n 3 --actions", 0, "ReduceScatter");
    expect("plan configs/tiny.yaml -n 3 --actions --json", 2, "--json: not with --actions");
    expect("plan configs/tiny.yaml -n 2,3 --actions", 2, "--actions is for one number of workers");
    assert_int_equal(setenv("WORLD_SIZE", "2", 1), 0); /* set by a launcher; a plan ignores it */
    expect("plan configs/tiny.yaml -n 3", 0, "3 workers, 8 virtual workers");
    assert_int_equal(unsetenv("WORLD_SIZE"), 0);
    expect("plan configs/tiny.yaml -n 1 --set train.virtual_workers=1 --set train.batch=1", 0,
           "22464 parameters; 1 worker, 1 virtual worker, 1 bucket, ");
    expect("plan configs/tiny.yaml -n 3", 0, "memory of a worker, MB");
    expect("plan configs/tiny.yaml -n 3", 0, "copy for checkpoints          0.283  of a host");
    char *output = output_of("plan configs/tiny.yaml -n 3 -w 1");
    assert_null(strstr(output, " w0 "));
    assert_non_null(strstr(output, " w1 "));
    free(output);
}

static void test_bench(void **state) {
    (void)state;
    expect("bench train configs/tiny.yaml -n 2 --steps 3", 0, "of the measured FMA peak of ");
    expect("bench train configs/tiny.yaml -n 2 --steps 1 --set parallel.mesh.pipe=2", 0,
           "of the worker that waits most");
    expect("bench train configs/tiny.yaml -n 1 --steps 1 --set train.compute=bf16", 0,
           "of the measured FMA peak in bf16 of ");
    expect("bench train configs/tiny.yaml -n 2 --steps 1 --set parallel.threads=3", 0,
           "% of the processor time in one thread of a worker; longest parts ");
    expect("bench generate configs/tiny.yaml --tokens 70", 0, "of a sum over memory");
    expect("bench generate configs/tiny.yaml --tokens 3 --set train.compute=bf16", 0,
           "22464 parameters in bf16");
    expect("bench generate configs/tiny.yaml --tokens 3 --set model.context=1 --json", 0,
           "\"memory_bytes_per_s\"");
}

/* Lines of the form "KEY": ..., "RATE": X with a number above 0. */
static int count_rates(const char *output, const char *key, const char *rate) {
    int n = 0;
    for (const char *line = output, *end; (end = strchr(line, '\n')); line = end + 1) {
        char text[512];
        double x = 0;
        snprintf(text, sizeof text, "%.*s", (int)(end - line), line);
        const char *number = strstr(text, rate);
        n += strstr(text, key) && number && sscanf(number + strlen(rate), "%lf", &x) == 1 && x > 0;
    }
    return n;
}

/* A line for each product and each pass; of the program that compares them with other libraries'
 * also for convolutions and codecs. */
static void test_bench_kernels(void **state) {
    (void)state;
    char *output = output_of("bench kernels --rows 5 --rounds 1 --json");
    assert_int_equal(count_rates(output, "\"product\": ", "\"lockstep_gflops\": "), 5 * 3);
    assert_int_equal(count_rates(output, "\"pass\": ", "\"gb_per_s\": "), 10);
    free(output);
    output = calloc(1, MAX_OUTPUT + 1);
    FILE *f = popen(BENCH_KERNELS " --rows 5 --rounds 1 --json", "r");
    assert_non_null(f);
    fread(output, 1, MAX_OUTPUT, f);
    assert_int_equal(pclose(f), 0);
    assert_int_equal(count_rates(output, "\"product\": ", "\"lockstep_gflops\": "), 5 * 3);
    assert_int_equal(count_rates(output, "\"convolution\": ", "\"lockstep_gflops\": "), 3 * 3);
    assert_int_equal(count_rates(output, "\"codec\": ", "\"encode_gb_per_s\": "), 6);
    free(output);
    static const char *const bad[][2] = {
        {"--vs mkl", "'mkl' is not one of openblas, onednn"},
        {"--vs openblas --dtype bf16", "openblas has no products in bf16"},
        {"--rows 8,x", "is not a list like 256,1024"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        shellf("! %s %s 2>%s/said && grep -q \"%s\" %s/said", BENCH_KERNELS, bad[i][0], folder,
               bad[i][1], folder);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help),          cmocka_unit_test(test_man),
        cmocka_unit_test(test_run),           cmocka_unit_test(test_average),
        cmocka_unit_test(test_crowd),         cmocka_unit_test(test_generate),
        cmocka_unit_test(test_prompts),       cmocka_unit_test(test_stop),
        cmocka_unit_test(test_plan),          cmocka_unit_test(test_bench),
        cmocka_unit_test(test_bench_kernels),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
