/* export_bench.h - the data of bench train, as files on which another program can train too.
 *
 *     DIR/weights.safetensors   the weights before the first step, by the names of checkpoints
 *     DIR/tokens.u32            a language model's samples of each step, in order:
 *                               [steps][batch][context + 1]
 *     DIR/samples.bin           other models' samples: [steps][batch][sample_bytes]
 *     DIR/config.yaml           all keys of the config
 *     DIR/settings.json         fields of a sample, parameters with weight decay, the learning rate
 *                               of each step
 *     DIR/trained.safetensors   the weights after the steps
 */
#ifndef LS_PERF_EXPORT_BENCH_H
#define LS_PERF_EXPORT_BENCH_H

#include "train/member.h"

/* Creates the directory if necessary and replaces these files in it, but for those of weights, and
 * for samples of pairs, whose reference only workers can compute. Refuses steps beyond the end of
 * an epoch whose last batch is short. */
ls_status ls_export(const ls_host *, const ls_dataset *, int64_t steps, const char *dir,
                    ls_error *);
/* The samples alone. */
ls_status ls_export_samples(const ls_run *, const ls_dataset *, int64_t steps, const char *dir,
                            ls_error *);
/* Collective. Writes the weights as they are now to DIR/NAME. */
ls_status ls_export_weights(ls_member *, const char *dir, const char *name, ls_error *);

#endif
