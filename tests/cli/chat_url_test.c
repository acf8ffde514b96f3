/* chat_url_test.c - lockstep chat with a server: a real lockstep serve, and one that answers as it
 * should not. */
/* ctest: seconds=2 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "cli/models.h"
#include "cli/terminal.h"
#include "http/client.h"

/* ---- lockstep serve ---- */

typedef struct served {
    program p;
    char url[128]; /* as it prints it */
} served;

static served serve(const char *options) {
    served s = {.p = startf("serve @/m.gguf --port 0 --cache-mb 8 %s", options)};
    char text[1024];
    size_t n = 0;
    const char *url = NULL;
    while (!url || !strchr(url, '\n')) { /* it may also say something on standard error */
        ssize_t got = read(s.p.out, text + n, sizeof text - 1 - n);
        if (got <= 0) fail_msg("lockstep serve: %.*s", (int)n, text);
        n += (size_t)got;
        text[n] = 0;
        url = strstr(text, "http");
    }
    assert_int_equal(sscanf(url, "%127s", s.url), 1);
    return s;
}

static void end_server(served *s) {
    kill(s->p.pid, SIGTERM);
    program_expect(&s->p, 0, NULL);
}

static int make_model(void **state) {
    if (models_make(state) != 0) return -1;
    small_write_whole(&small_models[0], gguf);
    return 0;
}

/* Runs chat with this input, and expects this exit code; returns its output. */
static char *chat(const char *options, const char *input, int code) {
    char *line = ls_format("chat %s", options), *output = output_with_input(line, input, code);
    free(line);
    return output;
}

static void chat_says(const char *options, int code, const char *says) {
    char *output = chat(options, "to\n", code);
    assert_output_has(output, says);
    assert_int_equal(occurrences(output, "\n"), 1);
    free(output);
}

static void same_chats(const char *a, const char *b, const char *input) {
    char *x = chat(a, input, 0), *y = chat(b, input, 0);
    assert_string_equal(x, y);
    free(x), free(y);
}

/* A model answers over HTTP as it does in the program: always, if it takes the likeliest token; and
 * each first turn with the same draws. */
static void test_same(void **state) {
    (void)state;
    served s = serve("--name small");
    const char *bare = strstr(s.url, "/v1");
    static const char *const rules[] = {
        "--tokens 5 --temperature 0 --repetition-penalty 1.3",
        "--tokens 9 --temperature 1 --top-p 0.9 --seed 7 --json",
        "--tokens 9 --temperature 1 --top-k 5 --top-p 1 --min-p 0.01 --stop e"};
    for (int i = 0; i < 3; i++) {
        char *here = ls_format("@/m.gguf %s", rules[i]);
        char *there =
            ls_format("--url %.*s --model small %s", (int)(bare - s.url), s.url, rules[i]);
        same_chats(here, there, i ? "to\n" : "to\nbe\n/system be\nnot\n/reset\nto\n");
        free(here), free(there);
    }
    end_server(&s);
}

/* The form goes to the server, whose answers have it; those of one that does not know it are
 * found. */
static void test_forms(void **state) {
    (void)state;
    static const char schema[] = "{\"enum\": [12, 345]}";
    served s = serve("");
    write_file("schema", schema, sizeof schema - 1);
    char *regex = ls_format("--url %s --regex (yes|no)[0-9]{3}", s.url);
    char *json = ls_format("--url %s --json-schema @/schema", s.url);
    for (int i = 0; i < 2; i++) {
        char *a = chat(regex, "to\n", 0), *b = chat(json, "to\n", 0);
        int n = 0, m = 0;
        assert_true(sscanf(a, "%*[yesno]%3d%n", &m, &n) == 1 && a[n] == '\n');
        assert_true(strcmp(b, "12\n") == 0 || strcmp(b, "345\n") == 0);
        free(a), free(b);
        if (i == 1) break;
        free(regex), free(json);
        regex = ls_strdup("@/m.gguf --regex (yes|no)[0-9]{3}");
        json = ls_strdup("@/m.gguf --json-schema @/schema");
    }
    free(regex), free(json);
    end_server(&s);
    expect("generate @/m.gguf --prompt to --tokens 9 --regex ,[0-9]", 0, "to,");
    expect("generate @/m.gguf --regex (a", 1, "--regex: ");
    expect("chat @/m.gguf --regex a --json-object", 1, "not several");
}

/* Conversations are saved, and go on, as those with a model that is here. */
static void test_saved(void **state) {
    (void)state;
    served s = serve("");
    char *save = ls_format("--url %s/ --tokens 3 --temperature 0 --save @/new/talk", s.url);
    char *go_on = ls_format("%s --continue @/new/talk", save);
    char *whole = ls_format("--url %s --tokens 3 --temperature 0", s.url);
    char *all = chat(whole, "to\nbe\n", 0), *a = chat(save, "to\n", 0), *b = chat(go_on, "be\n", 0);
    char *both = ls_format("%s%s", a, b);
    assert_string_equal(all, both);
    free(all), free(a), free(b), free(both), free(save), free(go_on), free(whole);
    end_server(&s);
}

static void test_key(void **state) {
    (void)state;
    served s = serve("--key secret");
    char *none = ls_format("--url %s", s.url),
         *options = ls_format("%s --api-key-file @/key", none);
    chat_says(none, 1,
              ": needs a key (401): The key is missing or wrong: Authorization: Bearer KEY; "
              "--api-key-file FILE has one");
    write_file("key", "other\n", 6);
    chat_says(options, 1, ": refuses the key (401)");
    write_file("key", "sec ret\n", 8);
    chat_says(options, 1, "/key: its first line must be the key");
    write_file("key", "secret\r\nmore\n", 13);
    free(chat(options, "to\n", 0));
    char *model = ls_format("%s --model nix", options);
    chat_says(model, 1, "does not know the model 'nix' (404): ");
    chat_says(model, 1, "; it has m\n");
    free(none), free(options), free(model);
    end_server(&s);
}

static void test_tls(void **state) {
    (void)state;
    shellf(
        "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
        "-subj "
        "/CN=localhost -addext subjectAltName=DNS:localhost -keyout tls.key -out tls.pem 2>tls.log",
        folder);
    served s = serve("--tls-cert @/tls.pem --tls-key @/tls.key");
    assert_int_equal(strncmp(s.url, "https://", 8), 0);
    char *none = ls_format("--url %s --tokens 3", s.url),
         *trusts = ls_format("%s --ca @/tls.pem", none);
    char *absent = ls_format("%s --ca @/absent", none);
    chat_says(none, 1, "is not trusted: ");
    chat_says(absent, 1, "is not trusted: ");
    free(chat(trusts, "to\n", 0));
    free(none), free(trusts), free(absent);
    end_server(&s);
}

/* ---- a server that answers what a test says ---- */

static _Atomic(const char *) canned; /* behind "HTTP/1.1 " */
static int listens;
static atomic_bool rests; /* the answer is not ended */

static void answer(int fd) {
    char text[4096] = "";
    size_t n = 0;
    static const char list[] = "200 OK\r\nContent-Type: application/json\r\n\r\n"
                               "{\"data\": [{\"id\": \"one\"}, {\"id\": \"two\"}]}";
    while (n < sizeof text - 1 && !strstr(text, "\r\n\r\n")) {
        ssize_t got = read(fd, text + n, sizeof text - 1 - n);
        if (got <= 0) break;
        n += (size_t)got;
        text[n] = 0;
    }
    const char *body = strstr(text, "\r\n\r\n");
    bool posts = strncmp(text, "POST ", 5) == 0;
    while (posts && body && !strstr(body, "]") && read(fd, text + n, 1) == 1) text[++n] = 0;
    char *all = ls_format("HTTP/1.1 %s", posts ? canned : list);
    if (write(fd, all, strlen(all)) < 0) free(NULL);
    free(all);
    while (posts && rests && read(fd, text, sizeof text) > 0) {
    }
    shutdown(fd, SHUT_WR);
    while (read(fd, text, sizeof text) > 0) {
    }
    close(fd);
}

static void *serve_canned(void *arg) {
    (void)arg;
    for (int fd; (fd = accept(listens, NULL, NULL)) >= 0;) answer(fd);
    return NULL;
}

static pthread_t thread;

static int open_canned(void) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t n = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listens, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listens, 8), 0);
    assert_int_equal(getsockname(listens, (struct sockaddr *)&at, &n), 0);
    assert_int_equal(pthread_create(&thread, NULL, serve_canned, NULL), 0);
    return ntohs(at.sin_port);
}

static void close_canned(void) {
    shutdown(listens, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listens);
}

#define EVENTS "200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
#define PIECE(text)                                                                                \
    "data: {\"choices\": [{\"delta\": {\"content\": \"" text "\"}, \"finish_reason\": null}]}\n\n"

static void test_odd_answers(void **state) {
    (void)state;
    static const struct {
        const char *answer;
        int code;
        const char *says;
    } cases[] = {
        {"429 Busy\r\nRetry-After: 7\r\n\r\n{\"error\": {\"message\": \"wait\"}}", 1,
         "/v1: has too many requests (429): wait; try again in 7 s\n"},
        {"503 Loading\r\n\r\n{\"error\": \"soon\"}", 1, "/v1: answers with status 503: soon\n"},
        {"500 Oops\r\n\r\n<html>", 1, "/v1: answers with status 500\n"},
        {"302 Away\r\nLocation: http://localhost:1/\r\n\r\n", 1, "answers with status 302\n"},
        {EVENTS PIECE("he"), 1, "he\nlockstep: "},
        {EVENTS PIECE("he"), 1, "/v1: the answer ended before it was complete\n"},
        {"200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 999\r\n\r\n" PIECE("he"), 1,
         "the answer broke off: "},
        {"200 OK\r\nContent-Type: text/html\r\n\r\n<html>", 1,
         "does not answer by a stream of events, but with 'text/html'\n"},
        {EVENTS "data: <html>\n", 1, "the answer is not one of OpenAI's API: "},
        {EVENTS PIECE("he") "data: {\"error\": {\"message\": \"no memory\"}}\n", 1,
         "/v1: the answer ends with an error: no memory\n"},
        {EVENTS
         ": ping\r\n\r\nevent: "
         "x\r\ndata:{\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\r\n\r\n" PIECE("he")
             PIECE("llo \\u001b[2J") "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": "
                                     "\"stop\"}]}\n\ndata: {\"choices\": [], \"usage\": "
                                     "{\"completion_tokens\": 3}}\n\ndata: [DONE]\n\n",
         0, "hello \033[2J\n"},
    };
    char *options = ls_format("--url http://127.0.0.1:%d --model two", open_canned());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        canned = cases[i].answer;
        char *output = chat(options, "to\n", cases[i].code);
        assert_output_has(output, cases[i].says);
        free(output);
    }
    char *form = ls_format("%s --regex b+", options),
         *object = ls_format("%s --json-object", options);
    canned = EVENTS PIECE(
        "aaa") "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}\n\n";
    free(chat(options, "to\n", 0));
    char *a = chat(form, "to\n", 1), *b = chat(object, "to\n", 1);
    assert_output_has(a, "the answer does not have the form that was asked for: --regex does not");
    assert_output_has(b, "the answer does not have the form that was asked for: the answer");
    free(a), free(b);
    free(form), free(object), free(options);
    close_canned();
}

/* An interrupt ends an answer that does not go on; the conversation does. */
static void test_interrupt(void **state) {
    (void)state;
    canned = EVENTS PIECE("hello");
    rests = true;
    char *line = ls_format("chat --url http://127.0.0.1:%d", open_canned());
    shown *x = terminal_start(line, 80, 24);
    terminal_expect(x, "one at http://127.0.0.1:");
    terminal_expect(x, "> ");
    terminal_type(x, "to\n");
    terminal_expect(x, "hello");
    terminal_type(x, "\3");
    terminal_expect(x, "> ");
    canned = "400 No\r\n\r\n{\"detail\": \"too long\"}";
    rests = false;
    terminal_type(x, "be\n");
    terminal_expect(x, "answers with status 400: too long");
    terminal_expect(x, "> ");
    terminal_type(x, "/exit\n");
    assert_int_equal(terminal_end(x), 0);
    free(line);
    close_canned();
}

static void test_refused(void **state) {
    (void)state;
    expect("chat --url http://127.0.0.1:1", 1, "http://127.0.0.1:1/v1/models: can't be reached: ");
    expect("chat --url localhost:1", 1, "http://HOST:PORT or https://HOST:PORT is expected");
    ls_error e = {0};
    assert_ls_fails(ls_http_client_check_url("http://me:it@host/v1", &e), LS_EINVAL, "password", e);
    assert_ls_ok(ls_http_client_check_url("HTTPS://host:1/a/v1/", &e), e);
    expect("chat --url http://localhost?x", 1, "without a query");
    expect("chat --url http://:80", 1, "names no host");
    expect("chat @/m.gguf --url http://localhost:1", 2, "give one of them");
    expect("chat --url http://localhost:1 --template @/t", 2, "--template: with --url the server");
    expect("chat @/m.gguf --model x", 2, "--model is for --url");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),      cmocka_unit_test(test_forms),
        cmocka_unit_test(test_saved),     cmocka_unit_test(test_key),
        cmocka_unit_test(test_tls),       cmocka_unit_test(test_odd_answers),
        cmocka_unit_test(test_interrupt), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, make_model, folder_remove);
}
