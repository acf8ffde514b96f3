/* run_directory_test.c - a run directory in which something was exchanged, edited, linked or taken
 * from another run: `--resume` continues to the bits of the undisturbed run, or refuses with a line
 * that names the file or the key. */
/* ctest: slow seconds=4 */
#include "cli/program.h"

#define SETTINGS                                                                                   \
    "--set train.steps=12 --set train.eval_every=0 --set checkpoint.every=4 "                      \
    "--set checkpoint.keep=9 --set log.every=1000 -n 1 "

static char bits[2][256]; /* hashes of the undisturbed runs: on a text, on samples */

static void shell(const char *line) { shellf("cd '%s' && %s", folder, line); }

static void begin(const char *run, const char *config, const char *more) {
    expectf(75, NULL, "train %s -o @/%s --until 4 %s%s", config, run, SETTINGS, more);
    expectf(75, NULL, "train --resume @/%s --until 8", run);
}

static void finish(const char *run, char hash[256]) {
    char line[512];
    snprintf(line, sizeof line, "cp -r %s end", run);
    shell(line);
    expect("train --resume @/end", 0, NULL);
    hash_of("end", hash);
    shell("rm -r end");
}

static int make_runs(void **state) {
    if (folder_make(state) != 0) return -1;
    shell("(echo a,b,label; for i in 1 2 3 4 5 6 7 8 9; do echo $i,$((i * i % 7)),c$((i % 3)); "
          "done) > s.csv;"
          "sed s/c1/c2/ s.csv > t.csv; "
          "printf 'model: {kind: mlp, hidden: [4]}\ndata: {val_fraction: 0.2}\n"
          "train: {batch: 4, virtual_workers: 4}\noptim: {warmup: 0}\n' > mlp.yaml; echo kept > "
          "victim");
    begin("text", "configs/tiny.yaml", SMALLER);
    begin("text-b", "configs/tiny.yaml", SMALLER "--set train.seed=7 --set model.vocab=299");
    begin("samples", "@/mlp.yaml", "--set data.path=@/s.csv");
    begin("samples-b", "@/mlp.yaml", "--set data.path=@/t.csv");
    finish("text", bits[0]);
    finish("samples", bits[1]);
    return 0;
}

typedef struct damage {
    int samples;      /* 1: the run on samples is damaged; 0: that on a text */
    const char *does; /* shell commands; the run is x, the other one b */
    const char *says; /* "": the run goes on to its bits; *...: also, and this line is printed */
} damage;

/* In place of the checkpoint of step 8. */
#define IN_ITS_PLACE(from) "rm -r x/checkpoints/step-8; cp -r " from " x/checkpoints/step-8"
#define LINK(name)         "mv x/" name " y; ln -s ../y x/" name

static const damage damages[] = {
    {0, "true", ""},
    /* checkpoints */
    {0, IN_ITS_PLACE("x/checkpoints/step-4"), "*step-8: is a checkpoint of step 4 by its manifest"},
    {0, IN_ITS_PLACE("b/checkpoints/step-8"), "*x/config.yaml does not go with it: "},
    {0, "rm -r x/checkpoints; cp -r b/checkpoints x", "x/config.yaml does not go with it: "},
    {0, "cp b/checkpoints/step-8/model.safetensors x/checkpoints/step-8", "*skipping"},
    {0, "cp b/checkpoints/step-8/manifest.json x/checkpoints/step-8", "*skipping"},
    {0, "cp b/checkpoints/step-8/config.yaml x/checkpoints/step-8", "*skipping"},
    {0, "rm x/checkpoints/step-8/manifest.json", "*skipping"},
    {0, "ln -sfn step-4 x/checkpoints/latest", ""},
    {0, "ln -sfn ../../b/checkpoints/step-8 x/checkpoints/latest", ""},
    {0, "rm -r x/checkpoints/step-8; ln -s ../../b/checkpoints/step-8 x/checkpoints/step-8",
     "*skip"},
    /* the config */
    {0, "sed -i 's/seed: .*/seed: 7/' x/config.yaml", "train.seed is 7, but the run began with 1"},
    {0, "sed -i 's/  ema: .*/  ema: 0.5/' x/config.yaml",
     "optim.ema is 0.5, but the run began with"},
    {0, "sed -i 's/  batch: .*/  batch: 24/' x/config.yaml",
     "train.batch is 24, but the run began"},
    {0, "cp b/config.yaml x", "x/config.yaml does not go with it: "},
    {0, "echo 'train: [' > x/config.yaml", "x/config.yaml:"},
    {0, LINK("config.yaml"), "x/config.yaml: is a link, where a file of Lockstep's own is to be"},
    /* a text */
    {0, "cp b/tokenizer.json x", "x/tokens.bin: is for 300 tokens, the tokenizer has 299"},
    {0, "cp b/corpus.json x", "its corpus.json is not that of the run; put the right "},
    {0, "cp b/corpus.json b/tokenizer.json b/tokens.bin x", "x/corpus.json back, or remove it"},
    {0, "cp b/tokens.bin x", "x/tokens.bin: is for 299 tokens, the tokenizer has 300"},
    {0, "truncate -s 50 x/corpus.json", "x/corpus.json"},
    {0, "rm x/tokens.bin x/tokenizer.json x/corpus.json", "*was missing"},
    {0, LINK("tokens.bin"), ""},
    {0, LINK("tokenizer.json"), ""},
    /* samples */
    {1, "true", ""},
    {1, "cp b/data.json x", "its data.json is not that of the run"},
    {1, "sed -i s/c2/c9/ x/data.json", "x/data.json: texts of the data have other numbers there"},
    {1, "rm x/data.json", "*was missing"},
    {1, LINK("data.json"), ""},
    {1, IN_ITS_PLACE("b/checkpoints/step-8"),
     "*x/config.yaml does not go with it: model.classes is 3"},
    {1, "sed -i 's,s.csv,t.csv,' x/config.yaml", "is not the data that this run was trained with"},
    /* what others read */
    {0, "cp b/metrics.jsonl x", ""},
    {0, "rm x/metrics.jsonl; ln -s ../victim x/metrics.jsonl", "x/metrics.jsonl"},
    {0, "rm -f x/lock; ln -s ../victim x/lock", "x/lock"},
    {0, "cp b/lock x", ""},
    {0, "rm -f x/lock", ""},
};
enum { NDAMAGES = sizeof damages / sizeof *damages };

static bool is_right(const damage *d, int code, const char *output) {
    char hash[256] = "";
    const char *says = d->says;
    bool goes_on = !*says || *says == '*';
    if (code != (goes_on ? 0 : 1) || !strstr(output, says + (*says == '*'))) return false;
    if (goes_on) hash_of("x", hash);
    return !goes_on || strcmp(hash, bits[d->samples]) == 0;
}

static bool try(const damage *d) {
    char *output = NULL, line[256];
    const char *kind = d->samples ? "samples" : "text";
    snprintf(line, sizeof line, "rm -rf x y b; cp -r %s x; cp -r %s-b b", kind, kind);
    shell(line);
    shell(d->does);
    int code = run_program("train --resume @/x", &output);
    bool right = is_right(d, code, output);
    if (!right) print_error("%s: exit code %d\n%s", d->does, code, output);
    free(output);
    shell("echo kept | cmp - victim");
    return right;
}

static void test_damages(void **state) {
    (void)state;
    int wrong = 0;
    for (int i = 0; i < NDAMAGES; i++)
        if (runs_case(i, 3)) wrong += !try(&damages[i]);
    assert_int_equal(wrong, 0);
}

/* `ckpt verify` says the same of a checkpoint as --resume. */
static void test_verify(void **state) {
    (void)state;
    shell("rm -rf x b; cp -r text x; cp -r text-b b; " IN_ITS_PLACE("b/checkpoints/step-8"));
    expect_line("ckpt verify @/x", 1, "/x/config.yaml does not go with it: ");
    expect_line("ckpt verify @/x/checkpoints/step-8", 1, "/x/config.yaml does not go with it: ");
    expect_line("ckpt verify @/x/checkpoints/step-4", 0, "good: step 4");
    expect_line("eval @/x", 1, "/x/config.yaml does not go with it: ");
    shell("rm -r x/checkpoints/step-8; cp -r x/checkpoints/step-4 x/checkpoints/step-8");
    expect_line("ckpt verify @/x", 1,
                "step-8: is a checkpoint of step 4 by its manifest.json; an "
                "older checkpoint is good");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damages),
                                       cmocka_unit_test(test_verify)};
    return cmocka_run_group_tests(tests, make_runs, folder_remove);
}
