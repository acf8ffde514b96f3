/* clicks.h - rows of features and a click: some columns of CSV files are ids, others numbers.
 *
 * Each column of ids has its own ids, numbered in the order in which they first appear; those of a
 * column follow those of the column before, so that one table has the rows of all. With `hash` an
 * id is the hash of its text modulo this number, in each column. A sample has the fields
 *     ids      i32 [columns]
 *     x        f32 [columns]  the numbers, if there are such columns
 *     clicked  f32            1 or 0
 *
 * All samples are in memory. */
#ifndef LS_SOURCE_TABLES_CLICKS_H
#define LS_SOURCE_TABLES_CLICKS_H

#include "source/options.h"
#include "source/tables/csv_columns.h"

/* text: a tree (base/yaml.h) that begins in this line of the file. */
ls_status ls_clicks_read(const char *text, const char *file, int line, ls_clicks_wanted *w_p,
                         ls_error *);

#endif
