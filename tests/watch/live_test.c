/* live_test.c - what a page is sent: of new lines, new runs, lines taken back, and after its
 * connection was lost. */
#include "watch/live.h"

#include <math.h>
#include <unistd.h>

#include "base/file.h"
#include "folder.h"
#include "test.h"

static char text[1 << 20];
static double now;
static const char *dirs[1];

/* ---- runs ---- */

static void run_add(const char *name, const char *lines) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(ls_file_make_dirs(path, NULL), LS_OK);
    snprintf(path, sizeof path, "%s/%s/config.yaml", folder, name);
    fclose(fopen(path, "a"));
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, name);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    assert_true(fputs(lines, f) >= 0);
    fclose(f);
}

static void run_steps(const char *name, int from, int to) {
    ls_buf b = {0};
    for (int i = from; i <= to; i++)
        ls_buf_printf(&b, "{\"step\": %d, \"loss\": %d.5, \"samples\": 2, \"seconds\": 1}\n", i, i);
    run_add(name, b.data);
    ls_buf_free(&b);
}

static void look(ls_watcher *w) {
    now += 6; /* directories are looked through, too */
    ls_watcher_look(w, now);
    ls_watcher_settle(w);
    while (ls_watcher_look(w, now)) now += 0.1;
}

static ls_watcher *watcher_open(void) {
    ls_watcher *w = NULL;
    ls_error e = {0};
    dirs[0] = folder;
    now = 1e10; /* later than any clock */
    assert_ls_ok(ls_watcher_open(dirs, 1, false, &w, &e), e);
    ls_watcher_settle(w);
    return w;
}

/* ---- the stream ---- */

/* All that the stream has now, in pieces of 100 bytes. */
static const char *read_stream(ls_live *l) {
    size_t n = 0, got = 0;
    while ((got = ls_live_source.next(l, text + n, 100))) n += got;
    text[n] = 0;
    return text;
}

static void assert_has(const char *part) {
    if (!strstr(text, part)) fail_msg("'%s' is not in\n%s", part, text);
}

static void assert_has_not(const char *part) {
    if (strstr(text, part)) fail_msg("'%s' is in\n%s", part, text);
}

/* The last id in the text: free() it. */
static char *last_id(void) {
    char *at = NULL;
    for (char *s = text; (s = strstr(s, "id: ")); s++) at = s;
    assert_non_null(at);
    return strndup(at + 4, strcspn(at + 4, "\n"));
}

static void test_rows(void **state) {
    (void)state;
    run_steps("a", 1, 3);
    ls_watcher *w = watcher_open();
    ls_live *l = ls_live_open(w, NULL);
    read_stream(l);
    assert_has("event: hello\ndata: {\"boot\":\"");
    assert_has("\"resumed\":false}");
    assert_has_not("event: rows");
    assert_string_equal(read_stream(l), "");
    run_steps("a", 4, 5);
    run_add("a", "{\"step\": 5, \"val_loss\": 0.25}\n{\"step\": 5, \"ended\": true}\n");
    look(w);
    read_stream(l);
    assert_has("event: rows\ndata: {\"run\":0,\"generation\":0,\"begin\":3,\"count\":2,");
    assert_has("\"step\":[4,5],\"units\":[8,10],");
    assert_has("\"loss\":[4.5,5.5]");
    assert_has("{\"name\":\"val_loss\",\"step\":5,");
    assert_has("\"kind\":\"ended\"");
    assert_string_equal(read_stream(l), "");
    run_steps("a", 6, 1000);
    look(w);
    read_stream(l);
    assert_has("event: stale\ndata: {\"run\":0,\"rows\":1000}");
    assert_has_not("event: rows");
    ls_live_source.close(l);
    ls_watcher_close(w);
}

static void test_resumed(void **state) {
    (void)state;
    run_steps("a", 1, 3);
    run_steps("b", 1, 3);
    ls_watcher *w = watcher_open();
    ls_live *l = ls_live_open(w, NULL);
    read_stream(l);
    run_steps("a", 4, 4);
    look(w);
    read_stream(l);
    char *id = last_id();
    ls_live_source.close(l);
    /* Nobody reads meanwhile. */
    run_steps("a", 5, 5);
    look(w);
    run_steps("a", 6, 6);
    run_steps("b", 4, 4);
    look(w);
    l = ls_live_open(w, id);
    read_stream(l);
    assert_has("\"resumed\":true}");
    assert_has("{\"run\":0,\"generation\":0,\"begin\":4,\"count\":2,");
    assert_has("{\"run\":1,\"generation\":0,\"begin\":3,\"count\":1,");
    ls_live_source.close(l);
    /* An id of another watcher, of the future, or none at all. */
    const char *const others[] = {"1.1", "x", "", id};
    for (int i = 0; i < 4; i++) {
        char *other = i < 3 ? strdup(others[i]) : ls_format("%s9999", id);
        l = ls_live_open(w, other);
        read_stream(l);
        assert_has("\"resumed\":false}");
        assert_has_not("event: rows");
        ls_live_source.close(l);
        free(other);
    }
    free(id);
    ls_watcher_close(w);
}

static void test_back(void **state) {
    char path[300];
    (void)state;
    run_steps("a", 1, 10);
    ls_watcher *w = watcher_open();
    ls_live *l = ls_live_open(w, NULL);
    read_stream(l);
    snprintf(path, sizeof path, "%s/a/metrics.jsonl", folder);
    unlink(path);
    run_steps("a", 1, 4);
    run_steps("a", 50, 60);
    look(w);
    read_stream(l);
    assert_has("event: back\ndata: {\"run\":0,\"generation\":1}");
    assert_has_not("event: rows");
    assert_int_equal(w->runs[0]->lines.nrows, 15);
    ls_live_source.close(l);
    ls_watcher_close(w);
}

static void test_new_run(void **state) {
    (void)state;
    run_steps("b", 1, 3);
    ls_watcher *w = watcher_open();
    ls_live *l = ls_live_open(w, NULL);
    read_stream(l);
    run_steps("a<b>&\"\\\n", 1, 3);
    look(w);
    read_stream(l);
    assert_has("event: list\n");
    assert_int_equal(w->nruns, 2);
    assert_string_equal(w->runs[0]->name, "b"); /* numbers stay */
    run_steps("a<b>&\"\\\n", 4, 4);
    look(w);
    read_stream(l);
    assert_has("{\"run\":1,\"generation\":0,\"begin\":3,\"count\":1,");
    /* A name is one line of JSON. */
    ls_buf list = {0};
    ls_json *j = NULL;
    ls_watcher_write(w, &list);
    assert_null(strchr(list.data, '\n'));
    assert_int_equal(ls_json_parse(list.data, list.len, "", &j, NULL), LS_OK);
    const ls_json *run = ls_json_at(ls_json_get(j, "runs"), 1);
    assert_non_null(strstr(ls_json_text(ls_json_get(run, "name")), "a<b>&\"\\"));
    ls_json_free(j);
    ls_buf_free(&list);
    ls_live_source.close(l);
    ls_watcher_close(w);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_rows),
        IN_FOLDER(test_resumed),
        IN_FOLDER(test_back),
        IN_FOLDER(test_new_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
