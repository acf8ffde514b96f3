/* journal_test.c - updates that are killed at any instruction, repaired and repeated. */
/* ctest: no-tsan: its threads are in processes that are killed; exec_test updates with threads */
#include "optim/journal.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "networks/gpt2.h"
#include "optim/apply.h"
#include "test.h"

enum { KILLS = 60, FEW_KILLS = 12, NTHREADS = 2 }; /* of each rule */

/* All of it in memory that a dead child leaves to its parent. */
typedef struct setup {
    ls_optim optim;
    ls_model model;
    size_t n;
    ls_journal journal;
    void *room;
    uint16_t *params; /* bf16, beside the masters */
    float *state;     /* [LS_FLAT_MOST][n] */
    float *grads;     /* [n] */
} setup;

static void *shared(size_t nbytes) {
    void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

static void set_up(setup *s, ls_update_rule rule) {
    ls_error e = {0};
    ls_gpt_config c = {2, 64, 4, 16, 300};
    *s = (setup){.optim = ls_optim_usual()};
    s->optim.ema = 0.9;
    s->optim.groups[0].rule = rule;
    assert_ls_ok(ls_gpt_create(&c, &s->model, &e), e);
    ls_optim_place(&s->optim, &s->model);
    s->n = s->model.nfloats;
    size_t room = ls_whole_nbytes(&s->optim, &s->model, LS_F32);
    if (room) s->room = shared(room);
    s->journal = (ls_journal){shared(s->n / LS_BLOCK * sizeof(atomic_uint)),
                              shared(NTHREADS * sizeof(ls_journal_saved)), NTHREADS};
    s->params = shared(s->n * sizeof *s->params);
    s->state = shared(LS_FLAT_MOST * s->n * sizeof *s->state);
    s->grads = shared(s->n * sizeof *s->grads);
}

static void gradients(setup *s, int step) {
    for (size_t i = 0; i < s->n; i++)
        s->grads[i] = (float)((int)((i * 7 + (size_t)step * 13) % 1000) - 500) / 5000.0f;
}

static ls_flat flat_of(const setup *s) {
    return ls_flat_of_state(s->state, NULL, ls_optim_nstates(&s->optim), s->n);
}

static void update(setup *s, const ls_compute *c, int step, bool journal) {
    const ls_optim_update u = {.optim = &s->optim,
                               .model = &s->model,
                               .step = {step, 1e-2, 1, 0},
                               .grads_type = LS_F32,
                               .params_type = LS_BF16,
                               .grads = s->grads,
                               .params = s->params,
                               .flat = flat_of(s),
                               .journal = journal ? &s->journal : NULL,
                               .room = s->room,
                               .steps = (uint32_t)step + 1};
    ls_optim_apply(&u, c, 0, s->n);
}

/* The number of blocks that have had the step. */
static size_t done_blocks(const setup *s, int step) {
    size_t done = 0;
    for (size_t at = 0; at < s->n; at += LS_BLOCK)
        done += ls_journal_has(&s->journal, at, (uint32_t)step + 1);
    return done;
}

/* A process that updates until it is killed: once this many blocks have had the step, or after
 * about `us` microseconds if that is 0. */
static void update_and_die(setup *s, int step, size_t blocks, unsigned us) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        ls_error e = {0};
        ls_compute c;
        if (ls_compute_init(&c, NTHREADS, 16, &e) == LS_OK) update(s, &c, step, true);
        pause();
        _exit(1);
    }
    if (!blocks) usleep(us);
    while (done_blocks(s, step) < blocks) sched_yield();
    kill(pid, SIGKILL);
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFSIGNALED(how));
}

static void check_killed(ls_update_rule rule) {
    setup cut, whole;
    ls_error e = {0};
    ls_compute c;
    assert_ls_ok(ls_compute_init(&c, 1, 16, &e), e);
    set_up(&cut, rule);
    set_up(&whole, rule);
    int half_done = 0, kills = ncases(FEW_KILLS, KILLS);
    for (int step = 0; step < kills; step++) {
        gradients(&cut, step);
        gradients(&whole, step);
        update(&whole, &c, step, false);
        size_t nblocks = cut.n / LS_BLOCK;
        update_and_die(&cut, step, (size_t)step * 7 % nblocks, 200 + (unsigned)(step * 37 % 400));
        size_t done = done_blocks(&cut, step);
        half_done += done > 0 && done < nblocks;
        const ls_flat flat = flat_of(&cut);
        ls_journal_repair(&cut.journal, &flat);
        ls_journal_repair(&cut.journal, &flat); /* may be repeated */
        update(&cut, &c, step, true);
        assert_int_equal(done_blocks(&cut, step), cut.n / LS_BLOCK);
        assert_memory_equal(cut.state, whole.state, LS_FLAT_MOST * cut.n * sizeof(float));
        assert_memory_equal(cut.params, whole.params, cut.n * sizeof *cut.params);
    }
    print_message("%s: %d of %d updates were killed half done\n", ls_optim_rules[rule].name,
                  half_done, kills);
    ls_compute_close(&c);
    ls_model_free(&cut.model);
    ls_model_free(&whole.model);
}

static void test_killed(void **arg) {
    (void)arg;
    for (int rule = 0; rule < LS_NRULES; rule++) check_killed((ls_update_rule)rule);
}

/* A block that was being changed is restored, wherever its worker dies. */
static void check_torn_block(int nstates) {
    setup s;
    set_up(&s, LS_RULE_ADAMW);
    const ls_flat flat = ls_flat_of_state(s.state, NULL, nstates, s.n);
    const size_t at = 3 * LS_BLOCK, n = (size_t)flat.n * s.n;
    for (size_t i = 0; i < n; i++) s.state[i] = (float)i;
    ls_journal_set(&s.journal, 0, s.n, 4);
    ls_journal_begin(&s.journal, 1, at, &flat);
    for (int k = 0; k < flat.n; k += 2)
        for (size_t i = 0; i < LS_BLOCK; i++) flat.of[k][at + i] = -1;
    ls_journal_repair(&s.journal, &flat);
    for (size_t i = 0; i < n; i++) assert_true(s.state[i] == (float)i);
    for (int k = 0; k < flat.n; k++)
        for (size_t i = 0; i < LS_BLOCK; i++) flat.of[k][at + i] = -1;
    ls_journal_end(&s.journal, at, 5); /* complete: the saved block is not restored */
    ls_journal_repair(&s.journal, &flat);
    for (int k = 0; k < flat.n; k++)
        for (size_t i = 0; i < LS_BLOCK; i++) assert_true(flat.of[k][at + i] == -1.0f);
    assert_true(ls_journal_has(&s.journal, at, 5) && ls_journal_has(&s.journal, at - 1, 4));
    ls_model_free(&s.model);
}

static void test_torn_block(void **arg) {
    (void)arg;
    for (int nstates = 0; nstates < LS_FLAT_CHANGED; nstates++) check_torn_block(nstates);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_torn_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
