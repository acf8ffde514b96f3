/* csv_columns.h - the cells of some columns of CSV files, row by row: for readers that make their
 * samples from them and need the files only once. */
#ifndef LS_SOURCE_CSV_COLUMNS_H
#define LS_SOURCE_CSV_COLUMNS_H

#include "data/files.h"
#include "source/csv.h"
#include "source/source.h"

enum { LS_CSV_COLUMNS = 128 };

/* Gets the cells of a row, in the order of the names. LS_EINVAL: a cell is wrong; the message names
 * the column, and gets the file and the line in front of it. */
typedef ls_status ls_csv_row_fn(void *arg, const ls_csv_cell *cells, ls_error *);

typedef struct ls_csv_wanted {
    const char *const *names; /* [n] at most LS_CSV_COLUMNS */
    int n;
    bool first_may_lack; /* the first column need not be there: its cells are then empty */
    ls_csv_row_fn *row;
    void *arg;
} ls_csv_wanted;

/* Reads all files. Their first lines are headers with the names; files in which the columns are
 * named column1, column2, ... have none. Sets the source's hash and numbers of files, and the number
 * of damaged rows, which are left out if the options say so. */
ls_status ls_csv_columns_read(const ls_files *, const ls_source_options *, const ls_csv_wanted *,
                              ls_source *, ls_error *);

/* A cell as a number. LS_EINVAL: it is none; `name` is the column's. */
ls_status ls_csv_number(const ls_csv_cell *, const char *name, double *x_p, ls_error *);

#endif
