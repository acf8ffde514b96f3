/* csv.h - cells of a CSV text, as RFC 4180 defines them, with other separators and line ends, too.
 *
 * A cell is quoted or not. In quotes, "" stands for one quote, and separators and line breaks are
 * part of the cell; spaces around the quotes are not. Rows end in CR LF or LF; where no row does,
 * in CR; the last one may lack it. A quote within a cell that does not begin with one is a
 * character like others.
 *
 * The separator is the one of comma, tab, semicolon and | that divides most of the first rows into
 * as many cells as the first one, which has at least two. Where none divides them, it is any number
 * of blanks, if these divide all of them into as many cells, most of which are numbers. A separator
 * that the user gives may have several characters, such as "::".
 */
#ifndef LS_SOURCE_CSV_H
#define LS_SOURCE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/source.h"

typedef enum ls_csv_ends { LS_CSV_LF, LS_CSV_CR_LF, LS_CSV_CR } ls_csv_ends;

enum { LS_CSV_SEPARATOR = 8 }; /* bytes of a separator, less one */
#define LS_CSV_BLANKS "blanks" /* asked for in place of a separator */

/* The parts of the form that the user gives. Zero-initialised: all of it is found in the text. */
typedef struct ls_csv_asked {
    char separator[LS_CSV_SEPARATOR]; /* "": it is found */
    char quote;                       /* 0: " */
    bool unquoted;                    /* no character quotes */
    bool comma;                       /* decimal commas */
    size_t skip;                      /* lines before the first row */
} ls_csv_asked;

typedef struct ls_csv_form {
    char separator[LS_CSV_SEPARATOR];
    bool blanks;      /* any number of spaces and tabs separates cells */
    ls_csv_ends ends; /* of the first row */
    char quote;       /* 0: none */
    bool comma;       /* numbers have decimal commas */
    size_t skip;      /* lines before the first row */
    const char
        *na; /* more texts that stand for a missing value, one a line; NULL: none; borrowed */
} ls_csv_form;

/* The form of a text, as its first rows show it and as the user gives it. */
ls_csv_form ls_csv_form_of(const char *text, size_t nbytes, const ls_csv_asked *);
/* "cells are separated by tabs, lines end in CR, there is no header", as a source has it. */
void ls_csv_form_describe(ls_csv_form, bool header, char text[LS_SOURCE_FORM]);

typedef struct ls_csv {
    const char *text; /* [nbytes] */
    size_t nbytes;
    ls_csv_form form;
    size_t at;     /* where the next cell begins */
    uint64_t line; /* its line, from 1 */
} ls_csv;

typedef struct ls_csv_cell {
    const char *text; /* [nbytes] without the quotes around it */
    size_t nbytes;
    char doubled; /* the quote that it has twice for one; 0: it has none */
    bool last;    /* it is the last cell of its row */
} ls_csv_cell;

/* A cursor at the first row, behind a byte order mark and lines to be skipped. */
ls_csv ls_csv_begin(const char *text, size_t nbytes, ls_csv_form);
/* Skips empty lines. False: the text ends. */
bool ls_csv_find_row(ls_csv *);
/* Reads the next cell of the row. NULL, or what is wrong with it (static text); then c->at and
 * c->line are still those of the cell. */
const char *ls_csv_next(ls_csv *c, ls_csv_cell *cell_p);
/* Continues behind the row that begins at offset `at` in line `line`; if its quotes are wrong,
 * behind that line. */
void ls_csv_skip_row(ls_csv *c, size_t at, uint64_t line);

/* Writes the cell's text to out [room], without doubled quotes and without a 0 at its end. Returns
 * its length, or SIZE_MAX if it does not fit. */
size_t ls_csv_unquote(const ls_csv_cell *, char *out, size_t room);

#endif
