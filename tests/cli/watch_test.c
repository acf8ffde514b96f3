/* watch_test.c - `lockstep watch`: what it prints, serves and exports, and that it ends. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "listeners.h"
#include "program.h"

static char reply[MAX_OUTPUT];

/* Trains small runs @/runs/a and @/runs/b. */
static int runs_make(void **state) {
    if (folder_make(state)) return -1;
    expect("train configs/tiny.yaml -n 1 -o @/runs/a --set train.steps=30 --set "
           "train.eval_every=10 " SMALLER,
           0, NULL);
    expect("train configs/tiny.yaml -n 1 -o @/runs/b --set train.steps=20 --set "
           "optim.lr=0.001 " SMALLER,
           0, NULL);
    return 0;
}

/* Starts `lockstep watch`; returns the port that it prints. */
static int watch_start(const char *line, program *p) {
    char text[1024] = "";
    size_t n = 0;
    *p = program_start(line, 0);
    while (n + 1 < sizeof text && !strstr(text, "Ctrl-C ends")) {
        ssize_t got = read(p->out, text + n, sizeof text - 1 - n);
        if (got <= 0) fail_msg("it has ended: %s", text);
        n += (size_t)got;
        text[n] = 0;
    }
    int port = 0;
    const char *url = strstr(text, "http://localhost:");
    if (!url || sscanf(url, "http://localhost:%d/", &port) != 1) fail_msg("no URL in '%s'", text);
    return port;
}

/* The status of the answer, which is then in `reply`. */
static int ask(int port, const char *path) {
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)port)};
    char request[512];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), got = 0;
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    size_t n =
        (size_t)snprintf(request, sizeof request,
                         "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    assert_int_equal(send(fd, request, n, MSG_NOSIGNAL), n);
    n = 0;
    for (ssize_t r; n + 1 < sizeof reply && (r = read(fd, reply + n, sizeof reply - 1 - n)) > 0;)
        n += (size_t)r;
    reply[n] = 0;
    close(fd);
    assert_int_equal(sscanf(reply, "HTTP/1.1 %d", &got), 1);
    return got;
}

/* The body of the answer; the status must be `status`. */
static const char *get(int port, const char *path, int status) {
    if (ask(port, path) != status) fail_msg("%s: %s", path, reply);
    return strstr(reply, "\r\n\r\n") + 4;
}

/* Runs are read while it answers. */
static void wait_until_read(int port, int nruns) {
    for (int run = 0; run < nruns; run++) {
        char path[64];
        snprintf(path, sizeof path, "/series?run=%d&columns=1", run);
        while (strstr(get(port, path, 200), "\"reading\":true")) usleep(10000);
    }
}

static void assert_has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("'%s' is not in\n%.2000s", part, text);
}

static void test_served(void **state) {
    program p;
    char listeners[200];
    (void)state;
    int port = watch_start("watch @/runs --port 0", &p);
    wait_until_read(port, 2);
    assert_int_equal(listeners_of(p.pid, listeners, sizeof listeners), 1);
    assert_int_equal(strncmp(listeners, "127.0.0.1:", 10), 0);
    assert_has(get(port, "/", 200), "<title>Lockstep runs</title>");
    assert_has(get(port, "/page.js", 200), "\"use strict\";");
    assert_has(get(port, "/page.css", 200), "prefers-color-scheme: dark");
    const char *runs = get(port, "/runs", 200);
    assert_has(runs, "\"name\": \"a\"");
    assert_has(runs, "\"state\": \"complete\"");
    assert_has(runs, "{\"key\": \"optim.lr\", \"values\": [\"0.003\", \"0.001\"], \"bits\": true}");
    const char *series = get(port, "/series?run=0&columns=100&names=loss,val_loss", 200);
    assert_has(series, "\"every\":1,\"begin\":0,\"count\":30,");
    assert_has(series, "\"points\":{\"val_loss\":{\"step\":[10,20,30]");
    assert_null(strstr(series, "grad_norm"));
    assert_has(get(port, "/series?run=1&x=hours&from=1e9&columns=0", 200), "\"rows\":20");
    get(port, "/series?run=2", 404);
    get(port, "/series?run=../../etc", 404);
    get(port, "/series", 404);
    get(port, "/config.yaml", 404);
    get(port, "/page.js/", 404);
    get(port, "/../runs", 404);
    kill(p.pid, SIGTERM);
    program_expect(&p, 0, NULL);
}

static void test_details(void **state) {
    program p;
    (void)state;
    expect(
        "train configs/tiny.yaml -n 2 -o @/traced --set train.steps=30 --set train.eval_every=10 "
        "--set train.sample_prompts=And --set train.sample_tokens=4 --trace @/traced/trace.json "
        "--set parallel.transport=shm " SMALLER,
        0, NULL);
    int port = watch_start("watch @/runs @/traced --port 0", &p);
    wait_until_read(port, 3);
    assert_has(get(port, "/compare?run=0,1", 200), "optim.lr");
    assert_has(get(port, "/compare?run=0,2", 200), "\"text\"");
    get(port, "/compare?run=0", 404);
    get(port, "/compare?run=0,9", 404);
    get(port, "/compare?run=0,../x", 404);
    assert_has(get(port, "/ledger?run=0", 200), "30 steps of 1 to 1 workers");
    assert_has(get(port, "/samples?run=0", 200), "\"samples\": []");
    const char *samples = get(port, "/samples?run=2", 200);
    assert_has(samples, "{\"step\": 10, \"prompt\": \"And\"");
    assert_has(samples, "{\"step\": 30, \"prompt\": \"And\"");
    assert_has(get(port, "/timeline?run=0", 200), "\"error\": \"no traced steps");
    const char *timeline = get(port, "/timeline?run=2&step=1", 200);
    assert_has(timeline, "\"workers\": 2");
    assert_has(timeline, "\"step\": 1,");
    assert_has(timeline, "Forward");
    kill(p.pid, SIGTERM);
    program_expect(&p, 0, NULL);
}

/* A closed terminal ends it, but not under nohup. */
static void test_terminal_closed(void **state) {
    program p;
    (void)state;
    for (int nohup = 0; nohup < 2; nohup++) {
        signal(SIGHUP, nohup ? SIG_IGN : SIG_DFL);
        int port = watch_start("watch @/runs/a --port 0", &p);
        signal(SIGHUP, SIG_DFL);
        kill(p.pid, SIGHUP);
        if (nohup) {
            for (int i = 0; i < 3; i++) get(port, "/runs", 200);
            kill(p.pid, SIGTERM);
        }
        program_expect(&p, 0, NULL);
    }
}

/* Nor does the end of what reads its log, as tee, end it: timeout does. */
static void test_no_reader(void **state) {
    (void)state;
    shellf("{ timeout -s INT 1 %s watch %s/runs/a --port 0 >/dev/null; echo $? >%s/code; } 2>&1 | "
           "true; grep -qx 124 %s/code",
           LOCKSTEP_PROGRAM, folder, folder, folder);
}

/* Streams that nobody reads keep nothing open. */
static void test_ends_with_streams(void **state) {
    program p;
    int fds[20], port = watch_start("watch @/runs/a --port 0", &p);
    (void)state;
    static const char request[] = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)port)};
    for (int i = 0; i < 20; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&a, sizeof a), 0);
        assert_int_equal(send(fds[i], request, sizeof request - 1, MSG_NOSIGNAL),
                         sizeof request - 1);
    }
    char byte;
    assert_int_equal(read(fds[19], &byte, 1), 1);
    kill(p.pid, SIGINT);
    program_expect(&p, 0, NULL);
    for (int i = 0; i < 20; i++) close(fds[i]);
}

static void test_export(void **state) {
    char path[300];
    ls_buf b = {0};
    (void)state;
    expect("watch @/runs --export @/page.html", 0, "page.html: 2 runs, ");
    snprintf(path, sizeof path, "%s/page.html", folder);
    assert_int_equal(ls_file_read(path, MAX_OUTPUT, &b, NULL), LS_OK);
    assert_has(b.data, "\"windows\":[{\"generation\":0,\"rows\":30");
    assert_has(b.data, "default-src 'none'");
    assert_null(strstr(b.data, "page.js\""));
    assert_null(strstr(b.data, "page.css\""));
    assert_null(strstr(b.data, "http://"));
    assert_null(strstr(b.data, "https://"));
    ls_buf_free(&b);
}

static void test_refused(void **state) {
    (void)state;
    expect("watch @/nothing --port 0", 1, "nothing: ");
    expect("watch @/runs --port 70000", 2, "watch: --port");
    expect("watch @/runs --columns 5", 2, "watch: --columns");
    expect("watch @/runs --columns 50", 2, "--columns belongs to --export");
    expect("watch @/runs --export @/runs", 1, "/runs");
    expect("watch @/runs --port 0 --address 192.0.2.1", 1, "can't listen at port 0 of 192.0.2.1");
    program p;
    int port = watch_start("watch @/runs --port 0", &p);
    char line[200], says[200];
    snprintf(line, sizeof line, "watch @/runs --port %d", port);
    snprintf(says, sizeof says, "port %d of 127.0.0.1 is in use by another program; port 0", port);
    expect(line, 1, says);
    kill(p.pid, SIGTERM);
    program_expect(&p, 0, NULL);
}

/* Another address than the loopback interface's needs a token. */
static void test_token(void **state) {
    program p = program_start("watch @/runs --port 0 --address 0.0.0.0 --host localhost", 0);
    char text[1024] = "", token[64], path[128];
    size_t n = 0;
    int port = 0;
    (void)state;
    while (n + 1 < sizeof text && !strstr(text, "Ctrl-C ends")) {
        ssize_t got = read(p.out, text + n, sizeof text - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
        text[n] = 0;
    }
    assert_int_equal(sscanf(text, "http://localhost:%d/?token=%63[0-9a-f]", &port, token), 2);
    assert_int_equal(strlen(token), 32);
    get(port, "/runs", 401);
    snprintf(path, sizeof path, "/runs?token=%s", token);
    assert_has(get(port, path, 200), "\"name\": \"a\"");
    kill(p.pid, SIGTERM);
    program_expect(&p, 0, NULL);
}

/* What `ckpt hash` prints: free() it. */
static char *hashes_of(const char *run) {
    char line[100];
    snprintf(line, sizeof line, "ckpt hash @/%s/checkpoints/latest", run);
    char *output = NULL;
    assert_int_equal(run_program(line, &output), 0);
    return output;
}

/* A run that is watched has the same bits, and its page ends with it. */
static void test_beside_train(void **state) {
    char *output = NULL, *log;
    int port = 0;
    (void)state;
    int code = run_program("train configs/tiny.yaml -n 2 -o @/watched --set train.steps=20 --set "
                           "optim.lr=0.001 --watch=0 " SMALLER,
                           &output);
    if (code) fail_msg("%s", output);
    log = strstr(output, "watch it at http://localhost:");
    assert_non_null(log);
    assert_int_equal(sscanf(log, "watch it at http://localhost:%d/", &port), 1);
    free(output);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), -1);
    close(fd);
    char *watched = hashes_of("watched"), *alone = hashes_of("runs/b");
    assert_non_null(strstr(alone, "weights"));
    assert_string_equal(strstr(watched, "weights"), strstr(alone, "weights"));
    free(watched);
    free(alone);
    expect("train configs/tiny.yaml -o @/x --watch --metrics-port 0", 2, "leave one of them out");
    expect("train configs/tiny.yaml -o @/x --metrics-port 70000", 2, "--metrics-port");
    /* A port that is in use is refused before anything begins. */
    program p;
    char line[200];
    port = watch_start("watch @/runs --port 0", &p);
    wait_until_read(port, 2);
    assert_has(get(port, "/metrics", 200), "\nlockstep_step{run=\"a\"} 30\n");
    snprintf(line, sizeof line, "train configs/tiny.yaml -o @/x --metrics-port %d", port);
    expect(line, 1, "in use by another program");
    kill(p.pid, SIGTERM);
    program_expect(&p, 0, NULL);
}

/* The steps and the checkpoint of a run that says what its workers do, and is watched meanwhile,
 * are those of runs that are not; threads write no workers.json. */
static void test_same_bits(void **state) {
#define TRAIN "train configs/tiny.yaml --set train.steps=120 " SMALLER " -o @/"
    static const char *const asked[] = {"/runs",         "/series?run=0",      "/workers?run=0",
                                        "/ledger?run=0", "/checkpoints?run=0", "/metrics"};
    program trains, watches;
    char seen[256];
    (void)state;
    pace("seen", 5);
    trains = program_start(TRAIN "seen -n 2", 0);
    wait_for_file("seen/workers.json");
    int port = watch_start("watch @/seen --port 0", &watches);
    wait_until_read(port, 1);
    for (int i = 0; i < 12; i++) get(port, asked[i % 6], 200);
    assert_has(get(port, "/workers?run=0", 200), "\"pid\"");
    assert_true(file_exists("seen/workers.json"));
    let_go("seen");
    program_expect(&trains, 0, NULL);
    kill(watches.pid, SIGTERM);
    program_expect(&watches, 0, NULL);
    expect(TRAIN "threads -n 2 --set parallel.transport=thread", 0, NULL);
    hash_of("seen", seen);
    assert_hash("threads", seen);
    expect("compare @/threads @/seen", 0, "the same bits as a, as it must be");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_served),
        cmocka_unit_test(test_details),
        cmocka_unit_test(test_no_reader),
        cmocka_unit_test(test_terminal_closed),
        cmocka_unit_test(test_ends_with_streams),
        cmocka_unit_test(test_export),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_beside_train),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, runs_make, folder_remove);
}
