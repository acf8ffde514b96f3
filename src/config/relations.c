/* relations.c - see relations.h. */
#include "config/relations.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "config/conflicts.h"
#include "config/groups.h"
#include "config/key.h"
#include "config/needs.h"
#include "config/own.h"

/* A tokenizer that is trained on the text has a token for each byte. */
static ls_status check_vocab(const ls_config *c, const char *where, ls_error *e) {
    bool came = *c->model.from || *c->train.from; /* with a tokenizer */
    if (!ls_config_has_text(c) || came || c->model.vocab >= 256) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: model.vocab is %lld; a tokenizer for a text has at least 256 tokens", where,
                   (long long)c->model.vocab);
}

static ls_status check_model(const ls_config *c, const char *where, ls_error *e) {
    int64_t width = c->model.width, heads = c->model.heads;
    bool has_heads =
        (ls_config_has_tokens(c) && !c->model.head_dim) || c->model.kind == LS_MODEL_VIT;
    bool has_list = *c->model.list.text != 0, is_list = c->model.kind == LS_MODEL_LAYERS;
    bool is_program = c->model.kind == LS_MODEL_PROGRAM;
    if (is_program && !ls_config_program()) {
        ls_config_owner o = ls_config_read_owner(where);
        return ls_fail(e, LS_EINVAL,
                       "%s: model.kind is program: only the program that has the model can use "
                       "this config; start that program%s%s",
                       where, *o.name ? ", " : "", o.name);
    }
    if (!is_program && ls_config_program())
        return ls_fail(e, LS_EINVAL,
                       "%s: model.kind: this program has a model of its own; leave the key out",
                       where);
    if (has_list != is_list)
        return ls_fail(e, LS_EINVAL,
                       is_list ? "%s: model.kind is layers, and model.layers is no list of layers"
                               : "%s: model.layers is a list; set model.kind: layers",
                       where);
    if (!has_heads || width % heads == 0) return LS_OK;
    ls_buf list = {0};
    for (int64_t h = 1, n = 0; h <= width && n < 12; h++) {
        if (width % h) continue;
        ls_buf_printf(&list, "%s%lld", n ? ", " : "", (long long)h);
        n++;
    }
    ls_status s = ls_fail(e, LS_EINVAL,
                          "%s: model.heads %lld does not divide model.width %lld; choose heads "
                          "among %s",
                          where, (long long)heads, (long long)width, list.data);
    ls_buf_free(&list);
    return s;
}

static ls_status check_experts(const ls_config *c, const char *where, ls_error *e) {
    if (*c->model.from || !c->model.experts || c->model.experts_per_token <= c->model.experts)
        return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: model.experts_per_token is %lld, and model.experts %lld; set at most %lld",
                   where, (long long)c->model.experts_per_token, (long long)c->model.experts,
                   (long long)c->model.experts);
}

/* Does V divide each batch, with train.micro_batch samples or more for each part? */
static bool fits_batches(const ls_config *c, int64_t V) {
    if (c->train.micro_batch > c->train.batch / V && V > 1) return false;
    for (int i = 0; i < c->train.nphases; i++)
        if (c->train.phases[i].batch % V != 0) return false;
    return c->train.batch % V == 0;
}

static ls_status check_batch(const ls_config *c, int64_t B, const char *where, ls_error *e) {
    int64_t V = c->train.virtual_workers, below = B / V * V, fewer = V;
    char nearby[64];
    if (B % V == 0) return LS_OK;
    while (!fits_batches(c, fewer)) fewer--;
    if (below)
        snprintf(nearby, sizeof nearby, "%lld or %lld", (long long)below, (long long)(below + V));
    else
        snprintf(nearby, sizeof nearby, "%lld", (long long)V);
    return ls_fail(e, LS_EINVAL,
                   "%s: train.virtual_workers %lld does not divide train.batch %lld; a batch of %s "
                   "works, or train.virtual_workers %lld",
                   where, (long long)V, (long long)B, nearby, (long long)fewer);
}

static ls_status check_train(const ls_config *c, const char *where, ls_error *e) {
    int64_t B = c->train.batch, V = c->train.virtual_workers;
    LS_TRY(check_batch(c, B, where, e));
    for (int i = 0; i < c->train.nphases; i++)
        LS_TRY(check_batch(c, c->train.phases[i].batch, where, e));
    if (c->train.micro_batch > B / V)
        return ls_fail(
            e, LS_EINVAL,
            "%s: train.micro_batch %lld is more than the samples of a virtual worker: %lld "
            "(train.batch %lld / train.virtual_workers %lld)",
            where, (long long)c->train.micro_batch, (long long)(B / V), (long long)B, (long long)V);
    return LS_OK;
}

/* The optimizer of a group of parameters goes with what it would go with as that of all. */
static ls_status check_groups(const ls_config *c, const char *where, ls_error *e) {
    ls_config_group groups[LS_CONFIG_GROUPS];
    int n = 0;
    LS_TRY(ls_config_read_groups(c, where, groups, &n, e));
    for (int i = 0; i < n; i++) {
        ls_config with = *c;
        with.optim.optimizer = groups[i].with.optimizer;
        LS_TRY(ls_config_check_conflicts(&with, where, e));
    }
    return LS_OK;
}

static ls_status check_data(const ls_config *c, const char *where, ls_error *e) {
    long long folds = (long long)c->data.folds, fold = (long long)c->data.fold;
    bool any = ls_config_program_takes_any_data();
    if (ls_config_program_has_data() && !any &&
        (*c->data.path || *c->data.val_path || *c->data.mix))
        return ls_fail(e, LS_EINVAL, "%s: %s: this program has data of its own; leave the key out",
                       where,
                       *c->data.path       ? "data.path"
                       : *c->data.val_path ? "data.val_path"
                                           : "data.mix");
    if (!*c->data.path && !*c->data.mix && !ls_config_program_has_data() && !any)
        return ls_fail(e, LS_EINVAL, "%s: data.path is missing; set data.path to %s", where,
                       ls_config_has_text(c) ? "a UTF-8 text" : "files of data");
    if (folds == 1 || (folds && fold >= folds))
        return ls_fail(e, LS_EINVAL,
                       "%s: data.fold %lld of data.folds %lld is not possible; use 2 or more "
                       "folds, and a fold from 0 to data.folds - 1",
                       where, fold, folds);
    return LS_OK;
}

static ls_status check_replicas(const ls_config *c, const char *where, ls_error *e) {
    int64_t every = ls_config_sync_every(c), interval = every / c->sync.fragments;
    if (!ls_config_has_replicas(c) || c->sync.mode == LS_SYNC_GOSSIP) return LS_OK;
    if (interval == 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: sync.fragments %lld is more than sync.every %lld; use at most one "
                       "fragment a step",
                       where, (long long)c->sync.fragments, (long long)every);
    if (c->sync.delay < interval) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: sync.delay %lld must be less than sync.every / sync.fragments, %lld", where,
                   (long long)c->sync.delay, (long long)interval);
}

/* Each degree is at most the number of parts that its workers divide. */
static ls_status check_degrees(const ls_config *c, const char *where, ls_error *e) {
    const struct {
        const char *key, *parts;
        int64_t degree, most;
    } of[] = {{"tensor", "slices of parallel.tensor_virtual", c->parallel.mesh_tensor,
               c->parallel.tensor_virtual},
              {"context", "chunks of parallel.context_virtual", c->parallel.mesh_context,
               c->parallel.context_virtual},
              {"expert", "samples and groups of experts of parallel.expert_virtual",
               c->parallel.mesh_expert, c->parallel.expert_virtual}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].degree > of[i].most)
            return ls_fail(e, LS_EINVAL,
                           "%s: parallel.mesh.%s %lld: these workers divide the %s, which is %lld; "
                           "set parallel.%s_virtual to %lld, or a multiple, or use at most %lld",
                           where, of[i].key, (long long)of[i].degree, of[i].parts,
                           (long long)of[i].most, of[i].key, (long long)of[i].degree,
                           (long long)of[i].most);
    return LS_OK;
}

/* When rows of tables are trained, and how long they stay. */
static ls_status check_rows(const ls_config *c, const char *where, ls_error *e) {
    const char *key = c->model.filter_freq     ? "model.filter_freq"
                      : c->model.steps_to_live ? "model.steps_to_live"
                                               : NULL;
    int64_t most = 1 << 24; /* steps that a float can count */
    if (!key) return LS_OK;
    if (c->train.steps <= most) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s counts steps up to %lld; train.steps %lld are more", where,
                   key, (long long)most, (long long)c->train.steps);
}

ls_status ls_config_check_steps(const ls_config *c, const char *where, ls_error *e) {
    LS_TRY(check_rows(c, where, e));
    if (!c->train.steps || c->optim.warmup.unit != LS_SPAN_STEPS ||
        c->optim.warmup.n <= (double)c->train.steps)
        return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: optim.warmup %.15g is more than train.steps %lld", where,
                   c->optim.warmup.n, (long long)c->train.steps);
}

static ls_status check_length(const ls_config *c, const char *where, ls_error *e) {
    if (!ls_config_is_written(c, "train.epochs") || !ls_config_is_written(c, "train.steps"))
        return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: train.epochs and train.steps both say how long the run is; leave one of "
                   "them out",
                   where);
}

/* A run can't keep more workers than it can have. */
static ls_status check_least(const ls_config *c, const char *where, ls_error *e) {
    int64_t least = c->survival.min_workers, most = c->survival.max_workers;
    if (ls_config_has_crew(c)) return LS_OK; /* of workers that come and go */
    if (least > ls_config_most_workers(c))
        return ls_fail(e, LS_EINVAL,
                       "%s: survival.min_workers %lld is more than train.virtual_workers %lld, "
                       "which is the most workers that a run can have",
                       where, (long long)least, (long long)c->train.virtual_workers);
    if (most && least > most)
        return ls_fail(e, LS_EINVAL,
                       "%s: survival.min_workers %lld is more than survival.max_workers %lld",
                       where, (long long)least, (long long)most);
    return LS_OK;
}

ls_status ls_config_check(const ls_config *c, const char *where, ls_error *e) {
    LS_TRY(check_length(c, where, e));
    LS_TRY(ls_config_check_steps(c, where, e));
    LS_TRY(check_model(c, where, e));
    LS_TRY(ls_config_check_conflicts(c, where, e));
    LS_TRY(ls_config_check_needs(c, false, where, e));
    LS_TRY(check_vocab(c, where, e));
    LS_TRY(check_experts(c, where, e));
    LS_TRY(check_train(c, where, e));
    LS_TRY(check_data(c, where, e));
    LS_TRY(check_replicas(c, where, e));
    LS_TRY(check_degrees(c, where, e));
    LS_TRY(check_least(c, where, e));
    if (c->optim.loss_scale < c->optim.loss_scale_min)
        return ls_fail(e, LS_EINVAL, "%s: optim.loss_scale %g is below optim.loss_scale_min %g",
                       where, c->optim.loss_scale, c->optim.loss_scale_min);
    bool falls = c->optim.schedule != LS_SCHEDULE_CONSTANT && c->optim.schedule != LS_SCHEDULE_STEP;
    if (falls && c->optim.min_lr > c->optim.lr)
        return ls_fail(
            e, LS_EINVAL,
            "%s: optim.min_lr %g is more than optim.lr %g; set optim.min_lr=0, or a lower one",
            where, c->optim.min_lr, c->optim.lr);
    return check_groups(c, where, e);
}

static void lower_min_lr(ls_config *c) {
    char tenth[32]; /* as a person would write it */
    if (c->optim.min_lr <= c->optim.lr || ls_config_is_written(c, "optim.min_lr")) return;
    snprintf(tenth, sizeof tenth, "%.6g", c->optim.lr / 10);
    c->optim.min_lr = strtod(tenth, NULL);
}

static void fit_virtual_workers(ls_config *c) {
    static const char key[] = "train.virtual_workers";
    if (!ls_config_leaves_out(c, key)) return;
    ls_config_key_reset(c, ls_config_key_find(key));
    while (!fits_batches(c, c->train.virtual_workers)) c->train.virtual_workers--;
}

void ls_config_fit_defaults(ls_config *c) {
    lower_min_lr(c);
    fit_virtual_workers(c);
}

static ls_status set_all(ls_config *c, const char *const *sets, int nsets, ls_error *e) {
    const ls_config_sets s = {sets, nsets, "--set"};
    if (ls_config_sets_key(&s, "train.epochs") && ls_config_sets_key(&s, "train.steps"))
        return ls_fail(e, LS_EINVAL,
                       "--set: train.epochs and train.steps both say how long the run is; leave "
                       "one of them out");
    return ls_config_set_all(c, &s, e);
}

/* Logs the keys of the file that don't act any more: one with the reason, several by name. */
static void log_idle(const char *path, char *notes) {
    ls_buf keys = {0};
    int n = 0;
    for (char *s = notes; s && *s; s = strchr(s, '\n') + 1, n++)
        ls_buf_printf(&keys, "%s%.*s", n ? ", " : "", (int)strcspn(s, " "), s);
    if (n == 1) ls_log("%s: not used: %.*s", path, (int)strcspn(notes, "\n"), notes);
    if (n > 1)
        ls_log("%s: not used, since other keys are set: %s; `lockstep help KEY` prints what a key "
               "needs",
               path, keys.data);
    ls_buf_free(&keys);
}

ls_status ls_config_load(const char *path, const char *const *sets, int nsets, ls_config *c_p,
                         ls_error *e) {
    ls_buf notes = {0};
    LS_TRY(ls_config_read(path, c_p, e));
    ls_config_settle(c_p);
    LS_TRY(set_all(c_p, sets, nsets, e));
    ls_config_drop_idle(c_p, &notes);
    ls_config_fit_defaults(c_p);
    ls_status s = ls_config_check(c_p, path, e);
    if (s == LS_OK) log_idle(path, notes.data);
    ls_buf_free(&notes);
    return s;
}

ls_status ls_config_read_saved(const char *path, ls_config *c_p, ls_error *e) {
    ls_buf text = {0};
    LS_TRY(ls_file_read(path, SIZE_MAX, &text, e));
    bool ends = text.len > 0 && text.data[text.len - 1] == '\n';
    ls_buf_free(&text);
    if (!ends)
        return ls_fail(e, LS_EINVAL,
                       "%s: is empty or cut short: its last line does not end; each checkpoint of "
                       "the run has a copy of it",
                       path);
    return ls_config_read(path, c_p, e);
}

ls_status ls_config_load_saved(const char *path, const char *const *sets, int nsets, ls_config *c_p,
                               ls_error *e) {
    LS_TRY(ls_config_read_saved(path, c_p, e));
    ls_config_forget_written(c_p);
    LS_TRY(set_all(c_p, sets, nsets, e));
    return ls_config_check(c_p, path, e);
}

bool ls_config_fits_tokens(const ls_config *c, uint32_t ntokens) {
    bool came = *c->model.from || *c->train.from;
    return ntokens == c->model.vocab || (came && ntokens < c->model.vocab);
}

const char *ls_config_origin(const ls_config *c) {
    return *c->train.from ? c->train.from : c->model.from;
}
