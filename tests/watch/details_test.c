/* details_test.c - what a page asks of one run: checkpoints, why views ended, workers, the
 * difference of two runs. */
#include "watch/details.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "folder.h"
#include "test.h"

static void file_write(const char *name, const char *text) {
    char path[400], *slash;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    slash = strrchr(path, '/');
    *slash = 0;
    assert_int_equal(ls_file_make_dirs(path, NULL), LS_OK);
    *slash = '/';
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    fclose(f);
}

/* What a detail says of runs "a" and "b": the caller frees it. */
static ls_json *ask(ls_details_write *write, const char *name, int columns) {
    char a[300], b[300];
    ls_buf out = {0};
    ls_json *j = NULL;
    ls_error e = {0};
    snprintf(a, sizeof a, "%s/a", folder);
    snprintf(b, sizeof b, "%s/b", folder);
    ls_details_query q = {.runs = {a, b}, .nruns = 2, .columns = columns};
    snprintf(q.name, sizeof q.name, "%s", name);
    write(&q, &out);
    assert_ls_ok(ls_json_parse(out.data, out.len, "an answer", &j, &e), e);
    ls_buf_free(&out);
    return j;
}

static int64_t integer(const ls_json *o, const char *key) {
    int64_t x = -12345;
    ls_json_integer(ls_json_get(o, key), &x);
    return x;
}

static double number(const ls_json *list, size_t i) {
    double x = -12345;
    ls_json_number(ls_json_at(list, i), &x);
    return x;
}

static void test_checkpoints(void **state) {
    char path[300];
    (void)state;
    ls_json *j = ask(ls_details_checkpoints, "", 1);
    assert_int_equal(ls_json_count(ls_json_get(j, "checkpoints")), 0);
    ls_json_free(j);
    file_write("a/checkpoints/step-5/manifest.json",
               "{\"step\": 5, \"val_loss\": 2.5, \"files\": [{\"name\": \"x\", \"bytes\": 40}, "
               "{\"name\": \"y\", \"bytes\": 2}]}");
    file_write("a/checkpoints/step-10/manifest.json", "{\"step\": 10, \"files\": []}");
    file_write("a/checkpoints/step-7/manifest.json", "{\"step\": 7, \"fi"); /* half written */
    file_write("a/checkpoints/other/manifest.json", "{}");
    snprintf(path, sizeof path, "%s/a/checkpoints/best", folder);
    assert_int_equal(symlink("step-5", path), 0);
    j = ask(ls_details_checkpoints, "", 1);
    const ls_json *list = ls_json_get(j, "checkpoints");
    assert_int_equal(ls_json_count(list), 2);
    assert_int_equal(integer(ls_json_at(list, 0), "step"), 10);
    assert_int_equal(integer(ls_json_at(list, 1), "step"), 5);
    assert_int_equal(integer(ls_json_at(list, 1), "bytes"), 42);
    ls_buf text = {0};
    ls_json_write(list, 0, &text);
    assert_non_null(strstr(strstr(text.data, "\"step\": 10"), "\"best\": false"));
    assert_non_null(strstr(strstr(text.data, "\"step\": 5,"), "\"best\": true"));
    ls_buf_free(&text);
    ls_json_free(j);
}

static void test_lost(void **state) {
    (void)state;
    file_write("a/log.txt",
               "2026-11-28T14:37:11Z lockstep: 2 workers x 1 thread = 2 cores\n"
               "2026-11-28T14:37:42Z lockstep: view 1: worker 1 was killed by signal 9 (Killed)\n"
               "2026-11-28T14:37:42Z lockstep:   worker 0 was in step 28\n"
               "2026-11-28T14:37:42Z lockstep: view 2: continuing after step 27, with 2 workers\n"
               "view 7: no line of ours\n");
    ls_json *j = ask(ls_details_lost, "", 1);
    const ls_json *list = ls_json_get(j, "lost");
    assert_int_equal(ls_json_count(list), 1);
    assert_int_equal(integer(ls_json_at(list, 0), "view"), 1);
    assert_string_equal(ls_json_text(ls_json_get(ls_json_at(list, 0), "text")),
                        "worker 1 was killed by signal 9 (Killed)");
    ls_json_free(j);
}

static void test_workers(void **state) {
    char text[200];
    double age = -1;
    (void)state;
    ls_json *j = ask(ls_details_workers, "", 1);
    assert_non_null(ls_json_get(j, "error"));
    ls_json_free(j);
    snprintf(text, sizeof text, "{\"time_s\": %lld, \"view\": 3}\n",
             (long long)ls_clock_wall_s() - 1000);
    file_write("a/workers.json", text);
    j = ask(ls_details_workers, "", 1);
    assert_int_equal(integer(j, "view"), 3);
    assert_true(ls_json_number(ls_json_get(j, "age_s"), &age) && age >= 999);
    ls_json_free(j);
    file_write("a/workers.json", "{\"time_s\": 12");
    j = ask(ls_details_workers, "", 1);
    assert_non_null(ls_json_get(j, "error"));
    ls_json_free(j);
}

/* Steps that one run lacks, or has taken back, are left out. */
static void test_difference(void **state) {
    ls_buf a = {0}, b = {0};
    (void)state;
    for (int i = 1; i <= 1000; i++) {
        ls_buf_printf(&a, "{\"step\": %d, \"loss\": %d.5, \"lr\": 1}\n", i, i);
        if (i != 500) ls_buf_printf(&b, "{\"step\": %d, \"loss\": %d.25, \"lr\": 1}\n", i, i);
        if (i == 777) ls_buf_printf(&b, "{\"step\": 777, \"loss\": 700}\n");
        if (i == 600) ls_buf_printf(&a, "{\"step\": 600, \"val_loss\": 1}\n");
    }
    file_write("a/metrics.jsonl", a.data);
    file_write("b/metrics.jsonl", b.data);
    ls_json *j = ask(ls_details_difference, "loss", 10);
    assert_int_equal(integer(j, "steps"), 999);
    assert_int_equal(integer(j, "first"), 1);
    const ls_json *x = ls_json_get(j, "x"), *high = ls_json_get(j, "high");
    assert_int_equal(ls_json_count(x), 10);
    for (size_t i = 0; i < 10; i++) {
        assert_true(number(x, i) == (double)(100 * i + (i < 5 ? 1 : 2)));
        assert_true(number(high, i) == (i == 7 ? 77.5 : 0.25));
        assert_true(number(ls_json_get(j, "low"), i) == 0.25);
    }
    ls_json_free(j);
    j = ask(ls_details_difference, "lr", 4);
    assert_int_equal(integer(j, "first"), -12345); /* null: none differs */
    assert_int_equal(integer(j, "steps"), 999);
    ls_json_free(j);
    j = ask(ls_details_difference, "nothing", 4);
    assert_non_null(strstr(ls_json_text(ls_json_get(j, "error")), "no step of both runs has"));
    ls_json_free(j);
    ls_buf_free(&a);
    ls_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_checkpoints, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_lost, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_workers, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_difference, make_folder, remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
