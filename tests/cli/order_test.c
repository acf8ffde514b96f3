/* order_test.c - runs whose samples are ordered by blocks, and whose images are changed at random:
 * the same bits for any layout and number of threads, also resumed, and a clean ledger. */
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

/* augment: the value of data.augment; NULL: none. */
static void train(const char *run, const char *augment, const char *more, int code,
                  const char *says) {
    char text[1024], line[512], name[64];
    int n = snprintf(text, sizeof text,
                     "model: {kind: mlp, classes: 3, input: {image: [8, 8, 1]}}\n"
                     "data:\n"
                     "  path: %s/images-idx3-ubyte\n"
                     "  labels: %s/labels-idx1-ubyte\n"
                     "  format: idx\n"
                     "%s%s\n"
                     "train: {steps: 50, batch: 16, virtual_workers: 4, eval_every: 0}\n"
                     "checkpoint: {every: 20}\n",
                     folder, folder, augment ? "  augment: " : "", augment ? augment : "");
    snprintf(name, sizeof name, "%s.yaml", run);
    write_file(name, text, (size_t)n);
    snprintf(line, sizeof line, "train @/%s.yaml -o @/%s %s", run, run, more);
    expect(line, code, says);
}

#define CHANGES "[{pad: 1}, {crop: 8}, {flip: 0.5}, {cutout: 2}]"
#define BLOCKS  "--set data.order=blocks --set data.block=8 --set data.window=4 "

static void has_hash(const char *run, const char *hash, bool same) {
    char own[256], line[128];
    hash_of(run, own);
    assert_int_equal(strcmp(own, hash) == 0, same);
    snprintf(line, sizeof line, "ckpt ledger @/%s", run);
    expect(line, 0, "was used exactly once in each of 2 complete epochs");
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
          "data.augment is for samples of files, and this run trains on a text");
    assert_false(file_exists("bad"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_differ), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
