/* thread.c - see thread.h. */
#include "base/thread.h"

#include <signal.h>

int ls_thread_start(pthread_t *thread_p, void *(*run)(void *), void *arg) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int why = pthread_create(thread_p, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return why;
}
