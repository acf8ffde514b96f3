/* locale_test.c - a program whose locale writes 0,5 for 0.5 has the same bits and files, and can
 * read those of others. */
#include <locale.h>

#include "base/file.h"
#include "base/mem.h"
#include "folder.h"
#include "lockstep/group.h"
#include "lockstep/infer.h"
#include "lockstep/program.h"
#include "lockstep/train.h"
#include "test.h"

static const char charmap[] = "<code_set_name> ASCII\n<comment_char> %\n<escape_char> /\nCHARMAP\n"
                              "<U0000>..<U007F> /x00 ASCII\nEND CHARMAP\n";
static const char commas[] = "LC_NUMERIC\ndecimal_point \"<U002C>\"\nthousands_sep \"<U002E>\"\n"
                             "grouping 3;3\nEND LC_NUMERIC\n";

static void build(ls_model *m, const ls_keys *k) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(3));
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    ls_value *y = ls_linear(m, ls_affine(m, x, (float)ls_key_float(k, "factor"), 0), .out = 4);
    ls_cross_entropy(m, y, label, LS_DEFAULTS);
}

static const ls_key_spec keys[] = {
    {.name = "factor", .type = LS_KEY_FLOAT, .high = 9, .usual = "0.5", .help = "of x"}, {0}};
static const ls_program program = {.name = "mine", .keys = keys, .build = build};

static void write_file(const char *name, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static const char *half(void) {
    static char text[16];
    snprintf(text, sizeof text, "%.1f", 0.5);
    return text;
}

/* A locale of commas is made, since most systems have none. False: it can't be. */
static bool set_commas(void) {
    char *command = ls_format("localedef -c -f %s/ascii -i %s/commas %s/x_X 2>/dev/null", folder,
                              folder, folder);
    write_file("ascii", charmap);
    write_file("commas", commas);
    int unused =
        system(command); /* it fails, since other categories are missing; and writes this */
    (void)unused;
    free(command);
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_NUMERIC, "x_X") != NULL;
}

static ls_status train(const char *dir, ls_error *e) {
    static const char *const sets[] = {"train.batch=6", "train.virtual_workers=3", "train.steps=4",
                                       "optim.lr=0.05", "optim.warmup=0",          NULL};
    ls_trainer_options o = {.program = &program, .sets = sets, .count = 50, .run = dir};
    ls_trainer *t = NULL;
    LS_TRY(ls_trainer_open(&o, &t, e));
    ls_status s = LS_OK;
    while (s == LS_OK && ls_trainer_steps(t) < 4) {
        for (int64_t i = 0; i < ls_trainer_nsamples(t); i++) {
            float *x = ls_sample_field(ls_trainer_sample(t, i), "x");
            int32_t *label = ls_sample_field(ls_trainer_sample(t, i), "label");
            for (int j = 0; j < 3; j++) x[j] = (float)((i * (7 + j)) % 11) / 5;
            *label = (int32_t)(i % 4);
        }
        s = ls_trainer_step(t, NULL, e);
    }
    if (s == LS_OK) s = ls_trainer_checkpoint(t, e);
    ls_trainer_close(t);
    return s;
}

static void expect_same(const char *a, const char *b) {
    ls_buf x = {0}, y = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read(a, SIZE_MAX, &x, &e), e);
    assert_ls_ok(ls_file_read(b, SIZE_MAX, &y, &e), e);
    assert_int_equal(x.len, y.len);
    assert_memory_equal(x.data, y.data, x.len);
    ls_buf_free(&x);
    ls_buf_free(&y);
}

static void expect_prediction(const char *run, float *out) {
    static const float row[3] = {0.5f, 1, -2};
    ls_predictor *p = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_predictor_open(run, &(ls_predictor_options){.program = &program}, &p, &e), e);
    assert_ls_ok(ls_predict(p, 1, (const void *const[]){row}, (float *const[]){out}, &e), e);
    ls_predictor_close(p);
}

static void test_commas(void **state) {
    (void)state;
    char here[64], there[64], a[128], b[128];
    float want[4], got[4];
    ls_error e = {0};
    snprintf(here, sizeof here, "%s/c", folder);
    snprintf(there, sizeof there, "%s/x", folder);
    assert_ls_ok(train(here, &e), e);
    expect_prediction(here, want);
    if (!set_commas()) skip_because("localedef makes no locale here");
    assert_string_equal(half(), "0,5");

    assert_ls_ok(train(there, &e), e);
    expect_prediction(here, got);
    assert_memory_equal(got, want, sizeof got);
    expect_prediction(there, got);
    assert_memory_equal(got, want, sizeof got);
    static const char *const files[] = {"config.yaml", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        snprintf(a, sizeof a, "%s/checkpoints/step-4/%s", here, files[i]);
        snprintf(b, sizeof b, "%s/checkpoints/step-4/%s", there, files[i]);
        expect_same(a, b);
    }
    assert_ls_ok(ls_model_check(&program, NULL, NULL, NULL, &e), e);
    char *words[] = {"mine", "help", "config", "mine.factor", NULL};
    assert_int_equal(ls_program_main(4, words, &program), 0);
    assert_string_equal(half(), "0,5"); /* the program's own numbers are as before */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commas, make_folder, remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
