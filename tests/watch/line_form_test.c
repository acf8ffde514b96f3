/* line_form_test.c - lines that are read by their form, beside the reader of any line. */
#include "watch/line_form.h"

#include <math.h>

#include "base/mem.h"
#include "test.h"

static const char line_a[] = "{\"step\": 12, \"samples\": 8, \"loss\": 5.71013892, \"lr\": 6e-04, "
                             "\"grad_norm\": null, \"tokens_per_s\": 51200.25}";

static void form_of(const char *text, ls_line_form *f) {
    ls_step_line line;
    assert_true(ls_step_line_read(text, strlen(text), &line));
    assert_true(ls_line_form_of(text, strlen(text), &line, f));
}

/* A copy with digits behind the line, which are none of its own. */
static bool read_form(ls_line_form *f, const char *text) {
    size_t n = strlen(text);
    char *copy = malloc(n + LS_SPARE);
    memcpy(copy, text, n);
    memset(copy + n, '7', LS_SPARE);
    bool ok = ls_line_form_read(f, copy, n) || ls_line_form_learn(f, copy, n);
    /* What it has learnt, it knows. */
    if (ok) assert_true(ls_line_form_read(f, copy, n));
    free(copy);
    return ok;
}

/* Where the form reads the line, the other reader has the same values in the same order. */
static bool compare(ls_line_form *f, const char *text) {
    const double *values = f->values;
    ls_step_line line;
    if (!read_form(f, text)) return false;
    if (!ls_step_line_read(text, strlen(text), &line)) fail_msg("'%s' is no line", text);
    assert_int_equal(line.n, f->n);
    for (int i = 0; i < line.n; i++)
        if (memcmp(&values[i], &line.fields[i].value, sizeof *values) != 0 &&
            !(isnan(values[i]) && isnan(line.fields[i].value)))
            fail_msg("'%s': %.*s", text, (int)line.fields[i].n, line.fields[i].name);
    return true;
}

static void test_same_form(void **state) {
    static const char *const lines[] = {
        line_a,
        "{\"step\": 1, \"samples\": null, \"loss\": -1e300, \"lr\": 0, \"grad_norm\": 1.5, "
        "\"tokens_per_s\": 1}",
        "{\"step\": 99999999999999999999, \"samples\": 12345678, \"loss\": 0.123456789012345678, "
        "\"lr\": 123456789.123456789e-5, \"grad_norm\": 00000000000000000000001, "
        "\"tokens_per_s\": -0}"};
    ls_line_form f;
    (void)state;
    form_of(line_a, &f);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) assert_true(compare(&f, lines[i]));
    ls_line_form_free(&f);
}

static void test_other_forms(void **state) {
    static const char *const lines[] = {
        "",
        "{",
        "{\"step\": 12}",
        "{\"step\": 12, \"samples\": 8, \"loss\": 5.7, \"lr\": 6e-04, \"grad_norm\": nul",
        "{\"step\": 12, \"samples\": 8, \"loss\": 5.7, \"lr\": 6e-04, \"grad_norm\": null, "
        "\"tokens_per_s\": 5}}",
        "{\"step\": 12, \"samples\": 8, \"loss\": 5.7, \"lr\": 6e-04, \"grad_norm\": null, "
        "\"tokens_per_s\": 5",
        "{\"step\": 12, \"samples\": 8, \"lost\": 5.7, \"lr\": 6e-04, \"grad_norm\": null, "
        "\"tokens_per_s\": 5}",
        "{\"step\": 12, \"samples\": 8, \"loss\": true, \"lr\": 6e-04, \"grad_norm\": null, "
        "\"tokens_per_s\": 5}",
        "{\"step\": 12, \"samples\": 8, \"loss\": 5., \"lr\": 6e-04, \"grad_norm\": null, "
        "\"tokens_per_s\": 5}",
        "{\"step\": 12, \"samples\": 8, \"loss\": 5.7, \"lr\": 6e-04, \"grad_norm\": null, "
        "\"tokens_per_s\": 5, \"x\": 1}"};
    ls_line_form f;
    (void)state;
    form_of(line_a, &f);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (read_form(&f, lines[i])) fail_msg("'%s' has another form", lines[i]);
    ls_line_form_free(&f);
}

/* Values that are no numbers have no form, nor do lines with more numbers than are read. */
static void test_no_form(void **state) {
    static const char *const lines[] = {"{\"step\": 1, \"x\": true}", "{\"step\": 1, \"x\": [1]}",
                                        "{\"step\": 1, \"x\": \"1\"}"};
    ls_step_line line;
    ls_line_form f;
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_true(ls_step_line_read(lines[i], strlen(lines[i]), &line));
        assert_false(ls_line_form_of(lines[i], strlen(lines[i]), &line, &f));
    }
    ls_buf many = {0};
    for (int i = 0; i <= LS_STEP_FIELDS; i++)
        ls_buf_printf(&many, "%s\"f%d\": %d", i ? ", " : "{", i, i);
    ls_buf_printf(&many, "}");
    assert_true(ls_step_line_read(many.data, many.len, &line));
    assert_false(ls_line_form_of(many.data, many.len, &line, &f));
    ls_buf_free(&many);
}

static uint64_t random_next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dULL;
}

static void test_numbers(void **state) {
    static const char *const forms[] = {"%.9g", "%.17g", "%.3f", "%.0f", "%.12f", "%e", "%.1g"};
    uint64_t r = 3;
    ls_line_form f;
    (void)state;
    form_of("{\"a\": 1, \"b\": 2}", &f);
    for (int i = 0; i < ncases(20000, 2000000); i++) {
        uint64_t bits = random_next(&r);
        double value;
        char text[1024], number[400];
        bits = (bits & 0x800fffffffffffffULL) | (uint64_t)(1023 - 40 + i % 80) << 52;
        memcpy(&value, &bits, sizeof value);
        snprintf(number, sizeof number, forms[i % 7], value);
        if (strlen(number) > 60) continue;
        snprintf(text, sizeof text, "{\"a\": %s, \"b\": %s}", number, number);
        if (!read_form(&f, text)) fail_msg("'%s'", text);
        double want = strtod(number, NULL);
        for (int k = 0; k < 2; k++)
            if (memcmp(&want, &f.values[k], sizeof want) != 0)
                fail_msg("%s is read as %.17g", number, f.values[k]);
    }
    ls_line_form_free(&f);
}

/* Names with escapes, inner spaces, names that occur twice: whatever fits has equal values. */
static void test_damage(void **state) {
    static const char *const good[] = {
        line_a, "{\"step\":1,\"a\\\"b\": 7 , \"loss\" :2.5e-3,\"loss\": 17,\"z\": 0.000001}"};
    static const char letters[] = "{}[]\",:0123456789.eE-+ntul\\ ";
    uint64_t r = 11;
    int fits = 0;
    (void)state;
    for (int k = 0; k < 2; k++) {
        ls_line_form f;
        form_of(good[k], &f);
        for (int i = 0; i < ncases(20000, 1000000); i++) {
            char *text = strdup(good[k]);
            for (int n = 1 + i % 3; n > 0; n--)
                text[random_next(&r) % strlen(good[k])] =
                    letters[random_next(&r) % (sizeof letters - 1)];
            fits += compare(&f, text);
            free(text);
        }
        ls_line_form_free(&f);
    }
    assert_true(fits > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_form), cmocka_unit_test(test_other_forms),
        cmocka_unit_test(test_no_form), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
