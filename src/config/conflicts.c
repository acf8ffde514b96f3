/* conflicts.c - see conflicts.h: the table, and what follows from it. */
#include "config/conflicts.h"

#include <stdlib.h>
#include <string.h>

#include "config/terms.h"

#define CODES      "compress.kind: topk, onebit, int8, int4, powersgd"
#define CODED      "compress.kind: other than none"
#define SIGNS      "optim.optimizer: onebit_adam, onebit_lamb"
#define APART      "sync.mode: local, diloco, gossip"
#define ASYNC      "sync.mode: async, ssp"
#define OTHER_MODE "sync.mode: other than all_reduce"
#define MESH                                                                                       \
    "parallel.mesh.pipe > 1 or parallel.mesh.tensor > 1 or parallel.mesh.context > 1 or "          \
    "parallel.mesh.expert > 1"
#define CHUNKED   "parallel.context_virtual > 1 or parallel.expert_virtual > 1"
#define HALF      "train.reduce_dtype: bf16, f16"
#define HALF_SUMS HALF " or train.compute: bf16, f16; train.reduce_dtype: auto"
#define FASTEST   "parallel.reduce: fastest"
#define EARLY     "parallel.accumulate: early"
#define GROUPED   "parallel.shard_group > 0"
#define WHOLE     "optim.optimizer: lars, lamb, adafactor, muon, soap, schedule-free"
#define EITHER    "leave one of them out"

const ls_config_conflict ls_config_conflicts[] = {
    /* the model, and its data */
    {"data.format: text", "model.kind: other than gpt2, llama",
     "only gpt2 and llama read a text; leave data.format out, or name that of the samples"},
    {"model.kind: gpt2, llama", "data.format: other than auto, text, chat, tokens",
     "a language model reads a text, conversations, or files of tokens; set one of them, or "
     "another model.kind"},
    {"data.format: chat", "model.kind: other than llama; no model.from",
     "conversations need positions of their own; set model.from to a model of kind llama"},
    {"data.format: chat", "no model.from; no train.from",
     "conversations need a model with a tokenizer; set model.from to its directory, or train.from "
     "to a run"},
    {"model.kind: factors, two_towers", "no data.ratings",
     "it reads interactions of users; set data.ratings, e.g. {user: userId, item: movieId, "
     "negatives: 4}"},
    {"model.kind: dlrm, wide_deep", "no data.clicks",
     "it reads ids and numbers; set data.clicks, e.g. {clicked: bought, ids: [shop, city], "
     "numbers: [price]}"},
    {"model.kind: factors, two_towers", "no model.loss",
     "set it, e.g. to {bpr: {target: clicked}}, or {mean_squared_error: {target: rating}}"},
    {"model.kind: dlrm, wide_deep", "no model.loss",
     "set it, e.g. to {binary_cross_entropy: {target: clicked}}"},
    {"data.mix", "data.path or data.labels",
     "data.mix names all sources; leave the other key out, or make it one of them"},
    {"data.folds > 0", "data.val_path", "both name samples for validation; " EITHER},
    {"model.sparse: on",
     "train.compute: other than f32 or " HALF " or train.freeze or optim.ema > 0 or " WHOLE
     ", onebit_adam, onebit_lamb or " CODED " or " OTHER_MODE
     " or parallel.executor: sequential or parallel.optimizer_state: file",
     "rows of tables are updated each by itself, in f32 and in memory, by workers that run at the "
     "same time; set model.sparse: off, or leave the other key out"},

    /* optimizers, and what is compressed */
    {"optim.optimizer: schedule-free", "optim.schedule: other than constant",
     "its average takes the place of a falling learning rate; set optim.schedule: constant"},
    {"optim.optimizer: schedule-free", "optim.warmup has a unit",
     "its average needs a warm-up in steps; set optim.warmup to a number"},
    {"optim.optimizer: schedule-free; train.batch is a list", "optim.scale_lr: linear, sqrt",
     "its average needs one learning rate after the warm-up; leave out optim.scale_lr"},
    {SIGNS,
     "parallel.zero > 0 or " FASTEST " or train.compute: f16 or " CODED " or " OTHER_MODE
     " or optim.groups",
     "each worker encodes the whole first moment, of gradients as they are; leave the other key "
     "out"},
    {SIGNS, "optim.freeze_step: 0",
     "set optim.freeze_step to the steps with gradients in full, e.g. a fifth of train.steps"},
    {"train.noise_scale: on",
     OTHER_MODE " or " CODED " or " SIGNS " or model.sparse: on or " FASTEST
                " or train.virtual_workers: 1",
     "it compares the gradients of two or more virtual workers, as they are summed; " EITHER},
    {CODES, FASTEST,
     "the gradient of each virtual worker is encoded by itself; set parallel.reduce: tree"},
    {CODES " or " SIGNS, HALF_SUMS, "gradients are encoded in f32; set train.reduce_dtype: f32"},
    {"model.kind: cnn, resnet; model.norm: batch", HALF_SUMS,
     "running values are summed with the gradients and need f32; set train.reduce_dtype: f32"},
    {"compress.kind: powersgd", "compress.send: values",
     "it sends factors; leave compress.send out"},
    {"compress.kind: powersgd", "compress.feedback: ef21, none",
     "what two factors lose is always added to the next gradient; leave compress.feedback out"},
    {"compress.kind: powersgd", EARLY,
     "factors are of all virtual workers, and rounds are sums of some; set parallel.accumulate: "
     "late"},

    /* models without training */
    {"infer.activations: int8", "train.compute: bf16, f16",
     "weights in blocks are rounded to 16 bits then; set train.compute: f32"},

    /* workers without common steps */
    {ASYNC, "parallel.device",
     "workers that don't step together compute on cores; leave parallel.device out"},
    {"parallel.device_link: peers, nccl", "parallel.executor: sequential",
     "devices that read each other's memory need workers that run at the same time; set "
     "parallel.device_link: host"},
    {ASYNC, "train.compute: f16 or train.reduce_dtype: f16",
     "f16 needs a loss scale that all workers share; use train.compute: bf16 or f32"},
    {ASYNC,
     "parallel.zero > 1 or " MESH " or " CHUNKED " or " EARLY
     " or train.batch is a list or optim.warmup has a unit",
     "the latter is for workers that sum their gradients in each step; leave it out, or set "
     "sync.mode: all_reduce"},
    {APART,
     "parallel.zero > 1 or " GROUPED " or " FASTEST " or " HALF " or " WHOLE
     ", rowwise_adagrad or model.kind: cnn, resnet; model.norm: batch or no "
     "model.from; model.router_bias_rate > 0",
     "each replica takes steps of its own, and their sums are taken in f32 and by elements; leave "
     "the other key out"},

    /* workers that divide a model */
    {MESH, GROUPED " or " EARLY " or " FASTEST " or " APART " or " CODES,
     "workers that have a model together sum its gradients in one group, at the end of the step, "
     "in the order of the tree; leave the other key out"},
    {MESH, "survival.audit > 0 or survival.backup_workers > 0",
     "the latter needs workers that have the whole model; " EITHER},
    {CHUNKED,
     GROUPED " or " EARLY " or " FASTEST " or " APART " or " CODES
             " or train.noise_scale: on or lora.rank > 0 or model.adapter or "
             "train.loss: dpo",
     "gradients of chunks are summed by all workers, at the end of the step, in the order of the "
     "tree, and layers with adapters or pairs are not cut; leave the other key out"},
    {"parallel.expert_virtual > 1", "data.format: chat",
     "conversations have samples of different weights; set 1"},
    {CHUNKED, "survival.audit > 0 or survival.backup_workers > 0",
     "the latter computes the gradient of one virtual worker again, and there is one for each "
     "chunk; " EITHER},
    {"parallel.tensor_virtual > 1", "lora.rank > 0 or model.adapter or train.loss: dpo",
     "layers with adapters, and the loss of pairs, are not cut into slices; set 1"},
    {"parallel.mesh: auto", GROUPED " or " EARLY " or parallel.stages or " OTHER_MODE,
     "the choice of a mesh does not decide it; " EITHER},
    {NULL, NULL, NULL},
};

/* ---- messages ---- */

/* Appends what the config has of the first alternative whose terms all hold; false: none does. */
static bool put_held(const ls_config *c, const char *terms, ls_buf *out) {
    ls_term t;
    size_t before = out->len;
    for (bool all = true; ls_term_read(&terms, &t);) {
        bool ends = t.alternative || !*terms;
        all = all && ls_term_holds(c, &t, LS_OPEN_MAY_HOLD);
        if (all) {
            ls_buf_printf(out, "%s", out->len > before ? " and " : "");
            ls_term_put_value(c, &t, LS_OPEN_MAY_HOLD, out);
        }
        if (all && ends) return true;
        if (!all) out->len = before;
        all = all || ends;
    }
    return false;
}

/* Appends " does not go with OTHER"; for "no A and no B", " needs A or B". */
static void put_other(const char *other, ls_buf *out) {
    static const char no[] = "no ", and[] = " and no ";
    bool lacks = strncmp(other, no, strlen(no)) == 0;
    ls_buf_printf(out, lacks ? " needs " : " does not go with ");
    if (lacks) other += strlen(no);
    for (const char *end = NULL; lacks && (end = strstr(other, and)); other = end + strlen(and))
        ls_buf_printf(out, "%.*s or ", (int)(end - other), other);
    ls_buf_printf(out, "%s", other);
}

ls_status ls_config_check_conflict(const ls_config *c, const ls_config_conflict *row,
                                   const char *where, ls_error *e) {
    ls_buf one = {0}, other = {0};
    ls_status s = LS_OK;
    if (put_held(c, row->one, &one) && put_held(c, row->others, &other)) {
        put_other(other.data, &one);
        s = ls_fail(e, LS_EINVAL, "%.200s: %s: %s", where, one.data, row->why);
    }
    ls_buf_free(&one);
    ls_buf_free(&other);
    return s;
}

ls_status ls_config_check_conflicts(const ls_config *c, const char *where, ls_error *e) {
    for (const ls_config_conflict *row = ls_config_conflicts; row->one; row++)
        LS_TRY(ls_config_check_conflict(c, row, where, e));
    return LS_OK;
}

/* ---- help ---- */

static bool names(const char *terms, const char *key) {
    ls_term t;
    while (ls_term_read(&terms, &t))
        if (strcmp(t.name, key) == 0) return true;
    return false;
}

/* Appends the alternatives that name the key; NULL: all. */
static void put_named(const char *terms, const char *key, ls_buf *out) {
    ls_term t;
    bool any = false, ends = false;
    for (const char *first = terms; *terms; first = ends ? terms : first) {
        ls_term_read(&terms, &t);
        ends = t.alternative || !*terms;
        char *alternative = ls_format("%.*s", (int)(t.end - first), first);
        if (ends && (!key || names(alternative, key))) {
            ls_buf_printf(out, "%s", any ? ", or " : "");
            ls_terms_put(alternative, out);
            any = true;
        }
        free(alternative);
    }
}

void ls_config_put_conflicts(const char *key, ls_buf *out) {
    for (const ls_config_conflict *row = ls_config_conflicts; row->one; row++) {
        bool lacks = strncmp(row->others, "no ", 3) == 0;
        bool one = names(row->one, key), other = !one && names(row->others, key);
        if (!one && !other) continue;
        const char *first = one || lacks ? row->one : row->others;
        ls_buf rest = {0};
        ls_buf_printf(out, out->len ? "\n" : "");
        put_named(first, one || !lacks ? key : NULL, out);
        ls_terms_put(first == row->one ? row->others : row->one, &rest);
        put_other(rest.data, out);
        ls_buf_free(&rest);
    }
}
