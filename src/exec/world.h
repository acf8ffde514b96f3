/* world.h - the buffers of one worker that outlive a step, and which of them are shared.
 *
 * Gradients lie where the other workers of the host can read them. Where all workers share memory
 * and moments are sharded, parameters and moments are one copy: the owner of a shard reduces,
 * updates and writes each parameter once, and gathering them moves nothing. Else each worker has
 * buffers of its own. They have the full length, so that every element is at its place; of what is
 * sharded a worker touches its part alone, and what is given back after use (Free) is empty pages
 * again.
 */
#ifndef LS_EXEC_WORLD_H
#define LS_EXEC_WORLD_H

#include "exec/store.h"
#include "lockstep/group.h"

typedef struct ls_world {
    ls_group *group;    /* of all workers */
    ls_group *shards;   /* those among which one copy is sharded; may be `group` */
    ls_group *replicas; /* those that have the same shard; NULL where there is one copy */
    bool one;           /* params are one copy for all workers of `shards` */
    bool one_state;     /* and so are master, m and v */
    bool mine[2];       /* this world frees them: params; master, m and v */
    bool together;      /* with those of all other workers, in one thread */
    bool in_file;       /* master, m and v lie in a file */
    void *params;       /* [nfloats] of the plan's compute type */
    float *master;      /* [nfloats] what is trained: params, where these are f32 */
    float *m, *v;       /* [nfloats] */
    void *grads;        /* [slots of this worker][nfloats] of the plan's reduce type */
    float *wide;        /* [nfloats] sums over micro-batches; NULL: not needed (ls_plan_wide) */
    double *parts;      /* [ls_plan_nscalars] this worker's norms and losses, else 0 */
    double *sums;       /* [ls_plan_nscalars] of all workers */
    ls_store *store;    /* where all this lies, and outlives the worker; NULL: it does not */
    ls_journal journal; /* there */
} ls_world;

/* Collective. Everything lies in the store, as it was left there; store NULL: all is new and clear.
 * dir (without a store): where the optimizer's state lies in a file, which has no name and goes
 * when the world is closed; NULL: in memory. */
ls_status ls_world_open(ls_world *, const ls_plan *, ls_group *, ls_store *store, const char *dir,
                        ls_error *);
/* Its groups are closed, the memory stays; collective: goes on with another group of the same
 * workers. With a store. */
void ls_world_part(ls_world *);
ls_status ls_world_rejoin(ls_world *, const ls_plan *, ls_group *, ls_error *);
/* Norms and losses of a step that was broken off go. With a store. */
void ls_world_clear(const ls_world *, const ls_plan *);
/* Collective, in a new view: takes up the state that the last one left in the store. */
ls_status ls_world_adopt(ls_world *, const ls_plan *, const ls_compute *, ls_error *);
/* All workers of the plan in the calling thread: worlds, groups [nworkers]. one: as above, which
 * needs moments that are sharded. */
ls_status ls_world_open_all(ls_world *worlds, const ls_plan *, ls_group **groups, bool one,
                            ls_error *);
void ls_world_close(ls_world *, const ls_plan *);

/* The memory of a transient buffer goes back to the system, but for this worker's shard. */
void ls_world_drop(const ls_world *, const ls_plan *, const ls_buffer *);

/* Collective: afterwards all workers have all parameters; where these are sharded, until dropped.
 */
ls_status ls_world_gather_params(ls_world *, const ls_plan *, ls_error *);
/* Of elements [first, end): params rounded from master. */
void ls_world_round(const ls_world *, const ls_plan *, const ls_compute *, size_t first,
                    size_t end);
void ls_world_drop_params(const ls_world *, const ls_plan *);

/* Of a bucket's optimizer state what is not owned is given back. */
void ls_world_drop_state(const ls_world *, const ls_plan *, int bucket);

/* Collective: afterwards worker 0 has all of master, m and v. Drop gives others' shards back. */
ls_status ls_world_collect(ls_world *, const ls_plan *, ls_error *);
void ls_world_drop_collected(ls_world *, const ls_plan *);

/* Bytes of parameters, gradients and moments that are in memory now; one copy counts in parts. */
size_t ls_world_resident_nbytes(const ls_world *, const ls_plan *);

#endif
