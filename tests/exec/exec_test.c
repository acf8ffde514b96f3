/* exec_test.c - executors against each other, bit for bit, and against one sum over the whole
 * batch.
 *
 * Workers are threads here, so that the thread sanitizer sees them. */
/* ctest: seconds=20 */
#include "exec/exec.h"

#include <math.h>

#include "base/random.h"
#include "chunked_model.h"
#include "coll/team.h"
#include "data/tokens.h"
#include "exec/spans.h"
#include "graph_model.h"
#include "infer/infer.h"
#include "lists_model.h"
#include "mlp_model.h"
#include "plan/pick.h"
#include "sliced_model.h"

#if defined(__SANITIZE_THREAD__) /* many times slower; chaos has no threads */
enum { SEEDS = 5, VARIANTS = 3, CHAOS = 4, STRIDE = 2, PIPELINES = 10 };
enum { FEW_SEEDS = 4, FEW_CHAOS = 1, FEW_PIPELINES = 4 }; /* in make check */
#elif defined(__SANITIZE_ADDRESS__)
enum { SEEDS = 5, VARIANTS = 5, CHAOS = 20, STRIDE = 2, PIPELINES = 30 };
enum { FEW_SEEDS = 4, FEW_CHAOS = 4, FEW_PIPELINES = 10 };
#else
enum { SEEDS = 100, VARIANTS = 10, CHAOS = 60, STRIDE = 1, PIPELINES = 300 };
enum { FEW_SEEDS = 20, FEW_CHAOS = 20, FEW_PIPELINES = 80 };
#endif
enum { T = 6, VOCAB = 40, NSAMPLES = 13, BATCH = 8, STEPS = 5, TRACED = 2, MOST = 8 };

/* Kinds of models. MIXED and those behind it have experts: mixed_kinds. */
enum {
    CHAIN,
    GRAPH,
    MLP,
    LISTS,
    NKINDS,
    SLICED = NKINDS,
    SEQUENCE,
    CHUNKED,
    TIED,
    OWN,
    BOTH,
    MIXED,
    JOINT,
    JOINT_CHUNKS,
    MIXED_SLICES,
    ALL_PARTS,
    MIXED_END
};

static const mixed_parts mixed_kinds[] = {[MIXED] = {CHUNKS, 1, 1},
                                          [JOINT] = {1, TOGETHER, 1},
                                          [JOINT_CHUNKS] = {CHUNKS, TOGETHER, 1},
                                          [MIXED_SLICES] = {CHUNKS, 1, 2, .sequence = true},
                                          [ALL_PARTS] = {CHUNKS, TOGETHER, 2}};

typedef struct setup {
    ls_model model;
    ls_plan plan;
    uint32_t tokens[NSAMPLES * T + 1];
    ls_tokens text; /* the tokens above */
    int kind;       /* of model: above */
    bool whole;     /* of a kind with experts: samples are not cut */
    bool sequential, overlap;
    bool chaos, own; /* sequential: run random actions; no shared copy of the state */
    uint64_t seed;
    int zero, recompute, recompute_layers, shards;
    ls_dtype compute, reduce; /* LS_F64: f32 */
    int prefetch;
    bool early;
    size_t whole_nbytes;
    size_t bucket_nbytes;  /* 0: 20000 */
    const char *algorithm; /* NULL: over shared memory; else over messages */
    const char *dir;       /* directory of the optimizer's state; NULL: in memory */
    int threads;
    ls_plan_compress compress;
    int pipe, tensor, context, chunks; /* 0: no pipeline, no slices */
    bool noise;
    ls_pipe_kind schedule;
    ls_update_rule rule; /* LS_RULE_ADAMW: as usual */
    uint64_t uneven;     /* seed of random ranges of virtual workers; 0: even ranges */
    int first[MOST + 1];
    /* results of worker 0, which gathers moments */
    float *params, *m, *v;
    double losses[STEPS], norms[STEPS];
    ls_noise_step noises[STEPS];
} setup;

/* Random ranges of V, each of at least one. */
static void share_out(setup *s, int n, int V) {
    s->first[n] = V;
    for (int w = n - 1; w >= 0; w--) {
        uint32_t r[4];
        ls_random_words(s->uneven, LS_STREAM_FAKE, 2, (uint64_t)w, r);
        int most = s->first[w + 1] - w; /* leaves one for each worker before */
        s->first[w] = w ? s->first[w + 1] - 1 - (int)(r[0] % (uint32_t)most) : 0;
    }
}

static void set_up(setup *s, int n, int V, int64_t micro) {
    ls_error e = {0};
    ls_gpt_config c = {.layers = 2, .width = 24, .heads = 3, .context = T, .vocab = VOCAB};
    if (s->kind == GRAPH) graph_make(&c, &s->model);
    if (s->kind == MLP) mlp_make(&s->model);
    if (s->kind == LISTS) lists_make(&s->model);
    if (s->kind == SLICED) sliced_make(T, VOCAB, &s->model);
    if (s->kind == SEQUENCE) sequence_make(T, VOCAB, &s->model);
    if (s->kind == CHUNKED || s->kind == TIED) chunked_make(T, VOCAB, s->kind == TIED, &s->model);
    if (s->kind == OWN) own_make(T, VOCAB, &s->model);
    if (s->kind == BOTH) both_make(T, VOCAB, &s->model);
    if (s->kind >= MIXED) mixed_make(T, VOCAB, mixed_kinds[s->kind], !s->whole, &s->model);
    if (s->kind == CHAIN) assert_ls_ok(ls_gpt_create(&c, &s->model, &e), e);
    ls_plan_config p = {.model = &s->model,
                        .nworkers = n,
                        .V = V,
                        .batch = BATCH,
                        .micro_batch = micro,
                        .tree = true,
                        .bucket_nbytes = s->bucket_nbytes ? s->bucket_nbytes : 20000,
                        .zero = s->zero,
                        .recompute = s->recompute,
                        .recompute_layers = s->recompute_layers,
                        .early = s->early,
                        .whole_nbytes = s->whole_nbytes,
                        .prefetch = 1 + s->prefetch,
                        .shards = s->shards,
                        .compute = s->compute ? s->compute : LS_F32,
                        .reduce = s->reduce ? s->reduce : LS_F32,
                        .first = s->uneven ? s->first : NULL,
                        .pipe = s->pipe,
                        .tensor = s->tensor,
                        .context = s->context,
                        .chunks = s->chunks,
                        .schedule = s->schedule,
                        .compress = s->compress,
                        .noise = s->noise};
    if (s->compress.how.kind == LS_COMPRESS_POWERSGD) ls_plan_place_matrices(&s->model);
    if (s->rule) {
        p.optim = ls_optim_usual();
        p.optim.groups[0].rule = s->rule;
        ls_optim_place(&p.optim, &s->model);
    }
    if (s->uneven) share_out(s, n, V);
    assert_ls_ok(ls_plan_make(&p, &s->plan, &e), e);
    s->params = LS_NEW_ARRAY(float, 3 * s->model.nfloats);
    s->m = s->params + s->model.nfloats;
    s->v = s->m + s->model.nfloats;
    for (size_t i = 0; i < NSAMPLES * T + 1; i++) {
        uint32_t w[4];
        ls_random_words(3, LS_STREAM_SAMPLE, 0, i, w);
        s->tokens[i] = w[0] % VOCAB;
    }
    s->text = ls_tokens_of(s->tokens, NSAMPLES * T + 1, VOCAB);
}

static void tear_down(setup *s) {
    free(s->params);
    ls_plan_free(&s->plan);
    ls_model_free(&s->model);
}

static ls_loader_config samples_of(const setup *s) {
    ls_read_sample *read = s->kind == MLP     ? mlp_read
                           : s->kind == LISTS ? lists_read
                                              : ls_tokens_window;
    return (ls_loader_config){.read = read,
                              .data = s->kind == LISTS ? (const void *)&s->model : &s->text,
                              .sample_nbytes = s->model.sample_nbytes,
                              .order = {.n = NSAMPLES, .seed = 5},
                              .batch = BATCH,
                              .V = s->plan.c.V,
                              .step = 1};
}

static ls_exec_config config_of(const setup *s, const ls_world *w, ls_board_slot *slot,
                                int worker) {
    ls_exec_config c = {.plan = &s->plan,
                        .world = w,
                        .slot = slot,
                        .worker = worker,
                        .threads = s->threads,
                        .busy = 64,
                        .overlap = s->overlap,
                        .loader = samples_of(s)};
    c.loader.step = ls_plan_vw_step(&s->plan);
    c.loader.a = ls_plan_vw(&s->plan, worker, 0);
    c.loader.b = ls_plan_vw(&s->plan, worker, ls_plan_nvws(&s->plan, worker) - 1) + 1;
    return c;
}

static ls_step_in step_in(int64_t i) {
    return (ls_step_in){
        .step = i, .updates = i, .lr = 1e-2, .clip = 0.5, .loss_scale = 8, .skips = true};
}

/* Each worker writes its shards of a shared copy, and all of its own copy. */
static void draw(const setup *s, const ls_world *w, int worker, const ls_exec *x) {
    for (int k = 0; k < s->plan.nbuckets; k++) {
        ls_bucket own = ls_plan_shard(&s->plan, k, worker), all = s->plan.buckets[k];
        bool shared = w->shares_state || (w->shares_params && w->flat.of[0] == w->params);
        if (shared) all = own;
        if (!ls_plan_has(&s->plan, k, worker)) all.end = all.first;
        ls_model_init(&s->model, 7, all.first, all.end, w->flat.of[0]);
        if (!w->shares_params) own = all;
        ls_world_round(w, &s->plan, ls_exec_compute(x), own.first, own.end);
    }
}

static void keep(setup *s, const ls_world *w) {
    size_t nbytes = s->model.nfloats * sizeof(float);
    memcpy(s->params, w->flat.of[0], nbytes);
    memcpy(s->m, w->flat.of[1], nbytes);
    memcpy(s->v, w->flat.of[2], nbytes);
}

/* The part that worker w owns, if each worker has its own copy. */
static void take_shards(setup *s, const ls_world *w, int worker) {
    const float *const from[] = {w->flat.of[0], w->flat.of[1], w->flat.of[2]};
    float *const to[] = {s->params, s->m, s->v};
    for (int k = 0; k < s->plan.nbuckets; k++) {
        ls_bucket b = ls_plan_shard(&s->plan, k, worker);
        for (int i = 0; i < 3; i++)
            memcpy(to[i] + b.first, from[i] + b.first, (b.end - b.first) * sizeof(float));
    }
}

/* A step in which all actions are traced. */
static void begin_trace(const setup *s, ls_exec *x, int worker, ls_trace *t) {
    ls_trace_open(t, &s->plan, worker, 1);
    ls_trace_begin_step(t);
    ls_exec_trace(x, t);
}

static void end_trace(const setup *s, ls_exec *x, ls_trace *t) {
    int n = ls_trace_nspans(t);
    ls_span *spans = LS_NEW_ARRAY(ls_span, (size_t)n);
    ls_exec_trace(x, NULL);
    ls_trace_spans(t, 0, spans);
    assert_spans(&s->plan, t->worker, spans, n);
    free(spans);
    ls_trace_free(t);
}

static ls_status run_steps(setup *s, ls_world *w, ls_exec *x, ls_error *e) {
    int worker = ls_group_rank(w->group);
    draw(s, w, worker, x);
    if (!w->shares_params) ls_world_drop_params(w, &s->plan);
    LS_TRY(ls_barrier(w->group, e));
    LS_TRY(ls_world_spread(w, &s->plan, e));
    for (int64_t i = 0; i < STEPS; i++) {
        ls_step_in in = step_in(i);
        ls_step_out out = {0};
        ls_trace trace;
        if (i == TRACED) begin_trace(s, x, worker, &trace);
        LS_TRY(ls_exec_step(x, &in, &out, e));
        if (i == TRACED) end_trace(s, x, &trace);
        if (worker == 0) s->losses[i] = out.loss;
        if (worker == 0) s->norms[i] = out.grad_norm;
        if (worker == 0) s->noises[i] = out.noise;
    }
    LS_TRY(ls_world_collect(w, &s->plan, e));
    if (worker == 0) keep(s, w);
    return ls_barrier(w->group, e);
}

static ls_status worker_main(ls_group *g, void *arg, ls_error *e) {
    setup *s = arg;
    ls_world w;
    ls_board_slot slot = {0};
    ls_exec *x = NULL;
    LS_TRY(ls_world_open(&w, &s->plan, g, NULL, s->dir, e));
    ls_exec_config c = config_of(s, &w, &slot, ls_group_rank(g));
    LS_TRY(ls_exec_create(&c, &x, e));
    ls_status status = run_steps(s, &w, x, e);
    ls_exec_free(x);
    ls_world_close(&w, &s->plan);
    return status;
}

/* As ls_world_spread(), for all workers in one thread. */
static void spread(const setup *s, const ls_world *worlds) {
    const ls_plan *p = &s->plan;
    for (int k = 0; ls_plan_divides(p) && k < p->nbuckets; k++)
        for (int w = 0; w < p->c.nworkers; w++) {
            const ls_bucket *b = &p->buckets[k];
            size_t size = ls_dtype_size(p->c.compute);
            int rank = ls_plan_receiver(p, k, ls_plan_rank(p, w));
            int owner = ls_plan_worker(p, rank, ls_plan_place(p, w));
            if (owner != w)
                memcpy((char *)worlds[w].params + b->first * size,
                       (char *)worlds[owner].params + b->first * size, (b->end - b->first) * size);
        }
}

static void run_sequential(setup *s) {
    int n = s->plan.c.nworkers;
    ls_error e = {0};
    ls_exec *execs[MOST];
    ls_group *groups[MOST];
    ls_world worlds[MOST];
    ls_board_slot slot = {0};
    assert_ls_ok(ls_group_open_threads(n, NULL, groups, &e), e);
    assert_ls_ok(ls_world_open_all(worlds, &s->plan, groups, !s->own, &e), e);
    for (int w = 0; w < n; w++) {
        ls_exec_config c = config_of(s, &worlds[w], &slot, w);
        assert_ls_ok(ls_exec_create(&c, &execs[w], &e), e);
    }
    for (int w = 0; w < n; w++) draw(s, &worlds[w], w, execs[w]);
    if (s->own) spread(s, worlds);
    for (int64_t i = 0; i < STEPS; i++) {
        ls_step_in in = step_in(i);
        ls_step_out out = {0};
        ls_trace traces[MOST];
        for (int w = 0; i == TRACED && w < n; w++) begin_trace(s, execs[w], w, &traces[w]);
        if (s->chaos)
            assert_ls_ok(ls_exec_step_chaos(execs, s->seed, &in, &out, &e), e);
        else
            assert_ls_ok(ls_exec_step_all(execs, &in, &out, &e), e);
        for (int w = 0; i == TRACED && w < n; w++) end_trace(s, execs[w], &traces[w]);
        s->losses[i] = out.loss;
        s->norms[i] = out.grad_norm;
        s->noises[i] = out.noise;
    }
    keep(s, &worlds[0]);
    int owners = ls_plan_divides(&s->plan) ? n : ls_plan_shards(&s->plan);
    for (int w = 1; s->own && w < owners; w++) take_shards(s, &worlds[w], w);
    for (int w = 0; w < n; w++) {
        ls_exec_free(execs[w]);
        ls_world_close(&worlds[w], &s->plan);
        ls_group_close(groups[w]);
    }
}

static void run(setup *s) {
    ls_group_options o = {.timeout_s = 60, .algorithm = s->algorithm};
    if (s->sequential)
        run_sequential(s);
    else
        run_threads(s->plan.c.nworkers, &o, worker_main, s, NULL);
}

typedef struct variant {
    int n, V;
    int64_t micro;
    bool overlap;
    int threads;
    int zero;
    const char *algorithm;
} variant;

static void same_as_oracle(variant x) {
    setup oracle = {.sequential = true, .threads = 1, .zero = 1};
    setup s = {
        .overlap = x.overlap, .threads = x.threads, .algorithm = x.algorithm, .zero = x.zero};
    set_up(&oracle, x.n, x.V, x.micro);
    set_up(&s, x.n, x.V, x.micro);
    run(&oracle);
    run(&s);
    size_t nbytes = s.model.nfloats * sizeof(float);
    if (memcmp(s.params, oracle.params, 3 * nbytes) != 0)
        print_error("%d workers, overlap %d, zero %d, %s\n", x.n, x.overlap, x.zero,
                    x.algorithm ? x.algorithm : "shared");
    assert_memory_equal(s.params, oracle.params, nbytes);
    assert_memory_equal(s.m, oracle.m, nbytes);
    assert_memory_equal(s.v, oracle.v, nbytes);
    assert_memory_equal(s.losses, oracle.losses, sizeof s.losses);
    assert_memory_equal(s.norms, oracle.norms, sizeof s.norms);
    tear_down(&oracle);
    tear_down(&s);
}

static void test_lanes(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 3, 5, 8};
    for (int i = 0; i < 5; i++) {
        same_as_oracle((variant){workers[i], 8, 1, false, 1, 1, NULL});
        same_as_oracle((variant){workers[i], 8, 1, true, 1, 1, NULL});
    }
    same_as_oracle((variant){2, 4, 2, true, 2, 1, NULL});
    same_as_oracle((variant){1, 1, 8, true, 2, 1, NULL});
}

/* Sums over messages, not over shared memory. */
static void test_messages(void **state) {
    (void)state;
    same_as_oracle((variant){3, 8, 1, false, 1, 1, "direct"});
    same_as_oracle((variant){5, 8, 1, true, 1, 1, "ring"});
}

/* Every sharding, over shared memory and over messages, with and without a communication thread. */
static void test_sharding(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 3, 5, 8};
    for (int zero = 0; zero <= 3; zero++)
        for (int i = zero % STRIDE; i < 5; i += STRIDE)
            for (int way = 0; way < 4; way++)
                same_as_oracle(
                    (variant){workers[i], 8, 1, way % 2, 1, zero, way / 2 ? "direct" : NULL});
    setup again = {.threads = 1, .zero = 3, .recompute = 3};
    setup all = {.sequential = true, .threads = 1, .zero = 0, .own = true};
    setup one = {.sequential = true, .threads = 1, .zero = 3};
    set_up(&all, 3, 8, 1);
    set_up(&one, 3, 8, 1);
    run(&all);
    run(&one);
    assert_memory_equal(all.params, one.params, 3 * one.model.nfloats * sizeof(float));
    set_up(&again, 3, 8, 1);
    run(&again);
    assert_memory_equal(all.params, again.params, 3 * one.model.nfloats * sizeof(float));
    tear_down(&again);
    tear_down(&all);
    tear_down(&one);
}

/* Returns the number of steps that were measured: not those with fewer samples. */
static int same_noise(const setup *a, const setup *b) {
    int n = 0;
    for (int i = 0; i < STEPS; i++) {
        const ls_noise_step *x = &a->noises[i], *y = &b->noises[i];
        assert_int_equal(x->known, y->known);
        n += x->known;
        assert_memory_equal(&x->trace, &y->trace, sizeof x->trace);
        assert_memory_equal(&x->square, &y->square, sizeof x->square);
        assert_memory_equal(x->norms, y->norms, sizeof x->norms);
    }
    return n;
}

/* Of optimizers: most often the usual one; those of whole parameters. */
static const ls_update_rule rules[] = {LS_RULE_ADAMW, LS_RULE_ADAMW, LS_RULE_ADAMW,
                                       LS_RULE_LAMB,  LS_RULE_MUON,  LS_RULE_SOAP};

/* Pipelines of every kind, by every executor, give the bits of one worker, and its noise. */
static void test_pipelines(void **state) {
    (void)state;
    static const ls_dtype types[] = {LS_F32, LS_F32, LS_BF16, LS_F16};
    static const ls_pipe_kind kinds[] = {LS_PIPE_1F1B, LS_PIPE_GPIPE, LS_PIPE_ZB_H1};
    int measured = 0;
    for (uint64_t seed = 0; seed < (uint64_t)ncases(FEW_PIPELINES, PIPELINES); seed++) {
        int V = 1 << pick(seed, 0, 4);
        setup oracle = {.sequential = true, .threads = 1, .zero = 1};
        oracle.compute = types[pick(seed, 1, 4)];
        oracle.reduce = pick(seed, 2, 2) ? oracle.compute : types[pick(seed, 3, 4)];
        setup s = {.threads = 1, .seed = seed, .compute = oracle.compute, .reduce = oracle.reduce};
        s.kind = oracle.kind = (int)(seed % NKINDS);
        s.rule = oracle.rule = rules[pick(seed, 17, 6)];
        s.pipe = s.kind == CHAIN ? 2 + pick(seed, 4, 3) : 2;
        int data = 1 + pick(seed, 5, MOST / s.pipe < V ? MOST / s.pipe : V);
        bool chunked = s.pipe == 2 && s.kind == CHAIN && pick(seed, 6, 2);
        s.chunks = chunked ? 2 : 1;
        s.schedule = chunked ? pick(seed, 16, 2) ? LS_PIPE_INTERLEAVED : LS_PIPE_ZB_V
                             : kinds[pick(seed, 7, 3)];
        s.zero = pick(seed, 8, V % data ? 3 : 4);
        s.recompute = pick(seed, 9, 4);
        s.bucket_nbytes = (size_t)(4096 << pick(seed, 10, 5));
        s.sequential = pick(seed, 11, 2);
        s.chaos = pick(seed, 12, 2);
        s.own = s.zero == 0 || pick(seed, 13, 2);
        s.algorithm = pick(seed, 14, 2) ? NULL : "direct";
        s.noise = oracle.noise = V > 1 && s.compute != LS_F16 && s.reduce != LS_F16;
        set_up(&oracle, 1, V, 1);
        set_up(&s, s.pipe * data, V, 1 + pick(seed, 15, BATCH / V));
        run(&oracle);
        run(&s);
        if (memcmp(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float)) != 0)
            print_error(
                "seed %d: pipe %d, data %d of %d, chunks %d, schedule %d, zero %d, recompute "
                "%d, micro %d, %s and %s, sequential %d, chaos %d, own %d, %s\n",
                (int)seed, s.pipe, data, V, s.chunks, (int)s.schedule, s.zero, s.recompute,
                (int)s.plan.c.micro_batch, ls_dtype_name(s.plan.c.compute),
                ls_dtype_name(s.plan.c.reduce), s.sequential, s.chaos, s.own,
                s.algorithm ? s.algorithm : "");
        assert_memory_equal(s.losses, oracle.losses, sizeof s.losses);
        assert_memory_equal(s.norms, oracle.norms, sizeof s.norms);
        assert_memory_equal(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float));
        if (s.noise) measured += same_noise(&s, &oracle);
        tear_down(&oracle);
        tear_down(&s);
    }
    assert_true(measured > 0);
}

/* The slices of layers, and of samples, among any number of workers, which may be pipelines, too, give the bits of
 * one worker. */
static void test_tensor(void **state) {
    (void)state;
    static const ls_dtype types[] = {LS_F32, LS_F32, LS_BF16, LS_F16};
    static const ls_pipe_kind kinds[] = {LS_PIPE_1F1B, LS_PIPE_GPIPE, LS_PIPE_ZB_H1};
    int measured = 0;
    for (uint64_t seed = 0; seed < (uint64_t)ncases(FEW_PIPELINES, PIPELINES) / 2; seed++) {
        int V = 1 << pick(seed, 0, 4);
        int kind = seed % 4 == 3 ? SEQUENCE : SLICED, slices = kind == SLICED ? SLICES : PARTS;
        setup oracle = {.sequential = true, .threads = 1, .zero = 1, .kind = kind};
        oracle.compute = types[pick(seed, 1, 4)];
        oracle.reduce = pick(seed, 2, 2) ? oracle.compute : types[pick(seed, 3, 4)];
        setup s = {.threads = 1, .seed = seed, .compute = oracle.compute, .reduce = oracle.reduce};
        s.kind = kind;
        s.rule = oracle.rule = rules[pick(seed, 20, 6)];
        s.tensor = 2 + pick(seed, 4, slices - 1);
        s.pipe = 1 + pick(seed, 5, MOST / s.tensor < 3 ? MOST / s.tensor : 3);
        int most = MOST / s.tensor / s.pipe, data = 1 + pick(seed, 6, most < V ? most : V);
        bool chunked = s.pipe == 2 && pick(seed, 7, 2);
        s.chunks = chunked ? 2 : 1;
        s.schedule = chunked ? pick(seed, 8, 2) ? LS_PIPE_INTERLEAVED : LS_PIPE_ZB_V
                             : kinds[pick(seed, 9, 3)];
        s.zero = pick(seed, 10, V % data ? 3 : 4);
        s.whole_nbytes = (size_t)pick(seed, 18, 2) * 5000;
        s.prefetch = pick(seed, 19, 3);
        s.recompute = pick(seed, 17, 3) * 7;
        s.bucket_nbytes = (size_t)(4096 << pick(seed, 11, 5));
        s.sequential = pick(seed, 12, 2);
        s.chaos = pick(seed, 13, 2);
        s.own = s.zero == 0 || pick(seed, 14, 2);
        s.algorithm = pick(seed, 15, 2) ? NULL : "direct";
        s.noise = oracle.noise = V > 1 && s.compute != LS_F16 && s.reduce != LS_F16;
        set_up(&oracle, 1, V, 1);
        set_up(&s, s.tensor * s.pipe * data, V, 1 + pick(seed, 16, BATCH / V));
        run(&oracle);
        run(&s);
        if (memcmp(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float)) != 0)
            print_error("seed %d: kind %d, tensor %d, pipe %d, data %d of %d, chunks %d, schedule "
                        "%d, zero %d, "
                        "recompute %d, micro %d, %s and %s, sequential %d, chaos %d, own %d, %s\n",
                        (int)seed, s.kind, s.tensor, s.pipe, data, V, s.chunks, (int)s.schedule,
                        s.zero, s.recompute, (int)s.plan.c.micro_batch,
                        ls_dtype_name(s.plan.c.compute), ls_dtype_name(s.plan.c.reduce),
                        s.sequential, s.chaos, s.own, s.algorithm ? s.algorithm : "");
        assert_memory_equal(s.losses, oracle.losses, sizeof s.losses);
        assert_memory_equal(s.norms, oracle.norms, sizeof s.norms);
        assert_memory_equal(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float));
        if (s.noise) measured += same_noise(&s, &oracle);
        tear_down(&oracle);
        tear_down(&s);
    }
    assert_true(measured > 0);
}

/* The chunks of samples among any number of workers, which may be pipelines or divide slices, too, give
 * the bits of one worker. */
static void test_context(void **state) {
    (void)state;
    static const ls_dtype types[] = {LS_F32, LS_F32, LS_BF16, LS_F16};
    static const ls_pipe_kind kinds[] = {LS_PIPE_1F1B, LS_PIPE_GPIPE, LS_PIPE_ZB_H1};
    for (uint64_t seed = 0; seed < (uint64_t)ncases(FEW_PIPELINES, PIPELINES) / 2; seed++) {
        int V = 1 << pick(seed, 0, 4), kind = CHUNKED + (int)(seed % 4);
        setup oracle = {.sequential = true, .threads = 1, .zero = 1, .kind = kind};
        oracle.compute = types[pick(seed, 2, 4)];
        oracle.reduce = pick(seed, 3, 2) ? oracle.compute : types[pick(seed, 4, 4)];
        setup s = {.threads = 1, .seed = seed, .compute = oracle.compute, .reduce = oracle.reduce};
        s.kind = kind;
        s.rule = oracle.rule = rules[pick(seed, 5, 6)];
        s.context = 1 + pick(seed, 6, CHUNKS);
        s.pipe = 1 + pick(seed, 18, 2);
        bool both = kind >= OWN && s.context * s.pipe * 2 <= MOST && pick(seed, 22, 2);
        s.tensor = both ? 2 : 1;
        int most = MOST / s.context / s.pipe / s.tensor;
        int data = 1 + pick(seed, 7, most < V ? most : V);
        bool chunked = s.pipe == 2 && pick(seed, 19, 2);
        s.chunks = chunked ? 2 : 1;
        s.schedule = chunked ? pick(seed, 20, 2) ? LS_PIPE_INTERLEAVED : LS_PIPE_ZB_V
                             : kinds[pick(seed, 21, 3)];
        s.zero = pick(seed, 8, V % data ? 3 : 4);
        s.whole_nbytes = (size_t)pick(seed, 9, 2) * 5000;
        s.recompute = pick(seed, 23, 3) * 7;
        s.prefetch = pick(seed, 10, 3);
        s.bucket_nbytes = (size_t)(4096 << pick(seed, 11, 5));
        s.sequential = pick(seed, 12, 2);
        s.chaos = pick(seed, 13, 2);
        s.own = s.zero == 0 || pick(seed, 14, 2);
        s.algorithm = pick(seed, 15, 2) ? NULL : "direct";
        if (s.context * s.pipe * s.tensor == 1 && data < V && !s.sequential && pick(seed, 17, 2))
            s.uneven = seed + 1;
        set_up(&oracle, 1, V, 1);
        set_up(&s, s.context * s.tensor * s.pipe * data, V, 1 + pick(seed, 16, BATCH / V));
        run(&oracle);
        run(&s);
        if (memcmp(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float)) != 0)
            print_error("seed %d: model %d, context %d, tensor %d, pipe %d, data %d of %d, chunks "
                        "%d, schedule %d, zero %d, recompute %d, micro %d, %s and %s, sequential "
                        "%d, chaos %d, own %d, %s\n",
                        (int)seed, s.kind, s.context, s.tensor, s.pipe, data, V, s.chunks,
                        (int)s.schedule, s.zero, s.recompute, (int)s.plan.c.micro_batch,
                        ls_dtype_name(s.plan.c.compute), ls_dtype_name(s.plan.c.reduce),
                        s.sequential, s.chaos, s.own, s.algorithm ? s.algorithm : "");
        assert_memory_equal(s.losses, oracle.losses, sizeof s.losses);
        assert_memory_equal(s.norms, oracle.norms, sizeof s.norms);
        assert_memory_equal(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float));
        tear_down(&oracle);
        tear_down(&s);
    }
}

/* Experts among any number of workers, in micro-batches of any number of samples, give the bits of
 * one worker. The last batch of an epoch has samples that are not computed together with others. */
static void test_experts(void **state) {
    (void)state;
    static const ls_dtype types[] = {LS_F32, LS_BF16};
    for (uint64_t seed = 0; seed < (uint64_t)ncases(FEW_PIPELINES, PIPELINES) / 8 + 1; seed++) {
        int V = 1 << pick(seed, 0, 3), kind = MIXED + (int)(seed % (MIXED_END - MIXED));
        const mixed_parts parts = mixed_kinds[kind];
        int each = parts.samples;
        setup oracle = {.sequential = true, .threads = 1, .zero = 1, .kind = kind};
        oracle.compute = types[pick(seed, 2, 2)];
        setup s = {.threads = 1, .seed = seed, .compute = oracle.compute, .kind = kind};
        s.context = 1 + pick(seed, 6, parts.chunks * parts.samples);
        s.tensor = s.context * parts.slices <= MOST ? 1 + pick(seed, 9, parts.slices) : 1;
        s.pipe = s.context * s.tensor * 2 <= MOST ? 1 + pick(seed, 10, 2) : 1;
        int ranks = s.context * s.tensor * s.pipe, most = MOST / ranks;
        int data = 1 + pick(seed, 7, most < V ? most : V);
        s.zero = pick(seed, 8, V % data ? 3 : 4);
        s.bucket_nbytes = (size_t)(4096 << pick(seed, 11, 5));
        s.sequential = pick(seed, 12, 2);
        s.own = s.zero == 0 || pick(seed, 14, 2);
        set_up(&oracle, 1, V, each);
        set_up(&s, ranks * data, V, each * (1 + pick(seed, 16, BATCH / V / each)));
        run(&oracle);
        run(&s);
        if (memcmp(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float)) != 0)
            print_error("seed %d: kind %d, pipe %d, context %d, tensor %d, data %d of %d, zero %d, "
                        "micro %d, %s\n",
                        (int)seed, kind, s.pipe, s.context, s.tensor, data, V, s.zero,
                        (int)s.plan.c.micro_batch, ls_dtype_name(s.plan.c.compute));
        assert_memory_equal(s.losses, oracle.losses, sizeof s.losses);
        assert_memory_equal(s.norms, oracle.norms, sizeof s.norms);
        assert_memory_equal(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float));
        tear_down(&oracle);
        tear_down(&s);
    }
}

/* ... which are those of a model that is not cut, but for rounding. */
static void test_experts_whole(void **state) {
    (void)state;
    for (int kind = MIXED; kind < MIXED_END; kind++) {
        setup whole = {.sequential = true, .threads = 1, .zero = 1, .kind = kind, .whole = true};
        setup cut = {.sequential = true, .threads = 1, .zero = 1, .kind = kind};
        set_up(&whole, 1, 2, TOGETHER);
        set_up(&cut, 1, 2, TOGETHER);
        assert_int_equal(whole.model.nparams, cut.model.nparams);
        for (int i = 0; i < cut.model.nparams; i++) {
            assert_string_equal(whole.model.params[i].name, cut.model.params[i].name);
            assert_int_equal(whole.model.params[i].offset, cut.model.params[i].offset);
        }
        run(&whole);
        run(&cut);
        for (int i = 0; i < STEPS; i++) {
            assert_true(fabs(whole.losses[i] - cut.losses[i]) < 1e-5 * whole.losses[i]);
            assert_true(fabs(whole.norms[i] - cut.norms[i]) < 1e-4 * whole.norms[i]);
        }
        assert_memory_not_equal(whole.norms, cut.norms, sizeof whole.norms);
        tear_down(&whole);
        tear_down(&cut);
    }
}

/* Gradients as random codes, from step 0 or 2 on; often none. */
static ls_plan_compress random_codes(uint64_t seed, ls_dtype reduce) {
    static const ls_compression_kind kinds[] = {
        LS_COMPRESS_TOPK,   LS_COMPRESS_RANDOMK,  LS_COMPRESS_ONEBIT,
        LS_COMPRESS_TWOBIT, LS_COMPRESS_INT8,     LS_COMPRESS_INT4,
        LS_COMPRESS_DEMO,   LS_COMPRESS_POWERSGD, LS_COMPRESS_BF16};
    ls_compression_kind kind = kinds[pick(seed, 61, 9)];
    int feedback = kind == LS_COMPRESS_POWERSGD ? LS_FEEDBACK_ERROR : pick(seed, 62, 3);
    return (ls_plan_compress){.on = reduce == LS_F32 && pick(seed, 60, 2),
                              .how = {.kind = kind,
                                      .feedback = (ls_feedback)feedback,
                                      .rank = 1 + pick(seed, 66, 4),
                                      .ratio = 0.1,
                                      .threshold = 1e-3f},
                              .warmup = 2 * pick(seed, 63, 2),
                              .min_count = (size_t)pick(seed, 64, 100)};
}

/* Random settings that do not change the bits. */
static setup random_setup(uint64_t seed, const setup *oracle, int *n_p, int64_t *micro_p, int V) {
    setup s = {.threads = 1, .seed = seed, .compute = oracle->compute, .reduce = oracle->reduce};
    s.kind = oracle->kind;
    s.compress = oracle->compress;
    s.compress.codes = pick(seed, 65, 2);
    *n_p = 1 + pick(seed, 10, V < MOST ? V : MOST);
    *micro_p = 1 + pick(seed, 11, BATCH / V);
    s.zero = pick(seed, 12, 4);
    s.recompute = pick(seed, 13, 5);
    s.recompute_layers = pick(seed, 22, 4);
    s.prefetch = pick(seed, 14, 3);
    s.whole_nbytes = pick(seed, 23, 2) ? (size_t)(2048 << pick(seed, 24, 5)) : 0;
    s.bucket_nbytes = (size_t)(4096 << pick(seed, 15, 5));
    s.overlap = pick(seed, 16, 2);
    s.sequential = pick(seed, 17, 2);
    s.chaos = pick(seed, 18, 2);
    s.own = s.zero == 0 || pick(seed, 19, 2);
    s.algorithm = pick(seed, 20, 4) ? NULL : "direct";
    s.dir = !s.sequential && pick(seed, 21, 4) == 0 ? "." : NULL;
    bool even = (V & (V - 1)) == 0 && (*n_p & (*n_p - 1)) == 0;
    s.early = s.zero >= 2 && even && pick(seed, 9, 2);
    if (s.compress.how.kind == LS_COMPRESS_POWERSGD) s.early = false;
    for (int g = 2; s.zero && (V & (V - 1)) == 0 && g <= *n_p; g *= 2)
        if (*n_p % g == 0 && pick(seed, 21 + (uint64_t)g, 2)) s.shards = *n_p / g;
    if (!s.early && !s.shards && pick(seed, 40, 2)) s.uneven = seed + 1;
    return s;
}

/* Any plan, by any executor, with any type of parameters and gradients, against one worker. The
 * plans are verified pass by pass. */
static void test_random(void **state) {
    (void)state;
    static const ls_dtype types[] = {LS_F32, LS_F32, LS_BF16, LS_F16};
    static const int parts[] = {1, 2, 4, 8};
    for (uint64_t seed = 0; seed < (uint64_t)ncases(FEW_SEEDS, SEEDS); seed++) {
        int V = parts[pick(seed, 0, 4)], n = 1;
        int64_t micro = 1;
        setup oracle = {.sequential = true, .threads = 1, .zero = 1};
        oracle.compute = types[pick(seed, 1, 4)];
        oracle.reduce = pick(seed, 2, 2) ? oracle.compute : types[pick(seed, 3, 4)];
        oracle.kind = (int)(seed % NKINDS);
        oracle.compress = random_codes(seed, oracle.reduce);
        set_up(&oracle, 1, V, 1);
        run(&oracle);
        for (uint64_t k = 0; k < VARIANTS; k++) {
            setup s = random_setup(seed * VARIANTS + k, &oracle, &n, &micro, V);
            set_up(&s, n, V, micro);
            run(&s);
            if (memcmp(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float)) != 0)
                print_error("seed %d.%d: model %d, %d workers of %d, zero %d, shards %d, early %d, "
                            "recompute "
                            "%d, micro %d, %s and %s, sequential %d, chaos %d, own %d, %s, in a "
                            "file %d, uneven %d\n",
                            (int)seed, (int)k, s.kind, n, V, s.zero, s.shards, s.early, s.recompute,
                            (int)micro, ls_dtype_name(s.compute), ls_dtype_name(s.reduce),
                            s.sequential, s.chaos, s.own, s.algorithm ? s.algorithm : "",
                            s.dir != NULL, s.uneven != 0);
            assert_memory_equal(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float));
            assert_memory_equal(s.losses, oracle.losses, sizeof s.losses);
            assert_memory_equal(s.norms, oracle.norms, sizeof s.norms);
            tear_down(&s);
        }
        tear_down(&oracle);
    }
}

/* Random orders that the lanes allow, with random settings. */
static void test_chaos(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (uint64_t)ncases(FEW_CHAOS, CHAOS); seed++) {
        uint32_t r[4];
        ls_random_words(seed, LS_STREAM_FAKE, 0, 0, r);
        int n = 1 + (int)(r[0] % 4), zero = (int)(r[1] % 4), micro = 1 + (int)(r[2] % 2);
        setup oracle = {.sequential = true, .threads = 1, .zero = 1};
        setup s = {.sequential = true, .threads = 1, .chaos = true, .seed = seed};
        s.own = zero == 0 || r[3] % 2;
        s.zero = zero;
        s.recompute = (int)(r[2] / 2 % 4);
        s.kind = oracle.kind = (int)(seed % NKINDS);
        s.compress = oracle.compress = random_codes(seed, LS_F32);
        s.compress.codes = true;
        set_up(&oracle, n, 4, micro);
        set_up(&s, n, 4, micro);
        run(&oracle);
        run(&s);
        if (memcmp(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float)) != 0)
            print_error("seed %d: %d workers, zero %d, recompute %d, own %d\n", (int)seed, n, zero,
                        s.recompute, s.own);
        assert_memory_equal(s.params, oracle.params, 3 * s.model.nfloats * sizeof(float));
        assert_memory_equal(s.losses, oracle.losses, sizeof s.losses);
        tear_down(&oracle);
        tear_down(&s);
    }
}

/* The sum over virtual workers is the gradient of the mean loss over the batch: the same, but for
 * rounding, as with one virtual worker, whose gradients the tests of the model check. */
static void test_one_sum(void **state) {
    (void)state;
    setup one = {.threads = 1}, many = {.threads = 1};
    set_up(&one, 1, 1, 8);
    set_up(&many, 3, 8, 1);
    run(&one);
    run(&many);
    for (int i = 0; i < STEPS; i++) { /* with the uneven last batch of the epoch */
        assert_true(fabs(one.losses[i] - many.losses[i]) < 1e-4 * one.losses[i]);
        assert_true(fabs(one.norms[i] - many.norms[i]) < 1e-3 * one.norms[i]);
    }
    assert_true(fabs(one.losses[0] - log(VOCAB)) < 0.1); /* untrained */
    assert_true(fabs(one.losses[0] - many.losses[0]) < 1e-6);
    tear_down(&one);
    tear_down(&many);
}

/* ---- the gradient of a graph ---- */

/* The loss of the batch, by a forward alone. */
static double loss_of(const setup *s, const ls_compute *c, const float *params) {
    ls_infer f = {.model = &s->model, .compute = c, .dtype = LS_F32, .params = params, .n = 2};
    double losses[BATCH], sum = 0;
    ls_loader_config loader = samples_of(s);
    size_t nbytes = s->model.sample_nbytes;
    char *samples = ls_alloc(BATCH * nbytes);
    f.memory = ls_alloc(ls_infer_nbytes(f.model, LS_F32, f.n));
    for (uint64_t i = 0; i < BATCH; i++) {
        ls_draw d = {.seed = 5, .sample = ls_order_at(&loader.order, 0, i)};
        ls_status read = loader.read(loader.data, &d, nbytes, samples + i * nbytes, NULL);
        assert_int_equal(read, LS_OK);
    }
    ls_infer_losses(&f, BATCH, samples, losses);
    for (int i = 0; i < BATCH; i++) sum += losses[i];
    free(f.memory);
    free(samples);
    return sum / (BATCH * (double)s->model.targets);
}

/* A step of SGD subtracts the gradient, which is compared with central differences of a forward. */
static ls_status gradient_main(ls_group *g, void *arg, ls_error *e) {
    setup *s = arg;
    ls_world w;
    ls_board_slot slot = {0};
    ls_exec *x = NULL;
    ls_step_out out = {0};
    ls_step_in in = {.lr = 1, .loss_scale = 1};
    float *grads = LS_NEW_ARRAY(float, s->model.nfloats);
    LS_TRY(ls_world_open(&w, &s->plan, g, NULL, NULL, e));
    ls_exec_config c = config_of(s, &w, &slot, 0);
    LS_TRY(ls_exec_create(&c, &x, e));
    draw(s, &w, 0, x);
    memcpy(s->params, w.flat.of[0], s->model.nfloats * sizeof(float));
    LS_TRY(ls_exec_step(x, &in, &out, e));
    for (size_t i = 0; i < s->model.nfloats; i++) grads[i] = s->params[i] - w.flat.of[0][i];
    assert_true(fabs(out.loss - loss_of(s, ls_exec_compute(x), s->params)) < 1e-6);
    for (int p = 0; p < s->model.nparams; p++) {
        size_t i = s->model.params[p].offset + s->model.params[p].count / 2;
        float was = s->params[i];
        s->params[i] = was + 0.01f;
        double more = loss_of(s, ls_exec_compute(x), s->params);
        s->params[i] = was - 0.01f;
        double slope = (more - loss_of(s, ls_exec_compute(x), s->params)) / 0.02;
        s->params[i] = was;
        if (fabs(slope - (double)grads[i]) > 2e-5 + 2e-2 * fabs(slope))
            print_error("%s: gradient %g, slope %g\n", s->model.params[p].name, (double)grads[i],
                        slope);
        assert_true(fabs(slope - (double)grads[i]) <= 2e-5 + 2e-2 * fabs(slope));
    }
    free(grads);
    ls_exec_free(x);
    ls_world_close(&w, &s->plan);
    return LS_OK;
}

static void test_graph_gradient(void **state) {
    (void)state;
    for (int kind = GRAPH; kind <= MLP; kind++) {
        setup s = {.threads = 1, .kind = kind};
        set_up(&s, 1, 1, 3);
        s.plan.c.optim = (ls_optim){.ngroups = 1, .groups = {{.rule = LS_RULE_SGD, .lr_scale = 1}}};
        run_threads(1, NULL, gradient_main, &s, NULL);
        tear_down(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_experts),   cmocka_unit_test(test_experts_whole),
        cmocka_unit_test(test_context),   cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_pipelines), cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_messages),  cmocka_unit_test(test_sharding),
        cmocka_unit_test(test_chaos),     cmocka_unit_test(test_graph_gradient),
        cmocka_unit_test(test_one_sum),   cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
