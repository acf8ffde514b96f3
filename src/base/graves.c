/* graves.c - see graves.h. */
#include "base/graves.h"

void *ls_graves_bury(ls_graves *g, void *object) {
    pthread_mutex_lock(&g->lock);
    void **place = &g->of[g->n++ % LS_GRAVES], *oldest = *place;
    *place = object;
    pthread_mutex_unlock(&g->lock);
    return oldest;
}
