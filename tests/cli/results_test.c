/* ctest: seconds=3 */
/* results_test.c - a classifier of images from a config: metrics, and the pictures that a run leaves:
 * which classes it takes for which, its worst mistakes. */
#include <png.h>

#include "cli/program.h"

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
    assert_string_equal(line, "sample,loss,label,label_name,predicted,predicted_name\n");
    for (*rows_p = 0; fgets(line, sizeof line, f); ++*rows_p) {
        assert_int_equal(
            sscanf(line, "%d,%lf,%d,\"%*[a-z]\",%d", &sample, &loss, &label, &predicted), 4);
        assert_true(label != predicted && loss <= last);
        last = loss;
    }
    fclose(f);
}

static void test_results(void **state) {
    (void)state;
    char path[256], command[512];
    int64_t rows = 0, columns = 1;
    char *output = NULL;
    assert_int_equal(run_program(RUN "-n 2 -o @/two", &output), 0);
    assert_output_has(output, "accuracy 0.");
    assert_output_has(output, ", of 36 samples\n");
    assert_output_has(output, "confusion matrix: ");
    assert_output_has(output, "the worst mistakes: ");
    free(output);
    assert_int_equal(run_program(RUN "-n 1 -o @/one", &output), 0);
    free(output);
    static const char *const left[] = {"confusion.svg", "mistakes.png", "mistakes.csv"};
    for (int i = 0; i < 3; i++) { /* the same for any number of workers */
        snprintf(command, sizeof command, "cmp %s/one/%s %s/two/%s", folder, left[i], folder,
                 left[i]);
        assert_int_equal(system(command), 0);
    }
    snprintf(command, sizeof command, "grep -q 'automobile' %s/one/confusion.svg", folder);
    assert_int_equal(system(command), 0);
    check_list("one/mistakes.csv", &rows);
    assert_true(rows > 0 && rows <= 36);
    while (columns * columns < rows) columns++;
    snprintf(path, sizeof path, "%s/one/mistakes.png", folder);
    png_image image = {.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_file(&image, path));
    assert_int_equal(image.width, 2 + columns * 34);
    png_image_free(&image);
    snprintf(command, sizeof command,
             "grep -q '\"val_accuracy\": 0.*\"val_top5\": 0' %s/one/metrics.jsonl", folder);
    assert_int_equal(system(command), 0);
}

static void test_eval(void **state) {
    (void)state;
    expect("eval @/two", 0, ", accuracy 0.");
    expect("eval @/two --json", 0, "\"metrics\": {\"accuracy\": 0.");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_results), cmocka_unit_test(test_eval)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
