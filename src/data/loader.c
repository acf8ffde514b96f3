/* loader.c - see loader.h. `made` batches were prepared, `taken` were handed out; the thread fills
 * buffer made % 2 as soon as the batch in it is no longer in use. */
#include "data/loader.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct slot {
    ls_batch batch;
    unsigned char *samples;
    ls_status status; /* an error if the samples can't be read */
    ls_error error;
} slot;

struct ls_loader {
    ls_loader_config c;
    uint64_t step0, made, taken; /* under the mutex */
    bool quit, fills;            /* fills: the thread is filling a buffer, outside the mutex */
    slot slots[2];
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

static int step_of(const ls_loader_config *c) { return c->step ? c->step : 1; }

/* Virtual workers differ by at most one sample. */
static uint64_t most_samples(const ls_loader_config *c) {
    uint64_t n = (uint64_t)((c->b - c->a + step_of(c) - 1) / step_of(c)), V = (uint64_t)c->V;
    return step_of(c) == 1 ? (c->batch * n + V - 1) / V + 1 : n * ((c->batch + V - 1) / V);
}

uint64_t ls_loader_place(const ls_loader_config *c, uint64_t count, int v) {
    uint64_t first = 0, end = 0, place = 0;
    if (step_of(c) == 1) {
        ls_batch_share(count, c->V, c->a, v, &first, &end);
        return end - first;
    }
    for (int i = c->a; i < v; i += c->step, place += end - first)
        ls_batch_share(count, c->V, i, i + 1, &first, &end);
    return place;
}

size_t ls_loader_nbytes(const ls_loader_config *c) {
    return 2 * most_samples(c) * c->sample_nbytes;
}

static ls_status fill(const ls_loader *l, uint64_t step, slot *s) {
    const ls_loader_config *c = &l->c;
    s->batch = ls_batch_of(step, c->order.n, c->batch);
    ls_draw d = {.seed = c->order.seed, .epoch = s->batch.epoch};
    unsigned char *to = s->samples;
    for (int v = c->a; v < c->b; v += step_of(c)) {
        uint64_t i = 0, end = 0;
        ls_batch_share(s->batch.count, c->V, v, v + 1, &i, &end);
        for (; i < end; i++, to += c->sample_nbytes) {
            d.sample = ls_order_at(&c->order, d.epoch, s->batch.first + i);
            LS_TRY(c->read(c->data, &d, c->sample_nbytes, to, &s->error));
        }
    }
    return LS_OK;
}

static void *loader_main(void *arg) {
    ls_loader *l = arg;
    pthread_mutex_lock(&l->mutex);
    for (;;) {
        /* the latest batch handed out is in use, so one more can be prepared */
        while (!l->quit && l->made >= l->taken + 1 + (l->taken == 0))
            pthread_cond_wait(&l->changed, &l->mutex);
        if (l->quit) break;
        uint64_t i = l->made;
        l->fills = true;
        pthread_mutex_unlock(&l->mutex);
        slot *s = &l->slots[i % 2];
        s->status = fill(l, l->step0 + i, s);
        pthread_mutex_lock(&l->mutex);
        l->fills = false;
        l->made++;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

ls_status ls_loader_create(const ls_loader_config *c, uint64_t step, ls_loader **l_p, ls_error *e) {
    ls_loader *l = LS_NEW(ls_loader);
    l->c = *c;
    l->step0 = step;
    for (int i = 0; i < 2; i++) l->slots[i].samples = ls_alloc(ls_loader_nbytes(c) / 2);
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->changed, NULL);
    int failed = pthread_create(&l->thread, NULL, loader_main, l);
    if (failed) {
        for (int i = 0; i < 2; i++) free(l->slots[i].samples);
        free(l);
        return ls_fail(e, LS_ENOMEM, "the loader's thread can't be started: %s", strerror(failed));
    }
    *l_p = l;
    return LS_OK;
}

void ls_loader_free(ls_loader *l) {
    if (!l) return;
    pthread_mutex_lock(&l->mutex);
    l->quit = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
    pthread_join(l->thread, NULL);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->mutex);
    for (int i = 0; i < 2; i++) free(l->slots[i].samples);
    free(l);
}

void ls_loader_seek(ls_loader *l, int a, int b, uint64_t step) {
    pthread_mutex_lock(&l->mutex);
    while (l->fills) pthread_cond_wait(&l->changed, &l->mutex);
    assert(b - a <= l->c.b - l->c.a);
    l->c.a = a;
    l->c.b = b;
    l->step0 = step;
    l->made = l->taken = 0;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

ls_status ls_loader_next(ls_loader *l, ls_batch *batch_p, const void **samples_p, ls_error *e) {
    pthread_mutex_lock(&l->mutex);
    while (l->made <= l->taken) pthread_cond_wait(&l->changed, &l->mutex);
    const slot *s = &l->slots[l->taken % 2];
    l->taken++;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
    *batch_p = s->batch;
    *samples_p = s->samples;
    return s->status == LS_OK ? LS_OK : ls_fail(e, s->status, "%s", s->error.msg);
}
