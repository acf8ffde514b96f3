/* tools_test.c - requests with tools: a model with random weights writes calls where it must; the
 * same whole and as a stream; conversations with calls; what is refused. */
/* ctest: seconds=2 */
#include "serve/asked.h"

#include <ctype.h>

static const ls_json *choice_of(const ls_json *o, size_t i) {
    return ls_json_at(ls_json_get(o, "choices"), i);
}

static const char *text_at(const ls_json *o, const char *a, const char *b) {
    return ls_json_text(ls_json_get(ls_json_get(o, a), b));
}

/* ---- calls ---- */

static void check_call(const ls_json *call) {
    const char *name = text_at(call, "function", "name");
    const char *arguments = text_at(call, "function", "arguments");
    ls_json *j = NULL;
    ls_error e = {0};
    assert_string_equal(ls_json_text(ls_json_get(call, "type")), "function");
    const char *id = ls_json_text(ls_json_get(call, "id")); /* as Mistral's templates want it */
    assert_int_equal(strlen(id), 9);
    for (int i = 0; i < 9; i++) assert_true(isalnum((unsigned char)id[i]));
    assert_ls_ok(ls_json_parse(arguments, strlen(arguments), "it", &j, &e), e);
    if (strcmp(name, "turn") == 0) {
        assert_true(ls_json_is_bool(ls_json_get(j, "on")));
        assert_int_equal(ls_json_count(j), 2);
    } else {
        assert_string_equal(name, "wait");
        assert_string_equal(arguments, "{}");
    }
    ls_json_free(j);
}

/* Adds up the pieces of the stream's calls of choice 0, and compares them. */
static void check_stream(asked *x, const ls_json *calls) {
    ls_buf arguments[16] = {{0}};
    size_t n = 0;
    const char *finish = NULL;
    char reason[20] = "";
    ls_buf_append(&x->stream, "", 1);
    for (char *line = x->stream.data, *next; (next = strstr(line, "\n\n")); line = next + 2) {
        ls_json *j = NULL;
        ls_error e = {0};
        *next = 0;
        if (strcmp(line, "data: [DONE]") == 0) break;
        assert_ls_ok(ls_json_parse(line + 6, strlen(line + 6), "an event", &j, &e), e);
        const ls_json *choice = choice_of(j, 0), *delta = ls_json_get(choice, "delta");
        const ls_json *piece = ls_json_at(ls_json_get(delta, "tool_calls"), 0);
        int64_t choice_index = 0, index = 0;
        ls_json_integer(ls_json_get(choice, "index"), &choice_index);
        if (choice_index == 0 && piece) {
            assert_true(ls_json_integer(ls_json_get(piece, "index"), &index));
            const char *name = text_at(piece, "function", "name");
            if (name) {
                assert_int_equal(index, n);
                const ls_json *want = ls_json_at(calls, n++);
                assert_string_equal(name, text_at(want, "function", "name"));
                assert_string_equal(ls_json_text(ls_json_get(piece, "id")),
                                    ls_json_text(ls_json_get(want, "id")));
            }
            const char *more = text_at(piece, "function", "arguments");
            assert_int_equal(index, n - 1);
            ls_buf_append(&arguments[index], more, strlen(more));
        }
        finish = ls_json_text(ls_json_get(choice, "finish_reason"));
        if (choice_index == 0 && finish) snprintf(reason, sizeof reason, "%s", finish);
        ls_json_free(j);
    }
    assert_string_equal(reason, "tool_calls");
    assert_int_equal(n, ls_json_count(calls));
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(arguments[i].data,
                            text_at(ls_json_at(calls, i), "function", "arguments"));
        ls_buf_free(&arguments[i]);
    }
}

static void test_required(void **state) {
    (void)state;
    asked x;
    ls_json *o =
        ask(&x, "{" ASK ", " TOOLS
                ", \"n\": 3, \"tool_choice\": \"required\", \"parallel_tool_calls\": false, "
                "\"max_tokens\": 400, \"stream\": true}");
    for (size_t i = 0; i < 3; i++) {
        const ls_json *message = ls_json_get(choice_of(o, i), "message");
        const ls_json *calls = ls_json_get(message, "tool_calls");
        const char *reason = ls_json_text(ls_json_get(choice_of(o, i), "finish_reason"));
        assert_int_equal(ls_json_count(calls), 1);
        assert_true(ls_json_is_null(ls_json_get(message, "content")));
        assert_string_equal(reason, "tool_calls");
        check_call(ls_json_at(calls, 0));
    }
    ls_json_free(o);
    free_asked(&x);
}

/* No token ends the model's texts, so that calls follow each other until the length cuts the
 * last. */
static void test_parallel(void **state) {
    (void)state;
    asked x;
    ls_json *o =
        ask(&x, "{" ASK ", " TOOLS ", \"tool_choice\": \"required\", \"max_tokens\": 250}");
    const ls_json *calls = ls_json_get(ls_json_get(choice_of(o, 0), "message"), "tool_calls");
    assert_string_equal(ls_json_text(ls_json_get(choice_of(o, 0), "finish_reason")), "length");
    assert_true(ls_json_count(calls) >= 2);
    for (size_t i = 0; i + 1 < ls_json_count(calls); i++) check_call(ls_json_at(calls, i));
    ls_json_free(o);
    free_asked(&x);
}

static void test_named(void **state) {
    (void)state;
    asked x;
    ls_json *o =
        ask(&x, "{" ASK ", " TOOLS ", \"tool_choice\": {\"type\": \"function\", \"function\": "
                "{\"name\": \"turn\"}}, \"stream\": true}");
    const ls_json *calls = ls_json_get(ls_json_get(choice_of(o, 0), "message"), "tool_calls");
    assert_int_equal(ls_json_count(calls), 1);
    assert_string_equal(text_at(ls_json_at(calls, 0), "function", "name"), "turn");
    check_call(ls_json_at(calls, 0));
    check_stream(&x, calls);
    ls_json_free(o);
    free_asked(&x);
}

/* A function without parameters takes none; templates find them all the same. */
static void test_without_parameters(void **state) {
    static const char *const written[] = {"", ", \"parameters\": null"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        asked x;
        char *body = ls_format("{" ASK ", \"tools\": [{\"type\": \"function\", \"function\": "
                               "{\"name\": \"wait\"%s}}], \"tool_choice\": \"required\", "
                               "\"parallel_tool_calls\": false}",
                               written[i]);
        ls_json *o = ask(&x, body);
        const ls_json *calls = ls_json_get(ls_json_get(choice_of(o, 0), "message"), "tool_calls");
        assert_int_equal(ls_json_count(calls), 1);
        check_call(ls_json_at(calls, 0));
        ls_json_free(o);
        free_asked(&x);
        free(body);
    }
}

/* The model is not led to calls, and its text is none. */
static void test_auto(void **state) {
    (void)state;
    static const char *const choices[] = {"auto", "none"};
    for (int i = 0; i < 2; i++) {
        asked x;
        char *body = ls_format("{%s, %s, \"tool_choice\": \"%s\", \"max_tokens\": 8}", ASK, TOOLS,
                               choices[i]);
        ls_json *o = ask(&x, body);
        const ls_json *message = ls_json_get(choice_of(o, 0), "message");
        assert_non_null(ls_json_text(ls_json_get(message, "content")));
        assert_null(ls_json_get(message, "tool_calls"));
        ls_json_free(o);
        free_asked(&x);
        free(body);
    }
}

/* ---- other forms ---- */

/* As Mistral writes calls, in a list or each by its name, and as Qwen3-Coder does. */
static const char *const templates[] = {
    "{% for m in messages %}[TOOL_CALLS] [{% for c in m.tool_calls or [] %}{{ c.function | tojson "
    "}}{% endfor %}]{% endfor %}{{ tools | tojson }}",
    "{% for m in messages %}{% for c in m.tool_calls or [] %}[TOOL_CALLS]{{ c.function.name "
    "}}[ARGS]{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}{{ tools | tojson }}",
    "{% for m in messages %}{% for c in m.tool_calls or [] %}<tool_call>\n<function={{ "
    "c.function.name }}>\n{% for k, v in c.function.arguments | items %}<parameter={{ k }}>\n{{ v "
    "}}\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}{% endfor %}{{ tools | "
    "tojson }}",
    "{% for m in messages %}<TOOLCALL>[{% for c in m.tool_calls or [] %}{{ c.function | tojson "
    "}}{% endfor %}]</TOOLCALL>{% endfor %}{{ tools | tojson }}",
    "{% for m in messages %}{% for c in m.tool_calls or [] %}<function={{ c.function.name }}>{{ "
    "c.function.arguments | tojson }}</function>{% endfor %}{% endfor %}{{ tools | tojson }}"};

static void read_template(const char *text, const ls_tokenizer *t, ls_tool_template *found) {
    ls_chat_format f = {.tokenizer = t};
    ls_error e = {0};
    assert_ls_ok(ls_template_parse(text, strlen(text), "t", &f.template, &e), e);
    *found = ls_tool_template_of(&f);
    assert_non_null(found->form);
    ls_chat_format_free(&f);
}

/* A forced call is one of its form, whole and as a stream, and several may follow each other. */
static void test_forms(void **state) {
    const ls_tool_template before = model.tool_template;
    (void)state;
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        read_template(templates[i], trained.tokenizer, &model.tool_template);
        test_named(NULL);
        test_without_parameters(NULL);
        asked x;
        ls_json *o =
            ask(&x, "{" ASK ", " TOOLS ", \"tool_choice\": \"required\", \"max_tokens\": 250}");
        const ls_json *calls = ls_json_get(ls_json_get(choice_of(o, 0), "message"), "tool_calls");
        const char *reason = ls_json_text(ls_json_get(choice_of(o, 0), "finish_reason"));
        size_t n = ls_json_count(calls), cut = strcmp(reason, "length") == 0;
        assert_true(n >= 1 + cut); /* a list may be closed after any call */
        for (size_t k = 0; k + cut < n; k++) check_call(ls_json_at(calls, k));
        ls_json_free(o);
        free_asked(&x);
    }
    model.tool_template = before;
}

#define PLAN                                                                                       \
    "{\"type\": \"object\", \"$defs\": {\"w\": {\"enum\": [\"x y\", 3]}}, \"properties\": "        \
    "{\"s\": "                                                                                     \
    "{\"type\": \"string\", \"pattern\": \"^[a\\\"<]{2,4}$\"}, \"n\": {\"anyOf\": [{\"type\": "    \
    "\"integer\", "                                                                                \
    "\"minimum\": 1, \"maximum\": 9}, {\"type\": \"null\"}]}, \"l\": {\"type\": \"array\", "       \
    "\"items\": "                                                                                  \
    "{\"enum\": [\"a\\\"\", \"b\"]}, \"minItems\": 1, \"maxItems\": 2}, \"o\": {\"type\": "        \
    "\"object\", "                                                                                 \
    "\"properties\": {\"k\": {\"type\": \"string\", \"maxLength\": 2}}, \"required\": [\"k\"]}, "  \
    "\"w\": "                                                                                      \
    "{\"$ref\": \"#/$defs/w\"}, \"t\": {\"type\": \"string\", \"maxLength\": 9}, \"b\": "          \
    "{\"type\": "                                                                                  \
    "\"boolean\"}}, \"required\": [\"s\", \"n\", \"l\", \"o\", \"w\", \"t\"]}"

static void check_plan(const ls_json *plan) {
    int64_t n = 0;
    const ls_json *number = ls_json_get(plan, "n"), *list = ls_json_get(plan, "l");
    const char *s = ls_json_text(ls_json_get(plan, "s")), *word = NULL;
    assert_in_range(strlen(s), 2, 4);
    assert_int_equal(strspn(s, "a\"<"), strlen(s));
    assert_true(ls_json_is_null(number) || (ls_json_integer(number, &n) && n >= 1 && n <= 9));
    assert_in_range(ls_json_count(list), 1, 2);
    for (size_t i = 0; (word = ls_json_text(ls_json_at(list, i))); i++)
        assert_true(strcmp(word, "a\"") == 0 || strcmp(word, "b") == 0);
    assert_non_null(text_at(plan, "o", "k"));
    word = ls_json_text(ls_json_get(plan, "w"));
    if (word)
        assert_string_equal(word, "x y");
    else
        assert_true(ls_json_integer(ls_json_get(plan, "w"), &n) && n == 3);
    assert_non_null(ls_json_text(ls_json_get(plan, "t")));
    assert_true(!ls_json_get(plan, "b") || ls_json_is_bool(ls_json_get(plan, "b")));
}

/* Arguments that are texts are valid by the tool's schema, whatever the model draws. */
static void test_plan(void **state) {
    const ls_tool_template before = model.tool_template;
    (void)state;
    read_template(templates[2], trained.tokenizer, &model.tool_template);
    for (int seed = 0; seed < ncases(6, 60); seed++) {
        asked x;
        ls_json *plan = NULL;
        ls_error e = {0};
        char *body = ls_format(
            "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"seed\": "
            "%d, \"temperature\": 3, \"tools\": [" TOOL(
                "plan", "%s") "], "
                              "\"tool_choice\": \"required\", \"parallel_tool_calls\": false}",
            seed, PLAN);
        ls_json *o = ask(&x, body);
        const ls_json *calls = ls_json_get(ls_json_get(choice_of(o, 0), "message"), "tool_calls");
        const char *arguments = text_at(ls_json_at(calls, 0), "function", "arguments");
        assert_ls_ok(ls_json_parse(arguments, strlen(arguments), "it", &plan, &e), e);
        check_plan(plan);
        ls_json_free(plan);
        ls_json_free(o);
        free_asked(&x);
        free(body);
    }
    model.tool_template = before;
}

/* Only token may follow tokens [n]; and a text of any characters does not have it. */
static void check_next(ls_constraint *c, const uint32_t *tokens, int64_t n, uint32_t only) {
    ls_constrained at = {0};
    ls_allowed a = ls_constraint_after(c, &at, tokens, n);
    assert_int_equal(a.n, 1);
    assert_true(a.mask[only / 64] >> (only % 64) & 1);
}

/* Where a mark is a special token, that token is written, and not its letters; and it is read. */
static void test_special(void **state) {
    enum { CALLS = 256, ARGS, OTHER };
    static const char *const none[] = {NULL};
    const small_tokenizer s = {
        .pre_tokenizer = SMALL_BYTE_LEVEL,
        .tokens = none,
        .merges = none,
        .added = "[{\"id\": 256, \"content\": \"[TOOL_CALLS]\", \"special\": true}, {\"id\": 257, "
                 "\"content\": \"[ARGS]\", \"special\": true}, {\"id\": 258, \"content\": \"<s>\", "
                 "\"special\": true}]"};
    char *json = small_json(&s);
    ls_tokenizer *t = NULL;
    ls_error e = {0};
    ls_json *body = NULL;
    ls_tool_template written;
    ls_tools tools;
    const char *field = NULL;
    ls_grammar *g = NULL;
    uint32_t shown[LS_TOOL_MARKS], tokens[] = {CALLS, 0, ARGS, 0, 0};
    bool stopped = false;
    (void)state;
    assert_ls_ok(ls_tokenizer_parse(json, strlen(json), "t", &t, &e), e);
    read_template(templates[1], t, &written);
    static const char asks[] = "{\"tools\": [{\"type\": \"function\", \"function\": {\"name\": "
                               "\"w\"}}], \"tool_choice\": \"required\"}";
    assert_ls_ok(ls_json_parse(asks, sizeof asks - 1, "it", &body, &e), e);
    assert_ls_ok(ls_tools_read(&written, body, &tools, &field, &e), e);
    for (uint32_t i = 0; i < CALLS; i++) {
        size_t n = 0;
        uint8_t byte = *ls_tokenizer_bytes(t, i, &n);
        if (byte == 'w') tokens[1] = i;
        if (byte == '{') tokens[3] = i;
        if (byte == '}') tokens[4] = i;
    }
    ls_token_tree *tree = ls_token_tree_new(t, OTHER + 1);
    assert_ls_ok(ls_tools_grammar(&tools, tree, &g, &e), e);
    ls_constraint *c = ls_constraint_new(tree, g);
    for (int64_t i = 0; i < 5; i++) check_next(c, tokens, i, tokens[i]);
    ls_constraint_free(c);
    assert_ls_ok(ls_grammar_of_regex("[^x]*", 5, &tree->bytes, &g, &e), e);
    c = ls_constraint_new(tree, g);
    ls_constrained at = {0};
    ls_allowed a = ls_constraint_after(c, &at, tokens, 0);
    for (uint32_t i = CALLS; i <= OTHER; i++) assert_false(a.mask[i / 64] >> (i % 64) & 1);
    ls_constraint_free(c);
    assert_int_equal(ls_tools_shown(&tools, t, shown), 2);
    ls_text_output text = {.shown = shown, .nshown = 2};
    text.decoding = (ls_decoding){.tokenizer = t, .begun = true};
    for (int i = 0; i < 5; i++) ls_text_output_add(&text, tokens[i], &stopped);
    ls_text_output_add(&text, OTHER, &stopped);
    assert_int_equal(text.held.len, strlen("[TOOL_CALLS]w[ARGS]{}"));
    assert_memory_equal(text.held.data, "[TOOL_CALLS]w[ARGS]{}", text.held.len);
    ls_buf_free(&text.held);
    ls_token_tree_free(tree);
    ls_tools_free(&tools);
    ls_json_free(body);
    ls_tokenizer_free(t);
    free(json);
}

/* ---- thoughts ---- */

/* The text of a stream's pieces of choice 0. */
static void join_pieces(const asked *x, const char *key, ls_buf *out) {
    char *all = ls_format("%.*s", (int)x->stream.len, x->stream.data);
    for (char *line = all, *next; (next = strstr(line, "\n\n")); line = next + 2) {
        ls_json *j = NULL;
        ls_error e = {0};
        *next = 0;
        if (strcmp(line, "data: [DONE]") == 0) break;
        assert_ls_ok(ls_json_parse(line + 6, strlen(line + 6), "an event", &j, &e), e);
        const char *piece = text_at(choice_of(j, 0), "delta", key);
        if (piece) ls_buf_append(out, piece, strlen(piece));
        ls_json_free(j);
    }
    ls_buf_append(out, "", 1);
    free(all);
}

/* A prompt that ends within a thought: the model thinks first, whatever is asked for, and what it
 * thinks is no content; a call that it must write comes after it. */
static void test_thoughts(void **state) {
    (void)state;
    asked x;
    ls_buf pieces = {0};
    model.thought = (ls_thought_form){"~", "`", {byte_token('~'), byte_token('`')}};
    char *body = ls_format("{" ASK ", " TOOLS ", \"tool_choice\": {\"type\": \"function\", "
                           "\"function\": {\"name\": \"turn\"}}, \"stream\": true, "
                           "\"chat_template_kwargs\": {\"thought\": \"~\"}, \"logit_bias\": "
                           "{\"%u\": 5}}",
                           model.thought.tokens[1]);
    ls_json *o = ask(&x, body);
    const ls_json *message = ls_json_get(choice_of(o, 0), "message");
    const ls_json *calls = ls_json_get(message, "tool_calls");
    const char *thought = ls_json_text(ls_json_get(message, "reasoning_content"));
    assert_non_null(thought);
    assert_true(strlen(thought) > 0);
    assert_true(ls_json_is_null(ls_json_get(message, "content")));
    assert_int_equal(ls_json_count(calls), 1);
    check_call(ls_json_at(calls, 0));
    join_pieces(&x, "reasoning_content", &pieces);
    assert_string_equal(pieces.data, thought);
    check_stream(&x, calls);
    ls_buf_free(&pieces);
    ls_json_free(o);
    free_asked(&x);
    free(body);
    o = ask(&x, "{" ASK ", \"chat_template_kwargs\": {\"thought\": \"~\"}, \"max_tokens\": 6}");
    message = ls_json_get(choice_of(o, 0), "message");
    assert_string_equal(ls_json_text(ls_json_get(message, "content")), "");
    assert_non_null(ls_json_text(ls_json_get(message, "reasoning_content")));
    ls_json_free(o);
    free_asked(&x);
    model.thought = (ls_thought_form){0};
}

/* ---- conversations ---- */

static void test_prompts(void **state) {
    (void)state;
    check_prompt("{" ASK ", " TOOLS "}", "turn;wait;uxa");
    check_prompt(
        "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", "
        "\"content\": null, \"tool_calls\": [{\"id\": \"c\", \"type\": \"function\", "
        "\"function\": {\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}}]}, {\"role\": "
        "\"tool\", \"tool_call_id\": \"c\", \"content\": \"z\"}]}",
        "uxa<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>tza");
}

#define GIVEN(content)                                                                             \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"y x\"}, {\"role\": \"assistant\", "       \
    "\"content\": " content "}], "

/* The last message goes on: behind it nothing stands, and its content is that at the end. */
static void test_continued(void **state) {
    (void)state;
    const ls_template *before = format.template;
    ls_error e = {0};
    static const char trims[] = "{% for m in messages %}[{{ m.role[0] }}{{ m.content | trim }}]"
                                "{% endfor %}{{ 'A' if add_generation_prompt }}";
    assert_ls_ok(ls_template_parse(trims, sizeof trims - 1, "t", &format.template, &e), e);
    check_prompt(GIVEN("\"y\"") "\"add_generation_prompt\": false}", "[uy x][ay]");
    check_prompt(GIVEN("\"y\"") "\"continue_final_message\": true}", "[uy x][ay");
    check_prompt(GIVEN("\" y x \"") "\"continue_final_message\": true, "
                                    "\"add_generation_prompt\": false}",
                 "[uy x][ay x");
    ls_template_free(format.template);
    static const char quotes[] = "{% for m in messages %}[{{ m.role[0] }}{{ m.content }}]"
                                 "{% endfor %}";
    assert_ls_ok(ls_template_parse(quotes, sizeof quotes - 1, "t", &format.template, &e), e);
    check_prompt(GIVEN("\" y x \\n\"") "\"continue_final_message\": true}", "[uy x][a y x \n");
    ls_template_free(format.template);
    format.template = (ls_template *)(uintptr_t)before;
}

static void test_refused(void **state) {
    static const char *const cases[][2] = {
        {"\"tools\": 3", "tools: a list"},
        {"\"continue_final_message\": true", "the last message must be the assistant's"},
        {"\"continue_final_message\": 1", "true or false"},
        {"\"continue_final_message\": true, \"add_generation_prompt\": true", "must be false"},
        {"\"tools\": [{}]", "tools: {\"type\""},
        {"\"tool_choice\": \"required\"", "there are no tools"},
        {TOOLS ", \"tool_choice\": \"all\"", "tool_choice: none, auto"},
        {TOOLS ", \"tool_choice\": {\"function\": {\"name\": \"x\"}}", "tool_choice: none, auto"},
        {TOOLS ", \"tool_choice\": \"required\", \"guided_regex\": \"a\"", "guided_regex already"},
        {"\"tools\": [" TOOL("f", "{\"oneOf\": []}") "], \"tool_choice\": \"required\"",
         "tool_choice: the schema: oneOf: a list"}};
    (void)state;
    ls_text_request r;
    ls_refusal why;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *body = ls_format("{%s, %s}", ASK, cases[i][0]);
        assert_false(read_request(body, &r, &why));
        if (!strstr(why.error.msg, cases[i][1])) fail_msg("%s: %s", cases[i][0], why.error.msg);
        assert_int_equal(why.status, 400);
        ls_request_free(&r);
        free(body);
    }
    const ls_tool_template known = model.tool_template;
    model.tool_template.form = NULL;
    assert_false(read_request("{" ASK ", " TOOLS "}", &r, &why));
    assert_non_null(strstr(why.error.msg, "does not write tools"));
    ls_request_free(&r);
    model.tool_template = known;
}

/* Requests with one schema share its constraint; schemas that differ in the last digit of a number
 * are two. */
static void test_constraints(void **state) {
    static const char *const numbers[] = {"1.0000000000001", "1.0000000000002", "1.0000000000001"};
    ls_text_request r[3];
    ls_refusal why;
    (void)state;
    for (int i = 0; i < 3; i++) {
        char *body = ls_format(
            "{" ASK ", \"guided_json\": {\"type\": \"boolean\", \"default\": %s}}", numbers[i]);
        if (!read_request(body, &r[i], &why)) fail_msg("%s", why.error.msg);
        free(body);
    }
    assert_ptr_equal(r[0].rule.constraint, r[2].rule.constraint);
    assert_ptr_not_equal(r[0].rule.constraint, r[1].rule.constraint);
    for (int i = 0; i < 3; i++) ls_request_free(&r[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_required),   cmocka_unit_test(test_parallel),
        cmocka_unit_test(test_named),      cmocka_unit_test(test_without_parameters),
        cmocka_unit_test(test_auto),       cmocka_unit_test(test_forms),
        cmocka_unit_test(test_plan),       cmocka_unit_test(test_special),
        cmocka_unit_test(test_thoughts),   cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_continued),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_constraints)};
    return cmocka_run_group_tests(tests, open_model, close_model);
}
