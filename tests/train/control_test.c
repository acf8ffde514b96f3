/* control_test.c - a run's socket: requests, answers, and those who ask badly. */
#include "train/control.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "test.h"

static char folder[512];

/* A folder whose name is longer than a socket's address may be. */
static int make_folder(void **state) {
    (void)state;
    char top[] = "/tmp/lockstep-control-XXXXXX";
    ls_error e = {0};
    if (!mkdtemp(top)) return -1;
    snprintf(folder, sizeof folder, "%s/%0150d/%0150d", top, 1, 2);
    return ls_file_make_dirs(folder, &e) == LS_OK ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    folder[strlen("/tmp/lockstep-control-XXXXXX")] = 0;
    return ls_file_remove_tree(folder, NULL);
}

typedef struct asker {
    const char *line;
    char answer[LS_CONTROL_LINE];
    ls_status status;
} asker;

static void *ask(void *arg) {
    asker *a = arg;
    ls_error e = {0};
    a->status = ls_control_ask(folder, a->line, a->answer, &e);
    return NULL;
}

static bool next(ls_control *c, char line[LS_CONTROL_LINE]) {
    for (int i = 0; i < 500; i++) {
        if (ls_control_next(c, line)) return true;
        usleep(10000);
    }
    return false;
}

/* Asks as any program would, and is answered. */
static void is_answered(ls_control *c) {
    char line[LS_CONTROL_LINE];
    pthread_t thread;
    asker a = {.line = "scale 3"};
    assert_int_equal(pthread_create(&thread, NULL, ask, &a), 0);
    assert_true(next(c, line));
    assert_string_equal(line, "scale 3");
    ls_control_answer(c, "ok so it is");
    pthread_join(thread, NULL);
    assert_int_equal(a.status, LS_OK);
    assert_string_equal(a.answer, "ok so it is");
}

static void test_answers(void **state) {
    (void)state;
    ls_control *c = NULL;
    ls_error e = {0};
    char line[LS_CONTROL_LINE];
    assert_ls_ok(ls_control_open(folder, &c, &e), e);
    assert_false(ls_control_next(c, line));
    for (int i = 0; i < 3; i++) is_answered(c);
    ls_control_close(c);
    assert_ls_fails(ls_control_ask(folder, "scale 3", line, &e), LS_EIO, "is not running", e);
    assert_ls_fails(ls_control_ask("/nowhere", "scale 3", line, &e), LS_EIO, "/nowhere", e);
}

static int visit(void) {
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "control"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

/* Who says nothing, too much, or goes away, holds nobody up for long. */
static void test_bad_guests(void **state) {
    (void)state;
    ls_control *c = NULL;
    ls_error e = {0};
    char line[LS_CONTROL_LINE], much[1000];
    memset(much, 'x', sizeof much);
    assert_ls_ok(ls_control_open(folder, &c, &e), e);
    assert_int_equal(chdir(folder), 0);
    for (int kind = 0; kind < 3; kind++) {
        int fd = visit();
        if (kind == 1) assert_true(write(fd, much, sizeof much) > 0);
        if (kind == 2) close(fd);
        assert_false(ls_control_next(c, line));
        is_answered(c);
        if (kind != 2) close(fd);
    }
    assert_int_equal(chdir("/"), 0);
    ls_control *second = NULL; /* takes the place of one that was killed */
    assert_ls_ok(ls_control_open(folder, &second, &e), e);
    ls_control_close(second);
    ls_control_close(c);
}

/* A line comes in parts, and late: nobody waits for it meanwhile. */
static void test_slow_guest(void **state) {
    (void)state;
    ls_control *c = NULL;
    ls_error e = {0};
    char line[LS_CONTROL_LINE], answer[8] = "";
    assert_ls_ok(ls_control_open(folder, &c, &e), e);
    assert_int_equal(chdir(folder), 0);
    int fd = visit();
    for (const char *s = "scale 3\n"; *s; s++) {
        assert_false(ls_control_next(c, line));
        usleep(2000);
        assert_int_equal(write(fd, s, 1), 1);
    }
    assert_true(next(c, line));
    assert_string_equal(line, "scale 3");
    ls_control_answer(c, "ok");
    assert_int_equal(read(fd, answer, sizeof answer), 3);
    close(fd);
    assert_int_equal(chdir("/"), 0);
    ls_control_close(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_bad_guests),
        cmocka_unit_test(test_slow_guest),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
