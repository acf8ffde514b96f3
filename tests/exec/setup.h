/* setup.h - a small model and its plan, which workers train by any executor; what they get is
 * compared between setups, bit for bit. */
#ifndef LS_TEST_EXEC_SETUP_H
#define LS_TEST_EXEC_SETUP_H

#include "base/random.h"
#include "chunked_model.h"
#include "coll/team.h"
#include "data/tokens.h"
#include "exec/chaos.h"
#include "exec/exec.h"
#include "exec/spans.h"
#include "graph_model.h"
#include "lists_model.h"
#include "mlp_model.h"
#include "share/codes.h"
#include "share/mesh.h"
#include "sliced_model.h"

enum { T = 6, VOCAB = 40, NSAMPLES = 13, BATCH = 8, STEPS = 5, TRACED = 2, MOST = 8 };

/* Kinds of models. MIXED and those behind it have experts: mixed_kinds. */
enum {
    CHAIN,
    GRAPH,
    MLP,
    LISTS,
    NORMS,
    NKINDS,
    SLICED = NKINDS,
    OWN,
    MIXED,
    JOINT,
    JOINT_CHUNKS,
    MIXED_SLICES,
    ALL_PARTS,
    MIXED_END
};

static const mixed_parts mixed_kinds[] = {
    [MIXED] = {.chunks = CHUNKS, .samples = 1, .slices = 1},
    [JOINT] = {.chunks = 1, .samples = TOGETHER, .slices = 1},
    [JOINT_CHUNKS] = {.chunks = CHUNKS, .samples = TOGETHER, .slices = 1},
    [MIXED_SLICES] = {.chunks = CHUNKS, .samples = 1, .slices = 2, .sequence = true},
    [ALL_PARTS] = {.chunks = CHUNKS, .samples = TOGETHER, .slices = 2}};

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
    ls_share_compress compress;
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
static inline void share_out(setup *s, int n, int V) {
    s->first[n] = V;
    for (int w = n - 1; w >= 0; w--) {
        uint32_t r[4];
        ls_random_words(s->uneven, LS_STREAM_FAKE, 2, (uint64_t)w, r);
        int most = s->first[w + 1] - w; /* leaves one for each worker before */
        s->first[w] = w ? s->first[w + 1] - 1 - (int)(r[0] % (uint32_t)most) : 0;
    }
}

static inline void set_up(setup *s, int n, int V, int64_t micro) {
    ls_error e = {0};
    ls_gpt_config c = {.layers = 2, .width = 24, .heads = 3, .context = T, .vocab = VOCAB};
    if (s->kind == GRAPH) graph_make(&c, &s->model);
    if (s->kind == MLP) mlp_make(&s->model);
    if (s->kind == LISTS) lists_make(&s->model);
    if (s->kind == NORMS) norms_make(&s->model);
    if (s->kind == SLICED) sliced_make(T, VOCAB, &s->model);
    if (s->kind == OWN) own_make(T, VOCAB, &s->model);
    if (s->kind >= MIXED) mixed_make(T, VOCAB, mixed_kinds[s->kind], !s->whole, &s->model);
    if (s->kind == CHAIN) assert_ls_ok(ls_gpt_create(&c, &s->model, &e), e);
    ls_share_config p = {.model = &s->model,
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
                         .reduce = s->reduce && s->kind != NORMS ? s->reduce : LS_F32,
                         .first = s->uneven ? s->first : NULL,
                         .pipe = s->pipe,
                         .tensor = s->tensor,
                         .context = s->context,
                         .chunks = s->chunks,
                         .schedule = s->schedule,
                         .compress = s->compress,
                         .noise = s->noise};
    int64_t unit = ls_model_unit_samples(&s->model, p.compute);
    p.micro_batch = (micro + unit - 1) / unit * unit;
    if (s->kind == NORMS || p.micro_batch > BATCH / V) p.micro_batch = BATCH / V; /* batch norms */
    if (s->compress.how.kind == LS_COMPRESS_POWERSGD) ls_share_place_matrices(&s->model);
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

static inline void tear_down(setup *s) {
    free(s->params);
    ls_plan_free(&s->plan);
    ls_model_free(&s->model);
}

static inline ls_loader_config samples_of(const setup *s) {
    ls_read_sample *read = s->kind == MLP || s->kind == NORMS ? mlp_read
                           : s->kind == LISTS                 ? lists_read
                                                              : ls_tokens_window;
    return (ls_loader_config){.read = read,
                              .data = s->kind == LISTS ? (const void *)&s->model : &s->text,
                              .sample_nbytes = s->model.sample_nbytes,
                              .order = {.n = NSAMPLES, .seed = 5},
                              .batch = BATCH,
                              .V = s->plan.share.V,
                              .step = 1};
}

static inline ls_exec_config config_of(const setup *s, const ls_world *w, ls_board_slot *slot,
                                       int worker) {
    ls_exec_config c = {.plan = &s->plan,
                        .world = w,
                        .slot = slot,
                        .worker = worker,
                        .threads = s->threads,
                        .busy = 64,
                        .overlap = s->overlap,
                        .loader = samples_of(s)};
    c.loader.step = s->plan.share.vw_step;
    c.loader.a = ls_share_vw(&s->plan.share, worker, 0);
    c.loader.b = ls_share_vw(&s->plan.share, worker, s->plan.share.workers[worker].nvws - 1) + 1;
    return c;
}

static inline ls_step_in step_in(int64_t i) {
    return (ls_step_in){
        .step = i, .updates = i, .lr = 1e-2, .clip = 0.5, .loss_scale = 8, .skips = true};
}

/* Each worker writes its shards of a shared copy, and all of its own copy. */
static inline void draw(const setup *s, const ls_world *w, int worker, const ls_exec *x) {
    for (int k = 0; k < s->plan.share.nbuckets; k++) {
        ls_range own = ls_share_shard(&s->plan.share, k, worker);
        ls_range all = ls_share_range(&s->plan.share, k);
        bool shared = w->shares_state || (w->shares_params && w->flat.of[0] == w->params);
        if (shared) all = own;
        if (!ls_share_has(&s->plan.share, k, worker)) all.end = all.first;
        ls_model_init(&s->model, 7, all.first, all.end, w->flat.of[0]);
        if (!w->shares_params) own = all;
        ls_world_round(w, &s->plan.share, ls_exec_compute(x), own.first, own.end);
    }
}

static inline void keep(setup *s, const ls_world *w) {
    size_t nbytes = s->model.nfloats * sizeof(float);
    memcpy(s->params, w->flat.of[0], nbytes);
    memcpy(s->m, w->flat.of[1], nbytes);
    memcpy(s->v, w->flat.of[2], nbytes);
}

/* The part that worker w owns, if each worker has its own copy. */
static inline void take_shards(setup *s, const ls_world *w, int worker) {
    const float *const from[] = {w->flat.of[0], w->flat.of[1], w->flat.of[2]};
    float *const to[] = {s->params, s->m, s->v};
    for (int k = 0; k < s->plan.share.nbuckets; k++) {
        ls_range b = ls_share_shard(&s->plan.share, k, worker);
        for (int i = 0; i < 3; i++)
            memcpy(to[i] + b.first, from[i] + b.first, (b.end - b.first) * sizeof(float));
    }
}

/* A step in which all actions are traced. */
static inline void begin_trace(const setup *s, ls_exec *x, int worker, ls_trace *t) {
    ls_trace_open(t, &s->plan, worker, 1);
    ls_trace_begin_step(t);
    ls_exec_trace(x, t);
}

static inline void end_trace(const setup *s, ls_exec *x, ls_trace *t) {
    int n = ls_trace_nspans(t);
    ls_span *spans = LS_NEW_ARRAY(ls_span, (size_t)n);
    ls_exec_trace(x, NULL);
    ls_trace_spans(t, 0, spans);
    assert_spans(&s->plan, t->worker, spans, n);
    free(spans);
    ls_trace_free(t);
}

static inline ls_status run_steps(setup *s, ls_world *w, ls_exec *x, ls_error *e) {
    int worker = ls_group_rank(w->group);
    draw(s, w, worker, x);
    if (!w->shares_params) ls_world_drop_params(w, &s->plan.share);
    LS_TRY(ls_barrier(w->group, e));
    LS_TRY(ls_world_spread(w, &s->plan.share, e));
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
    LS_TRY(ls_world_collect(w, &s->plan.share, e));
    if (worker == 0) keep(s, w);
    return ls_barrier(w->group, e);
}

static inline ls_status worker_main(ls_group *g, void *arg, ls_error *e) {
    setup *s = arg;
    ls_world w;
    ls_board_slot slot = {0};
    ls_exec *x = NULL;
    LS_TRY(ls_world_open(&w, &s->plan.share, g, NULL, s->dir, e));
    ls_exec_config c = config_of(s, &w, &slot, ls_group_rank(g));
    LS_TRY(ls_exec_create(&c, &x, e));
    ls_status status = run_steps(s, &w, x, e);
    ls_exec_free(x);
    ls_world_close(&w, &s->plan.share);
    return status;
}

/* As ls_world_spread(), for all workers in one thread. */
static inline void spread(const setup *s, const ls_world *worlds) {
    const ls_plan *p = &s->plan;
    for (int k = 0; p->share.divides && k < p->share.nbuckets; k++)
        for (int w = 0; w < p->share.nworkers; w++) {
            const ls_bucket *b = &p->share.buckets[k];
            size_t size = ls_dtype_size(p->share.compute);
            int rank = ls_share_receiver(&p->share, k, p->share.workers[w].cell);
            int owner = ls_share_worker(&p->share, rank, p->share.workers[w].place);
            if (owner != w)
                memcpy((char *)worlds[w].params + b->first * size,
                       (char *)worlds[owner].params + b->first * size, (b->end - b->first) * size);
        }
}

static inline void run_sequential(setup *s) {
    int n = s->plan.share.nworkers;
    ls_error e = {0};
    ls_exec *execs[MOST];
    ls_group *groups[MOST];
    ls_world worlds[MOST];
    ls_board_slot slot = {0};
    assert_ls_ok(ls_group_open_threads(n, NULL, groups, &e), e);
    assert_ls_ok(ls_world_open_all(worlds, &s->plan.share, groups, !s->own, &e), e);
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
            assert_ls_ok(step_chaos(execs, s->seed, &in, &out, &e), e);
        else
            assert_ls_ok(ls_exec_step_all(execs, &in, &out, &e), e);
        for (int w = 0; i == TRACED && w < n; w++) end_trace(s, execs[w], &traces[w]);
        s->losses[i] = out.loss;
        s->norms[i] = out.grad_norm;
        s->noises[i] = out.noise;
    }
    keep(s, &worlds[0]);
    int owners = s->plan.share.divides ? n : s->plan.share.nshards;
    for (int w = 1; s->own && w < owners; w++) take_shards(s, &worlds[w], w);
    for (int w = 0; w < n; w++) {
        ls_exec_free(execs[w]);
        ls_world_close(&worlds[w], &s->plan.share);
        ls_group_close(groups[w]);
    }
}

static inline void run(setup *s) {
    ls_group_options o = {.timeout_s = 60, .algorithm = s->algorithm};
    if (s->sequential)
        run_sequential(s);
    else
        run_threads(s->plan.share.nworkers, &o, worker_main, s, NULL);
}

/* The bits of both are the same; if not, the settings are printed. */
static inline void assert_same(const setup *s, const setup *oracle, int seed) {
    const ls_share *c = &s->plan.share;
    if (memcmp(s->params, oracle->params, 3 * s->model.nfloats * sizeof(float)) != 0)
        print_error(
            "seed %d: model %d, %d workers of %d, tensor %d, context %d, pipe %d, chunks %d, "
            "schedule %d, zero %d, shards %d, early %d, recompute %d, micro %d, %s and %s, "
            "sequential %d, chaos %d, own %d, %s, in a file %d, uneven %d\n",
            seed, s->kind, c->nworkers, c->V, s->tensor, s->context, s->pipe, s->chunks,
            (int)s->schedule, s->zero, s->shards, s->early, s->recompute, (int)c->micro_batch,
            ls_dtype_name(c->compute), ls_dtype_name(c->reduce), s->sequential, s->chaos, s->own,
            s->algorithm ? s->algorithm : "shared", s->dir != NULL, s->uneven != 0);
    assert_memory_equal(s->losses, oracle->losses, sizeof s->losses);
    assert_memory_equal(s->norms, oracle->norms, sizeof s->norms);
    assert_memory_equal(s->params, oracle->params, 3 * s->model.nfloats * sizeof(float));
}

#endif
