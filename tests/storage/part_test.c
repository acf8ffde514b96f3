/* part_test.c - a checkpoint written in parts has the bytes of one that is written at once. */
#include "storage/part.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "folder.h"
#include "small_plan.h"
#include "storage/checkpoint.h"
#include "test.h"

enum { STEP = 7 };

static ls_model model;
static char run[96];

static int set_up(void **state) {
    if (make_folder(state) != 0) return -1;
    small_model(&model);
    snprintf(run, sizeof run, "%s/run", folder);
    return 0;
}

static int tear_down(void **state) {
    ls_model_free(&model);
    return remove_folder(state);
}

/* The part of the state that `worker` owns (-1: all of it); the rest is NaN. */
static ls_train_state state_of(const ls_plan *p, int worker) {
    size_t n = model.nfloats;
    float *flat = LS_NEW_ARRAY(float, 3 * n);
    memset(flat, 0xff, 3 * n * sizeof *flat);
    for (int k = 0; k < p->share.nbuckets; k++) {
        ls_range b =
            worker < 0 ? ls_share_range(&p->share, k) : ls_share_owned(&p->share, k, worker);
        for (size_t i = b.first; i < b.end; i++)
            for (size_t j = 0; j < 3; j++) flat[j * n + i] = (float)(i % 977) - (float)j;
    }
    return (ls_train_state){.model = &model,
                            .step = STEP,
                            .optim = &p->share.optim,
                            .flat = ls_flat_of_state(flat, NULL, 2, n)};
}

static char some_text[] = "{}\n";
static const ls_buf text = {.data = some_text, .len = 3};
static const ls_data_files data = {1, {LS_TOKENIZER_FILE}, {{.data = (char[]){"{}\n"}, .len = 3}}};
static const ls_checkpoint_extra extra = {.data = &data, .config = &text};

/* The bytes of the checkpoint's files, one after the other. */
static void read_all(ls_buf *out) {
    static const char *const names[] = {"model.safetensors", "optimizer.safetensors",
                                        "manifest.json", "tokenizer.json", "config.yaml"};
    ls_error e = {0};
    for (int i = 0; i < 5; i++) {
        char *path = ls_format("%s/checkpoints/step-%d/%s", run, STEP, names[i]);
        assert_ls_ok(ls_file_read(path, 1 << 24, out, &e), e);
        free(path);
    }
}

static void write_at_once(ls_buf *out) {
    ls_error e = {0};
    ls_plan p = small_plan(&model, 1, 1, 0);
    ls_train_state s = state_of(&p, -1);
    assert_ls_ok(ls_checkpoint_write(run, &s, &extra, &e), e);
    read_all(out);
    free(s.flat.of[0]);
    ls_plan_free(&p);
}

/* Each worker that has the first copy of its shard writes its part, except `left_out`. */
static void write_parts(const ls_plan *p, const char *hidden, int left_out) {
    ls_error e = {0};
    for (int w = p->share.nshards - 1; w >= 0; w--) {
        ls_train_state s = state_of(p, w);
        if (w == p->share.nshards - 1) assert_ls_ok(ls_checkpoint_begin(hidden, &s, &e), e);
        const ls_owners own = {p, w, w + 1};
        if (w != left_out) assert_ls_ok(ls_checkpoint_part(hidden, &s, &own, &e), e);
        free(s.flat.of[0]);
    }
}

static ls_status finish(const ls_plan *p, const char *hidden, ls_error *e) {
    ls_train_state s = state_of(p, 0);
    const ls_owners all = {p, 0, p->share.nshards};
    ls_status status = ls_checkpoint_finish(run, hidden, &s, &all, &extra, e);
    free(s.flat.of[0]);
    return status;
}

static void test_same_bytes(void **state) {
    (void)state;
    static const int layouts[][2] = {{1, 1}, {2, 2}, {3, 3}, {5, 5}, {8, 8}, {4, 2}, {6, 3}};
    ls_buf want = {0};
    ls_error e = {0};
    write_at_once(&want);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        ls_plan p = small_plan(&model, layouts[i][0], 1, layouts[i][1]);
        char *hidden = ls_checkpoint_hidden(run, STEP, 1 + (uint32_t)i);
        ls_buf got = {0};
        write_parts(&p, hidden, -1);
        assert_ls_ok(finish(&p, hidden, &e), e);
        read_all(&got);
        assert_int_equal(got.len, want.len);
        assert_memory_equal(got.data, want.data, want.len);
        assert_false(ls_file_exists(hidden));
        ls_buf_free(&got);
        free(hidden);
        ls_plan_free(&p);
    }
    ls_buf_free(&want);
}

/* A part is missing, or is not what was written: the earlier checkpoint stays as it was. */
static void test_damaged(void **state) {
    (void)state;
    ls_error e = {0};
    ls_checkpoint_info info;
    ls_plan p = small_plan(&model, 3, 1, 3);
    char *hidden = ls_checkpoint_hidden(run, STEP, 9);
    char *file = ls_format("%s/optimizer.safetensors", hidden);
    char *there = ls_format("%s/checkpoints/step-%d", run, STEP);
    write_parts(&p, hidden, 1);
    assert_ls_fails(finish(&p, hidden, &e), LS_EIO, "/part-1: ", e);
    assert_false(ls_file_exists(hidden));
    write_parts(&p, hidden, -1);
    int fd = open(file, O_WRONLY);
    assert_int_equal(pwrite(fd, "x", 1, 100000), 1);
    close(fd);
    assert_ls_fails(finish(&p, hidden, &e), LS_EIO, "the data on disk differ from what worker", e);
    assert_false(ls_file_exists(hidden));
    assert_ls_ok(ls_checkpoint_verify(there, &info, &e), e);
    free(hidden);
    free(file);
    free(there);
    ls_plan_free(&p);
}

/* Writes a worker's part where no file may grow beyond 4096 bytes. */
static ls_status part_without_space(const char *hidden, const ls_train_state *s,
                                    const ls_owners *own, ls_error *e) {
    struct rlimit was;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, was.rlim_max});
    ls_status status = ls_checkpoint_part(hidden, s, own, e);
    setrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, handler);
    return status;
}

/* One worker's part can't be written: the files stay for the other worker, and without the failed
 * part no checkpoint is made. */
static void test_failed_part(void **state) {
    (void)state;
    ls_error e = {0};
    ls_plan p = small_plan(&model, 2, 1, 2);
    char *hidden = ls_checkpoint_hidden(run, STEP, 11);
    ls_train_state s[] = {state_of(&p, 0), state_of(&p, 1)};
    const ls_owners own[] = {{&p, 0, 1}, {&p, 1, 2}};
    assert_ls_ok(ls_checkpoint_begin(hidden, &s[0], &e), e);
    assert_ls_fails(part_without_space(hidden, &s[1], &own[1], &e), LS_EIO,
                    "can't be written: File too large", e);
    assert_ls_ok(ls_checkpoint_part(hidden, &s[0], &own[0], &e), e);
    assert_ls_fails(finish(&p, hidden, &e), LS_EIO, "/part-1: ", e);
    assert_false(ls_file_exists(hidden));
    for (int i = 0; i < 2; i++) free(s[i].flat.of[0]);
    free(hidden);
    ls_plan_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bytes),
                                       cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_failed_part)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
