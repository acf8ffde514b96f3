/* csv.c - see csv.h. */
#include "source/csv.h"

#include <string.h>

enum { LONGEST_QUOTED = 1 << 20 }; /* so that each of many open quotes costs little */

bool ls_csv_find_row(ls_csv *c) {
    while (c->at < c->nbytes) {
        size_t n = c->text[c->at] == '\r' && c->at + 1 < c->nbytes ? 2 : 1;
        if (c->text[c->at + n - 1] != '\n') return true;
        c->at += n;
        c->line++;
    }
    return false;
}

/* Sets `last`, and moves behind the comma or line break at offset i. False: there is none, and the
 * text goes on. */
static bool end_cell(ls_csv *c, size_t i, ls_csv_cell *cell) {
    bool cr = i + 1 < c->nbytes && c->text[i] == '\r' && c->text[i + 1] == '\n';
    cell->last = true;
    if (i + cr < c->nbytes && c->text[i + cr] != '\n') {
        if (c->text[i] != ',') return false;
        cell->last = false;
    } else if (i < c->nbytes) {
        c->line++;
    }
    c->at = i < c->nbytes ? i + cr + 1 : i;
    return true;
}

static const char *next_quoted(ls_csv *c, ls_csv_cell *cell) {
    size_t begin = c->at + 1, i = begin;
    uint64_t lines = 0;
    bool doubled = false;
    for (;; i++) {
        if (i >= c->nbytes) return "has a quote that is not closed";
        if (i - begin == LONGEST_QUOTED) return "has a quote that is not closed within 1 MB";
        if (c->text[i] == '\n') lines++;
        if (c->text[i] == 0) return "has a zero byte";
        if (c->text[i] != '"') continue;
        if (i + 1 >= c->nbytes || c->text[i + 1] != '"') break;
        doubled = true;
        i++;
    }
    *cell = (ls_csv_cell){.text = c->text + begin, .nbytes = i - begin, .doubled = doubled};
    if (!end_cell(c, i + 1, cell)) return "has text after its closing quote";
    c->line += lines;
    return NULL;
}

static const char *next_plain(ls_csv *c, ls_csv_cell *cell) {
    size_t i = c->at;
    while (i < c->nbytes && c->text[i] != ',' && c->text[i] != '\n') {
        if (c->text[i] == 0) return "has a zero byte";
        i++;
    }
    size_t end =
        i > c->at && (i == c->nbytes || c->text[i] == '\n') && c->text[i - 1] == '\r' ? i - 1 : i;
    *cell = (ls_csv_cell){.text = c->text + c->at, .nbytes = end - c->at};
    end_cell(c, i, cell);
    return NULL;
}

const char *ls_csv_next(ls_csv *c, ls_csv_cell *cell) {
    bool quoted = c->at < c->nbytes && c->text[c->at] == '"';
    return quoted ? next_quoted(c, cell) : next_plain(c, cell);
}

void ls_csv_skip_row(ls_csv *c, size_t at, uint64_t line) {
    ls_csv_cell cell = {0};
    c->at = at;
    c->line = line;
    while (!cell.last) {
        if (!ls_csv_next(c, &cell)) continue;
        const char *end = memchr(c->text + at, '\n', c->nbytes - at);
        c->at = end ? (size_t)(end - c->text) + 1 : c->nbytes;
        c->line = line + 1;
        return;
    }
}

size_t ls_csv_unquote(const ls_csv_cell *cell, char *out, size_t room) {
    size_t n = 0;
    for (size_t i = 0; i < cell->nbytes; i++, n++) {
        if (n == room) return SIZE_MAX;
        out[n] = cell->text[i];
        i += cell->doubled && cell->text[i] == '"';
    }
    return n;
}
