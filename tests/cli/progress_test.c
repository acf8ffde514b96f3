/* progress_test.c - the progress of a run on a terminal, and in a pipe. */
#include <pty.h>
#include <sys/ioctl.h>

#include "cli/program.h"
#include "report/frame_check.h"

/* A small model, with an evaluation every ten steps and a line for each step. */
static const char TRAIN[] = "train configs/tiny.yaml -n 2 -o @/%s --set train.steps=60 " SMALLER
                            "--set train.eval_every=10 --set log.every=1 "
                            "--set survival.balance=off";

/* Each validation loss once, with its step; the last one in the summary. */
static void check_values(const char *output) {
    char says[64];
    for (int step = 10; step < 60; step += 10) {
        snprintf(says, sizeof says, "step %d/60  val ", step);
        if (occurrences(output, says) != 1) fail_msg("%s:\n%s", says, output);
    }
    assert_int_equal(occurrences(output, "  val "), 5);
    assert_int_equal(occurrences(output, "validation loss "), 1);
}

static void test_pipe(void **state) {
    (void)state;
    char *output = output_of(TRAIN, "pipe");
    check_values(output);
    for (int step = 1; step <= 60; step++) { /* whole lines */
        char says[64];
        snprintf(says, sizeof says, "\nstep %d/60  loss ", step);
        const char *at = strstr(output, says);
        assert_non_null(at);
        assert_non_null(memmem(at + 1, strcspn(at + 1, "\n"), " tokens/s  left 0:", 17));
    }
    free(output);
}

static void resize(int terminal, unsigned short columns) {
    struct winsize w = {.ws_row = 24, .ws_col = columns};
    assert_int_equal(ioctl(terminal, TIOCSWINSZ, &w), 0);
}

/* The next status line that another one has replaced; all are ASCII. */
static const char *next_status(const char *from, size_t *n_p) {
    static const char clear[] = "\r\033[Kstep ";
    for (const char *at = from; (at = strstr(at, clear)); at++) {
        const char *text = at + 4;
        *n_p = strcspn(text, "\r\n");
        if (text[*n_p] && !memmem(text, *n_p, "  val ", 6)) return text;
    }
    return NULL;
}

/* Reads from the terminal until there are `count` status lines after `from`, the first of which has
 * at most `most` columns; the later ones must have no more. Returns where the first of them begins;
 * NULL: the output ended before. */
static const char *read_statuses(int terminal, char *output, const char *from, int count,
                                 size_t most) {
    for (ssize_t got = 1; got > 0;) {
        size_t n = 0;
        int found = 0;
        const char *first = NULL;
        for (const char *at = from; (at = next_status(at, &n)) && found < count;) {
            if (found > 0) assert_true(n <= most);
            if (n <= most && found++ == 0) first = at;
        }
        if (found == count) return first;
        size_t length = strlen(output);
        got = read(terminal, output + length, MAX_OUTPUT - length);
        if (got > 0) output[length + (size_t)got] = 0;
    }
    return NULL;
}

/* The status line never wraps, however narrow the terminal becomes, and drops whole fields. */
static void test_terminal(void **state) {
    (void)state;
    char line[512], text[4096], *argv[MAX_ARGS], *output = calloc(1, MAX_OUTPUT + 1);
    struct winsize w = {.ws_row = 24, .ws_col = 80};
    int terminal = -1, how = 0;
    snprintf(line, sizeof line, TRAIN, "terminal");
    pace("terminal", 0);
    pid_t pid = forkpty(&terminal, NULL, NULL, &w);
    assert_true(pid >= 0);
    if (pid == 0) {
        split_line(line, argv, text, sizeof text);
        exec_program(argv);
    }
    const char *wide = read_statuses(terminal, output, output, 2, 79), *narrow;
    assert_non_null(wide);
    assert_non_null(strstr(wide, " tokens/s  left 0:"));
    resize(terminal, 30);
    narrow = read_statuses(terminal, output, wide, 3, 29);
    assert_non_null(narrow);
    assert_non_null(strstr(narrow, "/60  loss "));
    assert_null(strstr(narrow, " tokens"));
    resize(terminal, 200);
    let_go("terminal");
    assert_null(read_statuses(terminal, output, narrow, 1000, 79));
    close(terminal);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    assert_non_null(strstr(narrow, " tokens/s  left 0:"));
    check_values(output);
    free(output);
}

static int circles(const char *run) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s/loss.svg", folder, run);
    ls_buf svg = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read(path, 1 << 20, &svg, &e), e);
    int n = occurrences(svg.data, "<circle");
    *strrchr(path, '/') = 0;
    frame_check_file(path, "loss.svg");
    ls_buf_free(&svg);
    return n;
}

/* The picture exists after the first evaluation, and shows the latest one when the run stops. */
static void test_picture(void **state) {
    (void)state;
    char line[512], *output = NULL;
    snprintf(line, sizeof line, TRAIN, "picture");
    pace("picture", 11);
    program p = program_start(line, 0);
    wait_for_file("picture/loss.svg");
    assert_in_range(circles("picture"), 1, 5);
    let_go("picture");
    assert_int_equal(program_end(&p, &output), 0);
    free(output);
    assert_int_equal(circles("picture"), 6);
    snprintf(line, sizeof line, TRAIN, "stops");
    strcat(line, " --set checkpoint.every=25");
    pace("stops", 25);
    p = program_start(line, 0);
    wait_for_file("stops/checkpoints/step-25");
    assert_int_equal(stop_paced(&p, "stops", &output), 75);
    free(output);
    assert_in_range(circles("stops"), 2, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_picture),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
