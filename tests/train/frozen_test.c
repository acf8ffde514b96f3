/* frozen_test.c - training with frozen parameters: the same bits for any workers and layout, those
 * of a run in which these parameters have a learning rate of 0, and where the values come from. */
/* ctest: seconds=10 */
#include <unistd.h>

#include "storage/frozen_file.h"
#include "train/tiny_run.h"

enum { STEPS = 6 };

/* The blocks below the first trained parameter, its norm, the tied embedding, and all biases. */
static const char FREEZE[] = "train.freeze=[wte.*, wpe.*, h.0.*, \"h.1.ln_1.*\", \"*.bias\"]";
static const char NO_RATE[] =
    "optim.groups=[{match: wte.*, lr_scale: 0}, {match: wpe.*, lr_scale: 0},"
    "{match: h.0.*, lr_scale: 0}, {match: h.1.ln_1.*, lr_scale: 0},"
    "{match: \"*.bias\", lr_scale: 0}]";

static const char *const usual[] = {"log.every=1000", "train.steps=6", "train.eval_samples=4",
                                    "optim.clip=0", NULL};
#define TRAIN(nworkers, ...) train_new(nworkers, usual, (const char *const[]){__VA_ARGS__, NULL})

static const char THREAD[] = "parallel.transport=thread", TCP[] = "parallel.transport=tcp";

static void test_bits(void **state) {
    (void)state;
    static const char *const zero[] = {"parallel.zero=0", "parallel.zero=1", "parallel.zero=2",
                                       "parallel.zero=3"};
    result one = TRAIN(1, FREEZE, THREAD);
    for (int i = 0; i < 4; i++) {
        same(TRAIN(2, FREEZE, zero[i], THREAD, "train.micro_batch=2"), one);
        same(TRAIN(3, FREEZE, zero[i]), one);
        same(TRAIN(5, FREEZE, zero[i], THREAD, "parallel.bucket_mb=0.02"), one);
    }
    same(TRAIN(2, FREEZE, zero[3], TCP), one);
    same(TRAIN(3, FREEZE, zero[2], "parallel.executor=sequential"), one);
    same(TRAIN(2, FREEZE, "parallel.recompute=1"), one);
    same(TRAIN(4, FREEZE, "parallel.shard_group=2", "parallel.threads=2"), one);
    same(TRAIN(2, FREEZE, "parallel.optimizer_state=file"), one);
}

/* The gradients of the others are the same, whether those of frozen parameters are computed or not.
 * The hash of the weights does not depend on what is frozen. */
static void test_no_rate(void **state) {
    (void)state;
    static const char *const types[] = {"train.compute=f32", "train.compute=bf16",
                                        "train.compute=f16", "train.reduce_dtype=bf16"};
    for (int i = 0; i < 4; i++) {
        result frozen = TRAIN(1, FREEZE, types[i], THREAD), moved = TRAIN(1, types[i], THREAD);
        assert_string_equal(frozen.weights, TRAIN(2, NO_RATE, types[i]).weights);
        assert_string_not_equal(frozen.weights, moved.weights);
    }
}

/* In 16 bits all workers of a host share the values that are rounded once. */
static void test_half(void **state) {
    (void)state;
    result one = TRAIN(1, FREEZE, "train.compute=bf16", THREAD);
    same(TRAIN(3, FREEZE, "train.compute=bf16", "parallel.zero=3"), one);
    same(TRAIN(2, FREEZE, "train.compute=bf16", THREAD), one);
    same(TRAIN(2, FREEZE, "train.compute=bf16", TCP, "train.micro_batch=2"), one);
    same(TRAIN(5, FREEZE, "train.compute=bf16", "parallel.executor=sequential"), one);
}

/* What is frozen, and what is trained, begins with the weights of another run, of which another
 * part was frozen. */
static void test_origin(void **state) {
    (void)state;
    char *first = run_path(nruns), *from = ls_format("train.from=%s", first);
    TRAIN(2, "train.freeze=[h.1.*]");
    char *again = ls_format("train.from=%s", first);
    result frozen = TRAIN(2, FREEZE, from);
    same(TRAIN(3, FREEZE, again, "parallel.zero=3", THREAD), frozen);
    assert_string_equal(TRAIN(1, NO_RATE, from).weights, frozen.weights);
    free(first);
    free(from);
    free(again);
}

/* ---- the file ---- */

static char *frozen_path(const char *folder_of) {
    return ls_format("%s/" LS_FROZEN_FILE, folder_of);
}

static void change_byte(const char *path) {
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, -5, SEEK_END);
    fputc(77, f);
    fclose(f);
}

/* Continues with other workers; the file is in the checkpoint, and restored from there. */
static void test_resume(void **state) {
    (void)state;
    ls_error e = {0};
    int number = nruns++;
    const char *const whole[] = {FREEZE, NULL};
    result want = TRAIN(1, FREEZE, THREAD);
    char *run = run_path(number), *file = frozen_path(run), *step = NULL;
    assert_ls_ok(
        try_number(number, 2, usual, (const char *const[]){FREEZE, "checkpoint.every=3", NULL}, &e),
        e);
    same(last_of_number(number), want);
    char *last = ls_format("%s/checkpoints/step-6", run);
    assert_ls_ok(ls_file_remove_tree(last, &e), e);
    step = ls_format("%s/checkpoints/step-3", run);
    char *linked = frozen_path(step);
    struct stat a, b;
    assert_true(stat(file, &a) == 0 && stat(linked, &b) == 0 && a.st_ino != b.st_ino);
    assert_int_equal(unlink(file), 0);
    assert_ls_ok(try_number(number, 3, usual, whole, &e), e);
    same(last_of_number(number), want);
    assert_true(stat(file, &a) == 0 && a.st_ino != b.st_ino);
    free(run), free(file), free(last), free(step), free(linked);
}

/* Another file in its place is replaced by the checkpoint's; other patterns are refused. */
static void test_changed(void **state) {
    (void)state;
    ls_error e = {0};
    int number = nruns;
    TRAIN(1, FREEZE, THREAD);
    char *run = run_path(number), *file = frozen_path(run);
    ls_buf data = {0};
    assert_ls_ok(ls_file_read(file, SIZE_MAX, &data, &e), e);
    assert_int_equal(unlink(file), 0);
    assert_ls_ok(ls_file_write(file, data.data, data.len, &e), e); /* no link, but the same */
    const char *const more[] = {FREEZE, "train.steps=8", NULL};
    assert_ls_ok(try_number(number, 1, usual, more, &e), e);
    change_byte(file);
    const char *const further[] = {FREEZE, "train.steps=9", NULL};
    assert_ls_ok(try_number(number, 1, usual, further, &e), e); /* restored from the checkpoint */
    ls_buf now = {0};
    assert_ls_ok(ls_file_read(file, SIZE_MAX, &now, &e), e);
    assert_true(now.len == data.len && memcmp(now.data, data.data, data.len) == 0);
    ls_buf_free(&now);
    const char *const other[] = {"train.freeze=[wte.*]", "train.steps=9", NULL};
    assert_ls_fails(try_number(number, 1, usual, other, &e), LS_EINVAL,
                    "train.freeze is \"wte.*\", but the run", e);
    ls_buf_free(&data);
    free(run), free(file);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *sets[3], *says;
    } cases[] = {
        {{"train.freeze=[\"*\"]"}, "all parameters are frozen"},
        {{"train.freeze=[h.7.*]"}, "'h.7.*' matches no parameter; their names are like wte.weight"},
        {{"train.freeze=[h.0.*]", "optim.groups=[{match: h.0.*, lr_scale: 2}]"},
         "'h.0.*' matches only parameters that are frozen"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_error e = {0};
        assert_ls_fails(try_number(nruns++, 1, usual, cases[i].sets, &e), LS_EINVAL, cases[i].says,
                        e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),    plain_unit_test(test_no_rate),
        cmocka_unit_test(test_half),    cmocka_unit_test(test_origin),
        cmocka_unit_test(test_resume),  cmocka_unit_test(test_changed),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
