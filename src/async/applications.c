/* applications.c - see applications.h: writing and cutting. Reading is in applications_read.c. */
#include "async/applications.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_records.h"

struct ls_applications {
    char *path;
    int file;
};

static char *path_in(const char *run) { return ls_format("%s/" LS_APPLICATIONS_FILE, run); }

/* ---- cutting ---- */

/* Does the line belong to the first *arg steps? A line that is torn or damaged does not. */
static bool remains(void *arg, const ls_line *line) {
    const int64_t *steps = arg;
    int64_t step = 0, begins = 0;
    ls_json *j = ls_json_of_line(line);
    bool is_step = ls_json_integer(ls_json_get(j, "step"), &step);
    bool is_part = ls_json_integer(ls_json_get(j, "begins"), &begins);
    ls_json_free(j);
    return (is_step && step <= *steps) || (is_part && begins < *steps);
}

ls_status ls_applications_cut(const char *run, int64_t steps, ls_error *e) {
    char *path = path_in(run);
    ls_status s = ls_lines_cut(path, remains, &steps, e);
    free(path);
    return s;
}

static bool is_from(const ls_line *line, int64_t first) {
    int64_t step = 0;
    ls_json *j = ls_json_of_line(line);
    bool is_step = ls_json_integer(ls_json_get(j, "step"), &step);
    ls_json_free(j);
    return is_step && step > first;
}

int64_t ls_applications_count(const char *run, int64_t first) {
    char *path = path_in(run);
    ls_lines *l = NULL;
    ls_line line;
    bool there = true;
    int64_t n = 0;
    ls_status s = ls_file_exists(path) ? ls_lines_open(path, true, &l, NULL) : LS_EIO;
    /* from the end of the file */
    while (s == LS_OK && ls_lines_next(l, &line, &there, NULL) == LS_OK && there) {
        bool counts = is_from(&line, first);
        if (!counts && line.whole) break;
        n += counts;
    }
    ls_lines_close(l);
    free(path);
    return n;
}

/* ---- writing ---- */

static ls_status write_all(ls_applications *a, const ls_buf *line, ls_error *e) {
    for (size_t done = 0; done < line->len;) {
        ssize_t n = write(a->file, line->data + done, line->len - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return ls_fail(e, LS_EIO,
                           "%s: can't be written: %s; without it the run can't be replayed: make "
                           "room, and continue with --resume",
                           a->path, strerror(errno));
        done += (size_t)n;
    }
    return LS_OK;
}

static ls_status write_part(ls_applications *a, const ls_applications_begin *b, ls_error *e) {
    ls_buf line = {0};
    ls_buf_printf(&line, "{\"begins\": %lld, \"of\": %lld, \"workers\": %d, ", (long long)b->steps,
                  (long long)b->of, b->nworkers);
    if (b->sum) ls_buf_printf(&line, "\"sum\": \"%s\", ", b->sum);
    ls_buf_printf(&line, "\"shards\": [");
    for (int i = 0; i < b->nshards; i++)
        ls_buf_printf(&line, "%s%zu", i ? ", " : "", b->shards[i].end);
    ls_buf_printf(&line, "]}\n");
    ls_status s = write_all(a, &line, e);
    ls_buf_free(&line);
    return s;
}

ls_status ls_applications_open(const char *run, const ls_applications_begin *b,
                               ls_applications **a_p, ls_error *e) {
    ls_applications *a = LS_NEW(ls_applications);
    a->path = path_in(run);
    a->file = -1;
    ls_status s = ls_file_open_append(a->path, &a->file, e);
    if (s == LS_OK) s = write_part(a, b, e);
    if (s == LS_OK)
        *a_p = a;
    else
        ls_applications_close(a);
    return s;
}

static void put_versions(const char *name, const int64_t *versions, int n, ls_buf *line) {
    ls_buf_printf(line, ", \"%s\": [", name);
    for (int i = 0; i < n; i++)
        ls_buf_printf(line, "%s%lld", i ? ", " : "", (long long)versions[i]);
    ls_buf_printf(line, "]");
}

ls_status ls_applications_add(ls_applications *a, const ls_applications_line *l, ls_error *e) {
    ls_buf line = {0};
    ls_buf_printf(&line, "{\"step\": %lld, \"worker\": %d", (long long)l->step + 1, l->worker);
    put_versions("base", l->base, l->nshards, &line);
    put_versions("at", l->at, l->nshards, &line);
    ls_buf_printf(&line, "}\n");
    ls_status s = write_all(a, &line, e);
    ls_buf_free(&line);
    return s;
}

ls_status ls_applications_sync(ls_applications *a, ls_error *e) {
    if (fdatasync(a->file) == 0) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: can't be written: %s", a->path, strerror(errno));
}

void ls_applications_close(ls_applications *a) {
    if (!a) return;
    if (a->file >= 0) close(a->file);
    free(a->path);
    free(a);
}
