/* step_line_test.c - numbers of lines, beside strtod() and the reader of JSON. */
#include "watch/step_line.h"

#include <math.h>

#include "base/json.h"
#include "test.h"

static bool read_line(const char *text, ls_step_line *line) {
    char *copy = strdup(text); /* without a 0 behind it that a reader could rely on */
    bool ok = ls_step_line_read(copy, strlen(text), line);
    line->n = ok ? line->n : 0;
    for (int i = 0; i < line->n; i++) line->fields[i].name = text + (line->fields[i].name - copy);
    free(copy);
    return ok;
}

static void test_step(void **state) {
    ls_step_line line;
    (void)state;
    assert_true(
        read_line("{\"step\": 7, \"loss\": 5.71013892, \"lr\": 6e-04, \"grad_norm\": null, "
                  "\"x\":-0.5 , \"noise\": {\"norms\": [1, {\"a\": \"}]\"}], \"steps\": 2}, "
                  "\"router/load/0\": 1E+3}",
                  &line));
    assert_true(line.has_others);
    assert_int_equal(line.n, 6);
    assert_true(ls_step_line_get(&line, "step") == 7);
    assert_true(ls_step_line_get(&line, "loss") == 5.71013892);
    assert_true(ls_step_line_get(&line, "lr") == 6e-4);
    assert_true(isnan(ls_step_line_get(&line, "grad_norm")));
    assert_true(ls_step_line_get(&line, "x") == -0.5);
    assert_true(ls_step_line_get(&line, "router/load/0") == 1000);
    assert_true(isnan(ls_step_line_get(&line, "steps"))); /* that of an inner object */
    assert_true(isnan(ls_step_line_get(&line, "ste")));
    assert_true(read_line("{}", &line));
    assert_int_equal(line.n, 0);
    assert_false(line.has_others);
}

static void test_malformed(void **state) {
    static const char *const lines[] = {
        "",           "{",          "}",           "[1]",          "{\"a\"}",     "{\"a\":}",
        "{\"a\":1",   "{\"a\":1,}", "{\"a\":1}x",  "{\"a\":1 2}",  "{\"a\":-}",   "{\"a\":1.}",
        "{\"a\":.5}", "{\"a\":1e}", "{\"a\":nul}", "{\"a\":NaN}",  "{\"a\":tru}", "{\"a\":\"b}",
        "{\"a:1}",    "{a:1}",      "{\"a\":[1}",  "{\"a\":[1,2]", "{\"a\":\"\\", "{\"a\" 1}"};
    ls_step_line line;
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (read_line(lines[i], &line)) fail_msg("'%s' is no line", lines[i]);
}

/* More fields than it takes are passed over. */
static void test_many_fields(void **state) {
    char text[4096] = "{";
    size_t n = 1;
    for (int i = 0; i < LS_STEP_FIELDS + 5; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\"f%d\":%d", i ? "," : "", i, i);
    snprintf(text + n, sizeof text - n, "}");
    ls_step_line line;
    (void)state;
    assert_true(read_line(text, &line));
    assert_int_equal(line.n, LS_STEP_FIELDS);
    assert_true(ls_step_line_get(&line, "f63") == 63);
    assert_true(isnan(ls_step_line_get(&line, "f64")));
}

static uint64_t random_next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dULL;
}

static void test_numbers(void **state) {
    static const char *const forms[] = {"%.9g", "%.17g", "%.3f", "%.0f", "%e", "%.20e", "%.1g"};
    uint64_t r = 3;
    (void)state;
    for (int i = 0; i < ncases(20000, 2000000); i++) {
        uint64_t bits = random_next(&r);
        double value;
        if (i % 2) bits = (bits & 0x800fffffffffffffULL) | (uint64_t)(1023 - 40 + i % 80) << 52;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value) || fabs(value) > 1e200) continue;
        char text[512], number[400];
        snprintf(number, sizeof number, forms[i % 7], value);
        if (strlen(number) > 60) continue;
        snprintf(text, sizeof text, "{\"a\": %s}", number);
        ls_step_line line;
        if (!read_line(text, &line)) fail_msg("'%s'", text);
        double want = strtod(number, NULL), got = ls_step_line_get(&line, "a");
        if (memcmp(&want, &got, sizeof want) != 0) fail_msg("%s is read as %.17g", number, got);
    }
}

/* Damaged lines: what it takes, the reader of JSON may refuse, but where both take it, the numbers
 * are equal. */
static void test_damage(void **state) {
    static const char good[] =
        "{\"step\": 12, \"loss\": 5.5e-3, \"s\": \"t\\\"\", \"l\": [1, \"]\"], "
        "\"n\": null, \"b\": true, \"g\": -0.25}";
    uint64_t r = 5;
    int both = 0;
    (void)state;
    for (int i = 0; i < ncases(20000, 500000); i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        static const char letters[] = "{}[]\",:0123456789.eE-+ntx\\ ";
        text[random_next(&r) % (sizeof good - 1)] = letters[random_next(&r) % (sizeof letters - 1)];
        ls_step_line line;
        ls_json *j = NULL;
        bool ok = read_line(text, &line);
        bool is_json = ls_json_parse(text, strlen(text), "", &j, NULL) == LS_OK;
        if (is_json && ls_json_is_object(j) && !ok) fail_msg("'%s' is refused", text);
        for (int k = 0; ok && is_json && k < line.n; k++) {
            char name[64];
            double want = NAN, got = line.fields[k].value;
            snprintf(name, sizeof name, "%.*s", (int)line.fields[k].n, line.fields[k].name);
            ls_json_number(ls_json_get(j, name), &want);
            if (want != got && !(isnan(want) && isnan(got))) fail_msg("'%s': %s", text, name);
            both++;
        }
        ls_json_free(j);
    }
    assert_true(both > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_many_fields), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
