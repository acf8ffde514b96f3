/* ctest: seconds=3 */
/* results_test.c - a classifier of images from a config: metrics, and the pictures that a run
 * leaves: which classes it takes for which, its worst mistakes. */
#include <png.h>

#include "cli/program.h"
#include "report/frame_check.h"

enum { RECORD = 3073, NRECORDS = 120 };

/* CIFAR images of one colour; the class follows from it, but for some that are wrong. */
static int make(void **state) {
    static uint8_t cifar[NRECORDS * RECORD];
    if (folder_make(state)) return -1;
    for (int i = 0; i < NRECORDS; i++) {
        cifar[i * RECORD] = (uint8_t)(i % 7 == 3 ? 9 - i % 10 : i % 10);
        memset(cifar + i * RECORD + 1, 25 * (i % 10), RECORD - 1);
    }
    write_file("train.bin", cifar, sizeof cifar);
    return 0;
}

#define RUN                                                                                        \
    "train configs/tiny.yaml --set model.kind=mlp --set model.hidden=8 --set "                     \
    "data.path=@/train.bin --set data.format=cifar --set data.val_fraction=0.3 "                   \
    "--set train.batch=8 --set train.steps=6 --set train.eval_every=3 --set checkpoint.every=6 "

/* Wrong samples of a class, as the list has them. */
static void check_list(const char *name, int64_t *rows_p) {
    char path[256], line[256];
    double loss = 0, last = 1e9;
    int label = 0, predicted = 0, sample = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line,
                        "sample,loss,label,label_name,predicted,predicted_name,record,name\n");
    for (*rows_p = 0; fgets(line, sizeof line, f); ++*rows_p) {
        assert_int_equal(
            sscanf(line, "%d,%lf,%d,\"%*[a-z]\",%d", &sample, &loss, &label, &predicted), 4);
        assert_true(label != predicted && loss <= last);
        last = loss;
    }
    fclose(f);
}

/* 30 images of noise, each with its kind in a member of JSON. */
static void write_archive(void) {
    static uint8_t pixels[8 * 8 * 3];
    char name[300], json[64];
    shellf("mkdir %s/kinds", folder);
    for (int i = 0; i < 30; i++) {
        png_image image = {.version = PNG_IMAGE_VERSION, .width = 8, .height = 8};
        image.format = PNG_FORMAT_RGB;
        for (size_t k = 0; k < sizeof pixels; k++)
            pixels[k] = (uint8_t)(((size_t)i * 77 + k * k * 31) % 251);
        snprintf(name, sizeof name, "%s/kinds/%02d.png", folder, i);
        assert_true(png_image_write_to_file(&image, name, 0, pixels, 0, NULL));
        snprintf(name, sizeof name, "kinds/%02d.json", i);
        snprintf(json, sizeof json, "{\"kind\": \"%s\"}", i % 2 ? "red, \\\"deep\\\"" : "blue");
        write_file(name, json, strlen(json));
    }
    shellf("cd %s/kinds && tar cf ../kinds.tar *", folder);
}

/* Classes have their names whatever their field is called; a metric that is asked for is the usual
 * one, with its name. */
static void test_other_field(void **state) {
    (void)state;
    static const char config[] =
        "model: {kind: cnn, channels: [4], loss: {cross_entropy: {target: kind}}, metrics: "
        "[confusion]}\n"
        "data: {val_fraction: 0.5}\n"
        "train: {steps: 2, batch: 8, virtual_workers: 2}\n"
        "optim: {warmup: 1}\n";
    ls_buf b = {0};
    ls_error e = {0};
    char *path = ls_format("%s/kinds-run/mistakes.csv", folder);
    write_archive();
    write_file("kinds.yaml", config, strlen(config));
    expect("train @/kinds.yaml -o @/kinds-run --set data.path=@/kinds.tar", 0,
           "confusion matrix: ");
    assert_ls_ok(ls_file_read(path, 1 << 20, &b, &e), e);
    ls_buf_append(&b, "", 1);
    assert_output_has(b.data, ",\"red, \"\"deep\"\"\",");
    assert_output_has(b.data, ",\"blue\",");
    assert_true(file_exists("kinds-run/confusion.svg"));
    assert_false(file_exists("kinds-run/confusio.svg"));
    ls_buf_free(&b);
    free(path);
}

static void test_results(void **state) {
    (void)state;
    int64_t rows = 0;
    char *output = output_of(RUN "-n 2 -o @/two");
    assert_output_has(output, "accuracy 0.");
    assert_output_has(output, ", of 36 samples\n");
    assert_output_has(output, "confusion matrix: ");
    assert_output_has(output, "the worst mistakes: ");
    free(output);
    output = output_of(RUN "-n 1 -o @/one");
    free(output);
    static const char *const left[] = {"confusion.svg", "mistakes.svg", "mistakes.csv"};
    for (int i = 0; i < 3; i++) { /* the same for any number of workers */
        shellf("cmp %s/one/%s %s/two/%s", folder, left[i], folder, left[i]);
    }
    shellf("grep -q 'automobile' %s/one/confusion.svg", folder);
    check_list("one/mistakes.csv", &rows);
    assert_true(rows > 0 && rows <= 36);
    frame_check_file(folder, "one/mistakes.svg");
    shellf("test $(grep -c '^<image ' %s/one/mistakes.svg) = %lld", folder, (long long)rows);
    shellf("grep -q '\"val_accuracy\": 0.*\"val_top5\": 0' %s/one/metrics.jsonl", folder);
}

static void test_eval(void **state) {
    (void)state;
    expect("eval @/two", 0, ", accuracy 0.");
    expect("eval @/two --json", 0, "\"metrics\": {\"accuracy\": 0.");
}

/* Several inputs, losses and metrics, and weights, from JSON lines. */
static void test_several(void **state) {
    (void)state;
    static const char config[] =
        "model:\n"
        "  kind: layers\n"
        "  layers:\n"
        "    - embedding: {of: user, rows: 7, width: 3, name: users}\n"
        "    - concat: [users, x]\n"
        "    - relu: {name: h}\n"
        "    - linear: {out: 3, name: kind}\n"
        "    - linear: {of: h, out: 1, name: cost}\n"
        "  loss:\n"
        "    - cross_entropy: {of: kind}\n"
        "    - mean_squared_error: {of: cost, target: price, factor: 2}\n"
        "  sample_weight: weight\n"
        "  metrics: [r2: {target: price}, confusion: {target: label, name: "
        "kinds}]\n"
        "data: {val_fraction: 0.3}\n"
        "train: {steps: 5, batch: 6, virtual_workers: 6, micro_batch: 1}\n"
        "optim: {warmup: 0}\n";
    ls_buf lines = {0};
    for (int i = 0; i < 60; i++)
        ls_buf_printf(
            &lines,
            "{\"user\": %d, \"x\": [%d, 0.5], \"label\": %d, \"price\": %d.5, \"unread\": "
            "[1, 2], \"weight\": %d}\n",
            i % 7, i % 5, i % 3, i % 4, i % 2 + 1);
    write_file("several.jsonl", lines.data, lines.len);
    write_file("several.yaml", config, sizeof config - 1);
    ls_buf_free(&lines);
#define SEVERAL "train @/several.yaml --set data.path=@/several.jsonl --set "
    expect(SEVERAL "parallel.zero=1 -n 1 -o @/s1", 0, ", r2 ");
    expect(SEVERAL "parallel.zero=3 -n 3 -o @/s3", 0, "confusion matrix: ");
    char *one = output_of("ckpt hash @/s1");
    char *two = output_of("ckpt hash @/s3");
    assert_string_equal(one, two);
    free(one);
    free(two);
    shellf("cmp %s/s1/kinds.svg %s/s3/kinds.svg", folder, folder);
    expect("eval @/s1 --json", 0, "\"metrics\": {\"r2\": ");
    expect("check @/several.yaml --set data.path=@/several.jsonl", 0, "users ");
    expect(SEVERAL "model.metrics=[rmse] -o @/bad", 1,
           "--set:1: rmse: the model has several losses; name the field");
}

/* Lists of ids: the bits do not depend on the places that an input has for them. */
static void test_lists(void **state) {
    (void)state;
    ls_buf lines = {0};
    for (int i = 0; i < 60; i++) {
        ls_buf_printf(&lines, "{\"label\": %d, \"words\": [", i % 2);
        for (int k = 0; k < i % 6; k++) ls_buf_printf(&lines, "%s%d", k ? ", " : "", (i + k) % 9);
        ls_buf_printf(&lines, "]}\n");
    }
    write_file("lists.jsonl", lines.data, lines.len);
    ls_buf_free(&lines);
    for (int places = 3; places <= 31; places += 28) {
        char name[32];
        snprintf(name, sizeof name, "lists%d.yaml", places);
        char *config = ls_format("model:\n"
                                 "  kind: layers\n"
                                 "  input: {words: {type: i32, dims: [%d]}}\n"
                                 "  layers: [embedding_sum: {rows: 9, width: 4}, linear: 2]\n"
                                 "data: {val_fraction: 0.2}\n"
                                 "train: {steps: 6, batch: 8}\n"
                                 "optim: {warmup: 0}\n",
                                 places);
        write_file(name, config, strlen(config));
        free(config);
    }
#define LISTS(places) "train @/lists" places ".yaml --set data.path=@/lists.jsonl "
    expect(LISTS("31") "-n 1 --set model.input= -o @/l1", 0, "accuracy ");
    expect(LISTS("31") "-n 3 -o @/l3", 0, "accuracy ");
    char *first = output_of("ckpt hash @/l1");
    char *again = output_of("ckpt hash @/l3");
    assert_string_equal(first, again);
    free(first);
    free(again);
    expect(LISTS("3") "-o @/l4", 1,
           "numbers, and the model takes 3; let its input have more, or set data.lists: cut");
    expect(LISTS("3") "--set data.lists=cut -o @/l5", 0, "accuracy ");
    expect("data @/lists.jsonl", 0, "field      words: i32 list of at most 5, 20 bytes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_field), cmocka_unit_test(test_results),
        cmocka_unit_test(test_eval), cmocka_unit_test(test_several), cmocka_unit_test(test_lists)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
