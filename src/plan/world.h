/* world.h - the buffers that all workers of a step share.
 *
 * They lie in the region, so a worker reads its peers' gradients directly, and the parameters are
 * one copy for all the workers of a host: the owner of a shard reduces, updates and writes each
 * parameter once. AdamW's moments too are one copy; each worker touches its shards alone.
 */
#ifndef LS_PLAN_WORLD_H
#define LS_PLAN_WORLD_H

#include "net/region.h"
#include "plan/plan.h"

typedef struct ls_world {
    float *params, *m, *v; /* [nfloats] */
    float **grads;         /* [nworkers] -> [slots of that worker][nfloats] */
    double *norms;         /* [nfloats / LS_BLOCK] */
    double *losses;        /* [batch] by place in the batch */
} ls_world;

size_t ls_world_cost(const ls_plan *);
void ls_world_take(ls_world *, const ls_plan *, ls_region *);
void ls_world_free(ls_world *); /* the table only; the memory is the region's */

/* Bytes by purpose, for one worker of the plan and for what all share, as text. */
void ls_world_print_memory(const ls_plan *, int threads, ls_buf *out);

#endif
