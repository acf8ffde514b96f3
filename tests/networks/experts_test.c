/* experts_test.c - kind llama with experts: names and shapes, gradients, tokens one by one with the
 * bits of the whole text, the same bits for any layout, loads in metrics, and what is refused. */
/* ctest: busy seconds=8 */
/* ctest: long-asan: layers/moe and networks/llama run the same code */
/* ctest: long-tsan: minutes; moe_test and exec_test compute its layers with threads */
#include "networks/llama.h"

#include "base/file.h"
#include "config/relations.h"
#include "infer/decoding.h"
#include "networks/gradients.h"
#include "networks/network.h"
#include "train/tiny_run.h"

enum { E = 5, K = 2 };

static ls_config config_of(bool shared) {
    ls_config c;
    ls_config_defaults(&c);
    c.model.kind = LS_MODEL_LLAMA;
    c.model.layers = 2;
    c.model.width = 24;
    c.model.heads = 4;
    c.model.ffn = 20;
    c.model.context = 12;
    c.model.vocab = 300;
    c.model.head = LS_HEAD_OWN;
    c.model.experts = E;
    c.model.experts_per_token = K;
    c.model.shared_experts = shared;
    return c;
}

static ls_model model_of(const ls_config *c) {
    ls_model m = {0};
    ls_error e = {0};
    assert_ls_ok(ls_llama_create(c, false, &m, &e), e);
    return m;
}

static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t dims[3];
    } want[] = {{"model.layers.0.post_attention_layernorm.weight", {24}},
                {"model.layers.0.mlp.gate.weight", {E, 24}},
                {"model.layers.0.mlp.experts.gate_proj", {E, 20, 24}},
                {"model.layers.0.mlp.experts.up_proj", {E, 20, 24}},
                {"model.layers.0.mlp.experts.down_proj", {E, 24, 20}},
                {"model.layers.0.mlp.shared_experts.gate_proj.weight", {20, 24}},
                {"model.layers.0.mlp.shared_experts.up_proj.weight", {20, 24}},
                {"model.layers.0.mlp.shared_experts.down_proj.weight", {24, 20}},
                {"model.layers.1.input_layernorm.weight", {24}}};
    ls_config c = config_of(true);
    ls_model m = model_of(&c);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const ls_param *p = &m.params[i + 6];
        assert_string_equal(p->name, want[i].name);
        for (int d = 0; d < p->ndims; d++) assert_int_equal(p->dims[d], want[i].dims[d]);
    }
    assert_int_equal(m.nlosses, 3);
    assert_int_equal(m.nauxiliary, 2);
    assert_int_equal(m.nnotes, 1 + E);
    assert_string_equal(m.notes[0], "router/balance");
    assert_string_equal(m.notes[E], "router/load/4");
    assert_true(m.weighing.ntargets > 0); /* as without experts */
    ls_model_free(&m);
}

static void check_gradients(double capacity, double bias_rate, ls_router_scope scope) {
    ls_config c = config_of(true);
    c.model.router_aux_scope = scope;
    c.model.expert_capacity = capacity;
    c.model.router_bias_rate = bias_rate;
    ls_model m = model_of(&c);
    assert_gradients(&m);
    ls_model_free(&m);
}

static void test_gradients(void **state) {
    (void)state;
    check_gradients(0, 0, LS_ROUTERS_EACH);
    check_gradients(0.5, 0.01, LS_ROUTERS_EACH);
    check_gradients(0, 0.01, LS_ROUTERS_ALL);
}

/* After 1, 2 ... tokens: the whole text at once, and token after token. */
static void check_decode(ls_dtype type, int threads, bool norm_topk) {
    ls_config c = config_of(type == LS_F32);
    c.model.norm_topk = norm_topk;
    c.model.expert_capacity = type == LS_F32 ? 0.25 : 0; /* nothing is dropped here */
    c.model.router_bias_rate = type == LS_F16 ? 0.01 : 0;
    decoding d = {.model = model_of(&c)};
    decoding_open(&d, type, NULL, threads, 3);
    d.text = fix_tokens((size_t)c.model.context + 1, c.model.vocab, 4);
    for (int64_t n = 1; n <= c.model.context; n++) {
        float want[300];
        memcpy(want, ls_infer_next(&d.infer, d.text, n), sizeof want);
        const float *got = n == 1 ? ls_decode_prompt(&d.decode, d.text, 1)
                                  : ls_decode_next(&d.decode, d.text[n - 1]);
        assert_true(got[0] == got[0]);
        assert_memory_equal(got, want, sizeof want);
    }
    /* all but the unread rows of the embedding, and 3 of the 5 experts in each of 2 blocks */
    size_t read = d.model.count - 299 * 24 - (size_t)(2 * 3 * 3 * 20 * 24);
    assert_int_equal(ls_decode_weights_read(&d.decode), read * ls_dtype_size(type));
    decoding_close(&d);
}

static void test_decode(void **state) {
    (void)state;
    check_decode(LS_F32, 1, true);
    check_decode(LS_BF16, 2, true);
    check_decode(LS_F16, 3, false);
}

/* ---- training ---- */

/* Trains with five settings beside the usual ones; returns the run. */
static char *train(int n, const char *const *own, char hash[LS_HASH_TEXT]) {
    static const char *const usual[] = {"model.kind=llama",
                                        "model.experts=5",
                                        "model.ffn=24",
                                        "model.router_aux_loss=0.1",
                                        "log.every=1000",
                                        "train.steps=4",
                                        "optim.warmup=2",
                                        "train.eval_every=0",
                                        "parallel.transport=thread",
                                        NULL};
    ls_error e = {0};
    char *run = run_path(nruns++);
    assert_ls_ok(try_run(run, n, usual, own, &e), e);
    result last = last_of(run);
    memcpy(hash, last.weights, LS_HASH_TEXT);
    return run;
}
#define TRAIN(n, hash, ...) train(n, (const char *const[]){__VA_ARGS__, NULL}, hash)

/* The router's metrics of all steps: the text of metrics.jsonl from each "router/balance" to its
 * last load. */
static char *loads_of(const char *run) {
    char *path = ls_format("%s/metrics.jsonl", run);
    ls_buf text = {0}, out = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read(path, 1 << 20, &text, &e), e);
    ls_buf_append(&text, "", 1);
    for (const char *at = text.data; (at = strstr(at, "\"router/")); at++)
        ls_buf_printf(&out, "%.*s\n", (int)strcspn(at, ",}"), at);
    free(path);
    ls_buf_free(&text);
    return out.data;
}

static void assert_same(char *run, const char *hash, const char *one, const char *loads) {
    assert_string_equal(hash, one);
    char *other = loads_of(run);
    assert_string_equal(other, loads);
    free(other), free(run);
}

static void same_bits(const char *type, char one[LS_HASH_TEXT]) {
    char other[LS_HASH_TEXT];
    const char *usual = "parallel.recompute=0", *threads = "parallel.threads=1";
    char *first = TRAIN(1, one, type, "parallel.zero=0", "train.micro_batch=1", usual, threads);
    char *loads = loads_of(first), *run = NULL;
    int lines = 0;
    for (const char *at = loads; *at; at++) lines += *at == '\n';
    assert_int_equal(lines, 4 * (1 + E));
    run = TRAIN(2, other, type, "parallel.zero=1", "train.micro_batch=2", usual,
                "parallel.threads=2");
    assert_same(run, other, one, loads);
    run = TRAIN(2, other, type, "parallel.zero=2", "train.micro_batch=1", "parallel.recompute=1",
                threads);
    assert_same(run, other, one, loads);
    run = TRAIN(3, other, type, "parallel.zero=3", "train.micro_batch=1", "parallel.recompute=2",
                threads);
    assert_same(run, other, one, loads);
    run = TRAIN(2, other, type, "parallel.mesh.pipe=2", "train.micro_batch=1", usual, threads);
    assert_same(run, other, one, loads);
    free(first), free(loads);
}

/* With a capacity: samples drop what they do in any layout. */
static void same_dropped(const char *type) {
    char one[LS_HASH_TEXT], other[LS_HASH_TEXT];
    const char *capacity = "model.expert_capacity=0.6";
    char *first = TRAIN(1, one, type, capacity, "train.micro_batch=1", "parallel.zero=0",
                        "parallel.recompute=0");
    char *loads = loads_of(first), *run = NULL;
    assert_non_null(strstr(loads, "router/dropped\": 0."));
    run = TRAIN(2, other, type, capacity, "train.micro_batch=2", "parallel.zero=2",
                "parallel.recompute=1");
    assert_same(run, other, one, loads);
    run = TRAIN(2, other, type, capacity, "train.micro_batch=1", "parallel.mesh.pipe=2",
                "parallel.threads=2");
    assert_same(run, other, one, loads);
    free(TRAIN(1, other, type, "model.expert_capacity=0", "train.micro_batch=1", "parallel.zero=0",
               "parallel.recompute=0"));
    assert_string_not_equal(other, one);
    free(first), free(loads);
}

static void test_capacity(void **state) {
    (void)state;
    same_dropped("train.compute=f32");
    same_dropped("train.compute=bf16");
}

/* ---- biases ---- */

/* The part of the choices that an expert had in the first step. */
static double load_of(const char *run, int expert) {
    char *loads = loads_of(run), name[32];
    snprintf(name, sizeof name, "router/load/%d\": ", expert);
    const char *at = strstr(loads, name);
    assert_non_null(at);
    double load = atof(at + strlen(name));
    free(loads);
    return load;
}

/* After the first step each bias is the rate, with the sign that evens the loads out. */
static void check_first_biases(const char *run) {
    const char *sets[] = {"model.layers=1"};
    char *path = NULL, *config = ls_format("%s/config.yaml", run);
    ls_config c;
    ls_model m = {0};
    ls_error e = {0};
    assert_ls_ok(ls_config_load(config, sets, 1, &c, &e), e);
    assert_ls_ok(ls_network_create(&c, &m, &e), e);
    assert_ls_ok(ls_checkpoint_newest(run, &path, NULL, &e), e);
    float *values = fix_nans(m.nfloats);
    ls_train_state s = {.model = &m, .flat = {1, {values}}};
    assert_ls_ok(ls_checkpoint_load(path, &s, &e), e);
    int nbiases = 0, n = 0;
    for (int i = 0; i < m.nparams; i++) {
        if (!m.params[i].balances) continue;
        for (int k = 0; k < E; k++) {
            double load = load_of(run, k), bias = (double)values[m.params[i].offset + (size_t)k];
            double want = load > 1.0 / E ? -0.125 : load < 1.0 / E ? 0.125 : 0;
            assert_true(bias == want);
            n += want < 0;
        }
        nbiases++;
    }
    assert_true(nbiases == 1 && n > 0);
    free(values), free(path), free(config);
    ls_model_free(&m);
}

static void test_biases(void **state) {
    (void)state;
    char one[LS_HASH_TEXT], other[LS_HASH_TEXT];
    const char *rate = "model.router_bias_rate=0.125", *no_loss = "model.router_aux_loss=0";
    char *run = TRAIN(2, one, rate, no_loss, "train.steps=1", "optim.warmup=1", "model.layers=1");
    check_first_biases(run);
    free(run);
    char *first =
        TRAIN(1, one, rate, no_loss, "train.compute=f32", "parallel.zero=0", "train.micro_batch=1");
    char *loads = loads_of(first);
    run = TRAIN(3, other, rate, no_loss, "train.compute=f32", "parallel.zero=3",
                "parallel.recompute=1");
    assert_same(run, other, one, loads);
    run = TRAIN(2, other, rate, no_loss, "train.micro_batch=2", "parallel.mesh.pipe=2",
                "parallel.schedule=zb-h1");
    assert_same(run, other, one, loads);
    free(first), free(loads);
}

/* One loss of all layers: the same bits for any layout, and others than with a loss of each. */
static void test_joint(void **state) {
    (void)state;
    char one[LS_HASH_TEXT], other[LS_HASH_TEXT];
    const char *all = "model.router_aux_scope=model", *loss = "model.router_aux_loss=0.5";
    const char *threads = "parallel.threads=1";
    char *first = TRAIN(1, one, all, loss, "parallel.zero=0", "train.micro_batch=1", threads);
    char *loads = loads_of(first);
    char *run = TRAIN(3, other, all, loss, "parallel.zero=3", "parallel.recompute=1", threads);
    assert_same(run, other, one, loads);
    free(TRAIN(1, other, "model.router_aux_scope=layer", loss, "parallel.zero=0",
               "train.micro_batch=2", threads));
    assert_string_not_equal(other, one);
    free(first), free(loads);
}

static void test_bits(void **state) {
    (void)state;
    char one[LS_HASH_TEXT], bf16[LS_HASH_TEXT], other[LS_HASH_TEXT];
    same_bits("train.compute=f32", one);
    same_bits("train.compute=bf16", bf16);
    assert_string_not_equal(bf16, one);
    const ls_kernels *k = NULL;
    for (int i = 1; (k = ls_kernels_at(i)); i++) { /* 0: the runs above use these */
        assert_int_equal(setenv("LOCKSTEP_CPU", k->name, 1), 0);
        free(TRAIN(1, other, "train.compute=f32", "parallel.zero=0", "train.micro_batch=2",
                   "parallel.recompute=0", "parallel.threads=1"));
        assert_int_equal(unsetenv("LOCKSTEP_CPU"), 0);
        assert_string_equal(other, one);
    }
    free(TRAIN(1, other, "train.compute=f32", "model.router_aux_loss=0", "train.micro_batch=2",
               "parallel.recompute=0", "parallel.threads=1"));
    assert_string_not_equal(other, one); /* the auxiliary loss is trained */
}

/* ---- what is refused ---- */

static void refuse(const char *const *sets, int n, const char *why) {
    ls_config c;
    ls_error e = {0};
    ls_status s = ls_config_load("configs/tiny.yaml", sets, n, &c, &e);
    ls_model m = {0};
    if (s == LS_OK) s = ls_network_create(&c, &m, &e);
    assert_int_equal(s, LS_EINVAL);
    if (!strstr(e.msg, why)) print_error("%s\n", e.msg);
    assert_non_null(strstr(e.msg, why));
}
#define REFUSE(why, ...)                                                                           \
    refuse((const char *const[]){__VA_ARGS__},                                                     \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), why)

static void test_refused(void **state) {
    (void)state;
    REFUSE("model.experts acts only with model.kind: llama", "model.experts=4");
    REFUSE("model.experts_per_token is 5, and model.experts 4; set at most 4", "model.kind=llama",
           "model.experts=4", "model.experts_per_token=5");
    REFUSE("model.shared_experts acts only with model.experts > 0", "model.kind=llama",
           "model.shared_experts=1");
    REFUSE("model.router_bias_rate acts only with model.experts > 0", "model.kind=llama",
           "model.router_bias_rate=0.5");
    REFUSE("model.expert_capacity acts only with model.experts > 0", "model.kind=llama",
           "model.expert_capacity=1.5");
    REFUSE("so a pipeline (parallel.mesh.pipe) can't cut between them", "model.kind=llama",
           "model.experts=4", "model.router_aux_scope=model", "parallel.mesh.pipe=2");
    REFUSE("experts have no biases; use none or attention", "model.kind=llama", "model.experts=4",
           "model.bias=mlp");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_decode),
        cmocka_unit_test_setup_teardown(test_joint, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_bits, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_biases, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_capacity, make_folder, remove_folder),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
