/* schema_values_test.c - wide choices: their schemas are told apart in a few steps each, and by the
 * same rules as pairs of them; a choice that is at many places is compared once. */
#include "grammar/schema_values.h"

#include "base/mem.h"
#include "grammar/schema.h"
#include "test.h"

static ls_json *parsed(const char *text) {
    ls_json *j = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_json_parse_value(text, strlen(text), "it", &j, &e), e);
    return j;
}

/* n schemas of this form, which is given a number. */
static ls_json *wide(const char *fmt, int n) {
    ls_json *list = ls_json_new_array();
    for (int i = 0; i < n; i++) {
        ls_buf text = {0};
        for (const char *c = fmt; *c; c++)
            if (*c == '#')
                ls_buf_printf(&text, "%d", i);
            else
                ls_buf_append(&text, c, 1);
        ls_buf_append(&text, "", 1);
        ls_json_push(list, parsed(text.data));
        ls_buf_free(&text);
    }
    return list;
}

#define KIND                                                                                       \
    "{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"k#\"},\"v\":{}},\"required\":"     \
    "[\"v\",\"kind\"]}"

static void test_steps(void **state) {
    enum { N = 2000 };
    static const char *const forms[] = {KIND, "{\"const\":\"v#\"}", "{\"enum\":[#, \"x#\"]}"};
    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        ls_json *list = wide(forms[f], N);
        bool *apart = LS_NEW_ARRAY(bool, N);
        ls_schema_comparison c = {.root = list};
        ls_schemas_tell_apart(&c, list, apart);
        for (int i = 0; i < N; i++) assert_true(apart[i]);
        assert_true(c.work <= 6 * N);
        free(apart);
        ls_json_free(list);
    }
}

/* A list, and which of its schemas are marked. */
static void marks(const char *text, const char *want) {
    ls_json *list = parsed(text);
    bool apart[8];
    char got[9] = "";
    ls_schema_comparison c = {.root = list};
    ls_schemas_tell_apart(&c, list, apart);
    for (size_t i = 0; i < ls_json_count(list); i++) got[i] = apart[i] ? '+' : '-';
    if (strcmp(got, want) != 0) fail_msg("%s: %s, not %s", text, got, want);
    for (size_t i = 0; i < ls_json_count(list); i++)
        for (size_t k = 0; k < i; k++)
            if (apart[i] && apart[k])
                assert_false(ls_schemas_overlap(&c, ls_json_at(list, k), ls_json_at(list, i)));
    ls_json_free(list);
}

#define OBJECT(kind) "{\"type\":\"object\",\"properties\":{\"k\":" kind "},\"required\":[\"k\"]}"

static void test_marks(void **state) {
    (void)state;
    marks("[" OBJECT("{\"const\":1}") "," OBJECT("{\"enum\":[2,3]}") "]", "++");
    marks("[" OBJECT("{\"const\":1}") "," OBJECT("{\"const\":1.0}") "]", "--");
    marks("[" OBJECT("{\"const\":0.5}") "," OBJECT("{\"const\":5e-1}") "]", "--");
    marks("[" OBJECT("{\"const\":1}") "," OBJECT("{\"type\":\"string\"}") "]", "--");
    marks("[" OBJECT("{\"const\":1}") ",{\"type\":\"null\"}," OBJECT("{\"const\":\"1\"}") "]",
          "+-+");
    marks("[{\"const\":1},{\"enum\":[\"1\",true]}," OBJECT("{\"const\":1}") "]", "+++");
    marks("[{\"const\":1},{\"enum\":[\"1\",1]}," OBJECT("{\"const\":1}") "]", "--+");
    marks("[{\"const\":{}},{\"const\":[]}]", "--");
    marks("[" OBJECT("{\"const\":1}") ",{\"type\":[\"object\",\"null\"],\"properties\":{\"k\":"
                                      "{\"const\":2}},\"required\":[\"k\"]}]",
          "+-");
    marks(
        "[" OBJECT("{\"const\":1}") ",{\"type\":\"object\",\"properties\":{\"k\":{\"const\":2}}}]",
        "--");
}

/* N objects, each with a choice of all of them: comparing all pairs at each of N places would take
 * more steps than are taken. */
static void test_recursive(void **state) {
    enum { N = 120 };
    ls_buf text = {0}, choice = {0};
    ls_grammar *g = NULL;
    ls_error e = {0};
    (void)state;
    for (int i = 0; i < N; i++)
        ls_buf_printf(&choice, "%s{\"$ref\":\"#/$defs/d%d\"}", i ? "," : "", i);
    ls_buf_printf(&text, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
    for (int i = 0; i < N; i++)
        ls_buf_printf(&text,
                      "%s\"d%d\":{\"type\":\"object\",\"properties\":{\"p%d\":{\"oneOf\":["
                      "{\"type\":\"null\"},%.*s]}},\"required\":[\"p%d\"],"
                      "\"additionalProperties\":false}",
                      i ? "," : "", i, i, (int)choice.len, choice.data, i);
    ls_buf_printf(&text, "}}");
    ls_json *schema = parsed(text.data);
    assert_ls_ok(ls_grammar_of_schema(schema, NULL, &g, &e), e);
    ls_grammar_free(g);
    ls_json_free(schema);
    ls_buf_free(&text), ls_buf_free(&choice);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_marks),
                                       cmocka_unit_test(test_recursive)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
