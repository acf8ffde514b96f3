/* feed.c - see feed.h. */
#include "train/feed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "networks/own_source.h"

struct ls_feed {
    ls_source source; /* first: reads find the feed by it */
    ls_samples samples;
    ls_dataset data;
    ls_order order;
    ls_feed_config c;
    ls_own_limits limits;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool written, ended;
    ls_batch batch;
    uint64_t *numbers;    /* [n] of the step's samples of this worker, in the order of its places */
    ls_sample *list;      /* [n] */
    unsigned char *bytes; /* [most][source.nbytes] */
    int64_t n, most;
    int64_t next; /* the place after that of the latest read */
};

/* ---- reads ---- */

/* The sample's place in the step's list; -1: it is of another step. Most reads are in the list's
 * order. */
static int64_t find(ls_feed *f, const ls_draw *d) {
    if (!f->written || d->epoch != f->batch.epoch) return -1;
    for (int64_t k = 0; k < f->n; k++) {
        int64_t i = (f->next + k) % f->n;
        if (f->numbers[i] != d->sample) continue;
        f->next = i + 1;
        return i;
    }
    return -1;
}

static ls_status draw(const ls_source *s, uint64_t number, const ls_draw *d, void *sample,
                      ls_error *e) {
    ls_feed *f = (ls_feed *)(uintptr_t)s; /* the lock changes */
    int64_t i = -1;
    (void)number;
    pthread_mutex_lock(&f->lock);
    while (!f->ended && (i = find(f, d)) < 0) pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
    if (i < 0) return ls_fail(e, LS_EABORT, "the trainer is closed");
    memcpy(sample, f->bytes + (size_t)i * s->nbytes, s->nbytes);
    return LS_OK;
}

static ls_status refuse(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    (void)s, (void)i, (void)sample;
    return ls_fail(e, LS_EINVAL, "a trainer has no samples for validation");
}

static void close_nothing(ls_source *s) { (void)s; }

/* ---- the data set ---- */

static void describe(ls_feed *f, const ls_model *m) {
    f->source = (ls_source){.format = LS_DATA_OWN_LOOP,
                            .count = f->c.count,
                            .nfields = m->ninputs,
                            .nbytes = m->sample_nbytes,
                            .hash = {.lo = f->c.hash, .hi = f->c.count},
                            .read = refuse,
                            .draw = draw,
                            .close = close_nothing};
    memcpy(f->source.fields, m->inputs, (size_t)m->ninputs * sizeof *m->inputs);
    f->limits = ls_own_limits_of(m);
    f->order = (ls_order){.n = f->c.count, .seed = (uint64_t)f->c.config->train.seed};
    f->samples = (ls_samples){.order = f->order,
                              .source = &f->source,
                              .files = {&f->source, NULL},
                              .split = ls_split_nothing(f->c.count)};
    f->samples.record.training = ls_data_part_of(&f->source);
    ls_data_record_write(&(ls_data_given){&f->source, "", "", NULL, ""},
                         &(ls_data_given){NULL, "", "", NULL, ""}, &f->samples.record_text);
    f->data = (ls_dataset){
        .samples = &f->samples, .ntrain = f->c.count, .sample_nbytes = m->sample_nbytes};
}

ls_status ls_feed_open(const ls_feed_config *c, ls_feed **f_p, ls_error *e) {
    if (c->count == 0) return ls_fail(e, LS_EINVAL, "the trainer's count of samples is 0");
    LS_TRY(ls_own_source_check_count(c->count, "the trainer", e));
    ls_feed *f = LS_NEW(ls_feed);
    f->c = *c;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    describe(f, c->plan->share.model);
    int64_t V = c->config->train.virtual_workers;
    f->most = (c->config->train.batch + V - 1) / V * c->plan->share.workers[c->worker].nvws;
    f->numbers = LS_NEW_ARRAY(uint64_t, (size_t)f->most);
    f->list = LS_NEW_ARRAY(ls_sample, (size_t)f->most);
    f->bytes = LS_NEW_ARRAY(unsigned char, (size_t)f->most * f->source.nbytes);
    for (int64_t i = 0; i < f->most; i++)
        f->list[i] = (ls_sample){&f->source, f->bytes + (size_t)i * f->source.nbytes};
    *f_p = f;
    return LS_OK;
}

void ls_feed_end(ls_feed *f) {
    pthread_mutex_lock(&f->lock);
    f->ended = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

void ls_feed_close(ls_feed *f) {
    if (!f) return;
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    ls_buf_free(&f->samples.record_text);
    free(f->numbers);
    free(f->list);
    free(f->bytes);
    free(f);
}

const ls_dataset *ls_feed_data(const ls_feed *f) { return &f->data; }

/* ---- steps ---- */

void ls_feed_begin(ls_feed *f, int64_t step) {
    const ls_config *c = f->c.config;
    int V = (int)c->train.virtual_workers;
    pthread_mutex_lock(&f->lock);
    f->written = false;
    f->n = f->next = 0;
    const ls_batches batches = ls_batches_of(c);
    f->batch = ls_batches_at(&batches, (uint64_t)step, f->c.count);
    for (int i = 0; i < f->c.plan->share.workers[f->c.worker].nvws; i++) {
        int vw = ls_share_vw(&f->c.plan->share, f->c.worker, i);
        uint64_t first = 0, end = 0;
        ls_batch_share(f->batch.count, V, vw, vw + 1, &first, &end);
        for (; first < end; first++)
            f->numbers[f->n++] = ls_order_at(&f->order, f->batch.epoch, f->batch.first + first);
    }
    memset(f->bytes, 0, (size_t)f->most * f->source.nbytes);
    pthread_mutex_unlock(&f->lock);
}

ls_status ls_feed_check(const ls_feed *f, ls_error *e) {
    for (int64_t i = 0; i < f->n; i++)
        LS_TRY(ls_own_limits_check(&f->limits, &f->source, f->bytes + (size_t)i * f->source.nbytes,
                                   f->numbers[i], e));
    return LS_OK;
}

void ls_feed_hand_over(ls_feed *f) {
    pthread_mutex_lock(&f->lock);
    f->written = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

int64_t ls_feed_nsamples(const ls_feed *f) { return f->n; }
uint64_t ls_feed_number(const ls_feed *f, int64_t i) { return f->numbers[i]; }
ls_sample *ls_feed_sample(ls_feed *f, int64_t i) { return &f->list[i]; }
