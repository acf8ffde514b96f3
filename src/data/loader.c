/* loader.c - see loader.h. `made` batches were prepared, `taken` were handed out. The threads fill
 * buffer made % 2 together, as soon as the batch in it is no longer in use: each takes the next
 * piece of the batch until all are taken, and the last one to finish completes the batch.
 *
 * A sample's place in the buffer depends on the batch alone. If samples can't be read, the error is
 * that of the first of them: pieces are taken in their order, so all samples before one that fails
 * have been taken. */
#include "data/loader.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

enum { PIECES = 8 }; /* parts of a batch a thread: so threads end at about the same time */

typedef struct slot {
    ls_batch batch;
    unsigned char *samples;
    ls_status status; /* an error if the samples can't be read */
    ls_error error;
    uint64_t failed; /* the place of the sample that has the error */
} slot;

struct ls_loader {
    ls_loader_config c;
    /* under the mutex: */
    uint64_t step0, made, taken;
    bool quit, holds;      /* holds: no piece may be begun */
    bool fills;            /* batch `made` was begun and is not complete */
    uint64_t given, total; /* samples of that batch: given to threads, all */
    int busy;              /* threads that read samples of it */
    int64_t waited_ns;     /* by the latest ls_loader_next() */
    slot slots[2];
    int nthreads;
    pthread_t *threads;
    pthread_mutex_t mutex;
    pthread_cond_t work, changed; /* for the threads; for the caller */
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

ls_batch ls_loader_batch(const ls_loader_config *c, uint64_t step) {
    if (c->batches.n == 0) return ls_batch_of(step, c->order.n, c->batch);
    return ls_batches_at(&c->batches, step, c->order.n);
}

/* ---- the threads ---- */

/* Samples [first, end) of those that this worker takes of a batch. */
typedef struct piece {
    uint64_t first, end;
} piece;

/* Reads the piece; *at_p counts the samples that were read. */
static ls_status read_piece(const ls_loader *l, const slot *s, piece p, uint64_t *at_p,
                            ls_error *e) {
    const ls_loader_config *c = &l->c;
    ls_draw d = {.seed = c->order.seed, .epoch = s->batch.epoch};
    uint64_t place = 0; /* where virtual worker v's first sample is */
    *at_p = p.first;
    for (int v = c->a; v < c->b && place < p.end; v += step_of(c)) {
        uint64_t first = 0, end = 0;
        ls_batch_share(s->batch.count, c->V, v, v + 1, &first, &end);
        for (; *at_p < p.end && *at_p - place < end - first; ++*at_p) {
            d.sample = ls_order_at(&c->order, d.epoch, s->batch.first + first + *at_p - place);
            LS_TRY(
                c->read(c->data, &d, c->sample_nbytes, s->samples + *at_p * c->sample_nbytes, e));
        }
        place += end - first;
    }
    return LS_OK;
}

/* The sample at place `at` can't be read; the rest of the batch need not be. */
static void note_error(ls_loader *l, slot *s, uint64_t at, ls_status status, const ls_error *why) {
    l->given = l->total;
    if (s->status != LS_OK && s->failed < at) return;
    s->status = status;
    s->error = *why;
    s->failed = at;
}

static void begin_batch(ls_loader *l) {
    slot *s = &l->slots[l->made % 2];
    s->batch = ls_loader_batch(&l->c, l->step0 + l->made);
    s->status = LS_OK;
    l->total = ls_loader_place(&l->c, s->batch.count, l->c.b);
    l->given = 0;
    l->fills = true;
    if (l->nthreads > 1) pthread_cond_broadcast(&l->work);
}

static void end_batch(ls_loader *l) {
    l->fills = false;
    l->made++;
    pthread_cond_broadcast(&l->work);
    pthread_cond_broadcast(&l->changed);
}

/* Takes the next piece of the batch and reads it, outside the mutex. */
static void do_piece(ls_loader *l) {
    slot *s = &l->slots[l->made % 2];
    uint64_t size = l->total / (uint64_t)(PIECES * l->nthreads), at = 0;
    piece p = {l->given, l->given + (size ? size : 1)};
    ls_error why = {0};
    if (p.end > l->total) p.end = l->total;
    l->given = p.end;
    l->busy++;
    pthread_mutex_unlock(&l->mutex);
    ls_status status = read_piece(l, s, p, &at, &why);
    pthread_mutex_lock(&l->mutex);
    l->busy--;
    if (l->holds && l->busy == 0) pthread_cond_broadcast(&l->changed);
    if (status != LS_OK) note_error(l, s, at, status, &why);
}

/* The latest batch handed out is in use, so one more can be prepared. */
static bool has_work(const ls_loader *l) {
    if (l->holds) return false;
    return l->fills ? l->given < l->total : l->made < l->taken + 1 + (l->taken == 0);
}

static void *loader_main(void *arg) {
    ls_loader *l = arg;
    pthread_mutex_lock(&l->mutex);
    for (;;) {
        while (!l->quit && !has_work(l)) pthread_cond_wait(&l->work, &l->mutex);
        if (l->quit) break;
        if (!l->fills) begin_batch(l);
        if (l->given < l->total) do_piece(l);
        if (l->given == l->total && l->busy == 0) end_batch(l);
    }
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

/* ---- the caller ---- */

ls_status ls_loader_create(const ls_loader_config *c, uint64_t step, ls_loader **l_p, ls_error *e) {
    ls_loader *l = LS_NEW(ls_loader);
    int n = c->threads ? c->threads : 1, failed = 0;
    l->c = *c;
    l->step0 = step;
    l->holds = c->waits;
    for (int i = 0; i < 2; i++) l->slots[i].samples = ls_alloc(ls_loader_nbytes(c) / 2);
    l->threads = LS_NEW_ARRAY(pthread_t, (size_t)n);
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->changed, NULL);
    pthread_mutex_lock(&l->mutex);
    while (l->nthreads < n && !failed) {
        failed = pthread_create(&l->threads[l->nthreads], NULL, loader_main, l);
        if (!failed) l->nthreads++;
    }
    pthread_mutex_unlock(&l->mutex);
    if (failed) {
        ls_loader_free(l);
        return ls_fail(e, LS_ENOMEM, "the loader's thread can't be started: %s",
                       ls_thread_why(failed));
    }
    *l_p = l;
    return LS_OK;
}

void ls_loader_free(ls_loader *l) {
    if (!l) return;
    pthread_mutex_lock(&l->mutex);
    l->quit = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->mutex);
    for (int i = 0; i < l->nthreads; i++) pthread_join(l->threads[i], NULL);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->mutex);
    for (int i = 0; i < 2; i++) free(l->slots[i].samples);
    free(l->threads);
    free(l);
}

void ls_loader_seek(ls_loader *l, int a, int b, uint64_t step) {
    pthread_mutex_lock(&l->mutex);
    l->holds = true;
    while (l->busy > 0) pthread_cond_wait(&l->changed, &l->mutex);
    assert(b - a <= l->c.b - l->c.a);
    l->c.a = a;
    l->c.b = b;
    l->step0 = step;
    l->made = l->taken = 0;
    l->fills = l->holds = false;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->mutex);
}

ls_status ls_loader_next(ls_loader *l, ls_batch *batch_p, const void **samples_p, ls_error *e) {
    pthread_mutex_lock(&l->mutex);
    l->waited_ns = 0;
    if (l->holds) {
        l->holds = false;
        pthread_cond_broadcast(&l->work);
    }
    if (l->made <= l->taken) {
        int64_t began_ns = ls_clock_ns();
        while (l->made <= l->taken) pthread_cond_wait(&l->changed, &l->mutex);
        l->waited_ns = ls_clock_ns() - began_ns;
    }
    const slot *s = &l->slots[l->taken % 2];
    l->taken++;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->mutex);
    *batch_p = s->batch;
    *samples_p = s->samples;
    return s->status == LS_OK ? LS_OK : ls_fail(e, s->status, "%s", s->error.msg);
}

int64_t ls_loader_waited_ns(const ls_loader *l) { return l->waited_ns; }
