/* table_file_test.c - tables on disk: saved by some workers, loaded by others, damaged, hostile. */
#include <unistd.h>

#include "folder.h"
#include "lockstep/table.h"
#include "table/workout.h"
#include "weights/safetensors.h"

static char saved[256], other[256];

static int begin(void **state) {
    if (make_folder(state) != 0) return -1;
    snprintf(saved, sizeof saved, "%s/saved", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

static ls_table_config config(ls_row_optimizer o) {
    return (ls_table_config){
        .width = 3, .optimizer = o, .bound = 0.5, .virtual_workers = 6, .admit = 3, .keep = 5};
}

/* A run that is saved and loaded by another number of workers has the bits of one that is not. */
static void test_continued(void **state) {
    (void)state;
    for (int o = LS_ROW_SGD; o <= LS_ROW_ADAM; o++)
        for (int limited = 0; limited < 2; limited++) {
            ls_table_config c = config((ls_row_optimizer)o);
            c.rows = limited ? 100 : 0;
            char whole[33], hash[33], loaded[33];
            work_out(2, &(workout){.c = &c, .steps = 20, .hash = whole});
            work_out(3, &(workout){.c = &c, .steps = 12, .save = saved, .hash = hash});
            work_out(5, &(workout){.c = &c, .load = saved, .hash = loaded, .save = other});
            assert_string_equal(loaded, hash);
            work_out(1, &(workout){.c = &c, .first = 12, .steps = 8, .load = other, .hash = hash});
            assert_string_equal(hash, whole);
            assert_int_equal(ls_file_remove_tree(saved, NULL), LS_OK);
            assert_int_equal(ls_file_remove_tree(other, NULL), LS_OK);
        }
}

static void refused(const ls_table_config *c, const char *dir, ls_status why, const char *says) {
    work_out(2, &(workout){.c = c, .load = dir, .refused = says, .why = why});
}

static void test_refused(void **state) {
    (void)state;
    ls_table_config c = config(LS_ROW_ADAGRAD);
    refused(&c, saved, LS_EIO, "table.json: does not exist");
    char *users = ls_format("%s.new", saved); /* somebody's own directory */
    ls_error e = {0};
    assert_ls_ok(ls_file_make_dirs(users, &e), e);
    work_out(2, &(workout){.c = &c, .steps = 5, .save = saved});
    assert_true(ls_file_is_dir(users));
    assert_int_equal(ls_file_remove_tree(users, NULL), LS_OK);
    free(users);
    c.width = 4;
    refused(&c, saved, LS_EINVAL, "was saved with width 3; the table has width 4");
    c.width = 3;
    c.seed = 9;
    refused(&c, saved, LS_EINVAL, "was saved with seed 0; the table has seed 9");
    c.seed = 0;
    c.lr_decay = 0.5; /* may change */
    work_out(2, &(workout){.c = &c, .load = saved});
}

static ls_status save_twice(ls_group *g, void *arg, ls_error *e) {
    ls_table_config c = config(LS_ROW_SGD);
    ls_table *t = NULL;
    (void)arg;
    assert_ls_ok(ls_table_open(g, &c, &t, e), *e);
    bool first = ls_group_rank(g) == 0;
    assert_ls_fails(ls_table_save(t, saved, e), LS_EINVAL,
                    first ? "exists already" : "failed on worker 0", *e);
    assert_ls_fails(ls_table_save(t, "/proc/no", e), LS_EIO, first ? "/proc/no" : "worker 0", *e);
    ls_table_close(t);
    return LS_OK;
}

static void test_save_twice(void **state) {
    (void)state;
    ls_error e = {0};
    assert_ls_ok(ls_run_threads(2, save_twice, NULL, &e), e);
}

/* Each byte of a file is changed in turn (of the rows' data: each 7th): loading fails, or the bytes
 * were not of use. */
static void change_bytes(const char *name, size_t step) {
    ls_table_config c = config(LS_ROW_ADAGRAD);
    char path[600], before[33];
    snprintf(path, sizeof path, "%s/%s", saved, name);
    work_out(1, &(workout){.c = &c, .load = saved, .hash = before});
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    long nbytes = ftell(f);
    int nrefused = 0, n = 0;
    for (long i = 0; i < nbytes; i += (long)step, n++) {
        fseek(f, i, SEEK_SET);
        int byte = fgetc(f);
        fseek(f, i, SEEK_SET);
        fputc(byte ^ 0x11, f);
        fflush(f);
        ls_group *g = NULL;
        ls_table *t = NULL;
        ls_error e = {0};
        char hash[33];
        assert_ls_ok(ls_group_open_threads(1, NULL, &g, &e), e);
        assert_ls_ok(ls_table_open(g, &c, &t, &e), e);
        nrefused += ls_table_load(t, saved, &e) != LS_OK;
        assert_ls_ok(ls_table_hash(t, hash, &e), e);
        if (ls_table_clock(t) > 0) assert_string_equal(hash, before);
        ls_table_close(t);
        ls_group_close(g);
        fseek(f, i, SEEK_SET);
        fputc(byte, f);
        fflush(f);
    }
    fclose(f);
    assert_true(nrefused > n / 2);
}

static void test_damaged(void **state) {
    (void)state;
    change_bytes("table.json", 1);
    change_bytes("rows-00000-of-00002.safetensors", 7);
    ls_table_config c = config(LS_ROW_ADAGRAD);
    char path[600];
    snprintf(path, sizeof path, "%s/rows-00001-of-00002.safetensors", saved);
    assert_int_equal(truncate(path, 900), 0);
    refused(&c, saved, LS_EINVAL, "rows-00001-of-00002.safetensors");
    assert_int_equal(unlink(path), 0);
    refused(&c, saved, LS_EIO, "rows-00001-of-00002.safetensors");
}

/* What is saved can be read by others: plain safetensors. */
static void test_format(void **state) {
    (void)state;
    ls_table_config c = {.width = 3, .optimizer = LS_ROW_ADAGRAD, .virtual_workers = 1};
    ls_safetensors f;
    ls_error e = {0};
    char path[600];
    work_out(1, &(workout){.c = &c, .steps = 5, .save = other});
    snprintf(path, sizeof path, "%s/rows-00000-of-00001.safetensors", other);
    assert_ls_ok(ls_safetensors_open_any(path, &f, &e), e);
    const ls_tensor *ids = ls_safetensors_find(&f, "ids"),
                    *values = ls_safetensors_find(&f, "values");
    assert_string_equal(ids->dtype, "I64");
    assert_int_equal(ids->ndims, 1);
    assert_int_equal(values->dims[0], ids->count);
    assert_int_equal(values->dims[1], 3);
    for (size_t i = 0; i < ids->count; i++) assert_true(((const int64_t *)ids->data)[i] < 100);
    ls_safetensors_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_continued),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_save_twice), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_format),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
