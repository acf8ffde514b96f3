/* bar_test.c - the bar on a terminal, and in a pipe. */
#include "base/bar.h"

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* Long enough for a bar to be drawn, whatever the machine does meanwhile. */
static _Noreturn void work(void) {
    ls_bar bar = ls_bar_begin("testing", 12);
    for (uint64_t i = 1; i <= 12; i++) {
        usleep(100000);
        ls_bar_at(&bar, i);
    }
    ls_bar_end(&bar);
    if (write(STDERR_FILENO, "end", 3) != 3) _exit(1);
    _exit(0);
}

/* All that the child writes. */
static void read_all(int fd, pid_t pid, char text[4096]) {
    size_t n = 0;
    ssize_t got;
    while (n < 4095 && (got = read(fd, text + n, 4095 - n)) > 0) n += (size_t)got;
    text[n] = 0;
    close(fd);
    int how = 1;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
}

static void test_terminal(void **state) {
    char text[4096];
    int fd = -1;
    (void)state;
    pid_t pid = forkpty(&fd, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) work();
    read_all(fd, pid, text);
    assert_non_null(strstr(text, "testing  "));
    assert_non_null(strstr(text, " of 12 ("));
    assert_non_null(strstr(text, "%), left 0:0"));
    /* It is removed before what follows. */
    const char *end = strstr(text, "\rend");
    assert_non_null(end);
    assert_int_equal(end[-1], ' ');
}

static void test_pipe(void **state) {
    char text[4096];
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        work();
    }
    close(ends[1]);
    read_all(ends[0], pid, text);
    assert_string_equal(text, "end");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_terminal),
                                       cmocka_unit_test(test_pipe)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
