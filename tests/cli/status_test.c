/* status_test.c - `lockstep status`: runs in each state, and directories that are damaged, hostile
 * or can't be read. */
#include <sys/stat.h>

#include "base/json.h"
#include "cli/hosts.h"
#include "cli/terminal.h"

static const char TRAIN[] = "train configs/tiny.yaml -n 2 " SMALLER "--set log.every=1000 ";

static void train(const char *run, const char *more, int code) {
    expectf(code, NULL, "%s -o @/%s %s", TRAIN, run, more);
}

/* The object that `status --json` prints for one run; ls_json_free() it. */
static ls_json *status_of(const char *run) {
    ls_json *j = NULL;
    char *output = output_of("status @/%s --json", run);
    assert_int_equal(occurrences(output, "\n"), 1);
    assert_int_equal(ls_json_parse(output, strlen(output), "status", &j, NULL), LS_OK);
    free(output);
    return j;
}

static int64_t integer_of(const ls_json *j, const char *key) {
    int64_t n = -1;
    ls_json_integer(ls_json_get(j, key), &n);
    return n;
}

static void expect_state(const char *run, const char *state, int64_t step, const char *note) {
    ls_json *j = status_of(run);
    const char *said = ls_json_text(ls_json_get(j, "note"));
    assert_string_equal(ls_json_text(ls_json_get(j, "state")), state);
    assert_int_equal(integer_of(j, "step"), step);
    if (note && (!said || !strstr(said, note))) fail_msg("%s: %s", note, said ? said : "no note");
    if (!note) assert_null(said);
    ls_json_free(j);
}

/* ---- states ---- */

/* Running; then killed, before its first checkpoint and after one. */
static void test_running(void **state) {
    (void)state;
    double left = 0, share = 0;
    pace("killed", 10);
    host h = host_train(2, "killed", "--set train.steps=1000 " SMALLER, "--set train.eval_every=5");
    await_step("killed", 11, &h);
    ls_json *j = status_of("killed");
    assert_string_equal(ls_json_text(ls_json_get(j, "state")), "running");
    assert_int_equal(integer_of(j, "pid"), h.pid);
    assert_true(integer_of(j, "step") >= 10);
    assert_int_equal(integer_of(j, "steps"), 1000);
    assert_int_equal(integer_of(j, "workers"), 2);
    assert_int_equal(integer_of(j, "val_step"), 10);
    assert_true(integer_of(j, "memory_bytes") > 1000000);
    assert_true(ls_json_number(ls_json_get(j, "left_s"), &left) && left > 0);
    assert_true(ls_json_number(ls_json_get(j, "mfu"), &share) && share > 0 && share < 1);
    ls_json_free(j);
    expect("status @/killed", 0, "running");
    pid_t pids[9];
    int n = children_of(h.pid, pids + 1, 8) + 1;
    pids[0] = h.pid;
    for (int i = 0; i < n; i++) kill(pids[i], SIGSTOP); /* so that no line comes meanwhile */
    shell_of_run("killed", "touch -d '9 minutes ago' $m");
    expect("status @/killed", 0, "its last line is 9 min old");
    for (int i = 0; i < n; i++) kill(pids[i], SIGCONT);
    host_kill(&h);
    let_go("killed");
    j = status_of("killed");
    assert_string_equal(ls_json_text(ls_json_get(j, "state")), "failed");
    assert_true(ls_json_is_null(ls_json_get(j, "memory_bytes")));
    ls_json_free(j);
}

static void test_stopped(void **state) {
    (void)state;
    train("stopped", "--set checkpoint.every=10 --until 10", 75);
    expect_state("stopped", "stopped", 10, "has a checkpoint of step 10");
    pace("stopped", 13);
    host h = host_train(2, "stopped", "--resume " SMALLER, "--set log.every=1000");
    await_step("stopped", 14, &h);
    host_kill(&h);
    let_go("stopped");
    ls_json *j = status_of("stopped");
    const char *note = ls_json_text(ls_json_get(j, "note"));
    assert_string_equal(ls_json_text(ls_json_get(j, "state")), "stopped");
    assert_int_equal(integer_of(j, "checkpoint"), 10);
    assert_non_null(strstr(note, "the newest checkpoint is of step 10"));
    ls_json_free(j);
}

static void test_complete(void **state) {
    (void)state;
    train("complete", "--set train.steps=6", 0);
    expect_state("complete", "complete", 6, NULL);
    shell_of_run("complete", "cp -r $r other && sed -i 's/^host .*/host elsewhere/' other/lock");
    expect_state("other", "complete", 6, NULL);
    shell_of_run("other", "rm -r $r/checkpoints");
    expect_state("other", "unknown", 6, "is it still running there? its last line is ");
}

/* When workers fail together, worker 0 writes the line before any of them ends. */
static void test_diverged(void **state) {
    (void)state;
    for (int n = 0; n < 6; n++) {
        train("wild",
              n % 2 ? "-n 3 --set optim.lr=1000 --set optim.min_lr=1000 --set train.steps=30"
                    : "--set optim.lr=1000 --set optim.min_lr=1000 --set train.steps=30",
              1);
        shell_of_run("wild", "tail -1 $m | grep -q '\"diverged\": true'");
    }
    ls_json *j = status_of("wild");
    assert_string_equal(ls_json_text(ls_json_get(j, "state")), "diverged");
    assert_non_null(strstr(ls_json_text(ls_json_get(j, "command")), " --set optim.lr=1000 "));
    assert_non_null(ls_json_text(ls_json_get(j, "started")));
    ls_json_free(j);
    shell_of_run("wild", "tail -1 $r/log.txt | grep -q 'Z lockstep: step .* lower optim.lr'");
}

/* ---- the log ---- */

static char *log_of(const char *run) {
    char path[256];
    ls_buf text = {0};
    ls_error e = {0};
    snprintf(path, sizeof path, "%s/%s/log.txt", folder, run);
    assert_ls_ok(ls_file_read(path, 16 << 20, &text, &e), e);
    return text.data;
}

/* The program's output is in the log, line by line after the time of day, from the first one on;
 * what a resumed run prints follows. */
static void test_log(void **state) {
    (void)state;
    static const size_t TIME = sizeof "2026-11-27T01:20:30Z " - 1;
    char line[512], *first = NULL;
    snprintf(line, sizeof line, "%s -o @/logged --set log.every=4 --until 5", TRAIN);
    assert_int_equal(run_program(line, &first), 75);
    char *second = output_of("train --resume @/logged -n 3");
    char *log = log_of("logged"), *at = log;
    assert_int_equal(occurrences(log, "---- started on "), 2);
    assert_int_equal(occurrences(log, "/lockstep train --resume "), 2); /* proposed, and done */
    assert_null(strchr(log, '\033'));
    for (char *l = strtok(first, "\n"); l; l = strtok(NULL, "\n")) assert_output_has(log, l);
    for (char *l = strtok(second, "\n"); l; l = strtok(NULL, "\n")) assert_output_has(log, l);
    for (char *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        assert_non_null(end);
        assert_true((size_t)(end - at) >= TIME && at[10] == 'T' && at[TIME - 2] == 'Z');
    }
    free(log);
    free(first);
    free(second);
}

/* The log file has a bound, may be a link that leads elsewhere, and is no reason for a run to end;
 * a start that fails leaves none. */
static void test_log_files(void **state) {
    (void)state;
    shell_of_run("logged",
                 "cp -r $r full && head -c 5000000 /dev/zero | tr '\\0' x > full/log.txt");
    expect("train --resume @/full --set train.steps=60", 0, NULL);
    shell_of_run("full",
                 "test $(wc -c < $r/log.txt.1) = 5000000 && test $(wc -c < $r/log.txt) -lt 9999 "
                 "&& grep -q 'started on' $r/log.txt");
    shell_of_run("logged", "cp -r $r linked && rm linked/log.txt && echo mine > other.txt && "
                           "ln -s ../other.txt linked/log.txt");
    expect("train --resume @/linked --set train.steps=60", 0, "log.txt: can't be written: ");
    shell_of_run("linked", "test \"$(cat other.txt)\" = mine");
    shell_of_run("logged", "mkdir empty");
    expect("train configs/tiny.yaml -n 2 -o @/empty --set data.path=@/none", 1, NULL);
    shell_of_run("empty", "test -z \"$(ls -A $r 2>/dev/null)\"");
}

/* ---- what is in a directory ---- */

static int last_line(const char *output) { return output[strlen(output) - 1] == '\n'; }

/* Checkpoints have configs, too; trees of links and hidden directories are left alone. */
static void test_list(void **state) {
    (void)state;
    shell_of_run("complete", "mkdir -p l/deep/er l/.hidden && cp -r $r l/deep/er/b && cp -r $r l/a "
                             "&& cp -r $r l/.hidden/c && ln -s ../l l/again");
    char *output = output_of("status @/l");
    assert_int_equal(occurrences(output, "complete"), 2);
    assert_int_equal(occurrences(output, "\n"), 3);
    assert_true(last_line(output) && strstr(output, "/l/a ") < strstr(output, "/l/deep/er/b "));
    free(output);
    expect("status @/l/a/checkpoints", 0, "no runs are there");
    expect("status @/none", 1, "none: can't be read");
    expect("status --watch=x", 2, "'x' is not a number of seconds");
}

static void test_hostile(void **state) {
    (void)state;
    shell_of_run("complete", "mkdir h && cp -r $r \"$(printf 'h/\\033[31mred\\nforged')\"");
    char *output = output_of("status @/h");
    assert_null(strchr(output, '\033'));
    assert_int_equal(occurrences(output, "\n"), 2);
    assert_output_has(output, "\\x1b[31mred\\nforged");
    free(output);
    shell_of_run("complete", "cp -r $r bad && printf '{\"step\": 7, \"lo' >> bad/metrics.jsonl");
    expect_state("bad", "complete", 6, NULL); /* a line that is being written */
    shell_of_run("bad", "printf '\\nrubbish\\n' >> $m && head -c 100000 /dev/zero >> $m");
    expect_state("bad", "complete", 6, "metrics.jsonl has damaged lines");
    shell_of_run("bad", ": > $m && echo 'train: [' > $r/config.yaml");
    expect_state("bad", "unknown", 6, "config.yaml");
    shell_of_run("bad", "rm $m $r/lock && mkfifo $m");
    expect_state("bad", "unknown", 6, "config.yaml"); /* and does not wait for a writer */
}

/* Root may read everything. */
static void test_unreadable(void **state) {
    (void)state;
    if (geteuid() == 0) skip_because("root may read every directory");
    shell_of_run("complete", "mkdir -p u/x && cp -r $r u/a && chmod 0 u/x && chmod -R a-w u/a");
    expect("status @/u", 1, "x: can't be read: Permission denied");
    expect_state("u/a", "complete", 6, NULL);
    shell_of_run("complete", "chmod -R u+rwx u");
}

/* ---- on a terminal ---- */

/* Each picture takes the place of the one before: no line is wider than the terminal, and there are
 * no more than it has rows. A run that is removed meanwhile is no error; an interrupt leaves the
 * terminal as it was. */
static void test_watch(void **state) {
    (void)state;
    char line[128];
    shell_of_run("complete", "mkdir w && for i in 1 2 3 4 5 6 7 8 9; do cp -r $r w/$i; done");
    snprintf(line, sizeof line, "status @/w --watch=0.1");
    shown *x = terminal_start(line, 60, 8);
    terminal_expect(x, "\033[H\033[J");
    size_t from = x->at;
    terminal_expect(x, "and 4 more\r\n\033[H\033[J");
    int rows = 0; /* lines of the first picture; others may follow it */
    for (const char *l = x->text + from; l < x->text + x->at - 6; rows++) {
        const char *end = strstr(l, "\r\n");
        assert_true(end - l <= 60);
        l = end + 2;
    }
    assert_int_equal(rows, 7); /* and one for the cursor */
    shell_of_run("w", "rm -r $r/[1-6]");
    terminal_expect(x, "/w/9 ");
    terminal_expect(x, "\033[H\033[Jrun");
    terminal_type(x, "\3");
    assert_int_equal(terminal_end(x), SIGINT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_running),    cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_complete),   cmocka_unit_test(test_diverged),
        cmocka_unit_test(test_log),        cmocka_unit_test(test_log_files),
        cmocka_unit_test(test_list),       cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_unreadable), cmocka_unit_test(test_watch)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
