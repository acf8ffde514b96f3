/* chunks_test.c - which workers have the parameters of layers of one chunk alone, and of all. */
#include "chunked_model.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "share/config.h"

enum { ROWS = 96, WORDS = 40, V = 4 };

static ls_share_config config_of(const ls_model *m, int n, int pipe, int context, int zero) {
    return (ls_share_config){.model = m,
                             .nworkers = n,
                             .V = V,
                             .batch = V,
                             .micro_batch = 1,
                             .tree = true,
                             .bucket_nbytes = 20000,
                             .zero = zero,
                             .compute = LS_F32,
                             .reduce = LS_F32,
                             .pipe = pipe,
                             .context = context};
}

static ls_plan make(const ls_model *m, int n, int pipe, int context, int zero) {
    ls_share_config c = config_of(m, n, pipe, context, zero);
    ls_plan p;
    ls_error e = {0};
    assert_ls_ok(ls_plan_make(&c, &p, &e), e);
    return p;
}

/* The chunk whose layers alone have the parameter, from its name; -1: all of them do. */
static int chunk_of(const ls_param *q) {
    if (strstr(q->name, "first.wide") || strstr(q->name, "first.narrow")) return 0;
    if (strstr(q->name, "last.wide") || strstr(q->name, "last.narrow")) return CHUNKS - 1;
    return -1;
}

/* Does the worker have the parameter's bucket, and only if it has its chunk? */
static void check_param(const ls_plan *p, const ls_param *q) {
    int chunk = chunk_of(q);
    assert_int_equal(q->cut.chunk, chunk);
    for (int k = 0; k < p->share.nbuckets; k++) {
        const ls_bucket *b = &p->share.buckets[k];
        if (q->offset >= b->end || q->offset + q->count <= b->first) continue;
        assert_int_equal(b->chunk, chunk);
        for (int w = 0; w < p->share.nworkers; w++) {
            int first = p->share.workers[w].first_chunk, end = p->share.workers[w].end_chunk;
            bool mine = chunk < 0 || (chunk >= first && chunk < end);
            int stage = p->share.workers[w].cell / p->share.config->context,
                own = b->cell / p->share.config->context;
            assert_int_equal(ls_share_has(&p->share, k, w), mine && stage == own);
        }
    }
}

/* Shards of those who have a bucket, all together, are the bucket. */
static void check_shards(const ls_plan *p) {
    for (int k = 0; k < p->share.nbuckets; k++) {
        size_t sum = 0;
        for (int w = 0; w < p->share.nworkers; w++) {
            ls_range s = ls_share_shard(&p->share, k, w);
            assert_true(s.first == s.end || ls_share_has(&p->share, k, w));
            sum += s.end - s.first;
        }
        assert_int_equal(sum, p->share.buckets[k].end - p->share.buckets[k].first);
    }
}

static void check(const ls_model *m, int n, int pipe, int context, int zero) {
    ls_plan p = make(m, n, pipe, context, zero);
    int apart = 0;
    for (int i = 0; i < m->nparams; i++) check_param(&p, &m->params[i]);
    check_shards(&p);
    for (int i = 0; i < p.nactions; i++) { /* sums are those of the workers who have the bucket */
        const ls_action *a = &p.actions[i];
        bool sums = a->kind == LS_REDUCE_SCATTER || a->kind == LS_ALL_REDUCE;
        if (!sums || p.share.buckets[a->bucket].chunk < 0) continue;
        apart++;
        assert_int_equal(ls_worker_set_count(ls_action_concerned(a)), n / pipe / context);
    }
    assert_true(apart > 0);
    ls_plan_free(&p);
}

static void test_owners(void **state) {
    (void)state;
    ls_model m;
    own_make(ROWS, WORDS, &m);
    for (int zero = 0; zero <= 3; zero++) {
        check(&m, 3, 1, 3, zero);
        check(&m, 6, 1, 3, zero);
        check(&m, 4, 1, 2, zero);
        check(&m, 6, 2, 3, zero);
        check(&m, 8, 2, 2, zero);
    }
    ls_model_free(&m);
}

/* A worker has no memory for parameters, gradients and states of others' chunks, also if nothing is
 * sharded. Its gradients of a chunk's own parameters are the sums of that chunk alone. */
static void test_memory(void **state) {
    (void)state;
    const ls_memory_config how = {.threads = 1};
    size_t shared = 0, own[2] = {0};
    ls_model m;
    ls_memory one, three;
    own_make(ROWS, WORDS, &m);
    ls_plan p = make(&m, 1, 1, 1, 0), q = make(&m, 3, 1, 3, 0);
    for (int k = 0; k < p.share.nbuckets; k++) {
        size_t n = (p.share.buckets[k].end - p.share.buckets[k].first) * sizeof(float);
        *(p.share.buckets[k].chunk < 0 ? &shared : &own[p.share.buckets[k].chunk > 0]) += n;
    }
    size_t most = own[0] > own[1] ? own[0] : own[1];
    size_t slots = (size_t)ls_tree_slots(V, 0, V);
    ls_plan_memory(&p, &how, &one);
    ls_plan_memory(&q, &how, &three);
    assert_int_equal(one.nbytes[LS_MEM_PARAMS], shared + own[0] + own[1]);
    assert_int_equal(three.nbytes[LS_MEM_PARAMS], shared + most);
    assert_int_equal(one.nbytes[LS_MEM_GRADS], slots * (CHUNKS * shared + own[0] + own[1]));
    assert_int_equal(three.nbytes[LS_MEM_GRADS], slots * (shared + most));
    assert_int_equal(three.nbytes[LS_MEM_OPTIMIZER], 2 * (shared + most));
    ls_plan_free(&p);
    ls_plan_free(&q);
    ls_model_free(&m);
}

/* Gradients in 16 bits are summed in f32 over micro-batches: a worker has memory for the sums of
 * its chunks' parameters alone. */
static void test_wide_sums(void **state) {
    (void)state;
    static const int shapes[][3] = {
        {1, 1, 1}, {3, 1, 3}, {2, 2, 1}, {6, 2, 3}}; /* n, pipe, context */
    const ls_memory_config how = {.threads = 1};
    ls_model m;
    ls_error e = {0};
    own_make(ROWS, WORDS, &m);
    for (int i = 0; i < 4; i++) {
        ls_share_config c = config_of(&m, shapes[i][0], shapes[i][1], shapes[i][2], 0);
        ls_plan p;
        ls_memory memory;
        c.batch = 2 * V; /* two micro-batches */
        c.compute = c.reduce = LS_BF16;
        assert_ls_ok(ls_plan_make(&c, &p, &e), e);
        size_t sums = 0, slots = (size_t)p.share.workers[0].nslots / (c.context > 1 ? 1 : CHUNKS);
        ls_plan_memory(&p, &how, &memory);
        for (int k = 0; k < p.share.nbuckets; k++) {
            const ls_bucket *b = &p.share.buckets[k];
            int all = b->chunk < 0 && c.context == 1 ? CHUNKS : 1;
            if (ls_share_has(&p.share, k, memory.worker)) sums += (size_t)all * (b->end - b->first);
        }
        assert_int_equal(memory.nbytes[LS_MEM_WIDE], sums * sizeof(float));
        assert_int_equal(memory.nbytes[LS_MEM_GRADS], slots * sums * 2);
        ls_plan_free(&p);
    }
    ls_model_free(&m);
}

/* The table of a pipeline whose workers divide chunks. */
static void test_print(void **state) {
    (void)state;
    ls_model m;
    ls_buf text = {0};
    own_make(ROWS, WORDS, &m);
    ls_plan p = make(&m, 4, 2, 2, 1);
    ls_plan_print_mesh(&p, &text);
    assert_non_null(strstr(text.data, "pipe 2, tensor 1, context 2 of 3 chunks"));
    assert_non_null(strstr(text.data, "  0                0  0 to 1 "));
    assert_non_null(strstr(text.data, "  3                1  2 "));
    ls_buf_free(&text);
    ls_plan_free(&p);
    ls_model_free(&m);
}

/* Layers of some chunks share a parameter, and those of another one do not have it. */
static void test_some_chunks(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_plan p;
    ls_value *tokens = ls_input(&m, "tokens", LS_I32, LS_DIMS(ROWS + 1));
    ls_value *all = ls_build_part(&m, tokens, 1, ROWS);
    for (int k = 0; k < CHUNKS; k++) {
        ls_value *words = ls_build_part(&m, tokens, 2 * k, 2);
        ls_linear_cross_entropy_options o = {.name = "head", .classes = WORDS};
        ls_build_chunk(&m, k, CHUNKS);
        ls_value *x = ls_embedding(&m, words, .name = "words", .rows = WORDS, .width = 8);
        if (k < 2) x = ls_linear(&m, x, .name = "some", .out = 8);
        ls_layers_chunk_cross_entropy(&m, x, ls_build_part(&m, tokens, 1 + 2 * k, 2), all, o);
    }
    assert_ls_ok(ls_build_finish(&m, &e), e);
    ls_share_config c = config_of(&m, 1, 1, 1, 0);
    assert_ls_fails(ls_plan_make(&c, &p, &e), LS_EINVAL, "have the parameter 'some.weight'", e);
    ls_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_owners), cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_wide_sums),
                                       cmocka_unit_test(test_print),
                                       cmocka_unit_test(test_some_chunks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
