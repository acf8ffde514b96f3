/* room_test.c - the room that a checkpoint is expected to take, beside what its tensors take when they
 * are written: for each optimizer, each mode that has replicas, and what compression keeps. */
#include "storage/room.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "config/relations.h"
#include "folder.h"
#include "storage/state.h"
#include "test.h"
#include "train/layout.h"

static double written(const ls_state_tensors *t) {
    ls_error e = {0};
    struct stat st;
    char *path = ls_format("%s/tensors", folder);
    assert_ls_ok(ls_safetensors_write(path, t->list, t->n, &e), e);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(remove(path), 0);
    free(path);
    return (double)st.st_size;
}

static double checkpoint_of(const ls_plan *p) {
    size_t floats = p->share.floats, nstates = (size_t)ls_optim_nstates(&p->share.optim);
    size_t errors = p->share.has_errors ? (size_t)p->share.V * p->share.error_floats : 0;
    float *flat = LS_NEW_ARRAY(float, (1 + nstates) * floats + errors);
    ls_train_state s = {.model = p->share.model,
                        .optim = &p->share.optim,
                        .flat = ls_flat_of_state(flat, NULL, (int)nstates, floats),
                        .replicas = p->share.islands,
                        .errors = flat + (1 + nstates) * floats,
                        .nerrors = errors ? p->share.V : 0,
                        .plan = p};
    ls_state_tensors weights = ls_state_weights(&s), states = ls_state_optimizer(&s);
    double nbytes = written(&weights) + written(&states);
    ls_state_tensors_free(&weights);
    ls_state_tensors_free(&states);
    free(flat);
    return nbytes;
}

static void test_estimate(void **state) {
    (void)state;
    static const char *const sets[] = {
        "train.steps=100",      "optim.ema=0.9",         "optim.optimizer=sgd",
        "optim.optimizer=muon", "optim.optimizer=soap",  "optim.optimizer=adafactor",
        "optim.optimizer=lion", "optim.optimizer=lamb",  "optim.optimizer=schedule-free",
        "sync.mode=diloco",     "sync.mode=local",       "sync.mode=gossip",
        "compress.kind=topk",   "compress.kind=powersgd"};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        ls_config c;
        ls_layout l;
        ls_error e = {0};
        const char *with[] = {sets[i], "optim.schedule=constant"}; /* schedule-free needs it */
        assert_ls_ok(ls_config_load("configs/tiny.yaml", with, 2, &c, &e), e);
        assert_ls_ok(ls_layout_make(&c, 2, NULL, &l, &e), e);
        double real = checkpoint_of(&l.plan), room = ls_room_checkpoint_nbytes(&l.plan, 0, 0);
        if (room < real || room > 1.1 * real)
            fail_msg("%s: %.0f bytes expected, %.0f written", sets[i], room, real);
        ls_layout_free(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_estimate, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
