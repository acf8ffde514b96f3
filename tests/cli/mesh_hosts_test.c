/* mesh_hosts_test.c - workers of two hosts divide slices, chunks and experts: the bits of one
 * worker, also if a worker is killed, if a host is lost and another one comes, and if the number of
 * workers of one host alone can't divide the model. */
/* ctest: slow busy seconds=15 */
#include "cli/hosts.h"

enum { STEPS = 30 };

#define CHUNKS                                                                                     \
    "--set train.virtual_workers=2 --set train.batch=2 --set parallel.context_virtual=2 "          \
    "--set parallel.tensor_virtual=3 "
#define EXPERTS                                                                                    \
    "--set train.virtual_workers=2 --set train.batch=4 --set train.micro_batch=2 "                 \
    "--set model.experts=4 --set model.ffn=24 --set parallel.expert_virtual=2 "

static const char SETTINGS[] =
    "--set model.kind=llama --set model.layers=1 --set train.steps=%d --set optim.warmup=2 --set "
    "train.eval_every=0 --set checkpoint.every=10 --set log.every=1000 --set "
    "survival.heartbeat_s=4 %s";

static host start(int workers, const char *run, const char *how, const char *more) {
    char settings[1024];
    snprintf(settings, sizeof settings, SETTINGS, STEPS, more);
    return host_train(workers, run, how, settings);
}

static void train_alone(const char *run, const char *model) {
    host h = start(1, run, "", model);
    host_expect(&h, 0, NULL);
}

/* Starts two hosts with a and b workers, which pause at a step in the middle. */
static pair begin(const char *run, const char *more, int a, int b) {
    pace(run, STEPS / 3);
    pair p = pair_begin(start, run, a, 2, more);
    p.b = pair_join(&p, b, "");
    await_step(run, STEPS / 3, &p.a);
    return p;
}

static void check(pair *p, const char *like) {
    let_go(p->run);
    host_expect(&p->a, 0, NULL);
    host_expect(&p->b, 0, "the run has ended");
    check_run(like, p->run, &p->a);
}

/* Five workers form no mesh: the first host can't train alone with all of its own. A limit of their
 * memory is planned for a whole mesh. */
static void test_chunks(void **state) {
    (void)state;
    train_alone("one", CHUNKS);
    pair p = begin("chunks",
                   CHUNKS "--set parallel.mesh.context=2 --set parallel.mesh.tensor=3 "
                          "--set parallel.memory_limit_mb=100",
                   5, 1);
    host_signal_child(&p.a, SIGKILL);
    check(&p, "one");
    assert_true(host_says(&p.b, "beginning after step 0, with 6 workers on 2 hosts, 1 of them"));
}

/* Gradients of chunks are summed by all workers, so there is one copy of sharded state, and hosts
 * say so. */
static void test_copies(void **state) {
    (void)state;
    pair p = begin("copies", CHUNKS "--set survival.copies=2", 1, 1);
    check(&p, "one");
    assert_true(host_says(&p.a, "2 workers can't keep survival.copies 2 of the state"));
}

static void test_experts(void **state) {
    (void)state;
    train_alone("moe", EXPERTS);
    pair p = begin("experts", EXPERTS "--set parallel.mesh.expert=2", 1, 1);
    host_signal_child(&p.b, SIGKILL);
    host_kill(&p.b);
    p.b = pair_join(&p, 1, "");
    host_await(&p.b, "with 2 workers on 2 hosts, 1 of them here");
    check(&p, "moe");
}

static int make(void **state) {
    setenv("LOCKSTEP_KEY", "11223344556677889900aabbccddeeff00112233445566778899aabbccddeeff", 1);
    return folder_make(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chunks), cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_experts)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
