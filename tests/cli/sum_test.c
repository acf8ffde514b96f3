/* sum_test.c - the order in which products in bf16 are summed has a name, which plans, checkpoints
 * and records of a run in bf16 have; runs with the order of an older version, or of one that is not
 * known. */
/* ctest: seconds=5 */
#include "cli/program.h"

#define TRAIN                                                                                      \
    "train configs/tiny.yaml --set train.steps=20 --set train.eval_every=0 --set log.every=1000 "  \
    "--set checkpoint.every=10 --set checkpoint.keep=9 --set train.batch=8 " SMALLER
#define BF16 "--set train.compute=bf16 "
#define OLDER                                                                                      \
    "was written by an older version, which summed products in bf16 in another order; from step "

/* The run as a version that knew no order would have left it. */
static void make_older(const char *run) {
    shell_of_run(run, "grep -q '\"sum\": \"blocks32\",$' $r/checkpoints/step-10/manifest.json && "
                      "grep -q '\"sum\": \"blocks32\", ' $m && "
                      "sed -i '/\"sum\": \"blocks32\",$/d' $r/checkpoints/step-*/manifest.json && "
                      "sed -i 's/\"sum\": \"blocks32\", //' $m && "
                      "! grep -rq '\"sum\"' $r");
}

/* The newest checkpoint then has another order, or none that is a text. */
static void set_sum(const char *run, const char *sum) {
    char what[256];
    snprintf(what, sizeof what,
             "sed -i 's/\"sum\": \"blocks32\",$/\"sum\": %s,/' "
             "$r/checkpoints/step-10/manifest.json && grep -q '\"sum\": %s,$' "
             "$r/checkpoints/step-10/manifest.json",
             sum, sum);
    shell_of_run(run, what);
}

static void begin(const char *run, const char *more) {
    expectf(75, NULL, TRAIN BF16 "-n 2 --until 10 -o @/%s %s", run, more);
}

/* The output does not mention an order. */
static void says_nothing(const char *what, const char *more) {
    char *output = output_of("%s %s", what, more);
    if (strstr(output, "sum:") || strstr(output, "\"sum\"") || strstr(output, "blocks32"))
        fail_msg("%s %s\n%s", what, more, output);
    free(output);
}

static void test_plan(void **state) {
    (void)state;
    static const char PLAN[] = "plan configs/tiny.yaml -n 2 " SMALLER;
    expectf(0, " actions a step\nsum: blocks32, the order of products in bf16\n\n", "%s" BF16,
            PLAN);
    expectf(0, ", \"sum\": \"blocks32\", ", "%s" BF16 "--json", PLAN);
    says_nothing(PLAN, "");
    says_nothing(PLAN, "--set train.compute=f16");
    says_nothing(PLAN, "--json");
}

/* Each way to write a checkpoint; a run in f32 has no name of an order. */
static void test_written(void **state) {
    (void)state;
    static const char *const ways[] = {"-n 2", "-n 2 --set parallel.transport=thread",
                                       "-n 2 --set sync.mode=async"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char run[16];
        snprintf(run, sizeof run, "way-%zu", i);
        expectf(0, NULL, TRAIN BF16 "-o @/%s %s", run, ways[i]);
        shell_of_run(run, "for s in 10 20; do grep -q '\"sum\": \"blocks32\"' "
                          "$r/checkpoints/step-$s/manifest.json || exit 1; done; "
                          "grep '\"started\"' $m | grep -q '\"sum\": \"blocks32\", '");
        expectf(0, NULL, "ckpt verify @/%s", run);
    }
    expect(TRAIN "-n 2 -o @/f32", 0, NULL);
    shell_of_run("f32", "! grep -rq '\"sum\"' $r");
}

/* The run goes on, and one line says so; its later checkpoints have the name. */
static void test_older(void **state) {
    (void)state;
    begin("older", "");
    make_older("older");
    char *output = output_of("train --resume @/older -n 1");
    assert_int_equal(occurrences(output, "was written by an older version"), 1);
    assert_output_has(output, "older/checkpoints/step-10: " OLDER
                              "11 on the order is blocks32, so the bits will not be those that the "
                              "older version would have computed; this is no error\n");
    free(output);
    shell_of_run("older", "grep -q '\"sum\": \"blocks32\"' $r/checkpoints/step-20/manifest.json && "
                          "! grep -q '\"sum\"' $r/checkpoints/step-10/manifest.json");
    says_nothing("train --resume @/older", ""); /* it is complete */
    begin("own", "");
    says_nothing("train --resume @/own", "");
    expect(TRAIN "-n 2 -o @/plain --until 10", 75, NULL);
    says_nothing("train --resume @/plain", "");
    begin("complete", ""); /* no step follows that could have other bits */
    make_older("complete");
    says_nothing("train --resume @/complete", "--set train.steps=10");
}

static void test_unknown(void **state) {
    (void)state;
    char before[256];
    begin("unknown", "");
    set_sum("unknown", "\"blocks64\"");
    hash_of("unknown", before);
    for (int n = 1; n <= 2; n++) {
        char line[64];
        snprintf(line, sizeof line, "train --resume @/unknown -n %d", n);
        expect_line(
            line, 1,
            "unknown/checkpoints/step-10: its run sums products in the order 'blocks64' (sum "
            "in manifest.json), which this version does not have; continue with the version "
            "that wrote it, or begin a new run, which can take its weights (train.from)\n");
    }
    assert_hash("unknown", before);
    assert_false(file_exists("unknown/checkpoints/step-20"));
    /* who only reads the weights does not care */
    expect("ckpt verify @/unknown", 0, NULL);
    expect("ckpt export @/unknown --to @/unknown.safetensors", 0, NULL);
    expect("generate @/unknown --tokens 3", 0, NULL);
    expect("eval @/unknown", 0, NULL);
    expect(TRAIN BF16 "-n 1 -o @/from --set train.from=@/unknown", 0, NULL);
    begin("number", "");
    set_sum("number", "32");
    expect("train --resume @/number", 1, "manifest.json: its sum is not the name of an order");
}

/* The run then claims to have the config of @/whole. */
static void take_config(const char *name) {
    shell_of_run(name, "cp whole/config.yaml $r/config.yaml");
}

/* Runs whose orders differ need not have the same bits, and the reason is named. */
static void test_compare(void **state) {
    (void)state;
    static const char REASON[] =
        "b: need not have the bits of a (their products in bf16 were summed "
        "in different orders)";
    expect(TRAIN BF16 "-n 1 -o @/whole", 0, NULL);
    expect(TRAIN BF16 "-n 1 -o @/other --set train.seed=2", 0, NULL);
    begin("resumed", "");
    expect("train --resume @/resumed", 0, NULL);
    expect("compare @/whole @/resumed", 0, "b: the same bits as a, as it must be");
    says_nothing("compare @/whole", "@/resumed");
    take_config("other");
    expect("compare @/whole @/other", 1, "b: PARTED from a");
    make_older("other");
    expect("compare @/whole @/other", 0, REASON);
    expect(
        "compare @/other @/whole", 0,
        "a: from step 1 on sum is that of an older version\nb: from step 1 on sum is blocks32\n");
    begin("half", "");
    make_older("half");
    expect("train --resume @/half", 0, "older version");
    expect("compare @/whole @/half", 0, REASON);
    expect("compare @/other @/half --json", 0,
           "\"sums\": [{\"step\": 1, \"sum\": null}, {\"step\": 11, \"sum\": \"blocks32\"}], "
           "\"must_match\": false");
    shell_of_run("half", "sed -i '/started/d' $m"); /* not known, so the bits are compared */
    expect("compare @/resumed @/half --json", 0, "\"must_match\": true");
}

/* A replay could not have the bits of steps with another order. */
static void test_replay(void **state) {
    (void)state;
    expect(TRAIN BF16 "-n 2 -o @/async --set sync.mode=async", 0, NULL);
    expect("replay @/async", 0, ": the same bits after 20 steps by one worker");
    shell_of_run("async", "sed -i 's/\"sum\": \"blocks32\"/\"sum\": \"blocks64\"/' "
                          "$r/applications.jsonl && grep -q blocks64 $r/applications.jsonl");
    expect_line(
        "replay @/async", 1,
        "applications.jsonl:1: the steps from here on summed products in bf16 in the order "
        "'blocks64', and this version does in blocks32: a replay by it can't have their bits; "
        "use the version that trained them\n");
    shell_of_run("async", "sed -i 's/\"sum\": \"blocks64\", //' $r/applications.jsonl");
    expect_line("replay @/async", 1,
                "in bf16 in an older order, and this version does in blocks32");
}

/* The order of another version is named as the reason why a branch has other bits than the run. */
static void test_branch(void **state) {
    (void)state;
    static const char BATCH[] = "batch @/trunk --at 10 --branch 1,2 -n 1";
    begin("trunk", "");
    shell_of_run("trunk", "cp -r trunk other-rate");
    expect("train --resume @/trunk", 0, NULL);
    expect("train --resume @/other-rate --set optim.lr=0.01", 0, NULL);
    shell_of_run("trunk", "rm -r $r/checkpoints/step-20 && "
                          "cp -r other-rate/checkpoints/step-20 $r/checkpoints/");
    expect(BATCH, 0, "branch 1 has OTHER bits than the run at its last step");
    shell_of_run("trunk", "sed -i '/\"sum\"/d' $r/checkpoints/step-20/manifest.json");
    expect(
        BATCH, 0,
        "branch 1 has other bits than the run at its last step, as one of them summed products in "
        "bf16 in the order of another version (sum)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),   cmocka_unit_test(test_written),
        cmocka_unit_test(test_older),  plain_unit_test(test_unknown),
        plain_unit_test(test_compare), cmocka_unit_test(test_replay),
        plain_unit_test(test_branch),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
