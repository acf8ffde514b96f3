/* device_run_test.c - scripts/device_run.sh on device `c`: its parts, and a device that is not
 * there. */
/* ctest: slow seconds=3 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "folder.h"
#include "test.h"

/* Returns the exit code. *text_p: the file of the results' folder; the caller frees it. */
static int device_run(const char *options, const char *file, char **text_p) {
    ls_buf text = {0};
    char *tree = ls_strdup(LOCKSTEP_PROGRAM);
    *strrchr(tree, '/') = 0;
    char *command = ls_format("scripts/device_run.sh --tree %s %s %s/results >%s/printed 2>&1",
                              tree, options, folder, folder);
    int status = system(command);
    char *path = ls_format("%s/results/%s", folder, file);
    assert_int_equal(ls_file_read(path, 1 << 24, &text, NULL), LS_OK);
    *text_p = ls_strdup(text.data);
    ls_buf_free(&text);
    free(tree), free(command), free(path);
    return WEXITSTATUS(status);
}

/* Is there a line of the part, with this result and then these words? */
static bool says(const char *text, const char *part, const char *result, const char *words) {
    char *begin = ls_format("\n%-10s %-8s", part, result);
    const char *line = strstr(text, begin), *found = line ? strstr(line + 1, words) : NULL;
    bool there = found && found < strchr(line + 1, '\n');
    free(begin);
    if (!there) print_message("%s: not '%s ... %s' in:\n%s\n", part, result, words, text);
    return there;
}

static int count(const char *text, const char *what) {
    int n = 0;
    while ((text = strstr(text, what))) n++, text++;
    return n;
}

static void test_parts(void **state) {
    static const char parts[] =
        "--small --device c --only machine --only bits --only train --only kernels --only tokens";
    char *text = NULL;
    (void)state;
    assert_int_equal(device_run(parts, "summary.txt", &text), 0);
    assert_true(says(text, "machine", "ok", "TFLOP/s"));
    assert_true(says(text, "bits", "ok", "tiny in bf16: "));
    assert_true(says(text, "train", "ok", "5 runs of configs/tiny.yaml have one hash"));
    assert_true(says(text, "kernels", "ok", "15 products"));
    assert_true(says(text, "tokens", "ok", "tokens/s"));
    assert_null(strstr(text, "\ntorch"));
    free(text);
    assert_int_equal(device_run(parts, "figures.jsonl", &text), 0);
    assert_int_equal(count(text, "\"product\":"), 2 * 17);
    free(text);
}

/* What is done is not done again, and what has failed is. */
static void test_continued(void **state) {
    char *text = NULL, *path = ls_format("%s/results/parts.tsv", folder);
    static const char done[] =
        "host\tok\t0\t\nbuild\tok\t0\t\ntests\tok\t0\t\nbits\tfailed\t0\twrong\n"
        "train\tok\t0\t\nkernels\tok\t0\t\ntokens\tok\t0\t\n"
        "machine\tok\t0\t\nfused16\tok\t0\t\ntorch\tok\t0\t\nsanitizer\tok\t0\t\n";
    (void)state;
    char *log = ls_format("%s/results/log.txt", folder), *to = ls_format("%s/results", folder);
    assert_true(mkdir(to, 0777) == 0 || errno == EEXIST);
    assert_int_equal(ls_file_replace(path, done, strlen(done), NULL), LS_OK);
    assert_int_equal(ls_file_replace(log, "", 0, NULL), LS_OK);
    assert_int_equal(device_run("--small --device c", "log.txt", &text), 0);
    assert_int_equal(count(text, "==== "), 1);
    assert_non_null(strstr(text, "==== bits"));
    free(text), free(path), free(log), free(to);
}

static void test_unusable(void **state) {
    char *text = NULL, *sent = ls_format("%s/summary.txt", folder);
    (void)state;
    assert_int_equal(setenv("OUT", folder, 1), 0); /* where results are sent from */
    assert_int_equal(device_run("--device tpu --only machine --only bits", "summary.txt", &text),
                     77);
    assert_true(says(text, "machine", "skipped", "device tpu: not known"));
    assert_true(says(text, "bits", "skipped", "device tpu: not known"));
    free(text);
    assert_int_equal(access(sent, R_OK), 0);
    free(sent);
    unsetenv("OUT");
    assert_int_equal(device_run("--small --limit 0 --device c --only bits", "summary.txt", &text),
                     0);
    assert_true(says(text, "bits", "skipped", "no time was left of 0 s"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        slow_unit_test(test_parts),
        cmocka_unit_test(test_continued),
        cmocka_unit_test(test_unusable),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
