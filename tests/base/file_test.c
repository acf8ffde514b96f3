/* file_test.c - files written whole, in pieces and mapped; errors name the file, and a failure
 * leaves no file. */
#include "base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"
#include "test.h"

/* folder/name; the caller frees it. */
static char *in_folder(const char *name) { return ls_format("%s/%s", folder, name); }

static void test_whole(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 100000};
    char *path = in_folder("whole"), *data = ls_alloc(100000);
    for (size_t i = 0; i < 100000; i++) data[i] = (char)(i * 7);
    ls_error e = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        assert_ls_ok(ls_file_write(path, data, n, &e), e);
        ls_mapped m = {0};
        assert_ls_ok(ls_file_map(path, &m, &e), e);
        assert_int_equal(m.nbytes, n);
        if (n)
            assert_memory_equal(m.data, data, n);
        else
            assert_null(m.data);
        ls_file_unmap(&m);
        assert_null(m.data);
        ls_buf b = {0};
        ls_buf_append(&b, "<", 1);
        assert_ls_ok(ls_file_read(path, n, &b, &e), e);
        assert_int_equal(b.len, n + 1);
        if (n) assert_memory_equal(b.data + 1, data, n);
        ls_buf_free(&b);
        assert_int_equal(unlink(path), 0);
    }
    free(data);
    free(path);
}

static void test_pieces(void **state) {
    (void)state;
    char *path = in_folder("pieces");
    ls_error e = {0};
    ls_file f;
    assert_ls_ok(ls_file_create(path, &f, &e), e);
    assert_ls_ok(ls_file_put(&f, "one ", 4, &e), e);
    assert_ls_ok(ls_file_put(&f, NULL, 0, &e), e);
    assert_ls_ok(ls_file_put(&f, "two", 3, &e), e);
    assert_ls_ok(ls_file_close(&f, &e), e);
    assert_ls_ok(ls_file_sync_dir(folder, &e), e);
    ls_buf b = {0};
    assert_ls_ok(ls_file_read(path, 100, &b, &e), e);
    assert_string_equal(b.data, "one two");
    ls_buf_free(&b);
    assert_ls_fails(ls_file_create(path, &f, &e), LS_EIO, "pieces: can't be created: File exists",
                    e);
    assert_int_equal(unlink(path), 0);
    assert_ls_ok(ls_file_create(path, &f, &e), e);
    assert_ls_ok(ls_file_put(&f, "half", 4, &e), e);
    ls_file_discard(&f);
    assert_false(ls_file_exists(path));
    free(path);
}

static void test_refusals(void **state) {
    (void)state;
    char *path = in_folder("small"), *pipe_path = in_folder("pipe");
    ls_error e = {0};
    ls_buf b = {0};
    ls_mapped m = {0};
    assert_ls_ok(ls_file_write(path, "12345", 5, &e), e);
    assert_ls_fails(ls_file_read(path, 4, &b, &e), LS_EINVAL,
                    "small: has 5 bytes, at most 4 are expected", e);
    assert_int_equal(b.len, 0);
    assert_ls_fails(ls_file_read("/nowhere/a", 4, &b, &e), LS_EIO,
                    "/nowhere/a: can't be opened: No such file", e);
    assert_ls_fails(ls_file_map(folder, &m, &e), LS_EIO, "is not a regular file", e);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_ls_fails(ls_file_map(pipe_path, &m, &e), LS_EIO, "is not a regular file, but a pipe", e);
    assert_null(m.data);
    assert_ls_fails(ls_file_write("/nowhere/a", "", 0, &e), LS_EIO,
                    "/nowhere/a: can't be created: No such file", e);
    assert_ls_fails(ls_file_sync_dir("/nowhere", &e), LS_EIO, "/nowhere: can't be synced", e);
    ls_buf_free(&b);
    free(path);
    free(pipe_path);
}

/* A full disk: every write to /dev/full fails. */
static void test_full_disk(void **state) {
    (void)state;
    ls_error e;
    ls_file f = {.fd = open("/dev/full", O_WRONLY | O_CLOEXEC), .path = in_folder("full")};
    if (f.fd < 0) {
        free(f.path);
        skip_because("/dev/full can't be opened");
    }
    assert_ls_fails(ls_file_put(&f, "12345", 5, &e), LS_EIO,
                    "full: can't be written: No space left on device", e);
    ls_file_discard(&f);
}

/* With a limit on file sizes in the middle of the second block, no file is left. */
static void test_limit(void **state) {
    (void)state;
    char *path = in_folder("limited"), *data = ls_alloc(100000);
    struct rlimit was, now = {6000, RLIM_INFINITY};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    now.rlim_max = was.rlim_max;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
    ls_error e = {0};
    ls_status s = ls_file_write(path, data, 100000, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(s, LS_EIO);
    assert_non_null(strstr(e.msg, "limited: can't be written: File too large"));
    assert_false(ls_file_exists(path));
    free(data);
    free(path);
}

static void test_folders(void **state) {
    (void)state;
    char *top = in_folder("top"), *deep = in_folder("top/a//b/c"), *file = in_folder("top/a/file");
    char *under = in_folder("top/a/file/d"), *link = in_folder("top/link");
    ls_error e = {0};
    assert_ls_ok(ls_file_make_dirs(deep, &e), e);
    assert_ls_ok(ls_file_make_dirs(deep, &e), e); /* again */
    assert_true(ls_file_exists(deep));
    assert_ls_ok(ls_file_write(file, "x", 1, &e), e);
    assert_ls_fails(ls_file_make_dirs(under, &e), LS_EIO, "can't be created: Not a directory", e);
    assert_ls_fails(ls_file_make_dirs(file, &e), LS_EIO, "can't be created: Not a directory", e);
    assert_ls_fails(ls_file_make_dirs("", &e), LS_EIO, "can't be created", e);
    assert_ls_ok(ls_file_make_dirs("/", &e), e);
    assert_int_equal(symlink("/nowhere", link), 0);
    assert_true(ls_file_exists(link)); /* a dangling link exists, too */
    assert_ls_ok(ls_file_remove_tree(top, &e), e);
    assert_false(ls_file_exists(top));
    assert_ls_ok(ls_file_remove_tree(top, &e), e); /* nothing to do */
    free(top);
    free(deep);
    free(file);
    free(under);
    free(link);
}

/* Removing a tree removes the links in it, not their targets. */
static void test_links(void **state) {
    (void)state;
    char *kept = in_folder("kept"), *tree = in_folder("tree"), *link = in_folder("tree/link");
    char *inside = in_folder("kept/file");
    ls_error e = {0};
    assert_ls_ok(ls_file_make_dirs(kept, &e), e);
    assert_ls_ok(ls_file_make_dirs(tree, &e), e);
    assert_ls_ok(ls_file_write(inside, "x", 1, &e), e);
    assert_int_equal(symlink(kept, link), 0);
    assert_ls_ok(ls_file_remove_tree(tree, &e), e);
    assert_false(ls_file_exists(tree));
    assert_true(ls_file_exists(inside));
    free(kept);
    free(tree);
    free(link);
    free(inside);
}

/* If several programs rename their files or directories to one name, one succeeds. */
static void test_new_names(void **state) {
    (void)state;
    char *a = in_folder("a"), *b = in_folder("b"), *to = in_folder("to");
    for (int dirs = 0; dirs < 2; dirs++) {
        ls_error e = {0};
        for (int i = 0; i < 2; i++) {
            const char *from = i ? b : a;
            if (dirs)
                assert_int_equal(mkdir(from, 0700), 0);
            else
                assert_ls_ok(ls_file_write(from, from, 3, &e), e);
        }
        assert_ls_ok(ls_file_rename_new(a, to, &e), e);
        assert_int_equal(ls_file_rename_new(b, to, &e), LS_EINVAL);
        assert_non_null(strstr(e.msg, "to: exists; another program has made it meanwhile: give"));
        assert_false(ls_file_exists(a));
        assert_int_equal(ls_file_exists(b), dirs); /* a directory stays, for its owner to remove */
        assert_int_equal(remove(to), 0);
        if (dirs) assert_int_equal(remove(b), 0);
    }
    free(a), free(b), free(to);
}

/* A path that this user may not look at may exist; opening it says why it is denied. */
static int look_denied(void) {
    ls_error e = {0};
    char *path = in_folder("x");
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) return 1;
    bool good = ls_file_exists(path) && ls_file_check_allowed(path, &e) == LS_EIO &&
                strstr(e.msg, "x: can't be read: Permission denied");
    good = good && ls_file_check_allowed(folder, &e) == LS_EIO;
    good = good && ls_file_check_new(path, "file", &e) == LS_EIO &&
           strstr(e.msg, "x: can't be created: Permission denied");
    return good ? 0 : 2;
}

static void test_denied(void **state) {
    (void)state;
    ls_error e = {0};
    char *path = in_folder("x");
    int how = 0;
    assert_int_equal(chmod(folder, 0), 0);
    pid_t pid = fork();
    if (pid == 0) _exit(look_denied());
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(how, 0);
    assert_ls_ok(ls_file_check_allowed(path, &e), e); /* it does not exist */
    assert_ls_ok(ls_file_check_new(path, "file", &e), e);
    assert_false(ls_file_exists(path));
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_new_names),
        cmocka_unit_test_setup_teardown(test_denied, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
