/* fetch_test.c - downloads from a server that fails on purpose: interrupted ones are resumed, and
 * what is in the cache is checked. */
/* ctest: seconds=10 */
#include "source/fetch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source/samples.h"

enum { N = 300000 };
static uint8_t content[N];
static pid_t server;
static int port;

/* cert: a name of files NAME.crt and NAME.key in the folder; NULL: plain HTTP. */
static int start_server(const char *cert) {
    int fds[2];
    char text[16] = "", crt[64], key[64];
    snprintf(crt, sizeof crt, "%s/%s.crt", folder, cert ? cert : "");
    snprintf(key, sizeof key, "%s/%s.key", folder, cert ? cert : "");
    if (pipe(fds) != 0 || (server = fork()) < 0) return -1;
    if (server == 0) {
        dup2(fds[1], 1);
        close(fds[0]);
        execlp("python3", "python3", "tests/source/file_server.py", folder, cert ? crt : NULL, key,
               (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    ssize_t n = read(fds[0], text, sizeof text - 1);
    close(fds[0]);
    port = atoi(text);
    return n > 0 && port > 0 ? 0 : -1;
}

static int start(void **state) {
    if (make_folder(state) != 0) return -1;
    for (int i = 0; i < N; i++) content[i] = (uint8_t)(i * 37 + (i >> 8) * 11);
    put_file("@data.bin", content, N);
    put_file("@empty.bin", "", 0);
    return start_server(NULL);
}

static void stop_server(void) {
    if (server <= 0) return;
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    server = 0;
}

static int stop(void **state) {
    stop_server();
    return remove_folder(state);
}

static const char *scheme = "http";

static ls_status fetch(const char *what, uint64_t most, char **path_p, ls_error *e) {
    char *url = ls_format("%s://127.0.0.1:%d/%s", scheme, port, what), *cache = paths_of("@cache");
    ls_status s = ls_fetch(url, cache, most, path_p, e);
    free(url);
    free(cache);
    return s;
}

static void assert_fetches(const char *what, size_t n) {
    char *path = NULL;
    ls_error e = {0};
    ls_mapped m;
    assert_ls_ok(fetch(what, N, &path, &e), e);
    assert_ls_ok(ls_file_map(path, &m, &e), e);
    assert_int_equal(m.nbytes, n);
    if (n) assert_memory_equal(m.data, content, n);
    ls_file_unmap(&m);
    free(path);
}

/* Whole, redirected, busy at first, interrupted; without ranges, without a validator, changed
 * between the attempts, and with another range than that asked for. */
static void test_servers(void **state) {
    (void)state;
    static const char *const how[] = {"good",        "redirect", "busy",     "cut",
                                      "novalidator", "norange",  "changing", "wrong"};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        char what[64];
        snprintf(what, sizeof what, "%s/data.bin?token=1", how[i]);
        print_message("%s\n", what);
        assert_fetches(what, N);
    }
    assert_fetches("good/empty.bin", 0);
}

/* What is complete is used without the server; what was damaged is downloaded again. */
static void test_cache(void **state) {
    (void)state;
    char *path = NULL;
    ls_error e = {0};
    assert_fetches("good/data.bin", N);
    assert_ls_ok(fetch("good/data.bin", N, &path, &e), e);
    in_folder(
        "printf x | dd of=$(ls cache/downloads/*-data.bin) bs=1 seek=100 conv=notrunc 2>/dev/null");
    assert_fetches("good/data.bin", N);
    in_folder("truncate -s 5 cache/downloads/*-data.bin");
    assert_fetches("good/data.bin", N);
    stop_server();
    assert_fetches("good/data.bin", N);
    in_folder("touch cache/downloads/*-data.bin");
    assert_fetches("good/data.bin", N);
    assert_non_null(strstr(path, "-data.bin"));
    free(path);
}

static void test_refused(void **state) {
    (void)state;
    char *path = NULL;
    ls_error e;
    assert_ls_fails(fetch("gone/data.bin", N, &path, &e), LS_EIO, "answers with status 404", e);
    assert_ls_fails(fetch("good/data.bin", N - 1, &path, &e), LS_EINVAL, "is longer than 0.3 MB",
                    e);
    assert_ls_fails(fetch("silent/data.bin", N, &path, &e), LS_EIO, "can't be downloaded: ", e);
    assert_ls_fails(ls_fetch("http:///x", folder, N, &path, &e), LS_EINVAL, "names no host", e);
    assert_ls_fails(ls_fetch("https://user:secret@host/x", folder, N, &path, &e), LS_EINVAL,
                    "an address with a user", e);
    assert_null(strstr(e.msg, "secret"));
    stop_server();
    assert_ls_fails(fetch("good/other.bin", N, &path, &e), LS_EIO, "can't be downloaded: ", e);
    assert_null(path);
}

/* Certificates by an authority of our own: for the address, and for another host. */
static const char MAKE_CERTIFICATES[] =
    "{ openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test "
    "-keyout ca.key -out ca.crt; for name in good other; do openssl req -newkey ec -pkeyopt "
    "ec_paramgen_curve:P-256 -nodes -subj /CN=$name -keyout $name.key -out $name.csr; done; "
    "echo subjectAltName=IP:127.0.0.1 > good.ext; echo subjectAltName=DNS:elsewhere > other.ext; "
    "for name in good other; do openssl x509 -req -days 2 -in $name.csr -CA ca.crt -CAkey ca.key "
    "-CAcreateserial -extfile $name.ext -out $name.crt; done; } > openssl.log 2>&1";

static void set_authorities(const char *name) {
    char *path = paths_of(name);
    setenv("SSL_CERT_FILE", path, 1);
    free(path);
}

/* The server's certificate is verified, against our authority; interrupted downloads are
 * resumed. */
static void test_https(void **state) {
    (void)state;
    char *path = NULL;
    ls_error e = {0};
    stop_server();
    in_folder(MAKE_CERTIFICATES);
    scheme = "https";
    assert_int_equal(start_server("good"), 0);
    assert_ls_fails(fetch("good/data.bin", N, &path, &e), LS_EIO, "SSL_CERT_FILE=FILE names", e);
    set_authorities("@other.crt");
    assert_ls_fails(fetch("good/data.bin", N, &path, &e), LS_EIO, "SSL_CERT_FILE=FILE names", e);
    set_authorities("@none.crt");
    assert_ls_fails(fetch("good/data.bin", N, &path, &e), LS_EIO, "none.crt", e);
    in_folder("! test -s cache/downloads/*.part");
    set_authorities("@ca.crt");
    assert_fetches("good/data.bin", N);
    assert_fetches("cut/data.bin", N);
    stop_server();
    assert_int_equal(start_server("other"), 0);
    assert_ls_fails(fetch("good/data.bin", N, &path, &e), LS_EIO, "can't be downloaded: ", e);
    assert_non_null(strstr(e.msg, "SSL_CERT_FILE=FILE names"));
    unsetenv("SSL_CERT_FILE");
    scheme = "http";
}

/* An address with braces stands for several, a path too. */
static void test_braces(void **state) {
    (void)state;
    ls_error e = {0};
    char *local = NULL, *cache = paths_of("@cache"), first[160], second[160];
    put_file("@s-08.bin", "8", 1);
    put_file("@s-09.bin", "9", 1);
    put_file("@s-10.bin", "10", 2);
    char *paths = ls_format("x-{1,2}\nhttp://127.0.0.1:%d/good/s-{08..10}.bin\ny", port);
    assert_ls_ok(ls_fetch_paths(paths, cache, N, &local, &e), e);
    assert_int_equal(sscanf(local, "x-{1,2}\n%159s\n%159s\n", first, second), 2);
    assert_non_null(strstr(first, "-s-08.bin"));
    assert_non_null(strstr(second, "-s-09.bin"));
    const char *third = strstr(local, "-s-10.bin\ny");
    assert_non_null(third);
    assert_string_equal(third, "-s-10.bin\ny");
    in_folder("test \"$(cat cache/downloads/*-s-10.bin)\" = 10");
    free(local);
    free(paths);
    paths = ls_format("http://127.0.0.1:%d/good/s-{10..11}.bin", port);
    assert_int_equal(ls_fetch_paths(paths, cache, N, &local, &e), LS_EIO);
    assert_non_null(strstr(e.msg, "/good/s-11.bin: the server answers with status 404"));
    free(paths);
    free(cache);
}

/* A source over addresses: the same samples as from the files. */
static void test_source(void **state) {
    (void)state;
    static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0,
                                     1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 9, 7};
    put_file("@x-images-idx3-ubyte", images, sizeof images);
    put_file("@x-labels-idx1-ubyte", labels, sizeof labels);
    char *x = ls_format("http://127.0.0.1:%d/cut/x-images-idx3-ubyte", port);
    char *y = ls_format("HTTP://127.0.0.1:%d/good/x-labels-idx1-ubyte", port);
    const ls_source_options o = {.labels = y};
    ls_source *s = opened(x, &o);
    assert_int_equal(s->count, 2);
    uint8_t *sample = sample_of(s, 1);
    assert_memory_equal(sample, images + 19, 3);
    assert_int_equal(sample[s->fields[1].offset], 7);
    free(sample);
    ls_source_close(s);
    free(x);
    free(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_servers, start, stop),
        cmocka_unit_test_setup_teardown(test_cache, start, stop),
        cmocka_unit_test_setup_teardown(test_refused, start, stop),
        cmocka_unit_test_setup_teardown(test_https, start, stop),
        cmocka_unit_test_setup_teardown(test_braces, start, stop),
        cmocka_unit_test_setup_teardown(test_source, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
