/* shard.h - a shard of the parameters, as a parameter server has it.
 *
 * All shards lie in one set of flat buffers, each in a contiguous range that is cut at multiples of
 * LS_BLOCK. The version of a shard is the number of gradients that were applied to it since the run
 * began. A pull copies the parameters of a shard at one version; an application changes the shard
 * from version v to v + 1.
 *
 * The buffers and the ls_async_shard are in memory that outlives the processes that use them. A
 * process may be killed at any instruction: the next server finishes an application that was begun
 * (optim/journal.h), and until then no worker pulls the shard.
 */
#ifndef LS_ASYNC_SHARD_H
#define LS_ASYNC_SHARD_H

#include <pthread.h>

#include "optim/apply.h"
#include "optim/learning_rate.h"

enum { LS_ASYNC_SHARDS = 64 }; /* at most */

/* What all shards have in common. */
typedef struct ls_async_parameters {
    const ls_model *model;
    const ls_optim *optim;
    ls_schedule schedule; /* the learning rate's, whose steps are versions */
    bool delay_aware;     /* the rate of a gradient is divided by its staleness */
    ls_dtype grads_type, params_type;
    void *params;         /* [nfloats] flat.of[0], where they are f32 */
    ls_flat flat;         /* masters or parameters, and the optimizer's states */
    atomic_uint *mark;    /* [nfloats / LS_BLOCK] of the journal */
    unsigned char *rooms; /* [shards][room_nbytes] for updates of whole parameters; may be NULL */
    size_t room_nbytes;
} ls_async_parameters;

typedef struct ls_async_shard {
    int number;
    size_t first, end; /* elements */
    pthread_mutex_t lock;
    atomic_llong version;
    atomic_int applies; /* 1: an application was begun and is not complete */
    ls_journal_saved saved;
} ls_async_shard;

/* A gradient of one batch, with what its application needs. */
typedef struct ls_async_push {
    const void *grads; /* [nfloats] */
    double grad_scale, samples;
    int64_t base; /* the version of the shard with which it was computed */
} ls_async_push;

/* shards [n] over all elements of the model, each at version 0; none is cut inside a whole
 * parameter (optim/whole.h), so some may be empty. LS_ENOMEM: there is no lock. */
ls_status ls_async_shards_begin(ls_async_shard *shards, int n, const ls_model *, ls_error *);

/* Copies the shard's parameters to the same place of `to` [nfloats], and returns their version. */
int64_t ls_async_pull(const ls_async_parameters *, ls_async_shard *, void *to);

/* The version that the next application makes from; with it the push is recorded before the
 * application begins. */
int64_t ls_async_version(const ls_async_shard *);

/* Applies the push to version `at` of the shard; at: ls_async_version(). The compute has one
 * thread. If the shard has version at + 1 already, nothing happens; if an earlier server began the
 * same application, it is finished.
 */
void ls_async_apply(const ls_async_parameters *, ls_async_shard *, const ls_async_push *,
                    int64_t at, const ls_compute *);

/* Versions between the pull and the application. */
static inline int64_t ls_async_staleness(int64_t base, int64_t at) { return at - base; }

/* The learning rate of an application: Zhang, Gupta, Lian & Liu, "Staleness-aware Async-SGD for
 * distributed deep learning", IJCAI 2016, divide by the staleness where it is above 1. */
double ls_async_rate(const ls_async_parameters *, int64_t base, int64_t at);

#endif
