/* response_test.c - OpenAI's responses: prompts, items and events, also of calls and thoughts;
 * what is refused. */
#include "serve/asked.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_response_prompts), cmocka_unit_test(test_responses),
        cmocka_unit_test(test_response_thoughts), cmocka_unit_test(test_responses_refused)};
    return cmocka_run_group_tests(tests, open_model, close_model);
}
