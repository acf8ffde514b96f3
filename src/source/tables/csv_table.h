/* csv_table.h - what all rows of CSV files show: whether the first line is a header, and what each
 * column has. A reader shows it row after row, and then asks.
 *
 * A column has numbers if all its cells are numbers or marks of missing values, except for one
 * cell, or for a tenth of the cells, which are damage. A column has lists by the same rule.
 * Otherwise it has texts.
 */
#ifndef LS_SOURCE_TABLES_CSV_TABLE_H
#define LS_SOURCE_TABLES_CSV_TABLE_H

#include "source/features.h"
#include "source/tables/csv_cell.h"

typedef struct ls_csv_seen { /* of a column */
    uint64_t n[LS_CELL_KINDS];
    uint64_t ndecorated; /* texts that are numbers with signs (ls_csv_is_decorated()) */
    uint64_t ndates;     /* texts that are dates */
    size_t length, most; /* of the first list, and of the longest one */
    bool varies;         /* lists have several lengths */
    bool fractions;      /* not all numbers are whole */
    bool huge;           /* a number is beyond an f32 */
    bool counts;         /* each number but the first is one more than the one above, or 0 or 1 */
    double first, above; /* the first number, and the latest */
    bool unnamed;        /* its header is empty */
} ls_csv_seen;

typedef struct ls_csv_table { /* zero-initialised: nothing has been seen */
    ls_features columns;      /* with their texts, but for those that are numbers or lists */
    ls_csv_seen *seen;        /* [columns.n] */
} ls_csv_table;

/* Begins with n columns, which are named column1, column2 and so on. */
void ls_csv_table_begin(ls_csv_table *, size_t n);
void ls_csv_table_see(ls_csv_table *, const ls_csv_cell *cells, const ls_csv_form *);
/* What `from`, which it frees, was shown becomes what was shown next; neither has names yet. */
void ls_csv_table_join(ls_csv_table *, ls_csv_table *from);
void ls_csv_table_free(ls_csv_table *);

/* Once all other rows were seen: is this first one a header? Its cells are no numbers, unless a
 * text stands above numbers, or above texts that come again and again. */
bool ls_csv_table_is_header(const ls_csv_table *, const ls_csv_cell *cells, const ls_csv_form *);
/* The name in a cell of the header, without blanks around it; "column3" where it is empty. The
 * caller frees it. */
char *ls_csv_name(const ls_csv_cell *, size_t column);

/* Gives the columns the names of the header. */
void ls_csv_table_name(ls_csv_table *, const ls_csv_cell *cells);

/* The name of two columns that is a label's or among the chosen ones, one a line; NULL: there is
 * none. */
const char *ls_csv_table_repeated(const ls_csv_table *, const char *chosen);

/* Decides what each column has; texts: names of columns that have texts, one a line, NULL: none is
 * asked for. Columns that are not chosen have nothing. True: every cell is as its column; false:
 * the rows must be looked at again. what: names the file in remarks. */
bool ls_csv_table_decide(ls_csv_table *, const char *texts, const char *what);

#endif
