/* beside.c - see beside.h. */
#include "watch/beside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/launch/child.h"

/* What the process says once it listens, or can't. */
typedef struct report {
    ls_status status;
    int port;
    ls_error e;
} report;

static volatile sig_atomic_t stopped;

static void stop(int number) { stopped = number; }

static _Noreturn void serve(const ls_service_options *o, int out) {
    enum { NICE = 18 };
    ls_service s = {0};
    report r = {0};
    sigset_t none;
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = stop}, NULL);
    ls_process_ignore(SIGINT);
    ls_process_ignore(SIGHUP);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    bool nicer = nice(NICE) != -1; /* before it has threads */
    r.status = ls_service_open(o, &s, &r.e);
    if (r.status == LS_OK) r.port = ls_http_port(s.http);
    bool told = write(out, &r, sizeof r) == (ssize_t)sizeof r;
    close(out);
    if (told && nicer && r.status == LS_OK) ls_service_run(&s, &stopped);
    ls_service_close(&s);
    _exit(0);
}

ls_status ls_beside_begin(const ls_service_options *o, ls_beside *b_p, ls_error *e) {
    int ends[2];
    ls_child child;
    report r;
    if (pipe(ends) != 0) return ls_fail(e, LS_EIO, "no pipe: %s", strerror(errno));
    pid_t pid = ls_child_start(&child, NULL);
    if (pid == 0) {
        close(ends[0]);
        serve(o, ends[1]);
    }
    close(ends[1]);
    bool told = pid > 0 && read(ends[0], &r, sizeof r) == (ssize_t)sizeof r;
    close(ends[0]);
    if (told && r.status == LS_OK) {
        *b_p = (ls_beside){pid, r.port};
        return LS_OK;
    }
    if (pid > 0) waitpid(pid, NULL, 0);
    if (!told) return ls_fail(e, LS_EIO, "the process that watches the run can't be started");
    return ls_fail(e, r.status, "%s", r.e.msg);
}

void ls_beside_end(ls_beside *b) {
    if (b->pid) kill(b->pid, SIGTERM);
    if (b->pid) waitpid(b->pid, NULL, 0);
    *b = (ls_beside){0};
}
