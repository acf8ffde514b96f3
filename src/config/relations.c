/* relations.c - see relations.h. */
#include "config/relations.h"

#include <stdio.h>
#include <string.h>

#include "config/groups.h"
#include "config/keys.h"
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
    bool has_norm = c->model.kind == LS_MODEL_CNN || c->model.kind == LS_MODEL_RESNET;
    if (is_program != (ls_config_program() != NULL))
        return ls_fail(e, LS_EINVAL,
                       is_program ? "%s: model.kind is program: only the program that has the "
                                    "model can use this config; start that program"
                                  : "%s: model.kind: this program has a model of its own; leave "
                                    "the key out",
                       where);
    if (has_list != is_list)
        return ls_fail(e, LS_EINVAL,
                       is_list ? "%s: model.kind is layers, and model.layers is no list of layers"
                               : "%s: model.layers is a list; set model.kind: layers",
                       where);
    if (c->model.norm == LS_NORM_BATCH && !has_norm)
        return ls_fail(
            e, LS_EINVAL,
            "%s: model.norm is batch, which only the kinds cnn and resnet use; leave the "
            "key out",
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
    if (*c->model.from) return LS_OK;
    if (c->model.experts && c->model.kind != LS_MODEL_LLAMA)
        return ls_fail(e, LS_EINVAL,
                       "%s: model.experts is %lld; only models of kind llama have experts, and "
                       "lists of layers by `moe`",
                       where, (long long)c->model.experts);
    if (c->model.experts && c->model.experts_per_token > c->model.experts)
        return ls_fail(e, LS_EINVAL,
                       "%s: model.experts_per_token is %lld, and model.experts %lld; set at most "
                       "%lld",
                       where, (long long)c->model.experts_per_token, (long long)c->model.experts,
                       (long long)c->model.experts);
    if (c->model.shared_experts && !c->model.experts)
        return ls_fail(e, LS_EINVAL,
                       "%s: model.shared_experts is %lld, and model.experts is 0; set that, e.g. "
                       "model.experts: 8",
                       where, (long long)c->model.shared_experts);
    if (c->model.router_bias_rate > 0 && (!c->model.experts || *c->model.from))
        return ls_fail(e, LS_EINVAL, "%s: model.router_bias_rate is %g, and %s; set it to 0", where,
                       c->model.router_bias_rate,
                       c->model.experts ? "published models (model.from) have no such biases"
                                        : "model.experts is 0");
    if (c->model.expert_capacity > 0 && !c->model.experts)
        return ls_fail(e, LS_EINVAL,
                       "%s: model.expert_capacity is %g, and model.experts is 0; set that, e.g. "
                       "model.experts: 8",
                       where, c->model.expert_capacity);
    return LS_OK;
}

static ls_status check_lora(const ls_config *c, const char *where, ls_error *e) {
    if (*c->model.adapter && (!*c->model.from || *c->train.from))
        return ls_fail(e, LS_EINVAL,
                       "%s: model.adapter: is an adapter of a published model: set model.from to "
                       "that, and leave train.from out",
                       where);
    bool has =
        c->lora.rs || c->lora.dora || c->lora.dropout > 0 || *c->lora.targets || *c->lora.train;
    if (has && !c->lora.rank)
        return ls_fail(e, LS_EINVAL,
                       "%s: keys of lora are set, and lora.rank is 0; set it, e.g. lora.rank: 16",
                       where);
    if (c->lora.rank && c->model.kind != LS_MODEL_LLAMA && !*c->model.from)
        return ls_fail(
            e, LS_EINVAL,
            "%s: lora.rank: only models of kind llama can have adapters; set model.from, "
            "or model.kind: llama",
            where);
    return LS_OK;
}

static ls_status check_dpo(const ls_config *c, const char *where, ls_error *e) {
    bool is_dpo = c->train.loss == LS_TRAIN_LOSS_DPO;
    if (is_dpo && !ls_config_has_chats(c))
        return ls_fail(e, LS_EINVAL,
                       "%s: train.loss is dpo, which needs pairs of answers: set data.format: chat",
                       where);
    if (is_dpo && c->data.packing)
        return ls_fail(
            e, LS_EINVAL,
            "%s: data.packing is on; with train.loss dpo a sample is one pair: remove it", where);
    if (is_dpo && c->data.loss != LS_CHAT_OF_ASSISTANT)
        return ls_fail(e, LS_EINVAL,
                       "%s: data.loss is for conversations; with train.loss dpo the chosen and the "
                       "rejected answers count: remove it",
                       where);
    bool has_keys = c->dpo.loss || c->dpo.label_smoothing > 0;
    if (!is_dpo && has_keys)
        return ls_fail(e, LS_EINVAL,
                       "%s: keys of dpo are set, and train.loss is auto; set train.loss: dpo",
                       where);
    if (c->dpo.loss != LS_DPO_OF_SIGMOID && c->dpo.label_smoothing > 0)
        return ls_fail(e, LS_EINVAL, "%s: dpo.label_smoothing is for dpo.loss sigmoid; remove it",
                       where);
    return LS_OK;
}

static ls_status check_compress(const ls_config *c, const char *where, ls_error *e) {
    ls_config usual;
    ls_config_defaults(&usual);
    bool has_keys = memcmp(&c->compress, &usual.compress, sizeof usual.compress) != 0 &&
                    !ls_config_sends_momentum(&c->optim);
    if (c->compress.kind == LS_COMPRESS_OFF && has_keys)
        return ls_fail(e, LS_EINVAL,
                       "%s: keys of compress are set, and compress.kind is none; set it, e.g. "
                       "compress.kind: topk",
                       where);
    if (c->compress.kind != LS_COMPRESS_OFF && c->sync.mode != LS_SYNC_ALL_REDUCE)
        return ls_fail(e, LS_EINVAL,
                       "%s: compress.kind compresses the sums of sync.mode all_reduce; set one of "
                       "the two",
                       where);
    if (c->compress.kind == LS_COMPRESS_WITH_POWERSGD &&
        c->compress.send == LS_COMPRESS_SEND_VALUES)
        return ls_fail(e, LS_EINVAL,
                       "%s: compress.kind powersgd sends factors, and compress.send is values; "
                       "leave it out",
                       where);
    return LS_OK;
}

/* Each worker encodes the whole first moment, in which gradients are as they are. */
static ls_status check_momentum(const ls_config *c, const char *where, ls_error *e) {
    const char *other = c->parallel.zero != 0                  ? "needs parallel.zero: 0"
                        : c->parallel.reduce != LS_REDUCE_TREE ? "needs parallel.reduce: tree"
                        : c->train.compute == LS_COMPUTE_F16   ? "needs train.compute: f32 or bf16"
                        : c->compress.kind != LS_COMPRESS_OFF ? "is not possible with compress.kind"
                        : c->sync.mode != LS_SYNC_ALL_REDUCE  ? "needs sync.mode: all_reduce"
                        : *c->optim.groups                    ? "is not possible with optim.groups"
                        : c->optim.freeze_step == 0 ? "needs optim.freeze_step, steps, e.g. a "
                                                      "fifth of train.steps"
                                                    : NULL;
    if (!ls_config_sends_momentum(&c->optim)) {
        if (c->optim.freeze_step == 0) return LS_OK;
        return ls_fail(e, LS_EINVAL,
                       "%s: optim.freeze_step is for optim.optimizer onebit_adam and onebit_lamb; "
                       "set one, or leave the key out",
                       where);
    }
    if (!other) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: optim.optimizer %s %s", where,
                   c->optim.optimizer == LS_OPTIMIZER_ONEBIT_ADAM ? "onebit_adam" : "onebit_lamb",
                   other);
}

static ls_status check_batch(const ls_config *c, int64_t B, const char *where, ls_error *e) {
    int64_t V = c->train.virtual_workers, below = B / V * V;
    char nearby[64];
    if (B % V == 0) return LS_OK;
    if (below)
        snprintf(nearby, sizeof nearby, "%lld or %lld", (long long)below, (long long)(below + V));
    else
        snprintf(nearby, sizeof nearby, "%lld", (long long)V);
    return ls_fail(e, LS_EINVAL,
                   "%s: train.virtual_workers %lld does not divide train.batch %lld; a batch of %s "
                   "works",
                   where, (long long)V, (long long)B, nearby);
}

/* It compares gradients of virtual workers, which must be those that are summed. */
static ls_status check_noise(const ls_config *c, const char *where, ls_error *e) {
    const char *key = !c->train.noise_scale                  ? NULL
                      : c->sync.mode                         ? "sync.mode"
                      : c->compress.kind                     ? "compress.kind"
                      : ls_config_sends_momentum(&c->optim)  ? "optim.optimizer"
                      : c->model.sparse                      ? "model.sparse"
                      : c->parallel.reduce != LS_REDUCE_TREE ? "parallel.reduce"
                      : c->train.virtual_workers < 2         ? "train.virtual_workers"
                                                             : NULL;
    if (!key) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: train.noise_scale compares the gradients of two or more virtual workers, "
                   "which is not possible with this value of %s; leave one of them out",
                   where, key);
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

/* Its average takes the place of a falling learning rate. */
static ls_status check_schedule_free(const ls_config *c, const char *where, ls_error *e) {
    if (c->optim.schedule != LS_SCHEDULE_CONSTANT)
        return ls_fail(e, LS_EINVAL,
                       "%s: optim.optimizer is schedule-free, and optim.schedule is not constant; "
                       "set optim.schedule=constant",
                       where);
    if (c->optim.warmup.unit != LS_SPAN_STEPS || (c->train.nphases && c->optim.scale_lr))
        return ls_fail(e, LS_EINVAL,
                       "%s: optim.optimizer is schedule-free, whose average needs optim.warmup in "
                       "steps, and after it one learning rate: %s",
                       where,
                       c->optim.warmup.unit ? "set optim.warmup to a number"
                                            : "train.batch grows, so leave out optim.scale_lr");
    if (c->optim.ema > 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: optim.optimizer is schedule-free, which is an average of weights, and "
                       "optim.ema is %g; leave out optim.ema",
                       where, c->optim.ema);
    return LS_OK;
}

/* A batch that lr is meant for belongs to a scaled lr. */
static ls_status check_scale(const ls_config *c, const char *where, ls_error *e) {
    if ((c->optim.scale_lr != LS_SCALE_OFF) == (c->optim.scale_batch > 0)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: optim.%s is set without optim.%s; set both, or neither",
                   where, c->optim.scale_batch ? "scale_batch" : "scale_lr",
                   c->optim.scale_batch ? "scale_lr" : "scale_batch");
}

/* A momentum that no update uses would be silently ignored. */
static ls_status check_optimizers(const ls_config *c, const char *where, ls_error *e) {
    ls_config_group groups[LS_CONFIG_GROUPS];
    int n = 0;
    LS_TRY(ls_config_read_groups(c, where, groups, &n, e));
    LS_TRY(check_scale(c, where, e));
    bool any_momentum = false, has_plain_nesterov = false;
    for (int i = -1; i < n; i++) {
        const ls_config_optim *o = i < 0 ? &c->optim : &groups[i].with;
        bool is_sgd = o->optimizer == LS_OPTIMIZER_SGD;
        bool has_momentum =
            is_sgd || o->optimizer == LS_OPTIMIZER_LARS || o->optimizer == LS_OPTIMIZER_MUON;
        if (o->optimizer == LS_OPTIMIZER_SCHEDULE_FREE) LS_TRY(check_schedule_free(c, where, e));
        any_momentum = any_momentum || has_momentum;
        has_plain_nesterov = has_plain_nesterov || (is_sgd && o->nesterov && o->momentum == 0);
    }
    if (has_plain_nesterov)
        return ls_fail(
            e, LS_EINVAL,
            "%s: optim.nesterov is on, and optim.momentum is 0; set optim.momentum, e.g. "
            "to 0.9",
            where);
    if (any_momentum || (c->optim.momentum == 0 && !c->optim.nesterov)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: optim.%s is set, and only optim.optimizer=sgd, lars and muon use it; the "
                   "betas are those of the other optimizers",
                   where, c->optim.momentum > 0 ? "momentum" : "nesterov");
}

/* A text has no labels, and its validation part is its end. */
static ls_status check_text(const ls_config *c, const char *where, ls_error *e) {
    const char *key = *c->data.labels       ? "data.labels"
                      : *c->data.val_path   ? "data.val_path"
                      : *c->data.val_labels ? "data.val_labels"
                      : c->data.folds       ? "data.folds"
                      : *c->data.augment    ? "data.augment"
                      : *c->data.mix        ? "data.mix"
                      : c->data.missing     ? "data.missing"
                                            : NULL;
    if (!key) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: %s is for samples of files, and this run trains on a text; remove it, or "
                   "set data.format",
                   where, key);
}

/* Conversations need a tokenizer and positions by text. */
static ls_status check_chats(const ls_config *c, const char *where, ls_error *e) {
    const char *key = *c->data.labels       ? "data.labels"
                      : *c->data.val_labels ? "data.val_labels"
                      : *c->data.augment    ? "data.augment"
                      : *c->data.mix        ? "data.mix"
                      : c->data.missing     ? "data.missing"
                                            : NULL;
    if (key)
        return ls_fail(e, LS_EINVAL,
                       "%s: %s is not for conversations (data.format: chat); remove it", where,
                       key);
    if (c->model.kind != LS_MODEL_LLAMA && !*c->model.from)
        return ls_fail(e, LS_EINVAL,
                       "%s: data.format is chat, which model.kind llama reads; set model.from to a "
                       "model of that kind",
                       where);
    if (*c->model.from || *c->train.from) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: data.format chat needs a model with a tokenizer: set model.from to its "
                   "directory, or train.from to a run",
                   where);
}

/* Keys that only conversations have. */
static ls_status check_no_chats(const ls_config *c, const char *where, ls_error *e) {
    const char *key = c->data.packing                        ? "data.packing"
                      : *c->data.template                    ? "data.template"
                      : c->data.loss != LS_CHAT_OF_ASSISTANT ? "data.loss"
                                                             : NULL;
    if (!key) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s is for conversations; set data.format: chat, or remove it",
                   where, key);
}

static ls_status check_format(const ls_config *c, const char *where, ls_error *e) {
    bool has_tokens = ls_config_has_tokens(c);
    if (!has_tokens && c->data.format == LS_DATA_TEXT)
        return ls_fail(e, LS_EINVAL,
                       "%s: data.format is text, which only model.kind gpt2 and llama read; remove "
                       "data.format, or name that of the samples",
                       where);
    if (ls_config_has_chats(c)) return check_chats(c, where, e);
    LS_TRY(check_no_chats(c, where, e));
    if (has_tokens && c->data.format > LS_DATA_TOKENS)
        return ls_fail(
            e, LS_EINVAL,
            "%s: model.kind gpt2 and llama read a text, or files of tokens (data.format: "
            "tokens); set one of them, or another model.kind",
            where);
    return LS_OK;
}

static bool reads_ratings(const ls_config *c) {
    return c->model.kind == LS_MODEL_FACTORS || c->model.kind == LS_MODEL_TWO_TOWERS;
}

static bool reads_clicks(const ls_config *c) {
    return c->model.kind == LS_MODEL_DLRM || c->model.kind == LS_MODEL_WIDE_DEEP;
}

/* What recommenders read, and how they learn. */
static ls_status check_recommender(const ls_config *c, const char *where, ls_error *e) {
    if (reads_ratings(c) && !ls_config_has_ratings(c))
        return ls_fail(e, LS_EINVAL,
                       "%s: model.kind factors and two_towers read interactions of users: set "
                       "data.ratings, e.g. {user: userId, item: movieId, negatives: 4}",
                       where);
    if (reads_clicks(c) && !ls_config_has_clicks(c))
        return ls_fail(e, LS_EINVAL,
                       "%s: model.kind dlrm and wide_deep read ids and numbers: set data.clicks, "
                       "e.g. {clicked: bought, ids: [shop, city], numbers: [price]}",
                       where);
    if ((!reads_ratings(c) && !reads_clicks(c)) || *c->model.loss.text) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: model.loss is missing, e.g. %s", where,
                   reads_clicks(c) ? "{binary_cross_entropy: {target: clicked}}"
                                   : "{bpr: {target: clicked}}, or {mean_squared_error: {target: "
                                     "rating}}");
}

/* Ids are numbered within the files of data.path; interactions are split by user. */
static ls_status check_columns(const ls_config *c, const char *where, ls_error *e) {
    bool ratings = ls_config_has_ratings(c), clicks = ls_config_has_clicks(c);
    const char *key = *c->data.labels            ? "data.labels"
                      : *c->data.val_path        ? "data.val_path"
                      : ratings && c->data.folds ? "data.folds"
                      : *c->data.augment         ? "data.augment"
                      : *c->data.mix             ? "data.mix"
                      : ratings && clicks        ? "data.clicks"
                      : ls_config_has_tokens(c)  ? "a language model"
                                                 : NULL;
    LS_TRY(check_recommender(c, where, e));
    if ((!ratings && !clicks) || !key) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s: %s is not possible with it; remove one of them", where,
                   ratings ? "data.ratings" : "data.clicks", key);
}

static ls_status check_data(const ls_config *c, const char *where, ls_error *e) {
    long long folds = (long long)c->data.folds, fold = (long long)c->data.fold;
    if (ls_config_program_has_data() && (*c->data.path || *c->data.val_path || *c->data.mix))
        return ls_fail(e, LS_EINVAL, "%s: %s: this program has data of its own; leave the key out",
                       where,
                       *c->data.path       ? "data.path"
                       : *c->data.val_path ? "data.val_path"
                                           : "data.mix");
    if (*c->data.mix && (*c->data.path || *c->data.labels))
        return ls_fail(e, LS_EINVAL,
                       "%s: data.mix names all sources; remove %s, or make it one of them", where,
                       *c->data.path ? "data.path" : "data.labels");
    if (!*c->data.path && !*c->data.mix && !ls_config_program_has_data())
        return ls_fail(e, LS_EINVAL, "%s: data.path is missing; set data.path to %s", where,
                       ls_config_has_text(c) ? "a UTF-8 text" : "files of data");
    if (ls_config_has_text(c)) LS_TRY(check_text(c, where, e));
    LS_TRY(check_format(c, where, e));
    LS_TRY(check_columns(c, where, e));
    if (*c->data.val_labels && !*c->data.val_path)
        return ls_fail(e, LS_EINVAL,
                       "%s: data.val_labels is set without data.val_path; set both, or neither",
                       where);
    if (folds && *c->data.val_path)
        return ls_fail(e, LS_EINVAL,
                       "%s: data.folds and data.val_path both name samples for validation; remove "
                       "one of them",
                       where);
    if (folds == 1 || (folds && fold >= folds))
        return ls_fail(e, LS_EINVAL,
                       "%s: data.fold %lld of data.folds %lld is not possible; use 2 or more "
                       "folds, and a fold from 0 to data.folds - 1",
                       where, fold, folds);
    if (!folds && fold)
        return ls_fail(e, LS_EINVAL, "%s: data.fold %lld is set without data.folds", where, fold);
    return LS_OK;
}

/* The key that cuts a virtual worker's work into chunks; NULL: none. */
static const char *chunks_of(const ls_config *c) {
    if (c->parallel.context_virtual > 1) return "parallel.context_virtual";
    return c->parallel.expert_virtual > 1 ? "parallel.expert_virtual" : NULL;
}

/* What has no meaning without common steps is refused. */
static ls_status check_async(const ls_config *c, const char *where, ls_error *e) {
    bool half = c->train.compute == LS_COMPUTE_F16 || c->train.reduce_dtype == LS_REDUCE_F16;
    const char *key = half                                             ? "f16"
                      : c->parallel.zero > 1                           ? "parallel.zero"
                      : c->parallel.shard_group                        ? "parallel.shard_group"
                      : ls_config_ranks(c) > 1                         ? "parallel.mesh"
                      : chunks_of(c)                                   ? chunks_of(c)
                      : c->parallel.accumulate == LS_ACCUMULATE_EARLY  ? "parallel.accumulate"
                      : c->parallel.executor == LS_EXECUTOR_SEQUENTIAL ? "parallel.executor"
                      : c->parallel.transport > LS_TRANSPORT_SHM       ? "parallel.transport"
                      : c->parallel.optimizer_state == LS_STATE_FILE   ? "parallel.optimizer_state"
                      : c->survival.audit                              ? "survival.audit"
                      : c->survival.backup_workers                     ? "survival.backup_workers"
                      : c->survival.copies > 1                         ? "survival.copies"
                      : c->train.nphases                               ? "a list in train.batch"
                      : c->optim.warmup.unit                           ? "a unit in optim.warmup"
                                                                       : NULL;
    if (!key) return LS_OK;
    if (half)
        return ls_fail(e, LS_EINVAL,
                       "%s: sync.mode %s: f16 needs a loss scale that all workers share; use "
                       "train.compute bf16 or f32",
                       where, c->sync.mode == LS_SYNC_SSP ? "ssp" : "async");
    return ls_fail(e, LS_EINVAL,
                   "%s: %s is for workers that sum their gradients in each step; leave it out, or "
                   "set sync.mode: all_reduce",
                   where, key);
}

static const char *key_of_ssp(const ls_config *c) {
    ls_config d;
    ls_config_defaults(&d);
    if (c->sync.staleness != d.sync.staleness) return "sync.staleness";
    return c->sync.staleness_drawn ? "sync.staleness_drawn" : NULL;
}

/* Keys of replicas that are not at their defaults, or NULL. */
static const char *key_of_replicas(const ls_config *c) {
    enum { WRITTEN = 50 }; /* the default of sync.every that older runs' configs have */
    ls_config d;
    ls_config_defaults(&d);
    if (c->sync.replicas != d.sync.replicas) return "sync.replicas";
    if (c->sync.every != d.sync.every && c->sync.every != WRITTEN) return "sync.every";
    if (c->sync.warmup) return "sync.warmup";
    if (c->sync.fragments != d.sync.fragments) return "sync.fragments";
    if (c->sync.delay) return "sync.delay";
    if (c->sync.deltas) return "sync.deltas";
    return c->sync.mixing > 0 ? "sync.mixing" : NULL;
}

static const char *key_of_outer(const ls_config *c) {
    ls_config d;
    ls_config_defaults(&d);
    if (c->sync.outer != d.sync.outer) return "sync.outer";
    if (c->sync.outer_lr != d.sync.outer_lr) return "sync.outer_lr";
    return c->sync.outer_momentum != d.sync.outer_momentum ? "sync.outer_momentum" : NULL;
}

/* Is what a setting does impossible where the model has replicas? */
static const char *clash_of_replicas(const ls_config *c) {
    if (c->optim.ema > 0) return "optim.ema; leave it out";
    if (c->compress.kind) return "compress.kind; leave it out";
    if (c->survival.audit) return "survival.audit; leave it out";
    if (c->survival.backup_workers) return "survival.backup_workers; leave it out";
    if (c->survival.copies > 1)
        return "survival.copies: a replica is on the host that trains it; leave it out";
    return NULL;
}

/* Keys of gossip that are not at their defaults, or NULL. */
static const char *key_of_gossip(const ls_config *c) {
    if (c->sync.graph) return "sync.graph";
    return c->sync.algorithm ? "sync.algorithm" : NULL;
}

/* Keys of common parameters, which gossip has not. */
static const char *key_of_common(const ls_config *c) {
    ls_config d;
    ls_config_defaults(&d);
    if (c->sync.warmup) return "sync.warmup";
    if (c->sync.fragments != d.sync.fragments) return "sync.fragments";
    if (c->sync.delay) return "sync.delay";
    if (c->sync.deltas) return "sync.deltas";
    if (c->sync.mixing > 0) return "sync.mixing";
    return key_of_outer(c);
}

static ls_status check_gossip(const ls_config *c, const char *where, ls_error *e) {
    const char *key = key_of_common(c);
    if (!key) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: %s is for replicas with common parameters (sync.mode local and diloco), "
                   "which gossip has not; leave it out",
                   where, key);
}

static ls_status check_replicas(const ls_config *c, const char *where, ls_error *e) {
    const char *clash = clash_of_replicas(c), *outer = key_of_outer(c), *gossip = key_of_gossip(c);
    int64_t every = ls_config_sync_every(c), apart = every / c->sync.fragments;
    if (clash)
        return ls_fail(e, LS_EINVAL, "%s: sync.mode local, diloco and gossip don't go with %s",
                       where, clash);
    if (c->sync.mode == LS_SYNC_GOSSIP) return check_gossip(c, where, e);
    if (gossip)
        return ls_fail(e, LS_EINVAL,
                       "%s: %s is for sync.mode gossip; set that, or leave the key out", where,
                       gossip);
    if (c->sync.mode == LS_SYNC_LOCAL && outer)
        return ls_fail(e, LS_EINVAL,
                       "%s: %s is for sync.mode diloco; with local, replicas are averaged", where,
                       outer);
    if (apart == 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: sync.fragments %lld is more than sync.every %lld; use at most one "
                       "fragment a step",
                       where, (long long)c->sync.fragments, (long long)every);
    if (c->sync.delay < apart) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: sync.delay %lld must be less than sync.every / sync.fragments, %lld", where,
                   (long long)c->sync.delay, (long long)apart);
}

static ls_status check_sync(const ls_config *c, const char *where, ls_error *e) {
    const char *key = c->sync.servers       ? "sync.servers"
                      : c->sync.copies > 1  ? "sync.copies"
                      : c->sync.delay_aware ? "sync.delay_aware"
                                            : NULL;
    bool replicas = ls_config_has_replicas(c);
    const char *unused = key_of_replicas(c);
    if (!unused) unused = key_of_outer(c);
    if (!replicas && unused)
        return ls_fail(e, LS_EINVAL,
                       "%s: %s is for sync.mode local and diloco; set one of these, or leave the "
                       "key out",
                       where, unused);
    if (!replicas && key_of_gossip(c))
        return ls_fail(e, LS_EINVAL,
                       "%s: %s is for sync.mode gossip; set that, or leave the key out", where,
                       key_of_gossip(c));
    if (c->sync.mode != LS_SYNC_SSP && key_of_ssp(c))
        return ls_fail(e, LS_EINVAL, "%s: %s is for sync.mode ssp; set that, or leave the key out",
                       where, key_of_ssp(c));
    if (replicas && !key) return check_replicas(c, where, e);
    if (c->sync.mode == LS_SYNC_ASYNC || (c->sync.mode == LS_SYNC_SSP && !key))
        return check_async(c, where, e);
    if (!key) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s is for sync.mode async; set that, or leave the key out",
                   where, key);
}

/* What the choice of a mesh does not decide, and what has no common step. */
static ls_status check_mesh_auto(const ls_config *c, const char *where, ls_error *e) {
    const char *key = c->parallel.mesh != LS_MESH_AUTO                ? NULL
                      : c->parallel.shard_group                       ? "parallel.shard_group"
                      : c->parallel.accumulate == LS_ACCUMULATE_EARLY ? "parallel.accumulate early"
                      : *c->parallel.stages                           ? "parallel.stages"
                      : c->sync.mode                                  ? "sync.mode"
                                                                      : NULL;
    if (!key) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: parallel.mesh auto is not possible together with %s; leave one of them out",
                   where, key);
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
                           "use at most %lld, or more of them",
                           where, of[i].key, (long long)of[i].degree, of[i].parts,
                           (long long)of[i].most, (long long)of[i].most);
    return LS_OK;
}

/* A worker of a pipeline has a part of the model: it can't compute another's gradient. */
static ls_status check_mesh(const ls_config *c, const char *where, ls_error *e) {
    const char *key = c->survival.audit            ? "survival.audit"
                      : c->survival.backup_workers ? "survival.backup_workers"
                                                   : NULL;
    LS_TRY(check_degrees(c, where, e));
    if (chunks_of(c) && key)
        return ls_fail(e, LS_EINVAL,
                       "%s: %s computes the gradient of one virtual worker again, and with %s "
                       "there is one for each chunk; leave one of them out",
                       where, key, chunks_of(c));
    if (ls_config_ranks(c) == 1 || !key) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: %s needs workers that have the whole model, and parallel.mesh divides it "
                   "among %lld; leave one of them out",
                   where, key, (long long)ls_config_ranks(c));
}

/* Rows of tables are updated by elements, in f32, by processes or threads. */
static ls_status check_sparse(const ls_config *c, const char *where, ls_error *e) {
    const char *key = !c->model.sparse                        ? NULL
                      : ls_config_has_tokens(c)               ? "a language model"
                      : c->train.compute != LS_COMPUTE_F32    ? "train.compute"
                      : c->train.reduce_dtype > LS_REDUCE_F32 ? "train.reduce_dtype"
                      : *c->train.freeze                      ? "train.freeze"
                      : c->optim.ema > 0                      ? "optim.ema"
                      : c->optim.optimizer > LS_OPTIMIZER_ADAGRAD &&
                              c->optim.optimizer != LS_OPTIMIZER_ROWWISE_ADAGRAD
                          ? "optim.optimizer"
                      : c->compress.kind                               ? "compress.kind"
                      : c->sync.mode                                   ? "sync.mode"
                      : c->parallel.executor == LS_EXECUTOR_SEQUENTIAL ? "parallel.executor"
                      : c->parallel.optimizer_state == LS_STATE_FILE   ? "parallel.optimizer_state"
                                                                       : NULL;
    if (!key) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: model.sparse is on, which is not possible with this value of %s; set "
                   "model.sparse: off, or leave the other key out",
                   where, key);
}

/* When rows of tables are trained, and how long they stay. */
static ls_status check_rows(const ls_config *c, const char *where, ls_error *e) {
    const char *key = c->model.filter_freq     ? "model.filter_freq"
                      : c->model.steps_to_live ? "model.steps_to_live"
                                               : NULL;
    int64_t most = 1 << 24; /* steps that a float can count */
    if (!key) return LS_OK;
    if (!c->model.sparse)
        return ls_fail(e, LS_EINVAL, "%s: %s is for rows of tables; set model.sparse: on", where,
                       key);
    if (c->train.steps <= most) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s counts steps up to %lld; train.steps %lld are more", where,
                   key, (long long)most, (long long)c->train.steps);
}

static ls_status check_lr_decay(const ls_config *c, const char *where, ls_error *e) {
    bool has = c->optim.optimizer == LS_OPTIMIZER_ADAGRAD ||
               c->optim.optimizer == LS_OPTIMIZER_ROWWISE_ADAGRAD || *c->optim.groups;
    if (c->optim.lr_decay == 0 || has) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: optim.lr_decay is for optim.optimizer adagrad and rowwise_adagrad; set "
                   "one, or leave the key out: other rates are for optim.schedule",
                   where);
}

ls_status ls_config_check(const ls_config *c, const char *where, ls_error *e) {
    LS_TRY(check_rows(c, where, e));
    LS_TRY(check_lr_decay(c, where, e));
    LS_TRY(check_sparse(c, where, e));
    LS_TRY(check_model(c, where, e));
    LS_TRY(check_vocab(c, where, e));
    LS_TRY(check_experts(c, where, e));
    LS_TRY(check_lora(c, where, e));
    LS_TRY(check_train(c, where, e));
    LS_TRY(check_noise(c, where, e));
    LS_TRY(check_compress(c, where, e));
    LS_TRY(check_momentum(c, where, e));
    LS_TRY(check_data(c, where, e));
    LS_TRY(check_sync(c, where, e));
    LS_TRY(check_mesh(c, where, e));
    LS_TRY(check_mesh_auto(c, where, e));
    if ((*c->train.sample_prompts || *c->train.sample_file) && !ls_config_has_corpus(c))
        return ls_fail(
            e, LS_EINVAL,
            "%s: train.sample_prompts: a run on samples of files has no tokenizer to read "
            "prompts with; leave the key out",
            where);
    LS_TRY(check_dpo(c, where, e));
    if (c->train.patience > 0 && c->train.eval_every == 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: train.patience %lld counts evaluations, and train.eval_every is 0; set "
                       "train.eval_every to steps between evaluations",
                       where, (long long)c->train.patience);
    if (c->optim.warmup.unit == LS_SPAN_STEPS && c->optim.warmup.n > (double)c->train.steps)
        return ls_fail(e, LS_EINVAL, "%s: optim.warmup %.15g is more than train.steps %lld", where,
                       c->optim.warmup.n, (long long)c->train.steps);
    if (c->optim.loss_scale < c->optim.loss_scale_min)
        return ls_fail(e, LS_EINVAL, "%s: optim.loss_scale %g is below optim.loss_scale_min %g",
                       where, c->optim.loss_scale, c->optim.loss_scale_min);
    bool falls = c->optim.schedule != LS_SCHEDULE_CONSTANT && c->optim.schedule != LS_SCHEDULE_STEP;
    if (falls && c->optim.min_lr > c->optim.lr)
        return ls_fail(e, LS_EINVAL, "%s: optim.min_lr %g is more than optim.lr %g", where,
                       c->optim.min_lr, c->optim.lr);
    if (c->train.eval_weights == LS_EVAL_EMA && c->optim.ema == 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: train.eval_weights is ema, and optim.ema is 0; set optim.ema, e.g. to "
                       "0.999",
                       where);
    return check_optimizers(c, where, e);
}

ls_status ls_config_load(const char *path, const char *const *sets, int nsets, ls_config *c_p,
                         ls_error *e) {
    LS_TRY(ls_config_read(path, c_p, e));
    for (int i = 0; i < nsets; i++) LS_TRY(ls_config_set(c_p, sets[i], e));
    return ls_config_check(c_p, path, e);
}

bool ls_config_fits_tokens(const ls_config *c, uint32_t ntokens) {
    bool came = *c->model.from || *c->train.from;
    return ntokens == c->model.vocab || (came && ntokens < c->model.vocab);
}
