/* best.c - see best.h. */
#include "storage/best.h"

#include <math.h>
#include <string.h>

bool ls_best_is_kept(const ls_config *c) {
    return c->checkpoint.best == LS_BEST_ON || c->train.patience > 0;
}

void ls_best_note(ls_best *b, int64_t step, double loss) {
    b->val_step = step;
    b->val_loss = loss;
    if (!isfinite(loss) || (b->step > 0 && b->step != step && !(loss < b->loss))) return;
    b->step = step;
    b->loss = loss;
}

int64_t ls_best_since(const ls_best *b, const ls_config *c, int64_t steps) {
    int64_t every = c->train.eval_every;
    return b->step > 0 && every > 0 ? steps / every - b->step / every : 0;
}

bool ls_best_ends(const ls_best *b, const ls_config *c, int64_t steps) {
    return c->train.patience > 0 && ls_best_since(b, c, steps) >= c->train.patience;
}

/* ---- from view to view ---- */

static int64_t bits_of(double x) {
    int64_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double double_of(int64_t bits) {
    double x = 0;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A worker killed between a step and its loss leaves a loss that is too high: that evaluation is
 * not noted as done, and is done again, after which the loss is right. */
void ls_best_save(const ls_best *b, ls_store *s) {
    ls_store_set(s, LS_STORE_BEST_STEP, b->step);
    ls_store_set(s, LS_STORE_BEST_LOSS, bits_of(b->loss));
    ls_store_set(s, LS_STORE_VAL_STEP, b->val_step);
    ls_store_set(s, LS_STORE_VAL_LOSS, bits_of(b->val_loss));
    ls_store_set(s, LS_STORE_VAL_SAMPLES, b->nsamples);
}

void ls_best_load(ls_best *b, const ls_store *s) {
    b->step = ls_store_get(s, LS_STORE_BEST_STEP);
    b->loss = double_of(ls_store_get(s, LS_STORE_BEST_LOSS));
    b->val_step = ls_store_get(s, LS_STORE_VAL_STEP);
    b->val_loss = double_of(ls_store_get(s, LS_STORE_VAL_LOSS));
    b->nsamples = ls_store_get(s, LS_STORE_VAL_SAMPLES);
}

/* ---- on disk ---- */

void ls_best_find(ls_best *b, const char *run, int64_t step) {
    *b = (ls_best){.nsamples = b->nsamples};
    if (step <= 0) return;
    b->step = ls_checkpoint_best(run, step, b->nsamples, &b->loss);
    if (ls_checkpoint_val(run, step, b->nsamples, &b->val_loss)) b->val_step = step;
}

void ls_best_describe(const ls_best *b, const ls_config *c, int64_t step, ls_checkpoint_extra *x) {
    bool evaluated = b->val_step == step && isfinite(b->val_loss);
    x->val_loss = evaluated ? b->val_loss : 0;
    x->val_samples = evaluated ? b->nsamples : 0;
    x->best_samples = ls_best_is_kept(c) ? b->nsamples : 0;
}
