/* preference_test.c - lines with a chosen and a rejected answer: which parts are trained on in each
 * form, and what is refused. */
#include "chat/preference.h"

#include "chat/chat_lines.h"
#include "chat/show.h"
#include "chat/small_chat.h"

/* Thoughts of the last answer alone are written. */
#define LAST                                                                                       \
    "{% for m in messages %}<|a|>{{ m.role }}\n{{ '-' if loop.last and m.role == 'assistant' }}"   \
    "{{ m.content }}<|r|>{% endfor %}{% if add_generation_prompt %}<|a|>assistant\n{% endif %}"
#define U(text) "{\"role\": \"user\", \"content\": \"" text "\"}"
#define A(text) "{\"role\": \"assistant\", \"content\": \"" text "\"}"

typedef struct shown {
    const ls_tokenizer *t;
    ls_buf text;
} shown;

static void show(void *arg, const ls_chat_sample *s) {
    shown *x = arg;
    ls_chat_show(x->t, s->tokens, 1000, &x->text);
    ls_buf_printf(&x->text, " | ");
    if (s->rejected) ls_chat_show(x->t, s->rejected, 1000, &x->text);
}

static ls_status encode(const char *template, ls_chat_wants wants, const char *line, ls_buf *out,
                        ls_error *e) {
    ls_tokenizer *t = small_chat_tokenizer();
    ls_chat_format f = {.tokenizer = t, .end = 257};
    shown x = {.t = t};
    assert_ls_ok(ls_template_parse(template, strlen(template), "x", &f.template, e), *e);
    ls_chat_lines l = {.name = "f",
                       .text = line,
                       .nbytes = strlen(line),
                       .format = &f,
                       .wants = wants,
                       .take = show,
                       .arg = &x};
    ls_status s = ls_chat_lines_encode(&l, e);
    ls_chat_format_free(&f);
    ls_tokenizer_free(t);
    *out = x.text;
    return s;
}

/* [ and ] stand for the brackets of what is trained on. */
static void gives(const char *template, const char *line, const char *want) {
    ls_buf text = {0}, plain = {0};
    ls_error e = {0};
    assert_ls_ok(encode(template, LS_WANTS_PAIRS, line, &text, &e), e);
    for (const char *s = text.data; *s; s++) {
        bool begin = strncmp(s, LS_SHOWN_BEGIN, 3) == 0, end = strncmp(s, LS_SHOWN_END, 3) == 0;
        ls_buf_append(&plain, begin ? "[" : end ? "]" : s, 1);
        s += begin || end ? 2 : 0;
    }
    assert_string_equal(plain.data, want);
    ls_buf_free(&text);
    ls_buf_free(&plain);
}

#define START "<|a|>user\nq<|r|><|a|>assistant\n"
static const char both[] = START "[b<|r|>] | " START "[c<|r|>]";

static void test_messages(void **state) {
    (void)state;
    gives(PLAIN, "{\"prompt\": [" U("q") "], \"chosen\": [" A("b") "], \"rejected\": [" A("c") "]}",
          both);
    gives(PLAIN, "{\"chosen\": [" U("q") ", " A("b") "], \"rejected\": [" U("q") ", " A("c") "]}",
          both);
    /* A prompt that is a text is that of the lists, too. */
    gives(PLAIN,
          "{\"prompt\": \"q\", \"chosen\": [" U("q") ", " A("b") "], \"rejected\": [" U("q") ", " A(
              "c") "]}",
          both);
    /* Answers of the prompt are not trained on; all those after it are. */
    gives(PLAIN,
          "{\"prompt\": [" U("q") ", " A("o") ", " U("r") "], \"chosen\": [" A("b") ", " U(
              "s") ", " A("t") "], \"rejected\": [" A("c") "]}",
          START "o<|r|><|a|>user\nr<|r|><|a|>assistant\n[b<|r|>]<|a|>user\ns<|r|><|a|>assistant\n"
                "[t<|r|>] | " START "o<|r|><|a|>user\nr<|r|><|a|>assistant\n[c<|r|>]");
    gives(LAST,
          "{\"prompt\": [" U("q") ", " A("o") ", " U("r") "], \"chosen\": [" A(
              "b") "], \"rejected\": [" A("c") "]}",
          START "o<|r|><|a|>user\nr<|r|><|a|>assistant\n[-b<|r|>] | " START
                "o<|r|><|a|>user\nr<|r|><|a|>assistant\n[-c<|r|>]");
}

/* Prompts of other forms, which the template writes. */
static void test_asked(void **state) {
    (void)state;
#define ANSWERS "\"chosen\": \"b\", \"rejected\": \"c\"}"
    gives(PLAIN, "{\"question\": \"q\", " ANSWERS, both);
    gives(PLAIN, "{\"system\": \"\", \"question\": \"q\", " ANSWERS, both);
    gives(PLAIN, "{\"system\": \"y\", \"question\": \"q\", " ANSWERS,
          "<|a|>system\ny<|r|>" START "[b<|r|>] | <|a|>system\ny<|r|>" START "[c<|r|>]");
    gives(PLAIN, "{\"instruction\": \"q\", " ANSWERS, both);
    gives(PLAIN, "{\"instruction\": \"q\", \"input\": \"r\", " ANSWERS,
          "<|a|>user\nq\n\nr<|r|><|a|>assistant\n[b<|r|>] | <|a|>user\nq\n\nr<|r|><|a|>assistant\n"
          "[c<|r|>]");
    gives(PLAIN,
          "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}], \"chosen\": {\"from\": "
          "\"gpt\", \"value\": \"b\"}, \"rejected\": {\"from\": \"gpt\", \"value\": \"c\"}}",
          both);
    gives(PLAIN,
          "{\"system\": \"y\", \"chosen\": [" U("q") ", " A("b") "], \"rejected\": [" U("q") ", " A(
              "c") "]}",
          "<|a|>system\ny<|r|>" START "[b<|r|>] | <|a|>system\ny<|r|>" START "[c<|r|>]");
}

static void test_texts(void **state) {
    (void)state;
    gives(PLAIN, "{\"prompt\": \"1 2\", \"chosen\": \" 3\", \"rejected\": \" 4\"}",
          "1 2[ 3<|r|>] | 1 2[ 4<|r|>]");
    gives(PLAIN, "{\"chosen\": \"1 2 3\", \"rejected\": \"1 2 4\"}", "1 2[ 3<|r|>] | 1 2[ 4<|r|>]");
    /* U+00E9 and U+00E8 share their first byte. */
    gives(PLAIN, "{\"chosen\": \"a\xc3\xa9\", \"rejected\": \"a\xc3\xa8\"}",
          "a[\xc3\xa9<|r|>] | a[\xc3\xa8<|r|>]");
}

static void refuses_as(ls_chat_wants wants, const char *template, const char *line,
                       const char *says) {
    ls_buf text = {0};
    ls_error e = {0};
    assert_ls_fails(encode(template, wants, line, &text, &e), LS_EINVAL, says, e);
    ls_buf_free(&text);
}

static void refuses(const char *line, const char *says) {
    refuses_as(LS_WANTS_PAIRS, PLAIN, line, says);
}

static void test_refused(void **state) {
    (void)state;
    refuses("{\"text\": \"a\"}", "f:1: is no pair of answers, which train.loss dpo needs");
    refuses("[[]]", "f:1: element 1 is not a JSON object");
    refuses("{\"system\": \"s\", \"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}",
            "has \"system\" beside texts");
    refuses("{\"question\": \"a\", \"chosen\": \"b\", \"rejected\": \"\"}",
            "\"rejected\" is no text, or it is empty");
    refuses("{\"prompt\": \"a\", \"chosen\": \"b\"}", "has \"chosen\", and no \"rejected\"");
    refuses("{\"prompt\": \"a\", \"rejected\": \"b\"}", "has \"rejected\", and no \"chosen\"");
    refuses("{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"b\"}",
            "\"chosen\" and \"rejected\" are the same");
    refuses("{\"prompt\": \"a\", \"chosen\": \"\", \"rejected\": \"b\"}",
            "\"chosen\" is no text, or it is empty");
    refuses("{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": 1}",
            "\"rejected\" is no text, or it is empty");
    refuses("{\"chosen\": \"a b\", \"rejected\": \"a\"}",
            "the other answer begins with all of \"rejected\"");
    refuses("{\"prompt\": \"a\", \"chosen\": [" A("b") "], \"rejected\": \"c\"}",
            "is a list of messages, and the other is not");
    refuses("{\"prompt\": [" U("q") "], \"chosen\": \"b\", \"rejected\": \"c\"}",
            "\"prompt\" is no text, and \"chosen\" is no list of messages");
    refuses("{\"prompt\": [" U("q") "], \"chosen\": [" A("b") "], \"rejected\": [" A("b") "]}",
            "are the same");
    refuses("{\"prompt\": [" U("q") "], \"chosen\": [" A("b") "], \"rejected\": [" A("b ") "]}",
            "have the same tokens");
    refuses("{\"prompt\": [" U("q") "], \"chosen\": [" A("b") "], \"rejected\": [" A("") "]}",
            "message 1, the assistant's, is empty");
    refuses("{\"prompt\": [" U("q") "], \"chosen\": [" A("b") "], \"rejected\": []}",
            "\"rejected\" is no list of messages, or it is empty");
    refuses("{\"chosen\": [" U("q") ", " A("b") "], \"rejected\": [" U("q") "]}",
            "\"rejected\" has no message beyond those");
    refuses("{\"prompt\": [" U("q") "], \"chosen\": [" A("b") "], \"rejected\": [" U("c") "]}",
            "\"rejected\": trains no token: it has no answer of the assistant");
    refuses_as(LS_WANTS_PAIRS, LAST,
               "{\"prompt\": [" U("q") "], \"chosen\": [" A("b") ", " U("s") ", " A(
                   "t") "], \"rejected\": [" A("c") "]}",
               "\"chosen\": has several answers after the prompt");
    refuses_as(LS_WANTS_CHATS, PLAIN, "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}",
               "f:1: has chosen and rejected answers; set train.loss: dpo");
}

/* To show them, lines may be of both kinds. */
static void test_either(void **state) {
    (void)state;
    ls_buf text = {0};
    ls_error e = {0};
    assert_ls_ok(encode(PLAIN, LS_WANTS_EITHER,
                        "{\"text\": \"ab\"}\n{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": "
                        "\"c\"}\n",
                        &text, &e),
                 e);
    assert_non_null(strstr(text.data, " | a" LS_SHOWN_BEGIN "b<|r|>" LS_SHOWN_END " | a"));
    ls_buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages), cmocka_unit_test(test_asked), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_either)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
