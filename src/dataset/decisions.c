/* decisions.c - see decisions.h. */
#include "dataset/decisions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/intern.h"
#include "config/key.h"
#include "config/relations.h"
#include "data/batches.h"
#include "dataset/images.h"
#include "dataset/moments.h"
#include "dataset/opened.h"
#include "networks/losses.h"
#include "networks/network.h"
#include "networks/pixels.h"
#include "networks/program_model.h"
#include "networks/scales.h"
#include "source/note.h"

/* The config of a run or checkpoint, which the caller frees. NULL: it has none yet. */
static ls_config *config_of(const char *dir) {
    char *path = ls_format("%s/config.yaml", dir);
    ls_config *c = LS_NEW(ls_config);
    bool there = ls_file_exists(path) && ls_config_read(path, c, NULL) == LS_OK;
    free(path);
    if (there) return c;
    free(c);
    return NULL;
}

/* ---- steps ---- */

bool ls_decisions_have_steps(const ls_config *c) {
    bool table = c->model.kind == LS_MODEL_MLP && !ls_config_has_tokens(c) &&
                 !ls_config_has_ratings(c) && !ls_config_has_clicks(c);
    int steps = ls_config_key_index(ls_config_key_find("train.steps"));
    return table && c->train.epochs <= 0 && c->written[steps] == LS_NOT_WRITTEN;
}

/* The usual steps are too many for a table of a hundred rows, which is then learned by heart, and
 * too few for one of thousands (docs/measured/agreement.md): from 20 to 50 epochs are taken, and at
 * most 20000 steps. */
static ls_status choose_steps(ls_config *c, uint64_t nsamples, ls_error *e) {
    enum { LEAST = 20, MOST = 50, MOST_STEPS = 20000 };
    ls_split s;
    const ls_batches b = ls_batches_of(c);
    LS_TRY(ls_opened_split(c, nsamples, &s, e));
    int64_t least = ls_batches_steps(&b, LEAST * (double)s.ntrain, s.ntrain, MOST_STEPS);
    int64_t most = ls_batches_steps(&b, MOST * (double)s.ntrain, s.ntrain, MOST_STEPS);
    int64_t usual = c->train.steps;
    if (c->train.steps < least) c->train.steps = least;
    if (c->train.steps > most) c->train.steps = most;
    if (ls_config_check_steps(c, "", NULL) != LS_OK) { /* another key needs more, e.g. the warmup */
        c->train.steps = usual;
        return LS_OK;
    }
    const ls_batch end = ls_batches_at(&b, (uint64_t)c->train.steps, s.ntrain);
    ls_note(
        "train.steps: %lld, %.3g epochs of %llu samples (train.steps or train.epochs say others)",
        (long long)c->train.steps, (double)end.epoch + (double)end.first / (double)s.ntrain,
        (unsigned long long)s.ntrain);
    return ls_config_check_steps(c, "train.steps", e);
}

/* ---- what was decided before ---- */

static void take_decisions(ls_config *c, const ls_config *from) {
    if (!*c->model.input.text) c->model.input = from->model.input;
    if (!c->model.classes) c->model.classes = from->model.classes;
    if (!*c->data.resize) c->data.resize = from->data.resize;
    if (ls_pixels_are_open(c) || ls_scales_are_unsaid(c)) c->data.normalize = from->data.normalize;
}

/* Takes over what the run's own config has. False: the run has none yet. */
static bool take_up(ls_config *c, const char *run) {
    ls_config *was = config_of(run);
    if (was) take_decisions(c, was);
    if (was && ls_decisions_have_steps(c)) c->train.steps = was->train.steps;
    free(was);
    return was != NULL;
}

static bool have_same_losses(const ls_losses *a, const ls_losses *b) {
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++)
        same = a->list[i].entry == b->list[i].entry &&
               strcmp(a->list[i].target, b->list[i].target) == 0;
    return same;
}

/* Do both predict the same fields by the same kind of model? */
static bool have_same_task(const ls_config *a, const ls_config *b) {
    ls_losses x, y;
    if (a->model.kind != b->model.kind || ls_losses_read(a, &x, NULL) != LS_OK) return false;
    bool is_read = ls_losses_read(b, &y, NULL) == LS_OK;
    bool same = is_read && have_same_losses(&x, &y);
    if (is_read) ls_losses_free(&y);
    ls_losses_free(&x);
    return same;
}

/* A new run that begins with the weights of another reads numbers and pixels as that one does, or
 * the weights would see other inputs. False: the other has no config, or another model or loss. */
static bool take_base(ls_config *c) {
    ls_config *base = *c->train.from ? config_of(c->train.from) : NULL;
    bool matches = base && have_same_task(base, c);
    bool asks = ls_pixels_are_open(c) || ls_scales_are_unsaid(c);
    if (matches) take_decisions(c, base);
    if (matches && asks && *base->data.normalize.text)
        ls_note("data.normalize: numbers are scaled as in train.from, %s", c->train.from);
    free(base);
    return matches;
}

/* may_lack: there may be nothing to measure. */
static ls_status measure(ls_config *c, const ls_opened *o, bool may_lack, const char *name,
                         ls_error *e) {
    ls_split s;
    bool reads_numbers = c->model.kind == LS_MODEL_MLP || c->model.kind == LS_MODEL_LAYERS;
    LS_TRY(ls_opened_split(c, o->source->count, &s, e));
    if (ls_source_image(o->files) || !reads_numbers)
        return ls_images_measure(c, o->files, &s, name, e);
    LS_TRY(ls_moments_measure(c, o->files, &s, e));
    if (!ls_pixels_are_open(c)) return LS_OK;
    c->data.normalize.text = "";
    return may_lack ? LS_OK
                    : ls_fail(e, LS_EINVAL,
                              "%s: has neither images nor columns of numbers that "
                              "the model reads; leave data.normalize out",
                              name);
}

/* What the data have decided about images and numbers. */
static ls_status resolve_scales(ls_config *c, const ls_opened *o, bool unsaid, ls_error *e) {
    if (o->source->side) {
        char side[16];
        snprintf(side, sizeof side, "%lld", (long long)o->source->side);
        c->data.resize = ls_intern(side);
    }
    if (!ls_pixels_are_open(c)) return LS_OK;
    char *name = ls_opened_name(ls_opened_train_name(c));
    ls_status status = measure(c, o, unsaid, name, e);
    free(name);
    return status;
}

static bool has_files(const ls_config *c) { return *c->data.path || *c->data.mix; }

static ls_status resolve_open(ls_config *c, const char *run, ls_error *e) {
    ls_opened o = {0};
    bool asks = ls_network_is_open(c) || ls_scales_are_unsaid(c);
    bool taken = asks && ((run && take_up(c, run)) || take_base(c));
    bool begins = !taken && !ls_program_has_data();
    bool unsaid = begins && ls_scales_are_unsaid(c), open = ls_network_is_open(c);
    if (!open && !(unsaid && has_files(c))) return LS_OK;
    ls_status s = ls_opening_unbuilt(c, false, &o, open ? e : NULL);
    if (s != LS_OK) return open ? s : LS_OK; /* opening them to read them will fail */
    if (unsaid && !ls_source_image(o.source)) c->data.normalize.text = "auto";
    if (open) s = ls_network_resolve(c, o.source, e);
    if (s == LS_OK) s = resolve_scales(c, &o, unsaid, e);
    if (s == LS_OK && begins && ls_decisions_have_steps(c) && !ls_source_image(o.source))
        s = choose_steps(c, o.source->count, e);
    ls_source_close(o.source);
    return s;
}

ls_status ls_decisions_take(ls_config *c, const char *run, ls_error *e) {
    LS_TRY(resolve_open(c, run, e));
    ls_network_choose_micro(c);
    return LS_OK;
}
