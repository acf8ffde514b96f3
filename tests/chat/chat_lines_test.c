/* chat_lines_test.c - files of conversations: lines and arrays, where and why they are damaged, and
 * the keys that nothing reads. */
#include "chat/chat_lines.h"

#include "chat/small_chat.h"

static void count(void *arg, const ls_chat_sample *s) {
    ls_buf_printf(arg, "%llu:%zu ", (unsigned long long)s->line, s->tokens->n);
}

static ls_status encode(const char *text, ls_buf *out, ls_unread *unread, ls_error *e) {
    ls_tokenizer *t = small_chat_tokenizer();
    ls_chat_format f = {.tokenizer = t, .end = 257};
    assert_ls_ok(ls_template_parse(PLAIN, strlen(PLAIN), "x", &f.template, e), *e);
    ls_chat_lines l = {.name = "f",
                       .text = text,
                       .nbytes = strlen(text),
                       .format = &f,
                       .wants = LS_WANTS_EITHER,
                       .unread = unread,
                       .take = count,
                       .arg = out};
    ls_status s = ls_chat_lines_encode(&l, e);
    ls_chat_format_free(&f);
    ls_tokenizer_free(t);
    return s;
}

static void gives(const char *text, const char *want) {
    ls_buf out = {0};
    ls_error e = {0};
    assert_ls_ok(encode(text, &out, NULL, &e), e);
    assert_string_equal(out.data ? out.data : "", want);
    ls_buf_free(&out);
}

static void refuses(const char *text, const char *says) {
    ls_buf out = {0};
    ls_error e = {0};
    assert_ls_fails(encode(text, &out, NULL, &e), LS_EINVAL, says, e);
    ls_buf_free(&out);
}

#define T(text) "{\"text\": \"" text "\"}"

static void test_files(void **state) {
    (void)state;
    gives("", "");
    gives("\n \r\n", "");
    gives(T("ab") "\r\n\n" T("abc") "\n", "1:3 3:4 ");
    gives("\xef\xbb\xbf" T("ab"), "1:3 ");
    gives(T("ab") "\r" T("abc") "\r\r" T("a"), "1:3 2:4 4:2 ");
    gives("[]", "");
    gives(" [ ] \n", "");
    gives("[" T("ab") "," T("a]\\\"},[{b") "]", "1:3 2:9 ");
    gives("\xef\xbb\xbf[\n  {\n  \"text\":\n \"ab\"\n},\n\n" T("abc") "\n]\n", "1:3 2:4 ");
    gives("[{\"instruction\": \"a\", \"input\": \"\", \"output\": \"b\"}]", "1:21 ");
}

static void test_damaged(void **state) {
    (void)state;
    refuses("\xff\xfe{", "f:1: is UTF-16LE, not UTF-8; convert it");
    refuses("{\"text\": 99999999999999999999}", "f:1: has a number that is too large");
    refuses(T("ab") "\n{\"text\" \"a\"}", "f:2: is not valid JSON: ':' expected near '\"a\"'");
    refuses("{\"text\": \"a\", \"text\": \"b\"}", "f:1: is not valid JSON: duplicate object key");
    refuses("[\n" T("ab") ",\n{\"text\": }\n]", "f:3: element 2 is not valid JSON: unexpected");
    refuses("[\n" T("ab") ",\n{\"question\": \"a\"}\n]", "f:3: element 2 a line has messages");
    refuses("{\"question\": \"a\", \"answer\": 3}", "f:1: \"answer\" is no text, or it is");
    refuses("{\"prompt\": [], \"response\": \"a\"}", "f:1: \"prompt\" is no text, or it is empty");
    refuses("[" T("ab") "\n", "f:2: the array of objects has no end");
    refuses("[" T("ab") ",", "f:1: the array of objects has no end");
    refuses("[" T("ab") "\n" T("ab") "]", "f:1: element 1 is not valid JSON");
    refuses("[" T("ab") "]\n" T("ab"), "f:2: has more behind the end of its array");
    refuses("[[" T("ab") "]]", "f:1: element 1 is not a JSON object");
    refuses("[" T("ab") "}", "f:1: the array of objects has no end");
    refuses("{\n\"text\": \"a\"", "f:1: is not valid JSON: ");
    refuses("{\n\"text\": \"ab\"}\n3\n", "f:3: is not valid JSON: an object begins with {");
}

static void test_unread(void **state) {
    (void)state;
    static const char text[] =
        "{\"id\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"a\", \"name\": \"n\", "
        "\"weight\": 1, \"extra\": null}, {\"role\": \"assistant\", \"content\": \"b\", "
        "\"weight\": 1}], \"tools\": [{}], \"system\": \"s\", \"empty\": \"\", \"none\": null}\n"
        "{\"id\": 2, \"conversations\": [{\"from\": \"human\", \"value\": \"a\", \"lang\": 1}, "
        "{\"from\": \"gpt\", \"value\": \"b\"}], \"source\": 1}\n"
        "{\"prompt\": \"a\", \"completion\": \"b\", \"tools\": [{}]}\n"
        "{\"chosen\": \"ab\", \"rejected\": \"ac\", \"score\": 1}\n";
    static const char *const want[] = {"\"id\"",
                                       "\"tools\" (the template has none)",
                                       "\"name\" of messages",
                                       "\"weight\" of messages",
                                       "\"source\"",
                                       "\"lang\" of messages",
                                       "\"tools\"",
                                       "\"score\""};
    ls_buf out = {0};
    ls_unread u = {0};
    ls_error e = {0};
    assert_ls_ok(encode(text, &out, &u, &e), e);
    assert_int_equal(u.n, sizeof want / sizeof *want);
    for (size_t i = 0; i < u.n; i++) assert_string_equal(u.names[i], want[i]);
    ls_unread_free(&u);
    ls_buf_free(&out);
}

static void test_keys(void **state) {
    (void)state;
    static const struct {
        const char *text, *key;
    } rows[] = {{"{\"messages\": []}", "messages"},
                {"\n\n{\"conversations\": 1}\nx", "conversations"},
                {"[{\"instruction\": \"a\", \"output\": \"b\"}, x", "instruction"},
                {"{\"prompt\": \"a\", \"completion\": \"b\"}", "prompt"},
                {"{\"chosen\": \"a\", \"rejected\": \"b\"}", "chosen"},
                {"{\"text\": \"a\"}", "text"},
                {"{\"text\": {\"bytes\": 7}}", NULL},
                {"{\"question\": 1, \"answer\": 2}", NULL},
                {"{\"a\": 1}", NULL},
                {"", NULL},
                {"[1]", NULL},
                {"{text}", NULL},
                {"In the beginning", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *key = ls_chat_lines_key(rows[i].text, strlen(rows[i].text));
        if (rows[i].key)
            assert_string_equal(key, rows[i].key);
        else
            assert_null(key);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_unread), cmocka_unit_test(test_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
