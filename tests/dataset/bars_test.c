/* bars_test.c - what long works before a training show on a terminal, and that they write nothing
 * into a pipe. Each look at the clock finds it a third of a second later, so that works of a moment
 * are long ones. */
/* ctest: own-copy */
#include <pty.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "config/config.h"
#include "dataset/corpus.h"
#include "folder.h"
#include "test.h"
#include "weights/import.h"
#include "weights/small_text.h"

/* ---- in place of base/clock.c ---- */

int64_t ls_clock_ns(void) {
    static int64_t now;
    return now += 333333333;
}

uint64_t ls_clock_number(void) { return 1; }
double ls_clock_thread_s(void) { return 0; }

double ls_clock_wall_s(void) { return (double)time(NULL); }

/* ---- works, in a process of their own ---- */

static void done(ls_status s, const ls_error *e) {
    if (s == LS_OK) return;
    fprintf(stderr, "%s", e->msg);
    _exit(1);
}

static char *path_of(const char *name) { return ls_format("%s/%s", folder, name); }

static void read_config(ls_config *c) {
    ls_buf b = {0};
    ls_error e = {0};
    char *text = path_of("text.txt"), *config = path_of("config.yaml");
    for (int i = 0; i < 60000; i++) ls_buf_printf(&b, "word%d ", i * 7919 % 997);
    done(ls_file_replace(text, b.data, b.len, &e), &e);
    b.len = 0;
    ls_buf_printf(&b, "data:\n  path: %s\nmodel:\n  vocab: 300\n", text);
    done(ls_file_replace(config, b.data, b.len, &e), &e);
    done(ls_config_read(config, c, &e), &e);
    ls_buf_free(&b);
    free(text);
    free(config);
}

static void train_tokenizer(void) {
    ls_config *c = LS_NEW(ls_config);
    ls_corpus corpus;
    ls_error e = {0};
    char *path = path_of("tokenizer.json");
    read_config(c);
    done(ls_corpus_encode(&corpus, c, NULL, &e), &e);
    done(ls_file_replace(path, corpus.tokenizer_json.data, corpus.tokenizer_json.len, &e), &e);
    ls_corpus_free(&corpus);
    free(path);
    free(c);
}

static void encode(void) {
    ls_config *c = LS_NEW(ls_config);
    ls_corpus corpus;
    ls_error e = {0};
    char *path = path_of("tokenizer.json");
    read_config(c);
    done(ls_corpus_encode(&corpus, c, path, &e), &e);
    ls_corpus_free(&corpus);
    free(path);
    free(c);
}

static void import(ls_block_type type) {
    ls_imported i;
    ls_error e = {0};
    char *from = path_of("model.gguf"), *to = path_of("model");
    small_write_whole(&small_models[0], from);
    done(ls_model_import(from, to, type, &i, &e), &e);
    ls_imported_free(&i);
    free(from);
    free(to);
}

static void import_blocks(void) { import(LS_BLOCK_Q8_0); }
static void import_floats(void) { import(LS_BLOCK_F32); }

/* ---- what they write to standard error ---- */

static char *read_end(int fd, pid_t pid) {
    static char text[1 << 20];
    size_t n = 0;
    ssize_t got;
    int how = 1;
    while (n < sizeof text - 1 && (got = read(fd, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = 0;
    close(fd);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    if (how) fail_msg("it ended with %d: %s", how, text);
    return text;
}

static char *on_terminal(void (*work)(void)) {
    int fd = -1;
    pid_t pid = forkpty(&fd, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid > 0) return read_end(fd, pid);
    work();
    _exit(0);
}

static char *in_pipe(void (*work)(void)) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        work();
        _exit(0);
    }
    close(ends[1]);
    return read_end(ends[0], pid);
}

/* The bar comes with numbers that rise to no more than all, and is removed. */
static void check_bar(const char *text, const char *what) {
    char *begins = ls_format("%s  ", what);
    unsigned long long last = 0, now = 0, all = 0;
    int n = 0, percent = 0, minutes = 0, seconds = 0;
    const char *end = NULL;
    for (const char *at = text; (at = strstr(at, begins)); at++, n++) {
        assert_int_equal(sscanf(at + strlen(begins), "%llu of %llu (%d%%), left %d:%d", &now, &all,
                                &percent, &minutes, &seconds),
                         5);
        bool rises = now >= last || last == all; /* another bar of that name may follow */
        if (!rises || now > all || percent > 100) fail_msg("%llu behind %llu: %s", now, last, text);
        last = now;
        end = at;
    }
    if (n < 2) fail_msg("'%s' is shown %d times: %s", what, n, text);
    end += strcspn(end, "\r");
    assert_true(strncmp(end, "\r  ", 3) == 0);
    free(begins);
}

static void test_tokenizer(void **state) {
    (void)state;
    char *text = on_terminal(train_tokenizer);
    check_bar(text, "tokenizing: bytes");
    check_bar(text, "training the tokenizer: tokens");
    check_bar(on_terminal(encode), "tokenizing: bytes");
    assert_null(strstr(in_pipe(train_tokenizer), "left"));
    assert_null(strstr(in_pipe(encode), "left"));
}

static void test_import(void **state) {
    void (*const works[])(void) = {import_blocks, import_floats};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char *to = path_of("model"), *text = on_terminal(works[i]);
        check_bar(text, "reading weights: tensors");
        check_bar(text, "writing weights: tensors");
        assert_int_equal(ls_file_remove_tree(to, NULL), LS_OK);
        assert_null(strstr(in_pipe(works[i]), "left"));
        assert_int_equal(ls_file_remove_tree(to, NULL), LS_OK);
        free(to);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tokenizer),
                                       cmocka_unit_test(test_import)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
