/* first_process.c - a command that is process 1 of a container.
 *
 * The kernel takes no default action for process 1: it discards each signal that has no handler,
 * even one that the process sends to itself, and makes all orphans its children. So the command
 * runs in a child, and process 1 passes signals on, reaps, and ends as the child does. */
#include <signal.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

enum { FIRST = 1, KILLED = 128 };

/* Reaps all that have ended; true: `command` is one of them. */
static bool reap(pid_t command, int *how_p) {
    bool ended = false;
    int how = 0;
    for (pid_t pid; (pid = waitpid(-1, &how, WNOHANG)) > 0;) {
        if (pid != command) continue;
        ended = true;
        *how_p = how;
    }
    return ended;
}

/* What a terminal sends goes to its whole process group, the command too. */
static bool is_from_terminal(const siginfo_t *info) { return info->si_code == SI_KERNEL; }

int cli_first_process(void) {
    sigset_t all, before;
    siginfo_t info;
    int how = 0;
    if (getpid() != FIRST) return -1;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    signal(SIGCHLD, SIG_DFL); /* else the kernel reaps, and nobody learns how the command ended */
    pid_t command = fork();
    if (command <= 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        return -1;
    }
    while (!reap(command, &how)) {
        int number = sigwaitinfo(&all, &info);
        if (number > 0 && number != SIGCHLD && !is_from_terminal(&info)) kill(command, number);
    }
    return WIFEXITED(how) ? WEXITSTATUS(how) : KILLED + WTERMSIG(how);
}
