/* scaler.h - the loss scale of training in f16, without which small gradients would vanish.
 *
 * The loss is multiplied by the scale before backward, and gradients divided by it in the update.
 * If a gradient overflows, all workers skip the step, since all know the same norm, and the scale
 * is halved; after a window of good steps it is doubled. Names and defaults are DeepSpeed's: the
 * first `hysteresis` - 1 overflows since the scale last grew only skip the step.
 *
 * Source: Micikevicius et al., "Mixed precision training", ICLR 2018, section 3.2.
 */
#ifndef LS_OPTIM_SCALER_H
#define LS_OPTIM_SCALER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ls_scaler_config {
    double initial, lowest;
    int64_t window, hysteresis;
} ls_scaler_config;

/* Part of the training state: saved in checkpoints. */
typedef struct ls_scaler {
    double scale;
    int64_t good;    /* steps since the scale last changed or a step overflowed */
    int64_t left;    /* overflows until the scale is halved */
    int64_t skipped; /* steps skipped so far */
} ls_scaler;

ls_scaler ls_scaler_start(const ls_scaler_config *);

/* Called after a step. False: it overflowed although the scale is the lowest, so training can't
 * continue. */
bool ls_scaler_next(ls_scaler *, const ls_scaler_config *, bool overflowed);

#endif
