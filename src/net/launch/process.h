/* process.h - another process as the kernel sees it. */
#ifndef LS_NET_LAUNCH_PROCESS_H
#define LS_NET_LAUNCH_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Has it been stopped (SIGSTOP, a debugger)? False where that can't be had. */
bool ls_process_is_stopped(pid_t);

/* A child that is to end by itself, and may be stopped or killed. */
typedef struct ls_child {
    pid_t pid;
    int64_t ran_ns; /* when it was last seen not to be stopped */
} ls_child;

/* fork(): 0 in the child, which ends with this process, and holds back the signals of `mask` (NULL:
 * those that this process does); -1: there is none. */
pid_t ls_child_start(ls_child *, const sigset_t *mask);
/* Has it ended? *how_p is what waitpid() says. One that is stopped for limit_s is killed. */
bool ls_child_ended(ls_child *, double limit_s, int *how_p);

/* This process, and those that it forks, ignore signal `number` from here on. */
void ls_process_ignore(int number);
/* Those of ls_process_ignore() that were not ignored before: for a program that this process runs,
 * which has not asked for it. */
void ls_process_ignored(sigset_t *set_p);
/* Does it ignore signal `number`, as nohup makes it ignore SIGHUP? */
bool ls_process_ignores(int number);
/* In a child, before it becomes another program: undoes ls_process_ignore(). */
void ls_process_restore(void);

/* From here on SIGUSR1 does to this process, and to those that it forks, what SIGTERM does:
 * schedulers and mpiruns send either before they end a job. */
void ls_process_heed_usr1(void);

#endif
