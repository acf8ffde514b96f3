/* room_test.c - the room that a checkpoint is expected to take, beside what its tensors take when
 * they are written: for each optimizer, each mode that has replicas, and what compression keeps. */
#include "storage/room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

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

/* A limit of the size of files that no checkpoint can keep ends a run before it begins. */
static void test_file_limit(void **state) {
    (void)state;
    ls_config c;
    ls_layout l;
    ls_error e = {0};
    struct rlimit before, low;
    assert_ls_ok(ls_config_load("configs/tiny.yaml", NULL, 0, &c, &e), e);
    assert_ls_ok(ls_layout_make(&c, 2, NULL, &l, &e), e);
    double file = ls_room_file_nbytes(&l.plan), all = ls_room_checkpoint_nbytes(&l.plan, 0, 0);
    assert_true(file > 0.5 * all && file < all);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = (struct rlimit){(rlim_t)file - 1, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    ls_status s = ls_room_check(folder, &(ls_room_wanted){.checkpoints = 1, .file = file}, &e);
    ls_status other = ls_room_check(folder, &(ls_room_wanted){.checkpoints = 1}, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(s, LS_EIO);
    assert_non_null(strstr(e.msg, "`ulimit -f` allows"));
    assert_int_equal(other, LS_OK);
    ls_layout_free(&l);
}

/* Replaces that of the C library: with this errno it fails. */
static int fails_with;

int statvfs(const char *path, struct statvfs *v) {
    int fd = open(path, O_PATH | O_CLOEXEC);
    int failed = fd < 0 ? -1 : fstatvfs(fd, v);
    if (fd >= 0) close(fd);
    errno = fails_with ? fails_with : errno;
    return fails_with ? -1 : failed;
}

/* What a sandbox does not answer refuses no run; a disk that fails does. */
static void test_unknown(void **state) {
    (void)state;
    ls_error e = {0};
    const ls_room_wanted much = {.checkpoints = 1, .checkpoint = 1e18};
    assert_ls_fails(ls_room_check(folder, &much, &e), LS_EIO, "has room for", e);
    fails_with = EIO;
    assert_ls_fails(ls_room_check(folder, &much, &e), LS_EIO, "can't get its free space", e);
    fails_with = EPERM;
    assert_ls_ok(ls_room_check(folder, &much, &e), e);
    fails_with = ENOSYS;
    assert_ls_ok(ls_room_check(folder, &much, &e), e);
    fails_with = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_estimate, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_file_limit, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_unknown, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
