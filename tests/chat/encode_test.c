/* encode_test.c - conversations as tokens: what is trained on for each form and loss, special names
 * in contents, and what is refused. */
#include "chat/encode.h"

#include "chat/conversation.h"
#include "chat/lines.h"
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
    /* Texts end with the token that ends a text, which is learned. */
    gives(PLAIN, "{\"prompt\": \"ab\", \"completion\": \"cd\"}", LS_CHAT_ASSISTANT, "ab[cd<|r|>]");
    gives(PLAIN, "{\"text\": \"abc\"}", LS_CHAT_ASSISTANT, "a[bc<|r|>]");
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

static void add_shown(void *arg, const ls_chat_sample *s) {
    ls_tokenizer *t = small_chat_tokenizer();
    ls_chat_show(t, s->tokens, 1000, arg);
    ls_buf_printf(arg, " %llu%s\n", (unsigned long long)s->line, s->apart ? " apart" : "");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_losses), cmocka_unit_test(test_forms),
                                       cmocka_unit_test(test_special), cmocka_unit_test(test_apart),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
