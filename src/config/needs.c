/* needs.c - see needs.h: the table, its small language, and what follows from both. */
#include "config/needs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/groups.h"
#include "config/key.h"

#define TOKENS  "model.kind: gpt2, llama"
#define TEXT    "model.kind: gpt2, llama; data.format: auto, text"
#define SAMPLES "model.kind: other than gpt2, llama"
#define GIVEN   "model.kind: other than gpt2, llama, program" /* the loss is the config's */
#define EXPERTS "model.experts > 0"
#define CHAT    "data.format: chat"
#define PLAIN   "no data.ratings; no data.clicks"
#define TABLES  SAMPLES "; data.format: auto, csv"
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
    {"model.rope_factor", "model.kind: llama; model.rope: linear, llama3"},
    {"model.rope_low", "model.kind: llama; model.rope: llama3"},
    {"model.rope_high", "model.kind: llama; model.rope: llama3"},
    {"model.rope_original", "model.kind: llama; model.rope: llama3"},
    {"model.window", "model.kind: llama"},
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
    {"data.missing", TABLES},
    {"data.na", TABLES},
    {"data.columns", TABLES "; " PLAIN},
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

    /* losing workers */
    {"survival.etcd_*", "survival.membership"},
    {"survival.audit", "sync.mode: all_reduce"},
    {"survival.backup_workers", "sync.mode: all_reduce"},
    {"survival.copies", "sync.mode: all_reduce"},
    {NULL, NULL},
};

/* ---- the language ---- */

/* A term, in the parts of its text. */
typedef struct term {
    const ls_config_key *key;
    enum { IS_ONE_OF, IS_NONE_OF, IS_ABOVE, IS_SET, IS_UNSET } is;
    const char *words; /* after the key, to `end`: "a, b", or a number */
    const char *end;
    char name[64];
} term;

/* The end of the part that begins at `s`: before the separator, or at `end`. */
static const char *part_end(const char *s, const char *end, const char *separator) {
    size_t n = strlen(separator);
    while (s < end && ((size_t)(end - s) < n || strncmp(s, separator, n) != 0)) s++;
    return s;
}

/* The end of the term that begins at `s`; alternative: the next one begins another alternative. */
static const char *term_end(const char *s, const char *end, bool *alternative_p) {
    const char * or = part_end(s, end, " or "), *and = part_end(s, end, "; ");
    *alternative_p = or < and;
    return or < and? or : and;
}

static const char *after_term(const char *end, bool alternative) {
    return end + strlen(alternative ? " or " : "; ");
}

static bool begins(const char *s, const char *end, const char *with) {
    size_t n = strlen(with);
    return (size_t)(end - s) >= n && strncmp(s, with, n) == 0;
}

static term read_term(const char *s, const char *end) {
    static const char no[] = "no ", others[] = "other than ";
    term t = {.end = end, .is = begins(s, end, no) ? IS_UNSET : IS_SET};
    if (t.is == IS_UNSET) s += strlen(no);
    size_t n = strcspn(s, ": ;");
    if (n > (size_t)(end - s)) n = (size_t)(end - s);
    snprintf(t.name, sizeof t.name, "%.*s", (int)n, s);
    t.key = ls_config_key_find(t.name);
    t.words = s + n;
    if (begins(t.words, end, " > ")) {
        t.is = IS_ABOVE;
        t.words += strlen(" > ");
    } else if (begins(t.words, end, ": ")) {
        t.words += strlen(": ");
        t.is = begins(t.words, end, others) ? IS_NONE_OF : IS_ONE_OF;
        if (t.is == IS_NONE_OF) t.words += strlen(others);
    }
    return t;
}

/* The value as it is written in a config, without quotes. */
static char *value_of(const ls_config *c, const ls_config_key *k) {
    ls_buf text = {0};
    ls_config_key_write(c, k, &text);
    bool quoted = text.len > 1 && text.data[0] == '"';
    char *value =
        quoted ? ls_format("%.*s", (int)text.len - 2, text.data + 1) : ls_strdup(text.data);
    ls_buf_free(&text);
    return value;
}

static bool has_word(const term *t, const char *value) {
    size_t n = strlen(value);
    for (const char *s = t->words, *end = NULL; s < t->end; s = end + strlen(", ")) {
        end = part_end(s, t->end, ", ");
        if ((size_t)(end - s) == n && strncmp(s, value, n) == 0) return true;
    }
    return false;
}

/* What counts for keys of the model while the files of model.from are not read. */
typedef enum open_keys { OPEN_MAY_HOLD, OPEN_DO_NOT_HOLD, NONE_IS_OPEN } open_keys;

/* Is the key one that a published model's files decide? */
static bool is_open(const ls_config *c, const char *key) {
    static const char *const own[] = {"model.from", "model.adapter", "model.context",
                                      "model.sparse"};
    if (!*c->model.from || strncmp(key, "model.", strlen("model.")) != 0) return false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(key, own[i]) == 0) return false;
    return true;
}

/* Could the files decide so? They are of kind gpt2 or llama. */
static bool may_hold(const term *t) {
    if (strcmp(t->name, "model.kind") != 0) return true;
    bool gpt2 = has_word(t, "gpt2"), llama = has_word(t, "llama");
    return t->is == IS_NONE_OF ? !gpt2 || !llama : gpt2 || llama;
}

static bool holds(const ls_config *c, const term *t, open_keys open) {
    if (open != NONE_IS_OPEN && is_open(c, t->name)) return open == OPEN_MAY_HOLD && may_hold(t);
    const ls_config_key *tree = ls_config_key_find_tree(t->name);
    char *value = value_of(c, tree ? tree : t->key);
    bool good = false;
    switch (t->is) {
    case IS_ONE_OF: good = has_word(t, value); break;
    case IS_NONE_OF: good = !has_word(t, value); break;
    case IS_ABOVE: good = strtod(value, NULL) > strtod(t->words, NULL); break;
    case IS_SET: good = *value && strcmp(value, "[]") != 0; break;
    case IS_UNSET: good = !*value || strcmp(value, "[]") == 0; break;
    }
    free(value);
    return good;
}

static bool all_hold(const ls_config *c, const char *s, const char *end, open_keys open) {
    for (const char *next = NULL; s < end; s = next + strlen("; ")) {
        next = part_end(s, end, "; ");
        term t = read_term(s, next);
        if (!holds(c, &t, open)) return false;
    }
    return true;
}

static bool is_met(const ls_config *c, const char *needs, open_keys open) {
    const char *all = needs + strlen(needs);
    for (const char *s = needs, *end = NULL; s < all; s = end + strlen(" or ")) {
        end = part_end(s, all, " or ");
        if (all_hold(c, s, end, open)) return true;
    }
    return false;
}

static bool matches(const ls_config_need *n, const char *key) {
    size_t len = strcspn(n->key, "*");
    return strncmp(n->key, key, len) == 0 && (n->key[len] == '*' || !key[len]);
}

/* The first row of the key that is not met; NULL: it acts. */
static const ls_config_need *unmet(const ls_config *c, const char *key, open_keys open) {
    for (const ls_config_need *n = ls_config_needs; n->key; n++)
        if (matches(n, key) && !is_met(c, n->needs, open)) return n;
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
static const ls_config_need *idle_by(const ls_config *c, const char *key, open_keys open) {
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

/* Appends the row with " and " for "; ", and ", or " for " or ". */
static void put_row(const ls_config_need *n, ls_buf *out) {
    const char *all = n->needs + strlen(n->needs);
    for (const char *s = n->needs, *end = NULL; s < all;) {
        bool alternative = false;
        end = term_end(s, all, &alternative);
        ls_buf_printf(out, "%.*s%s", (int)(end - s), s,
                      end == all    ? ""
                      : alternative ? ", or "
                                    : " and ");
        s = after_term(end, alternative);
    }
}

void ls_config_put_needs(const char *key, ls_buf *out) {
    bool first = true;
    for (const ls_config_need *n = ls_config_needs; n->key; n++) {
        if (!matches(n, key)) continue;
        ls_buf_printf(out, first ? "" : ", and ");
        put_row(n, out);
        first = false;
    }
}

/* Appends what the config has of a term's key. */
static void put_value(const ls_config *c, const term *t, open_keys open, ls_buf *out) {
    const ls_config_key *tree = ls_config_key_find_tree(t->name);
    char *value = value_of(c, tree ? tree : t->key);
    bool plain = t->is != IS_SET && t->is != IS_UNSET;
    if (open != NONE_IS_OPEN && is_open(c, t->name))
        ls_buf_printf(out, "the %s of model.from", t->name);
    else if (plain)
        ls_buf_printf(out, "%s: %s", t->name, value);
    else
        ls_buf_printf(out, "%s%s", *value && strcmp(value, "[]") != 0 ? "" : "no ", t->name);
    free(value);
}

/* Appends what the config has of each key in the row that is not as it must be. */
static void put_values(const ls_config *c, const ls_config_need *n, open_keys open, ls_buf *out) {
    enum { MOST = 8 };
    const ls_config_key *seen[MOST];
    int nseen = 0;
    const char *all = n->needs + strlen(n->needs);
    for (const char *s = n->needs; s < all && nseen < MOST;) {
        bool alternative = false;
        const char *end = term_end(s, all, &alternative);
        term t = read_term(s, end);
        bool said = holds(c, &t, open);
        for (int i = 0; i < nseen; i++) said = said || seen[i] == t.key;
        if (!said) {
            ls_buf_printf(out, nseen ? ", " : "");
            put_value(c, &t, open, out);
            seen[nseen++] = t.key;
        }
        s = after_term(end, alternative);
    }
}

/* "model.dropout acts only with model.kind: mlp, cnn, vit; WHO has model.kind: gpt2" */
static char *explain(const ls_config *c, const char *key, const ls_config_need *n, open_keys open,
                     const char *who) {
    ls_buf text = {0};
    ls_buf_printf(&text, "%s acts only with ", key);
    ls_config_put_needs(key, &text);
    ls_buf_printf(&text, "; %s has ", who);
    put_values(c, n, open, &text);
    return text.data;
}

/* Appends "set data.format: chat, or " where a key that nobody has set is all that the row lacks. */
static void put_set(const ls_config *c, const ls_config_need *n, open_keys open, ls_buf *out) {
    const char *all = n->needs + strlen(n->needs), *end = NULL;
    term lacks = {0};
    if (strstr(n->needs, " or ")) return;
    for (const char *s = n->needs; s < all; s = end + strlen("; ")) {
        end = part_end(s, all, "; ");
        term t = read_term(s, end);
        if (holds(c, &t, open)) continue;
        if (lacks.key || !t.key || t.is != IS_ONE_OF ||
            memchr(t.words, ',', (size_t)(end - t.words)))
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
static ls_status check_groups(const ls_config *c, open_keys open, const char *where, ls_error *e) {
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
    open_keys open = complete ? NONE_IS_OPEN : OPEN_MAY_HOLD;
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
        if (c->written[i] == LS_WRITTEN && !idle_by(c, ls_config_keys[i].name, OPEN_DO_NOT_HOLD))
            c->written[i] = LS_WRITTEN_AND_ACTS;
}

/* One pass: a key that is dropped may be one that another needs. */
static bool drop_some(ls_config *c, const ls_config *usual, ls_buf *notes) {
    bool any = false;
    for (int i = 0; i < LS_NCONFIG_KEYS; i++) {
        const ls_config_key *k = set_one(c, &ls_config_keys[i]);
        const ls_config_need *n = NULL;
        if (c->written[i] >= LS_WRITTEN_AND_ACTS) n = idle_by(c, k->name, OPEN_MAY_HOLD);
        if (!n) continue;
        char *why = explain(c, k->name, n, OPEN_MAY_HOLD, "this config");
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

void ls_config_forget_written(ls_config *c) { memset(c->written, 0, sizeof c->written); }
