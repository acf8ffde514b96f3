/* child.c - see child.h. */
#include "net/launch/child.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* The state's letter follows the program's name, which may contain any characters. */
bool ls_process_is_stopped(pid_t pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    const char *name_end = strrchr(text, ')');
    char state = name_end && name_end[1] ? name_end[2] : 0;
    return state == 'T' || state == 't';
}

pid_t ls_child_start(ls_child *c, const sigset_t *mask) {
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        if (mask) sigprocmask(SIG_SETMASK, mask, NULL);
    }
    *c = (ls_child){.pid = pid > 0 ? pid : 0};
    return pid;
}

bool ls_child_ended(ls_child *c, double limit_s, int *how_p) {
    int64_t now = ls_clock_ns();
    if (waitpid(c->pid, how_p, WNOHANG) == c->pid) return true;
    if (!c->ran_ns || !ls_process_is_stopped(c->pid)) c->ran_ns = now;
    if ((double)(now - c->ran_ns) / 1e9 > limit_s) kill(c->pid, SIGKILL);
    return false;
}

/* ---- signals ---- */

static sigset_t ignored; /* by ls_process_ignore(), and not before; all zeros: the empty set */

void ls_process_ignore(int number) {
    struct sigaction before;
    sigaction(number, &(struct sigaction){.sa_handler = SIG_IGN}, &before);
    if (before.sa_handler != SIG_IGN) sigaddset(&ignored, number);
}

bool ls_process_ignores(int number) {
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void ls_process_restore(void) {
    for (int i = 1; i < NSIG; i++)
        if (sigismember(&ignored, i) == 1) signal(i, SIG_DFL);
}

void ls_process_handle_stops(void (*handler)(int number)) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        bool nohup = numbers[i] == SIGHUP && ls_process_ignores(SIGHUP);
        if (!nohup) sigaction(numbers[i], &(struct sigaction){.sa_handler = handler}, NULL);
    }
}

static void on_usr1(int number) {
    (void)number;
    kill(getpid(), SIGTERM);
}

void ls_process_heed_usr1(void) {
    struct sigaction a = {.sa_handler = on_usr1, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &a, NULL);
}
