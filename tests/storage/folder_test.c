/* folder_test.c - a run directory is found or made, locked, filled, and removed if the start fails. */
#include "storage/folder.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "config/writer.h"
#include "folder.h"
#include "small_plan.h"
#include "storage/checkpoint.h"
#include "test.h"

static char dir[96];
static ls_config config;
static ls_buf config_text;
static ls_model model;

static int set_up(void **state) {
    (void)state;
    ls_error e = {0};
    ls_gpt_config c = {2, 24, 3, 32, 300};
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &config, &e), e);
    assert_ls_ok(ls_gpt_create(&c, &model, &e), e);
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
                           .resumes = resumes};
}

static bool has(const char *name) {
    char *path = ls_format("%s/%s", dir, name);
    bool there = ls_file_exists(path);
    free(path);
    return there;
}

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

/* Once training has begun it stays; then only --resume takes it. */
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
    assert_ls_fails(ls_folder_open(&r, false, &f, &e), LS_EINVAL, "--resume", e);
    assert_ls_ok(ls_folder_open(&resumes, false, &f, &e), e);
    assert_false(f->notes->fresh);
    assert_ls_ok(ls_folder_take_up(f, &e), e);
    assert_int_equal(f->notes->step, 0);
    assert_ls_ok(ls_folder_begin_training(f, &old, &e), e);
    assert_true(old);
    ls_folder_close(f, false);
}

/* Another process has the lock; somebody else's directory is not touched. */
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
}

/* From view to view a phase is never taken back. */
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
    const struct CMUnitTest tests[] = {TEST(test_abandoned), TEST(test_stays), TEST(test_refused),
                                       TEST(test_phases)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
