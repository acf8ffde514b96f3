/* world.h - the buffers of one worker that outlive a step, some of which workers share.
 *
 * The other workers of the host can read a worker's gradients. If all workers share memory and
 * moments are sharded, there is one copy of parameters and moments: the owner of a shard reduces,
 * updates and writes each parameter once, and an AllGather moves nothing. Otherwise each worker has
 * its own buffers. These have the full length, so that every element is at its place. A worker
 * touches only its shard of sharded buffers, and the action Free returns the pages of the rest to
 * the system.
 */
#ifndef LS_STATE_WORLD_H
#define LS_STATE_WORLD_H

#include "lockstep/group.h"
#include "state/store.h"

typedef struct ls_world {
    ls_group *group;    /* of all workers */
    ls_group *shards;   /* its sharding group, or the workers of its owner; may be `group` */
    ls_group *chunks;   /* those of them that have its chunks; NULL: no bucket is theirs alone */
    ls_group *replicas; /* workers with the same shard; NULL: one sharding group */
    ls_group *island;   /* the workers of its island; NULL: there are no islands */
    bool shares_params; /* `shards` has one copy of params */
    bool shares_state;  /* and one of masters and states */
    bool frees_params;  /* this world frees params */
    bool frees_state;   /* and masters and states */
    bool state_in_file; /* masters and states are in a file */
    bool in_one_thread; /* all workers run in the calling thread */
    void *params;       /* [nfloats] of the plan's compute type */
    float *state;       /* [ls_share.nflats][nfloats] masters, if any, and states */
    ls_flat flat;       /* the f32 parameters (params, or masters), and states */
    void *grads;        /* [slots of this worker][nfloats] of the plan's reduce type */
    float *wide;        /* [nfloats] sums over micro-batches; NULL: not needed (ls_share.wide) */
    const ls_frozen_value
        *frozen; /* [nparams] the caller's (train/frozen_values.h); NULL: there are none */
    /* [2][V][nfloats] errors of virtual workers (state/errors.h); NULL: the plan has none */
    float *errors;
    bool frees_errors; /* this world frees them */
    double *parts;     /* [ls_share.nscalars] this worker's norms and losses; 0 elsewhere */
    double *sums;      /* [ls_share.nscalars] sums over all workers */
    void *room;        /* for updates of whole parameters (optim/whole.h); NULL: there are none */
    /* Notes of steps apart (state/apart.h); NULL: there are no islands */
    _Atomic double *apart_rows;
    atomic_llong *apart_marks;
    /* [islands] changes that each has had where the view begins; 0 without such a view */
    int64_t ahead[LS_PLAN_MAX_ISLANDS];
    /* Brings params here, and with `states` states too, where a device has newer ones, before they
     * are read; NULL: none has */
    ls_status (*fetch)(void *arg, bool states, ls_error *);
    void *fetch_arg;
    ls_store *store;    /* has all this, and outlives the worker; NULL: the world has it */
    ls_journal journal; /* in the store */
} ls_world;

/* Collective. With a store all buffers are in it, as they were left; store NULL: all are new, and
 * clear. dir (without a store): the directory of a nameless file for the optimizer's state, which
 * ends with the world; NULL: the state is in memory. */
ls_status ls_world_open(ls_world *, const ls_share *, ls_group *, ls_store *store, const char *dir,
                        ls_error *);
/* With a store. Part closes the groups and retains the memory; rejoin (collective) continues with
 * another group of as many workers. */
void ls_world_part(ls_world *);
ls_status ls_world_rejoin(ls_world *, const ls_share *, ls_group *, ls_error *);
/* The group of workers among which a bucket is sharded, if this worker is one of them. */
ls_group *ls_world_sharers(const ls_world *, const ls_share *, int bucket);
/* With a store: clears norms and losses of an interrupted step. */
void ls_world_clear(const ls_world *, const ls_share *);
/* Collective, in a new view: takes over the state that the last view left in the store. last: the
 * greatest number of changes that an island can have had, if some are ahead (state/apart.h). */
ls_status ls_world_adopt(ls_world *, const ls_share *, const ls_compute *, int64_t last,
                         ls_error *);
/* Opens the worlds [nworkers] of all workers in the calling thread, with their groups [nworkers].
 * shares: a sharding group has one copy, as above, which needs sharded moments; where workers
 * divide the layers, or train apart, all have one, of which each bucket's first worker updates what
 * is not sharded. */
ls_status ls_world_open_all(ls_world *worlds, const ls_share *, ls_group **groups, bool shares,
                            ls_error *);
void ls_world_close(ls_world *, const ls_share *);

/* Returns memory to the system: of a bucket's gathered parameters, except this worker's shard; of a
 * bucket's gradients in a slot, except what outlives them. */
void ls_world_drop_gathered(const ls_world *, const ls_share *, int bucket);
void ls_world_drop_sum(const ls_world *, const ls_share *, int bucket, int slot);

/* Collective, where ranks divide the layers: they get what they read of others' parameters. */
ls_status ls_world_spread(ls_world *, const ls_share *, ls_error *);
/* Collective: afterwards all workers have all parameters; sharded ones, and those of
 * other ranks, until they are dropped. */
ls_status ls_world_gather_params(ls_world *, const ls_share *, ls_error *);
/* Rounds elements [first, end) of the masters to params. */
void ls_world_round(const ls_world *, const ls_share *, const ls_compute *, size_t first,
                    size_t end);
void ls_world_drop_params(const ls_world *, const ls_share *);
/* Collective: all workers have the average of all parameters (ema: optim.ema, else those of rules,
 * ls_optim_weights()) in *params_p, of the plan's compute type: ls_unmap() it,
 * ls_share.nbytes.params. */
ls_status ls_world_gather_average(ls_world *, const ls_share *, const ls_compute *, bool ema,
                                  void **params_p, ls_error *);

/* Returns the memory of a bucket's optimizer state to the system, except what the worker owns. */
void ls_world_drop_state(const ls_world *, const ls_share *, int bucket);

/* Collective: afterwards worker 0 has all parameters in f32, and all states; or all errors after
 * `steps` steps. Drop returns the memory of other workers' shards and errors. */
ls_status ls_world_collect(ls_world *, const ls_share *, ls_error *);
ls_status ls_world_collect_errors(ls_world *, const ls_share *, int64_t steps, ls_error *);
void ls_world_drop_collected(ls_world *, const ls_share *);

/* Bytes of parameters, gradients and moments in memory now; a worker counts its part of a shared
 * copy.
 */
size_t ls_world_resident_nbytes(const ls_world *, const ls_share *);

#endif
