/* answers.c - see answers.h. */
#include "report/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_records.h"
#include "base/log.h"
#include "base/utf8.h"

enum { SHOWN = 5, SHOWN_BYTES = 160 };

static char *path_in(const char *run) { return ls_format("%s/" LS_ANSWERS_FILE, run); }

/* ---- cutting ---- */

typedef struct cut {
    int64_t steps, last; /* last: the step of the last line that stays */
} cut;

static bool stays(void *arg, const ls_line *line) {
    cut *c = arg;
    int64_t step = 0;
    ls_json *j = ls_json_of_line(line);
    bool is_step = ls_json_integer(ls_json_get(j, "step"), &step);
    ls_json_free(j);
    if (!is_step || step <= 0 || step > c->steps) return false;
    c->last = step;
    return true;
}

ls_status ls_answers_cut(const char *run, int64_t steps, int64_t *step_p, ls_error *e) {
    char *path = path_in(run);
    cut c = {.steps = steps};
    ls_status s = ls_lines_cut(path, stays, &c, e);
    free(path);
    if (s == LS_OK) *step_p = c.last;
    return s;
}

/* ---- writing ---- */

static void put_line(int64_t step, const ls_answer *a, ls_buf *out) {
    ls_json *line = ls_json_new_object();
    ls_json_set_integer(line, "step", step);
    ls_json_set(line, "prompt", ls_json_new_bytes(a->prompt, strlen(a->prompt)));
    ls_json_set(line, "text", ls_json_new_bytes(a->text.data, a->text.len));
    ls_json_set_integer(line, "tokens", a->ntokens);
    ls_json_set_text(line, "end", a->end);
    ls_json_write(line, 0, out);
    ls_buf_append(out, "\n", 1);
    ls_json_free(line);
}

/* A part that was written is taken back. */
static ls_status append(const char *path, const ls_buf *lines, ls_error *e) {
    int file = -1;
    LS_TRY(ls_file_open_append(path, &file, e));
    off_t before = lseek(file, 0, SEEK_END);
    size_t done = 0;
    while (done < lines->len) {
        ssize_t n = write(file, lines->data + done, lines->len - done);
        if (n < 0 && errno != EINTR) break;
        if (n > 0) done += (size_t)n;
    }
    ls_status s = LS_OK;
    if (done < lines->len) {
        s = ls_fail(e, LS_EIO, "%s: can't be written: %s", path, strerror(errno));
        (void)!ftruncate(file, before);
    }
    close(file);
    return s;
}

ls_status ls_answers_write(const char *run, int64_t step, const ls_answer *list, int n,
                           ls_error *e) {
    char *path = path_in(run);
    ls_buf lines = {0};
    for (int i = 0; i < n; i++) put_line(step, &list[i], &lines);
    ls_status s = append(path, &lines, e);
    ls_buf_free(&lines);
    free(path);
    return s;
}

/* ---- logging ---- */

/* In one line, and not all of a long text. */
static void log_text(const char *begin, const char *text, size_t nbytes) {
    bool all = nbytes <= SHOWN_BYTES;
    size_t n = all ? nbytes : ls_utf8_complete(text, SHOWN_BYTES);
    char line[SHOWN_BYTES + 1] = "";
    for (size_t i = 0; i < n; i++) line[i] = text[i] == '\n' || !text[i] ? ' ' : text[i];
    line[n] = 0;
    ls_log_result("%s%s%s", begin, line, all ? "" : " ...");
}

void ls_answers_log(const char *run, const ls_answer *list, int n) {
    for (int i = 0; i < n && i < SHOWN; i++) {
        log_text("    > ", list[i].prompt, strlen(list[i].prompt));
        log_text("    ", list[i].text.data, list[i].text.len);
    }
    if (n > SHOWN) ls_log_result("    (%d more: %s/" LS_ANSWERS_FILE ")", n - SHOWN, run);
}
