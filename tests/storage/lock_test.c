/* lock_test.c - the lock of a run directory: who looks at it does not keep it from who takes it. */
#include "storage/lock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"
#include "test.h"

/* A process that does this until it is killed; it is at it when start() returns. */
static pid_t start(void (*again)(void *), void *arg) {
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        again(arg);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) again(arg);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]), close(ready[1]);
    return pid;
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void look(void *unused) {
    (void)unused;
    char holder[LS_LOCK_HOLDER];
    (void)ls_lock_look(folder, NULL);
    (void)ls_lock_state_of(folder, holder);
}

static void take_and_drop(void) {
    ls_error e = {0};
    ls_lock l = LS_LOCK_NONE;
    assert_ls_ok(ls_lock_take(folder, 0, &l, &e), e);
    assert_true(ls_lock_is_held(&l, folder));
    ls_lock_drop(&l);
}

/* Many that look all the time: each start gets the lock. */
static void test_hammered(void **state) {
    (void)state;
    enum { LOOKERS = 6, TIMES = 30 };
    pid_t pids[LOOKERS];
    take_and_drop();
    for (int i = 0; i < LOOKERS; i++) pids[i] = start(look, NULL);
    for (int i = 0; i < TIMES; i++) take_and_drop();
    for (int i = 0; i < LOOKERS; i++) end(pids[i]);
}

static void share(void *fd) { flock(*(int *)fd, LOCK_SH); }

/* A glance that lasts, since its process got no processor: it is waited for. */
static void test_slow_glance(void **state) {
    (void)state;
    char path[128];
    take_and_drop();
    snprintf(path, sizeof path, "%s/lock", folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    pid_t pid = start(share, &fd);
    close(fd); /* the lock is that process's */
    pid_t ender = fork();
    if (ender == 0) {
        usleep(400000);
        kill(pid, SIGKILL);
        _exit(0);
    }
    take_and_drop();
    waitpid(ender, NULL, 0);
    waitpid(pid, NULL, 0);
}

/* The holder of an exclusive lock is named, at once. */
static void test_taken(void **state) {
    (void)state;
    ls_error e = {0};
    ls_lock l = LS_LOCK_NONE, other = LS_LOCK_NONE;
    char name[64];
    assert_ls_ok(ls_lock_take(folder, 0, &l, &e), e);
    snprintf(name, sizeof name, "is in use by another lockstep: process %d on ", (int)getpid());
    assert_ls_fails(ls_lock_take(folder, 0, &other, &e), LS_EINVAL, name, e);
    assert_ls_fails(ls_lock_look(folder, &e), LS_EINVAL, name, e);
    ls_lock_drop(&l);
    assert_ls_ok(ls_lock_look(folder, &e), e);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_hammered), TEST(test_slow_glance),
                                       TEST(test_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
