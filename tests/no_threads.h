/* no_threads.h - what fails in a process that has no memory for the stack of a thread. For
 * plain_unit_test(): sanitizers need address space of their own. */
#ifndef TESTS_NO_THREADS_H
#define TESTS_NO_THREADS_H

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* The message begins with these words, and names the limits of threads. */
static inline void fails_without_threads(ls_status (*open)(ls_error *), const char *words) {
    int how = 0;
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = {0, 0};
        ls_error e = {0};
        if (setrlimit(RLIMIT_AS, &none) != 0) _exit(1);
        if (open(&e) == LS_OK) _exit(2);
        if (strncmp(e.msg, words, strlen(words)) != 0) _exit(3);
        _exit(strstr(e.msg, "ulimit -u") ? 0 : 4);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
}

#endif
