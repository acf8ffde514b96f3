/* lines.c - see lines.h. One piece of the file is in memory, from offset `base` on; all offsets are
 * those in the file. */
#include "base/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { PIECE = 4 * LS_LONGEST_LINE };

struct ls_lines {
    char *path;
    int fd;
    bool from_end;
    uint64_t size, at; /* at: everything before it has been read; from the end: after it */
    uint64_t stop_at;
    int64_t number;
    uint64_t base;
    size_t len;
    char piece[PIECE];
};

ls_status ls_lines_open(const char *path, bool from_end, ls_lines **l_p, ls_error *e) {
    struct stat st;
    int fd = -1;
    LS_TRY(ls_file_open_regular(path, &fd, &st, e));
    ls_lines *l = LS_NEW(ls_lines);
    l->path = ls_strdup(path);
    l->fd = fd;
    l->from_end = from_end;
    l->size = (uint64_t)st.st_size;
    l->at = from_end ? l->size : 0;
    *l_p = l;
    return LS_OK;
}

void ls_lines_close(ls_lines *l) {
    if (!l) return;
    close(l->fd);
    free(l->path);
    free(l);
}

uint64_t ls_lines_size(const ls_lines *l) { return l->size; }
void ls_lines_stop_at(ls_lines *l, uint64_t at) { l->stop_at = at; }

/* ---- pieces ---- */

/* Reads a piece: as much as it holds, from `from` on. */
static ls_status take(ls_lines *l, uint64_t from, ls_error *e) {
    uint64_t rest = l->size - from;
    size_t want = rest < PIECE ? (size_t)rest : PIECE;
    l->base = from;
    l->len = 0;
    while (l->len < want) {
        ssize_t n = pread(l->fd, l->piece + l->len, want - l->len, (off_t)(from + l->len));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ls_fail(e, LS_EIO, "%s: can't be read: %s", l->path, strerror(errno));
        if (n == 0) return ls_fail(e, LS_EIO, "%s: was cut short while it was read", l->path);
        l->len += (size_t)n;
    }
    return LS_OK;
}

static bool has(const ls_lines *l, uint64_t from, uint64_t end) {
    return from >= l->base && end <= l->base + l->len;
}

/* The start of the data at or after `at`; between them is a hole of zeros. */
static uint64_t data_after(const ls_lines *l, uint64_t at) {
    off_t data = lseek(l->fd, (off_t)at, SEEK_DATA);
    if (data < 0) return errno == ENXIO ? l->size : at;
    return (uint64_t)data < l->size ? (uint64_t)data : l->size;
}

/* The end of the data at or before `at`; between them is a hole of zeros. */
static uint64_t data_before(const ls_lines *l, uint64_t at) {
    uint64_t end = 0;
    while (end < at) {
        off_t data = lseek(l->fd, (off_t)end, SEEK_DATA);
        if (data < 0 && errno != ENXIO) return at;
        if (data < 0 || (uint64_t)data >= at) return end;
        off_t hole = lseek(l->fd, data, SEEK_HOLE);
        if (hole < 0) return at;
        end = (uint64_t)hole;
    }
    return at;
}

/* ---- lines ---- */

/* The line's text; a piece holds the longest line. */
static ls_status show(ls_lines *l, uint64_t start, uint64_t end, ls_line *line, ls_error *e) {
    line->at = start;
    line->too_long = end - start > LS_LONGEST_LINE;
    line->text = "";
    line->nbytes = 0;
    if (line->too_long) return LS_OK;
    if (!has(l, start, end)) LS_TRY(take(l, start, e));
    line->text = l->piece + (start - l->base);
    line->nbytes = (size_t)(end - start);
    return LS_OK;
}

static ls_status next_forward(ls_lines *l, ls_line *line, ls_error *e) {
    uint64_t start = l->at, pos = start, end = l->size;
    const char *found = NULL;
    while (!found && pos < l->size) {
        if (!has(l, pos, pos + 1)) LS_TRY(take(l, pos, e));
        size_t skip = (size_t)(pos - l->base);
        found = memchr(l->piece + skip, '\n', l->len - skip);
        pos = l->base + l->len;
        if (!found && pos - start > LS_LONGEST_LINE) pos = data_after(l, pos);
    }
    if (found) end = l->base + (uint64_t)(found - l->piece);
    line->whole = found != NULL;
    line->number = ++l->number;
    l->at = end + (found != NULL);
    return show(l, start, end, line, e);
}

static ls_status take_before(ls_lines *l, uint64_t end, ls_error *e) {
    return has(l, end - 1, end) ? LS_OK : take(l, end > PIECE ? end - PIECE : 0, e);
}

static ls_status next_backward(ls_lines *l, ls_line *line, bool *there_p, ls_error *e) {
    LS_TRY(take_before(l, l->at, e));
    line->whole = l->piece[l->at - 1 - l->base] == '\n';
    uint64_t end = l->at - line->whole, pos = end, start = 0;
    const char *found = NULL;
    while (!found && pos > l->stop_at) {
        LS_TRY(take_before(l, pos, e));
        found = memrchr(l->piece, '\n', (size_t)(pos - l->base));
        pos = l->base;
        if (!found && end - pos > LS_LONGEST_LINE) pos = data_before(l, pos);
    }
    if (found) start = l->base + (uint64_t)(found - l->piece) + 1;
    *there_p = start >= l->stop_at;
    l->at = start;
    line->number = 0;
    return *there_p ? show(l, start, end, line, e) : LS_OK;
}

ls_status ls_lines_next(ls_lines *l, ls_line *line_p, bool *there_p, ls_error *e) {
    *there_p = l->from_end ? l->at > l->stop_at : l->at < l->size;
    if (!*there_p) return LS_OK;
    return l->from_end ? next_backward(l, line_p, there_p, e) : next_forward(l, line_p, e);
}

ls_status ls_lines_cut(const char *path, bool (*stays)(void *arg, const ls_line *), void *arg,
                       ls_error *e) {
    ls_lines *l = NULL;
    ls_line line;
    bool there = true;
    if (!ls_file_exists(path)) return LS_OK;
    LS_TRY(ls_lines_open(path, true, &l, e));
    ls_status s = LS_OK;
    uint64_t end = l->size;
    while ((s = ls_lines_next(l, &line, &there, e)) == LS_OK && there && !stays(arg, &line))
        end = line.at;
    bool cut = s == LS_OK && end < l->size;
    ls_lines_close(l);
    return cut ? ls_file_cut(path, end, e) : s;
}

char *ls_lines_split(char **text) {
    char *line = *text, *end = line + strcspn(line, "\r\n");
    if (!*line) return NULL;
    *text = end + (*end == '\r' && end[1] == '\n') + (*end != 0);
    *end = 0;
    return line;
}
