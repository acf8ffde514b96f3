/* config.c - see config.h. One table tells everything about a key. */
#include "config/config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/wrap.h"
#include "base/yaml.h"
#include "config/suggest.h"

typedef enum key_type { INTEGER, REAL, TEXT, LIST, CHOICE } key_type; /* LIST: a text a line */

typedef struct key {
    const char *name;
    key_type type;
    size_t offset;              /* in ls_config */
    int64_t whole[3];           /* of INTEGER: lowest, highest, default */
    double real[3];             /* of REAL: the same */
    const char *const *choices; /* [.., NULL] of CHOICE: the value is the index; of INTEGER: the
                                   word for LS_AUTO, or NULL */
    bool free;                  /* may differ when a run goes on: it can't touch the bits */
    const char *help;
} key;

static const char *const reduces[] = {"tree", "fastest", NULL};
static const char *const transports[] = {"auto", "shm", "thread", "tcp", "mpi", NULL};
static const char *const executors[] = {"lanes", "sequential", NULL};
static const char *const fits[] = {"off", "auto", NULL};
static const char *const computes[] = {"f32", "bf16", "f16", NULL};
static const char *const reduce_dtypes[] = {"auto", "f32", "bf16", "f16", NULL};
static const char *const accumulates[] = {"late", "early", NULL};
static const char *const states[] = {"memory", "file", NULL};
static const char *const balances[] = {"auto", "off", NULL};
static const char *const bests[] = {"off", "on", NULL};
static const char *const autos[] = {"auto", NULL};
static const char *const overlaps[] = {"auto", "on", "off", NULL};

enum { FIXED = false, FREE = true };
enum { LOW, HIGH, USUAL };
enum { BILLION = 1000000000 };

#define INT(name, field, low, high, usual, free, help)                                             \
    { name, INTEGER, offsetof(ls_config, field), {low, high, usual}, {0}, NULL, free, help }
#define NUM(name, field, low, high, usual, free, help)                                             \
    { name, REAL, offsetof(ls_config, field), {0}, {low, high, usual}, NULL, free, help }
#define STRING(name, field, free, help)                                                            \
    { name, TEXT, offsetof(ls_config, field), {0}, {0}, NULL, free, help }
#define STRINGS(name, field, free, help)                                                           \
    { name, LIST, offsetof(ls_config, field), {0}, {0}, NULL, free, help }
#define INT_OR_AUTO(name, field, low, high, usual, free, help)                                     \
    { name, INTEGER, offsetof(ls_config, field), {low, high, usual}, {0}, autos, free, help }
#define ONE_OF(name, field, list, free, help)                                                      \
    { name, CHOICE, offsetof(ls_config, field), {0}, {0}, list, free, help }

static const key keys[] = {
    INT("model.layers", model.layers, 1, 1000, 6, FIXED, "transformer blocks"),
    INT("model.width", model.width, 1, 65536, 256, FIXED, "of the residual stream"),
    INT("model.heads", model.heads, 1, 1024, 8, FIXED, "of attention; divide the width"),
    INT("model.context", model.context, 1, 1048576, 256, FIXED, "tokens of a sample"),
    INT("model.vocab", model.vocab, 256, 1048576, 2048, FIXED,
        "tokens of the tokenizer, which is trained on the text"),
    STRINGS("data.path", data.path, FREE,
            "a UTF-8 text, or several: a pattern (books/*.txt) or a list of files and patterns, "
            "read one after the other; a run keeps its tokens, so going on does not read it again"),
    NUM("data.val_fraction", data.val_fraction, 0.001, 0.5, 0.05, FIXED,
        "part of the text's end that is kept for validation"),
    STRING("train.from", train.from, FREE,
           "a run or checkpoint whose weights and tokenizer a new run begins with, e.g. to "
           "fine-tune; empty: weights are drawn, the tokenizer is trained"),
    INT("train.steps", train.steps, 1, BILLION, 1000, FREE, "updates of the weights"),
    INT("train.batch", train.batch, 1, 1048576, 16, FIXED, "samples of a step"),
    INT("train.micro_batch", train.micro_batch, 1, 1048576, 1, FREE,
        "samples that a worker computes at once: memory against speed"),
    INT("train.virtual_workers", train.virtual_workers, 1, 4096, 8, FIXED,
        "parts of the batch; they fix the order of summation, and the most workers"),
    INT("train.seed", train.seed, 0, INT64_MAX, 1, FIXED,
        "of initial weights and the order of samples"),
    INT("train.eval_every", train.eval_every, 0, BILLION, 100, FREE,
        "steps between evaluations; 0: at the end alone"),
    INT("train.eval_samples", train.eval_samples, 1, BILLION, 64, FREE,
        "of an evaluation; the last takes all"),
    INT("train.patience", train.patience, 0, BILLION, 0, FREE,
        "the run ends early after this many evaluations without a new lowest loss in a row, and "
        "the "
        "best checkpoint is kept; 0: never"),
    ONE_OF("train.compute", train.compute, computes, FIXED,
           "type of parameters and activations; bf16 and f16 keep f32 masters of the weights: less "
           "memory and traffic, not less time on a CPU"),
    ONE_OF("train.reduce_dtype", train.reduce_dtype, reduce_dtypes, FIXED,
           "type of gradients, as they are kept and sent; auto: that of train.compute"),
    NUM("optim.lr", optim.lr, 0, 1000, 1e-3, FIXED, "learning rate after the warm-up"),
    NUM("optim.min_lr", optim.min_lr, 0, 1000, 1e-4, FIXED, "at the end of the cosine"),
    INT("optim.warmup", optim.warmup, 0, BILLION, 50, FIXED, "steps of linear warm-up"),
    NUM("optim.beta1", optim.beta1, 0, 0.999999, 0.9, FIXED, "AdamW"),
    NUM("optim.beta2", optim.beta2, 0, 0.999999, 0.95, FIXED, "AdamW"),
    NUM("optim.eps", optim.eps, 1e-30, 1, 1e-8, FIXED, "AdamW"),
    NUM("optim.weight_decay", optim.weight_decay, 0, 1000, 0.1, FIXED,
        "decoupled; none on norms and biases"),
    NUM("optim.clip", optim.clip, 0, 1e9, 1, FIXED, "largest norm of the gradient; 0: off"),
    NUM("optim.loss_scale", optim.loss_scale, 1, 1e9, 65536, FIXED,
        "f16: what the loss is multiplied by at first, so that small gradients don't vanish"),
    INT("optim.loss_scale_window", optim.loss_scale_window, 1, BILLION, 1000, FIXED,
        "f16: good steps after which the scale is doubled"),
    INT("optim.loss_scale_hysteresis", optim.loss_scale_hysteresis, 1, 1000, 2, FIXED,
        "f16: overflows after which it is halved; the step of each is skipped"),
    NUM("optim.loss_scale_min", optim.loss_scale_min, 1e-6, 1e9, 1, FIXED,
        "f16: an overflow at this scale ends the run"),
    ONE_OF("parallel.reduce", parallel.reduce, reduces, FREE,
           "order of sums: tree gives the same bits for any number of workers; fastest does not"),
    ONE_OF("parallel.transport", parallel.transport, transports, FREE,
           "shm: processes that share memory; thread: threads; tcp, mpi: processes that send "
           "messages; auto: shm where it can be"),
    ONE_OF("parallel.executor", parallel.executor, executors, FREE,
           "sequential: one process plays all workers, as a check"),
    ONE_OF("parallel.overlap", parallel.overlap, overlaps, FREE,
           "a thread for communication beside computing; auto: where cores are free"),
    INT("parallel.threads", parallel.threads, 1, 256, 1, FREE, "of each worker"),
    NUM("parallel.bucket_mb", parallel.bucket_mb, 0.0001, 4096, 25, FREE,
        "megabytes of gradient that are reduced at once"),
    INT("parallel.zero", parallel.zero, 0, 3, 1, FREE,
        "what is sharded among workers: 0 nothing, 1 the optimizer's state, 2 gradients too, 3 "
        "parameters too"),
    INT("parallel.shard_group", parallel.shard_group, 0, 4096, 0, FREE,
        "workers among which one copy is sharded, so that groups of them, e.g. hosts, each have "
        "one (hybrid shard); 0: all workers"),
    ONE_OF("parallel.accumulate", parallel.accumulate, accumulates, FREE,
           "when a worker with several virtual workers sends gradients: late: after the last; "
           "early: after each, with zero 2 and 3: less memory, more is sent"),
    INT("parallel.prefetch", parallel.prefetch, 0, 1000, 1, FREE,
        "with zero 3: layers ahead of which parameters are gathered"),
    INT_OR_AUTO(
        "parallel.recompute", parallel.recompute, 0, 1000, 0, FREE,
        "layers of a segment of which only the input is kept for backward, the rest computed "
        "again; "
        "2: a transformer block; 0: all is kept; auto: the least that memory_limit_mb asks for"),
    INT("parallel.recompute_layers", parallel.recompute_layers, 0, 2000, 0, FREE,
        "so many layers are in such segments, the first ones; 0: all"),
    ONE_OF("parallel.optimizer_state", parallel.optimizer_state, states, FREE,
           "file: moments and masters lie in a file that is mapped, and may be larger than memory"),
    STRING("parallel.state_dir", parallel.state_dir, FREE,
           "folder of that file, on a disk; empty: the run's"),
    NUM("parallel.whole_kb", parallel.whole_kb, 0, 1e9, 0, FREE,
        "with zero 3: parameters of buckets up to so many kilobytes stay whole on every worker"),
    NUM("parallel.memory_limit_mb", parallel.memory_limit_mb, 0, 1e9, 0, FREE,
        "megabytes that a worker may need; 0: no limit"),
    ONE_OF("parallel.fit", parallel.fit, fits, FREE,
           "auto: zero, recompute and micro_batch are chosen where the limit asks for it"),
    NUM("parallel.timeout_s", parallel.timeout_s, 0.1, 86400, 60, FREE,
        "seconds that a worker waits for another"),
    NUM("survival.heartbeat_s", survival.heartbeat_s, 0.3, 3600, 1, FREE,
        "seconds after which a worker that shows no life is replaced"),
    NUM("survival.stop_s", survival.stop_s, 0, 1e6, 10, FREE,
        "seconds after Ctrl-C or SIGTERM after which the step in flight is given up, to be done "
        "again when the run goes on"),
    NUM("survival.rejoin_s", survival.rejoin_s, 0, 86400, 30, FREE,
        "seconds that a host goes on looking for one that leads"),
    STRING("survival.membership", survival.membership, FREE,
           "etcd://HOST:PORT,... (etcds: with TLS): hosts elect one that leads; empty: the first"),
    STRING("survival.etcd_run", survival.etcd_run, FREE,
           "the run's name there, unlike other runs'; empty: that of its folder"),
    STRING("survival.etcd_ca", survival.etcd_ca, FREE,
           "PEM file of authorities; empty: the system's"),
    STRING("survival.etcd_cert", survival.etcd_cert, FREE, "PEM file of this client's certificate"),
    STRING("survival.etcd_key", survival.etcd_key, FREE, "PEM file of its key"),
    STRING("survival.etcd_user", survival.etcd_user, FREE,
           "with the password in LOCKSTEP_ETCD_PASSWORD; empty: none"),
    INT("survival.audit", survival.audit, 0, BILLION, 0, FREE,
        "steps after which workers compare parameters, and a virtual worker's gradient that two of "
        "them compute; 0: never"),
    NUM("survival.slow_limit", survival.slow_limit, 0, 1e6, 10, FREE,
        "a worker that takes so many times as long as the others is replaced; 0: never"),
    INT("survival.backup_workers", survival.backup_workers, 0, 4096, 0, FREE,
        "virtual workers of slow workers that idle ones of their host compute, too, in a step; the "
        "first result counts"),
    INT("survival.copies", survival.copies, 1, 16, 1, FREE,
        "of state that is sharded over hosts: with 2, no step is lost with a host"),
    ONE_OF("survival.balance", survival.balance, balances, FREE,
           "auto: a worker that is slow for a while gets fewer virtual workers"),
    INT("survival.min_workers", survival.min_workers, 1, 4096, 1, FREE,
        "a worker that leaves is replaced if fewer would stay"),
    INT("survival.max_workers", survival.max_workers, 0, 4096, 0, FREE,
        "to which a run may grow; 0: as many as virtual workers"),
    INT("checkpoint.every", checkpoint.every, 0, BILLION, 0, FREE, "steps; 0: at the end alone"),
    NUM("checkpoint.minutes", checkpoint.minutes, 0, 1e6, 0, FREE,
        "between checkpoints, beside those of checkpoint.every; 0: none"),
    INT("checkpoint.keep", checkpoint.keep, 1, BILLION, 3, FREE, "the newest so many"),
    ONE_OF("checkpoint.best", checkpoint.best, bests, FREE,
           "on: each evaluation with a new lowest loss gets a checkpoint; that of the lowest stays "
           "beside the newest, as checkpoints/best"),
    INT("log.every", log.every, 1, BILLION, 10, FREE,
        "steps between lines where the output is no terminal"),
};

enum { NKEYS = sizeof keys / sizeof *keys };

static int64_t *integer_at(ls_config *c, const key *k) {
    return (int64_t *)(void *)((char *)c + k->offset);
}
static double *real_at(ls_config *c, const key *k) {
    return (double *)(void *)((char *)c + k->offset);
}
static char *text_at(ls_config *c, const key *k) { return (char *)c + k->offset; }

void ls_config_defaults(ls_config *c) {
    *c = (ls_config){0};
    for (int i = 0; i < NKEYS; i++) {
        if (keys[i].type == INTEGER) *integer_at(c, &keys[i]) = keys[i].whole[USUAL];
        if (keys[i].type == REAL) *real_at(c, &keys[i]) = keys[i].real[USUAL];
    }
}

/* ---- finding a key ---- */

static const key *find_key(const char *name) {
    for (int i = 0; i < NKEYS; i++)
        if (strcmp(keys[i].name, name) == 0) return &keys[i];
    return NULL;
}

/* The groups, in table order: "model, data, ...". */
static void list_groups(ls_buf *out) {
    const char *last = "";
    for (int i = 0; i < NKEYS; i++) {
        size_t n = strcspn(keys[i].name, ".") + 1; /* with the dot */
        if (strncmp(last, keys[i].name, n) == 0) continue;
        ls_buf_printf(out, "%s%.*s", i ? ", " : "", (int)n - 1, keys[i].name);
        last = keys[i].name;
    }
}

static bool is_group(const char *name) {
    size_t n = strlen(name);
    for (int i = 0; i < NKEYS; i++)
        if (strncmp(keys[i].name, name, n) == 0 && keys[i].name[n] == '.') return true;
    return false;
}

static ls_status group_alone(const char *where, const char *name, ls_error *e) {
    ls_buf groups = {0};
    list_groups(&groups);
    ls_status s =
        ls_fail(e, LS_EINVAL,
                "%.300s: '%.60s' is a group, not a key; give keys in it, e.g. train.steps, "
                "or leave it out (the groups are %s)",
                where, name, groups.data);
    ls_buf_free(&groups);
    return s;
}

static ls_status unknown_key(const char *where, const char *name, ls_error *e) {
    if (is_group(name)) return group_alone(where, name, e);
    const char *names[NKEYS];
    for (int i = 0; i < NKEYS; i++) names[i] = keys[i].name;
    const char *meant = ls_config_suggest(name, names, NKEYS);
    return ls_fail(e, LS_EINVAL,
                   "%.300s: unknown key '%.60s'%s%s%s 'lockstep help config' lists all", where,
                   name, meant ? "; did you mean '" : ";", meant ? meant : "", meant ? "'?" : "");
}

/* ---- values ---- */

enum { RANGE_TEXT = 64 };

static void write_range(const key *k, char text[RANGE_TEXT]) {
    if (k->type == INTEGER)
        snprintf(text, RANGE_TEXT, "%lld to %lld", (long long)k->whole[LOW],
                 (long long)k->whole[HIGH]);
    else
        snprintf(text, RANGE_TEXT, "%.15g to %.15g", k->real[LOW], k->real[HIGH]);
}

static ls_status range_failed(const char *where, const key *k, const char *value, ls_error *e) {
    char range[RANGE_TEXT];
    write_range(k, range);
    return ls_fail(e, LS_EINVAL, "%s: %s: %.60s is out of range; expected %s", where, k->name,
                   value, range);
}

static ls_status not_a_number(const char *where, const key *k, const char *value, const char *what,
                              ls_error *e) {
    char range[RANGE_TEXT];
    write_range(k, range);
    return ls_fail(e, LS_EINVAL, "%s: %s: '%.60s' is not a %s; expected %s", where, k->name, value,
                   what, range);
}

static ls_status set_integer(ls_config *c, const key *k, const char *where, const char *value,
                             ls_error *e) {
    char *end = NULL;
    errno = 0;
    if (k->choices && strcmp(value, k->choices[0]) == 0) {
        *integer_at(c, k) = LS_AUTO;
        return LS_OK;
    }
    long long v = strtoll(value, &end, 10);
    bool number = *value && !*end && strspn(value, "+-0123456789") == strlen(value);
    if (!number) return not_a_number(where, k, value, "whole number", e);
    if (errno || v < k->whole[LOW] || v > k->whole[HIGH]) return range_failed(where, k, value, e);
    *integer_at(c, k) = v;
    return LS_OK;
}

static ls_status set_real(ls_config *c, const key *k, const char *where, const char *value,
                          ls_error *e) {
    char *end = NULL;
    double v = strtod(value, &end);
    bool number = *value && !*end && strspn(value, "+-.0123456789eE") == strlen(value);
    if (!number) return not_a_number(where, k, value, "number", e);
    if (!isfinite(v) || v < k->real[LOW] || v > k->real[HIGH])
        return range_failed(where, k, value, e);
    *real_at(c, k) = v;
    return LS_OK;
}

static ls_status set_choice(ls_config *c, const key *k, const char *where, const char *value,
                            ls_error *e) {
    ls_buf list = {0};
    for (int i = 0; k->choices[i]; i++) {
        if (strcmp(k->choices[i], value) == 0) {
            *integer_at(c, k) = i;
            ls_buf_free(&list);
            return LS_OK;
        }
        ls_buf_printf(&list, "%s%s", i ? ", " : "", k->choices[i]);
    }
    ls_status s =
        ls_fail(e, LS_EINVAL, "%s: %s: '%.60s' is not one of %s", where, k->name, value, list.data);
    ls_buf_free(&list);
    return s;
}

static ls_status set_text(ls_config *c, const key *k, const char *where, const char *value,
                          ls_error *e) {
    if (strlen(value) >= LS_CONFIG_TEXT)
        return ls_fail(e, LS_EINVAL, "%s: %s: is longer than %d bytes", where, k->name,
                       LS_CONFIG_TEXT - 1);
    if (!ls_utf8_is_valid(value, strlen(value))) /* it could not be written as YAML */
        return ls_fail(e, LS_EINVAL, "%s: %s: is not UTF-8", where, k->name);
    snprintf(text_at(c, k), LS_CONFIG_TEXT, "%s", value);
    return LS_OK;
}

static ls_status set_value(ls_config *c, const key *k, const char *where, const char *value,
                           ls_error *e) {
    switch (k->type) {
    case INTEGER: return set_integer(c, k, where, value, e);
    case REAL: return set_real(c, k, where, value, e);
    case CHOICE: return set_choice(c, k, where, value, e);
    case TEXT:
    case LIST: break;
    }
    return set_text(c, k, where, value, e);
}

/* "[a, b]", as a value in YAML is. */
static ls_status set_list(ls_config *c, const key *k, const char *value, ls_error *e) {
    ls_buf text = {0};
    ls_yaml y = {0};
    ls_buf_printf(&text, "%s: %s", k->name, value);
    ls_status s = ls_yaml_parse_lists(&text, "--set", &y, e);
    if (s == LS_OK && y.nitems == 1) s = set_text(c, k, "--set", y.items[0].value, e);
    ls_yaml_free(&y);
    ls_buf_free(&text);
    return s;
}

/* ---- reading ---- */

static ls_status apply(ls_config *c, const char *path, const ls_yaml *y, ls_error *e) {
    int lines[NKEYS] = {0}; /* where each key stands, as far as read */
    for (size_t i = 0; i < y->nitems; i++) {
        const ls_yaml_item *item = &y->items[i];
        char where[LS_CONFIG_TEXT];
        snprintf(where, sizeof where, "%.900s:%d", path, item->line);
        const key *k = find_key(item->key);
        if (!k && item->is_list && is_group(item->key))
            return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' is a list; a single value is expected",
                           where, item->key);
        if (!k) return unknown_key(where, item->key, e);
        int *line = &lines[k - keys];
        if (*line)
            return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' stands twice; first in line %d", where,
                           item->key, *line);
        *line = item->line;
        if (item->is_list && k->type != LIST)
            return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' is a list; a single value is expected",
                           where, item->key);
        LS_TRY(set_value(c, k, where, item->value, e));
    }
    return LS_OK;
}

static bool is_named_yaml(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

/* A text is often given where its config should stand. */
static ls_status not_a_config(const char *path, ls_status s, ls_error *e) {
    char why[sizeof e->msg];
    if (!e || s != LS_EINVAL || is_named_yaml(path)) return s;
    snprintf(why, sizeof why, "%.380s", e->msg);
    return ls_fail(e, s, "%s; a config is a YAML file, and a text goes into its key data.path",
                   why);
}

ls_status ls_config_read(const char *path, ls_config *c_p, ls_error *e) {
    ls_yaml y;
    ls_status s = ls_yaml_read_lists(path, &y, e);
    if (s != LS_OK) return not_a_config(path, s, e);
    ls_config_defaults(c_p);
    s = apply(c_p, path, &y, e);
    ls_yaml_free(&y);
    return s;
}

ls_status ls_config_set(ls_config *c, const char *assignment, ls_error *e) {
    const char *equals = strchr(assignment, '=');
    if (!equals)
        return ls_fail(e, LS_EINVAL,
                       "--set: '%.100s' has no '='; write key=value, e.g. train.steps=50",
                       assignment);
    char *name = ls_format("%.*s", (int)(equals - assignment), assignment);
    const key *k = find_key(name);
    bool is_list = k && k->type == LIST && equals[1] == '[';
    ls_status s = LS_OK;
    if (!k)
        s = unknown_key("--set", name, e);
    else if (is_list)
        s = set_list(c, k, equals + 1, e);
    else
        s = set_value(c, k, "--set", equals + 1, e);
    free(name);
    return s;
}

/* ---- relations ---- */

static ls_status check_model(const ls_config *c, const char *where, ls_error *e) {
    int64_t width = c->model.width, heads = c->model.heads;
    if (width % heads == 0) return LS_OK;
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

static ls_status check_train(const ls_config *c, const char *where, ls_error *e) {
    int64_t B = c->train.batch, V = c->train.virtual_workers, below = B / V * V;
    char nearby[64];
    if (below)
        snprintf(nearby, sizeof nearby, "%lld or %lld", (long long)below, (long long)(below + V));
    else
        snprintf(nearby, sizeof nearby, "%lld", (long long)V);
    if (B % V)
        return ls_fail(e, LS_EINVAL,
                       "%s: train.virtual_workers %lld does not divide train.batch %lld; a batch "
                       "of %s would do",
                       where, (long long)V, (long long)B, nearby);
    if (c->train.micro_batch > B / V)
        return ls_fail(e, LS_EINVAL,
                       "%s: train.micro_batch %lld is more than a virtual worker has: %lld samples "
                       "(train.batch %lld / train.virtual_workers %lld)",
                       where, (long long)c->train.micro_batch, (long long)(B / V), (long long)B,
                       (long long)V);
    return LS_OK;
}

ls_status ls_config_check(const ls_config *c, const char *where, ls_error *e) {
    LS_TRY(check_model(c, where, e));
    LS_TRY(check_train(c, where, e));
    if (!*c->data.path)
        return ls_fail(e, LS_EINVAL, "%s: data.path is missing; set data.path to a UTF-8 text",
                       where);
    if (c->train.patience > 0 && c->train.eval_every == 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: train.patience %lld counts evaluations, and train.eval_every is 0; set "
                       "train.eval_every to steps between evaluations",
                       where, (long long)c->train.patience);
    if (c->optim.warmup > c->train.steps)
        return ls_fail(e, LS_EINVAL, "%s: optim.warmup %lld is more than train.steps %lld", where,
                       (long long)c->optim.warmup, (long long)c->train.steps);
    if (c->optim.loss_scale < c->optim.loss_scale_min)
        return ls_fail(e, LS_EINVAL, "%s: optim.loss_scale %g is below optim.loss_scale_min %g",
                       where, c->optim.loss_scale, c->optim.loss_scale_min);
    if (c->optim.min_lr > c->optim.lr)
        return ls_fail(e, LS_EINVAL, "%s: optim.min_lr %g is more than optim.lr %g", where,
                       c->optim.min_lr, c->optim.lr);
    return LS_OK;
}

/* ---- writing ---- */

static void put_real(double v, ls_buf *out) {
    char text[32];
    snprintf(text, sizeof text, "%.15g", v);
    if (strtod(text, NULL) != v) snprintf(text, sizeof text, "%.17g", v);
    ls_buf_printf(out, "%s", text);
}

/* Whether YAML takes it as it is within double quotes: no control characters, none of the line ends
 * U+0085, U+2028 and U+2029, no byte order mark. */
static bool is_plain(uint32_t point) {
    if (point < 0x20 || (point >= 0x7f && point < 0xa0) || point == '"' || point == '\\')
        return false;
    return point != 0x2028 && point != 0x2029 && point != 0xfeff && (point & 0xfffe) != 0xfffe;
}

/* As a double-quoted YAML scalar. `s` is UTF-8. */
static void put_text(const char *s, ls_buf *out) {
    ls_buf_append(out, "\"", 1);
    uint32_t point = 0;
    for (size_t n; *s && (n = ls_utf8_decode(s, strlen(s), &point)); s += n) {
        if (is_plain(point))
            ls_buf_append(out, s, n);
        else if (point == '"' || point == '\\')
            ls_buf_printf(out, "\\%c", (int)point);
        else
            ls_buf_printf(out, "\\U%08x", (unsigned)point);
    }
    ls_buf_append(out, "\"", 1);
}

/* One element as a text, several as a list. */
static void put_list(const char *s, ls_buf *out) {
    if (!strchr(s, '\n')) {
        put_text(s, out);
        return;
    }
    char *all = ls_strdup(s), *rest = all;
    for (char *one; (one = strsep(&rest, "\n"));) {
        ls_buf_printf(out, one == all ? "[" : ", ");
        put_text(one, out);
    }
    ls_buf_printf(out, "]");
    free(all);
}

static void put_value(const ls_config *c, const key *k, ls_buf *out) {
    const char *at = (const char *)c + k->offset;
    int64_t integer = 0;
    double real = 0;
    memcpy(&integer, at, sizeof integer);
    memcpy(&real, at, sizeof real);
    switch (k->type) {
    case INTEGER:
        if (k->choices && integer == LS_AUTO)
            ls_buf_printf(out, "\"%s\"", k->choices[0]);
        else
            ls_buf_printf(out, "%lld", (long long)integer);
        break;
    case REAL: put_real(real, out); break;
    case CHOICE: ls_buf_printf(out, "\"%s\"", k->choices[integer]); break;
    case TEXT: put_text(at, out); break;
    case LIST: put_list(at, out); break;
    }
}

void ls_config_write(const ls_config *c, ls_buf *out) {
    const char *group = "";
    for (int i = 0; i < NKEYS; i++) {
        const char *dot = strchr(keys[i].name, '.');
        size_t n = (size_t)(dot - keys[i].name) + 1;
        if (strncmp(group, keys[i].name, n) != 0)
            ls_buf_printf(out, "%.*s:\n", (int)n - 1, keys[i].name);
        group = keys[i].name;
        ls_buf_printf(out, "  %s: ", dot + 1);
        put_value(c, &keys[i], out);
        ls_buf_printf(out, "\n");
    }
}

/* What a host may have of its own: where things are there, and what it alone decides by. */
static bool is_own(const key *k) {
    static const char *const own[] = {
        "data.path",           "parallel.threads",   "parallel.overlap",  "parallel.state_dir",
        "parallel.fit",        "survival.rejoin_s",  "survival.etcd_ca",  "survival.etcd_cert",
        "survival.membership", "survival.etcd_user", "survival.etcd_key", "log.every",
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], k->name) == 0) return true;
    return false;
}

void ls_config_alike(const ls_config *c, ls_buf *out) {
    for (int i = 0; i < NKEYS; i++) {
        if (is_own(&keys[i])) continue;
        ls_buf_printf(out, "%s ", keys[i].name);
        put_value(c, &keys[i], out);
        ls_buf_printf(out, "\n");
    }
}

static void put_help(const ls_config *usual, const key *k, ls_buf *out) {
    ls_buf line = {0};
    ls_buf_printf(&line, "%s = ", k->name);
    put_value(usual, k, &line);
    char range[RANGE_TEXT];
    write_range(k, range);
    if (k->type == INTEGER || k->type == REAL)
        ls_buf_printf(&line, " (%s%s%s)", range, k->choices ? ", or " : "",
                      k->choices ? k->choices[0] : "");
    for (int j = 0; k->type == CHOICE && k->choices[j]; j++)
        ls_buf_printf(&line, "%s%s%s", j ? ", " : " (", k->choices[j],
                      k->choices[j + 1] ? "" : ")");
    ls_buf_printf(out, "  ");
    ls_buf_wrap(out, line.data, 2, 6);
    ls_buf_printf(out, "      ");
    ls_buf_wrap(out, k->help, 6, 6);
    ls_buf_free(&line);
}

static ls_status no_group(const char *group, ls_error *e) {
    ls_buf groups = {0};
    list_groups(&groups);
    ls_status s =
        ls_fail(e, LS_EINVAL, "there is no group '%.60s'; the groups are %s", group, groups.data);
    ls_buf_free(&groups);
    return s;
}

ls_status ls_config_help(const char *group, ls_buf *out, ls_error *e) {
    ls_config usual;
    ls_config_defaults(&usual);
    if (group && !is_group(group)) return no_group(group, e);
    if (!group)
        ls_buf_printf(out, "Keys of a config, with their defaults; in the file as groups:\n\n"
                           "    train:\n      steps: 50\n\n");
    size_t n = group ? strlen(group) : 0;
    for (int i = 0; i < NKEYS; i++)
        if (!group || (strncmp(keys[i].name, group, n) == 0 && keys[i].name[n] == '.'))
            put_help(&usual, &keys[i], out);
    return LS_OK;
}

const char *ls_config_key(int i) { return i < NKEYS ? keys[i].name : NULL; }

const char *const *ls_config_key_words(int i) { return keys[i].choices; }

/* ---- going on ---- */

static bool equal(const ls_config *a, const ls_config *b, const key *k) {
    const char *x = (const char *)a + k->offset, *y = (const char *)b + k->offset;
    return k->type == TEXT || k->type == LIST ? strcmp(x, y) == 0
                                              : memcmp(x, y, sizeof(int64_t)) == 0;
}

ls_status ls_config_compatible(const ls_config *was, const ls_config *now, char **note_p,
                               ls_error *e) {
    ls_buf note = {0};
    for (int i = 0; i < NKEYS; i++) {
        const key *k = &keys[i];
        if (equal(was, now, k)) continue;
        ls_buf a = {0}, b = {0};
        put_value(was, k, &a);
        put_value(now, k, &b);
        ls_status s = LS_OK;
        if (!k->free)
            s = ls_fail(e, LS_EINVAL,
                        "%s is %.60s, but the run began with %.60s; going on would not give the "
                        "bits of one run: set it back, or begin a new run",
                        k->name, b.data, a.data);
        if (strcmp(k->name, "train.steps") == 0)
            ls_buf_printf(&note,
                          "train.steps was %s and is %s: the learning rates from here on are those "
                          "of the new value. ",
                          a.data, b.data);
        if (strcmp(k->name, "parallel.reduce") == 0)
            ls_buf_printf(&note,
                          "parallel.reduce was %s and is %s: the bits are no longer those of one "
                          "run. ",
                          a.data, b.data);
        if (strcmp(k->name, "data.path") == 0)
            ls_buf_printf(&note,
                          "data.path has changed, but a run keeps its tokens: it is read only if "
                          "they are missing. ");
        ls_buf_free(&a);
        ls_buf_free(&b);
        if (s != LS_OK) {
            ls_buf_free(&note);
            return s;
        }
    }
    if (note.len) note.data[note.len - 1] = 0; /* the space after the last sentence */
    *note_p = note.data;
    return LS_OK;
}
