/* tool_form_test.c - which templates know tools; calls in texts, also while these are written. */
#include "chat/tool_form.h"

#include "chat/small_chat.h"
#include "test.h"

/* As Qwen 2.5 and Hermes write calls. */
#define TAGGED                                                                                     \
    "{% if tools %}<|a|>system\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}<|r|>{% endif "  \
    "%}"                                                                                           \
    "{% for m in messages %}<|a|>{{ m.role }}{% if m.content %}\n{{ m.content }}{% endif %}"       \
    "{% for c in m.tool_calls or [] %}\n<tool_call>\n{\"name\": \"{{ c.function.name }}\", "       \
    "\"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}<|r|>{% endfor " \
    "%}"                                                                                           \
    "{% if add_generation_prompt %}<|a|>assistant\n{% endif %}"
/* As Llama 3 does. */
#define BARE                                                                                       \
    "{% for t in tools or [] %}{{ t | tojson(indent=4) }}{% endfor %}{% for m in messages %}"      \
    "{% if 'tool_calls' in m %}{% if m.tool_calls|length != 1 %}{{ raise_exception('one') }}"      \
    "{% endif %}{% set c = m.tool_calls[0].function %}{\"name\": \"{{ c.name }}\", "               \
    "\"parameters\": {{ c.arguments | tojson }}}{% else %}{{ m.role }}{{ m.content }}{% endif %}"  \
    "{% endfor %}"

static ls_tool_form form_of(const char *template) {
    ls_tokenizer *t = small_chat_tokenizer();
    ls_chat_format f = {.tokenizer = t};
    ls_error e = {0};
    assert_ls_ok(ls_template_parse(template, strlen(template), "t", &f.template, &e), e);
    ls_tool_form form = ls_tool_form_of(&f);
    ls_chat_format_free(&f);
    ls_tokenizer_free(t);
    return form;
}

static void test_forms(void **state) {
    (void)state;
    assert_int_equal(form_of(TAGGED), LS_TOOLS_TAGGED);
    assert_int_equal(form_of(BARE), LS_TOOLS_BARE);
    assert_int_equal(form_of(PLAIN), LS_TOOLS_UNKNOWN);
    assert_int_equal(form_of("{{ tools }}"), LS_TOOLS_UNKNOWN);
    assert_int_equal(form_of("{{ raise_exception('no') }}"), LS_TOOLS_UNKNOWN);
}

/* ---- texts ---- */

static const char *known[] = {"f", "get"};

typedef struct wanted_call {
    const char *text, *content, *calls;
    ls_tool_form form;
    bool cut; /* by its length */
} wanted_call;

#define T LS_TOOLS_TAGGED
#define B LS_TOOLS_BARE
static const wanted_call cases[] = {
    {"hello", "hello", "", T, false},
    {"a < b <tool", "a < b <tool", "", T, false},
    {"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \"}\\\"\", \"y\": [1]}}\n</tool_call>",
     "", "f{\"x\": \"}\\\"\", \"y\": [1]};", T, false},
    {"I call.\n\n<tool_call>{\"name\":\"other\",\"arguments\":{}}</tool_call>", "I call.",
     "other{};", T, false},
    {"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": "
     "\"g\", "
     "\"arguments\": {\"a\": 1}}\n</tool_call>",
     "", "f{};g{\"a\": 1};", T, false},
    {"<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"f\"}</tool_call>", "", "f{\"a\": 1};", T,
     false},
    {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"b", "", "f{\"a\": \"b;", T, true},
    {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"\\\"</tool_call>\"}}</tool_call>\n"
     "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>",
     "", "f{\"a\": \"\\\"</tool_call>\"};g{};", T, false},
    {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call>", "", "f{\"a\": 1;", T,
     false},
    {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool", "", "f{\"a\": 1</tool;", T,
     true},
    {"x<tool_call>nothing</tool_call>", "x<tool_call>nothing</tool_call>", "", T, false},
    {"x<tool_call>{\"nam", "x<tool_call>{\"nam", "", T, true},
    {"{\"name\": \"get\", \"parameters\": {\"a\": {\"b\": 1}}}", "", "get{\"a\": {\"b\": 1}};", B,
     false},
    {"{\"name\": \"Bob\", \"parameters\": {}}", "{\"name\": \"Bob\", \"parameters\": {}}", "", B,
     false},
    {"{\"answer\": 3}", "{\"answer\": 3}", "", B, false},
    {" a {", " a {", "", B, false},
    {"", "", "", T, false},
    {"", "", "", B, false}};

static void put_calls(const ls_tool_text *t, ls_buf *b) {
    for (size_t i = 0; i < t->n; i++)
        ls_buf_printf(b, "%s%.*s;", t->calls[i].name, (int)t->calls[i].arguments.len,
                      t->calls[i].arguments.data ? t->calls[i].arguments.data : "");
    ls_buf_append(b, "", 1);
}

/* What is read of a beginning only grows, to what is read at the end: content, calls, arguments. */
static void check_growth(const wanted_call *c) {
    const ls_tool_names names = {c->form, known, 2};
    size_t n = strlen(c->text), ncontent = 0, ncalls = 0, narguments = 0;
    for (size_t k = 0; k <= n + 1; k++) {
        ls_tool_text t;
        ls_tool_text_read(&names, c->text, k < n ? k : n, k > n, &t);
        assert_true(t.ncontent >= ncontent && t.ncontent <= strlen(c->content));
        assert_true(t.n >= ncalls);
        if (t.n > ncalls) narguments = 0;
        if (t.n) assert_true(t.calls[t.n - 1].arguments.len >= narguments);
        ncontent = t.ncontent;
        ncalls = t.n;
        narguments = t.n ? t.calls[t.n - 1].arguments.len : 0;
        ls_tool_text_free(&t);
    }
}

static void test_texts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ls_tool_names names = {cases[i].form, known, 2};
        ls_tool_text t;
        ls_buf calls = {0};
        ls_tool_text_read(&names, cases[i].text, strlen(cases[i].text), true, &t);
        put_calls(&t, &calls);
        if (t.ncontent != strlen(cases[i].content) || strcmp(calls.data, cases[i].calls) != 0)
            fail_msg("%s: %zu bytes of content, calls %s", cases[i].text, t.ncontent, calls.data);
        assert_memory_equal(cases[i].text, cases[i].content, t.ncontent);
        ls_buf_free(&calls);
        ls_tool_text_free(&t);
        check_growth(&cases[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
