/* output_test.c - outputs at every kind of name: nothing else there is changed or removed. */
#include "base/output.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "folder.h"
#include "test.h"

static char *in_folder(const char *name) { return ls_format("%s/%s", folder, name); }

static void put(const char *path, const char *text) {
    ls_error e = {0};
    assert_ls_ok(ls_file_write(path, text, strlen(text), &e), e);
}

static void write_text(const char *path, const char *text) {
    ls_error e = {0};
    assert_ls_ok(ls_output_write(path, text, strlen(text), &e), e);
}

static void assert_contains(const char *path, const char *text) {
    ls_buf b = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read(path, 1000, &b, &e), e);
    assert_string_equal(b.data, text);
    ls_buf_free(&b);
}

static mode_t mode_of(const char *path) {
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode;
}

/* In pieces: the file is as before until the end, and if the output is dropped. */
static void test_pieces(void **state) {
    (void)state;
    char *path = in_folder("rows.csv");
    ls_output *o = NULL;
    ls_error e = {0};
    put(path, "old");
    for (int round = 0; round < 2; round++) {
        assert_ls_ok(ls_output_open(path, &o, &e), e);
        assert_ls_ok(ls_output_put(o, "a\n", 2, &e), e);
        assert_contains(path, "old");
        assert_ls_ok(ls_output_put(o, "b\n", 2, &e), e);
        assert_contains(path, "old");
        if (round == 0) ls_output_drop(o);
    }
    assert_ls_ok(ls_output_end(o, &e), e);
    assert_contains(path, "a\nb\n");
    ls_output_drop(NULL);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left */
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_ls_fails(ls_output_open(folder, &o, &e), LS_EINVAL, "a directory", e);
    free(path);
}

static void test_files(void **state) {
    (void)state;
    char *path = in_folder("out.svg"), *users = in_folder("out.svg.new");
    put(users, "a user's own");
    write_text(path, "first");
    assert_contains(path, "first");
    assert_int_equal(mode_of(path), S_IFREG | 0644);
    assert_int_equal(chmod(path, 0600), 0);
    write_text(path, "second");
    assert_contains(path, "second");
    assert_int_equal(mode_of(path), S_IFREG | 0600);
    assert_contains(users, "a user's own");
    unlink(path);
    unlink(users);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left */
    assert_int_equal(mkdir(folder, 0755), 0);
    free(path);
    free(users);
}

/* What a killed program left of this file is removed once it is old; nothing else. */
static void test_left(void **state) {
    (void)state;
    static const char *const names[] = {".lockstep-0000000a-out.svg", ".lockstep-0000000b-out.svg",
                                        ".lockstep-0000000a-other"};
    char *path = in_folder("out.svg"), *left[3];
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    for (int i = 0; i < 3; i++) {
        left[i] = in_folder(names[i]);
        put(left[i], "half");
        if (i != 1) assert_int_equal(utimensat(AT_FDCWD, left[i], old, 0), 0);
    }
    write_text(path, "whole");
    assert_false(ls_file_exists(left[0]));
    for (int i = 1; i < 3; i++) assert_int_equal(unlink(left[i]), 0);
    for (int i = 0; i < 3; i++) free(left[i]);
    unlink(path);
    free(path);
}

static void test_links(void **state) {
    (void)state;
    char *link = in_folder("link"), *second = in_folder("second"), *dir = in_folder("dir");
    char *target = in_folder("dir/target"), *loop = in_folder("loop");
    ls_error e = {0};
    assert_int_equal(mkdir(dir, 0755), 0);
    assert_int_equal(symlink("dir/target", link), 0); /* to nothing */
    assert_int_equal(symlink(link, second), 0);
    write_text(second, "new");
    assert_contains(target, "new");
    write_text(link, "newer");
    assert_contains(target, "newer");
    assert_ls_ok(ls_output_check(link, &e), e);
    assert_ls_ok(ls_output_check("/dev/stdout", &e), e);
    assert_true(S_ISLNK(mode_of(link)) && S_ISLNK(mode_of(second)));
    assert_true(S_ISREG(mode_of(target)));
    assert_int_equal(symlink("loop", loop), 0);
    assert_ls_fails(ls_output_write(loop, "x", 1, &e), LS_EIO, "loop", e);
    assert_ls_fails(ls_output_check(loop, &e), LS_EIO, "loop", e);
    char *list[] = {link, second, target, dir, loop};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(remove(list[i]), 0);
        free(list[i]);
    }
}

static void test_devices(void **state) {
    (void)state;
    char *null = in_folder("null"), *link = in_folder("link");
    if (mknod(null, S_IFCHR | 0666, makedev(1, 3)) != 0) {
        free(null);
        free(link);
        skip_because("devices can't be made here");
    }
    assert_int_equal(symlink("null", link), 0);
    write_text(null, "gone");
    write_text(link, "gone");
    assert_true(S_ISCHR(mode_of(null)) && S_ISLNK(mode_of(link)));
    unlink(null);
    unlink(link);
    free(null);
    free(link);
}

static void *read_pipe(void *path) {
    static char text[16];
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    text[n < 0 ? 0 : n] = 0;
    close(fd);
    return text;
}

static void test_pipes(void **state) {
    (void)state;
    char *path = in_folder("pipe");
    void *text;
    pthread_t reader;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_pipe, path), 0);
    write_text(path, "through");
    pthread_join(reader, &text);
    assert_string_equal(text, "through");
    assert_true(S_ISFIFO(mode_of(path)));
    unlink(path);
    free(path);
}

/* What /dev/stdout is: a name of an open file. */
static void test_open_files(void **state) {
    (void)state;
    char *path = in_folder("redirected"), *link = in_folder("stdout");
    put(path, "before, ");
    int fd = open(path, O_RDWR);
    char *name = ls_format("/proc/self/fd/%d", fd);
    assert_int_equal(symlink(name, link), 0);
    write_text(name, "one, ");
    write_text(link, "two");
    assert_contains(path, "before, one, two");
    struct stat st, now;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(stat(path, &now), 0);
    assert_int_equal(st.st_ino, now.st_ino);
    close(fd);
    unlink(path);
    unlink(link);
    free(path);
    free(link);
    free(name);
}

/* The directories of a new file are made, before the work and with the file. */
static void test_directories(void **state) {
    (void)state;
    char *first = in_folder("a/b/out"), *second = in_folder("c/d/out"), *dir = in_folder("a/b");
    ls_error e = {0};
    struct stat st;
    assert_ls_ok(ls_output_check(first, &e), e);
    assert_true(ls_file_is_dir(dir) && stat(first, &st) != 0);
    assert_ls_ok(ls_output_write(first, "x", 1, &e), e);
    assert_ls_ok(ls_output_write(second, "x", 1, &e), e);
    assert_true(stat(first, &st) == 0 && stat(second, &st) == 0);
    assert_int_equal(remove(first), 0);
    assert_int_equal(remove(second), 0);
    free(first);
    free(second);
    free(dir);
}

static void test_refused(void **state) {
    (void)state;
    char *path = in_folder("socket"), *none = in_folder("socket/out");
    ls_error e = {0};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_ls_fails(ls_output_write(path, "x", 1, &e), LS_EINVAL, "is a socket", e);
    assert_ls_fails(ls_output_write(folder, "x", 1, &e), LS_EINVAL, "is a directory", e);
    assert_ls_fails(ls_output_write(none, "x", 1, &e), LS_EIO, "socket/out", e);
    assert_ls_fails(ls_output_check(path, &e), LS_EINVAL, "is a socket", e);
    assert_ls_fails(ls_output_check(folder, &e), LS_EINVAL, "is a directory", e);
    assert_ls_fails(ls_output_check(none, &e), LS_EIO, "socket/out: can't be written: Not a", e);
    assert_true(S_ISSOCK(mode_of(path)));
    close(fd);
    unlink(path);
    free(path);
    free(none);
}

/* Files of a run are not outputs: a link that somebody has put there is not followed. */
static void test_own(void **state) {
    (void)state;
    char *victim = in_folder("victim"), *link = in_folder("metrics.jsonl");
    ls_error e = {0};
    int fd = -1;
    put(victim, "precious");
    assert_int_equal(symlink("victim", link), 0);
    assert_ls_fails(ls_file_replace(link, "x", 1, &e), LS_EINVAL, "is a link", e);
    assert_ls_fails(ls_file_open_append(link, &fd, &e), LS_EINVAL, "is a link", e);
    assert_ls_fails(ls_file_cut(link, 0, &e), LS_EINVAL, "is a link", e);
    assert_contains(victim, "precious");
    unlink(link);
    assert_int_equal(mkfifo(link, 0600), 0);
    assert_ls_fails(ls_file_replace(link, "x", 1, &e), LS_EINVAL, "not a regular file", e);
    assert_ls_fails(ls_file_open_append(link, &fd, &e), LS_EINVAL, "not a regular file", e);
    unlink(link);
    unlink(victim);
    free(victim);
    free(link);
}

int main(void) {
    umask(022); /* modes of new files are compared */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),      cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_left),       cmocka_unit_test(test_links),
        cmocka_unit_test(test_devices),    cmocka_unit_test(test_pipes),
        cmocka_unit_test(test_open_files), cmocka_unit_test(test_directories),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_own),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
