/* csv.c - see csv.h. */
#include "source/csv.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "source/number.h"

enum { LONGEST_QUOTED = 1 << 20 }; /* so that each of many open quotes costs little */

/* Bytes of the line break at offset i; 0: there is none. */
static size_t break_at(const ls_csv *c, size_t i) {
    if (i >= c->nbytes) return 0;
    if (c->text[i] == '\n') return 1;
    if (c->text[i] != '\r') return 0;
    if (i + 1 < c->nbytes && c->text[i + 1] == '\n') return 2;
    return c->form.ends == LS_CSV_CR;
}

/* Bytes of blanks at offset i, where blanks separate cells; else 0. */
static size_t blanks_at(const ls_csv *c, size_t i) {
    size_t n = 0;
    if (!c->form.blanks) return 0;
    while (i + n < c->nbytes && (c->text[i + n] == ' ' || c->text[i + n] == '\t')) n++;
    return n;
}

/* Bytes of the separator at offset i < nbytes; 0: there is none. */
static size_t separator_at(const ls_csv *c, size_t i) {
    const char *separator = c->form.separator;
    size_t n = 1;
    if (c->form.blanks) return blanks_at(c, i);
    if (c->text[i] != separator[0]) return 0;
    for (; separator[n]; n++)
        if (i + n >= c->nbytes || c->text[i + n] != separator[n]) return 0;
    return n;
}

static void skip_line(ls_csv *c) {
    while (c->at < c->nbytes && break_at(c, c->at) == 0) c->at++;
    c->at += break_at(c, c->at);
    c->line++;
}

ls_csv ls_csv_begin(const char *text, size_t nbytes, ls_csv_form form) {
    ls_csv c = {.text = text, .nbytes = nbytes, .form = form, .line = 1};
    c.at = ls_utf8_mark(text, nbytes);
    for (size_t i = 0; i < form.skip && c.at < nbytes; i++) skip_line(&c);
    return c;
}

bool ls_csv_find_row(ls_csv *c) {
    while (c->at < c->nbytes) {
        c->at += blanks_at(c, c->at);
        size_t n = break_at(c, c->at);
        if (n == 0) return c->at < c->nbytes;
        c->at += n;
        c->line++;
    }
    return false;
}

/* Sets `last`, and moves behind the separator or line break at offset i. False: there is none, and
 * the text goes on. */
static bool end_cell(ls_csv *c, size_t i, ls_csv_cell *cell) {
    size_t blanks = blanks_at(c, i),
           end = i + blanks; /* those at the end of a row separate nothing */
    bool cr = end + 1 == c->nbytes && c->text[end] == '\r'; /* the last line lacks the LF */
    size_t n = break_at(c, end);
    cell->last = n > 0 || end + cr >= c->nbytes;
    size_t separator = cell->last ? 0 : separator_at(c, i);
    if (!cell->last && separator == 0) return false;
    c->line += n > 0;
    c->at = cell->last ? end + n + (n == 0 && cr) : i + separator;
    return true;
}

/* Behind the spaces at offset i, where spaces don't separate cells. */
static size_t skip_spaces(const ls_csv *c, size_t i) {
    bool separates = c->form.blanks || *c->form.separator == ' ';
    while (!separates && i < c->nbytes && c->text[i] == ' ') i++;
    return i;
}

/* begin: behind the quote; one_line: it is closed in the same line. Reads no further than behind
 * the quote that follows. */
static const char *next_quoted(ls_csv *c, size_t begin, bool one_line, ls_csv_cell *cell) {
    size_t i = begin;
    uint64_t lines = 0;
    bool doubled = false;
    char quote = c->form.quote;
    for (;; i++) {
        if (i >= c->nbytes || (one_line && break_at(c, i))) return "has a quote that is not closed";
        if (i - begin == LONGEST_QUOTED) return "has a quote that is not closed within 1 MB";
        lines += break_at(c, i) == 1;
        if (c->text[i] == 0) return "has a zero byte";
        if (c->text[i] != quote) continue;
        if (i + 1 >= c->nbytes || c->text[i + 1] != quote) break;
        doubled = true;
        i++;
    }
    *cell =
        (ls_csv_cell){.text = c->text + begin, .nbytes = i - begin, .doubled = doubled ? quote : 0};
    if (!end_cell(c, i + 1, cell) && !end_cell(c, skip_spaces(c, i + 1), cell))
        return "has text after its closing quote";
    c->line += lines;
    return NULL;
}

/* Spaces before the opening quote, as tables have them whose columns stand below each other. In a
 * cell that does not end with its quote, in the same line, quotes are characters like others. */
static bool next_indented(ls_csv *c, ls_csv_cell *cell) {
    size_t begin = skip_spaces(c, c->at);
    if (begin == c->at || begin >= c->nbytes || c->text[begin] != c->form.quote) return false;
    return next_quoted(c, begin + 1, true, cell) == NULL;
}

static bool is_of_cell(char byte) {
    return (unsigned char)byte > '\r' || (byte != '\n' && byte != '\r' && byte != 0);
}

/* The highest bit of each of eight bytes that is below `least`, at most 128, and maybe of others
 * above the lowest of these. */
static uint64_t bytes_below(uint64_t bytes, uint64_t least) {
    uint64_t ones = UINT64_C(0x0101010101010101);
    return (bytes - ones * least) & ~bytes & ones << 7;
}

/* The first byte from offset i on that may be no part of a cell that is not quoted, or the end. */
static size_t find_special(const ls_csv *c, size_t i) {
    const char *text = c->text;
    char separator = c->form.separator[0];
    uint64_t eight = 0, separators = UINT64_C(0x0101010101010101) * (unsigned char)separator;
    if (c->form.blanks) return i;
    for (; i + sizeof eight <= c->nbytes; i += sizeof eight) {
        memcpy(&eight, text + i, sizeof eight);
        uint64_t found = bytes_below(eight, '\r' + 1) | bytes_below(eight ^ separators, 1);
        if (found && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
            return i + (size_t)__builtin_ctzll(found) / 8;
        if (found) break;
    }
    while (i < c->nbytes && text[i] != separator && is_of_cell(text[i])) i++;
    return i;
}

static const char *next_plain(ls_csv *c, ls_csv_cell *cell) {
    size_t i = c->at, end = 0;
    for (; (i = find_special(c, i)) < c->nbytes; i++) {
        if (separator_at(c, i) || break_at(c, i)) break;
        if (c->text[i] == 0) return "has a zero byte";
    }
    end = i == c->nbytes && i > c->at && c->text[i - 1] == '\r' ? i - 1 : i;
    *cell = (ls_csv_cell){.text = c->text + c->at, .nbytes = end - c->at};
    end_cell(c, i, cell);
    return NULL;
}

const char *ls_csv_next(ls_csv *c, ls_csv_cell *cell) {
    bool quoted = c->form.quote && c->at < c->nbytes && c->text[c->at] == c->form.quote;
    if (quoted) return next_quoted(c, c->at + 1, false, cell);
    if (c->form.quote && next_indented(c, cell)) return NULL;
    return next_plain(c, cell);
}

void ls_csv_skip_row(ls_csv *c, size_t at, uint64_t line) {
    ls_csv_cell cell = {0};
    c->at = at;
    c->line = line;
    while (!cell.last) {
        if (!ls_csv_next(c, &cell)) continue;
        c->at = at;
        c->line = line;
        skip_line(c);
        return;
    }
}

size_t ls_csv_unquote(const ls_csv_cell *cell, char *out, size_t room) {
    size_t n = 0;
    if (!cell->doubled && cell->nbytes <= room) {
        memcpy(out, cell->text, cell->nbytes);
        return cell->nbytes;
    }
    for (size_t i = 0; i < cell->nbytes; i++, n++) {
        if (n == room) return SIZE_MAX;
        out[n] = cell->text[i];
        i += cell->doubled && cell->text[i] == cell->doubled;
    }
    return n;
}

/* ---- which form ---- */

enum { FIRST_BYTES = 1 << 20, FIRST_ROWS = 50 };

/* The ends of the text's first rows, whatever separates their cells. */
static ls_csv_ends find_ends(const char *text, size_t nbytes, char quote) {
    size_t n = nbytes < FIRST_BYTES ? nbytes : FIRST_BYTES;
    bool quoted = false, has_cr = false;
    for (size_t i = 0; i < n; i++) {
        if (quote && text[i] == quote && (quoted || i == 0 || strchr(",\t;|\r\n", text[i - 1])))
            quoted = !quoted;
        if (quoted) continue;
        if (text[i] == '\n') return i && text[i - 1] == '\r' ? LS_CSV_CR_LF : LS_CSV_LF;
        has_cr = has_cr || (text[i] == '\r' && i + 1 < nbytes && text[i + 1] != '\n');
    }
    return has_cr ? LS_CSV_CR : LS_CSV_LF;
}

/* How well a separator divides the first rows. */
typedef struct fit {
    int columns;          /* of the first row; 1: nothing is divided */
    int tried;            /* rows */
    int rows;             /* with that number of columns */
    int wider;            /* with one more */
    int ncells, nnumbers; /* of these rows */
} fit;

/* A number, also one with a decimal comma. */
static bool looks_like_number(const ls_csv_cell *cell, char separator) {
    char text[64];
    double value = 0;
    if (cell->nbytes >= sizeof text) return false;
    memcpy(text, cell->text, cell->nbytes);
    char *comma = separator == ',' ? NULL : memchr(text, ',', cell->nbytes);
    if (comma) *comma = '.';
    return ls_number_parse(text, cell->nbytes, &value);
}

static bool count_cells(ls_csv *c, int *ncells_p, int *nnumbers_p) {
    ls_csv_cell cell = {0};
    *ncells_p = *nnumbers_p = 0;
    while (!cell.last) {
        if (ls_csv_next(c, &cell)) return false;
        ++*ncells_p;
        *nnumbers_p += looks_like_number(&cell, *c->form.separator);
    }
    return true;
}

static fit try_separator(const char *text, size_t nbytes, ls_csv_form form) {
    size_t n = nbytes < FIRST_BYTES ? nbytes : FIRST_BYTES;
    ls_csv c = ls_csv_begin(text, n, form);
    fit f = {0};
    int ncells = 0, nnumbers = 0;
    for (int row = 0; row < FIRST_ROWS && ls_csv_find_row(&c); row++) {
        bool good = count_cells(&c, &ncells, &nnumbers);
        bool is_cut = c.at == n && n < nbytes;
        if (!good || (is_cut && row)) break;
        if (row == 0) f.columns = ncells;
        f.tried++;
        f.wider += ncells == f.columns + 1;
        if (ncells == f.columns) f.rows++;
        if (ncells != f.columns && ncells != f.columns + 1) continue;
        f.ncells += ncells;
        f.nnumbers += nnumbers;
    }
    return f;
}

static bool is_better(fit a, fit b) {
    if (a.columns < 2 || b.columns < 2) return a.columns >= 2;
    if (a.rows != b.rows) return a.rows > b.rows;
    return (int64_t)a.nnumbers * b.ncells > (int64_t)b.nnumbers * a.ncells;
}

/* Do blanks divide a text that nothing else divides? All rows have as many cells, except for a
 * header that has one less, and most cells are numbers, or a column of texts with several words
 * would become several. */
static bool is_of_blanks(fit f) {
    bool even = f.rows == f.tried || f.wider == f.tried - 1;
    return f.columns > 1 && f.tried > 1 && even && 2 * f.nnumbers >= f.ncells;
}

ls_csv_form ls_csv_form_of(const char *text, size_t nbytes, const ls_csv_asked *asked) {
    static const char separators[] = {',', '\t', ';',
                                      '|'}; /* the first one where others are as good */
    ls_csv_form form = {.separator = ",",
                        .quote = asked->unquoted ? 0
                                 : asked->quote  ? asked->quote
                                                 : '"',
                        .comma = asked->comma,
                        .skip = asked->skip};
    form.ends = find_ends(text, nbytes, form.quote);
    if (strcmp(asked->separator, LS_CSV_BLANKS) == 0) {
        form.separator[0] = ' ';
        form.blanks = true;
        return form;
    }
    if (*asked->separator) {
        memcpy(form.separator, asked->separator, sizeof form.separator);
        return form;
    }
    if (form.comma) form.separator[0] = '\t'; /* no comma separates */
    fit best = try_separator(text, nbytes, form);
    for (size_t i = 1; i < sizeof separators; i++) {
        ls_csv_form other = form;
        other.separator[0] = separators[i];
        fit f = try_separator(text, nbytes, other);
        if (!is_better(f, best)) continue;
        best = f;
        form = other;
    }
    if (best.columns < 2) {
        ls_csv_form other = form;
        other.separator[0] = ' ';
        other.blanks = true;
        if (is_of_blanks(try_separator(text, nbytes, other))) form = other;
    }
    return form;
}

void ls_csv_form_describe(ls_csv_form form, bool header, char text[LS_SOURCE_FORM]) {
    static const char *const ends[] = {"LF", "CR LF", "CR"};
    char first = form.separator[1] ? 0 : form.separator[0];
    const char *separator = form.blanks     ? LS_CSV_BLANKS
                            : first == '\t' ? "tabs"
                            : first == ';'  ? "semicolons"
                            : first == ','  ? "commas"
                                            : form.separator;
    snprintf(text, LS_SOURCE_FORM, "cells are separated by %s, lines end in %s%s, %s", separator,
             ends[form.ends], form.comma ? ", numbers have decimal commas" : "",
             header ? "the first line is a header" : "there is no header");
}
