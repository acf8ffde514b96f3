/* csv_columns.h - the cells of some columns of CSV files, row by row: for readers that make their
 * samples from them and need the files only once. */
#ifndef LS_SOURCE_TABLES_CSV_COLUMNS_H
#define LS_SOURCE_TABLES_CSV_COLUMNS_H

#include "data/files.h"
#include "source/csv.h"
#include "source/gaps.h"
#include "source/source.h"

/* What a column has; it decides which of its cells are missing values, and what becomes of them. */
typedef enum ls_csv_kind {
    LS_CSV_ID,     /* an id: empty, or one of data.na; other marks of missing values are ids, unless
                    * data.missing names the column */
    LS_CSV_TEXT,   /* a text, which may be empty: marks are texts, unless data.missing names it */
    LS_CSV_NUMBER, /* a number: every mark */
    LS_CSV_FILLED  /* the same; the reader puts means in their place */
} ls_csv_kind;

typedef struct ls_csv_column {
    const char *name;
    ls_csv_kind kind;
    bool may_lack; /* it need not be there, or in a row: its cells are then empty */
} ls_csv_column;

/* A row's cells, in the order of the columns. */
typedef struct ls_csv_row {
    const ls_csv_cell *cells;
    const bool *missing; /* cells of LS_CSV_FILLED that are to be the mean */
    const ls_csv_form *form;
} ls_csv_row;

/* LS_EINVAL: a cell is wrong; the message names the column, and gets the file and the line in front
 * of it. */
typedef ls_status ls_csv_row_fn(void *arg, const ls_csv_row *, ls_error *);

typedef struct ls_csv_wanted {
    const ls_csv_column *columns; /* [n] at most LS_CSV_COLUMNS */
    int n;
    const char *key; /* of the config, which names the columns: "data.ratings" */
    ls_csv_row_fn *row;
    void *arg;
    ls_gaps *gaps; /* gets the rows that are left out, if each other row is a sample; NULL: none */
} ls_csv_wanted;

/* Reads all files, as o->csv and o->missing say. Their first lines are headers with the names;
 * files in which the columns are named column1, column2, ... have none. Sets the source's hash,
 * form and numbers of files, and the numbers of damaged rows and of those without a value, which
 * are left out if the options say so. */
ls_status ls_csv_columns_read(const ls_files *, const ls_source_options *o, const ls_csv_wanted *,
                              ls_source *, ls_error *);

/* Cell i of a row as a number that an f32 can hold. LS_EINVAL: it is none; `name` is the
 * column's. */
ls_status ls_csv_number(const ls_csv_row *, int i, const char *name, double *x_p, ls_error *);

#endif
