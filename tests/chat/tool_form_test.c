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

/* As Mistral does: calls in a list, with ids of nine signs; later a name and an object. */
#define LISTED(call)                                                                               \
    "{% for m in messages %}{% if loop.first and tools %}[TOOLS]{{ tools | tojson }}{% endif %}"   \
    "{% if m.tool_calls %}" call "{% else %}{{ m.content }}{% endif %}{% endfor %}"
#define LIST                                                                                       \
    LISTED("[TOOL_CALLS] [{% for c in m.tool_calls %}{% if c.id | length != 9 %}"                  \
           "{{ raise_exception('nine') }}{% endif %}{% if not loop.first %}, {% endif %}"          \
           "{{ (c.function | tojson)[:-1] }}, \"id\": \"{{ c.id }}\"}{% endfor %}]</s>")
#define NAMED                                                                                      \
    LISTED("{% for c in m.tool_calls %}[TOOL_CALLS]{{ c.function.name }}[ARGS]"                    \
           "{{ c.function.arguments | tojson }}{% endfor %}</s>")
#define NAMED_ID                                                                                   \
    LISTED("{% for c in m.tool_calls %}[TOOL_CALLS]{{ c.function.name }}[CALL_ID]{{ c.id }}[ARGS]" \
           "{{ c.function.arguments | tojson }}{% endfor %}</s>")
/* As Qwen3-Coder does, and GLM 4.5. */
#define PARAMETERS                                                                                 \
    LISTED(                                                                                        \
        "{% for c in m.tool_calls %}<tool_call>\n<function={{ c.function.name }}>\n{% for k, v "   \
        "in c.function.arguments | items %}<parameter={{ k }}>\n{{ v }}\n</parameter>\n"           \
        "{% endfor %}</function>\n</tool_call>{% endfor %}")
#define KEYS                                                                                       \
    LISTED("{% for c in m.tool_calls %}<tool_call>{{ c.function.name }}\n{% for k, v in "          \
           "c.function.arguments | items %}<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v }}"         \
           "</arg_value>\n{% endfor %}</tool_call>{% endfor %}")

/* As Nemotron does, and functionary. */
#define CLOSED(open, close)                                                                        \
    LISTED(open "[{% for c in m.tool_calls %}{{ ', ' if not loop.first }}{{ c.function | tojson "  \
                "}}{% endfor %}]" close)
#define FUNCTION                                                                                   \
    LISTED("{% for c in m.tool_calls %}<function={{ c.function.name }}>"                           \
           "{{ c.function.arguments | tojson }}</function>{% endfor %}")

/* As SmolLM3 does: it has functions, and writes contents alone. */
#define CONTENTS                                                                                   \
    "{% if xml_tools %}{% for t in xml_tools[:] %}{{ t | string }}\n{% endfor %}<tool_call>\n"     \
    "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>{% endif %}"      \
    "{% for m in messages %}<|a|>{{ m.role }}\n{{ m.content if m.content is string }}<|r|>"        \
    "{% endfor %}"

/* As Phi-4-mini does: the system's message has the functions as a text. */
#define SYSTEM                                                                                     \
    "{% for m in messages %}{% if m['role'] == 'system' and 'tools' in m and m['tools'] is not "   \
    "none %}{{ '<|system|>' + m['content'] + '<|tool|>' + m['tools'] + '<|/tool|>' }}{% else %}"   \
    "{{ '<|' + m['role'] + '|>' + m['content'] }}{% endif %}{{ '<|end|>' }}{% endfor %}"

static ls_tool_template template_of(const char *template) {
    ls_tokenizer *t = small_chat_tokenizer();
    ls_chat_format f = {.tokenizer = t};
    ls_error e = {0};
    assert_ls_ok(ls_template_parse(template, strlen(template), "t", &f.template, &e), e);
    ls_tool_template found = ls_tool_template_of(&f);
    ls_chat_format_free(&f);
    ls_tokenizer_free(t);
    return found;
}

static void test_forms(void **state) {
    (void)state;
    assert_string_equal(template_of(TAGGED).form->object, "arguments");
    assert_string_equal(template_of(TAGGED).lead, "\n");
    assert_string_equal(template_of(BARE).form->object, "parameters");
    assert_true(template_of(LIST).form->list);
    assert_string_equal(template_of(LIST).lead, " [");
    assert_string_equal(template_of(NAMED).form->name_end, "[ARGS]");
    assert_ptr_equal(template_of(NAMED).form, template_of(NAMED_ID).form);
    assert_string_equal(template_of(PARAMETERS).form->key, "<parameter=");
    assert_string_equal(template_of(KEYS).form->key, "<arg_key>");
    assert_string_equal(template_of(CLOSED("<TOOLCALL>", "</TOOLCALL>")).form->open, "<TOOLCALL>");
    assert_string_equal(template_of(CLOSED("<tool_calls>\n", "</tool_calls>")).lead, "\n[");
    assert_true(template_of(CLOSED("<|tool_call|>", "<|/tool_call|>")).form->list);
    assert_string_equal(template_of(FUNCTION).form->close, "</function>");
    assert_ptr_equal(template_of(CONTENTS).form, template_of(TAGGED).form);
    assert_string_equal(template_of(CONTENTS).lead, "\n");
    assert_ptr_equal(template_of(SYSTEM).form,
                     template_of(CLOSED("<|tool_call|>", "<|/tool_call|>")).form);
    assert_null(template_of(PLAIN).form);
    assert_null(template_of("{{ tools }}").form);
    assert_null(template_of("{{ raise_exception('no') }}").form);
    assert_null(template_of(LISTED("<tool_call>{{ m.tool_calls }}</tool_call>")).form);
}

/* Calls stand behind the content, and functions without what is around them. */
static void test_contents(void **state) {
    (void)state;
    static const char chat[] =
        "{\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}], \"messages\": "
        "[{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"function\": {\"name\": "
        "\"f\", \"arguments\": {\"x\": \"<\\\"é\", \"y\": [1, 2.5]}}}, {\"function\": {\"name\": "
        "\"g\", \"arguments\": \"{}\"}}]}, {\"role\": \"tool\", \"content\": \"z\"}, {\"role\": "
        "\"assistant\", \"content\": \"I call.\", \"tool_calls\": [{\"function\": {\"name\": "
        "\"f\", \"arguments\": {}}}]}]}";
    ls_json *j = NULL;
    ls_chat_format f = {0};
    ls_buf text = {0};
    ls_error e = {0};
    assert_ls_ok(ls_json_parse(chat, sizeof chat - 1, "it", &j, &e), e);
    assert_ls_ok(ls_template_parse(CONTENTS, sizeof CONTENTS - 1, "t", &f.template, &e), e);
    const ls_chat_text t = {
        .messages = ls_json_get(j, "messages"), .n = 3, .tools = ls_json_get(j, "tools")};
    assert_ls_ok(ls_chat_write(&f, &t, &text, &e), e);
    ls_buf_append(&text, "", 1);
    assert_string_equal(
        text.data,
        "{'name': 'f'}\n<tool_call>\n{\"name\": <function-name>, \"arguments\": "
        "<args-json-object>}\n</tool_call><|a|>assistant\n<tool_call>\n{\"name\": \"f\", "
        "\"arguments\": {\"x\": \"<\\\"é\", \"y\": [1, "
        "2.5]}}\n</tool_call>\n<tool_call>\n{\"name\": "
        "\"g\", \"arguments\": {}}\n</tool_call><|r|><|a|>tool\nz<|r|><|a|>assistant\nI call.\n"
        "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call><|r|>");
    assert_true(ls_chat_writes(f.template, "tools") && ls_chat_writes(f.template, "tool_calls"));
    assert_false(ls_chat_writes(f.template, "name"));
    ls_buf_free(&text);
    ls_json_free(j);
    ls_chat_format_free(&f);
}

/* With a system's message and without one; calls are a list behind the content. */
static void test_system(void **state) {
    (void)state;
    static const char chat[] =
        "{\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}], \"messages\": "
        "[{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"assistant\", \"content\": null, "
        "\"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {\"x\": 1}}}, "
        "{\"function\": {\"name\": \"g\", \"arguments\": \"{}\"}}]}]}";
    static const char calls[] = "<|assistant|><|tool_call|>[{\"name\": \"f\", \"arguments\": "
                                "{\"x\": 1}}, {\"name\": \"g\", \"arguments\": {}}]"
                                "<|/tool_call|><|end|>";
    static const char *const system[] = {"<|system|>s<|tool|>[{\"name\": \"f\"}]<|/tool|><|end|>",
                                         "<|system|><|tool|>[{\"name\": \"f\"}]<|/tool|><|end|>",
                                         "<|system|>s<|end|>"};
    ls_json *j = NULL;
    ls_chat_format f = {0};
    ls_error e = {0};
    assert_ls_ok(ls_json_parse(chat, sizeof chat - 1, "it", &j, &e), e);
    assert_ls_ok(ls_template_parse(SYSTEM, sizeof SYSTEM - 1, "t", &f.template, &e), e);
    assert_true(ls_chat_writes(f.template, "tools") && ls_chat_writes(f.template, "tool_calls"));
    for (int i = 0; i < 3; i++) {
        const ls_json *all = ls_json_get(j, "messages"), *tools = ls_json_get(j, "tools");
        ls_json *last = ls_json_new_array();
        ls_json_push(last, ls_json_share(ls_json_at(all, 1)));
        ls_chat_text t = {.messages = i == 1 ? last : all, .n = i == 1 ? 1 : 2};
        t.tools = i < 2 ? tools : NULL;
        ls_buf text = {0};
        assert_ls_ok(ls_chat_write(&f, &t, &text, &e), e);
        ls_buf_append(&text, "", 1);
        assert_memory_equal(text.data, system[i], strlen(system[i]));
        assert_string_equal(text.data + strlen(system[i]), calls);
        ls_buf_free(&text);
        ls_json_free(last);
    }
    ls_json_free(j);
    ls_chat_format_free(&f);
}

/* ---- texts ---- */

typedef struct wanted_call {
    const char *text, *content, *calls;
    const char *template; /* by whose form it is read */
    bool cut;             /* by its length */
} wanted_call;

#define T TAGGED
#define B BARE
#define L LIST
#define N NAMED
#define P PARAMETERS
#define CALL(name, arguments)                                                                      \
    "<tool_call>\n<function=" name ">\n" arguments "</function>\n</tool_call>"
#define ARG(key, value) "<parameter=" key ">\n" value "\n</parameter>\n"
#define C               CLOSED("<TOOLCALL>", "</TOOLCALL>")
#define CALLED(a)       "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": " #a "}}</tool_call>"
#define GET(a)          "{\"name\": \"get\", \"parameters\": {\"a\": " #a "}}"
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
    {"<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>", "",
     "f{\"a\": 1};", T, false},
    {"<tool_call>{\"name\": \"f\", \"arguments\": \"a, b\"}</tool_call>", "", "f\"a, b\";", T,
     false},
    {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"b", "", "f{\"a\": \"b;", T, true},
    {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"\\\"</tool_call>\"}}</tool_call>\n"
     "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>",
     "", "f{\"a\": \"\\\"</tool_call>\"};g{};", T, false},
    {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call>", "", "f{\"a\": 1;", T,
     false},
    {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool", "", "f{\"a\": 1</tool;", T,
     true},
    {"a <<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "a <", "f{};", T, false},
    {"x<tool_call>nothing</tool_call>", "x<tool_call>nothing</tool_call>", "", T, false},
    {"x<tool_call>{\"nam", "x<tool_call>{\"nam", "", T, true},
    {"{\"name\": \"get\", \"parameters\": {\"a\": {\"b\": 1}}}", "", "get{\"a\": {\"b\": 1}};", B,
     false},
    {"{\"name\": \"Bob\", \"parameters\": {}}", "{\"name\": \"Bob\", \"parameters\": {}}", "", B,
     false},
    {"{\"answer\": 3}", "{\"answer\": 3}", "", B, false},
    {" a {", " a {", "", B, false},
    {"", "", "", T, false},
    {"", "", "", B, false},
    {"<tool_call>{\"arguments\": {\"a\": 0.12345678901}, \"name\": \"f\"}</tool_call>", "",
     "f{\"a\": 0.12345678901};", T, false},
    /* content behind calls */
    {CALLED(1) "\n\nI called. \n", "", "f{\"a\": 1};+I called.", T, false},
    {"Now: " CALLED(1) "\nand\n" CALLED(2) " Done.", "Now:", "f{\"a\": 1};f{\"a\": 2};+\nand Done.",
     T, false},
    {CALLED(1) " <tool_call>no</tool_call>\n" CALLED(2), "",
     "f{\"a\": 1};f{\"a\": 2};+<tool_call>no</tool_call>", T, false},
    {"<tool_call>no</tool_call> " CALLED(2), "<tool_call>no</tool_call>", "f{\"a\": 2};", T, false},
    {CALLED(1) " <tool_c", "", "f{\"a\": 1};+<tool_c", T, true},
    {CALLED(1) " <tool_call>{\"name\": \"f\"", "", "f{\"a\": 1};+<tool_call>{\"name\": \"f\"", T,
     true},
    {GET(1) "\nThat is {it}.", "", "get{\"a\": 1};+That is {it}.", B, false},
    {GET(1) "; " GET(2) ";", "", "get{\"a\": 1};get{\"a\": 2};", B, false},
    {GET(1) "\n{\"name\": \"Bob\"}", "", "get{\"a\": 1};+{\"name\": \"Bob\"}", B, false},
    /* a list */
    {"[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"x\": 1}, \"id\": \"abc123456\"}]", "",
     "f{\"x\": 1};", L, false},
    {"[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{}},{\"name\":\"other\",\"arguments\":{\"a\":[{}]}"
     "}]",
     "", "f{};other{\"a\":[{}]};", L, false},
    {"Let me see.\n[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": \"[TOOL_CALLS] [}]\"}}]",
     "Let me see.", "f{\"a\": \"[TOOL_CALLS] [}]\"};", L, false},
    {"[TOOL_CALLS] [{\"id\": \"1\", \"arguments\": {\"a\": 1}, \"name\": \"f\"}]", "",
     "f{\"a\": 1};", L, false},
    {"[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1, \"a\": 2}}]", "",
     "f{\"a\": 1, \"a\": 2};", L, false},
    {"[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": \"b", "", "f{\"a\": \"b;", L, true},
    {"[TOOL_CALLS] [{\"name\": \"f\", \"argum", "[TOOL_CALLS] [{\"name\": \"f\", \"argum", "", L,
     true},
    {"[TOOL_CALLS] []", "[TOOL_CALLS] []", "", L, false},
    {"[TOOL_CALLS] [\"f\"]", "[TOOL_CALLS] [\"f\"]", "", L, false},
    {"[TOOL_CALLS] f", "[TOOL_CALLS] f", "", L, false},
    {"[TOOL_CALLS]", "[TOOL_CALLS]", "", L, true},
    {"a [TOOL", "a [TOOL", "", L, false},
    /* names and objects */
    {"[TOOL_CALLS]f[ARGS]{\"x\": {\"y\": \"}[ARGS]\"}}", "", "f{\"x\": {\"y\": \"}[ARGS]\"}};", N,
     false},
    {"Yes. [TOOL_CALLS]f[CALL_ID]abc123456[ARGS]{}[TOOL_CALLS]g.h-1[ARGS]{\"a\": 1}", "Yes.",
     "f{};g.h-1{\"a\": 1};", N, false},
    {"[TOOL_CALLS]f{\"a\": 1}", "", "f{\"a\": 1};", N, false},
    {"[TOOL_CALLS]f [ARGS] {\"a\": 1} and so on", "", "f{\"a\": 1};+and so on", N, false},
    {"[TOOL_CALLS]f[ARGS]{\"a\": \"b", "", "f{\"a\": \"b;", N, true},
    {"[TOOL_CALLS]f[ARGS]", "[TOOL_CALLS]f[ARGS]", "", N, true},
    {"[TOOL_CALLS]f[AR", "[TOOL_CALLS]f[AR", "", N, true},
    {"[TOOL_CALLS]two words[ARGS]{}", "[TOOL_CALLS]two words[ARGS]{}", "", N, false},
    {"[TOOL_CALLS][ARGS]{}", "[TOOL_CALLS][ARGS]{}", "", N, false},
    {"[TOOL_CALLS]f[ARGS]\"x\"", "[TOOL_CALLS]f[ARGS]\"x\"", "", N, false},
    /* texts: get has the types that TYPES says */
    {CALL("get", ""), "", "get{};", P, false},
    {CALL("get",
          ARG("s", "5") ARG("n", "5") ARG("i", "-3") ARG("b", "True") ARG("o", "{\"k\": [1]}")),
     "", "get{\"s\": \"5\", \"n\": 5, \"i\": -3, \"b\": true, \"o\": {\"k\": [1]}};", P, false},
    {"So:\n\n" CALL("get", ARG("s", "a\n  \"b\" <c>\n")) "\n" CALL("f", ARG("x", "1")),
     "So:", "get{\"s\": \"a\\n  \\\"b\\\" <c>\\n\"};f{\"x\": \"1\"};", P, false},
    {CALL("get", ARG("s", "")), "", "get{\"s\": \"\"};", P, false},
    {CALL("get", ARG("n", "many") ARG("i", "1.5") ARG("u", "None") ARG("r", "red")), "",
     "get{\"n\": \"many\", \"i\": \"1.5\", \"u\": null, \"r\": \"red\"};", P, false},
    {CALL("get", ARG("u", "7") ARG("e", "2") ARG("t", "[1]")), "",
     "get{\"u\": 7, \"e\": 2, \"t\": [1]};", P, false},
    {CALL("get", ARG("s", "</parameter> x </function> <tool_call> </tool_call>")), "",
     "get{\"s\": \"</parameter> x </function> <tool_call> </tool_call>\"};", P, false},
    {"<tool_call><function=get><parameter=s>a</parameter><parameter=n>2</parameter></function>"
     "</tool_call>",
     "", "get{\"s\": \"a\", \"n\": 2};", P, false},
    {CALL("get", ARG("s", "a") ARG("s", "b")), "", "get{\"s\": \"a\", \"s\": \"b\"};", P, false},
    {"<tool_call>\n<function=get>\n<parameter=n>\n12\n</parameter>\n<parameter=s>\na\nb", "",
     "get{\"n\": 12, \"s\": \"a\\nb;", P, true},
    {"<tool_call>\n<function=get>\n<parameter=n>\n1", "", "get{;", P, true},
    {"<tool_call>\n<function=get>\n<parameter=n>\n1\n</parameter>\n<par", "", "get{\"n\": 1;", P,
     true},
    {"<tool_call>\n<function=ge", "<tool_call>\n<function=ge", "", P, true},
    {"<tool_call>\n<function=get>\nhello</function></tool_call>",
     "<tool_call>\n<function=get>\nhello</function></tool_call>", "", P, false},
    {"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
     "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "", P, false},
    {"Now.\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>\n<function=get>"
     "</function>",
     "Now.", "f{\"x\": \"1\"};get{};", P, false},
    {"Write <function=name> and so on", "Write <function=name> and so on", "", P, false},
    {"<tool_call>get\n<arg_key>s</arg_key>\n<arg_value>a</arg_value>\n<arg_key>n</arg_key>\n"
     "<arg_value>2</arg_value>\n</tool_call>\n<tool_call>f\n</tool_call>",
     "", "get{\"s\": \"a\", \"n\": 2};f{};", KEYS, false},
    {"<tool_call>some words</tool_call>", "<tool_call>some words</tool_call>", "", KEYS, false},
    /* a list that is closed, and a function */
    {"<TOOLCALL>[{\"name\": \"f\", \"arguments\": {\"x\": 1}}, {\"name\": \"g\", \"arguments\": "
     "{}}]"
     "</TOOLCALL>\nSo.",
     "", "f{\"x\": 1};g{};+So.", C, false},
    {"a<TOOLCALL>[{\"name\": \"f\", \"arguments\": {}}]</TOOL", "a", "f{};", C, true},
    {"<TOOLCALL>[{\"name\": \"f\", \"arguments\": {}}] b", "", "f{};+b", C, false},
    {"<TOOLCALL>f()</TOOLCALL>", "<TOOLCALL>f()</TOOLCALL>", "", C, false},
    {"Now <function=f>{\"x\": \"</function>\"}</function><function=get>{}</function> b", "Now",
     "f{\"x\": \"</function>\"};get{};+ b", FUNCTION, false},
    {"<function=f>{\"x\": 1}</fun", "", "f{\"x\": 1};", FUNCTION, true},
    {"<function=f>{\"x\": 1", "", "f{\"x\": 1;", FUNCTION, true},
    {"if (<function=f> b", "if (<function=f> b", "", FUNCTION, false}};

static const char TYPES[] =
    "{\"$defs\": {\"c\": {\"enum\": [\"red\"]}}, \"properties\": {\"s\": {\"type\": \"string\"}, "
    "\"n\": {\"type\": \"number\"}, \"i\": {\"type\": \"integer\"}, \"b\": {\"type\": "
    "\"boolean\"}, \"o\": {\"type\": \"object\"}, \"u\": {\"anyOf\": [{\"type\": \"integer\"}, "
    "{\"type\": \"null\"}]}, \"r\": {\"$ref\": \"#/$defs/c\"}, \"e\": {\"enum\": [1, 2]}, \"t\": "
    "{\"type\": [\"array\", \"string\"]}}}";
static ls_json *types;

static int read_types(void **state) {
    ls_error e = {0};
    (void)state;
    return ls_json_parse(TYPES, sizeof TYPES - 1, "it", &types, &e);
}

static int free_types(void **state) {
    (void)state;
    ls_json_free(types);
    return 0;
}

static ls_tool_text read_text(const wanted_call *c, size_t n, bool ended) {
    const ls_tool tools[] = {{"f", NULL}, {"get", types}};
    static const char *last;
    static const ls_tool_form *form;
    if (last != c->template) form = template_of(last = c->template).form;
    const ls_tool_names names = {form, tools, 2};
    ls_tool_text t;
    ls_tool_text_read(&names, c->text, n, ended, &t);
    return t;
}

static void put_calls(const ls_tool_text *t, ls_buf *b) {
    for (size_t i = 0; i < t->n; i++)
        ls_buf_printf(b, "%s%.*s;", t->calls[i].name, (int)t->calls[i].arguments.len,
                      t->calls[i].arguments.data ? t->calls[i].arguments.data : "");
    if (t->after.len) ls_buf_printf(b, "+%.*s", (int)t->after.len, t->after.data);
    ls_buf_append(b, "", 1);
}

/* What is read of a beginning only grows, to what is read at the end: content, calls, arguments. */
static void check_growth(const wanted_call *c) {
    size_t n = strlen(c->text), ncontent = 0, ncalls = 0;
    ls_buf before = {0}, after = {0};
    for (size_t k = 0; k <= n + 1; k++) {
        ls_tool_text t = read_text(c, k < n ? k : n, k > n);
        assert_true(t.ncontent >= ncontent && t.ncontent <= strlen(c->content));
        assert_true(t.n >= ncalls);
        if (t.n > ncalls) before.len = 0;
        const ls_buf *now = t.n ? &t.calls[t.n - 1].arguments : &before;
        if (now->len < before.len ||
            (before.len && memcmp(now->data, before.data, before.len) != 0))
            fail_msg("%s: after %zu bytes the arguments are not those before, and more", c->text,
                     k);
        if (now != &before) {
            before.len = 0;
            ls_buf_append(&before, now->data, now->len);
        }
        assert_true(t.after.len >= after.len);
        if (after.len) assert_memory_equal(t.after.data, after.data, after.len);
        ls_buf_free(&after);
        after = t.after;
        t.after = (ls_buf){0};
        ncontent = t.ncontent;
        ncalls = t.n;
        ls_tool_text_free(&t);
    }
    ls_buf_free(&before);
    ls_buf_free(&after);
}

static void test_texts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_tool_text t = read_text(&cases[i], strlen(cases[i].text), true);
        ls_buf calls = {0};
        put_calls(&t, &calls);
        if (t.ncontent != strlen(cases[i].content) || strcmp(calls.data, cases[i].calls) != 0)
            fail_msg("%s: %zu bytes of content, calls %s", cases[i].text, t.ncontent, calls.data);
        assert_memory_equal(cases[i].text, cases[i].content, t.ncontent);
        ls_buf_free(&calls);
        ls_tool_text_free(&t);
        check_growth(&cases[i]);
    }
}

/* Names that calls without quotes can't have. */
static void test_names(void **state) {
    (void)state;
    assert_true(ls_tool_form_can_name(template_of(TAGGED).form, "a b"));
    assert_true(ls_tool_form_can_name(template_of(NAMED).form, "a-b.c_1"));
    assert_false(ls_tool_form_can_name(template_of(NAMED).form, "a b"));
    assert_false(ls_tool_form_can_name(template_of(PARAMETERS).form, "a>b"));
}

/* A schema that leads to itself again and again allows values of all types, in little time. */
static void test_wide_schema(void **state) {
    static const char text[] = CALL("get", ARG("s", "5"));
    ls_buf wide = {0};
    ls_json *parameters = NULL;
    ls_tool_text t;
    ls_error e = {0};
    (void)state;
    ls_buf_printf(&wide, "{\"properties\": {\"s\": {\"anyOf\": [{\"type\": \"string\"}");
    for (int i = 0; i < 100; i++) ls_buf_printf(&wide, ", {\"$ref\": \"#/properties/s\"}");
    ls_buf_printf(&wide, "]}}}");
    assert_ls_ok(ls_json_parse(wide.data, wide.len, "it", &parameters, &e), e);
    const ls_tool tool = {"get", parameters};
    const ls_tool_names names = {template_of(PARAMETERS).form, &tool, 1};
    ls_tool_text_read(&names, text, sizeof text - 1, true, &t);
    assert_int_equal(t.n, 1);
    assert_memory_equal(t.calls[0].arguments.data, "{\"s\": 5}", 8);
    ls_tool_text_free(&t);
    ls_json_free(parameters);
    ls_buf_free(&wide);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),  cmocka_unit_test(test_contents),
        cmocka_unit_test(test_system), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_names),  cmocka_unit_test(test_wide_schema)};
    return cmocka_run_group_tests(tests, read_types, free_types);
}
