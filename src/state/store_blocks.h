/* store_blocks.h - copies blocks of the state: between areas, between hosts, and for checkpoints.
 */
#ifndef LS_STATE_STORE_BLOCKS_H
#define LS_STATE_STORE_BLOCKS_H

#include "state/store.h"

/* flat [1 + states][nfloats]: copies the f32 parameters and the optimizer's states after `steps`
 * steps, which must not change meanwhile. LS_EINVAL: no area has all of them. */
ls_status ls_store_copy(ls_store *, int64_t steps, float *flat, ls_error *);
/* As above, for what the worker owns; the rest of flat does not change. */
ls_status ls_store_copy_owned(ls_store *, const ls_share *, int worker, int64_t steps, float *flat,
                              ls_error *);
/* errors [nfloats]: copies what encoding has lost of the gradients of virtual worker vw after
 * `steps` steps. LS_EINVAL: this host does not have it. */
ls_status ls_store_copy_errors(ls_store *, const ls_share *, int64_t steps, int vw, float *errors,
                               ls_error *);
/* The scaler of this state. */
ls_scaler ls_store_scaler_after(const ls_store *, int64_t steps);

/* changes [islands]: those that each island has had on this host, as a whole, where some areas are
 * ahead of ls_store_steps(), but not of `last`. */
void ls_store_find_ahead(const ls_store *, const ls_share *, int64_t last, int64_t *changes);
/* By a worker of a new view: copies the blocks that it owns by this plan from other areas to its
 * own. missing [nfloats / LS_BLOCK]: 1 for a block that no area of this host has, else 0. */
void ls_store_adopt(ls_store *, const ls_share *, int worker, unsigned char *missing);
/* has [nfloats / LS_BLOCK]: 1 for a block that some area of this host has, after all steps. */
void ls_store_list_blocks(ls_store *, unsigned char *has);
/* Copy a block of each of these buffers, [1 + states][LS_BLOCK], after all steps: from an area that
 * has it, and into the worker's area, which lacks it. */
void ls_store_read_block(ls_store *, size_t block, float *to);
void ls_store_write_block(ls_store *, int worker, size_t block, const float *from);

#endif
