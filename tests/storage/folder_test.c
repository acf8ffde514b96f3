/* folder_test.c - a run directory is found or made, locked, filled, and removed if the start fails;
 * what is deleted from it is restored. */
#include "storage/folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "config/write_config.h"
#include "folder.h"
#include "networks/gpt2.h"
#include "small_plan.h"
#include "storage/checkpoint.h"
#include "test.h"

static char dir[96];
static ls_config config;
static ls_buf config_text;
static ls_model model;
static ls_plan plan;

static int set_up(void **state) {
    (void)state;
    ls_error e = {0};
    ls_gpt_config c = {2, 24, 3, 32, 300};
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &config, &e), e);
    assert_ls_ok(ls_gpt_create(&c, &model, &e), e);
    plan.share.model = &model;
    plan.share.optim = ls_optim_usual();
    ls_config_write(&config, &config_text);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    ls_buf_free(&config_text);
    ls_model_free(&model);
    return 0;
}

static int make_dir(void **state) {
    if (make_folder(state) != 0) return -1;
    snprintf(dir, sizeof dir, "%s/new/run", folder);
    return 0;
}

static ls_folder_run run_with(bool resumes) {
    return (ls_folder_run){.dir = dir,
                           .config = &config,
                           .config_text = &config_text,
                           .model = &model,
                           .plan = &plan,
                           .resumes = resumes};
}

static bool has(const char *name) { return ls_file_exists_in(dir, name); }

/* A start that fails removes what it made, and nothing else. */
static void test_abandoned(void **state) {
    (void)state;
    ls_error e = {0};
    ls_folder *f = NULL;
    ls_folder_run r = run_with(false);
    char *above = ls_format("%s/new", folder);
    assert_ls_ok(ls_folder_open(&r, false, &f, &e), e);
    assert_true(f->notes->fresh && has("lock"));
    assert_ls_ok(ls_folder_take_up(f, &e), e);
    assert_true(has("tokens.bin") && has("config.yaml") && has("checkpoints"));
    ls_folder_close(f, true);
    assert_false(ls_file_exists(above));
    free(above);
}

/* The directory of a run without a checkpoint is taken by a new one, which removes nothing before
 * it has its data; one with a checkpoint only if that is asked for. */
static void replaced(const ls_folder_run *r) {
    ls_error e = {0};
    ls_folder *f = NULL;
    char *checkpoint = ls_format("%s/checkpoints/step-3", r->dir);
    ls_folder_run overwrites = *r;
    overwrites.overwrites = true;
    assert_ls_ok(ls_folder_open(r, false, &f, &e), e);
    assert_true(f->notes->fresh && f->notes->old);
    ls_folder_close(f, true);
    assert_true(has("tokens.bin") && has("config.yaml") && has("lock"));
    assert_int_equal(mkdir(checkpoint, 0755), 0);
    assert_ls_fails(ls_folder_open(r, false, &f, &e), LS_EINVAL, "--resume", e);
    assert_ls_ok(ls_folder_open(&overwrites, false, &f, &e), e);
    ls_folder_close(f, true);
    assert_int_equal(rmdir(checkpoint), 0);
    free(checkpoint);
}

/* Once training has begun, the directory stays. */
static void test_stays(void **state) {
    (void)state;
    ls_error e = {0};
    ls_folder *f = NULL;
    bool old = true;
    ls_folder_run r = run_with(false), resumes = run_with(true);
    assert_ls_ok(ls_folder_open(&r, false, &f, &e), e);
    assert_ls_ok(ls_folder_take_up(f, &e), e);
    assert_ls_ok(ls_folder_begin_training(f, &old, &e), e);
    assert_false(old);
    ls_folder_stay(f);
    ls_folder_close(f, true);
    assert_true(has("tokens.bin") && has("config.yaml"));
    replaced(&r);
    assert_ls_ok(ls_folder_open(&resumes, false, &f, &e), e);
    assert_false(f->notes->fresh);
    assert_ls_ok(ls_folder_take_up(f, &e), e);
    assert_int_equal(f->notes->step, 0);
    assert_ls_ok(ls_folder_begin_training(f, &old, &e), e);
    assert_true(old);
    ls_folder_close(f, false);
}

/* Another process holds the lock; a directory of other files is not touched. */
static void test_refused(void **state) {
    (void)state;
    ls_error e = {0};
    ls_folder *f = NULL, *other = NULL;
    int how = 0;
    ls_folder_run r = run_with(true);
    assert_ls_ok(ls_folder_open(&r, false, &f, &e), e);
    pid_t pid = fork();
    if (pid == 0) {
        ls_status s = ls_folder_open(&r, false, &other, &e);
        _exit(s == LS_EINVAL && strstr(e.msg, "is in use by another lockstep") ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    ls_folder_close(f, true);
    char *path = ls_format("%s/other", folder);
    assert_ls_ok(ls_file_write(path, "x", 1, &e), e);
    snprintf(dir, sizeof dir, "%s", folder);
    assert_ls_fails(ls_folder_open(&r, false, &f, &e), LS_EINVAL, "(it contains 'other')", e);
    assert_true(ls_file_exists(path));
    assert_false(has("lock"));
    free(path);
    /* a run that has lost its config */
    snprintf(dir, sizeof dir, "%s/lost", folder);
    assert_int_equal(mkdir(dir, 0755), 0);
    path = ls_format("%s/lock", dir);
    assert_ls_ok(ls_file_write(path, "", 0, &e), e);
    free(path);
    path = ls_format("%s/checkpoints", dir);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_ls_fails(ls_folder_open(&r, false, &f, &e), LS_EINVAL, "config.yaml is missing", e);
    assert_true(ls_file_exists(path));
    free(path);
}

/* Checks the space and the permissions, and changes nothing. A complete run needs no more space. */
static void test_check(void **state) {
    (void)state;
    ls_error e = {0};
    int how = 0;
    ls_folder_run r = run_with(true);
    ls_plan huge = plan;
    huge.share.islands = 1 << 30; /* each replica is saved */
    assert_ls_ok(ls_folder_check(&r, &e), e);
    r.plan = &huge;
    assert_ls_fails(ls_folder_check(&r, &e), LS_EIO, "has room for", e);
    assert_false(ls_file_exists(dir));
    char *last = ls_checkpoint_path(dir, config.train.steps - 1);
    assert_ls_ok(ls_file_make_dirs(last, &e), e);
    assert_ls_fails(ls_folder_check(&r, &e), LS_EIO, "has room for", e);
    free(last);
    last = ls_checkpoint_path(dir, config.train.steps);
    assert_ls_ok(ls_file_make_dirs(last, &e), e);
    assert_ls_ok(ls_folder_check(&r, &e), e);
    free(last);
    assert_int_equal(chmod(folder, 0755) || chmod(dir, 0555), 0);
    pid_t pid = fork();
    if (pid == 0) { /* root may write everywhere */
        if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
        _exit(ls_folder_check(&r, &e) == LS_EIO && strstr(e.msg, "can't be written") ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    assert_int_equal(chmod(dir, 0755), 0);
}

/* There must be room for the newest checkpoints, one that is being written, and the best. */
static void test_room(void **state) {
    (void)state;
    static const struct {
        int64_t every;
        ls_config_best best;
        const char *want;
    } cases[] = {
        {10, LS_BEST_OFF, "and 3 checkpoints, "},  {10, LS_BEST_AUTO, "and 4 checkpoints, "},
        {10, LS_BEST_ON, "and 4 checkpoints, "},   {25, LS_BEST_OFF, "and 2 checkpoints, "},
        {25, LS_BEST_AUTO, "and 2 checkpoints, "}, {25, LS_BEST_ON, "and 3 checkpoints, "}};
    const ls_config was = config;
    ls_plan huge = plan;
    huge.share.islands = 1 << 30;
    ls_folder_run r = run_with(true);
    r.plan = &huge;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_error e = {0};
        config.checkpoint.every = cases[i].every;
        config.checkpoint.best = cases[i].best;
        assert_ls_fails(ls_folder_check(&r, &e), LS_EIO, cases[i].want, e);
    }
    config = was;
}

/* ---- a run whose workers were lost ---- */

typedef struct follower {
    ls_plan plan;
    ls_store *store;
    ls_folder_state state;
    ls_folder_run run;
    ls_folder *f;
} follower;

/* A run that has begun to train. steps: of the state in memory; -1: there is none. */
static void begin(follower *x, int64_t steps) {
    ls_error e = {0};
    ls_scaler scaler = {0};
    bool old = true;
    *x = (follower){.plan = small_plan(&model, 1, 0, 0), .run = run_with(false)};
    assert_ls_ok(ls_store_make(&x->plan.share,
                               &(ls_store_config){.most = 1, .threads = 1, .carried_nbytes = 1},
                               &x->store, &e),
                 e);
    if (steps >= 0) ls_store_mark_filled(x->store, &x->plan.share, 0, steps);
    if (steps >= 0) ls_store_begin(x->store, steps, &scaler);
    x->run.store = x->store;
    x->run.state = &x->state;
    assert_ls_ok(ls_folder_open(&x->run, false, &x->f, &e), e);
    assert_ls_ok(ls_folder_take_up(x->f, &e), e);
    assert_ls_ok(ls_folder_begin_training(x->f, &old, &e), e);
    ls_folder_stay(x->f);
}

static void end(follower *x) {
    ls_folder_close(x->f, false);
    ls_store_free(x->store);
    ls_plan_free(&x->plan);
}

static void remove_file(const char *name) {
    char *path = ls_format("%s/%s", dir, name);
    assert_int_equal(unlink(path), 0);
    free(path);
}

static void write_checkpoint(int64_t step) {
    ls_error e = {0};
    float *flat = LS_NEW_ARRAY(float, 3 * model.nfloats);
    ls_train_state s = {.model = &model,
                        .step = step,
                        .optim = &plan.share.optim,
                        .flat = ls_flat_of_state(flat, NULL, 2, model.nfloats)};
    ls_data_files files;
    assert_ls_ok(ls_data_files_read(dir, &files, &e), e);
    ls_checkpoint_extra extra = {.data = &files, .config = &config_text};
    assert_ls_ok(ls_checkpoint_write(dir, &s, &extra, &e), e);
    ls_data_files_free(&files);
    free(flat);
}

/* The state in memory is used, and what was removed from the directory is restored; but the
 * directory of another run in its place is refused. */
static void test_follow(void **state) {
    (void)state;
    ls_error e = {0};
    follower x;
    begin(&x, 7);
    remove_file("config.yaml");
    remove_file("tokens.bin");
    assert_ls_ok(ls_folder_follow(x.f, &e), e);
    assert_int_equal(x.f->notes->step, 7);
    assert_true(has("config.yaml") && has("tokens.bin"));

    assert_ls_ok(ls_file_remove_tree(dir, &e), e);
    assert_ls_ok(ls_folder_follow(x.f, &e), e);
    assert_true(has("lock") && has("config.yaml") && has("tokenizer.json") && has("tokens.bin"));
    assert_true(ls_lock_is_held(&x.f->lock, dir));

    char *moved = ls_format("%s/moved", folder), *path = ls_format("%s/config.yaml", dir);
    assert_int_equal(rename(dir, moved), 0);
    assert_ls_ok(ls_file_make_dirs(dir, &e), e);
    assert_ls_ok(ls_file_write(path, config_text.data, config_text.len, &e), e);
    assert_ls_fails(ls_folder_follow(x.f, &e), LS_EINVAL, "is now the directory of another run", e);
    assert_false(has("lock") || has("tokens.bin"));
    free(moved);
    free(path);
    end(&x);
}

/* Without state in memory the newest good checkpoint counts; a run that began at a later step needs
 * one. */
static void test_follow_checkpoint(void **state) {
    (void)state;
    ls_error e = {0};
    follower x;
    begin(&x, -1);
    assert_ls_ok(ls_folder_follow(x.f, &e), e);
    assert_int_equal(x.f->notes->step, 0);
    write_checkpoint(3);
    write_checkpoint(5);
    remove_file("checkpoints/step-5/manifest.json");
    assert_ls_ok(ls_folder_follow(x.f, &e), e);
    assert_int_equal(x.f->notes->step, 3);
    remove_file("checkpoints/step-3/manifest.json");
    assert_ls_ok(ls_folder_follow(x.f, &e), e);
    assert_int_equal(x.f->notes->step, 0);
    atomic_store(&x.state.step, 2);
    assert_ls_fails(ls_folder_follow(x.f, &e), LS_EINVAL, "has no good checkpoint", e);
    end(&x);
}

/* Before a checkpoint: files that were removed come back, as they were, and so does the lock. */
static void test_repair(void **state) {
    (void)state;
    static const char *const names[] = {"config.yaml", "tokenizer.json", "tokens.bin",
                                        "corpus.json", "lock"};
    ls_error e = {0};
    follower x;
    ls_dataset data, again;
    begin(&x, 7);
    assert_ls_ok(ls_dataset_open(&data, dir, &config, &model, &e), e);
    for (int i = 0; i < 5; i++) remove_file(names[i]);
    assert_false(ls_lock_is_held(&x.f->lock, dir));
    assert_ls_ok(ls_folder_repair(x.f, &data, NULL, &e), e);
    for (int i = 0; i < 5; i++) assert_true(has(names[i]));
    assert_true(ls_lock_is_held(&x.f->lock, dir));
    assert_ls_ok(ls_dataset_open(&again, dir, &config, &model, &e), e);
    assert_true(ls_hash_same(again.text.record.tokens, data.text.record.tokens));
    assert_true(ls_hash_same(again.text.record.tokenizer, data.text.record.tokenizer));
    ls_dataset_free(&again);

    assert_ls_ok(ls_file_remove_tree(dir, &e), e);
    assert_ls_ok(ls_folder_repair(x.f, &data, NULL, &e), e);
    for (int i = 0; i < 5; i++) assert_true(has(names[i]));
    ls_dataset_free(&data);
    end(&x);
}

static void rewrite(const char *name, const char *text) {
    char *path = ls_format("%s/%s", dir, name);
    ls_error e = {0};
    assert_ls_ok(ls_file_replace(path, text, strlen(text), &e), e);
    free(path);
}

static void has_text(const char *name, const char *text) {
    char *path = ls_format("%s/%s", dir, name);
    ls_buf b = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read(path, 1 << 20, &b, &e), e);
    assert_string_equal(b.data, text);
    ls_buf_free(&b);
    free(path);
}

/* Small files that are changed while a run trains are as they were before the next checkpoint. */
static void test_changed(void **state) {
    (void)state;
    ls_error e = {0};
    follower x;
    ls_dataset data;
    begin(&x, 7);
    rewrite("published.json", "{\"config\": {}}");
    assert_ls_ok(ls_folder_take_up(x.f, &e), e);
    assert_ls_ok(ls_dataset_open(&data, dir, &config, &model, &e), e);
    rewrite("published.json", "{}");
    rewrite("tokenizer.json", "{}");
    assert_ls_ok(ls_folder_repair(x.f, &data, NULL, &e), e);
    has_text("published.json", "{\"config\": {}}");
    has_text("tokenizer.json", data.text.tokenizer_json.data);
    ls_dataset_free(&data);
    end(&x);
}

/* A worker that opens the directory in a later view finds another file system in its place. */
static void test_unmounted(void **state) {
    (void)state;
    ls_error e;
    ls_folder_state s = {0};
    ls_folder_run r = run_with(false);
    ls_folder *f = NULL;
    r.state = &s;
    assert_ls_ok(ls_folder_open(&r, false, &f, &e), e);
    ls_folder_close(f, true);
    char *above = ls_format("%.*s", (int)(strrchr(dir, '/') - dir), dir); /* removed, too */
    assert_int_equal(symlink("/proc", above), 0);
    assert_ls_fails(ls_folder_open(&r, true, &f, &e), LS_EINVAL, "is no longer mounted there", e);
    assert_int_equal(unlink(above), 0);
    free(above);
}

/* A phase never goes back. */
static void test_phases(void **state) {
    (void)state;
    ls_folder_state s = {0};
    assert_int_equal(ls_folder_phase_of(&s), LS_FOLDER_UNTOUCHED);
    ls_folder_set_begun(&s);
    assert_int_equal(ls_folder_phase_of(&s), LS_FOLDER_BEGUN);
    ls_folder_set_made(&s);
    ls_folder_set_begun(&s);
    assert_int_equal(ls_folder_phase_of(&s), LS_FOLDER_MADE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_abandoned),
                                       TEST(test_stays),
                                       TEST(test_refused),
                                       TEST(test_check),
                                       TEST(test_room),
                                       TEST(test_follow),
                                       TEST(test_follow_checkpoint),
                                       TEST(test_unmounted),
                                       TEST(test_repair),
                                       TEST(test_changed),
                                       TEST(test_phases)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
