/* samples_test.c - lockstep data: what it prints of files, for people and for programs, the contact
 * sheet, damage. */
#include "cli/program.h"

#include <math.h>
#include <png.h>

#include "base/base64.h"
#include "base/json.h"
#include "report/frame_check.h"

enum { RECORD = 3073, NRECORDS = 5 };

/* Record i of a CIFAR file: label i, all red 10 i, green 10 i + 1, blue 10 i + 2. */
static int make(void **state) {
    static uint8_t cifar[NRECORDS * RECORD], bad[NRECORDS * RECORD];
    char command[512];
    if (folder_make(state)) return -1;
    snprintf(command, sizeof command, "cd %s && mkdir sorted chats texts", folder);
    if (system(command) != 0) return -1;
    for (int i = 0; i < NRECORDS; i++) {
        cifar[i * RECORD] = (uint8_t)i;
        for (int k = 0; k < 3072; k++) cifar[i * RECORD + 1 + k] = (uint8_t)(10 * i + k / 1024);
    }
    memcpy(bad, cifar, sizeof bad);
    bad[2 * RECORD] = 99;
    write_file("data_batch_1.bin", cifar, sizeof cifar);
    write_file("data_batch_2.bin", bad, sizeof bad);
    return 0;
}

static void test_print(void **state) {
    (void)state;
    char *output = output_of("data @/data_batch_1.bin --samples 2");
    assert_output_has(output, "format     cifar\n");
    assert_output_has(output, "samples    5 of 3076 bytes\n");
    assert_output_has(output, "field      image: u8 [32, 32, 3], 3072 bytes\n");
    assert_output_has(output, "1 of 3 (cat), mean 0.118 0.122 0.125\n");
    assert_output_has(output,
                      "sample 1   image 10 11 12 10 11 12 10 11 ...  label 1 (automobile)\n");
    assert_null(strstr(output, "sample 2"));
    assert_output_has(output, "good       every sample was read\n");
    free(output);
    expect("data @/data_batch_1.bin @/data_batch_1.bin", 0, "samples    5 "); /* taken once */
}

static void test_damage(void **state) {
    (void)state;
    expect("data @/data_batch_*.bin --check", 1,
           "data_batch_2.bin: record 2, at offset 6146, has label 99");
    expect("data @/data_batch_*.bin --skip-damaged", 0, "damaged    1 record, left out");
    expect("data @/data_batch_*.bin --skip-damaged", 0, "samples    9 of 3076 bytes");
    expect_line("data @/none", 1, "/none: can't be opened");
    expect_line("data @/none*", 1, "no file matches");
    expect_line("data @/data_batch_1.bin --format idx", 1, "is not an IDX file");
    expect_line("data @/data_batch_1.bin --format dix", 1, "data.format: 'dix' is not one of");
    expect_line("data @/data_batch_1.bin --window 0", 2, "is not a whole number from 1");
    expect_line("data", 2, "data: FILE is missing; see");
}

/* What writes a data set of them is named. */
static void test_tables_of_others(void **state) {
    (void)state;
    static const char parquet[] = "PAR1\x15\0\x15\xff...PAR1", arrow[] = "ARROW1\0\0\xff\xff";
    write_file("x.parquet", parquet, sizeof parquet - 1);
    write_file("x.arrow", arrow, sizeof arrow - 1);
    expect_line("data @/x.parquet", 1,
                "x.parquet: is a Parquet file, which is not read; in Python, "
                "lockstep.data.write(\"DIR\", \"FILE\") writes a data set that is");
    expect_line("data @/x.parquet --set data.columns=[a]", 1, "is a Parquet file, which is not");
    expect_line("data @/x.arrow", 1, "is an Arrow file, which is not read; in Python, ");
    expect("train configs/tiny.yaml -o @/none --set data.path=@/x.parquet", 1,
           "x.parquet: is a Parquet file, not a text; in Python, lockstep.data.write(");
}

/* Files are read as the keys of a config say. */
static void test_set(void **state) {
    (void)state;
    static const char rows[] = "7:ann:4,5\n8:bob:-9\n";
    write_file("r.txt", rows, sizeof rows - 1);
#define FORM "--set data.csv={separator:\t':',\tdecimal:\t',',\theader:\tno} "
    expect("data @/r.txt", 0, "text");
    expect("data @/r.txt " FORM, 0, "cells are separated by :, lines end in LF, numbers have");
    expect("data @/r.txt " FORM "--set data.columns=[column3] --set data.na=[-9] --missing drop", 0,
           "sample 0   column3 4.5\n");
    expect("data @/r.txt " FORM "--set data.ratings={user:\tcolumn1,\titem:\tcolumn2}", 0,
           "sample 1   user 1  items 1");
    expect_line("data @/data_batch_1.bin --set train.steps=3", 1,
                "lockstep data reads the keys data.csv, data.columns");
    expect_line("data @/r.txt --set data.csv={x:\t1}", 1, "data.csv: there is no 'x'");
    expect_line("data README.md --set data.resize=3", 2,
                "texts and conversations have data.text alone, and README.md is one of them");
}

static void test_json(void **state) {
    (void)state;
    ls_error e = {0};
    ls_json *j = NULL;
    char *output = output_of("data @/data_batch_1.bin --json");
    assert_ls_ok(ls_json_parse(output, strlen(output), "output", &j, &e), e);
    static const struct {
        const char *key;
        int64_t value;
    } all[] = {{"samples", 5},        {"sample_bytes", 3076}, {"files", 1},   {"read", 5},
               {"file_bytes", 15365}, {"damaged", 0},         {"left_out", 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int64_t value = -1;
        assert_true(ls_json_integer(ls_json_get(j, all[i].key), &value));
        assert_int_equal(value, all[i].value);
    }
    assert_int_equal(ls_json_count(j), 14);
    assert_int_equal(ls_json_count(ls_json_get(j, "fields")), 2);
    const ls_json *label = ls_json_at(ls_json_get(j, "labels"), 4);
    assert_string_equal(ls_json_text(ls_json_get(label, "name")), "deer");
    ls_json_free(j);
    free(output);
}

/* Image i of a sheet, read by libpng's simple interface; the caller frees its pixels. */
static uint8_t *image_of(const char *svg, int i, png_image *image) {
    static const char BEGIN[] = "data:image/png;base64,";
    for (; i >= 0; i--) {
        svg = strstr(svg, BEGIN);
        assert_non_null(svg);
        svg += strlen(BEGIN);
    }
    size_t nbytes = 0;
    char *text = strndup(svg, strcspn(svg, "\"")), *png = ls_base64_decode(text, &nbytes);
    *image = (png_image){.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_memory(image, png, nbytes));
    uint8_t *pixels = calloc(1, PNG_IMAGE_SIZE(*image));
    assert_true(png_image_finish_read(image, NULL, pixels, 0, NULL));
    free(text);
    free(png);
    return pixels;
}

static void test_sheet(void **state) {
    (void)state;
    static const char *const names[] = {"airplane", "automobile", "bird", "cat", "deer"};
    expect("data @/data_batch_1.bin --sheet @/sheet.svg --images 5", 0, NULL);
    frame_check_file(folder, "sheet.svg");
    char *svg = read_file("sheet.svg", NULL);
    for (int i = 0; i < NRECORDS; i++) {
        png_image image;
        uint8_t *pixels = image_of(svg, i, &image);
        assert_int_equal(image.format, PNG_FORMAT_RGB);
        assert_true(image.width == 32 && image.height == 32);
        for (int k = 0; k < 32 * 32 * 3; k++) assert_int_equal(pixels[k], 10 * i + k % 3);
        free(pixels);
        char caption[64];
        snprintf(caption, sizeof caption, ">%s</text>", names[i]);
        assert_output_has(svg, caption);
    }
    free(svg);
    write_file("train.bin", (uint8_t[64]){0}, 64);
    expect("data @/train.bin --window 8 --sheet @/no.svg", 1, "there are no images");
    assert_false(file_exists("no.svg"));
    expect_line("data @/data_batch_1.bin --sheet @/no.png", 2, "the name of a PNG file");
    expect("data @/data_batch_1.bin --sheet @/train.bin/x.svg", 1, "/train.bin/x.svg");
}

/* A file that is sorted by class: samples and images of each. */
static void test_balanced(void **state) {
    (void)state;
    static uint8_t sorted[120 * RECORD];
    char *output = NULL;
    for (int i = 0; i < 120; i++) {
        memset(sorted + i * RECORD, i / 40 * 100, RECORD);
        sorted[i * RECORD] = (uint8_t)(i / 40);
    }
    write_file("sorted/data_batch_1.bin", sorted, sizeof sorted);
    assert_int_equal(
        run_program("data @/sorted/data_batch_1.bin --sheet @/s.svg --images 9", &output), 0);
    assert_output_has(output, "sample 0   image 0 0");
    assert_output_has(output, "sample 40   image 100 100");
    assert_output_has(output, "sample 80   image 200 200");
    assert_output_has(output, "pixels     mean 0.392 0.392 0.392, deviation 0.320 0.320 0.320");
    free(output);
    char *svg = read_file("s.svg", NULL);
    for (int i = 0; i < 9; i++) { /* a row of each class */
        png_image image;
        uint8_t *pixels = image_of(svg, i, &image);
        assert_int_equal(pixels[0], i / 3 * 100);
        free(pixels);
    }
    free(svg);
}

/* Texts and conversations: how many there are, and what trains on them. */
static void test_texts(void **state) {
    (void)state;
    static const char chat[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": "
        "\"assistant\", \"content\": \"b\"}]}\n";
    static const char pair[] = "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n";
    char two[512];
    int n = snprintf(two, sizeof two, "%s%s", chat, chat);
    write_file("chats/a.jsonl", two, (size_t)n);
    write_file("pairs.jsonl", pair, sizeof pair - 1);
    n = snprintf(two, sizeof two, "%s{\"messages\": 3}\n", chat);
    write_file("bad.jsonl", two, (size_t)n);
    write_file("texts/b.md", "# A", 3);
    write_file("texts/a.txt", "Some text", 9);
    expect("data @/chats/a.jsonl", 0, "2 conversations of 4 messages, 2 by the assistant");
    expect("data @/chats", 0, "train on   data: {format: chat, path: \"");
    expect("data @/chats --json", 0, "\"messages\": 4");
    expect("data @/pairs.jsonl", 0, "samples    1 pair of answers");
    expect("data @/pairs.jsonl", 0, "train: {loss: dpo}");
    expect("data @/bad.jsonl", 1, "/bad.jsonl:2: ");
    expect("data @/bad.jsonl", 1, "damaged    1");
    expect("data @/texts", 0, "samples    2 documents of 12 bytes in all");
    expect("data @/texts/a.txt", 0, "samples    1 document of 9 bytes in all");
    expect("data @/texts/a.txt --sheet @/x.svg", 2, "--sheet is for files of samples");
}

/* Pixels of JPEG images depend on the decoder: its version is printed. */
static void test_decoders(void **state) {
    (void)state;
    shellf("mkdir -p %s/set/cat && cp tests/source/chroma420.jpg %s/set/cat", folder, folder);
    expect("data @/set", 0, "\ndecoders   libjpeg-turbo ");
    expect("data @/set --json", 0, "\"decoders\": \"libjpeg-turbo ");
    char *output = output_of("data @/data_batch_1.bin");
    assert_null(strstr(output, "decoders"));
    free(output);
}

/* Numbers of arrays that nothing can be learned from: where they are, in which of the files. */
static void test_not_finite(void **state) {
    (void)state;
    float x[2][6] = {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, NAN, 6}};
    char npy[128 + sizeof x[0]] = "\x93NUMPY\x01\0\x76\0";
    for (int i = 0; i < 2; i++) {
        snprintf(npy + 10, 119, "%-117s\n",
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}");
        memcpy(npy + 128, x[i], sizeof x[i]);
        write_file(i ? "b.npy" : "a.npy", npy, sizeof npy);
    }
    expect("data @/a.npy @/b.npy", 1,
           "b.npy: row 2: column 0 of 'x' is nan, and a model can't learn from it; write a");
    expect("data @/a.npy", 0, "samples    3");
    write_text("auto.yaml", "model: {kind: layers, input: {x: [2]}, layers: [linear: 2], loss: "
                            "{mean_squared_error: {target: x}}}\ntrain: {steps: 1}\n");
#define TRAIN "train @/auto.yaml -o @/nan --set data.path=@/?.npy --set data.val_path=@/a.npy "
    expect(TRAIN "--set data.normalize=auto", 1, "b.npy: row 2: column 0 of 'x' is nan");
    expect(TRAIN, 1, "b.npy: row 2: column 0 of 'x' is nan");
}

/* What is said of a table's columns of texts, of a table without labels, and of a layer that joins
 * samples where nobody has set train.micro_batch. */
static void test_table(void **state) {
    (void)state;
    write_text("people.csv", "age,city,label\n31,Rome,0\n47,Oslo,1\n52,Rome,1\n29,Oslo,0\n"
                             "31,Rome,0\n47,Oslo,1\n52,Rome,1\n29,Oslo,0\n");
    write_text("prices.csv", "age,price\n31,1.5\n47,2.5\n");
    write_text("mlp.yaml", "model: {kind: mlp, hidden: 4}\ndata: {path: people.csv}\n"
                           "train: {steps: 2, batch: 4, virtual_workers: 2}\n");
    write_text("list.yaml",
               "model:\n  kind: layers\n  input: {age: [], city: {type: i32, dims: []}}\n"
               "  layers: [embedding: {of: city, rows: 2, width: 3, name: row}, batch_norm: {of: "
               "age, name: scaled}, concat: [row, scaled], linear: 2]\n"
               "data: {path: people.csv}\ntrain: {steps: 2, batch: 4, virtual_workers: 2}\n");
    expect("data @/people.csv", 0, "field      city: i32, 4 bytes, codes of 2 texts");
    expect("plan @/mlp.yaml --set data.path=@/people.csv", 0, "1 column of numbers is scaled");
    write_text("few.csv", "age,city,label\n31,Rome,0\n47,Oslo,1\n52,Bonn,1\n");
    expect("plan @/mlp.yaml --set data.path=@/few.csv", 0, "'city' (3 texts) as 0 to 2");
    expect("plan @/mlp.yaml --set data.path=@/prices.csv", 1,
           "where KIND is binary_cross_entropy, bpr, cross_entropy");
    expect("train @/list.yaml -o @/list --set data.path=@/people.csv --set data.val_fraction=0.25",
           0, "step 2/2");
    expect_line("plan @/list.yaml --set data.path=@/people.csv --set train.micro_batch=1", 1,
                "set train.micro_batch to 2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_sheet),
        cmocka_unit_test(test_decoders),
        cmocka_unit_test(test_balanced),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_tables_of_others),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
