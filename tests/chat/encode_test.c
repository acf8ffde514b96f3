/* encode_test.c - conversations as tokens: what is trained on for each form and loss, special names
 * in contents, and what is refused. */
#include "chat/encode.h"

#include "chat/chat_lines.h"
#include "chat/conversation.h"
#include "chat/show.h"
#include "chat/small_chat.h"

/* Thoughts of the last answer alone are written, as Qwen 3's template does. */
#define LAST                                                                                       \
    "{% for m in messages %}<|a|>{{ m.role }}\n{{ '[]' if loop.last and m.role == 'assistant' }}"  \
    "{{ m.content }}<|r|>{% endfor %}{% if add_generation_prompt %}<|a|>assistant\n{% endif %}"

static ls_status encode(const char *template, const char *line, ls_chat_loss loss, ls_buf *shown,
                        ls_chat_tokens *tokens, ls_error *e) {
    ls_tokenizer *t = small_chat_tokenizer();
    ls_chat_format f = {.tokenizer = t, .end = 257};
    ls_json *j = NULL;
    ls_conversation c = {0};
    ls_chat_spans spans = {0};
    assert_ls_ok(ls_template_parse(template, strlen(template), "x", &f.template, e), *e);
    assert_ls_ok(ls_json_parse(line, strlen(line), "line", &j, e), *e);
    ls_status s = ls_conversation_read(j, &c, e);
    if (s == LS_OK) s = ls_chat_spans_find(&f, &c, loss, &spans, e);
    if (s == LS_OK) s = ls_chat_encode(&f, &spans, tokens, e);
    if (s == LS_OK) ls_chat_show(t, tokens, 1000, shown);
    ls_chat_spans_free(&spans);
    ls_conversation_free(&c);
    ls_json_free(j);
    ls_chat_format_free(&f);
    ls_tokenizer_free(t);
    return s;
}

/* [ and ] stand for the brackets of what is trained on. */
static void gives(const char *template, const char *line, ls_chat_loss loss, const char *want) {
    ls_buf shown = {0}, plain = {0};
    ls_chat_tokens tokens = {0};
    ls_error e = {0};
    assert_ls_ok(encode(template, line, loss, &shown, &tokens, &e), e);
    for (const char *s = shown.data; *s; s++) {
        bool begin = strncmp(s, LS_SHOWN_BEGIN, 3) == 0, end = strncmp(s, LS_SHOWN_END, 3) == 0;
        ls_buf_append(&plain, begin ? "[" : end ? "]" : s, 1);
        s += begin || end ? 2 : 0;
    }
    assert_string_equal(plain.data, want);
    ls_chat_tokens_free(&tokens);
    ls_buf_free(&shown);
    ls_buf_free(&plain);
}

static void refuses(const char *template, const char *line, ls_chat_loss loss, const char *says) {
    ls_buf shown = {0};
    ls_chat_tokens tokens = {0};
    ls_error e;
    assert_ls_fails(encode(template, line, loss, &shown, &tokens, &e), LS_EINVAL, says, e);
}

#define U(text) "{\"role\": \"user\", \"content\": \"" text "\"}"
#define A(text) "{\"role\": \"assistant\", \"content\": \"" text "\"}"
#define TWO     "{\"messages\": [" U("a") ", " A("b") ", " U("c") ", " A("d") "]}"

static void test_losses(void **state) {
    (void)state;
    gives(PLAIN, TWO, LS_CHAT_ASSISTANT,
          "<|a|>user\na<|r|><|a|>assistant\n[b<|r|>]<|a|>user\nc<|r|><|a|>assistant\n[d<|r|>]");
    gives(PLAIN, TWO, LS_CHAT_COMPLETION,
          "<|a|>user\na<|r|><|a|>assistant\nb<|r|><|a|>user\nc<|r|><|a|>assistant\n[d<|r|>]");
    gives(PLAIN, "{\"messages\": [" U("a") ", " A("b") "]}", LS_CHAT_ALL,
          "<|a|>[user\na<|r|><|a|>assistant\nb<|r|>]");
}

static void test_forms(void **state) {
    (void)state;
    static const char one[] = "<|a|>user\nq<|r|><|a|>assistant\n[s<|r|>]";
    gives(PLAIN,
          "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"gpt\", "
          "\"value\": \"s\"}]}",
          LS_CHAT_ASSISTANT, one);
    gives(PLAIN, "{\"prompt\": [" U("q") "], \"completion\": [" A("s") "]}", LS_CHAT_ASSISTANT,
          one);
    gives(PLAIN, "{\"instruction\": \"q\", \"output\": \"s\"}", LS_CHAT_ASSISTANT, one);
    gives(PLAIN,
          "{\"instruction\": \"i\", \"input\": \"j\", \"output\": \"o\", \"system\": \"y\", "
          "\"history\": [[\"h\", \"k\"]]}",
          LS_CHAT_ASSISTANT,
          "<|a|>system\ny<|r|><|a|>user\nh<|r|><|a|>assistant\n[k<|r|>]<|a|>user\ni\n\nj<|r|><|a|>"
          "assistant\n[o<|r|>]");
    static const char *const asked[] = {
        "{\"question\": \"q\", \"answer\": \"s\"}", "{\"question\": \"q\", \"response\": \"s\"}",
        "{\"query\": \"q\", \"response\": \"s\"}", "{\"prompt\": \"q\", \"response\": \"s\"}",
        "{\"instruction\": \"q\", \"response\": \"s\"}"};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        gives(PLAIN, asked[i], LS_CHAT_ASSISTANT, one);
    gives(PLAIN,
          "{\"instruction\": \"i\", \"context\": \"j\", \"response\": \"o\", \"system\": \"y\"}",
          LS_CHAT_ASSISTANT, "<|a|>system\ny<|r|><|a|>user\ni\n\nj<|r|><|a|>assistant\n[o<|r|>]");
    /* Texts end with the token that ends a text, which is learned. */
    gives(PLAIN, "{\"prompt\": \"ab\", \"completion\": \"cd\"}", LS_CHAT_ASSISTANT, "ab[cd<|r|>]");
    gives(PLAIN, "{\"text\": \"abc\"}", LS_CHAT_ASSISTANT, "a[bc<|r|>]");
}

/* The tokens without brackets. */
static void add_text(void *arg, const ls_chat_sample *s) {
    ls_chat_tokens plain = *s->tokens;
    ls_tokenizer *t = small_chat_tokenizer();
    plain.trained = LS_NEW_ARRAY(bool, plain.n);
    ls_chat_show(t, &plain, 1000, arg);
    ls_buf_append(arg, "", 1);
    free(plain.trained);
    ls_tokenizer_free(t);
}

/* What stands beside the messages. */
static void test_system_and_tools(void **state) {
    (void)state;
    static const char tools[] =
        "{{ tools|tojson if tools }}{% for m in messages %}<|a|>{{ m.role }}\n{{ m.content }}"
        "{{ m.tool_calls|tojson if m.tool_calls }}<|r|>{% endfor %}"
        "{% if add_generation_prompt %}<|a|>assistant\n{% endif %}";
    static const char one[] = "<|a|>system\ny<|r|><|a|>user\nq<|r|><|a|>assistant\n[s<|r|>]";
#define TURNS                                                                                      \
    "\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"gpt\", \"value\": " \
    "\"s\"}]"
#define MESSAGES "\"messages\": [" U("q") ", " A("s") "]"
    gives(PLAIN, "{\"system\": \"y\", " TURNS "}", LS_CHAT_ASSISTANT, one);
    gives(PLAIN, "{\"system\": \"y\", " MESSAGES "}", LS_CHAT_ASSISTANT, one);
    gives(PLAIN, "{\"system\": [{\"type\": \"text\", \"text\": \"y\"}], " MESSAGES "}",
          LS_CHAT_ASSISTANT, one);
    gives(PLAIN, "{\"system\": \"y\", \"prompt\": [" U("q") "], \"completion\": [" A("s") "]}",
          LS_CHAT_ASSISTANT, one);
    static const char with[] = "[{\"name\": \"f\"}]<|a|>user\nq<|r|><|a|>assistant\n[s<|r|>]";
    gives(tools, "{\"tools\": [{\"name\": \"f\"}], " TURNS "}", LS_CHAT_ASSISTANT, with);
    gives(tools, "{\"tools\": \"[{\\\"name\\\": \\\"f\\\"}]\", " TURNS "}", LS_CHAT_ASSISTANT,
          with);
    gives(tools, "{\"tools\": [\"{\\\"name\\\": \\\"f\\\"}\"], " MESSAGES "}", LS_CHAT_ASSISTANT,
          with);
    gives(tools, "{\"functions\": [{\"name\": \"f\"}], \"tools\": null, " MESSAGES "}",
          LS_CHAT_ASSISTANT,
          "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]<|a|>user\nq<|r|><|a|>"
          "assistant\n[s<|r|>]");
    gives(tools, "{\"tools\": \"\", \"system\": \"\", " MESSAGES "}", LS_CHAT_ASSISTANT,
          "<|a|>user\nq<|r|><|a|>assistant\n[s<|r|>]");
    gives(tools,
          "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": "
          "\"function_call\", \"value\": \"{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {}}\"}, "
          "{\"from\": \"observation\", \"value\": \"o\"}, {\"from\": \"gpt\", \"value\": \"s\"}]}",
          LS_CHAT_ASSISTANT,
          "<|a|>user\nq<|r|><|a|>assistant\n[[{\"type\": \"function\", \"function\": {\"name\": "
          "\"f\", \"arguments\": {}}}]<|r|>]<|a|>tool\no<|r|><|a|>assistant\n[s<|r|>]");
    refuses(PLAIN, "{\"tools\": \"[{\", " MESSAGES "}", LS_CHAT_ASSISTANT,
            "\"tools\": its text is not valid JSON: ");
    refuses(PLAIN, "{\"tools\": 1, " MESSAGES "}", LS_CHAT_ASSISTANT, "\"tools\" is no list");
    refuses(PLAIN, "{\"system\": 1, " MESSAGES "}", LS_CHAT_ASSISTANT, "\"system\" is no text");
    refuses(PLAIN, "{\"system\": \"y\", \"text\": \"a\"}", LS_CHAT_ASSISTANT,
            "has \"system\" beside texts");
    refuses(PLAIN,
            "{\"system\": \"y\", \"messages\": [{\"role\": \"system\", \"content\": \"z\"}, " A(
                "s") "]}",
            LS_CHAT_ASSISTANT, "message 1 is the system's, too");
}

#define CALL "\"tool_calls\": [{\"function\": {\"name\": \"f\"}}]"
#define CALLS                                                                                      \
    "{\"messages\": [" U("q") ", {\"role\": \"assistant\", \"content\": null, " CALL               \
                              "}, " A("s") "]}"

/* A null is no text, and other nulls say nothing. */
static void test_nulls(void **state) {
    (void)state;
    static const char start[] = "{% for m in messages %}<|a|>{{ m.role }}\n";
    static const char end[] = "{{ m.tool_calls[0].function.name if m.tool_calls }}<|r|>{% endfor "
                              "%}{% if add_generation_prompt %}<|a|>assistant\n{% endif %}";
    static const char *const contents[] = {"{{ m.content }}", "{{ m['content'] + '' }}",
                                           "{{ m.content if m.content is not none }}",
                                           "{{ m.content|trim if m.content }}"};
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        char *template = ls_format("%s%s%s", start, contents[i], end);
        gives(template, CALLS, LS_CHAT_ASSISTANT,
              "<|a|>user\nq<|r|><|a|>assistant\n[f<|r|>]<|a|>assistant\n[s<|r|>]");
        free(template);
    }
    /* A template that asks for null gets it. */
    gives("{% for m in messages %}<|a|>{{ m.role }}\n{{ 'null' if m.content is none else m.content "
          "}}{{ m.tool_calls[0].function.name if m.tool_calls }}<|r|>{% endfor %}{% if "
          "add_generation_prompt %}<|a|>assistant\n{% endif %}",
          CALLS, LS_CHAT_COMPLETION,
          "<|a|>user\nq<|r|><|a|>assistant\nnullf<|r|><|a|>assistant\n[s<|r|>]");
    gives("{% for m in messages %}{{ 'name' in m }}{{ 'tool_calls' in m }}{{ m.content }}{% endfor "
          "%}",
          "{\"messages\": [{\"role\": \"user\", \"content\": \"None\", \"name\": null}, {\"role\": "
          "\"assistant\", \"content\": \"s\", \"tool_calls\": []}]}",
          LS_CHAT_ASSISTANT, "FalseFalseNone[FalseFalses]");
    refuses(PLAIN, CALLS, LS_CHAT_ASSISTANT, "message 2 calls tools, and the template does not");
    refuses(PLAIN, "{\"messages\": [" U("a") ", {\"role\": \"assistant\", \"content\": null}]}",
            LS_CHAT_ASSISTANT, "message 2 has no \"content\"");
}

static void test_weights(void **state) {
    (void)state;
#define W(text, weight)                                                                            \
    "{\"role\": \"assistant\", \"content\": \"" text "\", \"weight\": " weight "}"
#define WEIGHTED(a, b) "{\"messages\": [" U("q") ", " W("b", a) ", " U("c") ", " W("d", b) "]}"
    gives(PLAIN, WEIGHTED("0", "1"), LS_CHAT_ASSISTANT,
          "<|a|>user\nq<|r|><|a|>assistant\nb<|r|><|a|>user\nc<|r|><|a|>assistant\n[d<|r|>]");
    gives(PLAIN, WEIGHTED("1.0", "false"), LS_CHAT_ASSISTANT,
          "<|a|>user\nq<|r|><|a|>assistant\n[b<|r|>]<|a|>user\nc<|r|><|a|>assistant\nd<|r|>");
    gives(PLAIN,
          "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"gpt\", "
          "\"value\": "
          "\"b\", \"weight\": 0}, {\"from\": \"gpt\", \"value\": \"d\"}]}",
          LS_CHAT_ASSISTANT, "<|a|>user\nq<|r|><|a|>assistant\nb<|r|><|a|>assistant\n[d<|r|>]");
    refuses(PLAIN, WEIGHTED("1", "0"), LS_CHAT_COMPLETION, "or has weight 0");
    refuses(PLAIN, WEIGHTED("0", "0"), LS_CHAT_ASSISTANT, "whose weight is not 0");
    refuses(PLAIN, WEIGHTED("0", "1"), LS_CHAT_ALL,
            "message 2 has weight 0, and with data.loss: all");
    refuses(PLAIN, WEIGHTED("0.5", "1"), LS_CHAT_ASSISTANT, "message 2: \"weight\" is 1, or 0");
    refuses(PLAIN, WEIGHTED("\"1\"", "1"), LS_CHAT_ASSISTANT, "message 2: \"weight\" is 1, or 0");
}

static void test_contents(void **state) {
    (void)state;
#define PARTS(parts) "{\"messages\": [{\"role\": \"user\", \"content\": [" parts "]}, " A("s") "]}"
    gives(PLAIN,
          PARTS("{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": \"b\"}"),
          LS_CHAT_ASSISTANT, "<|a|>user\nab<|r|><|a|>assistant\n[s<|r|>]");
    gives(PLAIN, PARTS("{\"type\": \"text\", \"value\": \"ab\"}"), LS_CHAT_ASSISTANT,
          "<|a|>user\nab<|r|><|a|>assistant\n[s<|r|>]");
    gives(PLAIN,
          "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\", \"loss_weight\": 0.0}, " A(
              "s") "], \"label\": true}",
          LS_CHAT_ASSISTANT, "<|a|>assistant\na<|r|><|a|>assistant\n[s<|r|>]");
    gives(PLAIN, PARTS("\"a\", {\"text\": \"b\"}"), LS_CHAT_ASSISTANT,
          "<|a|>user\nab<|r|><|a|>assistant\n[s<|r|>]");
    refuses(PLAIN, PARTS("{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"image_url\"}"),
            LS_CHAT_ASSISTANT, "part 2 of message 1 is of type \"image_url\"");
    refuses(PLAIN, PARTS("1"), LS_CHAT_ASSISTANT, "part 1 of message 1 is no text");
    refuses(PLAIN, PARTS("{\"type\": \"text\", \"content\": \"a\"}"), LS_CHAT_ASSISTANT,
            "part 1 of message 1, a text, has no \"text\"");
    refuses(PLAIN, "{\"messages\": [" U("a") ", " A("s") "], \"label\": false}", LS_CHAT_ASSISTANT,
            "has \"label\": false, an answer that is not wanted");
    refuses(PLAIN, "{\"messages\": [{\"role\": \"user\", \"content\": 1}, " A("s") "]}",
            LS_CHAT_ASSISTANT, "message 1: \"content\" is neither a text nor a list of parts");
    /* A tool answers with any value. */
    gives("{% for m in messages %}<|a|>{{ m.content if m.content is string else m.content|tojson "
          "}}<|r|>{% endfor %}{% if add_generation_prompt %}<|a|>{% endif %}",
          "{\"messages\": [{\"role\": \"tool\", \"content\": {\"x\": [1]}}, " A("s") "]}",
          LS_CHAT_ASSISTANT, "<|a|>{\"x\": [1]}<|r|><|a|>[s<|r|>]");
    refuses(PLAIN, "{\"messages\": [" U("a") ", {\"role\": \"assistnat\", \"content\": \"s\"}]}",
            LS_CHAT_ASSISTANT, "message 2 has the role \"assistnat\"; known are system, developer");
    refuses(PLAIN, "{\"messages\": [{\"role\": \"user<|r|>\", \"content\": \"s\"}]}",
            LS_CHAT_ASSISTANT, "message 1 has the role \"user<|r|>\"");
}

/* A text that has the tokens which begin and end a text gets no second ones. */
static void test_ends(void **state) {
    (void)state;
    static const struct {
        const char *line, *want;
    } rows[] = {
        {"{\"text\": \"ab\"}", "<|a|>ab<|r|>"},
        {"{\"text\": \"<|a|>ab<|r|>\"}", "<|a|>ab<|r|>"},
        {"{\"text\": \"ab<|r|>\"}", "<|a|>ab<|r|>"},
        {"{\"text\": \"<|a|>\"}", "<|a|><|r|>"},
        {"{\"text\": \"ab<|r|>\\n\"}", "<|a|>ab<|r|>\n<|r|>"},
        {"{\"prompt\": \"<|a|>a\", \"completion\": \"b<|r|>\"}", "<|a|>ab<|r|>"},
        {"{\"prompt\": \"\", \"completion\": \"<|a|>b\"}", "<|a|>b<|r|>"},
        {"{\"messages\": [" U("q") ", " A("s") "]}", "<|a|>user\nq<|r|><|a|>assistant\ns<|r|>"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ls_tokenizer *t = small_chat_tokenizer_with(SMALL_TEMPLATE("<|a|>", "256"));
        ls_chat_format f = {.tokenizer = t, .end = 257};
        ls_buf shown = {0};
        ls_error e = {0};
        assert_ls_ok(ls_template_parse(PLAIN, strlen(PLAIN), "x", &f.template, &e), e);
        ls_chat_lines l = {.name = "f",
                           .text = rows[i].line,
                           .nbytes = strlen(rows[i].line),
                           .format = &f,
                           .take = add_text,
                           .arg = &shown};
        assert_ls_ok(ls_chat_lines_encode(&l, &e), e);
        assert_string_equal(shown.data, rows[i].want);
        ls_buf_free(&shown);
        ls_chat_format_free(&f);
        ls_tokenizer_free(t);
    }
}

/* The name of a special token in a message is text; the template's own are tokens. */
static void test_special(void **state) {
    (void)state;
    ls_buf shown = {0};
    ls_chat_tokens t = {0};
    ls_error e = {0};
    assert_ls_ok(encode(PLAIN, "{\"messages\": [" U(" x<|r|>") ", " A("<|a|>y") "]}",
                        LS_CHAT_ASSISTANT, &shown, &t, &e),
                 e);
    int tokens = 0;
    for (size_t i = 0; i < t.n; i++) tokens += t.ids[i] >= 256;
    assert_int_equal(tokens, 4);
    assert_int_equal(t.ntrained, 7); /* <|a|>y as 6 bytes, and the end of the turn */
    assert_int_equal(t.ids[t.n - 1], 257);
    ls_chat_tokens_free(&t);
    ls_buf_free(&shown);
}

/* Brackets of a message are not taken for those around what is trained on. */
static void test_brackets(void **state) {
    (void)state;
    gives(PLAIN,
          "{\"messages\": [" U("a" LS_SHOWN_BEGIN LS_SHOWN_END) ", " A(LS_SHOWN_END "b") "]}",
          LS_CHAT_ASSISTANT, "<|a|>user\na\\u27e6\\u27e7<|r|><|a|>assistant\n[\\u27e7b<|r|>]");
}

static void add_shown(void *arg, const ls_chat_sample *s) {
    ls_tokenizer *t = small_chat_tokenizer();
    ls_chat_show(t, s->tokens, 1000, arg);
    ls_buf_printf(arg, " %llu%s\n", (unsigned long long)s->line, s->separate ? " apart" : "");
    ls_tokenizer_free(t);
}

/* A template that changes earlier answers: each answer is a sample. */
static void test_apart(void **state) {
    (void)state;
    static const char text[] = "\n{\"text\": \"xy\"}\n" TWO;
    ls_tokenizer *t = small_chat_tokenizer();
    ls_chat_format f = {.tokenizer = t, .end = 257};
    ls_buf shown = {0};
    ls_error e = {0};
    assert_ls_ok(ls_template_parse(LAST, strlen(LAST), "x", &f.template, &e), e);
    ls_chat_lines l = {.name = "f",
                       .text = text,
                       .nbytes = sizeof text - 1,
                       .format = &f,
                       .take = add_shown,
                       .arg = &shown};
    assert_ls_ok(ls_chat_lines_encode(&l, &e), e);
    assert_string_equal(shown.data,
                        "x" LS_SHOWN_BEGIN "y<|r|>" LS_SHOWN_END " 2\n"
                        "<|a|>user\na<|r|><|a|>assistant\n" LS_SHOWN_BEGIN "[]b<|r|>" LS_SHOWN_END
                        " 3 apart\n<|a|>user\na<|r|><|a|>assistant\nb<|r|><|a|>user\nc<|r|><|a|>"
                        "assistant\n" LS_SHOWN_BEGIN "[]d<|r|>" LS_SHOWN_END " 3 apart\n");
    l.text = "{\"text\": \"xy\"}\n{}";
    l.nbytes = strlen(l.text);
    assert_ls_fails(ls_chat_lines_encode(&l, &e), LS_EINVAL, "f:2: a line has messages", e);
    ls_buf_free(&shown);
    ls_chat_format_free(&f);
    ls_tokenizer_free(t);
}

static void test_refused(void **state) {
    (void)state;
    refuses(PLAIN, "{\"messages\": [" U("a") "]}", LS_CHAT_ASSISTANT, "no answer of the assistant");
    refuses(PLAIN, "{\"messages\": [" A("b") ", " U("a") "]}", LS_CHAT_COMPLETION,
            "its last message is not the assistant's");
    refuses(PLAIN, "{\"messages\": [" U("a") ", " A("") "]}", LS_CHAT_ASSISTANT,
            "message 2, the assistant's, is empty");
    refuses(PLAIN, "{\"messages\": [{\"content\": \"a\"}]}", LS_CHAT_ASSISTANT,
            "message 1 has no \"role\"");
    refuses(PLAIN, "{\"conversations\": [{\"from\": \"dog\", \"value\": \"a\"}]}",
            LS_CHAT_ASSISTANT, "turn 1 is from \"dog\"");
    refuses(PLAIN, "{\"instruction\": \"a\", \"output\": \"\"}", LS_CHAT_ASSISTANT,
            "\"output\" is no text");
    refuses(PLAIN, "{\"prompt\": \"a\", \"completion\": 1}", LS_CHAT_ASSISTANT, "is no text");
    refuses(PLAIN, "{\"question\": \"a\"}", LS_CHAT_ASSISTANT, "this one has \"question\"");
    refuses(PLAIN, "[]", LS_CHAT_ASSISTANT, "is not a JSON object");
    gives(PLAIN, "{\"prompt\": [" U("a") ", " A("b") ", " U("c") "], \"completion\": [" A("d") "]}",
          LS_CHAT_ASSISTANT,
          "<|a|>user\na<|r|><|a|>assistant\nb<|r|><|a|>user\nc<|r|><|a|>assistant\n[d<|r|>]");
    refuses("{{ messages[1].content }}", "{\"messages\": [" U("a") ", " A("b") "]}",
            LS_CHAT_ASSISTANT, "x:1:15");
    refuses("{{ messages|length }}", "{\"messages\": [" U("a") ", " A("b") "]}", LS_CHAT_ASSISTANT,
            "does not write message 2 as an answer to the prompt");
    refuses("{{ 'x' if messages }}" PLAIN, "{\"messages\": [" A("b") ", " U("a") "]}",
            LS_CHAT_ASSISTANT, "begins with the assistant's answer");
    gives(LAST, TWO, LS_CHAT_COMPLETION,
          "<|a|>user\na<|r|><|a|>assistant\nb<|r|><|a|>user\nc<|r|><|a|>assistant\n[[]d<|r|>]");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_losses),
                                       cmocka_unit_test(test_forms),
                                       cmocka_unit_test(test_system_and_tools),
                                       cmocka_unit_test(test_nulls),
                                       cmocka_unit_test(test_weights),
                                       cmocka_unit_test(test_contents),
                                       cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_special),
                                       cmocka_unit_test(test_apart),
                                       cmocka_unit_test(test_brackets),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
