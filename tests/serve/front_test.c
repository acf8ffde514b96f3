/* front_test.c - requests for a model's text, by sockets: answers, streams, refusals, clients that
 * go. */
/* ctest: seconds=3 */
#include "serve/front.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json.h"
#include "folder.h"
#include "infer/conversations.h"
#include "serve/fingerprint.h"
#include "test.h"
#include "weights/small_text.h"

enum { MOST = 1 << 20 };

static const char TEMPLATE[] =
    "{% for m in messages %}{{ m.role[0] }}{{ m.content | trim }}\n{% endfor %}"
    "{% if more is defined %}{{ more }}{% endif %}{{ reasoning_effort }}a";
static ls_trained trained;
static ls_chat_format format;
static ls_front *front;
static pthread_t thread;
static atomic_int asked;
static char reply[MOST];
static ls_adapter none; /* an adapter of no layer */
static const char *const names[] = {"plain"};

static void *run(void *arg) {
    (void)arg;
    ls_error e = {0};
    assert_ls_ok(ls_front_run(front, &asked, 1, &e), e);
    return NULL;
}

/* Its texts begin with a token. */
static void write_model(const char *path) {
    small_tensor list[SMALL_TENSORS];
    int n = small_list(&small_models[0], list);
    ls_buf more = {0};
    uint64_t nmore = small_put_text(&more);
    put_key(&more, "tokenizer.ggml.add_bos_token", BOOL);
    ls_buf_append(&more, "\1", 1);
    small_write_gguf_of(&small_models[0], list, n, &more, nmore + 1, path);
    ls_buf_free(&more);
}

static int open_front(void **state) {
    if (make_folder(state) != 0) return -1;
    ls_error e = {0};
    char *path = ls_format("%s/m.gguf", folder), *chat = ls_format("%s/t.jinja", folder);
    write_model(path);
    assert_ls_ok(ls_file_write(chat, TEMPLATE, sizeof TEMPLATE - 1, &e), e);
    assert_ls_ok(ls_trained_open(path, &(ls_trained_options){.writes = true}, &trained, &e), e);
    assert_ls_ok(ls_trained_chat_format(&trained, chat, &format, &e), e);
    ls_front_options o = {.trained = &trained, .format = &format, .name = "small", .queue = 4};
    none.of = LS_NEW_ARRAY(ls_row_adapter, (size_t)trained.model.nparams);
    o.adapters = names;
    o.engine = (ls_engine_options){
        .texts = 4, .rows = 16, .memory_nbytes = 64 << 20, .adapters = &none, .nadapters = 1};
    assert_ls_ok(ls_front_open(&o, &front, &e), e);
    assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
    free(path);
    free(chat);
    return 0;
}

static int close_front(void **state) {
    asked = 1;
    pthread_join(thread, NULL);
    ls_front_close(front);
    ls_adapter_close(&none);
    ls_chat_format_free(&format);
    ls_trained_close(&trained);
    return remove_folder(state);
}

/* ---- a client ---- */

static int send_request(const char *method, const char *path, const char *body) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)ls_front_port(front))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    char *text = ls_format("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                           "Content-Length: %zu\r\n\r\n%s",
                           method, path, strlen(body), body);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    free(text);
    return fd;
}

/* The status; `reply` has the body, without the marks of chunks. */
static int ask_by(const char *method, const char *path, const char *body) {
    int fd = send_request(method, path, body), status = 0;
    size_t n = 0;
    for (ssize_t k; (k = read(fd, reply + n, MOST - 1 - n)) > 0;) n += (size_t)k;
    reply[n] = 0;
    close(fd);
    assert_int_equal(sscanf(reply, "HTTP/1.1 %d", &status), 1);
    bool chunked = strcasestr(reply, "chunked") != NULL;
    char *from = strstr(reply, "\r\n\r\n") + 4, *to = reply;
    while (chunked) {
        char *end = NULL;
        size_t size = strtoul(from, &end, 16);
        if (size == 0) break;
        memmove(to, end + 2, size);
        to += size;
        from = end + 2 + size + 2;
    }
    if (chunked)
        *to = 0;
    else
        memmove(reply, from, strlen(from) + 1);
    return status;
}

static int ask(const char *path, const char *body) { return ask_by("POST", path, body); }

static ls_json *parsed(void) {
    ls_json *j = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_json_parse(reply, strlen(reply), "the reply", &j, &e), e);
    return j;
}

static const ls_json *choice_of(const ls_json *o, size_t i) {
    return ls_json_at(ls_json_get(o, "choices"), i);
}

/* ---- answers ---- */

static void test_answers(void **state) {
    (void)state;
    char text[4][256];
    static const char body[] = "{\"model\": \"small\", \"prompt\": [\"the\", \"a man\"], \"n\": 2,"
                               "\"max_tokens\": 6, \"seed\": 5, \"temperature\": 1}";
    for (int round = 0; round < 2; round++) {
        assert_int_equal(ask("/v1/completions", body), 200);
        ls_json *o = parsed();
        assert_string_equal(ls_json_text(ls_json_get(o, "object")), "text_completion");
        for (size_t i = 0; i < 4; i++) {
            const char *got = ls_json_text(ls_json_get(choice_of(o, i), "text"));
            if (round) assert_string_equal(got, text[i]);
            snprintf(text[i], sizeof text[i], "%s", got);
        }
        int64_t written = 0;
        assert_true(
            ls_json_integer(ls_json_get(ls_json_get(o, "usage"), "completion_tokens"), &written));
        assert_true(written > 0 && written <= 24);
        ls_json_free(o);
    }
    assert_string_not_equal(text[0], text[1]); /* other random numbers */
}

/* A request names an adapter as its model. */
/* The fingerprint of an answer; it comes a moment after the start. */
static char *fingerprint_of(const char *model) {
    char body[128], *found = NULL;
    snprintf(body, sizeof body, "{\"model\": \"%s\", \"prompt\": \"a\", \"max_tokens\": 1}", model);
    for (int i = 0; !found && i < 20000; i++) {
        assert_int_equal(ask("/v1/completions", body), 200);
        ls_json *o = parsed();
        const char *text = ls_json_text(ls_json_get(o, "system_fingerprint"));
        assert_true(text || ls_json_is_null(ls_json_get(o, "system_fingerprint")));
        if (text) found = ls_strdup(text);
        ls_json_free(o);
        if (!found) usleep(10000);
    }
    assert_non_null(found);
    return found;
}

/* The fingerprint without a server. */
static void hash_model(const ls_request_model *m, ls_kept_type kept,
                       char text[LS_FINGERPRINT_TEXT]) {
    const char *found = NULL;
    ls_fingerprint *f = ls_fingerprint_open(m, kept, NULL);
    while (!(found = ls_fingerprint_of(f, 0))) usleep(1000);
    snprintf(text, LS_FINGERPRINT_TEXT, "%s", found);
    ls_fingerprint_close(f);
}

/* The model's file with the last bit of its last weight changed. */
static void open_changed(ls_trained *t) {
    ls_error e = {0};
    ls_buf bytes = {0};
    char *path = ls_format("%s/m.gguf", folder), *other = ls_format("%s/changed.gguf", folder);
    assert_ls_ok(ls_file_read(path, SIZE_MAX, &bytes, &e), e);
    bytes.data[bytes.len - 1] ^= 1;
    assert_ls_ok(ls_file_write(other, bytes.data, bytes.len, &e), e);
    assert_ls_ok(ls_trained_open(other, &(ls_trained_options){.writes = true}, t, &e), e);
    ls_buf_free(&bytes);
    free(path), free(other);
}

/* It depends on what decides answers, and on nothing else. */
static void test_fingerprint(void **state) {
    (void)state;
    ls_trained changed;
    char text[LS_FINGERPRINT_TEXT];
    ls_request_model m = {.trained = &trained, .format = &format};
    char *a = fingerprint_of("small"), *b = fingerprint_of("small"), *c = fingerprint_of("plain");
    assert_int_equal(strlen(a), LS_FINGERPRINT_TEXT - 1);
    assert_memory_equal(a, "fp_", 3);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    hash_model(&m, LS_KEPT_F32, text);
    assert_string_equal(a, text);
    hash_model(&m, LS_KEPT_Q8, text);
    assert_string_not_equal(a, text);
    m.format = NULL;
    hash_model(&m, LS_KEPT_F32, text);
    assert_string_not_equal(a, text);
    open_changed(&changed);
    m = (ls_request_model){.trained = &changed, .format = &format};
    hash_model(&m, LS_KEPT_F32, text);
    assert_string_not_equal(a, text);
    ls_trained_close(&changed);
    free(a), free(b), free(c);
}

static void test_adapter(void **state) {
    (void)state;
    assert_int_equal(ask_by("GET", "/v1/models", ""), 200);
    ls_json *o = parsed();
    const ls_json *one = ls_json_at(ls_json_get(o, "data"), 1);
    assert_int_equal(ls_json_count(ls_json_get(o, "data")), 2);
    assert_string_equal(ls_json_text(ls_json_get(one, "id")), "plain");
    assert_string_equal(ls_json_text(ls_json_get(one, "parent")), "small");
    ls_json_free(o);
    assert_int_equal(ask_by("GET", "/v1/models/plain", ""), 200);
    o = parsed();
    assert_string_equal(ls_json_text(ls_json_get(o, "id")), "plain");
    ls_json_free(o);
    assert_int_equal(ask("/v1/completions", "{\"model\": \"plain\", \"prompt\": \"a\"}"), 200);
    o = parsed();
    assert_string_equal(ls_json_text(ls_json_get(o, "model")), "plain");
    ls_json_free(o);
}

/* The pieces of a stream are the text of the whole answer. */
static void test_stream(void **state) {
    (void)state;
    char whole[256], pieces[256] = "";
    assert_int_equal(ask("/v1/chat/completions",
                         "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"seed\": 3,"
                         "\"max_tokens\": 9, \"ignore_eos\": true}"),
                     200);
    ls_json *o = parsed();
    snprintf(whole, sizeof whole, "%s",
             ls_json_text(ls_json_get(ls_json_get(choice_of(o, 0), "message"), "content")));
    ls_json_free(o);
    assert_int_equal(ask("/v1/chat/completions",
                         "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"seed\": 3,"
                         "\"max_tokens\": 9, \"ignore_eos\": true, \"stream\": true,"
                         "\"stream_options\": {\"include_usage\": true}}"),
                     200);
    int events = 0, ends = 0;
    for (char *line = reply, *next; (next = strstr(line, "\n\n")); line = next + 2) {
        ls_error e = {0};
        ls_json *j = NULL;
        *next = 0;
        assert_memory_equal(line, "data: ", 6);
        if (strcmp(line + 6, "[DONE]") == 0) {
            assert_int_equal(next[2], 0);
            ends++;
            continue;
        }
        assert_ls_ok(ls_json_parse(line + 6, strlen(line + 6), "an event", &j, &e), e);
        const char *text =
            ls_json_text(ls_json_get(ls_json_get(choice_of(j, 0), "delta"), "content"));
        if (text) strcat(pieces, text);
        if (events++ == 0)
            assert_string_equal(
                ls_json_text(ls_json_get(ls_json_get(choice_of(j, 0), "delta"), "role")),
                "assistant");
        ls_json_free(j);
    }
    assert_int_equal(ends, 1);
    assert_true(events >= 3); /* the role, the text in any number of pieces, the end */
    assert_string_equal(pieces, whole);
    /* With continuous_usage_stats no event is without it. */
    assert_int_equal(
        ask("/v1/completions",
            "{\"prompt\": \"a\", \"max_tokens\": 5, \"ignore_eos\": true, \"stream\": true,"
            "\"stream_options\": {\"include_usage\": true, "
            "\"continuous_usage_stats\": true}}"),
        200);
    assert_non_null(strstr(reply, "\"usage\": {"));
    assert_null(strstr(reply, "\"usage\": null"));
}

/* What lm-eval asks for: the logarithms of a prompt's own tokens are those of the tokens when they
 * were written. */
static void test_echo(void **state) {
    (void)state;
    assert_int_equal(ask("/v1/completions",
                         "{\"prompt\": [5, 9, 17], \"max_tokens\": 4, \"logprobs\": 1,"
                         "\"temperature\": 0, \"ignore_eos\": true,"
                         "\"skip_special_tokens\": false}"),
                     200);
    ls_json *o = parsed();
    const ls_json *notes = ls_json_get(choice_of(o, 0), "logprobs");
    double written[4], prompt = 0;
    for (size_t i = 0; i < 4; i++)
        assert_true(
            ls_json_number(ls_json_at(ls_json_get(notes, "token_logprobs"), i), &written[i]));
    /* the likeliest token has the largest logarithm */
    const char *first = ls_json_text(ls_json_at(ls_json_get(notes, "tokens"), 0));
    double top = 0;
    assert_true(ls_json_number(
        ls_json_get(ls_json_at(ls_json_get(notes, "top_logprobs"), 0), first), &top));
    assert_true(top == written[0]);
    ls_json_free(o);
    assert_int_equal(ask("/v1/completions",
                         "{\"prompt\": [5, 9, 17], \"max_tokens\": 0, \"logprobs\": 1,"
                         "\"echo\": true, \"temperature\": 0}"),
                     200);
    o = parsed();
    notes = ls_json_get(choice_of(o, 0), "logprobs");
    assert_int_equal(ls_json_count(ls_json_get(notes, "token_logprobs")), 3);
    assert_true(ls_json_is_null(ls_json_at(ls_json_get(notes, "token_logprobs"), 0)));
    assert_true(ls_json_number(ls_json_at(ls_json_get(notes, "token_logprobs"), 2), &prompt));
    assert_true(prompt < 0);
    ls_json_free(o);
}

/* Offsets count characters: that of a token is the place of the character in which it begins. */
static void test_offsets(void **state) {
    static const int64_t want[] = {0, 1, 1, 2, 3, 3};
    (void)state;
    assert_int_equal(ask("/v1/completions",
                         "{\"prompt\": [33, 95, 96, 34, 95, 96], \"max_tokens\": 0,"
                         "\"logprobs\": 0, \"echo\": true}"),
                     200);
    ls_json *o = parsed();
    const ls_json *notes = ls_json_get(choice_of(o, 0), "logprobs");
    assert_string_equal(ls_json_text(ls_json_get(choice_of(o, 0), "text")), "A\xc3\xa9"
                                                                            "B\xc3\xa9");
    for (size_t i = 0; i < 6; i++) {
        int64_t at = -1;
        assert_true(ls_json_integer(ls_json_at(ls_json_get(notes, "text_offset"), i), &at));
        assert_int_equal(at, want[i]);
    }
    ls_json_free(o);
}

static const ls_json *vector_of(const ls_json *o, size_t i) {
    return ls_json_get(ls_json_at(ls_json_get(o, "data"), i), "embedding");
}

/* The mean of the last values, of length 1: of a text, of its tokens, alone and among others, as
 * numbers and as bytes, whatever parts it was computed in. */
static void test_embeddings(void **state) {
    enum { N = 40 };
    uint32_t tokens[N];
    ls_buf ids = {0};
    (void)state;
    for (int i = 0; i < N; i++) {
        tokens[i] = (uint32_t)(i * 7 % 90);
        ls_buf_printf(&ids, "%s%u", i ? "," : "", tokens[i]);
    }
    int64_t width = ls_infer_width(&trained.model);
    float *want = LS_NEW_ARRAY(float, (size_t)width);
    double length = 0;
    ls_infer_mean(&trained.infer, tokens, N, want);
    for (int64_t k = 0; k < width; k++) length += (double)want[k] * (double)want[k];
    char *alone = ls_format("{\"input\": [%.*s]}", (int)ids.len, ids.data);
    char *among = ls_format("{\"input\": [[5], [%.*s], [6, 7, 8]]}", (int)ids.len, ids.data);
    char *bytes =
        ls_format("{\"input\": [%.*s], \"encoding_format\": \"base64\"}", (int)ids.len, ids.data);
    assert_int_equal(ask("/v1/embeddings", alone), 200);
    ls_json *a = parsed();
    assert_int_equal(ask("/v1/embeddings", among), 200);
    ls_json *b = parsed();
    assert_int_equal(ask("/v1/embeddings", bytes), 200);
    ls_json *c = parsed();
    size_t n = 0;
    char *packed = ls_base64_decode(ls_json_text(vector_of(c, 0)), &n);
    assert_int_equal(n, (size_t)width * sizeof(float));
    assert_int_equal(ls_json_count(vector_of(a, 0)), width);
    assert_int_equal(ls_json_count(ls_json_get(b, "data")), 3);
    for (int64_t k = 0; k < width; k++) {
        double x = 0, y = 0;
        float z = 0;
        assert_true(ls_json_number(ls_json_at(vector_of(a, 0), (size_t)k), &x));
        assert_true(ls_json_number(ls_json_at(vector_of(b, 1), (size_t)k), &y));
        memcpy(&z, packed + (size_t)k * sizeof z, sizeof z);
        assert_true(x == y && (float)x == z); /* nine digits are all of a float */
        assert_true(fabs(x - (double)want[k] / sqrt(length)) < 1e-6);
    }
    ls_json_free(a), ls_json_free(b), ls_json_free(c);
    free(alone), free(among), free(bytes), free(packed), free(want);
    ls_buf_free(&ids);
    assert_int_equal(ask("/v1/embeddings", "{\"input\": [\"the\", \"a man\"]}"), 200);
    assert_non_null(strstr(reply, "\"total_tokens\""));
}

static void test_page(void **state) {
    (void)state;
    assert_int_equal(ask_by("GET", "/", ""), 200);
    assert_non_null(strstr(reply, "chat.js"));
    assert_int_equal(ask_by("GET", "/chat.js", ""), 200);
    assert_non_null(strstr(reply, "v1/chat/completions"));
    assert_int_equal(ask_by("GET", "/chat.css", ""), 200);
}

static void test_tokens(void **state) {
    (void)state;
    assert_int_equal(ask("/tokenize", "{\"prompt\": \"the man\", \"add_special_tokens\": false}"),
                     200);
    ls_json *o = parsed();
    ls_buf body = {0};
    ls_buf_printf(&body, "{\"tokens\": ");
    ls_json_write(ls_json_get(o, "tokens"), 0, &body);
    ls_buf_printf(&body, "}%c", 0);
    ls_json_free(o);
    assert_int_equal(ask("/detokenize", body.data), 200);
    o = parsed();
    assert_string_equal(ls_json_text(ls_json_get(o, "prompt")), "the man");
    ls_json_free(o);
    ls_buf_free(&body);
    assert_int_equal(ask_by("GET", "/health", ""), 200);
    assert_int_equal(ask_by("GET", "/v1/models", ""), 200);
    assert_non_null(strstr(reply, "\"small\""));
    assert_int_equal(ask_by("GET", "/v1/models/gone", ""), 404);
    assert_int_equal(ask("/v1/completions", "{\"prompt\": \"a\", \"modalities\": [\"text\"]}"),
                     200);
    assert_int_equal(ask_by("GET", "/metrics", ""), 200);
    assert_non_null(strstr(reply, "lockstep_serve_generated_tokens_total{model=\"small\"} "));
}

/* ---- texts that are wanted ---- */

#define FORM                                                                                       \
    "\"ignore_eos\": true, \"seed\": 5, \"temperature\": 1, \"response_format\": {\"type\": "      \
    "\"json_schema\", "                                                                            \
    "\"json_schema\": "                                                                            \
    "{\"name\": \"x\", \"strict\": true, \"schema\": {\"type\": \"object\", \"properties\": "      \
    "{\"a\": "                                                                                     \
    "{\"type\": \"boolean\"}, \"b\": {\"enum\": [\"x\", \"yy\"]}}, \"required\": [\"a\", \"b\"], " \
    "\"additionalProperties\": false}}}"

/* The model's weights are random, so that only the constraint makes these texts. */
static void test_json(void **state) {
    (void)state;
    char text[4][64];
    bool differ = false;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(
            ask("/v1/completions", "{\"prompt\": \"the\", \"n\": 4, \"max_tokens\": 40," FORM "}"),
            200);
        ls_json *o = parsed();
        for (size_t i = 0; i < 4; i++) {
            const ls_json *choice = choice_of(o, i);
            const char *got = ls_json_text(ls_json_get(choice, "text"));
            ls_json *value = NULL;
            ls_error e = {0};
            assert_string_equal(ls_json_text(ls_json_get(choice, "finish_reason")), "stop");
            assert_ls_ok(ls_json_parse(got, strlen(got), "it", &value, &e), e);
            assert_true(ls_json_is_bool(ls_json_get(value, "a")));
            assert_int_equal(ls_json_count(value), 2);
            const char *b = ls_json_text(ls_json_get(value, "b"));
            assert_true(strcmp(b, "x") == 0 || strcmp(b, "yy") == 0);
            ls_json_free(value);
            if (round) assert_string_equal(got, text[i]);
            snprintf(text[i], sizeof text[i], "%s", got);
            differ = differ || strcmp(text[i], text[0]) != 0;
        }
        ls_json_free(o);
    }
    assert_true(differ);
}

static const char *only_text(ls_json **o_p, const char *body) {
    assert_int_equal(ask("/v1/completions", body), 200);
    *o_p = parsed();
    return ls_json_text(ls_json_get(choice_of(*o_p, 0), "text"));
}

/* A text that is cut is a beginning; biases do not lead out of what is wanted; a text that can't go
 * on ends. */
static void test_wanted(void **state) {
    (void)state;
    ls_json *o = NULL;
    const char *text = only_text(&o, "{\"prompt\": \"the\", \"max_tokens\": 3," FORM "}");
    assert_string_equal(text, "{\"a");
    assert_string_equal(ls_json_text(ls_json_get(choice_of(o, 0), "finish_reason")), "length");
    ls_json_free(o);
    text = only_text(&o, "{\"prompt\": \"a\", \"guided_regex\": \"x{3}|y\", \"ignore_eos\": true, "
                         "\"logit_bias\": {\"5\": 100}, \"min_tokens\": 9, \"top_k\": 40, "
                         "\"logprobs\": 2}");
    assert_true(strcmp(text, "xxx") == 0 || strcmp(text, "y") == 0);
    assert_string_equal(ls_json_text(ls_json_get(choice_of(o, 0), "finish_reason")), "stop");
    ls_json_free(o);
    text = only_text(&o, "{\"prompt\": \"a\", \"ignore_eos\": true, \"structured_outputs\": "
                         "{\"choice\": [\"no way\"]}}");
    assert_string_equal(text, "no way");
    ls_json_free(o);
    text = only_text(&o, "{\"prompt\": \"a\", \"guided_regex\": \"\"}");
    assert_string_equal(text, "");
    ls_json_free(o);
    text = only_text(&o, "{\"prompt\": \"a\", \"max_tokens\": 6, \"ignore_eos\": true, \"seed\": "
                         "1, \"response_format\":"
                         "{\"type\": \"json_object\"}}");
    assert_true(strncmp(text, "{\"", 2) == 0 || strncmp(text, "{}", 2) == 0);
    ls_json_free(o);
    text = only_text(&o, "{\"prompt\": \"a\", \"max_tokens\": 30, \"ignore_eos\": true, "
                         "\"response_format\": {\"type\": "
                         "\"json_object\", \"schema\": {\"const\": {\"a\": true}}}}");
    assert_string_equal(text, "{\"a\":true}");
    ls_json_free(o);
}

static int64_t count_used(const char *path, const char *body) {
    int64_t n = 0;
    assert_int_equal(ask(path, body), 200);
    ls_json *o = parsed();
    assert_true(ls_json_integer(ls_json_get(ls_json_get(o, "usage"), "prompt_tokens"), &n));
    ls_json_free(o);
    return n;
}

static int64_t count_prompt(const char *more) {
    char *body = ls_format("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], "
                           "\"max_tokens\": 1, \"chat_template_kwargs\": %s}",
                           more);
    int64_t n = count_used("/v1/chat/completions", body);
    free(body);
    return n;
}

/* Further variables of the template. */
static void test_variables(void **state) {
    (void)state;
    int64_t n = count_prompt("null");
    assert_int_equal(count_prompt("{}"), n);
    assert_int_equal(count_prompt("{\"other\": true, \"messages\": []}"), n);
    assert_true(count_prompt("{\"more\": \"xyz\"}") > n);
    /* OpenAI's field is one of them, too. */
    int64_t high = count_prompt("{\"reasoning_effort\": \"xyz\"}");
    assert_true(high > n);
    assert_int_equal(count_prompt("null, \"reasoning_effort\": \"xyz\""), high);
    assert_int_equal(count_prompt("{\"reasoning_effort\": \"\"}, \"reasoning_effort\": \"xyz\""),
                     n);
}

/* Without the tokens that begin a text. */
static void test_special_tokens(void **state) {
    static const char *const paths[] = {"/v1/completions", "/v1/embeddings"};
    static const char *const fields[] = {"prompt", "input"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char *with = ls_format("{\"%s\": \"the man\"}", fields[i]);
        char *without =
            ls_format("{\"%s\": \"the man\", \"add_special_tokens\": false}", fields[i]);
        assert_int_equal(count_used(paths[i], with), count_used(paths[i], without) + 1);
        free(with);
        free(without);
    }
}

static int64_t count_tokens(const char *body) {
    int64_t n = 0;
    assert_int_equal(ask("/tokenize", body), 200);
    ls_json *o = parsed();
    assert_true(ls_json_integer(ls_json_get(o, "count"), &n));
    ls_json_free(o);
    return n;
}

/* vLLM's field and llama.cpp's. */
static void test_token_counts(void **state) {
    (void)state;
    int64_t n = count_tokens("{\"prompt\": \"the man\"}");
    assert_int_equal(count_tokens("{\"prompt\": \"the man\", \"add_special_tokens\": null}"), n);
    assert_int_equal(count_tokens("{\"prompt\": \"the man\", \"add_special_tokens\": false}"),
                     n - 1);
    assert_int_equal(count_tokens("{\"content\": \"the man\"}"), n - 1);
    assert_int_equal(count_tokens("{\"content\": \"the man\", \"add_special\": true}"), n);
}

/* ---- clients that send no more, or too much ---- */

static int receive(int fd) {
    int status = 0;
    size_t n = 0;
    for (ssize_t k; (k = read(fd, reply + n, MOST - 1 - n)) > 0;) n += (size_t)k;
    reply[n] = 0;
    close(fd);
    sscanf(reply, "HTTP/1.1 %d", &status);
    return status;
}

static void test_half_closed(void **state) {
    (void)state;
    int fd = send_request("POST", "/v1/completions",
                          "{\"prompt\": \"a\", \"max_tokens\": 40, \"ignore_eos\": true}");
    shutdown(fd, SHUT_WR);
    assert_int_equal(receive(fd), 200);
    assert_non_null(strstr(reply, "\"completion_tokens\": 40"));
    fd = send_request(
        "POST", "/v1/completions",
        "{\"prompt\": \"a\", \"max_tokens\": 40, \"ignore_eos\": true, \"stream\": true}");
    shutdown(fd, SHUT_WR);
    assert_int_equal(receive(fd), 200);
    assert_non_null(strstr(reply, "data: [DONE]"));
}

/* ---- refusals ---- */

static void test_refused(void **state) {
    static const struct {
        const char *path, *body, *why;
        int status;
    } cases[] = {
        {"/v1/completions", "{", "the body", 400},
        {"/v1/completions", "[1]", "no JSON object", 400},
        {"/v1/completions", "{}", "prompt: a text", 400},
        {"/v1/completions", "{\"prompt\": []}", "prompt: a text", 400},
        {"/v1/completions", "{\"prompt\": [-1]}", "a token from 0", 400},
        {"/v1/completions", "{\"prompt\": [1e9]}", "prompt", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"temperature\": -1}", "temperature: a number",
         400},
        {"/v1/completions", "{\"prompt\": \"a\", \"n\": 0}", "n: a whole number", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"max_tokens\": 1000}",
         "this model's maximum context length is 48 tokens", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"tools\": [{}]}", "tools is not supported", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"stop\": 3}", "stop: a text", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"stop\": [\"b\", \"\"]}", "stop: a text", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"logit_bias\": {\"x\": 1}}", "no token", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"model\": \"other\"}", "'other' is not here",
         404},
        {"/v1/completions", "{\"prompt\": \"a\", \"response_format\": {\"type\": \"xml\"}}",
         "response_format: type: text", 400},
        {"/v1/completions",
         "{\"prompt\": \"a\", \"response_format\": {\"type\": \"json_schema\", \"json_schema\":"
         "{\"name\": \"x\", \"schema\": {\"type\": \"array\", \"contains\": {}}}}}",
         "'contains' is not supported", 400},
        {"/v1/completions",
         "{\"prompt\": \"a\", \"response_format\": {\"type\": \"json_object\", \"schema\": 3}}",
         "an object is expected", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"grammar\": \"root ::= x\"}",
         "grammar is not supported", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"typical_p\": 0.5}", "typical_p is not", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"continue_final_message\": true}",
         "continue_final_message is not", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"return_token_ids\": true}",
         "return_token_ids is not supported here\"", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"stream\": true, \"stream_options\": 3}",
         "stream_options: an object", 400},
        {"/v1/completions",
         "{\"prompt\": \"a\", \"stream\": true, \"stream_options\": {\"include_usage\": 1}}",
         "include_usage: true or false", 400},
        {"/v1/chat/completions",
         "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"enable_thinking\": false}",
         "enable_thinking is not supported here; variables", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"options\": {\"seed\": 1}}",
         "options is not supported here; its members stand beside", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"json_schema\": {\"type\": \"x\"}}",
         "json_schema: ", 400},
        {"/v1/chat/completions",
         "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"add_special_tokens\": true}",
         "the template writes them", 400},
        {"/v1/embeddings", "{\"input\": \"a\", \"truncate_prompt_tokens\": 2}",
         "truncate_prompt_tokens is not", 400},
        {"/tokenize", "{\"content\": \"a\", \"with_pieces\": true}", "with_pieces is not", 400},
        {"/tokenize", "{\"prompt\": \"a\", \"add_special_tokens\": 1}", "true or false", 400},
        {"/v1/chat/completions",
         "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"chat_template_kwargs\": 3}",
         "chat_template_kwargs: an object", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"guided_regex\": \"(a\"}",
         "guided_regex: character 1", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"guided_regex\": \"a\", \"guided_json\": {}}",
         "guided_json: guided_regex already", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"structured_outputs\": {\"grammar\": \"a\"}}",
         "structured_outputs: 'grammar'", 400},
        {"/v1/completions", "{\"prompt\": \"a\", \"guided_regex\": \"(a|b)*a(a|b){40}\"}",
         "too large", 400},
        {"/v1/chat/completions", "{\"messages\": []}", "messages: a list", 400},
        {"/v1/chat/completions", "{\"messages\": [{\"role\": \"king\", \"content\": \"a\"}]}",
         "role", 400},
        {"/v1/embeddings", "{}", "input: a text", 400},
        {"/v1/embeddings", "{\"input\": []}", "input: a text", 400},
        {"/v1/embeddings", "{\"input\": \"a\", \"encoding_format\": \"int8\"}", "float or base64",
         400},
        {"/v1/embeddings", "{\"input\": \"a\", \"dimensions\": 3}", "not shortened", 400},
        {"/v1/embeddings", "{\"input\": \"a\", \"model\": \"other\"}", "'other' is not here", 404},
        {"/chat/completions", "{}", "no such path here; OpenAI's API is under /v1", 404},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = ask(cases[i].path, cases[i].body);
        if (status != cases[i].status || !strstr(reply, cases[i].why))
            fail_msg("%s %s: %d %s", cases[i].path, cases[i].body, status, reply);
        ls_json *o = parsed();
        assert_non_null(ls_json_text(ls_json_get(ls_json_get(o, "error"), "message")));
        ls_json_free(o);
    }
    assert_int_equal(ask_by("GET", "/v1/completions", ""), 405);
}

/* ---- many, and those that go ---- */

static int running(void) {
    int n = -1;
    assert_int_equal(ask_by("GET", "/metrics", ""), 200);
    const char *at = strstr(reply, "\nlockstep_serve_replies_running{");
    assert_non_null(at);
    assert_int_equal(sscanf(strchr(at, '}'), "} %d", &n), 1);
    const char *waits = strstr(reply, "\nlockstep_serve_replies_waiting{");
    int more = 0;
    assert_int_equal(sscanf(strchr(waits, '}'), "} %d", &more), 1);
    return n + more;
}

/* Requests of clients that have gone are not written to their end; and where too many wait, further
 * ones are told so at once. */
/* What the HTTP server refuses has the same form. */
static void test_refused_visitor(void **state) {
    (void)state;
    assert_int_equal(ask_by("PUT", "/v1/models", ""), 405);
    ls_json *o = parsed();
    const ls_json *error = ls_json_get(o, "error");
    assert_string_equal(ls_json_text(ls_json_get(error, "message")),
                        "This server knows GET, HEAD and POST.");
    assert_string_equal(ls_json_text(ls_json_get(error, "type")), "invalid_request_error");
    ls_json_free(o);
}

static void test_gone(void **state) {
    enum { CLIENTS = 12 };
    static const char body[] =
        "{\"prompt\": \"a\", \"n\": 1, \"max_tokens\": 40, \"ignore_eos\": true, \"seed\": 1}";
    int fds[CLIENTS];
    (void)state;
    for (int i = 0; i < CLIENTS; i++) fds[i] = send_request("POST", "/v1/completions", body);
    for (int i = 0; i < CLIENTS; i++) close(fds[i]);
    int left = 1;
    for (int i = 0; left && i < 24000; i++) {
        left = running();
        usleep(10000);
    }
    assert_int_equal(left, 0);
    assert_int_equal(ask("/v1/completions",
                         "{\"prompt\": \"a\", \"n\": 100, \"max_tokens\": 40, \"ignore_eos\": true,"
                         "\"seed\": 1}"),
                     200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers),
                                       cmocka_unit_test(test_fingerprint),
                                       cmocka_unit_test(test_adapter),
                                       cmocka_unit_test(test_stream),
                                       cmocka_unit_test(test_echo),
                                       cmocka_unit_test(test_offsets),
                                       cmocka_unit_test(test_embeddings),
                                       cmocka_unit_test(test_page),
                                       cmocka_unit_test(test_json),
                                       cmocka_unit_test(test_wanted),
                                       cmocka_unit_test(test_variables),
                                       cmocka_unit_test(test_special_tokens),
                                       cmocka_unit_test(test_token_counts),
                                       cmocka_unit_test(test_half_closed),
                                       cmocka_unit_test(test_tokens),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_refused_visitor),
                                       cmocka_unit_test(test_gone)};
    return cmocka_run_group_tests(tests, open_front, close_front);
}
