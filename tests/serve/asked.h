/* asked.h - requests with tools to a model with random weights: the whole answer, and the
 * stream. */
#ifndef LS_TEST_SERVE_ASKED_H
#define LS_TEST_SERVE_ASKED_H

#include "data/small_tokenizer.h"
#include "folder.h"
#include "infer/conversations.h"
#include "serve/call_answer.h"
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

static inline int open_model(void **state) {
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

static inline int close_model(void **state) {
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
static inline void send_new(void *arg) {
    asked *x = arg;
    ls_engine_lock(x->engine);
    ls_answer_stream(&x->answer, x->sent, &x->stream);
    ls_engine_unlock(x->engine);
}

static inline bool read_request(const char *body, ls_text_request *r, ls_refusal *why) {
    return ls_request_read(&model, kind, body, strlen(body), r, why);
}

/* The whole answer as JSON; x has the stream's events. */
static inline ls_json *ask(asked *x, const char *body) {
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

static inline void free_asked(asked *x) {
    for (size_t i = 0; i < x->answer.n; i++) ls_reply_free(&x->replies[i]);
    free(x->replies);
    free(x->sent);
    ls_buf_free(&x->stream);
    ls_request_free(&x->request);
}

static inline uint32_t byte_token(char byte) {
    size_t n = 0;
    for (uint32_t i = 0; i < ls_tokenizer_used(trained.tokenizer); i++) {
        const uint8_t *bytes = ls_tokenizer_bytes(trained.tokenizer, i, &n);
        if (n == 1 && *bytes == (uint8_t)byte) return i;
    }
    fail_msg("no token for %c", byte);
    return 0;
}

/* The prompt of a request as text. */
static inline void check_prompt(const char *body, const char *want) {
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

#endif
