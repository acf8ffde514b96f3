/* answers.c - see answers.h. */
#include "report/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/utf8.h"

enum { SHOWN = 5, SHOWN_BYTES = 160 };

static char *path_in(const char *run) { return ls_format("%s/" LS_ANSWERS_FILE, run); }

/* ---- cutting ---- */

/* The step of a line; 0: it is torn, damaged or foreign. */
static int64_t step_of(const ls_line *line) {
    ls_json *j = NULL;
    int64_t step = 0;
    if (!line->whole || line->too_long) return 0;
    if (ls_json_parse(line->text, line->nbytes, "a line", &j, NULL) != LS_OK) return 0;
    if (!ls_json_integer(ls_json_get(j, "step"), &step)) step = 0;
    ls_json_free(j);
    return step;
}

static ls_status cut_file(const char *path, int64_t steps, int64_t *step_p, ls_error *e) {
    ls_lines *l = NULL;
    ls_line line;
    bool there = true;
    LS_TRY(ls_lines_open(path, true, &l, e));
    ls_status s = LS_OK;
    uint64_t size = ls_lines_size(l), end = size;
    while ((s = ls_lines_next(l, &line, &there, e)) == LS_OK && there) {
        int64_t step = step_of(&line);
        if (step > 0 && step <= steps) {
            *step_p = step;
            break;
        }
        end = line.at;
    }
    ls_lines_close(l);
    return s == LS_OK && end < size ? ls_file_cut(path, end, e) : s;
}

ls_status ls_answers_cut(const char *run, int64_t steps, int64_t *step_p, ls_error *e) {
    char *path = path_in(run);
    int64_t step = 0;
    ls_status s = ls_file_exists(path) ? cut_file(path, steps, &step, e) : LS_OK;
    free(path);
    if (s == LS_OK) *step_p = step;
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
