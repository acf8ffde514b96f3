/* text_form_test.c - texts of a given form: with any seed each is one of them, as others judge it,
 * and it is the model's own where that has the form anyway. */
#include "infer/text_form.h"

#include <regex.h>
#include <unistd.h>

#include "folder.h"
#include "infer/text_writer.h"
#include "test.h"
#include "weights/small_text.h"

static ls_trained trained;

static int open_model(void **state) {
    if (make_folder(state) != 0) return -1;
    ls_error e = {0};
    char *path = ls_format("%s/m.gguf", folder);
    small_write_whole(&small_models[0], path);
    assert_ls_ok(ls_trained_open(path, &(ls_trained_options){.writes = true}, &trained, &e), e);
    trained.nends = 0; /* one is a letter of this model: the text would end at any place */
    free(path);
    return 0;
}

static int close_model(void **state) {
    ls_trained_close(&trained);
    return remove_folder(state);
}

static ls_status take(const uint8_t *bytes, size_t n, void *arg, ls_error *e) {
    (void)e;
    ls_buf_append(arg, bytes, n);
    return LS_OK;
}

/* What follows the prompt; the caller frees it. */
static char *continue_text(const char *prompt, ls_writing w, ls_generated *g_p) {
    ls_buf text = {0};
    ls_error e = {0};
    size_t n = strlen(prompt);
    w.ntokens = 40;
    w.fn = take;
    w.arg = &text;
    assert_ls_ok(ls_generate(&trained, prompt, &w, g_p, &e), e);
    char *rest = ls_format("%.*s", (int)(text.len - n), text.data + n);
    ls_buf_free(&text);
    return rest;
}

static char *write_text(const ls_text_form *f, uint64_t seed, ls_generated *g_p) {
    return continue_text(
        "to", (ls_writing){.seed = seed, .rule = {.temperature = 1.5}, .constraint = f->constraint},
        g_p);
}

static ls_text_form open_form(ls_text_form_options o) {
    ls_text_form f;
    ls_error e = {0};
    assert_ls_ok(ls_text_form_read(&o, &f, &e), e);
    assert_ls_ok(ls_text_form_prepare(&f, &trained, &e), e);
    assert_non_null(f.constraint);
    return f;
}

/* The C library judges. */
static void test_regex(void **state) {
    (void)state;
    static const char regex[] = "([a-z]{2,4}(,|!)){1,3}";
    ls_text_form f = open_form((ls_text_form_options){.regex = regex});
    regex_t judge;
    int different = 0;
    char *before = NULL;
    assert_int_equal(regcomp(&judge, "^([a-z]{2,4}(,|!)){1,3}$", REG_EXTENDED), 0);
    for (uint64_t seed = 0; seed < 60; seed++) {
        ls_generated g;
        char *text = write_text(&f, seed, &g);
        ls_error e = {0};
        if (regexec(&judge, text, 0, NULL, 0) != 0) fail_msg("seed %d: %s", (int)seed, text);
        assert_int_equal(g.end, LS_END_TOKEN);
        assert_ls_ok(ls_text_form_check(&f, text, strlen(text), &e), e);
        different += before && strcmp(before, text) != 0;
        free(before);
        before = text;
    }
    assert_true(different > 50);
    ls_error e = {0};
    assert_ls_fails(ls_text_form_check(&f, "ab,c", 4, &e), LS_EINVAL, "does not match", e);
    free(before);
    regfree(&judge);
    ls_text_form_free(&f);
}

static void check_city(const char *text) {
    ls_json *j = NULL;
    ls_error e = {0};
    int64_t n = 0;
    if (ls_json_parse(text, strlen(text), "it", &j, &e) != LS_OK) fail_msg("%s: %s", text, e.msg);
    const char *name = ls_json_text(ls_json_get(j, "name"));
    assert_int_equal(ls_json_count(j), 2);
    assert_true(name && strlen(name) <= 4 * 3);
    assert_true(ls_json_integer(ls_json_get(j, "n"), &n) && n >= 3 && n <= 250);
    ls_json_free(j);
}

static void test_schema(void **state) {
    (void)state;
    static const char schema[] = "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": "
                                 "\"string\", \"maxLength\": 3}, \"n\": "
                                 "{\"type\": \"integer\", \"minimum\": 3, \"maximum\": 250}}, "
                                 "\"required\": [\"name\", \"n\"]}";
    char *path = ls_format("%s/schema.json", folder);
    ls_error e = {0};
    assert_ls_ok(ls_file_write(path, schema, sizeof schema - 1, &e), e);
    ls_text_form f = open_form((ls_text_form_options){.schema_file = path});
    for (uint64_t seed = 0; seed < 60; seed++) {
        ls_generated g;
        char *text = write_text(&f, seed, &g);
        check_city(text);
        assert_int_equal(g.end, LS_END_TOKEN);
        free(text);
    }
    assert_ls_fails(ls_text_form_check(&f, "{\"n\"", 4, &e), LS_EINVAL, "the answer", e);
    ls_text_form_free(&f);
    free(path);
}

/* Where all that the model would write is allowed, its likeliest text stays as it is. Ends of texts
 * come only where the form is complete. */
static void test_unchanged(void **state) {
    (void)state;
    static const char *const prompts[] = {"to", "be", "or not"};
    ls_text_form any = open_form((ls_text_form_options){.regex = "[\\x01-\\uffff]*"});
    for (int i = 0; i < 3; i++) {
        ls_generated g;
        char *x = continue_text(prompts[i], (ls_writing){.constraint = any.constraint}, &g);
        char *y = continue_text(prompts[i], (ls_writing){0}, &g);
        size_t n = 0; /* a random model also writes what is no text */
        while (y[n] && (uint8_t)y[n] < 0x80) n++;
        assert_true(n >= 3);
        assert_memory_equal(x, y, n);
        free(x), free(y);
    }
    ls_text_form_free(&any);
    ls_text_form f = open_form((ls_text_form_options){.regex = "([a-z]{3}!)*"});
    trained.nends = 1;
    for (uint64_t seed = 0; seed < 20; seed++) {
        ls_generated g;
        char *text = write_text(&f, seed, &g);
        if (g.end == LS_END_TOKEN) assert_int_equal(strlen(text) % 4, 0);
        free(text);
    }
    trained.nends = 0;
    ls_text_form_free(&f);
}

static void test_refused(void **state) {
    (void)state;
    ls_text_form f;
    ls_error e = {0};
    char *path = ls_format("%s/bad.json", folder);
    assert_ls_ok(ls_file_write(path, "{\"not\": {}}", 11, &e), e);
    const struct {
        ls_text_form_options o;
        const char *why;
    } cases[] = {{{.regex = "a", .object = true}, "not several"},
                 {{.regex = "(a"}, "--regex: "},
                 {{.regex = "\xff"}, "--regex"},
                 {{.schema_file = path}, "--json-schema: "},
                 {{.schema_file = "/absent"}, "/absent: does not exist"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        e = (ls_error){0};
        ls_status s = ls_text_form_read(&cases[i].o, &f, &e);
        if (s == LS_OK) s = ls_text_form_prepare(&f, &trained, &e);
        if (s == LS_OK || !strstr(e.msg, cases[i].why)) fail_msg("%zu: %s", i, e.msg);
        ls_text_form_free(&f);
    }
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_regex), cmocka_unit_test(test_schema),
                                       cmocka_unit_test(test_unchanged),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, open_model, close_model);
}
