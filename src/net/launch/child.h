/* child.h - another process as the kernel sees it. */
#ifndef LS_NET_LAUNCH_CHILD_H
#define LS_NET_LAUNCH_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Has it been stopped (SIGSTOP, a debugger)? False if that can't be found out. */
bool ls_process_is_stopped(pid_t);

/* A child that should end by itself, but may get stopped or killed. */
typedef struct ls_child {
    pid_t pid;
    int64_t ran_ns; /* when it was last seen running */
} ls_child;

/* As fork(): 0 in the child; -1: it failed. The child is killed when this process ends. It blocks
 * the signals of `mask` (NULL: those that this process blocks). */
pid_t ls_child_start(ls_child *, const sigset_t *mask);
/* Has the child ended? *how_p is the status of waitpid(). A child that stays stopped for limit_s is
 * killed. */
bool ls_child_ended(ls_child *, double limit_s, int *how_p);

/* From here on this process, and those that it forks, ignore signal `number`. */
void ls_process_ignore(int number);
/* Does it ignore signal `number`, as nohup makes it ignore SIGHUP? */
bool ls_process_ignores(int number);
/* In a child, before it becomes another program: undoes ls_process_ignore(). */
void ls_process_restore(void);

/* From here on the signals that ask a program to end, SIGINT, SIGTERM and SIGHUP, call the handler
 * and interrupt system calls that wait. A script's shell starts commands in the background with
 * SIGINT ignored: it is handled all the same. An ignored SIGHUP stays ignored, as nohup wants. */
void ls_process_handle_stops(void (*handler)(int number));

/* From here on SIGUSR1 does to this process, and to those that it forks, what SIGTERM does:
 * schedulers and mpiruns send one or the other before they end a job. */
void ls_process_heed_usr1(void);

#endif
