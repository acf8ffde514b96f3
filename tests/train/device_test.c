/* device_test.c - a run whose layers are computed by a device has the bits of a run on cores: on
 * device `c`, whose copies and kernels run late and in an order drawn from a seed. */
/* ctest: slow seconds=30 */
#include <sys/wait.h>
#include <unistd.h>

#include "config/relations.h"
#include "device/drivers.h"
#include "plan/memory.h"
#include "train/device_room.h"
#include "train/layout.h"
#include "train/tiny_run.h"

static const char *const usual[] = {"log.every=1000",   "model.width=12",
                                    "train.steps=3",    "train.eval_every=3",
                                    "train.batch=6",    "train.virtual_workers=3",
                                    "optim.warmup=1",   "data.val_fraction=0.01",
                                    "model.context=16", NULL};

static result trained(int nworkers, const char *a, const char *b) {
    return train_new(nworkers, usual, (const char *const[]){a, b, NULL});
}

static result with(int nworkers, const char *const *sets) {
    return train_new(nworkers, usual, sets);
}

/* A model of the shape of Llama's. */
#define LLAMA(nworkers, ...)                                                                       \
    train_new(nworkers, usual,                                                                     \
              (const char *const[]){"model.kind=llama", "model.heads=6", "model.kv_heads=2",       \
                                    "model.width=24", __VA_ARGS__, NULL})

static void refused(const char *a, const char *b, const char *why) {
    ls_error e = {0};
    assert_ls_fails(try_number(nruns++, 1, usual, (const char *const[]){a, b, NULL}, &e), LS_EINVAL,
                    why, e);
}

static void test_same_bits(void **state) {
    result cores = trained(1, NULL, NULL);
    (void)state;
    same(trained(1, "parallel.device=c:1", NULL), cores);
    same(trained(2, "parallel.device=c:2", NULL), cores);
    same(trained(3, "parallel.device=c:3", "parallel.zero=2"), cores);
    same(trained(2, "parallel.device=c:4", "parallel.zero=3"), cores);
    same(trained(2, "parallel.device=c:5", "parallel.recompute=2"), cores);
}

static void test_llama(void **state) {
    static const char OWN[] = "model.head=own", NORM[] = "model.qk_norm=on";
    static const char BIAS[] = "model.bias=all", LOOKS[] = "model.window=9";
    static const char PLAIN[] = "model.no_rope_every=2";
    static const char GEMMA[] = "model.block=gemma3", EVERY[] = "model.full_attention_every=2";
    result cores = LLAMA(1, NULL), own = LLAMA(1, OWN, NORM, BIAS, LOOKS);
    (void)state;
    same(LLAMA(2, "parallel.device=c:2", "parallel.zero=3", "parallel.recompute=2"), cores);
    /* what is gathered by messages is sent to the device, and dropped, for each layer */
    same(LLAMA(3, "parallel.device=c:1", "parallel.zero=3", "parallel.transport=tcp"), cores);
    same(LLAMA(1, OWN, NORM, BIAS, LOOKS, "train.micro_batch=1", "parallel.device=c:3"), own);
    same(LLAMA(2, NORM, LOOKS, GEMMA, EVERY, PLAIN, "parallel.device=c:4"),
         LLAMA(1, NORM, LOOKS, GEMMA, EVERY, PLAIN));
    if (!all_cases()) return;
    same(LLAMA(1, "parallel.device=c:1"), cores);
    same(LLAMA(2, "parallel.device=cuda:0"), cores);
}

/* Adapters over weights that are frozen, and dropout. */
static void test_adapters(void **state) {
    static const char RANK[] = "lora.rank=4", ALL[] = "lora.targets=all-linear";
    static const char DROP[] = "lora.dropout=0.2", DORA[] = "lora.dora=on";
    static const char HEAD[] = "model.head=own", TRAIN[] = "lora.train=[lm_head, \"*norm.weight\"]";
    result lora = LLAMA(1, RANK, ALL, DROP), dora = LLAMA(1, RANK, DORA, HEAD, TRAIN);
    (void)state;
    same(LLAMA(1, RANK, ALL, DROP, "parallel.device=c:1", "train.micro_batch=1"), lora);
    same(trained(2, "model.dropout=0.1", "parallel.device=c:7"),
         trained(1, "model.dropout=0.1", NULL));
    same(
        LLAMA(2, RANK, DORA, HEAD, TRAIN, "parallel.device=c:5", "parallel.optimizer_state=device"),
        dora);
    if (!all_cases()) return;
    same(LLAMA(2, RANK, ALL, DROP, "parallel.device=c:2", "parallel.zero=2"), lora);
    same(LLAMA(2, RANK, ALL, DROP, "parallel.device=cuda:0"), lora);
    same(LLAMA(2, "model.dropout=0.1", "parallel.device=c:6"), LLAMA(1, "model.dropout=0.1"));
    same(LLAMA(2, RANK, DORA, HEAD, TRAIN, "parallel.device=c:4"), dora);
}

/* Mixtures of experts: with a loss of each router or of all, with experts of all rows, a capacity
 * and biases, and beside adapters. */
#define EXPERTS(nworkers, ...) LLAMA(nworkers, "model.experts=5", "model.ffn=20", __VA_ARGS__)
static void test_experts(void **state) {
    static const char ALL[] = "model.router_aux_scope=model", MORE[] = "model.shared_experts=1";
    static const char ROOM[] = "model.expert_capacity=0.8", BIAS[] = "model.router_bias_rate=0.02";
    static const char OWN[] = "model.norm_topk=off", BF16[] = "train.compute=bf16";
    static const char ONE[] = "train.micro_batch=1", THERE[] = "parallel.optimizer_state=device";
    result cores = EXPERTS(1, NULL), some = EXPERTS(1, ROOM, BIAS, MORE, OWN);
    (void)state;
    same(EXPERTS(2, "parallel.device=c:2", "parallel.zero=3", "parallel.recompute=2"), cores);
    same(EXPERTS(3, "parallel.device=c:3", "parallel.zero=1", THERE), cores);
    same(EXPERTS(2, ROOM, BIAS, MORE, OWN, "parallel.device=c:4", "parallel.zero=2"), some);
    same(EXPERTS(1, ALL, "parallel.device=c:5", ONE), EXPERTS(1, ALL, ONE));
    same(EXPERTS(2, BF16, "parallel.device=c:6"), EXPERTS(1, BF16));
    if (!all_cases()) return;
    same(EXPERTS(1, "parallel.device=c:1"), cores);
    same(EXPERTS(2, "parallel.device=cuda:0"), cores);
    same(EXPERTS(3, ROOM, BIAS, MORE, OWN, THERE, "parallel.device=c:10", "parallel.zero=1"), some);
    same(EXPERTS(2, "lora.rank=4", ROOM, "parallel.device=c:7"), EXPERTS(1, "lora.rank=4", ROOM));
    same(EXPERTS(1, BF16, ONE, ROOM, BIAS, "parallel.device=c:8"),
         EXPERTS(1, BF16, ONE, ROOM, BIAS));
    same(EXPERTS(2, "train.compute=f16", "parallel.device=c:9"), EXPERTS(1, "train.compute=f16"));
}

/* Workers divide the experts: those with different samples, chunks, slices or stages. */
static void test_divided_experts(void **state) {
    static const char *const cuts[] = {"parallel.expert_virtual=2", "parallel.tensor_virtual=2",
                                       "parallel.context_virtual=2", NULL};
    static const char *const meshes[] = {"parallel.mesh.expert=2", "parallel.mesh.tensor=2",
                                         "parallel.mesh.context=2", "parallel.mesh.pipe=2"};
    static const char BATCH[] = "train.batch=8", TWO[] = "train.virtual_workers=2";
    (void)state;
    for (int i = 0; i < ncases(2, 4); i++) {
        char *device = ls_format("parallel.device=c:%d", i);
        const char *micro = i == 3 ? "train.micro_batch=1" : "train.micro_batch=2";
        same(EXPERTS(2, BATCH, TWO, micro, device, meshes[i], cuts[i]),
             EXPERTS(1, BATCH, TWO, micro, cuts[i]));
        free(device);
    }
}

/* In 16 bits: products in blocks; what the host stores is rounded there. Gradients are sums over
 * one call or several, over virtual workers of one worker, and in a type of their own. */
static void test_halves(void **state) {
    static const char BF16[] = "train.compute=bf16", F16[] = "train.compute=f16";
    static const char RANK[] = "lora.rank=4", DORA[] = "lora.dora=on", DROP[] = "lora.dropout=0.2";
    static const char OWN[] = "model.head=own", BIAS[] = "model.bias=all";
    result gpt = trained(1, BF16, NULL), llama = LLAMA(1, BF16);
    result parts = trained(1, BF16, "train.micro_batch=1");
    (void)state;
    same(trained(1, "parallel.device=c:1", BF16), gpt);
    same(with(2, (const char *const[]){"parallel.device=c:2", BF16, "parallel.zero=2", NULL}), gpt);
    same(with(1, (const char *const[]){"parallel.device=c:3", BF16, "train.micro_batch=1", NULL}),
         parts);
    same(LLAMA(2, BF16, "parallel.device=c:4", "parallel.zero=3", "parallel.recompute=2"), llama);
    same(LLAMA(1, BF16, RANK, DROP, "parallel.device=c:5"), LLAMA(1, BF16, RANK, DROP));
    if (!all_cases()) return;
    same(LLAMA(1, BF16, OWN, BIAS, "model.window=9", "parallel.device=c:6"),
         LLAMA(1, BF16, OWN, BIAS, "model.window=9"));
    same(LLAMA(2, BF16, RANK, DORA, "parallel.device=c:7"), LLAMA(1, BF16, RANK, DORA));
    same(LLAMA(2, F16, "parallel.device=c:8"), LLAMA(1, F16));
    same(trained(2, "parallel.device=c:9", "train.reduce_dtype=bf16"),
         trained(1, "train.reduce_dtype=bf16", NULL));
    same(LLAMA(2, BF16, "train.reduce_dtype=f32", "parallel.device=c:10", "model.dropout=0.1"),
         LLAMA(1, BF16, "train.reduce_dtype=f32", "model.dropout=0.1"));
    same(trained(2, "parallel.device=cuda:0", BF16), gpt);
    same(with(2, (const char *const[]){"parallel.device=c:11", BF16, "parallel.mesh.pipe=2",
                                       "train.micro_batch=1", NULL}),
         parts);
    same(LLAMA(2, BF16, "parallel.tensor_virtual=2", "parallel.mesh.tensor=2",
               "parallel.device=c:12"),
         LLAMA(1, BF16, "parallel.tensor_virtual=2"));
}

/* Has the config of the latest run this text? */
static bool config_says(const char *what) {
    ls_error e = {0};
    ls_buf text = {0};
    char *run = run_path(nruns - 1), *path = ls_format("%s/config.yaml", run);
    assert_ls_ok(ls_file_read(path, 1 << 20, &text, &e), e);
    ls_buf_append(&text, "", 1);
    bool says = strstr(text.data, what) != NULL;
    ls_buf_free(&text);
    free(path);
    free(run);
    return says;
}

/* Has the latest run skipped a step, whose gradients overflowed? */
static bool has_skipped(void) {
    ls_error e = {0};
    ls_buf text = {0};
    char *run = run_path(nruns - 1), *path = ls_format("%s/metrics.jsonl", run);
    assert_ls_ok(ls_file_read(path, 1 << 20, &text, &e), e);
    ls_buf_append(&text, "", 1);
    bool has = strstr(text.data, "\"skipped\"") != NULL;
    ls_buf_free(&text);
    free(path);
    free(run);
    return has;
}

/* A run on n devices that have the optimizer's states, in types of 16 bits. */
static result halves_there(int n, const char *const *types, const char *const *more) {
    char *device = ls_format("parallel.device=c:%d", nruns);
    const char *sets[20] = {device, "parallel.optimizer_state=device"};
    int nsets = 2;
    for (int i = 0; types[i]; i++) sets[nsets++] = types[i];
    for (int i = 0; i < 5 && more[i]; i++) sets[nsets++] = more[i];
    result r = with(n, sets);
    free(device);
    return r;
}

/* The device has f32 masters, and what layers read is rounded there. A step whose gradient
 * overflows is skipped; averages; sums by the host and by devices. */
static void test_halves_there(void **state) {
    static const char *const types[][6] = {
        {"train.compute=bf16", "optim.ema=0.9", "train.eval_every=1", "train.eval_weights=ema"},
        {"train.compute=f16", "optim.loss_scale=1e6", "optim.loss_scale_hysteresis=1"},
        {"train.compute=bf16", "train.reduce_dtype=f32", "optim.optimizer=lion"},
        {"train.reduce_dtype=bf16", "optim.schedule=constant", "optim.optimizer=schedule-free"},
        {"train.compute=f16", "train.reduce_dtype=bf16", "optim.optimizer=sgd"},
        {"train.compute=bf16", "model.kind=llama", "model.width=24", "model.heads=6",
         "lora.rank=4"}};
    static const struct {
        int n;
        const char *sets[5];
    } layouts[] = {
        {1, {NULL}},
        {3, {"parallel.zero=1", "parallel.device_link=peers"}},
        {3, {"parallel.zero=3", "parallel.device_link=host"}},
        {2, {"parallel.zero=0"}},
        {2, {"parallel.zero=1", "parallel.device_link=host"}},
        {3, {"parallel.zero=2", "parallel.device_link=host", "parallel.overlap=on"}},
        {2, {"parallel.zero=3", "parallel.device_link=peers", "parallel.bucket_mb=0.01"}},
        {2, {"parallel.zero=0", "survival.audit=1"}}};
    (void)state;
    for (int t = 0; t < ncases(2, 6); t++) {
        result cores = with(1, types[t]);
        int of_cores = nruns - 1;
        assert_true(has_skipped() == (t == 1));
        for (int i = 0; i < ncases(3, 8); i++) {
            if (!all_cases() && t == 1 && i == 0) continue;
            same(halves_there(layouts[i].n, types[t], layouts[i].sets), cores);
            same_evaluations(nruns - 1, of_cores);
        }
    }
}

/* The same in several micro-batches, where workers divide a model, and by NCCL. */
static void test_more_halves_there(void **state) {
    static const char *const types[] = {"train.compute=bf16", "train.micro_batch=1", NULL};
    static const char *const layouts[][5] = {
        {"parallel.mesh.pipe=2", "parallel.zero=0"},
        {"parallel.mesh.pipe=2", "parallel.zero=3"},
        {"parallel.zero=2", "parallel.recompute=2"},
        {"parallel.device_link=nccl", "parallel.device=cuda", "parallel.zero=1"},
        {"parallel.device=cuda:0", "parallel.zero=3"}};
    result cores = with(1, types);
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    for (int i = 0; i < 5; i++) same(halves_there(2, types, layouts[i]), cores);
    unsetenv("FAKE_CUDA_DEVICES");
}

/* Two samples a virtual worker, in micro-batches of one or both. */
static void test_micro_batches(void **state) {
    result cores = trained(1, "train.micro_batch=1", NULL);
    (void)state;
    same(trained(1, "parallel.device=c:6", "train.micro_batch=1"), cores);
    same(trained(1, "parallel.device=c:7", "train.micro_batch=2"), cores);
}

/* The optimizer's states on the device, too: evaluations and checkpoints read what it has. */
static void test_state_there(void **state) {
    (void)state;
    result cores = with(1, (const char *const[]){"optim.ema=0.9", "train.eval_every=1", NULL});
    for (int n = 1; n <= 3; n++)
        for (int zero = n - 1; zero <= 3; zero += 3) {
            char *device = ls_format("parallel.device=c:%d", n + zero);
            char *sharded = ls_format("parallel.zero=%d", zero);
            same(with(n, (const char *const[]){"optim.ema=0.9", "train.eval_every=1",
                                               "parallel.optimizer_state=device", device, sharded,
                                               NULL}),
                 cores);
            free(device);
            free(sharded);
        }
}

/* Sums by the host, by the devices of processes, and of threads. */
static void test_links(void **state) {
    static const char *const links[][2] = {
        {"parallel.device_link=host", "parallel.zero=2"},
        {"parallel.device_link=host", "parallel.zero=3"},
        {"parallel.device_link=peers", "parallel.overlap=on"},
        {"parallel.device_link=peers", "parallel.transport=thread"},
        {"parallel.device_link=peers", "parallel.zero=3"},
        {"parallel.device_link=peers", "train.micro_batch=1"}};
    (void)state;
    result cores = trained(1, NULL, NULL), parts = trained(1, "train.micro_batch=1", NULL);
    for (int i = 0; i < 6; i++)
        same(with(3, (const char *const[]){"parallel.device=c:8", "parallel.optimizer_state=device",
                                           links[i][0], links[i][1], NULL}),
             i == 5 ? parts : cores);
}

/* Workers that divide a model: its stages, slices of its layers, chunks of its samples. The
 * optimizer is on cores, or on the devices. */
static void test_meshes(void **state) {
    static const char *const cuts[][4] = {
        {NULL},
        {"parallel.tensor_virtual=2", "parallel.sequence=on"},
        {"parallel.context_virtual=2", "train.batch=8", "train.virtual_workers=4"}};
    static const char *const meshes[] = {"parallel.mesh.pipe=2", "parallel.mesh.tensor=2",
                                         "parallel.mesh.context=2"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        result cores = with(1, cuts[i]);
        for (int there = 0; there < 2; there++) {
            const char *const where[] = {"parallel.optimizer_state=memory",
                                         "parallel.optimizer_state=device"};
            const char *sets[8] = {"parallel.device=c:10", where[there], meshes[i]};
            if (there != i % 2 && !all_cases()) continue;
            for (int k = 0; cuts[i][k]; k++) sets[3 + k] = cuts[i][k];
            same(with(2, sets), cores);
        }
    }
}

/* Meshes of several kinds at once, with what goes beside them. */
static void test_all_meshes(void **state) {
    static const char *const cut[] = {"parallel.tensor_virtual=2",
                                      "parallel.context_virtual=2",
                                      "train.batch=8",
                                      "train.virtual_workers=4",
                                      "train.micro_batch=1",
                                      "model.layers=4",
                                      "model.kind=llama",
                                      "model.qk_norm=on",
                                      "model.heads=6",
                                      "model.kv_heads=2",
                                      "model.width=24",
                                      NULL};
    static const struct {
        int n;
        const char *sets[6];
    } meshes[] = {
        {3, {"parallel.mesh.pipe=3", "parallel.schedule=zb-h1", "parallel.recompute=2"}},
        {2, {"parallel.mesh.pipe=2", "parallel.schedule=zb-v", "parallel.chunks=2"}},
        {2, {"parallel.mesh.pipe=2", "parallel.schedule=interleaved", "parallel.chunks=2"}},
        {2, {"parallel.mesh.pipe=2", "parallel.schedule=gpipe", "parallel.transport=tcp"}},
        {4, {"parallel.mesh.pipe=2", "parallel.mesh.tensor=2", "parallel.optimizer_state=device"}},
        {4, {"parallel.mesh.tensor=2", "parallel.mesh.context=2", "parallel.overlap=on"}},
        {4, {"parallel.mesh.pipe=2", "parallel.zero=3", "parallel.optimizer_state=device"}},
        {4, {"parallel.mesh.context=2", "parallel.zero=0", "parallel.optimizer_state=device"}},
        {2, {"parallel.mesh.tensor=2", "parallel.executor=sequential"}},
    };
    result cores = with(1, cut);
    (void)state;
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        char *device = ls_format("parallel.device=c:%zu", 11 + i);
        const char *sets[20] = {device};
        int n = 1;
        for (int k = 0; cut[k]; k++) sets[n++] = cut[k];
        for (int k = 0; meshes[i].sets[k]; k++) sets[n++] = meshes[i].sets[k];
        same(with(meshes[i].n, sets), cores);
        free(device);
    }
}

/* Four workers share a device of another kind. */
static void test_mesh_on_cuda(void **state) {
    static const char *const sets[] = {"parallel.device=cuda:0", "parallel.mesh.pipe=2",
                                       "parallel.zero=2", "train.micro_batch=1", NULL};
    (void)state;
    same(with(4, sets), trained(1, "train.micro_batch=1", NULL));
}

/* Evaluations run on the device: of the weights and of their average; in memory that activations
 * have, and where these are too few. */
static void test_evaluations(void **state) {
    static const char *const how[][2] = {{"parallel.device=c:4", "parallel.optimizer_state=device"},
                                         {"parallel.device=c:5", "parallel.recompute=1"}};
    (void)state;
    for (int average = 0; average < 2; average++) {
        const char *weights = average ? "train.eval_weights=ema" : "train.eval_weights=last";
        int cores = nruns;
        with(2, (const char *const[]){"optim.ema=0.9", "train.eval_every=1", weights, NULL});
        for (int i = 0; i < 2; i++) {
            with(2, (const char *const[]){"optim.ema=0.9", "train.eval_every=1", weights, how[i][0],
                                          how[i][1], NULL});
            same_evaluations(nruns - 1, cores);
        }
    }
}

/* Cores compute the gradients that are compared, from the parameters that the devices have. */
static void test_audit(void **state) {
    (void)state;
    same(with(2, (const char *const[]){"parallel.device=c:9", "parallel.optimizer_state=device",
                                       "parallel.zero=0", "survival.audit=1", NULL}),
         trained(1, NULL, NULL));
}

/* Ends after two steps on a device; cores continue, and the other way round. */
static void check_resumed(const char *type) {
    static const char *const there[] = {"parallel.device=c:9", "parallel.optimizer_state=device"};
    result cores = trained(1, type, NULL);
    for (int first = 0; first < 2; first++) {
        int number = nruns++;
        for (int part = 0; part < 2; part++) {
            ls_error e = {0};
            bool on = part == first;
            const char *sets[5] = {part ? "train.steps=3" : "train.steps=2", type,
                                   on ? there[0] : NULL, on ? there[1] : NULL};
            assert_ls_ok(try_number(number, 1, usual, sets, &e), e);
        }
        same(last_of_number(number), cores);
    }
}

static void test_resumed(void **state) {
    (void)state;
    check_resumed("train.compute=f32");
    check_resumed("train.compute=bf16");
}

/* A driver and a compiler that stand before devices `c` (fake_cuda.c). */
static void test_cuda(void **state) {
    result cores = trained(1, NULL, NULL);
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    same(trained(2, "parallel.device=cuda", NULL), cores); /* one each */
    setenv("FAKE_CUDA_SLOW_CLOSE", "200", 1);              /* worker 0 is done first, and waits */
    same(trained(2, "parallel.device=cuda", "parallel.optimizer_state=device"), cores);
    unsetenv("FAKE_CUDA_SLOW_CLOSE");
    same(trained(1, "parallel.device=auto", NULL), cores);
    unsetenv("FAKE_CUDA_DEVICES");
    same(trained(0, "parallel.device=cuda", NULL), cores);   /* as many workers as have one: 1 */
    same(trained(2, "parallel.device=cuda:0", NULL), cores); /* one for both */
}

/* GPUs that can't read each other, or that read other bytes: the host sums, unless that was
 * excluded. */
static void test_no_peers(void **state) {
    static const char *const peers[] = {"none", "blind", "broken"};
    static const char *const why[] = {"have no peer access", "cuIpcOpenMemHandle failed",
                                      "read wrong bytes"};
    result cores = trained(1, NULL, NULL);
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    for (int i = 0; i < 3; i++) {
        ls_error e = {0};
        const char *const sets[] = {"parallel.device=cuda", "parallel.optimizer_state=device",
                                    "parallel.device_link=peers", "parallel.zero=1", NULL};
        setenv("FAKE_CUDA_PEERS", peers[i], 1);
        assert_ls_fails(try_number(nruns++, 2, usual, sets, &e), LS_EINVAL,
                        "parallel.device_link: peers: device", e);
        assert_non_null(strstr(e.msg, why[i]));
        const char *const left_out[] = {sets[0], sets[1], i == 1 ? "parallel.zero=3" : NULL, NULL};
        same(with(2, left_out), cores);
        assert_true(config_says("device_link: \"auto\"")); /* also where they can, later */
    }
    unsetenv("FAKE_CUDA_PEERS");
    unsetenv("FAKE_CUDA_DEVICES");
}

/* The least memory of a device in which a worker fits, and what the plan says that it needs. */
static size_t least_room(const char *micro, size_t *planned_p) {
    const char *sets[10];
    int n = 0;
    ls_config c;
    ls_layout l;
    ls_memory m;
    ls_error e = {0};
    for (; usual[n]; n++) sets[n] = usual[n];
    sets[n++] = "train.batch=24", sets[n++] = micro;
    assert_ls_ok(ls_config_load("configs/tiny.yaml", sets, n, &c, &e), e);
    c.parallel.device = "cuda";
    assert_ls_ok(ls_layout_make(&c, 1, NULL, &l, &e), e);
    const ls_memory_config how = ls_layout_memory_config(&c, 1, 1);
    ls_plan_memory(&l.plan, &how, &m);
    *planned_p = m.device;
    size_t low = 0, high = (size_t)1 << 30;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        const ls_device_trial t = {.n = 1, .room = {middle, middle, middle}};
        if (ls_device_room_fits(&c, &l.plan, &t, &e) == LS_OK)
            high = middle;
        else
            low = middle;
    }
    ls_layout_free(&l);
    return high;
}

/* configs/tiny.yaml without a micro-batch, on a device; or on cores, on which it is 8. */
static ls_status try_open_micro(const char *device, ls_error *e) {
    const char *sets[12];
    char *path = ls_format("%s/open.yaml", folder), *run = run_path(nruns++);
    int n = 0;
    bool unfinished = false;
    ls_buf text = {0};
    for (; usual[n]; n++) sets[n] = usual[n];
    sets[n++] = "train.batch=24", sets[n++] = device;
    assert_ls_ok(ls_file_read("configs/tiny.yaml", 1 << 20, &text, e), *e);
    ls_buf_append(&text, "", 1);
    char *line = strstr(text.data, "  micro_batch: 1\n");
    assert_non_null(line);
    memset(line, ' ', strlen("  micro_batch: 1"));
    assert_ls_ok(ls_file_replace(path, text.data, strlen(text.data), e), *e);
    ls_train_options o = {.config = path, .sets = sets, .nsets = n, .nworkers = 1, .run = run};
    ls_status s = ls_train(&o, &unfinished, e);
    ls_buf_free(&text);
    free(path);
    free(run);
    return s;
}

/* A micro-batch that was left out is lowered to what a GPU has room for; one that was given is not.
 * All of it is in f32, with a 32nd to spare. */
static void test_room(void **state) {
    static const char *const micros[] = {"train.micro_batch=8", "train.micro_batch=2",
                                         "train.micro_batch=1"};
    static const char *const has[] = {"micro_batch: 8", "micro_batch: 2"};
    size_t least[3], planned[3];
    char text[32];
    ls_error e = {0};
    const char *const asked[] = {"train.batch=24", "parallel.device=cuda", micros[0], NULL};
    (void)state;
    for (int i = 0; i < 3; i++) least[i] = least_room(micros[i], &planned[i]);
    for (int i = 0; i < 2; i++) {
        double more = (double)(planned[i] - planned[i + 1]),
               room = (double)(least[i] - least[i + 1]);
        assert_true(more > 0 && room > more && room < more * 33 / 31 + 100);
    }
    assert_ls_ok(try_open_micro("parallel.device=", &e), e);
    result cores = last_of_number(nruns - 1);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%zu", least[i]);
        setenv("FAKE_CUDA_MEMORY", text, 1);
        assert_ls_ok(try_open_micro("parallel.device=cuda", &e), e);
        same(last_of_number(nruns - 1), cores);
        assert_true(config_says(has[i]));
    }
    assert_ls_fails(try_number(nruns++, 1, usual, asked, &e), LS_ENOMEM,
                    "use a smaller train.micro_batch", e);
    snprintf(text, sizeof text, "%zu", least[2] - 1);
    setenv("FAKE_CUDA_MEMORY", text, 1);
    assert_ls_fails(try_open_micro("parallel.device=cuda", &e), LS_ENOMEM, "a worker needs ", e);
    assert_null(strstr(e.msg, "lora.rank")); /* of a GPT-2 */
    assert_non_null(strstr(e.msg, "device cuda:0 (Fake H100 0) has "));
    unsetenv("FAKE_CUDA_MEMORY");
}

/* Of fewer devices than workers none is given to two of them. */
static void test_too_few(void **state) {
    ls_error e = {0};
    const char *const sets[] = {"parallel.device=cuda", NULL};
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    assert_ls_fails(try_number(nruns++, 3, usual, sets, &e), LS_EINVAL,
                    "device cuda: 3 workers are on the host of worker 2, which sees 2: start no "
                    "more workers there than it has devices, or let them share one by its number, "
                    "as in cuda:0",
                    e);
    unsetenv("FAKE_CUDA_DEVICES");
    refused("parallel.device=cuda:1", NULL, "device cuda:1: the highest is cuda:0");
}

/* Bytes go by NCCL (fake_nccl.c), and devices sum. */
static void test_nccl(void **state) {
    static const char *const sets[][6] = {
        {"parallel.device=cuda", "parallel.optimizer_state=device", "parallel.device_link=nccl"},
        {"parallel.device=cuda", "parallel.optimizer_state=device", "parallel.device_link=nccl",
         "parallel.zero=3", "parallel.bucket_mb=0.01"}};
    ls_error e = {0};
    (void)state;
    result cores = trained(1, NULL, NULL);
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    same(with(2, sets[0]), cores);
    same(with(3, sets[1]), cores);
    unsetenv("FAKE_CUDA_DEVICES");
    const char *const one[] = {"parallel.device=cuda:0", sets[0][1], sets[0][2], "parallel.zero=1",
                               NULL};
    assert_ls_fails(try_number(nruns++, 2, usual, one, &e), LS_EINVAL,
                    "2 workers have device cuda:0, and NCCL needs a GPU for each", e);
    refused("parallel.device=cuda:0", "parallel.device_link=nccl", "nccl needs");
    refused("parallel.device=c", "parallel.device_link=nccl", "nccl is for devices cuda");
    refused("parallel.device=opencl:0", "parallel.device_link=peers", "peers is for devices cuda");
}

/* Its compiler takes tens of seconds, once. A driver that has threads can't be used after a fork: a
 * child finds out whether there is one. */
static void test_opencl(void **state) {
    int status = 0;
    pid_t child = fork();
    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        ls_device *d = NULL;
        _exit(ls_device_open("opencl", &d, NULL) != LS_OK);
    }
    waitpid(child, &status, 0);
    if (status) skip_because("there is no device of OpenCL");
    same(trained(2, "parallel.device=opencl:0", NULL), trained(1, NULL, NULL));
    same(LLAMA(2, "lora.rank=4", "lora.dropout=0.2", "parallel.device=opencl:0"),
         LLAMA(1, "lora.rank=4", "lora.dropout=0.2"));
    same(trained(1, "parallel.device=opencl:0", "train.compute=bf16"),
         trained(1, "train.compute=bf16", NULL));
    same(EXPERTS(2, "model.expert_capacity=1", "parallel.device=opencl:0"),
         EXPERTS(1, "model.expert_capacity=1"));
    same(LLAMA(2, "lora.rank=4", "train.compute=bf16", "parallel.device=opencl:0"),
         LLAMA(1, "lora.rank=4", "train.compute=bf16"));
}

static void test_refused(void **state) {
    (void)state;
    refused("parallel.device=tpu", NULL, "device tpu");
    ls_error e = {0};
    refused("parallel.optimizer_state=device", NULL, "needs parallel.device");
    refused("parallel.device=c", "sync.mode=async", "does not go with parallel.device");
    const char *const turns[] = {"parallel.device=c", "parallel.optimizer_state=device",
                                 "parallel.device_link=peers", "parallel.executor=sequential",
                                 NULL};
    assert_ls_fails(try_number(nruns++, 2, usual, turns, &e), LS_EINVAL,
                    "does not go with parallel.executor: sequential", e);
    const char *const muon[] = {"parallel.device=c", "parallel.optimizer_state=device",
                                "optim.optimizer=muon", NULL};
    assert_ls_fails(try_number(nruns++, 1, usual, muon, &e), LS_EINVAL,
                    "optimizer_state: device does not know muon", e);
    refused("parallel.device=c", "parallel.device_link=peers", "optimizer_state: device");
    const char *const peers[] = {"parallel.device=c", "parallel.optimizer_state=device",
                                 "parallel.device_link=peers", "parallel.mesh.pipe=2", NULL};
    assert_ls_fails(try_number(nruns++, 2, usual, peers, &e), LS_EINVAL, "no parallel.mesh", e);
}

static int make_cache(void **state) {
    return make_folder(state) ? -1 : setenv("XDG_CACHE_HOME", folder, 1);
}

/* Starts itself again, so that the driver for tests is found. */
int main(int argc, char **argv) {
    if (argc == 1) {
        char *again[] = {argv[0], "found", NULL};
        setenv("LD_LIBRARY_PATH", FAKE_CUDA ":" FAKE_NVRTC ":" FAKE_NCCL, 1);
        execv("/proc/self/exe", again);
        perror(argv[0]);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),    cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_llama),        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_experts),      cmocka_unit_test(test_divided_experts),
        cmocka_unit_test(test_state_there),  cmocka_unit_test(test_links),
        cmocka_unit_test(test_halves),       cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_cuda),         cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_no_peers),     cmocka_unit_test(test_room),
        cmocka_unit_test(test_nccl),         cmocka_unit_test(test_audit),
        cmocka_unit_test(test_evaluations),  slow_unit_test(test_opencl),
        cmocka_unit_test(test_halves_there), slow_unit_test(test_more_halves_there),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_meshes),
        slow_unit_test(test_mesh_on_cuda),   slow_unit_test(test_all_meshes),
    };
    return cmocka_run_group_tests(tests, make_cache, remove_folder);
}
