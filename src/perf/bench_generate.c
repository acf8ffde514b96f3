/* bench_generate.c - see bench_generate.h.
 *
 * Weights are random, or those of a published model as its files have them; threads, decoding and
 * sampling are those of `lockstep generate`. After every few tokens the same threads read memory
 * once, which measures its speed under the same conditions. Several tokens are measured in a row,
 * since a small model's weights stay in caches, as in normal use. A figure is the median over all
 * tokens or all readings. Of a device times alone are measured.
 */
#include "perf/bench_generate.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/median.h"
#include "base/random.h"
#include "config/config.h"
#include "config/relations.h"
#include "infer/decode.h"
#include "infer/generate.h"
#include "infer/placed.h"
#include "infer/published.h"
#include "infer/sampler.h"
#include "model/stored_table.h"
#include "model/types.h"
#include "networks/network.h"
#include "tensor/dtype.h"

enum { TURN = 4, PROMPTS = 3 };              /* tokens between two readings; prompts */
static const size_t read_nbytes = 256 << 20; /* more than caches hold */

typedef struct bench {
    const ls_bench_generate_request *o;
    ls_config config;
    ls_model model;
    ls_compute compute;
    ls_dtype type;
    ls_decode decode;
    ls_sampler sampler;
    void *params, *read;
    size_t params_nbytes;
    ls_infer infer;
    ls_placed placed; /* of random weights */
    uint32_t *text;
    int64_t context, nprompt;
    ls_trained trained; /* a published model; path NULL: random weights */
} bench;

/* ---- setup ---- */

static ls_status random_weights(bench *b, ls_error *e) {
    size_t n = b->model.nfloats;
    void *wide = NULL;
    LS_TRY(ls_map(n * sizeof(float), "weights", &wide, e));
    ls_model_init(&b->model, 1, 0, n, wide);
    b->params = wide;
    b->params_nbytes = n * sizeof(float);
    if (!ls_dtype_is_half(b->type)) return LS_OK;
    return ls_table_round(&b->compute, b->type, n, &b->params, &b->params_nbytes, e);
}

/* A published model with its own weights. */
static ls_status open_published(bench *b, ls_error *e) {
    ls_trained_options o = {
        .sets = b->o->set, .nsets = b->o->nset, .writes = true, .device = b->o->device};
    LS_TRY(ls_trained_open(b->o->config, &o, &b->trained, e));
    b->config = b->trained.config;
    b->model = b->trained.model;
    b->compute = b->trained.compute;
    b->infer = b->trained.infer;
    return LS_OK;
}

static ls_status open_random(bench *b, ls_error *e) {
    LS_TRY(ls_config_load(b->o->config, b->o->set, b->o->nset, &b->config, e));
    if (!ls_config_has_tokens(&b->config))
        return ls_fail(e, LS_EINVAL, "%s: bench generate needs model.kind gpt2 or llama",
                       b->o->config);
    LS_TRY(ls_network_create(&b->config, &b->model, e));
    b->type = ls_config_compute(&b->config);
    LS_TRY(ls_compute_init(&b->compute, ls_cores(), ls_model_scratch_floats(&b->model), e));
    LS_TRY(random_weights(b, e));
    b->infer = (ls_infer){
        .model = &b->model, .compute = &b->compute, .dtype = b->type, .params = b->params};
    if (!b->o->device) return LS_OK;
    LS_TRY(ls_placed_open(&b->placed, b->o->device, &b->infer, e));
    return ls_infer_open_memory(&b->infer, 1, "activations", e);
}

/* The memory whose reading is measured. */
static ls_status open_read(bench *b, ls_error *e) {
    LS_TRY(ls_map(read_nbytes, "measuring", &b->read, e));
    float *x = b->read;
    for (size_t i = 0; i < read_nbytes / sizeof *x; i++) x[i] = 1.0f;
    return LS_OK;
}

static ls_status open_bench(bench *b, ls_error *e) {
    LS_TRY(ls_published_is(b->o->config) ? open_published(b, e) : open_random(b, e));
    b->type = ls_config_compute(&b->config);
    b->context = b->config.model.context;
    b->nprompt = b->o->nprompt < b->context ? b->o->nprompt : b->context;
    LS_TRY(ls_decode_open(&b->infer, &b->decode, e));
    if (!b->o->device) LS_TRY(open_read(b, e));
    b->sampler = ls_sampler_create((size_t)b->config.model.vocab, b->compute.k);
    b->text = LS_NEW_ARRAY(uint32_t, (size_t)(b->nprompt + b->o->ntokens + 1));
    return LS_OK;
}

static void close_bench(bench *b) {
    free(b->text);
    ls_sampler_free(&b->sampler);
    ls_unmap(b->read, read_nbytes);
    if (b->decode.memory) ls_decode_close(&b->decode);
    if (b->trained.path) {
        ls_trained_close(&b->trained);
        return;
    }
    if (b->placed.compute.device) ls_infer_close_memory(&b->infer);
    ls_placed_close(&b->placed);
    ls_unmap(b->params, b->params_nbytes);
    if (b->compute.pool) ls_compute_close(&b->compute);
    ls_model_free(&b->model);
}

/* ---- measuring ---- */

static double seconds(int64_t begin_ns) { return (double)(ls_clock_ns() - begin_ns) / 1e9; }

static void read_run(void *arg, int thread, int nthreads) {
    const bench *b = arg;
    const float *x = b->read;
    int64_t first = 0, end = 0;
    ls_pool_share((int64_t)(read_nbytes / sizeof *x), 1024, thread, nthreads, &first, &end);
    volatile float sum = b->compute.k->sum_squares(end - first, x + first);
    (void)sum;
}

static double read_memory(bench *b) {
    int64_t begin = ls_clock_ns();
    ls_pool_run(b->compute.pool, read_run, b);
    return (double)read_nbytes / seconds(begin);
}

/* Generates the next token of a text [n]. Returns its time in seconds, and *decode_p, that of
 * decoding alone. */
static double next_token(bench *b, int64_t n, double *decode_p) {
    int64_t begin = ls_clock_ns();
    const float *logits = ls_decode_text(&b->decode, b->text, n);
    *decode_p = seconds(begin);
    double u = ls_random_uniform(1, LS_STREAM_SAMPLE, 0, (uint64_t)n);
    b->text[n] = ls_sampler_draw(&b->sampler, logits, &(ls_sampler_rule){.temperature = 1},
                                 (ls_sampler_seen){NULL, 0}, u);
    return seconds(begin);
}

/* The median of some: the first is also the first use of all memory. */
static double measure_prompt(bench *b, int64_t n) {
    double times[PROMPTS], decoding;
    for (int i = 0; i < PROMPTS; i++) {
        b->decode.npositions = b->decode.ntext = 0;
        times[i] = next_token(b, n, &decoding);
    }
    return ls_median(times, PROMPTS);
}

static void measure(bench *b, ls_bench_generate *f) {
    int64_t N = b->o->ntokens, prompt = b->nprompt;
    double *times = LS_NEW_ARRAY(double, 3 * (size_t)N), *decodes = times + N;
    double *reads = decodes + N;
    int64_t nreads = 0;
    for (int64_t i = 0; i < prompt; i++) b->text[i] = (uint32_t)i % (uint32_t)b->config.model.vocab;
    f->prompt_s = measure_prompt(b, prompt);
    for (int64_t i = 0; i < N; i++) {
        if (i % TURN == 0 && !b->o->device) reads[nreads++] = read_memory(b);
        if (!b->o->device) f->cache_nbytes += (double)ls_decode_cache_read(&b->decode) / (double)N;
        times[i] = next_token(b, prompt + 1 + i, decodes + i);
    }
    if (!b->o->device) f->weights_nbytes = (double)ls_decode_weights_read(&b->decode);
    f->token_s = ls_median(times, (size_t)N);
    f->decode_s = ls_median(decodes, (size_t)N);
    if (nreads) f->read_per_s = ls_median(reads, (size_t)nreads);
    free(times);
}

ls_status ls_bench_generate_run(const ls_bench_generate_request *o, ls_bench_generate *f_p,
                                ls_error *e) {
    bench b = {.o = o};
    *f_p = (ls_bench_generate){0};
    ls_status s = open_bench(&b, e);
    if (s == LS_OK) {
        measure(&b, f_p);
        s = ls_infer_check(&b.infer, e);
    }
    if (s == LS_OK) {
        if (o->device)
            snprintf(f_p->device, sizeof f_p->device, "%s", b.infer.compute->device->name);
        f_p->parameters = b.model.count;
        f_p->type = b.type;
        f_p->nthreads = b.compute.nthreads;
        f_p->nprompt = b.nprompt;
        ls_buf types = {0};
        if (b.trained.published.values) ls_weights_put_types(&b.trained.published.files, &types);
        snprintf(f_p->stored, sizeof f_p->stored, "%.*s", (int)types.len,
                 types.len ? types.data : "");
        ls_buf_free(&types);
    }
    close_bench(&b);
    return s;
}
