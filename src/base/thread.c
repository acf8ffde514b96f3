/* thread.c - see thread.h. */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

int ls_thread_start(pthread_t *thread_p, void *(*run)(void *), void *arg) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int why = pthread_create(thread_p, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return why;
}

/* glibc also returns EAGAIN where there is no memory for a thread's stack. */
const char *ls_thread_why(int why) {
    if (why != EAGAIN) return strerror(why);
    return "a limit is reached: of processes and threads (ulimit -u; pids.max of a control "
           "group), or of memory (ulimit -v)";
}
