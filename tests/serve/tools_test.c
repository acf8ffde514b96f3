/* tools_test.c - requests with tools: a model with random weights writes calls where it must; the
 * same whole and as a stream; conversations with calls; responses; what is refused. */
/* ctest: seconds=3 */
#include "serve/call_answer.h"

#include <ctype.h>

#include "data/small_tokenizer.h"
#include "folder.h"
#include "infer/conversations.h"
#include "serve/replies.h"
#include "train/tiny_run.h"

static const char TEMPLATE[] =
    "{% for t in tools or [] %}{{ t.function.name }}{{ '' if t.function.parameters.properties "
    "}};{% endfor %}{% for m in messages %}"
    "{{ m.role[0] }}{{ m.reasoning_content or '' }}{{ m.content or '' }}{% for c in m.tool_calls "
    "or [] %}<tool_call>\n{\"name\": "
    "\"{{ "
    "c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>"
    "{% endfor %}{% endfor %}a{{ thought or '' }}";
static ls_trained trained;
static ls_chat_format format;
static ls_request_model model;
static ls_request_kind kind = LS_REQUEST_CHAT; /* of what is asked */

static int open_model(void **state) {
    static const char *const usual[] = {"model.context=600", "train.steps=1", "optim.warmup=0",
                                        NULL};
    static const char *const none[] = {NULL};
    if (make_folder(state) != 0) return -1;
    ls_error e = {0};
    char *path = ls_format("%s/run", folder), *chat = ls_format("%s/t.jinja", folder);
    assert_ls_ok(try_run(path, 1, usual, none, &e), e);
    assert_ls_ok(ls_file_write(chat, TEMPLATE, sizeof TEMPLATE - 1, &e), e);
    assert_ls_ok(ls_trained_open(path, &(ls_trained_options){.writes = true}, &trained, &e), e);
    assert_ls_ok(ls_trained_chat_format(&trained, chat, &format, &e), e);
    model =
        (ls_request_model){.trained = &trained, .format = &format, .name = "small", .context = 600};
    model.tool_template = ls_tool_template_of(&format);
    model.constraints =
        ls_constraint_store_new(trained.tokenizer, ls_tokenizer_used(trained.tokenizer));
    assert_non_null(model.tool_template.form);
    free(path);
    free(chat);
    return 0;
}

static int close_model(void **state) {
    ls_constraint_store_free(model.constraints);
    ls_chat_format_free(&format);
    ls_trained_close(&trained);
    return remove_folder(state);
}

/* ---- a request ---- */

#define TOOL(name, parameters)                                                                     \
    "{\"type\": \"function\", \"function\": {\"name\": \"" name "\", \"parameters\": " parameters  \
    "}}"
#define EMPTY "{\"type\": \"object\", \"properties\": {}}"
#define TOOLS                                                                                      \
    "\"tools\": [" TOOL(                                                                           \
        "turn",                                                                                    \
        "{\"type\": \"object\", \"properties\": {\"on\": {\"type\": "                              \
        "\"boolean\"}, \"by\": {\"$ref\": \"#/$defs/d\"}}, \"required\": "                         \
        "[\"on\", \"by\"], \"$defs\": {\"d\": {\"enum\": [1, \"\\n\"]}}}") ", " TOOL("wait",       \
                                                                                     EMPTY) "]"
#define ASK                                                                                        \
    "\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"seed\": 4, \"temperature\": 1.5"

typedef struct asked {
    ls_text_request request;
    ls_reply *replies;
    ls_text_answer answer;
    ls_answer_sent *sent;
    ls_engine *engine;
    ls_buf stream;
    int nleft;
} asked;

/* What is new goes into the stream. */
static void send_new(void *arg) {
    asked *x = arg;
    ls_engine_lock(x->engine);
    ls_answer_stream(&x->answer, x->sent, &x->stream);
    ls_engine_unlock(x->engine);
}

static bool read_request(const char *body, ls_text_request *r, ls_refusal *why) {
    return ls_request_read(&model, kind, body, strlen(body), r, why);
}

/* The whole answer as JSON; x has the stream's events. */
static ls_json *ask(asked *x, const char *body) {
    ls_refusal why;
    ls_error e = {0};
    ls_json *j = NULL;
    ls_buf whole = {0};
    *x = (asked){.nleft = 0};
    if (!read_request(body, &x->request, &why)) fail_msg("%s", why.error.msg);
    size_t n = (size_t)x->request.n;
    x->replies = LS_NEW_ARRAY(ls_reply, n);
    x->sent = LS_NEW_ARRAY(ls_answer_sent, n);
    x->answer = (ls_text_answer){
        .request = &x->request, .model = &model, .replies = x->replies, .n = n, .id = "it"};
    const ls_request_prompt *p = &x->request.prompts[0];
    for (size_t i = 0; i < n; i++) {
        ls_reply_make(&x->replies[i], &x->request.rule, trained.tokenizer, p->tokens, p->n);
        x->replies[i].seed = x->request.seed;
        x->replies[i].number = i;
        x->replies[i].left = count_left;
        x->replies[i].arg = &x->nleft;
    }
    ls_engine_options o = {.texts = 4, .rows = 64, .memory_nbytes = 64 << 20};
    o.progress = send_new;
    o.arg = x;
    assert_ls_ok(ls_engine_open(&trained, &o, &x->engine, &e), e);
    ls_engine_lock(x->engine);
    for (size_t i = 0; i < n; i++) ls_engine_add(x->engine, &x->replies[i]);
    ls_engine_unlock(x->engine);
    wait_until_left(x->engine, &x->nleft, (int)n);
    ls_engine_close(x->engine);
    ls_answer_write(&x->answer, &whole);
    assert_ls_ok(ls_json_parse(whole.data, whole.len, "it", &j, &e), e);
    ls_buf_free(&whole);
    return j;
}

static void free_asked(asked *x) {
    for (size_t i = 0; i < x->answer.n; i++) ls_reply_free(&x->replies[i]);
    free(x->replies);
    free(x->sent);
    ls_buf_free(&x->stream);
    ls_request_free(&x->request);
}

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
    "tojson }}"};

static void read_template(const char *text, const ls_tokenizer *t, ls_tool_template *found) {
    ls_chat_format f = {.tokenizer = t};
    ls_error e = {0};
    assert_ls_ok(ls_template_parse(text, strlen(text), "t", &f.template, &e), e);
    *found = ls_tool_template_of(&f);
    assert_non_null(found->form);
    ls_chat_format_free(&f);
}

/* A forced call is one of its form, whole and as a stream, and several follow each other. */
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
        size_t n = ls_json_count(calls);
        assert_true(n >= 2);
        for (size_t k = 0; k + 1 < n; k++) check_call(ls_json_at(calls, k));
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

static uint32_t byte_token(char byte) {
    size_t n = 0;
    for (uint32_t i = 0; i < ls_tokenizer_used(trained.tokenizer); i++) {
        const uint8_t *bytes = ls_tokenizer_bytes(trained.tokenizer, i, &n);
        if (n == 1 && *bytes == (uint8_t)byte) return i;
    }
    fail_msg("no token for %c", byte);
    return 0;
}

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

static void check_prompt(const char *body, const char *want) {
    ls_text_request r;
    ls_refusal why;
    ls_buf text = {0};
    ls_decoding d = {.tokenizer = trained.tokenizer, .begun = true};
    if (!read_request(body, &r, &why)) fail_msg("%s", why.error.msg);
    for (int64_t i = 0; i < r.prompts[0].n; i++) ls_decoding_add(&d, r.prompts[0].tokens[i], &text);
    ls_buf_append(&text, "", 1);
    assert_string_equal(text.data, want);
    ls_buf_free(&text);
    ls_request_free(&r);
}

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

/* ---- responses ---- */

#define FLAT                                                                                       \
    "\"tools\": [{\"type\": \"function\", \"name\": \"turn\", \"parameters\": {\"type\": "         \
    "\"object\", "                                                                                 \
    "\"properties\": {\"on\": {\"type\": \"boolean\"}}, \"required\": [\"on\"]}}, {\"type\": "     \
    "\"function\", \"name\": \"wait\"}]"

/* The prompts are those of chats. */
#define REASONING(text)                                                                            \
    "{\"type\": \"reasoning\", \"id\": \"r\", \"summary\": [], \"content\": [{\"type\": "          \
    "\"reasoning_text\", \"text\": \"" text "\"}]}"

static void test_response_prompts(void **state) {
    (void)state;
    kind = LS_REQUEST_RESPONSE;
    check_prompt("{\"input\": \"x\", " FLAT "}", "turn;wait;uxa");
    check_prompt(
        "{\"instructions\": \"i\", \"input\": [{\"role\": \"user\", \"content\": [{\"type\": "
        "\"input_text\", \"text\": \"x\"}]}, {\"id\": \"m\", \"type\": \"message\", \"role\": "
        "\"assistant\", \"status\": \"completed\", \"content\": [{\"type\": \"output_text\", "
        "\"text\": \"y\", \"annotations\": []}]}, {\"type\": \"function_call\", \"call_id\": "
        "\"c\", \"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}, {\"type\": "
        "\"function_call_output\", \"call_id\": \"c\", \"output\": \"z\"}]}",
        "siuxay<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>tza");
    check_prompt("{\"input\": [" REASONING("o") ", {\"role\": \"assistant\", \"content\": "
                                                "\"y\"}, " REASONING(
                                                    "p") ", {\"type\": \"function_call\", "
                                                         "\"name\": \"f\", \"arguments\": \"{}\"}, "
                                                         "{\"type\": \"function_call_output\", "
                                                         "\"output\": \"z\"}]}",
                 "aoyap<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>tza");
    kind = LS_REQUEST_CHAT;
}

/* The names of a stream's events, each repetition once; *pieces has the deltas' texts. */
static ls_buf read_events(asked *x, ls_buf *pieces) {
    ls_buf names = {0};
    int64_t n = 0;
    char last[60] = "";
    ls_buf_append(&x->stream, "", 1);
    for (char *line = x->stream.data, *next; (next = strstr(line, "\n\n")); line = next + 2) {
        ls_json *j = NULL;
        ls_error e = {0};
        int64_t number = -1;
        char *data = strstr(line, "\ndata: ");
        *next = *data = 0;
        assert_ls_ok(ls_json_parse(data + 7, strlen(data + 7), "an event", &j, &e), e);
        const char *type = ls_json_text(ls_json_get(j, "type"));
        const char *delta = ls_json_text(ls_json_get(j, "delta"));
        assert_string_equal(line + strlen("event: "), type);
        assert_true(ls_json_integer(ls_json_get(j, "sequence_number"), &number));
        assert_int_equal(number, n++);
        if (delta) ls_buf_append(pieces, delta, strlen(delta));
        if (strcmp(type, last) != 0) ls_buf_printf(&names, "%s ", type + strlen("response."));
        snprintf(last, sizeof last, "%s", type);
        ls_json_free(j);
    }
    ls_buf_append(pieces, "", 1);
    return names;
}

static void check_response(const char *fields, const char *events) {
    asked x;
    ls_buf pieces = {0};
    char *body = ls_format("{\"input\": \"x\", \"seed\": 4, \"stream\": true, %s}", fields);
    kind = LS_REQUEST_RESPONSE;
    ls_json *o = ask(&x, body);
    const ls_json *output = ls_json_get(o, "output");
    ls_buf text = {0};
    for (size_t i = 0; i < ls_json_count(output); i++) {
        const ls_json *item = ls_json_at(output, i), *content = ls_json_get(item, "content");
        const char *part = ls_json_text(ls_json_get(item, "arguments"));
        if (!part) part = ls_json_text(ls_json_get(ls_json_at(content, 0), "text"));
        ls_buf_append(&text, part, strlen(part));
    }
    ls_buf_append(&text, "", 1);
    ls_buf names = read_events(&x, &pieces);
    assert_string_equal(names.data, events);
    assert_string_equal(pieces.data, text.data);
    assert_string_equal(ls_json_text(ls_json_get(o, "object")), "response");
    int64_t thought = 0;
    const ls_json *details = ls_json_get(ls_json_get(o, "usage"), "output_tokens_details");
    assert_true(ls_json_integer(ls_json_get(details, "reasoning_tokens"), &thought));
    assert_int_equal(thought > 0, strstr(events, "reasoning") != NULL);
    assert_non_null(strstr(events, ls_json_text(ls_json_get(o, "status"))));
    kind = LS_REQUEST_CHAT;
    ls_buf_free(&names), ls_buf_free(&pieces), ls_buf_free(&text);
    ls_json_free(o);
    free_asked(&x);
    free(body);
}

static void test_responses(void **state) {
    (void)state;
    check_response(FLAT ", \"tool_choice\": {\"type\": \"function\", \"name\": \"turn\"}, "
                        "\"max_output_tokens\": 400",
                   "created in_progress output_item.added function_call_arguments.delta "
                   "function_call_arguments.done output_item.done completed ");
    check_response("\"max_output_tokens\": 8",
                   "created in_progress output_item.added content_part.added output_text.delta "
                   "output_text.done content_part.done output_item.done incomplete ");
    check_response(
        "\"text\": {\"format\": {\"type\": \"json_schema\", \"name\": \"n\", \"schema\": "
        "{\"enum\": [12, true]}}}",
        "created in_progress output_item.added content_part.added output_text.delta "
        "output_text.done content_part.done output_item.done completed ");
    check_response("\"guided_regex\": \"\"", /* an empty text has its events, too */
                   "created in_progress output_item.added content_part.added "
                   "output_text.done content_part.done output_item.done completed ");
}

/* What the model thinks is an item before the message or the calls. */
static void test_response_thoughts(void **state) {
    (void)state;
#define BEGUN "\"chat_template_kwargs\": {\"thought\": \"~\"}, "
#define THOUGHT                                                                                    \
    "created in_progress output_item.added content_part.added reasoning_text.delta "               \
    "reasoning_text.done content_part.done output_item.done "
    model.thought = (ls_thought_form){"~", "`", {byte_token('~'), byte_token('`')}};
    check_response(BEGUN "\"max_output_tokens\": 6", THOUGHT "incomplete ");
    char *call = ls_format(BEGUN FLAT ", \"tool_choice\": \"required\", \"parallel_tool_calls\": "
                                      "false, \"max_output_tokens\": 400, "
                                      "\"logit_bias\": {\"%u\": 5}",
                           model.thought.tokens[1]);
    char *text = ls_format(BEGUN "\"guided_regex\": \"abc\", \"logit_bias\": {\"%u\": 5}, "
                                 "\"reasoning\": {\"effort\": \"low\", \"summary\": \"auto\"}",
                           model.thought.tokens[1]);
    check_response(call, THOUGHT "output_item.added function_call_arguments.delta "
                                 "function_call_arguments.done output_item.done completed ");
    check_response(text, THOUGHT "output_item.added content_part.added output_text.delta "
                                 "output_text.done content_part.done output_item.done completed ");
    model.thought = (ls_thought_form){0};
    free(call);
    free(text);
}

static void test_responses_refused(void **state) {
    static const char *const cases[][3] = {
        {"\"input\": []", "input: a text or a list", "input"},
        {"\"input\": [{\"type\": \"computer_call\"}]", "has the type 'computer_call'", "input"},
        {"\"input\": [{\"type\": \"reasoning\", \"content\": [{}]}]", "without a text", "input"},
        {"\"input\": \"x\", \"reasoning\": \"low\"", "reasoning: an object", "reasoning"},
        {"\"input\": \"x\", \"reasoning\": {\"summary\": \"detailed\"}", "summary is not supported",
         "reasoning"},
        {"\"input\": [{\"role\": \"user\"}]", "no role or no content", "input"},
        {"\"input\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_image\"}]}]",
         "is of type \"input_image\"", "input"},
        {"\"input\": [{\"type\": \"function_call\", \"name\": \"f\"}]", "no arguments", "input"},
        {"\"input\": [{\"type\": \"function_call_output\"}]", "no output", "input"},
        {"\"input\": \"x\", \"instructions\": []", "a text is expected", "instructions"},
        {"\"input\": \"x\", \"previous_response_id\": \"r\"", "nothing is stored",
         "previous_response_id"},
        {"\"input\": \"x\", \"store\": true", "nothing is stored", "store"},
        {"\"input\": \"x\", \"background\": true", "nothing is stored", "background"},
        {"\"input\": \"x\", \"n\": 2", "n is not supported", "n"},
        {"\"input\": \"x\", \"top_logprobs\": 2", "top_logprobs is not", "top_logprobs"},
        {"\"input\": \"x\", \"include\": [\"message.output_text.logprobs\"]", "is not supported",
         "include"},
        {"\"input\": \"x\", \"include\": [3]", "include: '?' is not supported", "include"},
        {"\"input\": \"x\", \"include\": \"y\"", "a list of texts", "include"},
        {"\"input\": \"x\", \"text\": \"json\"", "text: an object", "text"},
        {"\"input\": \"x\", \"truncation\": \"auto\"", "only 'disabled'", "truncation"},
        {"\"input\": \"x\", \"text\": {\"verbosity\": \"low\"}", "verbosity is not", "text"},
        {"\"input\": \"x\", \"text\": {\"format\": {\"type\": \"json_schema\"}}", "with a schema",
         "text.format"},
        {"\"input\": \"x\", \"max_output_tokens\": -1", "a whole number", "max_output_tokens"},
        {"\"input\": \"x\", \"max_output_tokens\": 1000", "context length", "input"},
        {"\"input\": \"x\", \"tools\": [{\"type\": \"web_search\"}]", "'web_search'", "tools"}};
    (void)state;
    ls_text_request r;
    ls_refusal why;
    kind = LS_REQUEST_RESPONSE;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *body = ls_format("{%s}", cases[i][0]);
        assert_false(read_request(body, &r, &why));
        if (!strstr(why.error.msg, cases[i][1])) fail_msg("%s: %s", cases[i][0], why.error.msg);
        assert_string_equal(why.param, cases[i][2]);
        ls_request_free(&r);
        free(body);
    }
    kind = LS_REQUEST_CHAT;
}

static void test_refused(void **state) {
    static const char *const cases[][2] = {
        {"\"tools\": 3", "tools: a list"},
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_required),
                                       cmocka_unit_test(test_parallel),
                                       cmocka_unit_test(test_named),
                                       cmocka_unit_test(test_without_parameters),
                                       cmocka_unit_test(test_auto),
                                       cmocka_unit_test(test_forms),
                                       cmocka_unit_test(test_plan),
                                       cmocka_unit_test(test_special),
                                       cmocka_unit_test(test_thoughts),
                                       cmocka_unit_test(test_prompts),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_constraints),
                                       cmocka_unit_test(test_response_prompts),
                                       cmocka_unit_test(test_responses),
                                       cmocka_unit_test(test_response_thoughts),
                                       cmocka_unit_test(test_responses_refused)};
    return cmocka_run_group_tests(tests, open_model, close_model);
}
