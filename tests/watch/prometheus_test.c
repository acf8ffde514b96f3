/* prometheus_test.c - the text for Prometheus: by the rules of its format, and by promtool, if it
 * is installed. */
#include "watch/prometheus.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "folder.h"
#include "test.h"

static const char *dirs[1];

static void run_add(const char *name, int steps) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(ls_file_make_dirs(path, NULL), LS_OK);
    snprintf(path, sizeof path, "%s/%s/config.yaml", folder, name);
    fclose(fopen(path, "a"));
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 1; i <= steps; i++)
        fprintf(f,
                "{\"step\": %d, \"loss\": %d.25, \"lr\": 0.1, \"seconds\": %s, \"tokens_per_s\": "
                "10, \"data_wait_s\": 0.5, \"view\": %d}\n",
                i, i, i % 2 ? "0.004" : "400", i > 2);
    fclose(f);
}

static ls_buf metrics(void) {
    ls_watcher *w = NULL;
    ls_error e = {0};
    ls_buf b = {0};
    dirs[0] = folder;
    assert_ls_ok(ls_watcher_open(dirs, 1, false, &w, &e), e);
    ls_watcher_settle(w);
    ls_prometheus_write(w, &b);
    ls_watcher_close(w);
    return b;
}

static void assert_has(const ls_buf *b, const char *line) {
    if (!strstr(b->data, line)) fail_msg("'%s' is not in\n%s", line, b->data);
}

static void test_values(void **state) {
    (void)state;
    run_add("a", 4);
    run_add("b\\\"\nc", 0);
    ls_buf b = metrics();
    assert_has(&b, "\nlockstep_step{run=\"a\"} 4\n");
    assert_has(&b, "\nlockstep_loss{run=\"a\"} 4.25\n");
    assert_has(&b, "\nlockstep_tokens_total{run=\"a\"} 8000\n");
    assert_has(&b, "\nlockstep_data_wait_seconds_total{run=\"a\"} 2\n");
    assert_has(&b, "\nlockstep_view_changes_total{run=\"a\"} 1\n");
    assert_has(&b, "\nlockstep_step_duration_seconds_bucket{run=\"a\",le=\"0.0025\"} 0\n");
    assert_has(&b, "\nlockstep_step_duration_seconds_bucket{run=\"a\",le=\"0.005\"} 2\n");
    assert_has(&b, "\nlockstep_step_duration_seconds_bucket{run=\"a\",le=\"300\"} 2\n");
    assert_has(&b, "\nlockstep_step_duration_seconds_bucket{run=\"a\",le=\"+Inf\"} 4\n");
    assert_has(&b, "\nlockstep_step_duration_seconds_count{run=\"a\"} 4\n");
    assert_has(&b, "\nlockstep_run_state{run=\"a\",state=\"failed\"} 1\n");
    /* The backslash and the quote are escaped, and no name breaks a line. */
    assert_has(&b, "run=\"b\\\\\\\"");
    assert_null(strstr(b.data, "\nc"));
    assert_null(strstr(b.data, "lockstep_val_loss{")); /* there was no evaluation */
    assert_int_equal(b.data[b.len - 1], '\n');
    ls_buf_free(&b);
}

/* Each name has one HELP and one TYPE before its samples, which stand together; no sample comes
 * twice. */
static void test_groups(void **state) {
    char *seen[200], *lines[2000];
    int nseen = 0, nlines = 0;
    (void)state;
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "run%d", i);
        run_add(name, i);
    }
    ls_buf b = metrics();
    char *rest = b.data, now[100] = "";
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        char name[100];
        if (sscanf(line, "# HELP %99s", name) == 1) {
            for (int i = 0; i < nseen; i++) assert_string_not_equal(seen[i], name);
            seen[nseen++] = strdup(name);
            snprintf(now, sizeof now, "%s", name);
        } else if (sscanf(line, "# TYPE %99s", name) == 1) {
            assert_string_equal(name, now);
        } else {
            assert_int_equal(strncmp(line, now, strlen(now)), 0);
            assert_int_equal(strncmp(line, "lockstep_", 9), 0);
            char *value = strrchr(line, ' '), *end = NULL;
            assert_non_null(value);
            strtod(value + 1, &end);
            assert_int_equal(*end, 0);
            *value = 0;
            for (int i = 0; i < nlines; i++) assert_string_not_equal(lines[i], line);
            lines[nlines++] = line;
        }
    }
    assert_true(nseen > 9 && nlines > 100);
    for (int i = 0; i < nseen; i++) free(seen[i]);
    ls_buf_free(&b);
}

static void test_promtool(void **state) {
    (void)state;
    if (system("command -v promtool >/dev/null") != 0)
        skip_because("promtool is not installed (Debian's package prometheus)");
    run_add("a", 9);
    run_add("b\"\\", 1);
    ls_buf b = metrics();
    char path[400], line[1000];
    snprintf(path, sizeof path, "%s/metrics.txt", folder);
    assert_int_equal(ls_file_write(path, b.data, b.len, NULL), LS_OK);
    snprintf(line, sizeof line, "promtool check metrics < %s", path);
    assert_int_equal(system(line), 0);
    ls_buf_free(&b);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_values),
        IN_FOLDER(test_groups),
        IN_FOLDER(test_promtool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
