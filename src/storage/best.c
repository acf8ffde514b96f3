/* best.c - see best.h. */
#include "storage/best.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "storage/manifest.h"

bool ls_best_is_sought(const ls_config *c) {
    return c->checkpoint.best == LS_BEST_ON || c->train.patience > 0;
}

bool ls_best_is_retained(const ls_config *c) {
    return c->checkpoint.best == LS_BEST_AUTO || ls_best_is_sought(c);
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

static bool is_same(const ls_best *a, const ls_best *b) {
    return a->step == b->step && a->val_step == b->val_step && a->nsamples == b->nsamples &&
           memcmp(&a->loss, &b->loss, sizeof a->loss) == 0 &&
           memcmp(&a->val_loss, &b->val_loss, sizeof a->val_loss) == 0;
}

static ls_best read_note(const ls_best_record *n) {
    return (ls_best){.step = atomic_load(&n->step),
                     .loss = atomic_load(&n->loss),
                     .val_step = atomic_load(&n->val_step),
                     .val_loss = atomic_load(&n->val_loss),
                     .nsamples = atomic_load(&n->nsamples)};
}

void ls_best_save(const ls_best *b, ls_best_state *s) {
    int latest = atomic_load(&s->latest);
    ls_best there = read_note(&s->notes[latest]);
    ls_best_record *n = &s->notes[!latest];
    if (is_same(b, &there)) return;
    atomic_store(&n->step, b->step);
    atomic_store(&n->loss, b->loss);
    atomic_store(&n->val_step, b->val_step);
    atomic_store(&n->val_loss, b->val_loss);
    atomic_store(&n->nsamples, b->nsamples);
    atomic_store(&s->latest, !latest);
}

void ls_best_load(ls_best *b, const ls_best_state *s) {
    *b = read_note(&s->notes[atomic_load(&s->latest)]);
}

/* ---- on disk ---- */

void ls_best_find(ls_best *b, const char *run, int64_t step) {
    *b = (ls_best){.nsamples = b->nsamples};
    if (step <= 0) return;
    b->step = ls_checkpoint_best(run, step, b->nsamples, &b->loss);
    if (ls_checkpoint_val(run, step, b->nsamples, &b->val_loss)) b->val_step = step;
}

/* A checkpoint that was evaluated over fewer samples than its config asks for has the size of the
 * validation part, which may be smaller than train.eval_samples. */
static int64_t samples_of(const char *run, const ls_config *c, int64_t step) {
    char *folder = ls_checkpoint_path(run, step), *path = ls_format("%s/config.yaml", folder);
    ls_manifest m = {0};
    ls_config own;
    int64_t n = c->train.eval_samples, got = 0;
    bool found = ls_manifest_read(folder, &m, NULL) == LS_OK &&
                 ls_json_integer(ls_json_get(m.json, "val_samples"), &got) && got < n &&
                 ls_config_read(path, &own, NULL) == LS_OK;
    if (found && got < own.train.eval_samples) n = got;
    ls_manifest_free(&m);
    free(path);
    free(folder);
    return n;
}

bool ls_best_is_over(const char *run, const ls_config *c, int64_t step) {
    if (step >= c->train.steps) return true;
    if (step <= 0 || c->train.patience <= 0) return false;
    ls_best b = {.nsamples = samples_of(run, c, step)};
    ls_best_find(&b, run, step);
    return ls_best_ends(&b, c, step);
}

void ls_best_describe(const ls_best *b, const ls_config *c, int64_t step, ls_checkpoint_extra *x) {
    bool evaluated = b->val_step == step && isfinite(b->val_loss);
    x->val_loss = evaluated ? b->val_loss : 0;
    x->val_samples = evaluated ? b->nsamples : 0;
    x->best_samples = ls_best_is_retained(c) ? b->nsamples : 0;
}
