/* thread.h - threads that take no signals: those are for the threads of the program. */
#ifndef LS_BASE_THREAD_H
#define LS_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create() with default attributes, and with all signals blocked in the new thread. 0,
 * or an errno. */
int ls_thread_start(pthread_t *thread_p, void *(*run)(void *), void *arg);

/* strerror() of an errno with which a thread or a process could not be started; names the limits
 * where one may be reached. */
const char *ls_thread_why(int why);

#endif
