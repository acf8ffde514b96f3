/* tables_test.c - data.normalize of tables: what an MLP does without the key, what the run records,
 * the same bits for any number of workers, and predictions in the units of the file. */
/* ctest: busy seconds=4 */
#include <math.h>

#include "cli/program.h"
#include "weights/safetensors.h"

enum { ROWS = 160, NEW = 20 };

/* A price in euros, of a city, an income in cents, a year, and a column that is constant. */
static double price_of(int i) {
    static const double of_city[] = {90000, 0, 50000};
    return 150000 + i * 71 % 97 * 1000.0 + of_city[i % 3];
}

static void put_row(ls_buf *b, int i) {
    static const char *const cities[] = {"Paris", "Rome", "Oslo"};
    ls_buf_printf(b, "%d,%d,%s,7,%.2f\n", i * 71 % 97 * 100000, 1950 + i * 31 % 70, cities[i % 3],
                  price_of(i));
}

static void write_rows(const char *name, int begin, int n) {
    ls_buf b = {0};
    ls_buf_printf(&b, "income,year,city,same,price\n");
    for (int i = 0; i < n; i++) put_row(&b, begin + i);
    write_file(name, b.data, b.len);
    ls_buf_free(&b);
}

static int make(void **state) {
    static const char config[] =
        "model: {kind: mlp, hidden: [16], loss: {mean_squared_error: {target: price}}, metrics: "
        "[mae, rmse, r2]}\n"
        "train: {steps: 120, batch: 36, virtual_workers: 6}\n"
        "optim: {warmup: 0, lr: 0.01}\n";
    if (folder_make(state)) return -1;
    write_rows("train.csv", 0, ROWS);
    write_rows("new.csv", ROWS, NEW);
    write_file("c.yaml", config, sizeof config - 1);
    expect("train @/c.yaml -n 1 -o @/one --set data.path=@/train.csv", 0,
           "3 columns of numbers are scaled to mean 0 and deviation 1; the loss is in units of the "
           "variance of 'price', ");
    return 0;
}

static void is_like_one(const char *run) {
    char *a = output_of("ckpt hash @/one"), *b = output_of("ckpt hash @/%s", run);
    assert_string_equal(a, b);
    free(a), free(b);
}

static void test_same_bits(void **state) {
    (void)state;
    expect("train @/c.yaml -n 3 -o @/three --set data.path=@/train.csv", 0, "r2 0.9");
    is_like_one("three");
    expect("train @/c.yaml -n 2 -o @/two --until 50 --set data.path=@/train.csv "
           "--set parallel.zero=3",
           75, NULL);
    expect("train @/c.yaml -n 1 --resume -o @/two --set data.path=@/train.csv", 0, "r2 0.9");
    is_like_one("two");
}

/* The number that the run has recorded: "price": {"mean": "X" */
static double recorded(const char *config, const char *column, const char *what) {
    char name[64];
    snprintf(name, sizeof name, "\"%s\": {\"mean\": ", column);
    const char *at = strstr(strstr(config, "normalize: "), name);
    assert_non_null(at);
    snprintf(name, sizeof name, "\"%s\": \"", what);
    return atof(strstr(at, name) + strlen(name));
}

/* What the config records are the mean and deviation of the training part, which here is all. */
static void test_recorded(void **state) {
    (void)state;
    size_t n = 0;
    expect("train @/c.yaml -o @/all --set data.path=@/train.csv --set data.val_path=@/new.csv "
           "--set train.steps=1",
           0, "20 samples");
    char *config = read_file("all/config.yaml", &n);
    double mean = 0, square = 0;
    for (int i = 0; i < ROWS; i++) mean += price_of(i) / ROWS;
    for (int i = 0; i < ROWS; i++) square += (price_of(i) - mean) * (price_of(i) - mean) / ROWS;
    assert_true(fabs(recorded(config, "price", "mean") - mean) < 0.02);
    assert_true(fabs(recorded(config, "price", "deviation") - sqrt(square)) < 0.01);
    assert_true(fabs(recorded(config, "same", "mean") - 7) <= 0);
    assert_true(fabs(recorded(config, "same", "deviation")) <= 0);
    assert_non_null(strstr(config, "\"city\": {\"type\": \"i32\", \"dims\": [], \"ids\": \"3\"}"));
    free(config);
}

static void test_predictions(void **state) {
    (void)state;
    double worst = 0;
    char *text = output_of("predict @/one @/new.csv"), *line = strtok(text, "\n");
    assert_string_equal(line, "sample,price");
    for (int i = 0; i < NEW; i++) {
        line = strtok(NULL, "\n");
        double off = fabs(atof(strchr(line, ',') + 1) - price_of(ROWS + i));
        if (off > worst) worst = off;
    }
    assert_true(worst < 30000);
    free(text);
    expect("eval @/one --data @/new.csv", 0, "r2 0.9");
    expect("export @/one --to onnx -o @/one.onnx", 0, "output price: f32 [N, 1]");
}

/* A resumed run stays as it began. */
static void test_resumed(void **state) {
    (void)state;
    expect("train @/c.yaml -o @/off --until 2 --set data.path=@/train.csv --set train.steps=4 "
           "--set data.normalize=off",
           75, NULL);
    expect("train @/c.yaml --resume -o @/off --set data.path=@/train.csv --set train.steps=4", 0,
           "step 4");
    shell_of_run("off", "grep -q 'normalize: \"off\"' $r/config.yaml");
    expect("train @/c.yaml --resume -o @/one --set data.path=@/train.csv "
           "--set data.normalize=off --set train.steps=121",
           1, "data.normalize is");
}

/* The greatest difference between predictions and years, which are x % 9 above 2000. */
static double worst_year(const char *run) {
    double worst = 0;
    char *text = output_of("predict @/%s @/years.csv", run), *line = strtok(text, "\n");
    for (int i = 0; i < 90; i++) {
        line = strtok(NULL, "\n");
        worst = fmax(worst, fabs(atof(strchr(line, ',') + 1) - (2000 + i % 9)));
    }
    free(text);
    return worst;
}

/* A target far above its deviation, and one that no f16 can hold: outputs are rounded on the
 * target's scale, and are f32 in its units. bf16 has steps of 8 near 2000. */
static void test_sixteen_bits(void **state) {
    (void)state;
    static const char *const types[] = {"bf16", "f16"};
    ls_buf b = {0};
    ls_buf_printf(&b, "x,y\n");
    for (int i = 0; i < 90; i++) ls_buf_printf(&b, "%d,%d\n", i % 9, 2000 + i % 9);
    write_file("years.csv", b.data, b.len);
    ls_buf_free(&b);
    for (int i = 0; i < 2; i++) {
        expectf(0, "r2 0.99",
                "train @/c.yaml -n 2 -o @/%s --set data.path=@/years.csv "
                "--set model.loss={mean_squared_error:\t{target:\ty}} --set train.compute=%s",
                types[i], types[i]);
        assert_true(worst_year(types[i]) < 0.5);
        expectf(0, "r2 0.99", "eval @/%s --data @/years.csv", types[i]);
    }
    expect("train @/c.yaml -n 2 -o @/device --device c --set data.path=@/years.csv "
           "--set model.loss={mean_squared_error:\t{target:\ty}} --set train.compute=bf16",
           0, "r2 0.99");
    char *host = output_of("ckpt hash @/bf16"), *device = output_of("ckpt hash @/device");
    assert_string_equal(host, device);
    free(host), free(device);
    host = output_of("predict @/bf16 @/years.csv");
    device = output_of("predict @/bf16 @/years.csv --device c");
    assert_string_equal(strstr(host, "sample,"), strstr(device, "sample,"));
    free(host), free(device);
    expect("train @/c.yaml -n 2 -o @/f16_price --set data.path=@/train.csv "
           "--set train.compute=f16",
           0, "r2 0.9");
}

/* What the last layer with weights reads, and not what the scale of the target is applied to. */
static void test_vectors(void **state) {
    (void)state;
    char *text = output_of("predict @/one @/new.csv --vectors"), *line = strtok(text, "\n");
    while (line && strncmp(line, "0,", 2) != 0) line = strtok(NULL, "\n");
    assert_non_null(line);
    int n = 0;
    for (; *line; line++) n += *line == ' ' || *line == ',';
    assert_true(n >= 16); /* model.hidden */
    free(text);
}

/* Huge and tiny numbers, one row, missing values, a column with the name of a layer. */
static void test_odd(void **state) {
    (void)state;
    write_text("huge.csv", "a,b,head,label\n1e30,1e-30,1,x\n-1e30,2e-30,2,y\n3e30,3e-30,1,x\n"
                           "2e30,2e-30,5,y\n");
    expect("train @/c.yaml -o @/huge --set data.path=@/huge.csv --set model.loss=cross_entropy "
           "--set model.metrics= --set train.steps=20 --set data.val_fraction=0.25",
           0, "3 columns of numbers are scaled");
    write_text("one.csv", "a,price\n3,200000\n");
    expect("train @/c.yaml -o @/row --set data.path=@/one.csv --set data.val_path=@/one.csv "
           "--set train.steps=3",
           0, "of 1 sample");
    write_text("gaps.csv", "a,b,price\n100,1,1000\n,2,2000\n300,1,\n200,5,1500\n100,4,1200\n");
    expect("train @/c.yaml -o @/gaps --set data.path=@/gaps.csv --set train.steps=3 "
           "--set data.missing={a:\tmean,price:\tdrop} --set data.val_path=@/gaps.csv",
           0, "of 4 samples");
    shell_of_run("gaps", "grep -q 'normalize: {\"a\": {\"mean\": \"133.3' $r/config.yaml");
    write_text("none.csv", "more,a,b,price\n,,1,1\n,,2,2\n"); /* the mean stands for all of a */
    char *output = output_of("predict @/gaps @/none.csv");
    assert_output_has(output, "'more' is left out: it has no values");
    assert_output_has(output, "\n1,");
    assert_null(strstr(output, "'a' is left out"));
    free(output);
}

/* Other files may be written in another form; the run's own data may not. */
static void test_other_form(void **state) {
    (void)state;
    write_text("points.csv", "a,c,price\n1.5,x,10\n2.5,y,20\n3.5,x,30\n4.5,y,40\n");
    write_text("commas.csv", "a;c\n1,5;x\n2,5;y\n");
    write_text("marks.csv", "c,a\nx,1.5\ny,none\n");
    expect("train @/c.yaml -o @/form --set data.path=@/points.csv --set train.steps=3 "
           "--set data.missing=mean",
           0, "step-3");
    char *points = output_of("predict @/form @/points.csv");
    char *commas = output_of("predict @/form @/commas.csv --set data.csv={decimal:\t\",\"}");
    assert_memory_equal(commas, points, strlen(commas));
    assert_non_null(strstr(commas, "\n1,"));
    free(points), free(commas);
    expect("predict @/form @/marks.csv --set data.na=none", 0, "\n1,");
    expect("predict @/form @/commas.csv", 1, "or set data.csv: {decimal: \",\"}");
    expect_line("predict @/form --set data.na=none", 1, "name other files");
    expect_line("eval @/form --set data.na=none", 1, "name other files");
    expect_line("predict @/form --set data.missing=drop", 1, "name other files");
}

/* What becomes of missing values may differ from the run, whose means stand for them. */
static void test_other_missing(void **state) {
    (void)state;
    static const char *const files[] = {"lacks.csv", "lacks.jsonl"};
    write_text("seen.csv", "a,b,price\n1.5,3,10\n2.5,1,20\n,2,30\n4.5,,40\n");
    write_text("seen.jsonl", "{\"a\": 1.5, \"b\": 3, \"price\": 10}\n{\"a\": 2.5, \"b\": 1, "
                             "\"price\": 20}\n{\"a\": 4.5, \"b\": 2, \"price\": 40}\n");
    write_text("lacks.csv", "a,b\n,3\n2.5,\n4.5,1\n");
    write_text("lacks.jsonl", "{\"b\": 3}\n{\"a\": 2.5, \"b\": null}\n{\"a\": 4.5, \"b\": 1}\n");
    write_text("written.csv", "a,b\n2.8333333,3\n2.5,2\n4.5,1\n"); /* the means of seen.csv */
    expect("train @/c.yaml -o @/means --set data.path=@/seen.csv --set train.steps=3 "
           "--set data.missing={a:\tmean,\"*\":\tdrop,b:\tmean}",
           0, "step-3");
    expect("train @/c.yaml -o @/none --set data.path=@/seen.jsonl --set train.steps=3", 0,
           "step-3");
    char *written = output_of("predict @/means @/written.csv"), *lacks;
    for (int i = 0; i < 2; i++) {
        lacks = output_of("predict @/means @/%s --set data.missing=mean", files[i]);
        assert_string_equal(lacks, written);
        free(lacks);
        for (int k = 0; k < 2; k++) {
            lacks = output_of("predict @/%s @/%s --set data.missing=drop", k ? "none" : "means",
                              files[i]);
            assert_output_has(lacks, "2 records without a value (data.missing)");
            assert_output_has(lacks, k ? "\n2," : strstr(written, "\n2,"));
            free(lacks);
        }
        expectf(1, "set data.missing (--missing) to drop",
                "predict @/means @/%s --set data.missing=refuse", files[i]);
        expectf(1, "the run was trained without means",
                "predict @/none @/%s --set "
                "data.missing=mean",
                files[i]);
    }
    free(written);
    expect("predict @/means @/lacks.csv --set data.missing={a:\tmeam}", 1,
           "data.missing: a is refuse, drop or mean");
}

/* lockstep data shows the rows that have all values, and what a run does with the others. */
static void test_shown(void **state) {
    (void)state;
    expect("data @/lacks.csv", 1, "set data.missing (--missing) to drop");
    expect("data @/lacks.csv", 1,
           "missing    2 rows without a value, left out\nsample 0   a 4.5  b 1");
    expect("data @/lacks.jsonl --json", 1, "\"missing\": 2");
    expect("data @/lacks.csv --missing drop", 0, "missing    2 rows without a value, left out");
    expect("data @/lacks.csv --set data.missing={a:\tmean}", 1, "sample 0   a 4.5  b 1");
    expect_line("data @/none", 2, "is a run directory; data.* of ");
}

/* A target that is not what its loss compares with. */
static void test_targets(void **state) {
    (void)state;
    write_text("signs.csv", "a,price\n1,$900\n2,$800\n3,$700\n4,$650\n");
    expect("train @/c.yaml -o @/signs --set data.path=@/signs.csv", 1,
           "'price' has texts, such as '$650', and mean_squared_error compares with amounts");
    write_text("signed.csv", "a,label\n1,-1\n2,1\n3,-1\n4,1\n5,-1\n6,0\n");
    expect("train @/c.yaml -o @/signed --set data.path=@/signed.csv --set model.metrics= "
           "--set model.loss=cross_entropy --set train.steps=2",
           0, "'label' is below 0 in 3 of 6 samples, which have no loss");
}

/* By name, and what is refused. */
static void test_given(void **state) {
    (void)state;
#define GIVEN(map) "plan @/c.yaml --set data.path=@/train.csv --set data.normalize=" map
    expect(GIVEN("{income:\t{mean:\t5e6,deviation:\t3e6}}"), 0, "income");
    expect(GIVEN("{wage:\t{mean:\t5,deviation:\t3}}"), 1, "model.input has no field 'wage'");
    expect(GIVEN("{city:\t{mean:\t1,deviation:\t1}}"), 1, "'city' has ids, which are not scaled");
    expect(GIVEN("{income:\t{mean:\t[1,2],deviation:\t[1,2]}}"), 1,
           "'income' has 2 means, and the field has 1 number");
    expect(GIVEN("{price:\t{mean:\t1,deviation:\t0}}"), 1,
           "the target 'price' needs one mean and one deviation");
    expect(GIVEN("{income:\t{mean:\t1,deviation:\t-1}}"), 1, "data.normalize is auto, off, ");
    expect(GIVEN("{income:\t{mean:\t1}}"), 1, "data.normalize is auto, off, ");
    expect(GIVEN("{mean:\t[0.5],deviation:\t[1]}"), 1, "name fields of numbers: {age: {mean: ");
}

/* A list of layers scales columns where the key says it, and its targets stay as they are. */
static void test_layers(void **state) {
    (void)state;
    write_text("list.yaml",
               "model:\n  kind: layers\n  layers: [concat: [income, year], linear: 1]\n"
               "  loss: {mean_squared_error: {target: price}}\n"
               "train: {steps: 2, batch: 8}\n");
    expect("train @/list.yaml -o @/list --set data.path=@/train.csv --set data.normalize=auto", 0,
           "2 columns of numbers are scaled to mean 0 and deviation 1 (off");
    expect("train @/list.yaml -o @/plain --set data.path=@/train.csv", 0, "step 2/2");
    shell_of_run("plain", "grep -q 'normalize: \"\"' $r/config.yaml");
    expect("plan @/list.yaml --set data.path=@/train.csv "
           "--set data.normalize={price:\t{mean:\t1,deviation:\t1}}",
           1, "'price' is a target; that of the only loss");
}

/* Where the config has no steps, the rows decide; a resumed run keeps what they decided. */
static void test_steps(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int rows;
        const char *says, *grep;
    } of[] = {{"many", 4000, "train.steps: 1200, 20 epochs of 3800 samples", "steps: 1200"},
              {"few", 40, "train.steps: 50, 50 epochs of 38 samples", "steps: 50"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char text[512], file[64];
        snprintf(file, sizeof file, "%s.csv", of[i].name);
        write_rows(file, 0, of[i].rows);
        snprintf(text, sizeof text,
                 "model: {kind: mlp, hidden: [2], loss: {mean_squared_error: {target: price}}}\n"
                 "data: {path: %s/%s}\n"
                 "train: {batch: 64}\n",
                 folder, file);
        write_text("steps.yaml", text);
        expectf(0, of[i].says, "train @/steps.yaml -n 1 -o @/%s --set parallel.threads=1",
                of[i].name);
        snprintf(text, sizeof text, "grep -q '%s' $r/config.yaml", of[i].grep);
        shell_of_run(of[i].name, text);
        expectf(0, "complete", "train @/steps.yaml -n 1 --resume -o @/%s", of[i].name);
    }
    expect("train @/steps.yaml -n 1 -o @/given --set train.steps=3", 0, "step-3");
    expect("tune @/steps.yaml --lr 0.01 -o @/tried", 0, "1 trial of 50 steps");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),     cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_predictions),   cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_sixteen_bits),  cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_odd),           cmocka_unit_test(test_targets),
        cmocka_unit_test(test_other_form),    cmocka_unit_test(test_given),
        cmocka_unit_test(test_layers),        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_other_missing), cmocka_unit_test(test_shown),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
