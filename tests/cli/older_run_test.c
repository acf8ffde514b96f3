/* older_run_test.c - a run that an older version began goes on with its bits: it has the
 * config.yaml of a version that knew neither data.normalize of tables nor a train.micro_batch that
 * is chosen, and the hash of the weights that this version came to. */
/* ctest: busy seconds=2 */
#include <sys/stat.h>

#include "cli/program.h"

enum { ROWS = 40 };
static const char CONFIG[] = "tests/cli/older_run.yaml"; /* of 970065f9 */
static const char WEIGHTS[] = "weights a84dd46c2f946e8383ea5cb02df733a4\n";

/* Numbers, texts, and a column with missing values, none of which that version scaled. */
static void write_table(void) {
    static const char *const cities[] = {"Paris", "Rome", "Oslo"};
    ls_buf b = {0};
    ls_buf_printf(&b, "size,year,city,age,price\n");
    for (int i = 0; i < ROWS; i++) {
        ls_buf_printf(&b, "%d.5,%d,%s,", i * 37 % 41, 1950 + i * 31 % 70, cities[i % 3]);
        if (i % 5) ls_buf_printf(&b, "%d", i * 17 % 23);
        ls_buf_printf(&b, ",%d\n", 20 + i * 71 % 97);
    }
    write_file("table.csv", b.data, b.len);
    ls_buf_free(&b);
}

/* As it leaves a run that was killed before its first checkpoint. */
static void write_run(void) {
    ls_error e = {0};
    ls_buf config = {0};
    char *run = ls_format("%s/run", folder);
    assert_ls_ok(ls_file_read(CONFIG, 1 << 20, &config, &e), e);
    assert_int_equal(mkdir(run, 0777), 0);
    write_file("run/config.yaml", config.data, config.len);
    write_file("run/lock", "", 0);
    ls_buf_free(&config);
    free(run);
}

static void test_same_bits(void **state) {
    (void)state;
    write_table();
    write_run();
    expect("train --resume @/run -n 2 --until 3 --set data.path=@/table.csv", 75,
           "beginning again");
    expect("train --resume @/run -n 3 --set parallel.zero=2", 0, "step 6/6");
    char *hash = output_of("ckpt hash @/run");
    assert_memory_equal(hash, WEIGHTS, strlen(WEIGHTS));
    free(hash);
    shell_of_run("run", "grep -q 'micro_batch: 1$' $r/config.yaml && "
                        "grep -q 'normalize: \"\"' $r/config.yaml");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
