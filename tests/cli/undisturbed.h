/* undisturbed.h - runs of 60 steps that a test disturbs: they must end with the bits of a run that
 * nothing disturbed. */
#ifndef LS_TEST_UNDISTURBED_H
#define LS_TEST_UNDISTURBED_H

#include "cli/program.h"

/* The command line of a run, for printf(): its name, then what `steps` and `every` (between
 * checkpoints) ask for, then more options. */
#define TRAIN_LINE(steps, every)                                                                   \
    "train configs/tiny.yaml -n 2 -o @/%s " SMALLER "--set train.steps=" steps                     \
    " --set checkpoint.keep=3 --set checkpoint.every=" every                                       \
    " --set log.every=1000 --set train.eval_every=0 --set survival.balance=off%s"

static const char THREADS[] = " --set parallel.transport=thread";

static char undisturbed[256]; /* output of `ckpt hash` for the undisturbed run */

static inline void has_undisturbed_bits(const char *run) {
    assert_hash(run, undisturbed);
    expectf(0, ": clean: 60 steps", "ckpt ledger @/%s", run);
}

#endif
