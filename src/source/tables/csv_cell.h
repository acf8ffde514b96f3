/* csv_cell.h - what a cell of a CSV file has: a number, a list of numbers in brackets, a text, or a
 * mark that stands for a missing value. */
#ifndef LS_SOURCE_TABLES_CSV_CELL_H
#define LS_SOURCE_TABLES_CSV_CELL_H

#include "source/csv.h"

typedef enum ls_cell_kind {
    LS_CELL_MISSING, /* nothing, or one of the marks that programs write: NA, nan, null, ? ... */
    LS_CELL_NUMBER,
    LS_CELL_INTEGERS, /* "[3, 17]", "[3 17]", "[]": i32, above the least one, which ends a list */
    LS_CELL_REALS,    /* "[0.5, 2]", "[3000000000]" */
    LS_CELL_BROKEN,   /* "[1,,2]", "[[1, 2]]" */
    LS_CELL_COMMA,    /* "1,5": a number with a decimal comma, where commas separate no cells */
    LS_CELL_TEXT,
    LS_CELL_KINDS
} ls_cell_kind;

typedef struct ls_cell_value {
    ls_cell_kind kind;
    double number; /* LS_CELL_NUMBER */
    size_t length; /* of a list */
} ls_cell_value;

ls_cell_value ls_csv_value(const ls_csv_cell *, const ls_csv_form *);
/* Is the text [n] one of the lines of a list (form.na), or a number with the same value as one? */
bool ls_csv_is_in(const char *list, const char *text, size_t n);
/* Is the text a number with a currency's sign, a percent sign, or signs between its thousands? */
bool ls_csv_is_decorated(const ls_csv_cell *);
/* Is it a date as ISO 8601 writes it, 2024-05-01, maybe with a time behind it? */
bool ls_csv_is_date(const ls_csv_cell *);
/* Is it a mark of a missing value? */
bool ls_csv_is_missing(const ls_csv_cell *, const ls_csv_form *);

/* The numbers of a list, one after the other: *at is 0 at first. False: there are no more, or (kind
 * LS_CELL_BROKEN) the text is no list. */
bool ls_csv_next_in_list(const ls_csv_cell *, size_t *at, double *number_p, ls_cell_kind *kind_p);

#endif
