/* needs.c - see needs.h: the table, and what follows from it. */
#include "config/needs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/groups.h"
#include "config/key.h"
#include "config/terms.h"

#define TOKENS  "model.kind: gpt2, llama"
#define TEXT    "model.kind: gpt2, llama; data.format: auto, text"
#define SAMPLES "model.kind: other than gpt2, llama"
#define GIVEN   "model.kind: other than gpt2, llama, program" /* the loss is the config's */
#define EXPERTS "model.experts > 0"
#define CHAT    "data.format: chat"
#define PLAIN   "no data.ratings; no data.clicks"
#define TABLES  SAMPLES "; data.format: auto, csv"
#define COLUMNS SAMPLES "; data.format: auto, csv, jsonl"
#define BLOCKS                                                                                     \
    "data.order: blocks or data.order: auto; " SAMPLES                                             \
    "; data.format: auto, csv, jsonl, webdataset, tfrecord, mds"
#define RISING "sync.mode: all_reduce, local, diloco, gossip" /* all take the same steps */
#define APART  "sync.mode: local, diloco"
#define RANK   "lora.rank > 0; no model.adapter"
#define DPO    "train.loss: dpo"
#define ADAM_IS                                                                                    \
    "optim.optimizer: adamw, adam, lion, schedule-free, lamb, muon, soap, onebit_adam, "           \
    "onebit_lamb"
#define PIPED "parallel.mesh.pipe > 1 or parallel.mesh: auto"
#define CODED "compress.kind: other than none or optim.optimizer: onebit_adam, onebit_lamb"

const ls_config_need ls_config_needs[] = {
    /* the model */
    {"model.adapter", "model.from; no train.from"},
    {"model.layers", "model.kind: gpt2, llama, vit, layers"},
    {"model.width", "model.kind: gpt2, llama, vit, factors, two_towers, dlrm, wide_deep"},
    {"model.heads", "model.kind: gpt2, llama, vit"},
    {"model.context", TOKENS},
    {"model.vocab", TOKENS},
    {"model.kv_heads", "model.kind: llama"},
    {"model.ffn", "model.kind: llama"},
    {"model.head_dim", "model.kind: llama"},
    {"model.rope", "model.kind: llama; model.rope_factor: other than 1"},
    {"model.rope_base", "model.kind: llama"},
    {"model.rope_factor", "model.kind: llama; model.rope: linear, llama3, yarn, longrope"},
    {"model.rope_low", "model.kind: llama; model.rope: llama3, yarn"},
    {"model.rope_high", "model.kind: llama; model.rope: llama3, yarn"},
    {"model.rope_original", "model.kind: llama; model.rope: llama3, yarn, longrope"},
    {"model.rope_scale", "model.kind: llama; model.rope: yarn, longrope"},
    {"model.rope_short", "model.kind: llama; model.rope: longrope"},
    {"model.rope_long", "model.kind: llama; model.rope: longrope"},
    {"model.rope_dims", "model.kind: llama"},
    {"model.rope_truncate", "model.kind: llama; model.rope: yarn"},
    {"model.no_rope_every", "model.kind: llama"},
    {"model.window", "model.kind: llama"},
    {"model.full_attention_every", "model.kind: llama; model.window > 0"},
    {"model.rope_local_base", "model.kind: llama; model.full_attention_every > 0"},
    {"model.query_scalar", "model.kind: llama"},
    {"model.block", "model.kind: llama"},
    {"model.bias", "model.kind: llama"},
    {"model.qk_norm", "model.kind: llama"},
    {"model.experts", "model.kind: llama"},
    {"model.experts_per_token", EXPERTS},
    {"model.shared_experts", EXPERTS},
    {"model.norm_topk", EXPERTS},
    {"model.router_aux_loss", EXPERTS},
    {"model.router_aux_scope", EXPERTS "; model.router_aux_loss > 0"},
    {"model.router_bias_rate", EXPERTS "; no model.from"},
    {"model.expert_capacity", EXPERTS},
    {"model.norm_eps", "model.kind: llama"},
    {"model.head", "model.kind: llama"},
    {"model.hidden", "model.kind: mlp, two_towers, dlrm, wide_deep"},
    {"model.bottom", "model.kind: dlrm"},
    {"model.channels", "model.kind: cnn, resnet"},
    {"model.norm", "model.kind: cnn, resnet"},
    {"model.blocks", "model.kind: resnet"},
    {"model.patch", "model.kind: vit"},
    {"model.dropout", "model.kind: gpt2, llama, mlp, cnn, vit"},
    {"model.sparse", "model.kind: factors, two_towers, dlrm, wide_deep, layers"},
    {"model.filter_freq", "model.sparse: on"},
    {"model.steps_to_live", "model.sparse: on"},
    {"model.input", GIVEN},
    {"model.classes", "model.kind: mlp, cnn, resnet, vit, layers"},
    {"model.loss", GIVEN},
    {"model.sample_weight", GIVEN},
    {"model.metrics", GIVEN},

    /* data */
    {"data.documents", TEXT},
    {"data.separator", TEXT "; data.documents: apart"},
    {"data.text", TEXT},
    {"data.labels", SAMPLES "; " PLAIN "; no data.mix"},
    {"data.val_path", SAMPLES "; " PLAIN " or data.format: tokens, chat or " TEXT},
    {"data.val_labels", SAMPLES "; data.val_path"},
    {"data.val_fraction", "no data.val_path; data.folds: 0"},
    {"data.folds", SAMPLES "; no data.ratings or data.format: tokens, chat"},
    {"data.fold", "data.folds > 0"},
    {"data.lists", SAMPLES "; " PLAIN},
    {"data.missing", SAMPLES "; data.format: auto, csv, jsonl, npy, idx"},
    {"data.na", TABLES},
    {"data.columns", COLUMNS "; " PLAIN},
    {"data.csv", TABLES},
    {"data.template", CHAT},
    {"data.loss", CHAT "; train.loss: auto"},
    {"data.packing", CHAT "; train.loss: auto"},
    {"data.cache_gb", SAMPLES "; " PLAIN},
    {"data.threads", SAMPLES " or data.format: tokens"},
    {"data.block", BLOCKS},
    {"data.window", BLOCKS},
    {"data.mix", SAMPLES "; " PLAIN " or data.format: tokens"},
    {"data.resize", SAMPLES "; " PLAIN},
    {"data.crop", SAMPLES "; " PLAIN},
    {"data.channels", SAMPLES "; " PLAIN},
    {"data.exif", SAMPLES "; " PLAIN},
    {"data.normalize", "model.kind: mlp, cnn, resnet, vit, layers; " PLAIN},
    {"data.augment", SAMPLES "; " PLAIN},
    {"data.ratings", SAMPLES "; no data.clicks"},
    {"data.clicks", SAMPLES "; no data.ratings"},

    /* training */
    {"train.loss", CHAT},
    {"train.eval_samples", "train.eval_every > 0"},
    {"train.eval_weights", "optim.ema > 0"},
    {"train.patience", "train.eval_every > 0"},
    {"train.sample_prompts", TOKENS "; data.format: auto, text, chat"},
    {"train.sample_file", TOKENS "; data.format: auto, text, chat"},
    {"train.sample_tokens", "train.sample_prompts or train.sample_file"},
    {"train.sample_temperature", "train.sample_prompts or train.sample_file"},
    {"lora.rank", "model.kind: llama; no model.adapter"},
    {"lora.alpha", RANK},
    {"lora.rs", RANK},
    {"lora.dora", RANK},
    {"lora.dropout", RANK},
    {"lora.targets", RANK},
    {"lora.rank_pattern", RANK},
    {"lora.alpha_pattern", RANK},
    {"lora.train", RANK},
    {"dpo.*", DPO},
    {"dpo.label_smoothing", "dpo.loss: sigmoid"},

    /* the optimizer */
    {"optim.min_lr", "optim.schedule: cosine, linear, wsd"},
    {"optim.scale_lr", "optim.scale_batch > 0"},
    {"optim.scale_batch", "optim.scale_lr: linear, sqrt"},
    {"optim.decay_fraction", "optim.schedule: wsd"},
    {"optim.step_every", "optim.schedule: step"},
    {"optim.step_factor", "optim.schedule: step"},
    {"optim.beta1", ADAM_IS},
    {"optim.beta2", ADAM_IS},
    {"optim.eps", "optim.optimizer: adamw, adam, schedule-free, lamb, muon, soap, onebit_adam, "
                  "onebit_lamb, adagrad, rowwise_adagrad"},
    {"optim.momentum", "optim.optimizer: sgd, lars, muon"},
    {"optim.lr_decay", "optim.optimizer: adagrad, rowwise_adagrad"},
    {"optim.nesterov", "optim.optimizer: sgd; optim.momentum > 0 or optim.optimizer: lars"},
    {"optim.freeze_step", "optim.optimizer: onebit_adam, onebit_lamb"},
    {"optim.ema", "optim.optimizer: other than schedule-free; sync.mode: all_reduce, async, ssp"},
    {"optim.loss_scale*", "train.compute: f16 or train.reduce_dtype: f16"},

    /* workers */
    {"parallel.sequence", "parallel.tensor_virtual > 1"},
    {"parallel.tensor_virtual", TOKENS},
    {"parallel.context_virtual", TOKENS},
    {"parallel.expert_virtual", EXPERTS},
    {"parallel.schedule", PIPED},
    {"parallel.chunks", PIPED},
    {"parallel.stages", "parallel.mesh.pipe > 1"},
    {"parallel.accumulate", "parallel.zero: 2, 3"},
    {"parallel.prefetch", "parallel.zero: 3 or parallel.mesh: auto"},
    {"parallel.whole_kb", "parallel.zero: 3 or parallel.mesh: auto"},
    {"parallel.recompute_layers", "parallel.recompute: other than 0"},
    {"parallel.state_dir", "parallel.optimizer_state: file"},
    {"parallel.fit", "parallel.memory_limit_mb > 0"},
    {"parallel.shard_group", RISING},
    {"parallel.executor", RISING},
    {"parallel.transport", RISING},
    {"parallel.optimizer_state", RISING},
    {"sync.replicas", APART ", gossip"},
    {"sync.every", APART ", gossip"},
    {"sync.graph", "sync.mode: gossip"},
    {"sync.algorithm", "sync.mode: gossip"},
    {"sync.warmup", APART},
    {"sync.outer", "sync.mode: diloco"},
    {"sync.outer_lr", "sync.mode: diloco"},
    {"sync.outer_momentum", "sync.mode: diloco; sync.outer: nesterov, adamw"},
    {"sync.fragments", APART},
    {"sync.delay", APART},
    {"sync.deltas", APART},
    {"sync.mixing", APART},
    {"sync.servers", "sync.mode: async"},
    {"sync.copies", "sync.mode: async"},
    {"sync.delay_aware", "sync.mode: async"},
    {"sync.staleness", "sync.mode: ssp"},
    {"sync.staleness_drawn", "sync.mode: ssp; sync.staleness > 0"},
    {"compress.kind", "sync.mode: all_reduce"},
    {"compress.ratio", "compress.kind: topk, auto"},
    {"compress.block", "compress.kind: onebit, int8, int4, auto or "
                       "optim.optimizer: onebit_adam, onebit_lamb"},
    {"compress.rank", "compress.kind: powersgd, auto"},
    {"compress.feedback", "compress.kind: other than none"},
    {"compress.warmup", "compress.kind: other than none"},
    {"compress.min_size", CODED},
    {"compress.send", CODED},
    {"compress.machine", "compress.kind: auto"},
    {"compress.links", "compress.kind: auto"},

    /* models without training */
    {"infer.activations", "model.from or train.from"},

    /* losing workers */
    {"survival.etcd_*", "survival.membership"},
    {"survival.audit", "sync.mode: all_reduce"},
    {"survival.backup_workers", "sync.mode: all_reduce"},
    {"survival.copies", "sync.mode: all_reduce"},
    {NULL, NULL},
};

/* ---- which keys act ---- */

static bool matches(const ls_config_need *n, const char *key) {
    size_t len = strcspn(n->key, "*");
    return strncmp(n->key, key, len) == 0 && (n->key[len] == '*' || !key[len]);
}

/* The first row of the key that is not met; NULL: it acts. */
static const ls_config_need *unmet(const ls_config *c, const char *key, ls_open_keys open) {
    for (const ls_config_need *n = ls_config_needs; n->key; n++)
        if (matches(n, key) && !ls_terms_hold(c, n->needs, open)) return n;
    return NULL;
}

/* ---- which keys are written, and act ---- */

/* The row of the two keys with this name that is set. */
static const ls_config_key *set_one(const ls_config *c, const ls_config_key *k) {
    const ls_config_key *tree = ls_config_key_find_tree(k->name);
    return tree && *ls_config_key_text(c, tree) ? tree : k;
}

/* Does the value only say that there is none of what the key is for? */
static bool says_nothing(const ls_config *c, const ls_config_key *k) {
    static const char *const words[] = {"off",  "none",   "auto",   "default", "given",
                                        "late", "memory", "refuse", "last",    "apart"};
    const void *at = (const char *)c + k->offset;
    if (k->type == LS_KEY_REAL) {
        double x = *(const double *)at;
        return x == k->real[LS_KEY_USUAL] && (x <= 0 || x == k->real[LS_KEY_LOW]);
    }
    if (k->type == LS_KEY_SPAN) return false;
    if (ls_config_key_is_text(k)) return !*ls_config_key_text(c, k);
    int64_t n = ls_config_key_whole(c, k);
    if (n != k->whole[LS_KEY_USUAL]) return false;
    if (k->type == LS_KEY_INTEGER) return n <= 0 || n == k->whole[LS_KEY_LOW];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], k->choices[n]) == 0) return true;
    return false;
}

static bool is_written(const ls_config *c, int i) {
    const ls_config_key *k = &ls_config_keys[i];
    bool asked = c->written[i] == LS_WRITTEN || c->written[i] == LS_WRITTEN_AND_ACTS;
    return asked && !says_nothing(c, set_one(c, k));
}

bool ls_config_is_written(const ls_config *c, const char *key) {
    return is_written(c, ls_config_key_index(ls_config_key_find(key)));
}

ls_status ls_config_refuse_written(const ls_config *c, const char *key, const char *needs,
                                   ls_error *e) {
    if (!ls_config_is_written(c, key)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s acts only with %s; leave the key out", key, needs);
}

/* As unmet(), of a key that may also act in a group of parameters that does not set it itself. */
static const ls_config_need *idle_by(const ls_config *c, const char *key, ls_open_keys open) {
    const ls_config_need *n = unmet(c, key, open);
    ls_config_group groups[LS_CONFIG_GROUPS];
    int ngroups = 0;
    if (!n || !*c->optim.groups || strncmp(key, "optim.", strlen("optim.")) != 0) return n;
    if (ls_config_read_groups(c, "", groups, &ngroups, NULL) != LS_OK) return n;
    ls_config *with = LS_NEW(ls_config);
    *with = *c;
    for (int i = 0; i < ngroups && n; i++) {
        with->optim = groups[i].with;
        bool inherits = !ls_config_group_sets(&groups[i], key + strlen("optim."));
        if (inherits && !unmet(with, key, open)) n = NULL;
    }
    free(with);
    return n;
}

/* ---- messages ---- */

void ls_config_put_needs(const char *key, ls_buf *out) {
    bool first = true;
    for (const ls_config_need *n = ls_config_needs; n->key; n++) {
        if (!matches(n, key)) continue;
        ls_buf_printf(out, first ? "" : ", and ");
        ls_terms_put(n->needs, out);
        first = false;
    }
}

/* Appends what the config has of each key in the row that is not as it must be. */
static void put_values(const ls_config *c, const ls_config_need *n, ls_open_keys open,
                       ls_buf *out) {
    enum { MOST = 8 };
    const ls_config_key *seen[MOST];
    int nseen = 0;
    ls_term t;
    for (const char *s = n->needs; nseen < MOST && ls_term_read(&s, &t);) {
        bool said = ls_term_holds(c, &t, open);
        for (int i = 0; i < nseen; i++) said = said || seen[i] == t.key;
        if (said) continue;
        ls_buf_printf(out, nseen ? ", " : "");
        ls_term_put_value(c, &t, open, out);
        seen[nseen++] = t.key;
    }
}

/* "model.dropout acts only with model.kind: mlp, cnn, vit; WHO has model.kind: gpt2" */
static char *explain(const ls_config *c, const char *key, const ls_config_need *n,
                     ls_open_keys open, const char *who) {
    ls_buf text = {0};
    ls_buf_printf(&text, "%s acts only with ", key);
    ls_config_put_needs(key, &text);
    ls_buf_printf(&text, "; %s has ", who);
    put_values(c, n, open, &text);
    return text.data;
}

/* Appends "set data.format: chat, or " where the row only lacks a key that is not set. */
static void put_set(const ls_config *c, const ls_config_need *n, ls_open_keys open, ls_buf *out) {
    ls_term t, lacks = {0};
    for (const char *s = n->needs; ls_term_read(&s, &t);) {
        if (t.alternative) return;
        if (ls_term_holds(c, &t, open)) continue;
        if (lacks.key || !t.key || t.is != LS_TERM_ONE_OF ||
            memchr(t.words, ',', (size_t)(t.end - t.words)))
            return;
        lacks = t;
    }
    if (!lacks.key || c->written[ls_config_key_index(lacks.key)]) return;
    ls_buf_printf(out, "set %s: %.*s, or ", lacks.name, (int)(lacks.end - lacks.words),
                  lacks.words);
}

static ls_status refuse(const char *where, char *why, const char *set, ls_error *e) {
    ls_status s = ls_fail(e, LS_EINVAL, "%.200s: %s; %sleave the key out", where, why, set);
    free(why);
    return s;
}

/* What a group of parameters sets must act in it. */
static ls_status check_groups(const ls_config *c, ls_open_keys open, const char *where,
                              ls_error *e) {
    ls_config_group groups[LS_CONFIG_GROUPS];
    int n = 0;
    LS_TRY(ls_config_read_groups(c, where, groups, &n, e));
    ls_config *with = LS_NEW(ls_config);
    ls_status s = LS_OK;
    *with = *c;
    for (int i = 0; i < LS_NCONFIG_KEYS && s == LS_OK; i++) {
        const char *key = ls_config_keys[i].name;
        if (strncmp(key, "optim.", strlen("optim.")) != 0) continue;
        for (int g = 0; g < n && s == LS_OK; g++) {
            with->optim = groups[g].with;
            const ls_config_need *row = unmet(with, key, open);
            if (!row || !ls_config_group_sets(&groups[g], key + strlen("optim."))) continue;
            char *at = ls_format("%.160s: group %d of optim.groups", where, g + 1);
            s = refuse(at, explain(with, key, row, open, "the group"), "", e);
            free(at);
        }
    }
    free(with);
    return s;
}

ls_status ls_config_check_needs(const ls_config *c, bool complete, const char *where, ls_error *e) {
    ls_open_keys open = complete ? LS_NONE_IS_OPEN : LS_OPEN_MAY_HOLD;
    for (int i = 0; i < LS_NCONFIG_KEYS; i++) {
        if (c->written[i] != LS_WRITTEN || !is_written(c, i)) continue;
        const char *key = ls_config_keys[i].name;
        const ls_config_need *n = idle_by(c, key, open);
        if (!n) continue;
        ls_buf set = {0};
        put_set(c, n, open, &set);
        ls_status s =
            refuse(where, explain(c, key, n, open, "this config"), set.len ? set.data : "", e);
        ls_buf_free(&set);
        return s;
    }
    return ls_config_is_written(c, "optim.groups") ? check_groups(c, open, where, e) : LS_OK;
}

/* ---- what changes which keys count as written ---- */

void ls_config_settle(ls_config *c) {
    for (int i = 0; i < LS_NCONFIG_KEYS; i++)
        if (c->written[i] == LS_WRITTEN && !idle_by(c, ls_config_keys[i].name, LS_OPEN_DO_NOT_HOLD))
            c->written[i] = LS_WRITTEN_AND_ACTS;
}

/* One pass: a key that is dropped may be one that another needs. */
static bool drop_some(ls_config *c, const ls_config *usual, ls_buf *notes) {
    bool any = false;
    for (int i = 0; i < LS_NCONFIG_KEYS; i++) {
        const ls_config_key *k = set_one(c, &ls_config_keys[i]);
        const ls_config_need *n = NULL;
        if (c->written[i] >= LS_WRITTEN_AND_ACTS) n = idle_by(c, k->name, LS_OPEN_MAY_HOLD);
        if (!n) continue;
        char *why = explain(c, k->name, n, LS_OPEN_MAY_HOLD, "this config");
        if (notes && !ls_config_key_is_equal(c, usual, k)) ls_buf_printf(notes, "%s\n", why);
        free(why);
        ls_config_key_copy(c, usual, k);
        c->written[i] = LS_NOT_WRITTEN;
        any = true;
    }
    return any;
}

void ls_config_drop_idle(ls_config *c, ls_buf *notes) {
    ls_config *usual = LS_NEW(ls_config);
    ls_config_defaults(usual);
    while (drop_some(c, usual, notes)) continue;
    free(usual);
}

void ls_config_forget_written(ls_config *c) {
    for (int i = 0; i < LS_NCONFIG_KEYS; i++)
        if (c->written[i] && c->written[i] != LS_FILLED_IN) c->written[i] = LS_SAVED;
}

/* ---- what the program chooses where a key is left out ---- */

static int place_of(const char *key) { return ls_config_key_index(ls_config_key_find(key)); }

bool ls_config_leaves_out(const ls_config *c, const char *key) {
    return c->written[place_of(key)] == LS_NOT_WRITTEN;
}

bool ls_config_was_chosen(const ls_config *c, const char *key) {
    return c->written[place_of(key)] == LS_FILLED_IN;
}

void ls_config_note_chosen(ls_config *c, const char *key) {
    c->written[place_of(key)] = LS_FILLED_IN;
}
