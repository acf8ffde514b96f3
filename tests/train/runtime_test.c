/* runtime_test.c - the differences between plain and supervised workers. */
#include "train/runtime.h"

#include <signal.h>
#include <stdlib.h>

#include "test.h"
#include "train/audit.h"
#include "train/loop.h"

static const ls_runtime *const both[] = {&ls_runtime_plain, &ls_runtime_supervised};

static void test_tables(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const ls_runtime *r = both[i];
        assert_true(r->when_lost && r->finish && r->connect && r->has_made && r->take_up &&
                    r->asked && r->evict && r->may_rest);
    }
    assert_false(ls_runtime_plain.survives);
    assert_true(ls_runtime_supervised.survives);
}

/* A worker rests where another was lost, if the state outlives both and the host keeps workers. */
static void test_rest(void **state) {
    (void)state;
    const ls_status hows[] = {LS_OK, LS_EPEER, LS_EABORT, LS_ETIMEOUT, LS_EINVAL, LS_EIO};
    for (int stays = 0; stays < 2; stays++) {
        ls_host h = {.survival = {.stays = stays}};
        for (size_t i = 0; i < sizeof hows / sizeof *hows; i++) {
            bool lost = hows[i] == LS_EPEER || hows[i] == LS_EABORT;
            assert_false(ls_runtime_plain.may_rest(&h, hows[i]));
            assert_int_equal(ls_runtime_supervised.may_rest(&h, hows[i]), stays && lost);
        }
    }
}

static void test_evict(void **state) {
    (void)state;
    ls_board_slot slot = {.action = -1};
    ls_loop l = {.steps = 7, .m = {.slot = &slot, .worker = 2}};
    ls_verdict v = {.culprit = 1};
    ls_error e = {0};
    assert_int_equal(ls_runtime_plain.evict(&l, &v, "parameters", &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "audit after step 7: worker 1 differs from the others in "));
    assert_ls_ok(ls_runtime_supervised.evict(&l, &v, "parameters", &e), e);
    assert_int_equal(slot.leaves, 0); /* another worker caused it */
    v.culprit = 2;
    assert_ls_ok(ls_runtime_supervised.evict(&l, &v, "parameters", &e), e);
    assert_int_equal(slot.leaves, 1);
}

/* With a worker's slot: first without a signal, then with one. */
static ls_status ask(ls_group *g, ls_board_slot *slot, void *arg, ls_error *e) {
    (void)g;
    (void)arg;
    (void)e;
    ls_loop l = {.m = {.slot = slot}};
    const ls_runtime *plain = &ls_runtime_plain, *supervised = &ls_runtime_supervised;
    assert_int_equal(plain->asked(&l), LS_ASKED_NOTHING);
    assert_int_equal(supervised->asked(&l), LS_ASKED_NOTHING);
    l.evicts = true; /* all begin a new view */
    assert_int_equal(supervised->asked(&l), LS_ASKED_RENEW);
    slot->asked = LS_ASKED_STOP;
    assert_int_equal(supervised->asked(&l), LS_ASKED_STOP);
    slot->asked = LS_ASKED_NOTHING;
    l.evicts = false;
    assert_int_equal(raise(SIGTERM), 0);
    assert_int_equal(plain->asked(&l), LS_ASKED_STOP); /* the request is for all workers */
    assert_int_equal(slot->leaves, 0);
    assert_int_equal(supervised->asked(&l), LS_ASKED_RENEW); /* the request is for this worker */
    assert_int_equal(slot->leaves, 1);
    slot->asked = LS_ASKED_STOP;
    assert_int_equal(supervised->asked(&l), LS_ASKED_STOP);
    return LS_OK;
}

static void test_asked(void **state) {
    (void)state;
    ls_workers w = {.n = 1, .transport = "thread", .timeout_s = -1};
    ls_error e = {0};
    assert_ls_ok(ls_workers_run(&w, ask, NULL, &e), e);
}

static void check_finish(int64_t ended, int64_t folder_step, ls_status want, bool unfinished) {
    ls_run r = {.dir = "run", .config = {.train = {.steps = 20}}};
    ls_folder_notes notes = {.step = folder_step};
    ls_folder folder = {.notes = &notes};
    ls_host h = {.run = &r, .folder = &folder, .survival = {.ended = ended}};
    h.notes = &h.own_notes;
    bool got = !unfinished;
    ls_error e = {0};
    assert_int_equal(ls_runtime_supervised.finish(&h, !unfinished, &got, &e), want);
    if (want == LS_OK) assert_int_equal(got, unfinished);
}

/* Plain workers report whether they stopped; for supervised ones the supervisor knows. */
static void test_finish(void **state) {
    (void)state;
    bool unfinished = false;
    ls_error e = {0};
    assert_ls_ok(ls_runtime_plain.finish(NULL, true, &unfinished, &e), e);
    assert_true(unfinished);
    assert_ls_ok(ls_runtime_plain.finish(NULL, false, &unfinished, &e), e);
    assert_false(unfinished);
    check_finish(20, 0, LS_OK, false);
    check_finish(7, 0, LS_OK, true);
    check_finish(-1, 0, LS_OK, false); /* this host has left the run, others continue */
    check_finish(INT64_MAX, 20, LS_OK, false);
    check_finish(INT64_MAX, 7, LS_EPEER, false); /* no worker has made a step */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables), cmocka_unit_test(test_rest),   cmocka_unit_test(test_evict),
        cmocka_unit_test(test_asked),  cmocka_unit_test(test_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
