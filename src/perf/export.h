/* export.h - the data of bench train, as files on which another program can train too.
 *
 *     DIR/weights.safetensors   the initial weights, by the names of checkpoints
 *     DIR/tokens.u32            GPT-2's samples of each step, in order: [steps][batch][context + 1]
 *     DIR/samples.bin           other models' samples: [steps][batch][sample_bytes]
 *     DIR/settings.json         shape, fields of a sample, optimizer, the learning rate of each step
 */
#ifndef LS_PERF_EXPORT_H
#define LS_PERF_EXPORT_H

#include "train/host.h"

/* Creates the directory if necessary and replaces these files in it. */
ls_status ls_export(const ls_host *, const ls_dataset *, int64_t steps, const char *dir,
                    ls_error *);

#endif
