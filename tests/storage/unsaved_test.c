/* unsaved_test.c - a run without a checkpoint: nobody is advised to destroy one that trains. */
#include "storage/unsaved.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "config/write_config.h"
#include "folder.h"
#include "storage/checkpoint.h"
#include "storage/lock.h"
#include "test.h"

static void put(const char *name, const char *text) {
    char path[256];
    ls_error e = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    assert_ls_ok(ls_file_write(path, text, strlen(text), &e), e);
}

/* The config of a run; the keys of checkpoints are given. */
static void put_config(int every, double minutes, ls_config_best best, int eval_every) {
    ls_config *c = calloc(1, sizeof *c);
    ls_buf text = {0};
    ls_error e = {0};
    assert_ls_ok(ls_config_read("configs/tiny.yaml", c, &e), e);
    c->train.steps = 1000;
    c->train.eval_every = eval_every;
    c->checkpoint.every = every;
    c->checkpoint.minutes = minutes;
    c->checkpoint.best = best;
    ls_config_write(c, &text);
    ls_buf_append(&text, "", 1);
    put("config.yaml", text.data);
    ls_buf_free(&text);
    free(c);
}

static void expect_why(const char *text) {
    ls_error e;
    char *path = NULL;
    assert_ls_fails(ls_checkpoint_resolve(folder, &path, &e), LS_EIO, text, e);
    assert_null(strstr(e.msg, "remove"));
}

/* From the moment that the lock is taken. */
static void test_training(void **state) {
    (void)state;
    ls_lock l = LS_LOCK_NONE;
    ls_error e = {0};
    assert_ls_ok(ls_lock_take(folder, 0, &l, &e), e);
    expect_why("has no checkpoint yet: its training is being started (process ");
    put_config(300, 0, LS_BEST_OFF, 100);
    expect_why(", at step 0 of 1000; the first is due at step 300");
    put("metrics.jsonl", "{\"step\": 7, \"loss\": 1.5}\n{\"step\": 41, \"loss\": 1.5}\n{\"st");
    expect_why(", at step 41 of 1000; the first is due at step 300");
    put_config(300, 0, LS_BEST_ON, 100);
    expect_why("the first is due at step 100");
    put_config(0, 2.5, LS_BEST_OFF, 100);
    expect_why("the first is due at its end, or 2.5 minutes after its start");
    put_config(40, 0, LS_BEST_OFF, 100);
    expect_why("that of step 40 is being written, or has failed, as its log then says");
    ls_lock_drop(&l);
    expect_why("has no checkpoint: its training ended after step 41, before the first one; begin "
               "it again with 'lockstep train --resume ");
}

/* A link to a checkpoint that does not exist yet is answered by its run. */
static void test_links(void **state) {
    (void)state;
    char path[256], *found = NULL;
    ls_lock l = LS_LOCK_NONE;
    ls_error e = {0};
    put_config(300, 0, LS_BEST_OFF, 100);
    assert_ls_ok(ls_lock_take(folder, 0, &l, &e), e);
    snprintf(path, sizeof path, "%s/checkpoints/best", folder);
    assert_ls_fails(ls_checkpoint_resolve(path, &found, &e), LS_EIO, "it is being trained", e);
    ls_lock_drop(&l);
    snprintf(path, sizeof path, "%s/none/checkpoints/best", folder);
    assert_ls_fails(ls_checkpoint_resolve(path, &found, &e), LS_EIO, "does not exist", e);
}

/* The lock is another user's, who alone can open it. */
static void test_foreign_lock(void **state) {
    (void)state;
    char path[256];
    if (geteuid() == 0) skip_because("root can open every lock");
    put_config(300, 0, LS_BEST_OFF, 100);
    put("lock", "");
    snprintf(path, sizeof path, "%s/lock", folder);
    assert_int_equal(chmod(path, 0), 0);
    expect_why("only its owner can see");
}

/* Neither a lock nor a config makes a directory a run. */
static void test_no_run(void **state) {
    (void)state;
    expect_why("is neither a run nor a complete checkpoint");
    put_config(300, 0, LS_BEST_OFF, 100);
    expect_why("is neither a run nor a complete checkpoint");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_training, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_links, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_foreign_lock, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_no_run, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
