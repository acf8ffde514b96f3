/* keys_test.c - each key that decides bits, with each kind of model, data, optimizer, schedule,
 * type and mode: another value changes the run (the hashes of its weights and states, its losses),
 * or it is refused. */
#include "cli/models.h"
#include "config/config.h"
#include "config/key.h"

/* Values that differ from the defaults and from the runs below, with tabs for spaces; what one
 * run can't tell apart another value shows, so one that changes it is enough. */
typedef struct trial {
    const char *key;
    const char *values[4]; /* [.., NULL] */
} trial;

static const trial trials[] = {
    {"model.kind", {"layers"}},
    {"model.from", {"@/none"}},
    {"model.adapter", {"@/none"}},
    {"model.layers", {"3"}},
    {"model.width", {"32"}},
    {"model.heads", {"2"}},
    {"model.context", {"4"}},
    {"model.vocab", {"280"}},
    {"model.kv_heads", {"1"}},
    {"model.ffn", {"24"}},
    {"model.head_dim", {"8"}},
    {"model.rope", {"linear", "llama3"}},
    {"model.rope_base", {"50"}},
    {"model.rope_factor", {"3"}},
    {"model.rope_low", {"0.5"}},
    {"model.rope_high", {"8"}},
    {"model.rope_original", {"4"}},
    {"model.rope_scale", {"1.5"}},
    {"model.rope_truncate", {"off"}},
    {"model.rope_short", {"[1, 3, 9]"}},
    {"model.rope_long", {"[1, 3, 9]"}},
    {"model.rope_dims", {"2"}},
    {"model.no_rope_every", {"2"}},
    {"model.window", {"3"}},
    {"model.full_attention_every", {"2"}},
    {"model.rope_local_base", {"50"}},
    {"model.query_scalar", {"9"}},
    {"model.block", {"gemma3"}},
    {"model.bias", {"all"}},
    {"model.qk_norm", {"on"}},
    {"model.experts", {"3"}},
    {"model.experts_per_token", {"1"}},
    {"model.shared_experts", {"1"}},
    {"model.norm_topk", {"off"}},
    {"model.router_aux_loss", {"0.5"}},
    {"model.router_aux_scope", {"model"}},
    {"model.router_bias_rate", {"0.1"}},
    {"model.expert_capacity", {"1"}},
    {"model.norm_eps", {"0.01"}},
    {"model.head", {"own"}},
    {"model.hidden", {"[5]"}},
    {"model.bottom", {"[5]"}},
    {"model.channels", {"[8,8]"}},
    {"model.norm", {"batch"}},
    {"model.blocks", {"2"}},
    {"model.patch", {"6"}},
    {"model.dropout", {"0.5"}},
    {"model.sparse", {"on"}},
    {"model.filter_freq", {"2"}},
    {"model.steps_to_live", {"1"}},
    {"model.input", {"{image:\t[144]}"}},
    {"model.classes", {"7"}},
    {"model.loss", {"{cross_entropy:\t{target:\tlabel,smoothing:\t0.3}}"}},
    {"model.sample_weight", {"label", "rating"}},
    {"data.val_fraction", {"0.4"}},
    {"data.folds", {"3"}},
    {"data.fold", {"1"}},
    {"data.lists", {"cut"}},
    {"data.missing", {"drop", "{x:\tdrop}", "mean"}},
    {"data.na", {"[\"0.5000\"]", "[\"13\"]"}},
    {"data.columns", {"[y,label]"}},
    {"data.csv", {"{header:\tno}", "{texts:\t[y]}"}},
    {"data.documents", {"joined"}},
    {"data.separator", {"the"}},
    {"data.text", {"title"}},
    {"data.loss", {"all"}},
    {"data.packing", {"on"}},
    {"data.order", {"blocks", "global"}},
    {"data.block", {"2"}},
    {"data.window", {"1"}},
    {"data.resize", {"8"}},
    {"data.crop", {"8"}},
    {"data.channels", {"3"}},
    {"data.exif", {"off"}},
    {"data.normalize", {"auto"}},
    {"data.augment", {"[{flip:\t0.5}]"}},
    {"data.ratings", {"{user:\tuser,item:\titem,negatives:\t3}"}},
    {"data.clicks", {"{clicked:\tclicked,ids:\t[shop],numbers:\t[price]}"}},
    {"train.freeze", {"[\"*bias\"]", "[\"*norm*\"]", "[\"*.0.*\"]", "[\"*item*\"]"}},
    {"train.loss", {"dpo"}},
    {"train.batch", {"12", "[[0,4],[2,8]]"}},
    {"train.virtual_workers", {"2", "1"}},
    {"train.seed", {"2"}},
    {"train.compute", {"bf16", "f16"}},
    {"train.reduce_dtype", {"bf16"}},
    {"lora.rank", {"4"}},
    {"lora.alpha", {"20"}},
    {"lora.rs", {"on"}},
    {"lora.dora", {"on"}},
    {"lora.dropout", {"0.5"}},
    {"lora.targets", {"all-linear"}},
    {"lora.rank_pattern", {"[q_proj=2]"}},
    {"lora.alpha_pattern", {"[q_proj=3]"}},
    {"lora.train", {"[\"*norm*\"]"}},
    {"dpo.loss", {"ipo"}},
    {"dpo.beta", {"1"}},
    {"dpo.label_smoothing", {"0.3"}},
    {"optim.optimizer", {"adam", "sgd"}},
    {"optim.lr", {"0.2"}},
    {"optim.min_lr", {"0.005"}},
    {"optim.scale_lr", {"linear"}},
    {"optim.scale_batch", {"3"}},
    {"optim.warmup", {"2"}},
    {"optim.schedule", {"step", "cosine"}},
    {"optim.decay_fraction", {"0.8"}},
    {"optim.step_every", {"1"}},
    {"optim.step_factor", {"0.5"}},
    {"optim.beta1", {"0.5"}},
    {"optim.beta2", {"0.5"}},
    {"optim.eps", {"0.01"}},
    {"optim.momentum", {"0.5"}},
    {"optim.lr_decay", {"0.5"}},
    {"optim.nesterov", {"on"}},
    {"optim.weight_decay", {"0.9"}},
    {"optim.freeze_step", {"1"}},
    {"optim.ema", {"0.5"}},
    {"optim.groups", {"[{match:\t\"*\",lr_scale:\t2}]"}},
    {"optim.clip", {"0.00001"}},
    {"optim.loss_scale", {"32"}},
    {"optim.loss_scale_window", {"1"}},
    {"optim.loss_scale_hysteresis", {"1"}},
    {"optim.loss_scale_min", {"2"}},
    {"parallel.expert_virtual", {"2"}},
    {"parallel.tensor_virtual", {"4"}},
    {"parallel.sequence", {"on"}},
    {"parallel.context_virtual", {"2"}},
    {"sync.mode", {"local", "gossip"}},
    {"sync.replicas", {"1", "2"}},
    {"sync.every", {"3"}},
    {"sync.graph", {"ring"}},
    {"sync.algorithm", {"sgp"}},
    {"sync.warmup", {"1"}},
    {"sync.outer", {"sgd"}},
    {"sync.outer_lr", {"0.3"}},
    {"sync.outer_momentum", {"0.3"}},
    {"sync.fragments", {"2"}},
    {"sync.delay", {"1"}},
    {"sync.deltas", {"int4"}},
    {"sync.mixing", {"0.5"}},
    {"sync.delay_aware", {"on"}},
    {"sync.staleness", {"2"}},
    {"sync.staleness_drawn", {"on"}},
    {"compress.kind", {"int4", "int8"}},
    {"compress.ratio", {"0.3"}},
    {"compress.block", {"32"}},
    {"compress.rank", {"1"}},
    {"compress.feedback", {"none"}},
    {"compress.warmup", {"2"}},
    {"compress.min_size", {"1000000"}},
};
enum { NTRIALS = sizeof trials / sizeof *trials };

/* Limits and rates that show only in longer runs, or with other workers: tried where they can't act
 * alone. */
static bool is_limit(const char *key) {
    static const char *const keys[] = {"optim.loss_scale_hysteresis", "optim.loss_scale_min",
                                       "sync.delay_aware"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

/* ---- the runs ---- */

#define TRAIN                                                                                      \
    "train: {steps: 6, batch: 8, micro_batch: 1, virtual_workers: 4, eval_every: 2, "              \
    "eval_samples: 4}\noptim: {lr: 0.01, warmup: 1}\n"
#define TEXT_OF(kind)                                                                              \
    "model: {kind: " kind ", layers: 2, width: 16, heads: 4, context: 8, vocab: 300}\n"            \
    "data: {path: LICENSE, val_fraction: 0.1}\n" TRAIN
#define IMAGES_OF(model)                                                                           \
    "model: {" model "}\n"                                                                         \
    "data: {path: @/i.idx, labels: @/l.idx, val_fraction: 0.166667}\n" TRAIN
#define RATINGS_OF(model)                                                                          \
    "model: {" model ", width: 4, loss: {bpr: {target: clicked}}}\n"                               \
    "data: {path: @/r.csv, val_fraction: 0.2, ratings: {user: user, item: item, "                  \
    "rating: rating, negatives: 2}}\n" TRAIN
#define CLICKS_OF(model)                                                                           \
    "model: {" model ", width: 4, loss: {binary_cross_entropy: {target: clicked}}}\n"              \
    "data: {path: @/c.csv, clicks: {clicked: clicked, ids: [shop, city], numbers: "                \
    "[price]}}\n" TRAIN
#define DROP "--set data.missing=drop"
#define TEXTS                                                                                      \
    "model: {kind: gpt2, layers: 2, width: 16, heads: 4, context: 8, vocab: 260}\n"                \
    "data: {path: @/texts.jsonl, val_fraction: 0.1}\n" TRAIN
#define MLP IMAGES_OF("kind: mlp, hidden: [8]")
#define CHAT_OF(file)                                                                              \
    "model: {from: @/a, context: 40}\n"                                                            \
    "data: {path: @/" file ", format: chat, template: @/chat.jinja}\n" TRAIN

typedef struct base {
    const char *name, *config, *sets; /* words of the command line */
} base;

static const base bases[] = {
    {"gpt2", TEXT_OF("gpt2"), ""},
    {"llama", TEXT_OF("llama"), ""},
    {"mlp", MLP, ""},
    {"cnn", IMAGES_OF("kind: cnn, channels: [4, 4]"), ""},
    {"resnet", IMAGES_OF("kind: resnet, channels: [4, 4], blocks: 1"), ""},
    {"vit", IMAGES_OF("kind: vit, width: 16, heads: 4, layers: 1, patch: 4"), ""},
    {"factors", RATINGS_OF("kind: factors"), DROP},
    {"two_towers", RATINGS_OF("kind: two_towers, hidden: [8]"), DROP},
    {"dlrm", CLICKS_OF("kind: dlrm, hidden: [8], bottom: [8]"), DROP},
    {"wide_deep", CLICKS_OF("kind: wide_deep, hidden: [8]"), DROP},
    {"layers", IMAGES_OF("kind: layers, layers: [flatten, {linear: 8}, relu, {linear: 4}]"), ""},
    {"chat", CHAT_OF("chat.jsonl"), ""},
    {"texts", TEXTS, ""},
    {"dpo", CHAT_OF("pairs.jsonl"), "--set train.loss=dpo"},
    {"csv", "model: {kind: mlp, hidden: [8]}\ndata: {path: @/a.csv}\n" TRAIN,
     "--set data.order=blocks --set data.block=8 --set data.missing=mean"},
    {"tokens",
     "model: {kind: llama, layers: 1, width: 16, heads: 4, context: 8, vocab: 64}\n"
     "data: {path: @/t.bin, format: tokens, val_fraction: 0.2}\n" TRAIN,
     ""},
    {"experts", TEXT_OF("llama"), "--set model.experts=4 --set model.ffn=16"},
    {"linear", TEXT_OF("llama"), "--set model.rope=linear --set model.rope_factor=2"},
    {"llama3", TEXT_OF("llama"),
     "--set model.rope=llama3 --set model.rope_factor=8 --set model.rope_original=1024"},
    {"local", TEXT_OF("llama"), "--set model.window=3 --set model.full_attention_every=2"},
    {"yarn", TEXT_OF("llama"),
     "--set model.rope=yarn --set model.rope_factor=8 --set model.rope_original=1024 "
     "--set model.rope_high=32 --set model.head_dim=16"},
    {"lora", TEXT_OF("llama"), "--set lora.rank=2"},
    {"slices", TEXT_OF("gpt2"), "--set parallel.tensor_virtual=2"},
    {"adam", MLP, "--set optim.optimizer=adam"},
    {"sgd", MLP, "--set optim.optimizer=sgd"},
    {"lion", MLP, "--set optim.optimizer=lion"},
    {"adagrad", MLP, "--set optim.optimizer=adagrad"},
    {"free", MLP, "--set optim.optimizer=schedule-free --set optim.schedule=constant"},
    {"lars", MLP, "--set optim.optimizer=lars"},
    {"lamb", MLP, "--set optim.optimizer=lamb"},
    {"adafactor", MLP, "--set optim.optimizer=adafactor"},
    {"muon", MLP, "--set optim.optimizer=muon"},
    {"soap", MLP, "--set optim.optimizer=soap"},
    {"rowwise", RATINGS_OF("kind: factors"), DROP " --set optim.optimizer=rowwise_adagrad"},
    {"1adam", MLP,
     "--set optim.optimizer=onebit_adam --set optim.freeze_step=2 --set parallel.zero=0"},
    {"1lamb", MLP,
     "--set optim.optimizer=onebit_lamb --set optim.freeze_step=2 --set parallel.zero=0"},
    {"falling", MLP, "--set optim.schedule=linear"},
    {"constant", MLP, "--set optim.schedule=constant"},
    {"step", MLP, "--set optim.schedule=step --set optim.step_every=2"},
    {"wsd", MLP, "--set optim.schedule=wsd --set optim.decay_fraction=0.5"},
    {"scaled", MLP, "--set optim.scale_lr=sqrt --set optim.scale_batch=4"},
    {"f16", MLP, "--set train.compute=f16"},
    {"bf16", MLP, "--set train.compute=bf16 --set train.reduce_dtype=f16"},
    {"sparse", RATINGS_OF("kind: factors"),
     DROP " --set model.sparse=on --set optim.optimizer=adagrad"},
    {"blocks", IMAGES_OF("kind: mlp, hidden: [8]"),
     "--set data.order=blocks --set data.block=4 --set data.window=2"},
    {"folds", "model: {kind: mlp, hidden: [8]}\ndata: {path: @/a.csv}\n" TRAIN,
     "--set data.folds=4 --set data.order=global --set data.missing=drop"},
    {"local", MLP, "--set sync.mode=local --set sync.replicas=4 --set sync.every=2"},
    {"diloco", MLP, "--set sync.mode=diloco --set sync.replicas=4 --set sync.every=2"},
    {"gossip", MLP, "--set sync.mode=gossip --set sync.replicas=4"},
    {"ssp", MLP, "--set sync.mode=ssp"},
    {"topk", MLP, "--set compress.kind=topk --set compress.min_size=1"},
    {"onebit", MLP, "--set compress.kind=onebit --set compress.min_size=1"},
    {"int8", MLP, "--set compress.kind=int8 --set compress.min_size=1"},
    {"powersgd", MLP,
     "--set compress.kind=powersgd --set compress.min_size=1 --set compress.rank=2"},
};
enum { NBASES = sizeof bases / sizeof *bases };

static void write_buf(const char *name, const ls_buf *text) {
    write_file(name, text->data, text->len);
}

static void write_images(void) {
    enum { N = 48, SIDE = 12 };
    static uint8_t images[16 + N * SIDE * SIDE] = {0, 0, 8, 3,    0, 0, 0, N,
                                                   0, 0, 0, SIDE, 0, 0, 0, SIDE};
    static uint8_t labels[8 + N] = {0, 0, 8, 1, 0, 0, 0, N};
    static uint16_t tokens[512];
    for (int i = 0; i < N * SIDE * SIDE; i++) images[16 + i] = (uint8_t)(i * i / 7 * 31);
    for (int i = 0; i < N; i++) labels[8 + i] = (uint8_t)(i * i % 5 % 4);
    for (int i = 0; i < 512; i++) tokens[i] = (uint16_t)(i * i / 3 % 64);
    write_file("i.idx", (const char *)images, sizeof images);
    write_file("l.idx", (const char *)labels, sizeof labels);
    write_file("t.bin", (const char *)tokens, sizeof tokens);
}

static void write_tables(void) {
    ls_buf a = {0}, r = {0}, c = {0};
    ls_buf_printf(&a, "x,y,label\n");
    for (int i = 0; i < 64; i++)
        ls_buf_printf(&a, "%.4f,%.4f,%d\n", i * 37 % 64 / 64.0, i * 11 % 64 / 64.0, i % 4);
    ls_buf_printf(&a, ",0.5,3\n"); /* a value is missing */
    ls_buf_printf(&r, "user,item,rating\n");
    for (int i = 0; i < 96; i++) ls_buf_printf(&r, "%d,%d,%d\n", i % 12, i * 7 % 15, 1 + i % 5);
    ls_buf_printf(&r, ",3,2\n"); /* here, too */
    ls_buf_printf(&c, "clicked,shop,city,price\n");
    for (int i = 0; i < 96; i++)
        ls_buf_printf(&c, "%d,s%d,c%d,%.3f\n", i * i % 3 == 1, i % 5, i % 4, i * 29 % 96 / 96.0);
    ls_buf_printf(&c, "1,s1,c1,\n");
    write_buf("a.csv", &a);
    write_buf("r.csv", &r);
    write_buf("c.csv", &c);
    ls_buf_free(&a), ls_buf_free(&r), ls_buf_free(&c);
}

static void write_texts(void) {
    ls_buf texts = {0};
    for (int i = 0; i < 24; i++)
        ls_buf_printf(&texts, "{\"title\": \"about %d the others\", \"text\": \"one of the %d\"}\n",
                      i, i * i);
    write_buf("texts.jsonl", &texts);
    ls_buf_free(&texts);
}

static void write_chats(void) {
    static const char template[] =
        "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }};"
        "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
    ls_buf chats = {0}, pairs = {0};
    for (int i = 0; i < 48; i++) {
        ls_buf_printf(&chats,
                      "{\"messages\": [{\"role\": \"user\", \"content\": \"%d\"}, {\"role\": "
                      "\"assistant\", \"content\": \"%.*s\"}]}\n",
                      i, 1 + i % 7, "yes it is");
        ls_buf_printf(&pairs,
                      "{\"prompt\": [{\"role\": \"user\", \"content\": \"%d\"}], \"chosen\": "
                      "[{\"role\": \"assistant\", \"content\": \"%.*s\"}], \"rejected\": "
                      "[{\"role\": \"assistant\", \"content\": \"%.*s\"}]}\n",
                      i, 1 + i % 7, "yes it is", 1 + i % 5, "never");
    }
    write_buf("chat.jsonl", &chats);
    write_buf("pairs.jsonl", &pairs);
    write_file("chat.jinja", template, strlen(template));
    ls_buf_free(&chats), ls_buf_free(&pairs);
    small_write_whole(&small_models[0], gguf);
    free(import("@/m.gguf -o @/a"));
}

static int write_all(void **state) {
    if (models_make(state)) return -1;
    write_images();
    write_tables();
    write_texts();
    write_chats();
    for (int i = 0; i < NBASES; i++) {
        ls_buf text = {0};
        for (const char *s = bases[i].config; *s; s++)
            ls_buf_printf(&text, *s == '@' ? "%s" : "%.1s", *s == '@' ? folder : s);
        char *name = ls_format("%s.yaml", bases[i].name);
        write_buf(name, &text);
        free(name);
        ls_buf_free(&text);
    }
    return 0;
}

/* ---- what a run has become ---- */

/* Appends the numbers of metrics.jsonl that are not times. */
static void put_losses(const char *metrics, ls_buf *out) {
    static const char *const keys[] = {
        "\"loss\": ", "\"val_loss\": ", "\"grad_norm\": ", "\"lr\": "};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (const char *s = metrics; (s = strstr(s, keys[k]));) {
            s += strlen(keys[k]);
            ls_buf_printf(out, "%.*s ", (int)strcspn(s, ",}"), s);
        }
}

/* The hashes and losses of a run; NULL: it was refused, *why_p says how. The caller frees both. */
static char *result_of(const base *b, const char *set, char **why_p) {
    char *output = NULL;
    char *line = ls_format("train @/%s.yaml -n 1 -o @/run --set checkpoint.keep=1 %s %s", b->name,
                           b->sets, set);
    int code = run_program(line, &output);
    free(line);
    *why_p = NULL;
    if (code) {
        *why_p = output;
        return NULL;
    }
    free(output);
    size_t n = 0;
    char *metrics = read_file("run/metrics.jsonl", &n);
    char *hash = output_of("ckpt hash @/run");
    ls_buf text = {0};
    ls_buf_printf(&text, "%s", hash);
    put_losses(metrics, &text);
    free(metrics);
    free(hash);
    char *run = ls_format("%s/run", folder);
    ls_file_remove_tree(run, NULL);
    free(run);
    return text.data;
}

/* Does one of the values change the run, or is each refused? Returns false if nothing is said. */
static bool is_heard(const base *b, const trial *t, char **usual_p) {
    bool all_refused = true;
    for (int i = 0; i < 4 && t->values[i]; i++) {
        char *own = ls_format("%s=%s", t->key, t->values[i]);
        bool has_it = strstr(b->sets, own) != NULL;
        free(own);
        if (has_it) continue;
        char *why = NULL, *set = ls_format("--set %s=%s", t->key, t->values[i]);
        char *got = result_of(b, set, &why);
        free(set);
        if (!got && (!why || strstr(why, "Sanitizer")))
            fail_msg("%s: %s: %s", b->name, t->key, why);
        free(why);
        if (!got) continue;
        all_refused = false;
        if (!*usual_p) *usual_p = result_of(b, "", &why);
        if (!*usual_p) fail_msg("%s: %s: %s", b->name, t->key, why);
        bool same = strcmp(got, *usual_p) == 0;
        free(got);
        if (!same) return true;
    }
    return all_refused;
}

static void test_heard(void **state) {
    (void)state;
    int nsilent = 0;
    for (int b = 0; b < NBASES; b++) {
        char *usual = NULL;
        for (int t = 0; t < NTRIALS; t++) {
            if (!runs_case(b * NTRIALS + t, 331) || is_limit(trials[t].key)) continue;
            if (is_heard(&bases[b], &trials[t], &usual)) continue;
            print_error("%s: %s changes nothing, and is not refused\n", bases[b].name,
                        trials[t].key);
            nsilent++;
        }
        free(usual);
    }
    assert_int_equal(nsilent, 0);
}

/* A key that decides bits has a trial. Those that have not say where the data are, or how they are
 * found. */
static void test_complete(void **state) {
    (void)state;
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++) {
        bool tried = k->resumed == LS_KEY_FREE;
        for (int t = 0; t < NTRIALS; t++) tried = tried || strcmp(trials[t].key, k->name) == 0;
        if (!tried) fail_msg("%s decides bits and has no trial", k->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_complete),
                                       cmocka_unit_test(test_heard)};
    return cmocka_run_group_tests(tests, write_all, folder_remove);
}
