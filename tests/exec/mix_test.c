/* mix_test.c - plans of gossip, run by threads: what a replica becomes is what the formula says,
 * with the same bits for any number of workers, any sharding and any cut of the buckets. */
/* ctest: long-tsan: exec/apart and exec/exec start the same threads */
#include <math.h>
#include <sched.h>
#include <string.h>

#include "base/random.h"
#include "coll/team.h"
#include "exec/exec.h"
#include "model/builder.h"
#include "share/config.h"

enum { REPLICAS = 8, WIDTH = 40, ROUNDS = 6 };

typedef struct job {
    ls_model model;
    ls_gossip gossip;
    ls_share_config how;
    ls_plan plan;
    int rounds;
    bool apart, slow;          /* rounds are decided by those who mix; worker 0 is slow */
    atomic_int done[REPLICAS]; /* rounds that each worker has made */
    float *replicas;           /* [1 + REPLICAS][nfloats] at the end, the first by Mean */
} job;

static void make_model(ls_model *m) {
    ls_error e = {0};
    *m = (ls_model){0};
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(WIDTH));
    ls_value *y = ls_input(m, "y", LS_F32, LS_DIMS(WIDTH));
    for (int i = 0; i < 4; i++) x = ls_gelu(m, ls_linear(m, x, .out = WIDTH));
    ls_mean_squared_error(m, x, y, .factor = 0.5f);
    assert_ls_ok(ls_build_finish(m, &e), e);
}

/* A wave around the ring, other ones at other places. */
static float value_at(int replica, size_t i) {
    const double turn = 8 * atan(1.0);
    if (i % 2) return (float)cos(turn * replica / REPLICAS);
    return (float)ls_random_uniform(3, LS_STREAM_FAKE, (uint64_t)replica, i) * 2 - 1;
}

static ls_status run_plan(const job *j, const ls_world *w, ls_task task, const ls_mixing *mixing,
                          ls_error *e) {
    ls_share_config c = *j->plan.share.config;
    ls_board_slot slot = {0};
    ls_compute compute;
    ls_plan p;
    ls_exec *x = NULL;
    ls_step_out trained = {0}, out;
    const ls_step_in in = {
        .lr = 1, .loss_scale = 1, .trained = &trained, .apart = j->apart && task == LS_TASK_MIX};
    c.first = NULL;
    c.task = task;
    c.sync.mix = mixing;
    c.sync.part_end = j->model.nfloats;
    LS_TRY(ls_plan_make(&c, &p, e));
    LS_TRY(ls_compute_init(&compute, 2, 0, e));
    const ls_exec_config ec = {.plan = &p,
                               .world = w,
                               .slot = &slot,
                               .worker = ls_group_rank(w->group),
                               .threads = 2,
                               .busy = 64,
                               .compute = &compute};
    LS_TRY(ls_exec_create(&ec, &x, e));
    LS_TRY(ls_exec_step(x, &in, &out, e));
    ls_exec_free(x);
    ls_compute_close(&compute);
    ls_plan_free(&p);
    return LS_OK;
}

/* Worker 0 has not begun to mix. In the exponential graph its first neighbour waits for it, then
 * those of the second round, of which each waits for worker 0 or for who waits for it, and so
 * on. */
static void await_others(const job *j) {
    static const int most[REPLICAS] = {0, 0, 1, 1, 2, 2, 2, 2};
    for (int i = 1; i < REPLICAS; i++)
        while (atomic_load(&j->done[i]) < most[i]) sched_yield();
}

static ls_status work(ls_group *g, void *arg, ls_error *e) {
    job *j = arg;
    const ls_plan *p = &j->plan;
    size_t n = j->model.nfloats;
    int first = 0, end = 0, rank = ls_group_rank(g);
    ls_world w;
    ls_mixing mixing = {.replicas = REPLICAS};
    LS_TRY(ls_world_open(&w, &p->share, g, NULL, NULL, e));
    first = p->share.workers[rank].first_island;
    end = p->share.workers[rank].end_island;
    /* the first worker of an island writes what all its workers share */
    int from = p->share.buckets[ls_share_bucket_in(&p->share, 0, first)].workers.from;
    for (int i = first; i < end && (rank == from || !w.shares_params); i++)
        for (size_t k = 0; k < n; k++) w.flat.of[0][(size_t)i * n + k] = value_at(i - 1, k);
    LS_TRY(ls_barrier(g, e));
    for (int i = 0; i < REPLICAS; i++) mixing.mass[i] = 1;
    if (j->slow && rank == 0) await_others(j);
    for (int r = 0; r < j->rounds; r++) {
        ls_mixing_make(&j->gossip, r, mixing.mass, &mixing);
        LS_TRY(run_plan(j, &w, LS_TASK_MIX, &mixing, e));
        if (rank < REPLICAS) atomic_fetch_add(&j->done[rank], 1);
    }
    LS_TRY(run_plan(j, &w, LS_TASK_MEAN, &mixing, e));
    LS_TRY(ls_barrier(g, e));
    if (rank == 0) memcpy(j->replicas, w.flat.of[0], n * sizeof(float));
    for (int i = first; i < end && rank == from; i++)
        memcpy(j->replicas + (size_t)i * n, w.flat.of[0] + (size_t)i * n, n * sizeof(float));
    LS_TRY(ls_barrier(g, e));
    ls_world_close(&w, &p->share);
    return LS_OK;
}

static void run(job *j, const ls_gossip *g, int nworkers, int zero, size_t bucket_nbytes) {
    ls_error e = {0};
    int rounds = j->rounds;
    bool apart = j->apart, slow = j->slow;
    memset(j, 0, sizeof *j);
    j->rounds = rounds;
    j->apart = apart;
    j->slow = slow;
    make_model(&j->model);
    j->gossip = *g;
    j->how = (ls_share_config){.model = &j->model,
                               .nworkers = nworkers,
                               .V = 2 * REPLICAS,
                               .batch = 2 * REPLICAS,
                               .micro_batch = 1,
                               .tree = true,
                               .bucket_nbytes = bucket_nbytes,
                               .zero = zero,
                               .islands = REPLICAS,
                               .compute = LS_F32,
                               .reduce = LS_F32};
    assert_ls_ok(ls_plan_make(&j->how, &j->plan, &e), e);
    j->replicas = LS_NEW_ARRAY(float, (1 + REPLICAS) * j->model.nfloats);
    run_threads(nworkers, NULL, work, j, NULL);
}

static void end(job *j) {
    ls_plan_free(&j->plan);
    ls_model_free(&j->model);
    free(j->replicas);
}

/* In double precision. */
static void reference(const job *j, size_t k, double x[REPLICAS], double *mean_p) {
    ls_mixing mixing = {.replicas = REPLICAS};
    for (int i = 0; i < REPLICAS; i++) {
        x[i] = (double)value_at(i, k);
        mixing.mass[i] = 1;
    }
    for (int r = 0; r < j->rounds; r++) {
        double was[REPLICAS];
        memcpy(was, x, sizeof was);
        ls_mixing_make(&j->gossip, r, mixing.mass, &mixing);
        for (int i = 0; i < REPLICAS; i++) {
            x[i] = 0;
            for (int l = 0; l < REPLICAS; l++) x[i] += mixing.of[i][l] * was[l];
        }
    }
    *mean_p = 0;
    for (int i = 0; i < REPLICAS; i++) *mean_p += mixing.mass[i] * x[i] / REPLICAS;
}

static void test_graphs(void **arg) {
    (void)arg;
    for (int graph = 0; graph <= LS_GRAPH_RANDOM; graph++)
        for (int algorithm = 0; algorithm <= LS_GOSSIP_SGP; algorithm++) {
            ls_gossip g = {(ls_sync_graph)graph, (ls_sync_algorithm)algorithm, REPLICAS, 4};
            static const int workers[] = {2, 3, 5, 8, 11, 16};
            job one = {.rounds = ROUNDS};
            run(&one, &g, 1, 0, 1 << 20);
            size_t n = one.model.nfloats;
            for (size_t k = 0; k < n; k += 37) {
                double x[REPLICAS], mean = 0;
                reference(&one, k, x, &mean);
                assert_true(fabs((double)one.replicas[k] - mean) < 1e-6);
                for (int i = 0; i < REPLICAS; i++)
                    assert_true(fabs((double)one.replicas[(size_t)(1 + i) * n + k] - x[i]) < 1e-6);
            }
            for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
                job many = {.rounds = ROUNDS, .apart = i % 2 == 1};
                run(&many, &g, workers[i], (int)i % 2, i < 3 ? 1 << 20 : 10000);
                assert_memory_equal(many.replicas, one.replicas,
                                    (1 + REPLICAS) * n * sizeof(float));
                end(&many);
            }
            end(&one);
        }
}

/* After log2 rounds of partners by XOR, all replicas have the bits of the mean by the tree. */
static void test_exact(void **arg) {
    (void)arg;
    ls_gossip g = {LS_GRAPH_EXPONENTIAL, LS_GOSSIP_DPSGD, REPLICAS, 0};
    job j = {.rounds = 3};
    run(&j, &g, 3, 0, 10000);
    size_t n = j.model.nfloats;
    for (size_t k = 0; k < n; k++) {
        float x[REPLICAS];
        for (int i = 0; i < REPLICAS; i++) x[i] = value_at(i, k);
        float tree = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
        for (int i = 0; i <= REPLICAS; i++)
            assert_true(j.replicas[(size_t)i * n + k] == tree / REPLICAS);
    }
    end(&j);
}

/* On a ring of eight the longest wave shrinks by (1 + 2 cos(45 degrees)) / 3 in each round. */
static void test_ring(void **arg) {
    (void)arg;
    ls_gossip g = {LS_GRAPH_RING, LS_GOSSIP_DPSGD, REPLICAS, 0};
    job j = {.rounds = 5};
    run(&j, &g, 4, 0, 10000);
    size_t n = j.model.nfloats;
    double want = pow(0.8047378541, 5);
    for (size_t k = 1; k < n; k += 2)
        for (int i = 0; i < REPLICAS; i++)
            assert_true(fabs((double)j.replicas[(size_t)(1 + i) * n + k] -
                             want * (double)value_at(i, k)) < 1e-6);
    end(&j);
}

/* A slow worker holds up its neighbours of each round, and no others: with rounds that all decide,
 * this would never end. */
static void test_slow_worker(void **arg) {
    (void)arg;
    ls_gossip g = {LS_GRAPH_EXPONENTIAL, LS_GOSSIP_DPSGD, REPLICAS, 0};
    job one = {.rounds = ROUNDS}, slow = {.rounds = ROUNDS, .apart = true, .slow = true};
    run(&one, &g, 1, 0, 10000);
    run(&slow, &g, REPLICAS, 0, 10000);
    assert_memory_equal(slow.replicas, one.replicas,
                        (1 + REPLICAS) * one.model.nfloats * sizeof(float));
    end(&slow);
    end(&one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        plain_unit_test(test_graphs),
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_slow_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
