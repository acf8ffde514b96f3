/* share/config.h - what a plan is made from: the step, and how workers divide it.
 *
 * Passes read all of it. What runs, prints and prices a plan reads the table that follows from it
 * (share.h), so that no strategy is decided twice.
 */
#ifndef LS_SHARE_CONFIG_H
#define LS_SHARE_CONFIG_H

#include "share/schedule.h"
#include "share/share.h"

/* Limits of a plan. CALLS: Forward and Backward of layers, by all workers. */
enum { LS_PLAN_MAX_BUCKETS = 4096, LS_PLAN_MAX_CALLS = 1 << 25 };

typedef struct ls_share_config {
    const ls_model *model; /* outlives the plan */
    int nworkers, V;       /* nworkers <= V */
    /* [nworkers + 1] outlives the plan: worker w runs virtual workers [first[w], first[w + 1]), at
     * least one. Needs one sharding group, and no `early`. NULL: even ranges */
    const int *first;
    int64_t batch;       /* samples; V divides it */
    int64_t micro_batch; /* samples, <= batch / V; the last of a virtual worker may be smaller */
    bool tree;           /* sum in tree order; else in an order that depends on nworkers */
    size_t bucket_nbytes;
    /* what is sharded among workers: 0 nothing, 1 moments, 2 gradients too, 3 parameters too; as in
     * Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
     * SC 2020 */
    int zero;
    int recompute;        /* layers of a segment, whose input alone is saved; 0: all layers save */
    int recompute_layers; /* layers in segments, from the first block on; 0: all */
    /* reduce gradients after each round, in which every worker runs one virtual worker, instead of
     * after the last: takes less memory, sends more; needs zero 2 or 3 */
    bool early;
    int prefetch;        /* zero 3: layers before its use at which a parameter is gathered */
    size_t whole_nbytes; /* zero 3: parameters of buckets up to this size are not sharded */
    int shards;          /* workers of a sharding group; divides nworkers; 0: all */
    ls_dtype compute;    /* of parameters and activations: LS_F32, or 16 bits beside f32 masters */
    ls_dtype reduce;     /* of gradients, in memory and on the wire */
    ls_optim optim;      /* ngroups 0: ls_optim_usual() */
    ls_share_compress compress; /* needs `tree`, and reduce LS_F32 */
    bool noise;                 /* measure the gradient noise scale (optim/noise.h); needs `tree` */
    /* Replicas of the model, each trained by an island: workers that run V / islands virtual
     * workers in a row. 0: the model is one. */
    int islands;
    ls_task task;
    ls_share_sync sync; /* of a plan that brings replicas together */
    int pipe;           /* workers of a pipeline; divides nworkers; 0, 1: none */
    int tensor;  /* workers that divide the slices of each layer (ls_model.nslices); 0, 1: none */
    int context; /* workers that divide the chunks of each sample (ls_model.nchunks); 0, 1: none */
    int chunks;  /* stages of a worker; 0: 1 */
    ls_pipe_kind schedule;
    bool on_device;       /* a device of each worker runs the layers */
    bool state_on_device; /* and has the parameters and the optimizer's states */
    bool sums_on_device;  /* and sums over workers, whose shards come from device to device */
    bool receives;        /* by messages; else devices read each other's memory */
    const int *stages; /* [pipe * chunks - 1] outlives the plan: the first layers of all stages but
                        * the first; NULL: stages of about the same work */
} ls_share_config;

/* LS_EINVAL: what workers can't divide in this way, and what to change. */
ls_status ls_share_check(const ls_share_config *, ls_error *);

/* How keys and tables call the dimension that divides samples, or parts of them: "context" or
 * "expert". */
const char *ls_share_context_name(const ls_model *);
const char *ls_share_context_title(const ls_model *); /* where samples, too, are cut: both */
const char *ls_share_chunk_name(const ls_model *);
/* A degree of the mesh: 0 and 1 mean that nothing is divided. */
static inline int ls_share_degree(int n) { return n > 1 ? n : 1; }
/* Micro-batches of a virtual worker. */
int ls_share_config_micros(const ls_share_config *);
/* Floats at whose multiples, from the end, pieces are cut; buckets end there, too. */
size_t ls_share_chunk(const ls_share_config *);
/* Floats of which buckets are multiples: chunks where anything is encoded, else blocks. */
size_t ls_share_bucket_unit(const ls_share_config *);
/* Floats of each bucket but the last: as many units as fit into bucket_nbytes, at least one. */
size_t ls_share_bucket_floats(const ls_share_config *);

#endif
