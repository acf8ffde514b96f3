/* predict_test.c - lockstep predict and lockstep/infer.h: what a trained network says of new
 * samples, compared with a forward pass in double precision; the same bytes for any number of
 * workers, and the same numbers from C, by several threads at once. */
/* ctest: busy seconds=4 */
/* ctest: long-tsan: infer/infer computes with the same threads */
#include <math.h>
#include <pthread.h>

#include "cli/program.h"

#include "lockstep/infer.h"
#include "report/frame_check.h"
#include "weights/safetensors.h"

enum { TRAINED = 120, NEW = 70, HIDDEN = 6 };

static const char *const colours[] = {"blue", "green", "red"};
static const char *const kinds[] = {"above, or \"on\"", "below"};

typedef struct row {
    double a, b;
    int colour;
} row;

/* Row i: two numbers and a colour. */
static row row_of(int i) { return (row){(i * 37 % 101) / 101.0, (i * 53 % 103) / 103.0, i % 3}; }

static void make_rows(void) {
    ls_buf train = {0}, new = {0};
    ls_buf_printf(&train, "a,b,colour,kind\n");
    ls_buf_printf(&new, "colour,b,a\n");
    for (int i = 0; i < TRAINED + NEW; i++) {
        row r = row_of(i);
        if (i < TRAINED)
            ls_buf_printf(&train, "%.3f,%.3f,%s,%s\n", r.a, r.b, colours[r.colour],
                          r.a + r.b > 1 ? "\"above, or \"\"on\"\"\"" : "below");
        else
            ls_buf_printf(&new, "%s,%.3f,%.3f\n", colours[r.colour], r.b, r.a);
    }
    write_file("train.csv", train.data, train.len);
    write_file("new.csv", new.data, new.len);
    ls_buf_free(&train);
    ls_buf_free(&new);
}

static const char config[] =
    "model: {kind: mlp, hidden: [6], loss: {cross_entropy: {target: kind}}}\n"
    "data: {missing: drop, normalize: {a: {mean: 0.5, deviation: 0.25}, b: {mean: 0.4, "
    "deviation: 0.5}}}\n"
    "train: {steps: 30, batch: 24, virtual_workers: 2}\n"
    "optim: {warmup: 5, lr: 0.02}\n";

static int make(void **state) {
    if (folder_make(state)) return -1;
    make_rows();
    write_file("c.yaml", config, strlen(config));
    expect("train @/c.yaml -o @/run --set data.path=@/train.csv", 0, "validation loss");
    return 0;
}

/* ---- a reference ---- */

typedef struct weights {
    ls_safetensors file;
    const float *w[2], *b[2], *colours; /* [3][3] a row for each text */
} weights;

static const float *find(const weights *w, const char *name) {
    const ls_tensor *t = ls_safetensors_find(&w->file, name);
    assert_non_null(t);
    return t->data;
}

static weights open_weights(void) {
    weights w;
    ls_error e = {0};
    char *path = ls_format("%s/run/checkpoints/latest/model.safetensors", folder);
    assert_ls_ok(ls_safetensors_open(path, &w.file, &e), e);
    free(path);
    w.w[0] = find(&w, "hidden.0.linear.weight"), w.b[0] = find(&w, "hidden.0.linear.bias");
    w.colours = find(&w, "colour.weight");
    w.w[1] = find(&w, "head.weight"), w.b[1] = find(&w, "head.bias");
    return w;
}

static void multiply(const float *w, const float *b, const double *x, int n, int m, double *y) {
    for (int j = 0; j < m; j++) {
        y[j] = (double)b[j];
        for (int i = 0; i < n; i++) y[j] += x[i] * (double)w[i * m + j];
    }
}

/* The probability of the first kind; a and b as the file has them, with three digits. */
static double reference(const weights *w, int i) {
    row r = row_of(i);
    char a[16], b[16];
    snprintf(a, sizeof a, "%.3f", r.a);
    snprintf(b, sizeof b, "%.3f", r.b);
    const float *c = &w->colours[3 * r.colour];
    double x[5] = {(atof(a) - 0.5) / 0.25, (atof(b) - 0.4) / 0.5, (double)c[0], (double)c[1],
                   (double)c[2]};
    double h[HIDDEN], y[2];
    multiply(w->w[0], w->b[0], x, 5, HIDDEN, h);
    for (int k = 0; k < HIDDEN; k++) h[k] = h[k] > 0 ? h[k] : 0;
    multiply(w->w[1], w->b[1], h, HIDDEN, 2, y);
    return 1 / (1 + exp(y[1] - y[0]));
}

/* ---- tests ---- */

static void test_classes(void **state) {
    (void)state;
    weights w = open_weights();
    char *text = output_of("predict @/run @/new.csv --top 2"), *line = strtok(text, "\n");
    assert_string_equal(line, "sample,kind_1,kind_1_probability,kind_2,kind_2_probability");
    for (int i = 0; i < NEW; i++) {
        char want[256], first[16];
        double p = reference(&w, TRAINED + i);
        line = strtok(NULL, "\n");
        assert_non_null(line);
        const char *cell = strstr(line, "above") ? strstr(line, "\"above, or \"\"on\"\"\",") : NULL;
        assert_non_null(cell);
        double got = atof(cell + strlen("\"above, or \"\"on\"\"\","));
        if (fabs(got - p) > 1e-5) fail_msg("row %d: %s; expected %.7f", i, line, p);
        snprintf(want, sizeof want, "%d,", i);
        assert_memory_equal(line, want, strlen(want));
        snprintf(first, sizeof first, "%s", strchr(line, ',') + 1);
        assert_int_equal(first[0] == '"', p > 0.5);
    }
    assert_null(strtok(NULL, "\n"));
    free(text);
    ls_safetensors_close(&w.file);
}

/* The same bytes for any number of workers, in files and on standard output, with labels and
 * without. */
static void test_same(void **state) {
    (void)state;
    char *one = output_of("predict @/run @/new.csv --json");
    for (int n = 2; n <= 5; n += n == 2 ? 1 : 2) {
        char *other = output_of("predict @/run @/new.csv --json -n %d", n);
        assert_string_equal(one, other);
        free(other);
    }
    expect("predict @/run/checkpoints/latest @/new.csv -o @/out.jsonl", 0, NULL);
    ls_buf file = {0};
    ls_error e = {0};
    char *path = ls_format("%s/out.jsonl", folder);
    assert_ls_ok(ls_file_read(path, 1 << 20, &file, &e), e);
    ls_buf_append(&file, "", 1);
    assert_string_equal(file.data, one);
    ls_buf_free(&file);
    free(path);
    free(one);
    expect("predict @/run @/train.csv", 0, "\n119,");
    expect("predict @/run @/new.csv --logits", 0, "sample,kind,kind_logit\n0,");
    expect("predict @/run @/new.csv --vectors", 0,
           "sample,vector_0,vector_1,vector_2,vector_3,vector_4,vector_5\n0,");
}

/* ---- which row ---- */

/* Without DATA, samples have the numbers of their rows: each line is one of all rows' lines. */
static void test_own_rows(void **state) {
    (void)state;
    char *all = output_of("predict @/run @/train.csv"), *own = output_of("predict @/run");
    int lines = 0;
    for (char *line = strtok(strchr(own, '\n'), "\n"); line; line = strtok(NULL, "\n"), lines++) {
        char want[256];
        snprintf(want, sizeof want, "\n%s\n", line);
        assert_output_has(all, want);
    }
    assert_in_range(lines, 1, TRAINED / 2);
    free(all), free(own);
}

/* Rows that are left out count, in each file and in all files; a line says how many they are. */
static void test_left_out(void **state) {
    (void)state;
    static const char one[] = "a,b,colour\n0.1,,red\n0.2,0.2,red\n\n0.3,0.3,red\n",
                      two[] = "a,b,colour\n0.1,0.1,red,7\n,0.4,red\n0.2,0.2,red\n";
    write_file("one.csv", one, strlen(one));
    write_file("two.csv", two, strlen(two));
    char want[512];
    expect("predict @/run @/one.csv", 0,
           "left out, without predictions: 1 record without a value (data.missing); the numbers of "
           "the samples count them");
    expect("predict @/run @/one.csv", 0, "kind_probability\n1,");
    char *both = output_of("predict @/run @/[ot][nw][eo].csv --set "
                           "data.damaged=skip --json -n 2");
    assert_output_has(both, "2 records without a value (data.missing), 1 damaged record");
    snprintf(want, sizeof want, "{\"sample\": 2, \"file\": \"%s/one.csv\", \"row\": 2, \"kind\"",
             folder);
    assert_output_has(both, want);
    snprintf(want, sizeof want, "{\"sample\": 5, \"file\": \"%s/two.csv\", \"row\": 2, \"kind\"",
             folder);
    assert_output_has(both, want);
    assert_null(strstr(both, "\"sample\": 3"));
    free(both);
    expect("predict @/run @/[ot][nw][eo].csv --set data.damaged=skip", 0,
           "sample,file,row,kind,kind_probability\n1,");
}

/* Columns that data.columns and data.missing name may lack where the model does not read them; a
 * row with a text that is new is damage. */
static void test_lacking(void **state) {
    (void)state;
    static const char chosen[] =
        "model: {kind: mlp, hidden: [6], loss: {cross_entropy: {target: kind}}}\n"
        "data: {columns: [kind, a, b, colour], missing: {kind: drop}, csv: {texts: [kind]}}\n"
        "train: {steps: 3, batch: 24}\n"
        "optim: {warmup: 0}\n";
    write_file("chosen.yaml", chosen, strlen(chosen));
    expect("train @/chosen.yaml -o @/chosen --set data.path=@/train.csv", 0, "validation loss");
    char *a = output_of("predict @/chosen @/new.csv"), *b = output_of("predict @/chosen");
    assert_int_equal(occurrences(a, "\n"), NEW + 1);
    free(a), free(b);
    expect("eval @/chosen --data @/new.csv", 1, "; without labels there is `lockstep predict`");
    static const char empty[] =
        "b,a,colour,kind\n0.1,0.1,red,\n0.2,0.2,red,other\n0.3,0.3,blue,below\n";
    write_file("empty.csv", empty, strlen(empty));
    for (int i = 0; i < 2; i++) {
        a = output_of("predict @/%s @/empty.csv", i ? "chosen" : "run");
        assert_int_equal(occurrences(a, "\n"), 4);
        free(a);
    }
    write_text("odd.csv", "b,a,colour\n0.1,0.1,red\n0.2,0.2,mauve\n0.3,0.3,blue\n");
    write_text("odd.jsonl", "{\"b\": 0.1, \"a\": 0.1, \"colour\": \"red\"}\n"
                            "{\"b\": 0.2, \"a\": 0.2, \"colour\": \"mauve\"}\n"
                            "{\"b\": 0.3, \"a\": 0.3, \"colour\": \"blue\"}\n");
    expect("predict @/run @/odd.csv --set data.damaged=skip", 0, "skipped: ");
    expect("predict @/run @/odd.jsonl --set data.damaged=skip", 0,
           "odd.jsonl:2: 'colour' has a text that the training data do not have");
    for (int i = 0; i < 2; i++) {
        const char *ext = i ? "jsonl" : "csv";
        expectf(1, "'colour' has 'mauve', which the training data do not", "predict @/run @/odd.%s",
                ext);
        a = output_of("predict @/run @/odd.%s --set data.damaged=skip --json -n 2", ext);
        assert_output_has(a, "{\"sample\": 2, ");
        assert_output_has(a, "1 damaged record");
        assert_null(strstr(a, "{\"sample\": 1, "));
        free(a);
    }
}

/* ---- lockstep eval on other data ---- */

/* The part of training rows whose predicted kind is the right one. */
static double accuracy_of_predictions(void) {
    char *text = output_of("predict @/run @/train.csv"), *line = strtok(text, "\n");
    int right = 0;
    for (int i = 0; i < TRAINED; i++) {
        row r = row_of(i);
        line = strtok(NULL, "\n");
        assert_non_null(line);
        right += (strstr(line, "above") != NULL) == (r.a + r.b > 1);
    }
    free(text);
    return (double)right / TRAINED;
}

static void test_eval(void **state) {
    (void)state;
    char want[64];
    snprintf(want, sizeof want, ", accuracy %.4f", accuracy_of_predictions());
    char *output = output_of("eval @/run --data @/train.csv -o @/pictures");
    assert_output_has(output, ": 120 samples of ");
    assert_output_has(output, want);
    assert_output_has(output, "\nabove, or \"on\" ");
    assert_output_has(output, "\nbelow ");
    assert_output_has(output, "confusion matrix: ");
    free(output);
    frame_check_file(folder, "pictures/confusion.svg");
    expect_line("eval @/run --data @/new.csv", 1,
                "new.csv: has no field 'kind', which the model reads; its fields are");
    expect("eval @/run --data @/new.csv", 1, "; without labels there is `lockstep predict`");
    expect("eval @/run --data @/train.csv --json", 0, "\"confusion\": [[");
    expect("eval @/run @/run/checkpoints/latest --data @/train.csv", 0, "120 samples of ");
    expect_line("eval @/run @/run", 1, "several models are compared on the same data");
    expect_line("eval @/run --before", 1, "began with no other model");
}

/* ONNX files know the names of classes and of an input's texts; numbers may be in another file. */
static void test_onnx(void **state) {
    (void)state;
    static const char *const says[] = {"[\"above, or \\\"on\\\"\", \"below\"]",
                                       "{\"colour\": [\"blue\", \"green\", \"red\"], \"kind\": ["};
    ls_buf b = {0};
    ls_error e = {0};
    char *path = ls_format("%s/k.onnx", folder);
    expect("export @/run --to onnx -o @/k.onnx --external-data", 0, "k.onnx.data: its numbers; ");
    expect("export @/run --to onnx -o @/k.onnx", 1, "k.onnx: exists");
    expect("export @/run --to safetensors -o @/k --external-data", 2, "is of --to onnx");
    assert_true(file_exists("k.onnx.data"));
    assert_ls_ok(ls_file_read(path, 1 << 20, &b, &e), e);
    for (int i = 0; i < 2; i++) assert_non_null(memmem(b.data, b.len, says[i], strlen(says[i])));
    ls_buf_free(&b);
    free(path);
}

/* Several arguments are the files of data.path. */
static void test_several(void **state) {
    (void)state;
    write_file("one.csv", "a,b,colour\n0.1,0.2,red\n", 23);
    write_file("two.csv", "a,b,colour\n0.8,0.9,blue\n", 24);
    expect("predict @/run @/one.csv @/two.csv", 0, "two.csv,0,");
    expect("predict @/run @/one.csv @/two.csv", 0, "sample,file,row,kind,kind_probability\n0,");
    expect_line("predict @/run @/one.csv -", 1,
                "-: standard input is not read; write it to a file");
    expect_line("eval @/run --data -", 1, "-: standard input is not read");
    expect_line("data -", 1, "-: standard input is not read");
}

static void test_refused(void **state) {
    (void)state;
    static const char few[] = "a,colour\n1,red\n", other[] = "a,b,colour\n1,2,pink\n",
                      none[] = "a,b,colour\n";
    write_file("few.csv", few, strlen(few));
    write_file("other.csv", other, strlen(other));
    write_file("none.csv", none, strlen(none));
    expect("predict @/run @/few.csv", 1, "few.csv: has no field 'b', which the model reads");
    expect("predict @/run @/other.csv", 1,
           "'colour' has 'pink', which the training data do not have");
    expect("predict @/run @/none.csv", 1, "none.csv: has no ");
    expect_line("predict @/run @/nothere.csv", 1, "nothere.csv: can't be opened");
    expect_line("predict @/nothere @/new.csv", 1, "nothere: does not exist");
    expect_line("predict @/run @/new.csv --top 0", 2, "--top");
    expect_line("predict @/run @/new.csv --json --csv", 2, "give --json or --csv, not both");
    expect_line("predict @/run @/new.csv --vectors --top 2", 2, "there are no classes");
    expect_line("predict @/run @/new.csv --set model.hidden=9", 1,
                "the run is trained with another");
}

static void test_numbers(void **state) {
    (void)state;
    static const char two[] = "model:\n"
                              "  kind: layers\n"
                              "  input: {a: [1], colour: {type: i32, dims: []}}\n"
                              "  layers:\n"
                              "    - embedding: {rows: 3, width: 4, of: colour, name: c}\n"
                              "    - concat: [a, c]\n"
                              "    - linear: {out: 8}\n"
                              "    - relu\n"
                              "    - linear: {out: 2, name: kinds}\n"
                              "    - linear: {out: 1, name: number}\n"
                              "  loss:\n"
                              "    - cross_entropy: {of: kinds, target: kind}\n"
                              "    - mean_squared_error: {of: number, target: b}\n"
                              "train: {steps: 4, batch: 24, virtual_workers: 2}\n"
                              "optim: {warmup: 1}\n";
    static const char new[] = "a,colour\n0.5,red\n0.25,blue\n";
    write_file("two.yaml", two, strlen(two));
    write_file("two.csv", new, strlen(new));
    expect("train @/two.yaml -o @/two --set data.path=@/train.csv", 0, "validation loss");
    expect("predict @/two @/two.csv", 0, "sample,kind,kind_probability,b\n0,");
}

static void test_texts(void **state) {
    (void)state;
    static const char texts[] = "In the beginning\n\nand the house is long\n";
    static const char json[] =
        "{\"prompt\": \"In the beginning\"}\n{\"text\": \"and the house is long\"}\n";
    write_file("t.txt", texts, strlen(texts));
    write_file("t.jsonl", json, strlen(json));
    expect("train configs/tiny.yaml -o @/text --set data.path=README.md --set train.steps=5 "
           "--set model.vocab=300 " SMALL_MODEL,
           0, NULL);
    char *a = output_of("predict @/text @/t.txt --top 3"),
         *b = output_of("predict @/text @/t.jsonl --top 3");
    char *x = strstr(a, "\n2,"), *y = strstr(b, "\n1,"); /* the empty line is a row */
    assert_output_has(a, "left out, without predictions: 1 empty line");
    assert_output_has(a, "sample,next_1,next_1_probability,next_2,");
    assert_non_null(x);
    assert_non_null(y);
    assert_string_equal(x + 2, y + 2);
    assert_null(strstr(a, "\n1,"));
    free(a), free(b);
    expect("predict @/text @/t.txt @/t.jsonl", 0, "t.jsonl,0,");
    expect("predict @/text @/t.txt --vectors", 0, "sample,vector_0,");
    expect_line("predict @/text", 1, "is a language model: name the file of texts");
}

/* ---- rows of tokens ---- */

/* A model without a tokenizer reads rows of tokens, in three forms, and says what ls_predict()
 * says. */
static void test_tokens(void **state) {
    (void)state;
    enum { VOCAB = 64, CONTEXT = 16, N = 2000 };
    static uint16_t tokens[N];
    static const char yaml[] =
        "model: {kind: gpt2, layers: 1, width: 12, heads: 2, context: 16, vocab: 64}\n"
        "train: {steps: 10, batch: 8, virtual_workers: 2}\n"
        "data: {format: tokens, val_fraction: 0.1}\n"
        "optim: {warmup: 2}\n",
                      rows[] = "3 10 17\n0,63\n", json[] = "[3, 10, 17]\n[0, 63]\n",
                      objects[] = "[{\"tokens\": [3, 10, 17]}, {\"input_ids\": [0, 63]}]",
                      wrong[] = "3 10\n3 64\n", texts[] = "hello\n";
    for (int i = 0; i < N; i++) tokens[i] = (uint16_t)(i * 7 % VOCAB);
    write_file("train.bin", tokens, sizeof tokens);
    write_file("tokens.yaml", yaml, strlen(yaml));
    write_file("rows.txt", rows, strlen(rows));
    write_file("rows.jsonl", json, strlen(json));
    write_file("rows.json", objects, strlen(objects));
    write_file("wrong.txt", wrong, strlen(wrong));
    write_file("texts.txt", texts, strlen(texts));
    expect("train @/tokens.yaml -o @/tokens --set data.path=@/train.bin", 0, NULL);
    char *a = output_of("predict @/tokens @/rows.txt -n 2"),
         *b = output_of("predict @/tokens @/rows.jsonl"),
         *c = output_of("predict @/tokens @/rows.json");
    assert_string_equal(a, b);
    assert_string_equal(a, c);
    char *run = ls_format("%s/tokens", folder);
    ls_predictor *p = NULL;
    ls_error e = {0};
    float out[VOCAB];
    int32_t ids[CONTEXT] = {3, 10, 17, -1};
    assert_ls_ok(ls_predictor_open(run, NULL, &p, &e), e);
    assert_ls_ok(ls_predict(p, 1, (const void *[]){ids}, (float *[]){out}, &e), e);
    int best = 0;
    for (int i = 1; i < VOCAB; i++) best = out[i] > out[best] ? i : best;
    char want[64];
    snprintf(want, sizeof want, "next,next_probability\n0,%d,%.9g\n1,", best, (double)out[best]);
    assert_output_has(a, want);
    ls_predictor_close(p);
    free(a), free(b), free(c), free(run);
    expect_line("predict @/tokens @/wrong.txt", 1, "wrong.txt:2: has the token 64; the model has");
    expect_line("predict @/tokens @/texts.txt", 1, "texts.txt:1: is no row of tokens: ");
    expect_line("predict @/tokens @/train.bin", 1, "train.bin is no row of tokens: ");
    expect_line("predict @/tokens", 1, "name the file of rows of tokens");
    expect("predict @/tokens @/rows.txt --vectors", 0, "sample,vector_0,");
}

/* ---- from C ---- */

typedef struct caller {
    ls_predictor *p;
    const float *a, *b;
    const int32_t *colour;
    float out[NEW][2];
} caller;

static void *call(void *arg) {
    caller *c = arg;
    ls_error e = {0};
    const void *fields[3] = {c->a, c->b, c->colour};
    float *out[] = {c->out[0]};
    return ls_predict(c->p, NEW, fields, out, &e) == LS_OK ? c : NULL;
}

static void check_shape(const ls_predictor *p) {
    static const char *const names[] = {"a", "b", "colour"};
    assert_int_equal(ls_predictor_ninputs(p), 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(ls_predictor_get_input(p, i).name, names[i]);
        assert_int_equal(ls_predictor_get_input(p, i).count, 1);
    }
    ls_predictor_output o = ls_predictor_get_output(p, 0);
    assert_int_equal(ls_predictor_noutputs(p), 1);
    assert_string_equal(o.name, "kind");
    assert_int_equal(o.kind, LS_CLASSES);
    assert_int_equal(o.width, 2);
    assert_int_equal(o.nclasses, 2);
    for (int i = 0; i < 2; i++) assert_string_equal(o.classes[i], kinds[i]);
}

static void test_library(void **state) {
    (void)state;
    enum { CALLERS = 4 };
    static float a[NEW], b[NEW], colours_as_numbers[NEW];
    static caller callers[CALLERS];
    char *run = ls_format("%s/run", folder);
    ls_predictor *p = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_predictor_open(run, &(ls_predictor_options){.threads = 1}, &p, &e), e);
    check_shape(p);
    weights w = open_weights();
    for (int i = 0; i < NEW; i++) {
        row r = row_of(TRAINED + i);
        char text[2][16];
        snprintf(text[0], sizeof text[0], "%.3f", r.a);
        snprintf(text[1], sizeof text[1], "%.3f", r.b);
        a[i] = strtof(text[0], NULL), b[i] = strtof(text[1], NULL);
        colours_as_numbers[i] = (float)r.colour;
    }
    bool is_real = ls_predictor_get_input(p, 2).type == LS_F32;
    static int32_t whole[NEW];
    for (int i = 0; i < NEW; i++) whole[i] = (int32_t)colours_as_numbers[i];
    pthread_t threads[CALLERS];
    for (int k = 0; k < CALLERS; k++) {
        callers[k] = (caller){.p = p, .a = a, .b = b};
        callers[k].colour = is_real ? (const int32_t *)(const void *)colours_as_numbers : whole;
        assert_int_equal(pthread_create(&threads[k], NULL, call, &callers[k]), 0);
    }
    for (int k = 0; k < CALLERS; k++) {
        void *good = NULL;
        pthread_join(threads[k], &good);
        assert_non_null(good);
        assert_memory_equal(callers[k].out, callers[0].out, sizeof callers[0].out);
    }
    for (int i = 0; i < NEW; i++)
        assert_true(fabs((double)callers[0].out[i][0] - reference(&w, TRAINED + i)) < 1e-5);
    assert_ls_ok(ls_predict(p, 0, NULL, NULL, &e), e);
    assert_ls_fails(ls_predict(p, 1, (const void *[]){a, NULL, whole}, (float *[]){NULL}, &e),
                    LS_EINVAL, "the field 'b' is NULL", e);
    ls_predictor_close(p);
    assert_ls_fails(ls_predict(p, 0, NULL, NULL, &e), LS_EINVAL, "the predictor is closed", e);
    assert_true(ls_predictor_ninputs(p) == 0 && ls_predictor_noutputs(p) == 0);
    ls_predictor_close(p);
    assert_ls_fails(ls_predictor_open("/no/such/run", NULL, &p, &e), LS_EIO, "does not exist", e);
    assert_int_equal(ls_predictor_open("/no/such/run", NULL, NULL, &e), LS_EINVAL);
    ls_predictor_close(NULL);
    assert_int_equal(ls_predictor_ninputs(NULL), 0);
    assert_int_equal(ls_predictor_noutputs(NULL), 0);
    assert_null(ls_predictor_get_input(NULL, 0).name);
    assert_null(ls_predictor_get_output(NULL, 0).name);
    assert_int_equal(ls_predict(NULL, 1, NULL, NULL, NULL), LS_EINVAL);
    ls_safetensors_close(&w.file);
    free(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),  cmocka_unit_test(test_same),
        cmocka_unit_test(test_own_rows), cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_eval),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_numbers),  cmocka_unit_test(test_texts),
        cmocka_unit_test(test_onnx),     cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_lacking),  cmocka_unit_test(test_library),
        cmocka_unit_test(test_several),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
