/* export.h - the data of bench train, as files on which another program can train too.
 *
 *     DIR/weights.safetensors   the initial weights, by GPT-2's names
 *     DIR/tokens.u32            [steps][batch][context + 1] samples of each step, in order
 *     DIR/settings.json         shape, optimizer, the learning rate of each step
 */
#ifndef LS_PERF_EXPORT_H
#define LS_PERF_EXPORT_H

#include "train/host.h"

/* Creates the directory if necessary and replaces these files in it. */
ls_status ls_export(const ls_host *, const ls_dataset *, int64_t steps, const char *dir,
                    ls_error *);

#endif
