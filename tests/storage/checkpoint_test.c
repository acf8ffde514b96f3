/* checkpoint_test.c - a checkpoint is complete or absent, and is read as it was written; the right
 * ones are retained. Uses real files. */
#include "storage/checkpoint.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "folder.h"
#include "small_plan.h"
#include "test.h"

enum { SAMPLES = 4 };

static ls_model model;
static ls_optim adamw;
static const char *const run = folder;
static ls_buf text;
static ls_data_files data;

static int set_up(void **state) {
    (void)state;
    small_model(&model);
    adamw = ls_optim_usual();
    ls_buf tokenizer = {0};
    ls_buf_append(&text, "{}\n", 3);
    ls_buf_append(&tokenizer, "{}\n", 3);
    ls_data_files_add(&data, LS_TOKENIZER_FILE, tokenizer);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    ls_model_free(&model);
    ls_buf_free(&text);
    ls_data_files_free(&data);
    return 0;
}

/* A state whose buffers are the caller's: free(flat.of[0]). */
static ls_train_state state_after(int64_t step) {
    size_t n = model.nfloats;
    float *flat = LS_NEW_ARRAY(float, 3 * n);
    for (size_t i = 0; i < 3 * n; i++) flat[i] = (float)(i % 971) - (float)step;
    return (ls_train_state){
        .model = &model, .step = step, .optim = &adamw, .flat = ls_flat_of_state(flat, NULL, 2, n)};
}

static ls_checkpoint_extra extra(void) {
    return (ls_checkpoint_extra){.data = &data, .config = &text};
}

static void write_with(int64_t step, const ls_checkpoint_extra *x) {
    ls_error e = {0};
    ls_train_state s = state_after(step);
    assert_ls_ok(ls_checkpoint_write(run, &s, x, &e), e);
    free(s.flat.of[0]);
}

static void write_plain(int64_t step) {
    ls_checkpoint_extra x = extra();
    write_with(step, &x);
}

/* A file of step-N: free() it. */
static char *file_of(int64_t step, const char *name) {
    char *dir = ls_checkpoint_path(run, step), *path = ls_format("%s/%s", dir, name);
    free(dir);
    return path;
}

static bool is_there(int64_t step) {
    char *path = file_of(step, "manifest.json");
    bool there = ls_file_exists(path);
    free(path);
    return there;
}

static void damage(int64_t step, const char *name) {
    char *path = file_of(step, name), byte = 0;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, 2000), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, 2000), 1);
    close(fd);
    free(path);
}

/* Replaces `from` by `to`, which is as long, in the manifest of step-N. */
static void edit_manifest(int64_t step, const char *from, const char *to) {
    ls_error e = {0};
    ls_buf b = {0};
    char *path = file_of(step, "manifest.json");
    assert_ls_ok(ls_file_read(path, 1 << 20, &b, &e), e);
    char *at = memmem(b.data, b.len, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    assert_ls_ok(ls_file_replace(path, b.data, b.len, &e), e);
    ls_buf_free(&b);
    free(path);
}

static ls_status verify(int64_t step, ls_checkpoint_info *i_p, ls_error *e) {
    char *path = ls_checkpoint_path(run, step);
    ls_status s = ls_checkpoint_verify(path, i_p, e);
    free(path);
    return s;
}

/* The step that a link in the directory points to; -1: there is no such link. */
static int64_t link_to(const char *name) {
    char *path = ls_format("%s/checkpoints/%s", run, name), to[64] = "";
    ssize_t n = readlink(path, to, sizeof to - 1);
    free(path);
    return n > 5 ? atoll(to + 5) : -1;
}

static void test_read_back(void **state) {
    (void)state;
    ls_error e = {0};
    ls_checkpoint_info i;
    size_t n = model.nfloats;
    ls_train_state s = state_after(7), got = state_after(0);
    s.scaler = (ls_scaler){.scale = 65536.5, .good = 3, .left = 2, .skipped = 1};
    ls_checkpoint_extra x = extra();
    assert_ls_ok(ls_checkpoint_write(run, &s, &x, &e), e);
    assert_ls_ok(verify(7, &i, &e), e);
    assert_int_equal(i.step, 7);
    assert_int_equal(i.ntensors, model.nparams);
    char *path = NULL;
    int64_t step = 0;
    assert_ls_ok(ls_checkpoint_newest(run, &path, &step, &e), e);
    assert_int_equal(step, 7);
    assert_int_equal(link_to("latest"), 7);
    assert_ls_ok(ls_checkpoint_load(path, &got, &e), e);
    assert_int_equal(got.step, 7);
    assert_true(got.scaler.scale == s.scaler.scale && got.scaler.skipped == 1);
    for (int k = 0; k < model.nparams; k++) {
        const ls_param *p = &model.params[k];
        for (size_t j = 0; j < 3; j++)
            assert_memory_equal(got.flat.of[0] + j * n + p->offset,
                                s.flat.of[0] + j * n + p->offset, p->count * sizeof(float));
    }
    free(path);
    free(s.flat.of[0]);
    free(got.flat.of[0]);
}

/* Only the parts that are asked for are filled. */
static void test_load_owned(void **state) {
    (void)state;
    ls_error e = {0};
    write_plain(2);
    const ls_range owned = {.first = 100, .end = 1100};
    ls_train_state s = state_after(9), want = state_after(2), was = state_after(9);
    char *path = ls_checkpoint_path(run, 2);
    s.owned = &owned;
    s.nowned = 1;
    assert_ls_ok(ls_checkpoint_load(path, &s, &e), e);
    assert_memory_equal(s.flat.of[1] + 100, want.flat.of[1] + 100, 1000 * sizeof(float));
    assert_memory_equal(s.flat.of[1], was.flat.of[1], 100 * sizeof(float));
    assert_memory_equal(s.flat.of[1] + 1100, was.flat.of[1] + 1100, 1000 * sizeof(float));
    free(path);
    free(s.flat.of[0]);
    free(want.flat.of[0]);
    free(was.flat.of[0]);
}

/* The message names the fault and an older checkpoint that is good; the newest good one is
 * found. */
static void test_damaged(void **state) {
    (void)state;
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
    ls_error e = {0};
    ls_checkpoint_info i;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        char *path = NULL;
        int64_t step = 0;
        write_plain(1);
        write_plain(2);
        damage(2, files[k]);
        assert_ls_fails(verify(2, &i, &e), LS_EINVAL, files[k], e);
        assert_ls_fails(verify(2, &i, &e), LS_EINVAL, "an older checkpoint is good: ", e);
        assert_non_null(strstr(e.msg, "/step-1"));
        assert_ls_ok(ls_checkpoint_newest_good(run, &path, &step, &e), e);
        assert_int_equal(step, 1);
        free(path);
    }
    edit_manifest(1, "\"step\": 1", "\"step\": x");
    assert_ls_fails(verify(1, &i, &e), LS_EINVAL, "manifest.json", e);
    char *path = NULL;
    int64_t step = 0;
    assert_ls_fails(ls_checkpoint_newest_good(run, &path, &step, &e), LS_EINVAL,
                    "has no good checkpoint", e);
    assert_ls_fails(ls_checkpoint_resolve("/nowhere/at/all", &path, &e), LS_EIO, "does not exist",
                    e);
}

/* A run continues only from a checkpoint with its own order of products in bf16, or with none; a
 * name is refused in f32, too. */
static void test_order(void **state) {
    (void)state;
    static const struct {
        const char *sum;
        ls_compute_kind compute;
        bool good;
    } cases[] = {{"blocks32", LS_COMPUTE_BF16, true},  {NULL, LS_COMPUTE_BF16, true},
                 {"blocks64", LS_COMPUTE_BF16, false}, {"blocks3", LS_COMPUTE_BF16, false},
                 {"", LS_COMPUTE_BF16, false},         {NULL, LS_COMPUTE_F32, true},
                 {"blocks32", LS_COMPUTE_F32, false},  {NULL, LS_COMPUTE_F16, true}};
    ls_checkpoint_extra x = extra();
    char *path = ls_checkpoint_path(run, 2), want[96];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_error e = {0};
        ls_checkpoint_info info;
        const ls_config c = {.train = {.compute = cases[i].compute, .steps = 9}};
        x.sum = cases[i].sum;
        write_with(2, &x);
        assert_ls_ok(verify(2, &info, &e), e);
        assert_string_equal(info.sum, x.sum ? x.sum : "");
        snprintf(want, sizeof want, "in the order '%s' (sum in manifest.json)", info.sum);
        if (cases[i].good)
            assert_ls_ok(ls_checkpoint_check_order(path, &c, &e), e);
        else
            assert_ls_fails(ls_checkpoint_check_order(path, &c, &e), LS_EINVAL, want, e);
    }
    free(path);
}

/* A failed write leaves the previous checkpoint, and nothing half written. */
static void test_failed(void **state) {
    (void)state;
    ls_error e = {0};
    ls_checkpoint_info i;
    write_plain(3);
    char *hidden = ls_format("%s/checkpoints/.step-4", run);
    ls_train_state s = state_after(4);
    ls_checkpoint_extra x = extra();
    signal(SIGXFSZ, SIG_IGN); /* a full disk: no file can have more bytes */
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, RLIM_INFINITY});
    ls_status status = ls_checkpoint_write(run, &s, &x, &e);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    assert_int_equal(status, LS_EIO);
    assert_non_null(strstr(e.msg, "/checkpoints/step-4/model.safetensors: "));
    assert_false(is_there(4) || ls_file_exists(hidden));
    assert_int_equal(link_to("latest"), 3);
    assert_ls_ok(verify(3, &i, &e), e);
    assert_ls_ok(ls_checkpoint_write(run, &s, &x, &e), e); /* there is room again */
    assert_ls_ok(verify(4, &i, &e), e);
    free(s.flat.of[0]);
    free(hidden);
}

/* The newest `keep` checkpoints and the best one stay; what a killed program left half written is
 * removed. */
static void test_keep(void **state) {
    (void)state;
    static const double losses[] = {3.5, 3.0, 3.25, 3.0, 4.0};
    ls_error e = {0};
    char *half = ls_format("%s/checkpoints/.step-2.0000beef", run);
    assert_ls_ok(ls_file_make_dirs(half, &e), e);
    ls_checkpoint_extra x = extra();
    x.keep = 1;
    x.best_samples = x.val_samples = SAMPLES;
    for (int64_t step = 1; step <= 5; step++) {
        x.val_loss = losses[step - 1];
        write_with(step, &x);
    }
    assert_false(ls_file_exists(half));
    for (int64_t step = 1; step <= 5; step++)
        assert_int_equal(is_there(step), step == 2 || step == 5); /* the first of two */
    assert_int_equal(link_to("latest"), 5);
    assert_int_equal(link_to("best"), 2);
    x.best_samples = 0;
    write_with(6, &x);
    assert_int_equal(link_to("best"), -1);
    for (int64_t step = 1; step <= 6; step++) assert_int_equal(is_there(step), step == 6);
    free(half);
}

/* Manifests are read once: later changes on disk are not noticed, unless the best checkpoint is
 * gone. */
static void test_best_is_remembered(void **state) {
    (void)state;
    ls_checkpoint_known known = {0};
    ls_checkpoint_extra x = extra();
    x.best_samples = x.val_samples = SAMPLES;
    for (int64_t step = 1; step <= 3; step++) {
        x.val_loss = step == 2 ? 2.5 : 3.5;
        x.known = step == 3 ? &known : NULL;
        write_with(step, &x);
    }
    assert_int_equal(known.step, 2);
    assert_true(known.loss == 2.5);
    edit_manifest(1, "\"val_loss\": \"3.5\"", "\"val_loss\": \"1.5\"");
    x.val_loss = 3;
    write_with(4, &x);
    assert_int_equal(link_to("best"), 2); /* the manifest was not read again */
    x.val_loss = 2;
    write_with(5, &x);
    assert_int_equal(link_to("best"), 5);
    assert_int_equal(known.step, 5);
    x.val_samples = 0; /* not evaluated */
    write_with(6, &x);
    assert_int_equal(link_to("best"), 5);
    char *best = ls_checkpoint_path(run, 5);
    assert_int_equal(ls_file_remove_tree(best, NULL), LS_OK);
    write_with(7, &x);
    assert_int_equal(link_to("best"), 1); /* all manifests are read again */
    assert_int_equal(known.step, 1);
    free(best);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_read_back), TEST(test_load_owned), TEST(test_damaged),           TEST(test_order),
        TEST(test_failed),    TEST(test_keep),       TEST(test_best_is_remembered)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
