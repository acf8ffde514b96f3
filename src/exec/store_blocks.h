/* store_blocks.h - blocks of the state, from area to area, and from host to host. */
#ifndef LS_EXEC_STORE_BLOCKS_H
#define LS_EXEC_STORE_BLOCKS_H

#include "exec/store.h"

/* flat [3][nfloats]: copies master, m and v after `steps` steps, which must not change meanwhile.
 * LS_EINVAL: no area has all of them. */
ls_status ls_store_copy(ls_store *, int64_t steps, float *flat, ls_error *);
/* The same for what the worker owns by the plan; the rest of flat does not change. */
ls_status ls_store_copy_owned(ls_store *, const ls_plan *, int worker, int64_t steps, float *flat,
                              ls_error *);
/* The scaler of this state. */
ls_scaler ls_store_scaler_after(const ls_store *, int64_t steps);

/* By a worker of a new view, in its area: takes up from other areas what it owns by this plan.
 * missing [nfloats / LS_BLOCK]: 1 for a block that no area of this host has, else 0. */
void ls_store_adopt(ls_store *, const ls_plan *, int worker, unsigned char *missing);
/* has [nfloats / LS_BLOCK]: 1 for a block that some area of this host has, after all its steps. */
void ls_store_list_blocks(ls_store *, unsigned char *has);
/* Of a block: master, m and v, each [LS_BLOCK], are copied to, or become those of the worker's
 * area, after all steps. The block is there, or missing. */
void ls_store_read_block(ls_store *, size_t block, float *to);
void ls_store_write_block(ls_store *, int worker, size_t block, const float *from);

#endif
