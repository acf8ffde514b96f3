/* fresh_test.c - new files and directories that appear whole or not at all: what an error, a signal
 * and a killed program leave. */
#include "base/fresh.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "folder.h"
#include "test.h"

static char *in_folder(const char *name) { return ls_format("%s/%s", folder, name); }

/* Entries of the folder. */
static int count(void) {
    DIR *d = opendir(folder);
    int n = 0;
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(d);
    return n;
}

static void put(const ls_fresh *f, const char *name) {
    ls_error e = {0};
    char *path = name ? ls_format("%s/%s", f->at, name) : ls_strdup(f->at);
    assert_ls_ok(ls_file_write(path, "new", 3, &e), e);
    free(path);
}

/* Messages name what a user asked for, not where it is written until it is complete. */
static void test_names(void **state) {
    (void)state;
    ls_fresh f;
    ls_error e = {0};
    char *dir = in_folder("model"), *inner = NULL,
         *want = in_folder("model/weights: can't be created");
    char *other = ls_file_only_fresh_name(dir), *left = in_folder(".lockstep-notes");
    assert_ls_ok(ls_fresh_begin(dir, LS_FRESH_DIRECTORY, &f, &e), e);
    put(&f, "weights");
    inner = ls_format("%s/weights", f.at);
    assert_int_equal(ls_file_write(inner, "new", 3, &e), LS_EIO);
    assert_ptr_equal(strstr(e.msg, want), e.msg);
    ls_fresh_discard(&f);
    ls_fail(&e, LS_EIO, "%s and %s: %s", other, left, strrchr(other, '/') + 1);
    char *both = ls_format("%s and %s: model", dir, left);
    assert_string_equal(e.msg, both);
    char *parts[] = {dir, inner, want, other, left, both};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
}

static void test_whole(void **state) {
    (void)state;
    ls_fresh f;
    ls_error e = {0};
    char *file = in_folder("a.gguf"), *dir = in_folder("deep/model"),
         *slash = in_folder("deep/model/");
    char *inner = in_folder("deep/model/weights");
    assert_ls_ok(ls_fresh_begin(file, LS_FRESH_FILE, &f, &e), e);
    put(&f, NULL);
    assert_false(ls_file_exists(file));
    assert_ls_ok(ls_fresh_end(&f, &e), e);
    assert_true(ls_file_exists(file) && count() == 1);
    assert_ls_ok(ls_fresh_begin(slash, LS_FRESH_DIRECTORY, &f, &e), e);
    put(&f, "weights");
    assert_false(ls_file_exists(dir));
    assert_ls_ok(ls_fresh_end(&f, &e), e);
    assert_true(ls_file_exists(inner) && count() == 2);
    assert_int_equal(ls_fresh_begin(file, LS_FRESH_FILE, &f, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "a.gguf: exists; give the name of a new file"));
    assert_int_equal(ls_fresh_begin(slash, LS_FRESH_DIRECTORY, &f, &e), LS_EINVAL);
    free(file);
    free(dir);
    free(slash);
    free(inner);
}

/* Nothing is left after an error; what another program has made meanwhile stays. */
static void test_given_up(void **state) {
    (void)state;
    ls_fresh f;
    ls_error e = {0};
    char *file = in_folder("b"), *nowhere = in_folder("b/c"), *deep = in_folder("d/e/f");
    assert_ls_ok(ls_fresh_begin(file, LS_FRESH_FILE, &f, &e), e);
    put(&f, NULL);
    ls_fresh_discard(&f);
    assert_int_equal(count(), 0);
    assert_ls_ok(ls_fresh_begin(file, LS_FRESH_FILE, &f, &e), e);
    put(&f, NULL);
    assert_ls_ok(ls_file_write(file, "theirs", 6, &e), e);
    assert_int_equal(ls_fresh_end(&f, &e), LS_EINVAL);
    assert_int_equal(count(), 1);
    assert_int_equal(ls_fresh_begin(nowhere, LS_FRESH_FILE, &f, &e), LS_EIO);
    assert_non_null(strstr(e.msg, "b/c: can't be created: Not a directory"));
    assert_int_equal(count(), 1);
    assert_ls_ok(ls_fresh_begin(deep, LS_FRESH_FILE, &f, &e), e); /* with its directories */
    put(&f, NULL);
    assert_ls_ok(ls_fresh_end(&f, &e), e);
    assert_true(ls_file_exists(deep));
    free(deep);
    free(file);
    free(nowhere);
}

static void make_left(const char *name) {
    char *dir = in_folder(name), *part = ls_format("%s/part", dir);
    ls_error e = {0};
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_ls_ok(ls_file_write(part, "half", 4, &e), e);
    free(dir);
    free(part);
}

static bool is_there(const char *name) {
    char *path = in_folder(name);
    bool there = ls_file_exists(path);
    free(path);
    return there;
}

/* What a killed program left of this path goes; what a living one writes, and other names, stay. */
static void test_left(void **state) {
    (void)state;
    static const char *const stay[] = {".lockstep-0000000b-model", ".lockstep-0000000a-other",
                                       ".lockstep-x-model", ".lockstep-0000000a-model2"};
    ls_fresh f;
    ls_error e = {0};
    char *path = in_folder("model"), *used = in_folder(stay[0]);
    make_left(".lockstep-0000000a-model");
    for (int i = 0; i < 4; i++) make_left(stay[i]);
    int fd = open(used, O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_ls_ok(ls_fresh_begin(path, LS_FRESH_DIRECTORY, &f, &e), e);
    assert_false(is_there(".lockstep-0000000a-model"));
    for (int i = 0; i < 4; i++) assert_true(is_there(stay[i]));
    ls_fresh_discard(&f);
    close(fd);
    assert_int_equal(count(), 4);
    free(path);
    free(used);
}

/* The program ends by the signal, and nothing is left. An action of its own stays. */
static void test_signals(void **state) {
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    char *path = in_folder("model");
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            ls_fresh f;
            if (ls_fresh_begin(path, LS_FRESH_DIRECTORY, &f, NULL) != LS_OK) _exit(1);
            put(&f, "half");
            raise(numbers[i]);
            for (;;) pause();
        }
        int how = 0;
        assert_int_equal(waitpid(pid, &how, 0), pid);
        assert_true(WIFSIGNALED(how) && WTERMSIG(how) == numbers[i]);
        assert_int_equal(count(), 0);
    }
    ls_fresh f;
    ls_error e = {0};
    struct sigaction now;
    signal(SIGTERM, SIG_IGN);
    assert_ls_ok(ls_fresh_begin(path, LS_FRESH_DIRECTORY, &f, &e), e);
    raise(SIGTERM);
    assert_ls_ok(ls_fresh_end(&f, &e), e);
    assert_true(sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == SIG_IGN);
    assert_true(sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    assert_int_equal(count(), 1);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_whole, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_given_up, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_left, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_signals, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
