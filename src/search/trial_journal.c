/* trial_journal.c - see trial_journal.h. */
#include "search/trial_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/lines.h"

/* ---- the first line ---- */

/* With pbt all trials depend on each other; else more of them may be added. */
static ls_json *head_of(const ls_space *s) {
    const ls_space_rules *u = &s->rules;
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "method", u->method);
    ls_json_set_text(o, "metric", u->metric);
    ls_json_set_integer(o, "mode", u->maximize);
    ls_json_set_integer(o, "steps", u->steps);
    ls_json_set_integer(o, "seed", u->seed);
    if (u->method == LS_SPACE_ASHA) {
        ls_json_set_integer(o, "rule", u->rule);
        ls_json_set_integer(o, "grace", u->grace);
        ls_json_set_integer(o, "reduction", u->reduction);
    } else if (u->method == LS_SPACE_PBT) {
        ls_json_set_integer(o, "trials", u->trials);
        ls_json_set_integer(o, "interval", u->interval);
        ls_json_set_number(o, "quantile", u->quantile);
        ls_json_set_number(o, "resample", u->resample);
    }
    ls_json_set_text(o, "space", s->text);
    return o;
}

static ls_status check_head(const char *path, const ls_json *was, const ls_json *now, ls_error *e) {
    const char *key = NULL;
    const ls_json *value = NULL;
    for (void *it = NULL; (it = ls_json_next(now, it, &key, &value));)
        if (!ls_json_equal(value, ls_json_get(was, key)))
            return ls_fail(
                e, LS_EINVAL,
                "%s: is of an earlier search with another '%s'; choose another directory "
                "with -o, or remove this one",
                path, key);
    return LS_OK;
}

/* ---- lines ---- */

static ls_status append(ls_search_journal *j, const ls_json *line, ls_error *e) {
    ls_buf b = {0};
    ls_json_write(line, 0, &b);
    ls_buf_printf(&b, "\n");
    bool good = write(j->fd, b.data, b.len) == (ssize_t)b.len && fdatasync(j->fd) == 0;
    int why = errno;
    ls_buf_free(&b);
    return good ? LS_OK : ls_fail(e, LS_EIO, "%s: can't be written: %s", j->path, strerror(why));
}

static bool read_result(const ls_json *line, ls_search_result *r) {
    int64_t trial = 0;
    const ls_json *metric = ls_json_get(line, "metric");
    r->metric = NAN;
    bool good = ls_json_integer(ls_json_get(line, "trial"), &trial) && trial > 0 &&
                trial <= LS_SPACE_TRIALS && ls_json_integer(ls_json_get(line, "step"), &r->step) &&
                (ls_json_is_null(metric) || ls_json_number(metric, &r->metric));
    if (good) r->trial = (int)trial - 1;
    return good;
}

/* How the lines are used, and where the whole ones end. */
typedef struct reading {
    const ls_json *head;
    ls_search_use *use;
    void *arg;
    uint64_t end;
} reading;

static ls_status fail_damaged(const char *path, const ls_line *line, ls_error *e) {
    return ls_fail(e, LS_EINVAL,
                   "%s:%lld: is damaged; remove the line: its training is found again", path,
                   (long long)line->number);
}

static ls_status use_line(const char *path, reading *r, const ls_line *line, ls_error *e) {
    ls_search_result result;
    ls_json *j = NULL;
    ls_status s = LS_OK;
    if (!line->whole) return LS_OK;
    r->end = line->at + line->nbytes + 1;
    if (line->too_long || ls_json_parse(line->text, line->nbytes, path, &j, NULL) != LS_OK)
        return fail_damaged(path, line, e);
    if (line->number == 1)
        s = check_head(path, j, r->head, e);
    else if (read_result(j, &result))
        r->use(r->arg, &result);
    else
        s = fail_damaged(path, line, e);
    ls_json_free(j);
    return s;
}

static ls_status read_lines(const char *path, reading *r, uint64_t *size_p, ls_error *e) {
    ls_lines *lines = NULL;
    ls_line line;
    bool there = false;
    ls_status s = ls_lines_open(path, false, &lines, e);
    LS_TRY(s);
    *size_p = ls_lines_size(lines);
    while ((s = ls_lines_next(lines, &line, &there, e)) == LS_OK && there) {
        s = use_line(path, r, &line, e);
        if (s != LS_OK) break;
    }
    ls_lines_close(lines);
    return s;
}

/* ---- the file ---- */

static ls_status open_file(ls_search_journal *j, reading *r, ls_error *e) {
    uint64_t size = 0;
    if (ls_file_exists(j->path)) {
        LS_TRY(read_lines(j->path, r, &size, e));
        if (r->end < size) LS_TRY(ls_file_cut(j->path, r->end, e));
    }
    LS_TRY(ls_file_open_append(j->path, &j->fd, e));
    return r->end == 0 ? append(j, r->head, e) : LS_OK;
}

ls_status ls_search_journal_open(const char *dir, const ls_space *space, ls_search_use *use,
                                 void *arg, ls_search_journal *j_p, ls_error *e) {
    ls_search_journal j = {ls_format("%s/tune.jsonl", dir), -1};
    ls_json *head = head_of(space);
    reading r = {.head = head, .use = use, .arg = arg};
    ls_status s = open_file(&j, &r, e);
    if (s == LS_OK) s = ls_file_sync_dir(dir, e);
    ls_json_free(head);
    if (s == LS_OK)
        *j_p = j;
    else
        ls_search_journal_close(&j);
    return s;
}

ls_status ls_search_journal_add(ls_search_journal *j, const ls_search_result *r, ls_error *e) {
    ls_json *line = ls_json_new_object();
    ls_json_set_integer(line, "trial", r->trial + 1);
    ls_json_set_integer(line, "step", r->step);
    ls_json_set_number(line, "metric", r->metric);
    ls_status s = append(j, line, e);
    ls_json_free(line);
    return s;
}

void ls_search_journal_close(ls_search_journal *j) {
    if (j->path && j->fd >= 0) close(j->fd);
    free(j->path);
    *j = (ls_search_journal){.fd = -1};
}
