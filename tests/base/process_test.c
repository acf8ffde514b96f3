/* process_test.c - which processes belong to one command. */
#include "base/process.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { MB = 1 << 20, HELD = 40 * MB };

/* A process in this directory that has memory of its own; the pipe says when it has. */
static pid_t start(const char *directory, int pipe) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char *p = malloc(HELD);
    if (!p || chdir(directory) != 0) _exit(1);
    memset(p, 1, HELD);
    if (write(pipe, p, 1) != 1) _exit(1);
    for (;;) pause();
}

/* Two commands with the same words, begun by one shell in two directories, are two. */
static void test_directories(void **state) {
    (void)state;
    int ready[2], numbers[2], got = 0;
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(numbers), 0);
    pid_t shell = fork();
    if (shell == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (chdir("/") != 0) _exit(1);
        int first = start("/tmp", ready[1]);
        start("/usr", ready[1]);
        if (write(numbers[1], &first, sizeof first) != sizeof first) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(numbers[0], &got, sizeof got), sizeof got);
    for (int i = 0; i < 2; i++) assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_in_range(ls_process_command_nbytes(got), HELD, 2 * HELD - MB);
    assert_true(ls_process_was_there(got, (double)time(NULL)));
    assert_false(ls_process_was_there(got, (double)time(NULL) - 3600));
    kill(shell, SIGKILL);
    waitpid(shell, NULL, 0);
    for (int i = 0; i < 24000 && ls_process_was_there(got, (double)time(NULL)); i++) usleep(10000);
    assert_int_equal(ls_process_command_nbytes(got), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_directories)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
