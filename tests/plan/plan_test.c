/* plan_test.c - plans of many shapes pass the verifier, and broken ones don't. */
/* ctest: long-asan: plan/oracle makes plans of 200 random configs */
#include "plan/plan.h"

#include "base/file.h"
#include "model/builder.h"
#include "networks/gpt2.h"
#include "plan/memory.h"
#include "plan/pick.h"
#include "share/config.h"
#include "sliced_model.h"
#include "test.h"

static void make_model_of(int64_t layers, int64_t context, ls_model *m) {
    ls_gpt_config c = {.layers = layers, .width = 8, .heads = 2, .context = context, .vocab = 256};
    ls_error e;
    assert_ls_ok(ls_gpt_create(&c, m, &e), e);
}

static void make_model(int64_t layers, ls_model *m) { make_model_of(layers, 4, m); }

static ls_plan make_sharded(const ls_model *m, int n, int V, int64_t part, int64_t micro, bool tree,
                            int zero) {
    ls_share_config c = {.model = m,
                         .nworkers = n,
                         .V = V,
                         .batch = part * V,
                         .micro_batch = micro,
                         .tree = tree,
                         .bucket_nbytes = 5000,
                         .zero = zero,
                         .recompute = (int)(part * micro + n) % 4,
                         .prefetch = (int)micro % 3,
                         .compute = LS_F32,
                         .reduce = LS_F32};
    ls_plan p;
    ls_error e;
    assert_ls_ok(ls_plan_make(&c, &p, &e), e);
    return p;
}

static ls_plan make(const ls_model *m, int n, int V, int64_t part, int64_t micro) {
    return make_sharded(m, n, V, part, micro, true, 1);
}

static void test_shapes(void **state) {
    (void)state;
    for (int64_t layers = 1; layers <= 3; layers++) {
        ls_model m;
        make_model(layers, &m);
        for (int V = 1; V <= 9; V++)
            for (int n = 1; n <= V; n++)
                for (int64_t micro = 1; micro <= 3; micro++)
                    for (int zero = 0; zero <= 3; zero++) {
                        bool tree = (V + n + micro) % 4 != 0;
                        ls_plan p = make_sharded(&m, n, V, 3, micro, tree, zero);
                        ls_plan_free(&p);
                    }
        ls_model_free(&m);
    }
}

/* A third of them are pipelines, most of which fit. The config refuses other keys beside them
 * (config/conflicts.c). */
static void draw_pipeline(ls_share_config *c, uint64_t seed) {
    c->pipe = 1 + pick(seed, 18, 4);
    c->schedule = (ls_pipe_kind)pick(seed, 19, 3);
    c->chunks = c->schedule == LS_PIPE_INTERLEAVED ? 2 : pick(seed, 20, 8) == 0 ? 2 : 1;
    if (pick(seed, 21, 8)) c->nworkers *= c->pipe;
    if (c->pipe == 1) return;
    c->early = false;
    c->shards = 0;
    c->tree = true;
}

/* Random settings: a plan that is made was verified after each pass; a refusal names the
 * setting. */
static void test_random(void **state) {
    (void)state;
    static const ls_dtype types[] = {LS_F32, LS_BF16, LS_F16};
    ls_model models[3];
    int made = 0, refused = 0;
    for (int i = 0; i < 3; i++) make_model_of(i + 1, 32, &models[i]);
    const int cases = ncases(1000, 5000);
    for (uint64_t seed = 0; seed < (uint64_t)cases; seed++) {
        ls_share_config c = {.model = &models[pick(seed, 0, 3)],
                             .V = 1 + pick(seed, 1, 24),
                             .tree = pick(seed, 2, 8) != 0,
                             .bucket_nbytes = (size_t)(1024 << pick(seed, 3, 6)),
                             .zero = pick(seed, 4, 4),
                             .recompute = pick(seed, 5, 5),
                             .recompute_layers = pick(seed, 6, 4),
                             .prefetch = pick(seed, 7, 4),
                             .early = pick(seed, 8, 4) == 0,
                             .whole_nbytes = (size_t)(1024 * pick(seed, 16, 6)),
                             .compute = types[pick(seed, 9, 3)],
                             .reduce = types[pick(seed, 10, 3)]};
        int part = 1 + pick(seed, 11, 4);
        c.nworkers = 1 + pick(seed, 12, c.V);
        c.batch = part * c.V;
        c.micro_batch = 1 + pick(seed, 13, part);
        if (c.zero && pick(seed, 14, 3) == 0) c.shards = 1 + pick(seed, 15, c.nworkers);
        if (pick(seed, 17, 3) == 0) draw_pipeline(&c, seed);
        ls_plan p;
        ls_error e = {0};
        ls_status s = ls_plan_make(&c, &p, &e);
        if (s == LS_OK) ls_plan_free(&p);
        bool named = strncmp(e.msg, "parallel.", 9) == 0 || strstr(e.msg, "stages (parallel.");
        if (s != LS_OK && !named) fail_msg("seed %d: %s", (int)seed, e.msg);
        made += s == LS_OK;
        refused += s != LS_OK;
    }
    for (int i = 0; i < 3; i++) ls_model_free(&models[i]);
    if (made < cases / 2 || refused < cases / 50) fail_msg("%d made, %d refused", made, refused);
}

/* Whole plans as text (tests/plans/), to be reviewed when a pass changes. LOCKSTEP_UPDATE=1 writes
 * them. */
static void test_golden(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int n, V, zero, recompute, shards;
        bool early;
        ls_dtype type;
        int pipe;
    } plans[] = {{"one-worker", 1, 2, 1, 0, 0, false, LS_F32, 0},
                 {"zero-0", 2, 2, 0, 0, 0, false, LS_F32, 0},
                 {"zero-1", 2, 4, 1, 0, 0, false, LS_F32, 0},
                 {"zero-2", 2, 2, 2, 0, 0, false, LS_F32, 0},
                 {"zero-3", 2, 2, 3, 0, 0, false, LS_F32, 0},
                 {"uneven", 3, 4, 3, 0, 0, false, LS_F32, 0},
                 {"recompute", 2, 2, 1, 2, 0, false, LS_F32, 0},
                 {"hybrid", 4, 4, 1, 0, 2, false, LS_F32, 0},
                 {"early", 2, 4, 2, 0, 0, true, LS_F32, 0},
                 {"mixed", 2, 2, 1, 0, 0, false, LS_BF16, 0},
                 {"everything", 4, 8, 3, 1, 2, true, LS_BF16, 0},
                 {"pipe", 2, 2, 1, 0, 0, false, LS_F32, 2}};
    ls_model m;
    make_model(1, &m);
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        ls_share_config c = {.model = &m,
                             .nworkers = plans[i].n,
                             .V = plans[i].V,
                             .batch = plans[i].V,
                             .micro_batch = 1,
                             .tree = true,
                             .bucket_nbytes = 6000};
        c.zero = plans[i].zero;
        c.recompute = plans[i].recompute;
        c.prefetch = 1;
        c.compute = c.reduce = plans[i].type;
        c.shards = plans[i].shards;
        c.early = plans[i].early;
        c.pipe = plans[i].pipe;
        ls_plan p;
        ls_error e;
        ls_buf text = {0}, want = {0};
        assert_ls_ok(ls_plan_make(&c, &p, &e), e);
        assert_int_equal(ls_plan_print_some(&p, LS_ALL_WORKERS, 0, &text), p.nactions);
        char *path = ls_format("tests/plans/%s.txt", plans[i].name);
        if (getenv("LOCKSTEP_UPDATE"))
            assert_ls_ok(ls_file_replace(path, text.data, text.len, &e), e);
        assert_ls_ok(ls_file_read(path, 1 << 20, &want, &e), e);
        if (text.len != want.len || memcmp(text.data, want.data, want.len) != 0) {
            print_error("%s: the plan is now\n%s", path, text.data);
            fail();
        }
        free(path);
        ls_buf_free(&text);
        ls_buf_free(&want);
        ls_plan_free(&p);
    }
    ls_model_free(&m);
}

static void fails(const ls_share_config *c, const char *says) {
    ls_plan p;
    ls_error e;
    assert_ls_fails(ls_plan_make(c, &p, &e), LS_EINVAL, says, e);
}

static void test_refused(void **state) {
    (void)state;
    ls_model m;
    make_model(1, &m);
    ls_share_config c = {.model = &m,
                         .nworkers = 3,
                         .V = 2,
                         .batch = 4,
                         .micro_batch = 1,
                         .tree = true,
                         .bucket_nbytes = 5000,
                         .zero = 1,
                         .prefetch = 1,
                         .compute = LS_F32,
                         .reduce = LS_F32};
    fails(&c, "3 workers for 2 virtual workers");
    c.nworkers = 2;
    c.batch = 5;
    fails(&c, "does not divide train.batch 5");
    c.nworkers = c.V = 6;
    c.batch = 6;
    c.shards = 4;
    fails(&c, "shard_group 4 does not divide 6 workers");
    c.shards = 3; /* virtual workers 0 to 2 are no subtree of 6 */
    fails(&c, "no whole subtrees");
    c.shards = 2;
    c.zero = 0;
    fails(&c, "nothing is sharded");
    c.shards = 6; /* of all workers, too: there may be fewer later */
    fails(&c, "nothing is sharded");
    c.shards = 0;
    c.early = true;
    fails(&c, "gradients are not sharded");
    c.zero = 2;
    c.nworkers = 3; /* rounds of 3 */
    fails(&c, "no whole subtrees");
    c.nworkers = 4;
    fails(&c, "no whole subtrees");
    c.early = false;
    c.reduce = LS_I32;
    fails(&c, "can't train in i32");
    c.reduce = LS_F32;
    c.nworkers = 2; /* 8 calls of layers a micro-batch of the 2 virtual workers */
    c.V = 2;
    c.batch = 2 * ((int64_t)LS_PLAN_MAX_CALLS / 16 + 1);
    fails(&c, "train.micro_batch 1 makes a step of");
    fails(&c, "use at least 2");
    ls_model_free(&m);
}

static ls_share_config config_of_buckets(const ls_model *m, size_t bucket_nbytes) {
    return (ls_share_config){.model = m,
                             .nworkers = 1,
                             .V = 1,
                             .batch = 1,
                             .micro_batch = 1,
                             .tree = true,
                             .bucket_nbytes = bucket_nbytes,
                             .compute = LS_F32,
                             .reduce = LS_F32};
}

/* Buckets are whole blocks: with room for less than two blocks, a bucket has one. */
static void test_too_many_buckets(void **state) {
    (void)state;
    static const size_t one_block[] = {100, LS_BLOCK * sizeof(float),
                                       2 * LS_BLOCK * sizeof(float) - 1};
    ls_gpt_config large = {.layers = 1, .width = 8, .heads = 2, .context = 4, .vocab = 600000};
    ls_gpt_config small = {.layers = 1, .width = 8, .heads = 2, .context = 4, .vocab = 500000};
    ls_model m;
    ls_plan p;
    ls_error e;
    assert_ls_ok(ls_gpt_create(&large, &m, &e), e);
    int nblocks = (int)(m.nfloats / LS_BLOCK);
    assert_in_range(nblocks, LS_PLAN_MAX_BUCKETS + 1, 2 * LS_PLAN_MAX_BUCKETS);
    for (int i = 0; i < 3; i++) {
        ls_share_config c = config_of_buckets(&m, one_block[i]);
        char says[64];
        double advised = 0;
        snprintf(says, sizeof says, "into %d buckets, at most 4096 are possible", nblocks);
        assert_ls_fails(ls_plan_make(&c, &p, &e), LS_EINVAL, says, e);
        const char *advice = strstr(e.msg, "use at least ");
        assert_non_null(advice);
        assert_int_equal(sscanf(advice, "use at least %lf", &advised), 1);
        c.bucket_nbytes = (size_t)(advised * 1e6);
        assert_ls_ok(ls_plan_make(&c, &p, &e), e);
        assert_int_equal(p.share.nbuckets, (nblocks + 1) / 2);
        ls_plan_free(&p);
    }
    ls_model_free(&m);
    assert_ls_ok(ls_gpt_create(&small, &m, &e), e);
    for (int i = 0; i < 3; i++) {
        ls_share_config c = config_of_buckets(&m, one_block[i]);
        assert_ls_ok(ls_plan_make(&c, &p, &e), e);
        assert_int_equal(p.share.nbuckets, m.nfloats / LS_BLOCK);
        assert_true(p.share.nbuckets <= LS_PLAN_MAX_BUCKETS);
        ls_plan_free(&p);
    }
    ls_model_free(&m);
}

/* The time of planning is proportional to the number of actions, or this test would take hours. */
static void test_large(void **state) {
    (void)state;
    ls_model m;
    make_model(1000, &m);
    for (int zero = 0; zero <= 3; zero += 3) {
        ls_plan p = make_sharded(&m, 16, 16, 1, 1, true, zero);
        ls_arena_plan a;
        ls_memory memory;
        ls_memory_config how = {.threads = 1};
        ls_lanes l;
        ls_plan_arena(&p, 7, false, &a);
        assert_true(a.nbytes >= a.peak && a.peak > 0);
        ls_arena_plan_free(&a);
        ls_plan_memory(&p, &how, &memory);
        assert_true(memory.peak > a.peak);
        ls_plan_project(&p, 7, &l);
        assert_true(l.n[LS_LANE_COMPUTE] > 4000 && l.n[LS_LANE_COMM] > 0);
        ls_lanes_free(&l);
        ls_plan_free(&p);
    }
    ls_plan p = make_sharded(&m, 1, 1, 30, 1, true, 1);
    ls_plan_free(&p);
    ls_model_free(&m);
}

/* Ways to break a plan, which the verifier must detect. */
typedef void breaker(ls_plan *, int at);

static void drop(ls_plan *p, int at) {
    memmove(&p->actions[at], &p->actions[at + 1],
            (size_t)(p->nactions - at - 1) * sizeof *p->actions);
    p->nactions--;
}
static void repeat(ls_plan *p, int at) {
    ls_action a = p->actions[at];
    ls_plan_append(p, &a);
    memmove(&p->actions[at + 1], &p->actions[at],
            (size_t)(p->nactions - at - 1) * sizeof *p->actions);
    p->actions[at] = a;
}
static void other_worker(ls_plan *p, int at) {
    p->actions[at].worker = p->actions[at].worker < 1 ? p->actions[at].worker + 1 : 0;
}
static void to_end(ls_plan *p, int at) {
    ls_action a = p->actions[at];
    drop(p, at);
    ls_plan_append(p, &a);
}

/* Every way to break a plan at every action. */
static int check_broken(const ls_share_config *c) {
    static breaker *const breakers[] = {drop, repeat, other_worker, to_end};
    ls_plan whole;
    ls_error e;
    int found = 0, tried = 0;
    assert_ls_ok(ls_plan_make(c, &whole, &e), e);
    for (int b = 0; b < 4; b++)
        for (int at = 0; at < whole.nactions - 1; at++) {
            ls_action_kind kind = whole.actions[at].kind;
            if (kind == LS_FREE && breakers[b] == to_end) continue;       /* late, no harm */
            if (kind == LS_ALL_GATHER && breakers[b] == to_end) continue; /* late, no harm */
            ls_plan p;
            assert_ls_ok(ls_plan_make(c, &p, &e), e);
            breakers[b](&p, at);
            tried++;
            if (ls_plan_verify(&p, LS_STAGE_WHOLE, &e) != LS_OK)
                found++;
            else
                print_message("not seen: breaker %d on action %d, %s\n", b, at,
                              ls_action_kind_name(kind));
            ls_plan_free(&p);
        }
    assert_int_equal(found, tried);
    ls_plan_free(&whole);
    return tried;
}

static void test_broken(void **state) {
    (void)state;
    ls_model m;
    make_model(1, &m);
    ls_share_config c = {.model = &m,
                         .nworkers = 2,
                         .V = 4,
                         .batch = 8,
                         .micro_batch = 1,
                         .tree = true,
                         .bucket_nbytes = 5000,
                         .zero = 1,
                         .recompute = 2,
                         .prefetch = 1,
                         .compute = LS_F32,
                         .reduce = LS_F32};
    int tried = check_broken(&c);
    c.nworkers = 4; /* groups of two, two rounds */
    c.V = 8;
    c.zero = 2;
    c.shards = 2;
    c.early = true;
    tried += check_broken(&c);
    assert_true(tried > 1000);
    ls_model_free(&m);
}

/* Every action is once in a lane of each worker that it concerns, and waits never form a cycle. */
static void test_lanes(void **state) {
    (void)state;
    ls_model m;
    make_model(2, &m);
    for (int n = 1; n <= 5; n++) {
        ls_plan p = make(&m, n, 5, 2, 1);
        for (int w = 0; w < n; w++) {
            ls_lanes l;
            ls_plan_project(&p, w, &l);
            int at[LS_NLANES] = {0, 0}, count = 0;
            for (bool moved = true; moved;) {
                moved = false;
                for (int lane = 0; lane < LS_NLANES; lane++)
                    while (at[lane] < l.n[lane] && l.steps[lane][at[lane]].wait <= at[!lane]) {
                        assert_int_equal(
                            ls_plan_lane(&p, &p.actions[l.steps[lane][at[lane]].action]), lane);
                        at[lane]++;
                        count++;
                        moved = true;
                    }
            }
            assert_int_equal(count, l.n[0] + l.n[1]); /* all ran, so there is no cycle */
            int concerned = 0;
            for (int i = 0; i < p.nactions; i++) concerned += ls_action_concerns(&p.actions[i], w);
            assert_int_equal(count, concerned);
            ls_lanes_free(&l);
        }
        ls_plan_free(&p);
    }
    ls_model_free(&m);
}

/* Buffers that are live at the same time don't overlap in the arena. */
static void test_arena(void **state) {
    (void)state;
    ls_model m;
    make_model(3, &m);
    ls_plan p = make(&m, 2, 3, 4, 2);
    for (int w = 0; w < 2; w++) {
        ls_arena_plan a;
        ls_plan_arena(&p, w, false, &a);
        assert_true(a.peak <= a.nbytes && a.nbytes > 0);
        int n = ls_plan_buffer(&p, LS_BUF_PARAM, 0, 0);
        bool *live = calloc((size_t)n, sizeof *live);
        for (int i = 0; i < p.nactions; i++) {
            const ls_action *x = &p.actions[i];
            if (x->worker != w) continue;
            if (x->kind == LS_FREE) {
                live[x->buffer] = false;
                continue;
            }
            if (x->kind != LS_FORWARD || m.layers[x->layer].traits.loss) continue;
            int y = ls_plan_buffer(&p, LS_BUF_ACT, x->layer, 0);
            size_t first = a.offsets[y], end = first + ls_plan_buffer_nbytes(&p, y, w);
            for (int b = 0; b < n; b++) {
                if (!live[b] || b == y) continue;
                size_t other = a.offsets[b];
                assert_true(end <= other || other + ls_plan_buffer_nbytes(&p, b, w) <= first);
            }
            live[y] = true;
        }
        free(live);
        ls_arena_plan_free(&a);
    }
    ls_plan_free(&p);
    ls_model_free(&m);
}

/* Shards of a bucket cover it, in blocks. */
static void check_shards(const ls_model *model) {
    ls_model m = *model;
    for (int n = 1; n <= 8; n++) {
        ls_plan p = make(&m, n, 8, 1, 1);
        size_t end = m.nfloats;
        for (int k = 0; k < p.share.nbuckets; k++) {
            assert_int_equal(p.share.buckets[k].end, end);
            size_t at = p.share.buckets[k].first;
            for (int w = 0; w < n; w++) {
                ls_range s = ls_share_shard(&p.share, k, w);
                assert_int_equal(s.first, at);
                assert_int_equal(s.end % LS_BLOCK, 0);
                at = s.end;
            }
            assert_int_equal(at, p.share.buckets[k].end);
            end = p.share.buckets[k].first;
        }
        assert_int_equal(end, 0);
        ls_plan_free(&p);
    }
}

static void test_shards(void **state) {
    (void)state;
    ls_model m;
    make_model(2, &m);
    check_shards(&m);
    ls_model_free(&m);
}

/* The numbers of floats that workers update, at most. */
static size_t most_owned(const ls_plan *p) {
    size_t most = 0;
    for (int w = 0; w < p->share.nworkers; w++) {
        size_t own = 0;
        for (int k = 0; k < p->share.nbuckets; k++) {
            ls_range s = ls_share_shard(&p->share, k, w);
            own += s.end - s.first;
        }
        if (own > most) most = own;
    }
    return most;
}

/* One worker has all of a parameter that its optimizer needs whole, in one bucket; workers have
 * about the same to update; and the verifier sees where it is divided. */
static void test_whole_parameters(void **state) {
    (void)state;
    ls_model m;
    ls_error e = {0};
    size_t largest = 0;
    make_model(3, &m);
    for (int i = 0; i < m.nparams; i++) {
        m.params[i].cut.whole = m.params[i].ndims == 2;
        if (m.params[i].cut.whole && m.params[i].count > largest) largest = m.params[i].count;
    }
    ls_model_place(&m);
    check_shards(&m);
    for (int n = 1; n <= 8; n++) {
        ls_plan p = make(&m, n, 8, 1, 1); /* the verifier has seen that no one is divided */
        assert_in_range(most_owned(&p), 1, m.nfloats / (size_t)n + largest + LS_BLOCK);
        for (int k = 0; n == 2 && k < p.share.nbuckets; k++)
            for (int i = 0; i < m.nparams; i++) {
                const ls_param *q = &m.params[i];
                ls_bucket b = p.share.buckets[k];
                if (!q->cut.whole || q->count <= LS_BLOCK || q->offset < b.first ||
                    q->offset >= b.end)
                    continue;
                size_t *cuts = p.share.cuts + (size_t)k * 3, was = cuts[1];
                cuts[1] = q->offset + LS_BLOCK;
                assert_ls_fails(ls_plan_verify(&p, LS_STAGE_WHOLE, &e), LS_EINVAL, "", e);
                cuts[1] = was;
            }
        ls_plan_free(&p);
    }
    ls_model_free(&m);
}

/* The hash of a plan that is not divided, with a line of what decides bits beside its actions. */
static ls_hash hash_with(const ls_plan *p, const char *line) {
    const ls_share *sh = &p->share;
    ls_buf text = {0};
    ls_buf_printf(&text, "n %d V %d batch %lld micro %lld tree %d compute %s reduce %s\n%s",
                  sh->nworkers, sh->V, (long long)sh->batch, (long long)sh->micro_batch,
                  sh->config->tree, ls_dtype_name(sh->compute), ls_dtype_name(sh->reduce), line);
    for (int at = 0; at < p->nactions; at++) ls_plan_print_action(p, at, &text);
    ls_hasher *h = ls_hasher_new();
    ls_hasher_add(h, text.data, text.len);
    ls_buf_free(&text);
    return ls_hasher_finish(h);
}

/* The order of products in bf16 is part of it, and of no other plan. */
static void test_hash_of_order(void **state) {
    (void)state;
    static const ls_dtype types[] = {LS_F32, LS_F16, LS_BF16};
    ls_model m;
    make_model(1, &m);
    ls_plan p = make(&m, 2, 4, 2, 1);
    for (int i = 0; i < 3; i++) {
        p.share.compute = types[i];
        ls_hash own = ls_plan_hash(&p), order = hash_with(&p, "sum blocks32\n");
        assert_int_equal(ls_hash_same(own, order), types[i] == LS_BF16);
        assert_int_equal(ls_hash_same(own, hash_with(&p, "")), types[i] != LS_BF16);
    }
    ls_plan_free(&p);
    ls_model_free(&m);
}

static void test_hash(void **state) {
    (void)state;
    ls_model m;
    make_model(1, &m);
    ls_plan a = make(&m, 2, 4, 2, 1), b = make(&m, 2, 4, 2, 1);
    ls_plan c = make(&m, 2, 4, 2, 2);
    assert_int_equal(ls_plan_hash(&a).lo, ls_plan_hash(&b).lo);
    assert_int_not_equal(ls_plan_hash(&a).lo, ls_plan_hash(&c).lo);
    ls_plan_free(&a);
    ls_plan_free(&b);
    ls_plan_free(&c);
    ls_model_free(&m);
}

/* Of models with few rows a sample, a micro-batch in bf16 has whole blocks of rows. */
static void test_whole_blocks(void **state) {
    (void)state;
    static const int64_t context[] = {4, 17, 31, 32, 33}, unit[] = {8, 2, 2, 1, 1};
    for (int i = 0; i < 5; i++) {
        ls_model m;
        make_model_of(1, context[i], &m);
        assert_int_equal(ls_model_unit_samples(&m, LS_BF16), unit[i]);
        assert_int_equal(ls_model_unit_samples(&m, LS_F32), 1);
        ls_share_config c = {.model = &m, .nworkers = 1, .V = 2, .batch = 24, .tree = true};
        c.bucket_nbytes = 1000;
        c.compute = c.reduce = LS_BF16;
        for (c.micro_batch = 1; c.micro_batch <= 12; c.micro_batch++) {
            ls_plan p;
            ls_error e = {0};
            bool whole = c.micro_batch % unit[i] == 0 || c.micro_batch == 12;
            if (whole) assert_ls_ok(ls_plan_make(&c, &p, &e), e);
            if (whole) ls_plan_free(&p);
            if (!whole) assert_int_equal(ls_plan_make(&c, &p, &e), LS_EINVAL);
            if (!whole && i == 0)
                assert_non_null(strstr(e.msg, "a multiple of 8, or 12 (all samples of a virtual"));
        }
        ls_model_free(&m);
    }
}

/* A layer that joins samples needs all of a virtual worker's in one call, more than one number, and
 * gradients in f32. */
static void test_joined_samples(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *x = ls_input(&m, "x", LS_F32, LS_DIMS(2)), *y = ls_input(&m, "y", LS_F32, LS_DIMS(2));
    ls_mean_squared_error(&m, ls_batch_norm(&m, x, .name = "norm"), y, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    ls_share_config c = {.model = &m,
                         .nworkers = 2,
                         .V = 4,
                         .batch = 12,
                         .micro_batch = 3,
                         .tree = true,
                         .bucket_nbytes = 6000,
                         .compute = LS_F32,
                         .reduce = LS_F32};
    ls_plan p;
    assert_ls_ok(ls_plan_make(&c, &p, &e), e);
    ls_plan_free(&p);
    c.micro_batch = 2;
    fails(&c, "layer 'norm' normalizes over all samples of a virtual worker, so they are computed "
              "at once; set train.micro_batch to 3");
    c.micro_batch = 3;
    c.reduce = LS_BF16;
    fails(&c, "layer 'norm' has running values, which are summed with the gradients and need f32");
    c.reduce = LS_F32;
    c.batch = 4;
    c.micro_batch = 1;
    fails(&c, "layer 'norm' normalizes over the samples of a virtual worker, and it has one");
    ls_model_free(&m);
}

/* As many micro-batches are in flight as the pipeline has workers, also where a worker has no slice
 * of its stage. */
static void test_in_flight(void **state) {
    (void)state;
    ls_model m;
    sliced_make(6, 40, &m);
    for (int pipe = 2; pipe <= 4; pipe++)
        for (int tensor = 1; tensor <= SLICES; tensor++) {
            ls_plan p;
            ls_error e = {0};
            ls_share_config c = {.model = &m,
                                 .nworkers = pipe * tensor,
                                 .V = 16,
                                 .batch = 16,
                                 .micro_batch = 1,
                                 .tree = true,
                                 .bucket_nbytes = 20000,
                                 .pipe = pipe,
                                 .tensor = tensor,
                                 .compute = LS_F32,
                                 .reduce = LS_F32};
            assert_ls_ok(ls_plan_make(&c, &p, &e), e);
            if (p.in_flight > pipe)
                fail_msg("pipe %d, tensor %d: %d are in flight", pipe, tensor, p.in_flight);
            ls_plan_free(&p);
        }
    ls_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_whole_blocks),
        cmocka_unit_test(test_joined_samples),
        cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_whole_parameters),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_hash_of_order),
        cmocka_unit_test(test_too_many_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
