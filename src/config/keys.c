/* keys.c - see keys.h. One table tells everything about a key. */
#include "config/keys.h"

#include <stdio.h>
#include <string.h>

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
enum { BILLION = 1000000000 };

#define INT(name, field, low, high, usual, free, help)                                             \
    { name, LS_KEY_INTEGER, offsetof(ls_config, field), {low, high, usual}, {0}, NULL, free, help }
#define NUM(name, field, low, high, usual, free, help)                                             \
    { name, LS_KEY_REAL, offsetof(ls_config, field), {0}, {low, high, usual}, NULL, free, help }
#define STRING(name, field, free, help)                                                            \
    { name, LS_KEY_TEXT, offsetof(ls_config, field), {0}, {0}, NULL, free, help }
#define STRINGS(name, field, free, help)                                                           \
    { name, LS_KEY_LIST, offsetof(ls_config, field), {0}, {0}, NULL, free, help }
#define INT_OR_AUTO(name, field, low, high, usual, free, help)                                     \
    { name, LS_KEY_INTEGER, offsetof(ls_config, field), {low, high, usual}, {0}, autos, free, help }
#define ONE_OF(name, field, list, free, help)                                                      \
    { name, LS_KEY_CHOICE, offsetof(ls_config, field), {0}, {0}, list, free, help }

const ls_config_key ls_config_keys[] = {
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

const ls_config_key *ls_config_key_find(const char *name) {
    for (int i = 0; i < LS_NCONFIG_KEYS; i++)
        if (strcmp(ls_config_keys[i].name, name) == 0) return &ls_config_keys[i];
    return NULL;
}

/* The groups, in table order: "model, data, ...". */
void ls_config_key_list_groups(ls_buf *out) {
    const char *last = "";
    for (int i = 0; i < LS_NCONFIG_KEYS; i++) {
        size_t n = strcspn(ls_config_keys[i].name, ".") + 1; /* with the dot */
        if (strncmp(last, ls_config_keys[i].name, n) == 0) continue;
        ls_buf_printf(out, "%s%.*s", i ? ", " : "", (int)n - 1, ls_config_keys[i].name);
        last = ls_config_keys[i].name;
    }
}

bool ls_config_key_is_group(const char *name) {
    size_t n = strlen(name);
    for (int i = 0; i < LS_NCONFIG_KEYS; i++)
        if (strncmp(ls_config_keys[i].name, name, n) == 0 && ls_config_keys[i].name[n] == '.')
            return true;
    return false;
}

void ls_config_key_write_range(const ls_config_key *k, char text[LS_KEY_RANGE]) {
    if (k->type == LS_KEY_INTEGER)
        snprintf(text, LS_KEY_RANGE, "%lld to %lld", (long long)k->whole[LS_KEY_LOW],
                 (long long)k->whole[LS_KEY_HIGH]);
    else
        snprintf(text, LS_KEY_RANGE, "%.15g to %.15g", k->real[LS_KEY_LOW], k->real[LS_KEY_HIGH]);
}
