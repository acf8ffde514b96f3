/* call_answer_test.c - answers with calls of tools, whole, as a stream and as responses: how they
 * end, if what they say is cut within a call; content behind calls. */
#include "serve/call_answer.h"

#include <string.h>

#include "test.h"

static const char TEMPLATE[] =
    "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}"
    "{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>\n{\"name\": \""
    "{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>"
    "{% endfor %}{% endfor %}";
#define CALL "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"b\"}}\n</tool_call>"
#define CUT  "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"b"

/* A reply and what is made of it. */
typedef struct wanted {
    const char *text, *stop;
    ls_written_end end;
    const char *finish, *content, *arguments; /* content NULL: null */
    const char *status, *item;                /* of a response, and of its last item */
    const char *items;                        /* of a response, by their types */
} wanted;

static const wanted cases[] = {
    {CALL, NULL, LS_END_TOKEN, "tool_calls", NULL, "{\"a\": \"b\"}", "completed", "completed",
     "function_call "},
    {CALL, NULL, LS_END_LENGTH, "length", NULL, "{\"a\": \"b\"}", "incomplete", "incomplete",
     "function_call "},
    {CALL, "X", LS_END_STOP, "tool_calls", NULL, "{\"a\": \"b\"}", "completed", "completed",
     "function_call "},
    {CUT, NULL, LS_END_LENGTH, "length", NULL, "{\"a\": \"b", "incomplete", "incomplete",
     "function_call "},
    {CUT, "X", LS_END_STOP, "stop", NULL, "{\"a\": \"b", "completed", "incomplete",
     "function_call "},
    {CUT, NULL, LS_END_TOKEN, "stop", NULL, "{\"a\": \"b", "completed", "incomplete",
     "function_call "},
    {CALL CUT, "X", LS_END_STOP, "stop", NULL, "{\"a\": \"b\"}{\"a\": \"b", "completed",
     "incomplete", "function_call function_call "},
    {"Now:\n" CALL, NULL, LS_END_TOKEN, "tool_calls", "Now:", "{\"a\": \"b\"}", "completed",
     "completed", "message function_call "},
    {CALL "\nThat is it.", NULL, LS_END_TOKEN, "tool_calls", "That is it.", "{\"a\": \"b\"}",
     "completed", "completed", "function_call message "},
    {"Now:\n" CALL "\nThat", NULL, LS_END_LENGTH, "length", "Now:\nThat", "{\"a\": \"b\"}",
     "incomplete", "incomplete", "message function_call message "},
    {"<tool_call>\n{\"name\": \"f", "X", LS_END_STOP, "stop", "<tool_call>\n{\"name\": \"f", "",
     "completed", "completed", "message "}};

static ls_request_model model = {.name = "m"};
static ls_chat_format format;

static int open_form(void **state) {
    ls_error e = {0};
    (void)state;
    if (ls_template_parse(TEMPLATE, sizeof TEMPLATE - 1, "t", &format.template, &e) != LS_OK)
        return -1;
    model.tool_template = ls_tool_template_of(&format);
    return model.tool_template.form ? 0 : -1;
}

static int close_form(void **state) {
    (void)state;
    ls_chat_format_free(&format);
    return 0;
}

/* A request, its reply and the answer. */
typedef struct given {
    ls_text_request request;
    ls_reply reply;
    ls_text_answer answer;
} given;

static void make(given *g, bool response) {
    *g = (given){.request = {.chat = true, .n = 1, .rule.top = -1, .stream = true}};
    g->request.tools = (ls_tools){.names.form = model.tool_template.form, .reads = true};
    if (response) g->request.asked = ls_json_new_object();
    g->reply.rule = &g->request.rule;
    g->answer = (ls_text_answer){
        .request = &g->request, .model = &model, .replies = &g->reply, .n = 1, .id = "it"};
}

static void take(given *g, const wanted *w) {
    ls_buf_append(&g->reply.text, w->text, strlen(w->text));
    g->reply.state = LS_REPLY_ENDED;
    g->reply.end = w->end;
    g->reply.stop = w->stop;
}

static void free_given(given *g) {
    ls_buf_free(&g->reply.text);
    ls_json_free(g->request.asked);
}

static ls_json *whole(const given *g) {
    ls_buf text = {0};
    ls_json *j = NULL;
    ls_error e = {0};
    ls_answer_write(&g->answer, &text);
    assert_ls_ok(ls_json_parse(text.data, text.len, "it", &j, &e), e);
    ls_buf_free(&text);
    return j;
}

static void add_text(ls_buf *b, const ls_json *text) {
    const char *t = ls_json_text(text);
    if (t) ls_buf_append(b, t, strlen(t));
}

static void same_text(ls_buf *b, const char *want) {
    ls_buf_append(b, "", 1);
    assert_string_equal(b->data, want);
    ls_buf_free(b);
}

static const ls_json *arguments_of(const ls_json *call) {
    return ls_json_get(ls_json_get(call, "function"), "arguments");
}

static void check_whole(const wanted *w) {
    given g;
    ls_buf arguments = {0};
    make(&g, false);
    take(&g, w);
    ls_json *o = whole(&g);
    const ls_json *choice = ls_json_at(ls_json_get(o, "choices"), 0);
    const ls_json *message = ls_json_get(choice, "message");
    const ls_json *content = ls_json_get(message, "content");
    const ls_json *calls = ls_json_get(message, "tool_calls");
    assert_string_equal(ls_json_text(ls_json_get(choice, "finish_reason")), w->finish);
    if (w->content)
        assert_string_equal(ls_json_text(content), w->content);
    else
        assert_true(ls_json_is_null(content));
    for (size_t i = 0; i < ls_json_count(calls); i++)
        add_text(&arguments, arguments_of(ls_json_at(calls, i)));
    same_text(&arguments, w->arguments);
    ls_json_free(o);
    free_given(&g);
}

/* The pieces of a stream, whose text comes a byte at a time. */
static void check_stream(const wanted *w) {
    given g;
    ls_answer_sent sent = {0};
    ls_buf stream = {0}, content = {0}, arguments = {0}, finish = {0};
    ls_error e = {0};
    make(&g, false);
    for (size_t i = 0; w->text[i]; i++) {
        ls_buf_append(&g.reply.text, w->text + i, 1);
        ls_answer_stream(&g.answer, &sent, &stream);
    }
    g.reply.text.len = 0;
    take(&g, w);
    ls_answer_stream(&g.answer, &sent, &stream);
    ls_buf_append(&stream, "", 1);
    for (char *line = stream.data, *next; (next = strstr(line, "\n\n")); line = next + 2) {
        ls_json *j = NULL;
        *next = 0;
        if (strcmp(line, "data: [DONE]") == 0) break;
        assert_ls_ok(ls_json_parse(line + 6, strlen(line + 6), "an event", &j, &e), e);
        const ls_json *choice = ls_json_at(ls_json_get(j, "choices"), 0);
        const ls_json *delta = ls_json_get(choice, "delta");
        add_text(&content, ls_json_get(delta, "content"));
        add_text(&arguments, arguments_of(ls_json_at(ls_json_get(delta, "tool_calls"), 0)));
        add_text(&finish, ls_json_get(choice, "finish_reason"));
        ls_json_free(j);
    }
    same_text(&content, w->content ? w->content : "");
    same_text(&arguments, w->arguments);
    same_text(&finish, w->finish);
    ls_buf_free(&stream);
    free_given(&g);
}

/* A stream's events end with the whole response. */
static void check_events(const wanted *w, const ls_json *want) {
    given g;
    ls_answer_sent sent = {0};
    ls_buf stream = {0}, deltas = {0}, text = {0}, done = {0};
    ls_error e = {0};
    make(&g, true);
    for (size_t i = 0; w->text[i]; i++) {
        ls_buf_append(&g.reply.text, w->text + i, 1);
        ls_answer_stream(&g.answer, &sent, &stream);
    }
    g.reply.text.len = 0;
    take(&g, w);
    ls_answer_stream(&g.answer, &sent, &stream);
    ls_buf_append(&stream, "", 1);
    for (char *line = stream.data, *next; (next = strstr(line, "\n\n")); line = next + 2) {
        ls_json *j = NULL;
        char *data = strstr(line, "\ndata: ");
        *next = 0;
        assert_ls_ok(ls_json_parse(data + 7, strlen(data + 7), "an event", &j, &e), e);
        const char *type = ls_json_text(ls_json_get(j, "type"));
        add_text(&deltas, ls_json_get(j, "delta"));
        if (strcmp(type, "response.output_item.done") == 0) {
            int64_t at = -1;
            ls_buf one = {0}, other = {0};
            assert_true(ls_json_integer(ls_json_get(j, "output_index"), &at));
            ls_json_write(ls_json_get(j, "item"), 0, &one);
            ls_json_write(ls_json_at(want, (size_t)at), 0, &other);
            ls_buf_append(&other, "", 1);
            same_text(&one, other.data);
            ls_buf_free(&other);
            ls_buf_append(&done, ".", 1);
        }
        ls_json_free(j);
    }
    for (size_t i = 0; i < ls_json_count(want); i++) {
        const ls_json *item = ls_json_at(want, i);
        add_text(&text, ls_json_get(item, "arguments"));
        add_text(&text, ls_json_get(ls_json_at(ls_json_get(item, "content"), 0), "text"));
    }
    assert_int_equal(done.len, ls_json_count(want));
    ls_buf_append(&text, "", 1);
    same_text(&deltas, text.data);
    ls_buf_free(&stream), ls_buf_free(&text), ls_buf_free(&done);
    free_given(&g);
}

static void check_response(const wanted *w) {
    given g;
    ls_buf items = {0};
    make(&g, true);
    take(&g, w);
    ls_json *o = whole(&g);
    const ls_json *output = ls_json_get(o, "output");
    size_t n = ls_json_count(output);
    assert_string_equal(ls_json_text(ls_json_get(o, "status")), w->status);
    assert_string_equal(ls_json_text(ls_json_get(ls_json_at(output, n - 1), "status")), w->item);
    for (size_t i = 0; i < n; i++)
        ls_buf_printf(&items, "%s ", ls_json_text(ls_json_get(ls_json_at(output, i), "type")));
    same_text(&items, w->items);
    check_events(w, output);
    ls_json_free(o);
    free_given(&g);
}

static void test_answers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_whole(&cases[i]);
        check_stream(&cases[i]);
        check_response(&cases[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers)};
    return cmocka_run_group_tests(tests, open_form, close_form);
}
