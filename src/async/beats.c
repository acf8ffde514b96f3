/* beats.c - see beats.h. */
#include "async/beats.h"
#include "base/thread.h"

#include <time.h>

static void *beat(void *arg) {
    ls_beats *b = arg;
    int64_t ns = (int64_t)(b->every_s * 1e9);
    for (;;) {
        ls_error none = {0};
        nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
        pthread_mutex_lock(&b->lock);
        if (b->conn) ls_wire_send(b->conn, LS_WIRE_BEAT, 0, NULL, 0, &none);
        pthread_mutex_unlock(&b->lock);
    }
    return NULL;
}

ls_status ls_beats_open(ls_beats *b, double every_s, ls_error *e) {
    *b = (ls_beats){.every_s = every_s};
    pthread_mutex_init(&b->lock, NULL);
    int failed = pthread_create(&b->thread, NULL, beat, b);
    if (!failed) return LS_OK;
    return ls_fail(e, LS_ENOMEM, "a thread can't be started: %s", ls_thread_why(failed));
}

void ls_beats_set(ls_beats *b, ls_conn *c) {
    pthread_mutex_lock(&b->lock);
    b->conn = c;
    pthread_mutex_unlock(&b->lock);
}

/* The thread is cancelled while it sleeps. */
void ls_beats_close(ls_beats *b) {
    ls_beats_set(b, NULL);
    pthread_cancel(b->thread);
    pthread_join(b->thread, NULL);
    pthread_mutex_destroy(&b->lock);
}
