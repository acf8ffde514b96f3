/* graves.h - closed objects that a program may still use by mistake: their memory is kept for a
 * while, so that such a use is an error instead of a crash.
 */
#ifndef LS_BASE_GRAVES_H
#define LS_BASE_GRAVES_H

#include <pthread.h>

enum { LS_GRAVES = 8 };

/* Closed objects of one type. {PTHREAD_MUTEX_INITIALIZER} has none. */
typedef struct ls_graves {
    pthread_mutex_t lock;
    void *of[LS_GRAVES];
    unsigned n; /* buried so far */
} ls_graves;

/* Keeps a closed object. Returns the oldest one if there are more than LS_GRAVES, for the caller to
 * free; else NULL. Any thread. */
void *ls_graves_bury(ls_graves *, void *object);

#endif
