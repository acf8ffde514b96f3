/* order_test.c - runs whose samples are ordered by blocks, whose images are changed at random, and
 * whose samples are a mixture of sources: the same bits for any layout and number of threads, also
 * resumed, and a clean ledger. */
/* ctest: slow seconds=3 */
#include "cli/program.h"

enum { SIDE = 8, N = 300 };

static char alone[256]; /* `ckpt hash` of the run with one worker */

/* Images of noise around a bar whose place is the class, sorted by class. */
static int make(void **state) {
    static uint8_t images[16 + N * SIDE * SIDE] = {0, 0, 8, 3,    0, 0, N >> 8, N & 255,
                                                   0, 0, 0, SIDE, 0, 0, 0,      SIDE};
    static uint8_t labels[8 + N] = {0, 0, 8, 1, 0, 0, N >> 8, N & 255};
    unsigned seed = 1;
    if (folder_make(state)) return -1;
    for (int i = 0; i < N; i++) {
        labels[8 + i] = (uint8_t)(3 * i / N);
        for (int k = 0; k < SIDE * SIDE; k++) {
            seed = seed * 1103515245u + 12345u;
            bool bar = k / SIDE == 2 * labels[8 + i] + 1;
            images[16 + i * SIDE * SIDE + k] = (uint8_t)((seed >> 16) % 100 + (bar ? 120 : 0));
        }
    }
    write_file("images-idx3-ubyte", images, sizeof images);
    write_file("labels-idx1-ubyte", labels, sizeof labels);
    return 0;
}

/* data: lines of the group `data`, in which "@" stands for the directory. */
static void train_on(const char *run, const char *data, const char *more, int code,
                     const char *says) {
    char name[64];
    ls_buf text = {0};
    ls_buf_printf(&text, "model: {kind: mlp, classes: 3, input: {image: [8, 8, 1]}}\n"
                         "train: {steps: 50, batch: 16, virtual_workers: 4, eval_every: 0}\n"
                         "checkpoint: {every: 20, keep: 3}\n"
                         "data:\n");
    for (const char *s = data; *s; s++)
        if (*s == '@')
            ls_buf_printf(&text, "%s/", folder);
        else
            ls_buf_append(&text, s, 1);
    snprintf(name, sizeof name, "%s.yaml", run);
    write_file(name, text.data, text.len);
    ls_buf_free(&text);
    expectf(code, says, "train @/%s.yaml -o @/%s %s", run, run, more);
}

/* augment: the value of data.augment; NULL: none. */
static void train(const char *run, const char *augment, const char *more, int code,
                  const char *says) {
    char data[512];
    snprintf(data, sizeof data,
             "  path: \"@images-idx3-ubyte\"\n  labels: \"@labels-idx1-ubyte\"\n"
             "  format: idx\n%s%s\n",
             augment ? "  augment: " : "", augment ? augment : "");
    train_on(run, data, more, code, says);
}

#define CHANGES "[{pad: 1}, {crop: 8}, {flip: 0.5}, {cutout: 2}]"
#define BLOCKS  "--set data.order=blocks --set data.block=8 --set data.window=4 "

static void has_hash(const char *run, const char *hash, bool same) {
    char own[256];
    hash_of(run, own);
    assert_int_equal(strcmp(own, hash) == 0, same);
    expectf(0, "was used exactly once in each of 2 complete epochs", "ckpt ledger @/%s", run);
}

static void test_same_bits(void **state) {
    (void)state;
    train("alone", CHANGES, BLOCKS "-n 1", 0, "285 training samples of image u8 [8, 8, 1]");
    hash_of("alone", alone);
    has_hash("alone", alone, true);
    train("two", CHANGES, BLOCKS "-n 2 --set data.threads=3", 0, "waited for data: ");
    has_hash("two", alone, true);
    train("three", CHANGES, BLOCKS "-n 3 --set parallel.transport=thread", 0, NULL);
    has_hash("three", alone, true);
}

static void test_resumed(void **state) {
    (void)state;
    shell_of_run("resumed", "cp -r alone $r && rm -r $r/checkpoints/step-[45]0 "
                            "$r/checkpoints/latest");
    train("resumed", CHANGES, BLOCKS "-n 2 --resume", 0, "continuing from");
    has_hash("resumed", alone, true);
    train("resumed", CHANGES, "--resume", 1,
          "data.order is \"auto\", but the run began with \"blocks\"");
    train("resumed", NULL, BLOCKS "--resume", 1, "data.augment");
}

/* Each key matters. */
static void test_differ(void **state) {
    (void)state;
    train("plain", NULL, BLOCKS "-n 1", 0, NULL);
    has_hash("plain", alone, false);
    train("global", CHANGES, "-n 1", 0, NULL);
    has_hash("global", alone, false);
}

static void test_refused(void **state) {
    (void)state;
    train("bad", "[{crop: 9}]", "", 1,
          "'image' is 8 pixels high and 8 wide at step 1 of data.augment, which crops to 9x9");
    train("bad", "[{crop: 7}]", "", 1, "field 'image' is u8 [7, 7, 1]; the model's");
    train("bad", "[{turn: 9}]", "", 1, "data.augment: step 1: 'turn' is not a step");
    train("bad", "flip", "", 1, "data.augment");
    train("bad", CHANGES, "--set model.kind=gpt2 --set data.format=text --set data.labels=", 1,
          "not used, since other keys are set: model.input, model.classes, data.augment");
    assert_false(file_exists("bad"));
}

/* ---- mixtures ---- */

#define SETS "  mix:\n    - {path: \"@images-idx3-ubyte\", labels: \"@labels-idx1-ubyte\"}\n"
#define MORE "    - {path: \"@more-idx3-ubyte\", labels: \"@more-idx1-ubyte\", weight: %s}\n"

static void mix(const char *run, const char *weight, const char *more, int code, const char *says) {
    char data[512];
    snprintf(data, sizeof data, SETS MORE, weight);
    train_on(run, data, more, code, says);
}

/* 285 of the first 300 samples are trained on, and 19 of the 20 others. */
static void test_mix(void **state) {
    (void)state;
    char hash[256];
    shell_of_run("more", "(printf '\\0\\0\\010\\003\\0\\0\\0\\024\\0\\0\\0\\010\\0\\0\\0\\010';"
                         " tail -c 1280 images-idx3-ubyte) > more-idx3-ubyte && "
                         "(printf '\\0\\0\\010\\001\\0\\0\\0\\024'; tail -c 20 labels-idx1-ubyte) "
                         "> more-idx1-ubyte");
    mix("mixed", "2.5", "-n 1", 0,
        " 333 training samples of image u8"); /* 285 + 19 * 2.5 = 332.5 */
    hash_of("mixed", hash);
    has_hash("mixed", hash, true);
    mix("mixed2", "2.5", "-n 2 --set data.threads=2", 0, NULL);
    has_hash("mixed2", hash, true);
    mix("equal", "1", "-n 1", 0, " 304 training samples of image u8");
    has_hash("equal", hash, false);
    shell_of_run("half", "cp -r mixed $r && rm -r $r/checkpoints/step-[45]0 $r/checkpoints/latest");
    mix("half", "2", "--resume", 1, "source 2 has weight 2, but the run began with 2.5");
    mix("half", "2.5", "-n 3 --resume", 0, "continuing from");
    has_hash("half", hash, true);
}

static void test_mix_refused(void **state) {
    (void)state;
    mix("bad", "0", "", 1, "data.mix: source 2: weight: '0' is not a number from 0.001 to 1000");
    mix("bad", "1, wait: 2", "", 1, "source 2: 'wait' is not a key of a source; these are path");
    mix("bad", "1", "--set data.path=x", 1,
        "data.mix does not go with data.path: data.mix names all sources");
    train_on("bad", "  mix: [{weight: 2}]\n", "", 1, "data.mix: source 1 has no path");
    train_on("bad", SETS "    - {path: \"@labels-idx1-ubyte\"}\n", "", 1,
             "labels-idx1-ubyte: its field ");
    train_on("bad", SETS "    - {path: \"@none\"}\n", "", 1, "none: can't be opened");
    assert_false(file_exists("bad"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_differ),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_mix),       cmocka_unit_test(test_mix_refused)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
