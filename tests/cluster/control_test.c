/* control_test.c - a run's socket: requests, answers, bad clients, and other users. */
#include "cluster/control.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "folder.h"
#include "test.h"

/* A run directory whose path is longer than a socket's address may be. */
static char deep[512];
static const char *run = deep;

static int make_run(void **state) {
    if (make_folder(state) != 0) return -1;
    snprintf(deep, sizeof deep, "%s/%0150d/%0150d", folder, 1, 2);
    return ls_file_make_dirs(deep, NULL) == LS_OK ? 0 : -1;
}

typedef struct asker {
    const char *line;
    char answer[LS_CONTROL_LINE];
    ls_status status;
} asker;

static void *ask(void *arg) {
    asker *a = arg;
    ls_error e = {0};
    a->status = ls_control_ask(run, a->line, a->answer, &e);
    return NULL;
}

static bool next(ls_control *c, char line[LS_CONTROL_LINE]) {
    for (int i = 0; i < 6000; i++) {
        if (ls_control_next(c, line)) return true;
        usleep(10000);
    }
    return false;
}

/* Sends a request as any program would, and gets the answer. */
static void is_answered(ls_control *c) {
    char line[LS_CONTROL_LINE];
    pthread_t thread;
    asker a = {.line = "scale 3"};
    assert_int_equal(pthread_create(&thread, NULL, ask, &a), 0);
    assert_true(next(c, line));
    assert_string_equal(line, "scale 3");
    ls_control_answer(c, "ok with 3 workers");
    pthread_join(thread, NULL);
    assert_int_equal(a.status, LS_OK);
    assert_string_equal(a.answer, "ok with 3 workers");
}

static void test_answers(void **state) {
    (void)state;
    ls_control *c = NULL;
    ls_error e = {0};
    char line[LS_CONTROL_LINE];
    assert_ls_ok(ls_control_open(run, &c, &e), e);
    assert_false(ls_control_next(c, line));
    for (int i = 0; i < 3; i++) is_answered(c);
    ls_control_close(c);
    assert_ls_fails(ls_control_ask(run, "scale 3", line, &e), LS_EIO, "is not running", e);
    assert_ls_fails(ls_control_ask("/nowhere", "scale 3", line, &e), LS_EIO, "/nowhere", e);
}

static int visit(void) {
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "control/socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

/* A client that sends nothing, sends too much, or disconnects, holds up others only briefly. */
static void test_bad_guests(void **state) {
    (void)state;
    ls_control *c = NULL;
    ls_error e = {0};
    char line[LS_CONTROL_LINE], much[1000];
    memset(much, 'x', sizeof much);
    assert_ls_ok(ls_control_open(run, &c, &e), e);
    assert_int_equal(chdir(run), 0);
    for (int kind = 0; kind < 3; kind++) {
        int fd = visit();
        if (kind == 1) assert_true(write(fd, much, sizeof much) > 0);
        if (kind == 2) close(fd);
        assert_false(ls_control_next(c, line));
        is_answered(c);
        if (kind != 2) close(fd);
    }
    assert_int_equal(chdir("/"), 0);
    ls_control *second = NULL; /* replaces the socket, as if the first program was killed */
    assert_ls_ok(ls_control_open(run, &second, &e), e);
    ls_control_close(second);
    ls_control_close(c);
}

/* A program that is stopped while it waits, as by Ctrl-Z, and continues still gets its answer. */
static void test_stopped_guest(void **state) {
    (void)state;
    ls_control *c = NULL;
    ls_error e = {0};
    char line[LS_CONTROL_LINE];
    int how = 0;
    assert_ls_ok(ls_control_open(run, &c, &e), e);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        asker a = {.line = "scale 3"};
        ask(&a);
        _exit(a.status == LS_OK && strcmp(a.answer, "ok") == 0 ? 0 : 1);
    }
    assert_true(next(c, line));
    for (int i = 0; i < 10; i++) { /* most often it waits by then */
        kill(pid, SIGSTOP);
        assert_int_equal(waitpid(pid, &how, WUNTRACED), pid);
        kill(pid, SIGCONT);
        assert_int_equal(waitpid(pid, &how, WCONTINUED), pid);
        usleep(1000);
    }
    ls_control_answer(c, "ok");
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    ls_control_close(c);
}

/* A line that comes slowly, byte by byte: ls_control_next() does not wait for the rest. */
static void test_slow_guest(void **state) {
    (void)state;
    ls_control *c = NULL;
    ls_error e = {0};
    char line[LS_CONTROL_LINE], answer[8] = "";
    assert_ls_ok(ls_control_open(run, &c, &e), e);
    assert_int_equal(chdir(run), 0);
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

/* ---- other users ---- */

static unsigned mode_of(const char *name) {
    struct stat there;
    char path[600];
    snprintf(path, sizeof path, "%s/%s", run, name);
    assert_int_equal(lstat(path, &there), 0);
    return there.st_mode & 07777;
}

/* Only the user who started the run can reach the socket, whatever the umask. */
static void test_modes(void **state) {
    (void)state;
    static const mode_t masks[] = {0, 022, 077, 0777};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        ls_control *c = NULL;
        ls_error e = {0};
        mode_t before = umask(masks[i]);
        ls_status s = ls_control_open(run, &c, &e);
        umask(before);
        assert_ls_ok(s, e);
        assert_int_equal(mode_of("control"), 0700);
        assert_int_equal(mode_of("control/socket"), 0600);
        is_answered(c);
        ls_control_close(c);
    }
}

/* The answer, or the error, that another user (65534) gets. */
static void ask_as_another(ls_control *c, char answer[LS_CONTROL_LINE]) {
    char line[LS_CONTROL_LINE];
    int pipes[2], how = 0;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char text[LS_CONTROL_LINE] = "";
        ls_error e = {0};
        alarm(60);
        if (setgid(65534) != 0 || setuid(65534) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0) _exit(2);
        bool asked = ls_control_ask(run, "scale 3", text, &e) == LS_OK;
        const char *says = asked ? text : e.msg;
        _exit(write(pipes[1], says, strlen(says)) < 0);
    }
    close(pipes[1]);
    while (waitpid(pid, &how, WNOHANG) == 0) {
        assert_false(ls_control_next(c, line));
        usleep(2000);
    }
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    ssize_t n = read(pipes[0], answer, LS_CONTROL_LINE - 1);
    answer[n > 0 ? n : 0] = 0;
    close(pipes[0]);
}

static void open_to_all(const char *name, mode_t mode) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", run, name);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_another_user(void **state) {
    (void)state;
    ls_control *c = NULL;
    ls_error e = {0};
    char answer[LS_CONTROL_LINE];
    if (geteuid() != 0) skip_because("another user needs root");
    run = folder; /* a path that fits into a message */
    assert_int_equal(chmod(run, 0755), 0);
    mode_t before = umask(0);
    ls_status s = ls_control_open(run, &c, &e);
    umask(before);
    assert_ls_ok(s, e);
    ask_as_another(c, answer);
    assert_non_null(strstr(answer, "permission denied: only user 0, who started it, and root"));
    open_to_all("control", 0777);
    ask_as_another(c, answer);
    assert_non_null(strstr(answer, "permission denied: only user 0"));
    open_to_all("control/socket", 0777);
    ask_as_another(c, answer);
    assert_string_equal(answer, "error permission denied: the run belongs to another user");
    is_answered(c);
    ls_control_close(c);
    assert_ls_fails(ls_control_ask(run, "scale 3", answer, &e), LS_EIO, "is not running", e);
    run = deep;
}

/* Whatever is in the socket's place is replaced: an older version's socket, or a dead program's. */
static void test_left_behind(void **state) {
    (void)state;
    ls_control *c = NULL, *second = NULL;
    ls_error e = {0};
    char path[600];
    snprintf(path, sizeof path, "%s/control", run);
    assert_int_equal(mknod(path, S_IFSOCK | 0777, 0), 0);
    assert_ls_ok(ls_control_open(run, &c, &e), e);
    is_answered(c);
    assert_ls_ok(ls_control_open(run, &second, &e), e);
    ls_control_close(c); /* does not remove the second one's socket */
    is_answered(second);
    ls_control_close(second);
    assert_int_equal(access(path, F_OK), -1);
}

/* Connects again and again until the file `stop` exists, in the run directory. */
static int count_failures(void) {
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "control/socket"};
    int failures = 0;
    while (access("stop", F_OK) != 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        failures += connect(fd, (struct sockaddr *)&a, sizeof a) != 0 && errno != EAGAIN;
        close(fd);
    }
    return failures;
}

/* Hosts of a run may share its directory: a request always finds one of their sockets. */
static void test_shared_folder(void **state) {
    (void)state;
    enum { N = 100 };
    ls_control *all[N] = {NULL};
    ls_error e = {0};
    char path[600];
    int how = 0;
    snprintf(path, sizeof path, "%s/stop", run);
    assert_ls_ok(ls_control_open(run, &all[0], &e), e);
    pid_t pid = fork();
    if (pid == 0) _exit(chdir(run) != 0 || count_failures() > 0);
    for (int i = 1; i < N; i++) {
        assert_ls_ok(ls_control_open(run, &all[i], &e), e);
        usleep(500);
    }
    assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    for (int i = 0; i < N - 1; i++) ls_control_close(all[i]);
    is_answered(all[N - 1]);
    ls_control_close(all[N - 1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),       cmocka_unit_test(test_bad_guests),
        cmocka_unit_test(test_stopped_guest), cmocka_unit_test(test_slow_guest),
        cmocka_unit_test(test_modes),         cmocka_unit_test(test_another_user),
        cmocka_unit_test(test_left_behind),   cmocka_unit_test(test_shared_folder),
    };
    return cmocka_run_group_tests(tests, make_run, remove_folder);
}
