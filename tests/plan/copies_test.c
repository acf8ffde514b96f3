/* copies_test.c - plans in which a device runs the layers: every copy is needed, and the verifier
 * misses each that is left out; what a device can't do is refused. */
#include "plan/plan.h"

#include "chunked_model.h"
#include "networks/gpt2.h"
#include "plan/memory.h"
#include "share/config.h"
#include "share/mesh.h"
#include "sliced_model.h"

/* As if there were kernels for all layers. */
static void set_on_device(ls_model *m) {
    for (int i = 0; i < m->nlayers; i++) m->layers[i].traits.on_device = true;
}

static void make_model(ls_model *m) {
    ls_gpt_config c = {.layers = 2, .width = 8, .heads = 2, .context = 4, .vocab = 256};
    ls_error e;
    assert_ls_ok(ls_gpt_create(&c, m, &e), e);
    set_on_device(m);
}

static ls_share_config config_of(const ls_model *m, int n, int V, int zero) {
    return (ls_share_config){.model = m,
                             .optim = ls_optim_usual(),
                             .nworkers = n,
                             .V = V,
                             .batch = 2 * V,
                             .micro_batch = 1,
                             .tree = true,
                             .bucket_nbytes = 5000,
                             .zero = zero,
                             .recompute = zero,
                             .prefetch = 1,
                             .compute = LS_F32,
                             .reduce = LS_F32,
                             .on_device = true};
}

static bool is_copy(const ls_action *a) {
    return a->kind == LS_TO_DEVICE || a->kind == LS_FROM_DEVICE;
}

/* Without action `out`, does the verifier object? */
static bool is_missed(ls_plan *p, int out) {
    ls_error e;
    ls_action gone = p->actions[out];
    size_t behind = (size_t)(p->nactions - out - 1) * sizeof gone;
    memmove(p->actions + out, p->actions + out + 1, behind);
    p->nactions--;
    bool objects = ls_plan_verify(p, LS_STAGE_WHOLE, &e) != LS_OK;
    memmove(p->actions + out + 1, p->actions + out, behind);
    p->actions[out] = gone;
    p->nactions++;
    return objects;
}

/* Sums that all workers have of a bucket. */
static int sums_of(const ls_plan *p) {
    int n = 0;
    for (int w = 0; w < p->share.nworkers; w++) n += ls_share_sums(&p->share, 0, w);
    return n;
}

/* Leaves out each copy of a plan, or in make check every n-th, and counts them. */
static void try_each(ls_plan *p, int n, int *to_p, int *from_p) {
    *to_p = *from_p = 0;
    for (int i = 0; i < p->nactions; i++) {
        *to_p += p->actions[i].kind == LS_TO_DEVICE;
        *from_p += p->actions[i].kind == LS_FROM_DEVICE;
        if (!is_copy(&p->actions[i]) || !runs_case(*to_p + *from_p, n)) continue;
        assert_true(is_missed(p, i));
    }
}

static void test_copies(void **state) {
    ls_model m;
    ls_error e;
    (void)state;
    make_model(&m);
    for (int n = 1; n <= 3; n++)
        for (int zero = 0; zero <= 3; zero++) {
            ls_share_config c = config_of(&m, n, n + 1, zero);
            ls_plan p;
            int to = 0, from = 0;
            assert_ls_ok(ls_plan_make(&c, &p, &e), e);
            try_each(&p, 1, &to, &from);
            /* the samples, and each bucket; the losses, and the sums of each bucket, which a worker
             * with two virtual workers has folded, but where rounds are reduced */
            int buckets = p.share.nbuckets;
            assert_int_equal(from, n + buckets * (p.share.by_rounds ? c.V : sums_of(&p)));
            assert_true(zero == 3 ? to >= n * (1 + buckets) : to == n * (1 + buckets));
            ls_plan_free(&p);
        }
    ls_model_free(&m);
}

/* States stay on the device, and without shards parameters, too. */
static void test_state_there(void **state) {
    ls_model m;
    ls_error e;
    (void)state;
    make_model(&m);
    for (int n = 2; n <= 3; n++)
        for (int zero = 0; zero <= 3; zero++) {
            ls_share_config c = config_of(&m, n, n + 1, zero);
            ls_plan p;
            int to = 0, from = 0;
            c.state_on_device = true;
            assert_ls_ok(ls_plan_make(&c, &p, &e), e);
            try_each(&p, 1, &to, &from);
            int buckets = p.share.nbuckets;
            if (zero == 0) {
                assert_int_equal(to, n * (1 + buckets));
                assert_int_equal(from, n * 2 + buckets * sums_of(&p));
            } else {
                assert_true(to >= n * (1 + 2 * buckets));
                assert_int_equal(from, n * (2 + buckets) +
                                           buckets * (p.share.by_rounds ? c.V : sums_of(&p)));
            }
            ls_plan_free(&p);
        }
    ls_model_free(&m);
}

/* The bytes of the optimizer's states on the devices of two workers; a shard may be empty. */
static size_t states_nbytes(const ls_plan *p) {
    size_t n = ls_plan_device_memory(p, 0).state + ls_plan_device_memory(p, 1).state;
    assert_true(n > 0);
    return n;
}

/* In 16 bits the device has f32 masters, too; the copies are those of f32. */
static void test_halves_there(void **state) {
    static const ls_dtype types[][2] = {{LS_BF16, LS_BF16}, {LS_F16, LS_BF16}, {LS_F32, LS_F16}};
    ls_model m;
    ls_error e;
    (void)state;
    make_model(&m);
    for (int i = 0; i < 3; i++)
        for (int zero = 0; zero <= 3; zero++) {
            ls_share_config c = config_of(&m, 2, 2, zero), wide = c;
            ls_plan p, of_f32;
            int to = 0, from = 0;
            wide.micro_batch = c.micro_batch = 2; /* all of a virtual worker */
            wide.state_on_device = c.state_on_device = true;
            c.compute = types[i][0];
            c.reduce = types[i][1];
            assert_ls_ok(ls_plan_make(&c, &p, &e), e);
            assert_ls_ok(ls_plan_make(&wide, &of_f32, &e), e);
            try_each(&p, 7, &to, &from);
            assert_int_equal(p.nactions, of_f32.nactions);
            assert_int_equal(2 * states_nbytes(&p), /* AdamW has two */
                             (c.compute == LS_F32 ? 2 : 3) * states_nbytes(&of_f32));
            ls_plan_free(&p);
            ls_plan_free(&of_f32);
        }
    ls_model_free(&m);
}

/* Devices that read each other's memory copy samples, losses and norms alone. */
static void test_peers(void **state) {
    ls_model m;
    ls_error e;
    (void)state;
    make_model(&m);
    for (int n = 1; n <= 3; n++)
        for (int zero = 0; zero <= 3; zero++) {
            ls_share_config c = config_of(&m, n, n + 1, zero);
            ls_plan p;
            int to = 0, from = 0;
            c.state_on_device = true;
            c.sums_on_device = zero > 0;
            if (n > 1 && !c.sums_on_device) continue;
            assert_ls_ok(ls_plan_make(&c, &p, &e), e);
            try_each(&p, 1, &to, &from);
            assert_int_equal(to, n);
            assert_int_equal(from, 2 * n);
            ls_plan_free(&p);
        }
    ls_share_config c = config_of(&m, 2, 2, 0);
    ls_plan p;
    c.sums_on_device = true;
    assert_ls_fails(ls_plan_make(&c, &p, &e), LS_EINVAL, "needs parallel.zero", e);
    ls_model_free(&m);
}

/* ---- meshes ---- */

/* What the host sends between workers: of layers, and parts of sums; and how often it looks at
 * scores. */
static void count_messages(const ls_plan *p, int *values_p, int *parts_p, int *scores_p) {
    *values_p = *parts_p = *scores_p = 0;
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        if (a->kind != LS_SEND) continue;
        ls_buffer_kind kind = ls_plan_buffer_of(p, a->buffer).kind;
        *values_p += kind == LS_BUF_ACT || kind == LS_BUF_DACT;
        *parts_p += kind == LS_BUF_INBOX;
        *scores_p += ls_plan_scores(p, a) >= 0;
    }
}

/* The buckets whose parameters the layers of a worker read. */
static int read_by(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    int n = 0;
    for (int k = 0; k < sh->nbuckets; k++) {
        bool reads = false;
        for (int l = 0; l < sh->model->nlayers; l++) {
            const int *touched = NULL;
            if (ls_share_runner(sh, worker, l) != worker) continue;
            for (int i = 0, m = ls_share_touched(sh, l, &touched); i < m; i++)
                reads = reads || touched[i] == k;
        }
        n += reads;
    }
    return n;
}

/* Copies of a mesh: as of its workers alone, and for each message one on either side; a part of a
 * sum goes on from its inbox. Parameters that are gathered may be copied twice. */
static void check_mesh(const ls_share_config *c) {
    ls_plan p;
    ls_error e;
    int to = 0, from = 0, values = 0, parts = 0, reads = 0, sums = 0, losses = 0, scores = 0;
    assert_ls_ok(ls_plan_make(c, &p, &e), e);
    const ls_share *sh = &p.share;
    try_each(&p, 31, &to, &from);
    count_messages(&p, &values, &parts, &scores);
    for (int w = 0; w < c->nworkers; w++) {
        bool loses = false;
        reads += read_by(&p, w);
        for (int k = 0; k < sh->nbuckets; k++)
            if (ls_share_has(sh, k, w)) sums += ls_share_sums(sh, k, w);
        for (int l = 0; l < sh->model->nlayers; l++)
            loses = loses || (sh->model->layers[l].traits.loss && ls_share_runner(sh, w, l) == w);
        losses += loses;
    }
    assert_true(values > 0);
    from -= values + parts + sums + losses; /* scores may be there */
    assert_true(from >= 0 && from <= scores);
    assert_true(c->zero == 3 ? to >= c->nworkers + values : to == c->nworkers + values + reads);
    ls_plan_free(&p);
}

static ls_share_config mesh_of(const ls_model *m, int data, int pipe, int zero) {
    ls_share_config c = config_of(m, data * pipe, 4, zero);
    c.pipe = pipe;
    return c;
}

/* The tied embedding's gradient, and blocks in which stages meet, go to another stage. */
static void test_pipelines(void **state) {
    ls_model m;
    (void)state;
    make_model(&m);
    for (int pipe = 2; pipe <= 4; pipe++)
        for (int zero = 0; zero <= 3; zero++) {
            ls_share_config c = mesh_of(&m, 1 + zero % 2, pipe, zero);
            check_mesh(&c);
        }
    ls_share_config c = mesh_of(&m, 1, 3, 0);
    c.schedule = LS_PIPE_ZB_H1;
    check_mesh(&c);
    ls_model_free(&m);
}

/* Where the optimizer is on the devices, what a stage shares with another goes from one to the
 * other. */
static void test_states_of_pipelines(void **state) {
    ls_model m;
    (void)state;
    make_model(&m);
    for (int pipe = 2; pipe <= 3; pipe++)
        for (int zero = 0; zero <= 3; zero++) {
            ls_share_config c = mesh_of(&m, 1 + zero % 2, pipe, zero);
            ls_plan p;
            ls_error e;
            int to = 0, from = 0;
            c.state_on_device = true;
            assert_ls_ok(ls_plan_make(&c, &p, &e), e);
            try_each(&p, 7, &to, &from);
            assert_true(to > 0 && from > 0);
            ls_plan_free(&p);
        }
    ls_model_free(&m);
}

/* Slices and experts of a layer. */
static void test_slices(void **state) {
    ls_model m;
    (void)state;
    sliced_make(6, 40, &m);
    set_on_device(&m);
    for (int tensor = 2; tensor <= SLICES; tensor++)
        for (int pipe = 1; pipe <= 2; pipe++) {
            ls_share_config c = mesh_of(&m, 1, pipe, 1);
            c.tensor = tensor;
            c.nworkers *= tensor;
            check_mesh(&c);
        }
    ls_model_free(&m);
}

/* Chunks of a sample, and messages of the rows that choose experts. */
static void test_chunks(void **state) {
    static const mixed_parts parts[] = {{2, 1, 1, false}, {1, 2, 1, false}, {2, 1, 2, true}};
    ls_model m;
    (void)state;
    own_make(96, 40, &m);
    set_on_device(&m);
    ls_share_config c = mesh_of(&m, 1, 1, 0);
    c.context = c.nworkers = CHUNKS;
    c.bucket_nbytes = 20000;
    check_mesh(&c);
    ls_model_free(&m);
    for (int i = 0; i < 3; i++) {
        mixed_make(12, 40, parts[i], true, &m);
        set_on_device(&m);
        c = mesh_of(&m, 2, 1, i);
        c.recompute = 0;
        c.micro_batch = parts[i].samples;
        c.context = 2;
        c.tensor = parts[i].slices;
        c.nworkers *= c.context * c.tensor;
        check_mesh(&c);
        ls_model_free(&m);
    }
}

/* A copy of what stays where it is. */
static void test_wrong(void **state) {
    ls_model m;
    ls_plan p;
    ls_error e;
    (void)state;
    make_model(&m);
    ls_share_config c = config_of(&m, 1, 2, 0);
    assert_ls_ok(ls_plan_make(&c, &p, &e), e);
    int at = 0;
    while (p.actions[at].kind != LS_TO_DEVICE) at++;
    p.actions[at].buffer = ls_plan_buffer(&p, LS_BUF_MOMENT, 0, 0);
    assert_ls_fails(ls_plan_verify(&p, LS_STAGE_WHOLE, &e), LS_EINVAL, "stays where it is", e);
    ls_plan_free(&p);
    ls_model_free(&m);
}

static void test_refused(void **state) {
    ls_model m;
    ls_plan p;
    ls_error e;
    (void)state;
    make_model(&m);
    ls_share_config pipe = config_of(&m, 2, 2, 0);
    pipe.pipe = 2;
    pipe.zero = 1;
    pipe.state_on_device = pipe.sums_on_device = true;
    assert_ls_fails(ls_plan_make(&pipe, &p, &e), LS_EINVAL, "no parallel.mesh", e);
    ls_share_config host = config_of(&m, 2, 2, 0), muon = host;
    host.state_on_device = muon.state_on_device = true;
    host.on_device = false;
    muon.optim.groups[0].rule = LS_RULE_MUON;
    assert_ls_fails(ls_plan_make(&host, &p, &e), LS_EINVAL, "needs parallel.device", e);
    assert_ls_fails(ls_plan_make(&muon, &p, &e), LS_EINVAL, "muon", e);
    ls_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),       cmocka_unit_test(test_state_there),
        cmocka_unit_test(test_halves_there), cmocka_unit_test(test_peers),
        cmocka_unit_test(test_wrong),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_pipelines),    cmocka_unit_test(test_slices),
        cmocka_unit_test(test_chunks),       cmocka_unit_test(test_states_of_pipelines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
