/* divided_test.c - workers that divide a model: pipelines of models of any shape, slices of layers,
 * and chunks of samples, in random meshes, by any executor, against one worker, bit for bit.
 *
 * The models of a config are in train/mesh_test.c. Workers are threads here, so that the thread
 * sanitizer sees them. */
/* ctest: seconds=10 */
/* ctest: long-tsan: what it runs in make check has one thread; exec_test has more */
#include <math.h>

#include "exec/setup.h"
#include "plan/pick.h"

#if defined(__SANITIZE_THREAD__) /* many times slower */
enum { SEEDS = 3, FEW_SEEDS = 1 };
#elif defined(__SANITIZE_ADDRESS__)
enum { SEEDS = 8, FEW_SEEDS = 2 };
#else
enum { SEEDS = 40, FEW_SEEDS = 3 };
#endif

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

/* Optimizers: most often the usual one; those of whole parameters. */
static const ls_update_rule rules[] = {LS_RULE_ADAMW, LS_RULE_ADAMW, LS_RULE_ADAMW,
                                       LS_RULE_LAMB,  LS_RULE_MUON,  LS_RULE_SOAP};

/* A kind of model, and the largest mesh that it is tried in. each: samples that it computes
 * together. */
typedef struct family {
    int kind, tensor, context, pipe, each;
    bool chunks; /* workers may have two stages */
} family;

static const family families[] = {{GRAPH, 1, 1, 2, 1, false},
                                  {MLP, 1, 1, 2, 1, false},
                                  {LISTS, 1, 1, 2, 1, false},
                                  {NORMS, 1, 1, 4, 1, true},
                                  {SLICED, SLICES, 1, 3, 1, true},
                                  {OWN, 2, CHUNKS, 2, 1, true},
                                  {MIXED, 1, CHUNKS, 2, 1, false},
                                  {JOINT, 1, TOGETHER, 2, TOGETHER, false},
                                  {JOINT_CHUNKS, 1, CHUNKS *TOGETHER, 2, TOGETHER, false},
                                  {MIXED_SLICES, 2, CHUNKS, 2, 1, false},
                                  {ALL_PARTS, 2, CHUNKS *TOGETHER, 2, TOGETHER, false}};

static int least(int a, int b) { return a < b ? a : b; }

/* Random degrees of at most MOST workers. Returns how many there are. */
static int draw_mesh(const family *f, uint64_t seed, int V, setup *s) {
    static const ls_pipe_kind kinds[] = {LS_PIPE_1F1B, LS_PIPE_GPIPE, LS_PIPE_ZB_H1};
    s->tensor = 1 + pick(seed, 10, f->tensor);
    s->context = 1 + pick(seed, 11, least(f->context, MOST / s->tensor));
    s->pipe = 1 + pick(seed, 12, least(f->pipe, MOST / s->tensor / s->context));
    int ranks = s->tensor * s->context * s->pipe;
    int data = 1 + pick(seed, 13, least(V, MOST / ranks));
    bool chunked = f->chunks && s->pipe == 2 && pick(seed, 14, 2);
    s->chunks = chunked ? 2 : 1;
    s->schedule =
        chunked ? pick(seed, 15, 2) ? LS_PIPE_INTERLEAVED : LS_PIPE_ZB_V : kinds[pick(seed, 16, 3)];
    s->zero = pick(seed, 17, V % data ? 3 : 4);
    return ranks * data;
}

/* Random settings that do not change the bits. */
static void draw_settings(uint64_t seed, setup *s) {
    s->whole_nbytes = (size_t)pick(seed, 20, 2) * 5000;
    s->recompute = pick(seed, 21, 4) * (s->kind >= SLICED ? 4 : 1);
    s->prefetch = pick(seed, 22, 3);
    s->bucket_nbytes = (size_t)(4096 << pick(seed, 23, 5));
    s->sequential = pick(seed, 24, 2);
    s->chaos = pick(seed, 25, 2);
    s->own = s->zero == 0 || pick(seed, 26, 2);
    s->algorithm = pick(seed, 27, 2) ? NULL : "direct";
}

/* Returns the number of steps in which the noise of gradients was measured, too. */
static int try_mesh(const family *f, uint64_t seed) {
    static const ls_dtype types[] = {LS_F32, LS_F32, LS_BF16, LS_F16};
    int V = 1 << pick(seed, 0, 4 - (f->each > 1)), measured = 0;
    setup oracle = {.sequential = true, .threads = 1, .zero = 1, .kind = f->kind};
    oracle.compute = types[pick(seed, 1, 4)];
    oracle.reduce = pick(seed, 2, 2) ? oracle.compute : types[pick(seed, 3, 4)];
    oracle.rule = rules[pick(seed, 4, 6)];
    oracle.noise = f->context == 1 && V > 1 && oracle.compute != LS_F16 && oracle.reduce != LS_F16;
    setup s = {.threads = 1, .seed = seed, .compute = oracle.compute, .reduce = oracle.reduce};
    s.kind = f->kind;
    s.rule = oracle.rule;
    s.noise = oracle.noise;
    int n = draw_mesh(f, seed, V, &s);
    draw_settings(seed, &s);
    if (f->context > 1 && s.context * s.pipe * s.tensor == 1 && n < V && !s.sequential)
        s.uneven = seed + 1;
    set_up(&oracle, 1, V, f->each);
    set_up(&s, n, V, f->each * (1 + pick(seed, 5, BATCH / V / f->each)));
    run(&oracle);
    run(&s);
    assert_same(&s, &oracle, (int)seed);
    if (s.noise) measured = same_noise(&s, &oracle);
    tear_down(&oracle);
    tear_down(&s);
    return measured;
}

static void test_meshes(void **state) {
    (void)state;
    enum { N = sizeof families / sizeof *families };
    int measured = 0;
    for (int i = 0; i < ncases(FEW_SEEDS, SEEDS) * N; i++)
        measured += try_mesh(&families[i % N], (uint64_t)i);
    assert_true(measured > 0);
}

/* What experts among chunks, or among samples, compute is what a model computes that is not cut,
 * but for rounding. */
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

int main(void) {
    const struct CMUnitTest tests[] = {plain_unit_test(test_meshes),
                                       cmocka_unit_test(test_experts_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
