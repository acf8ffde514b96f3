/* clicks.h - rows of features and a click: some columns of CSV files are ids, others numbers.
 *
 * Each column of ids has its own ids, numbered in the order in which they first appear; those of a
 * column follow those of the column before, so that one table has the rows of all. With `hash` an id
 * is the hash of its text modulo this number, in each column. A sample has the fields
 *     ids      i32 [columns]
 *     x        f32 [columns]  the numbers, if there are such columns
 *     clicked  f32            1 or 0
 *
 * All samples are in memory. */
#ifndef LS_SOURCE_CLICKS_H
#define LS_SOURCE_CLICKS_H

#include "source/csv_columns.h"

enum { LS_CLICKS_NAME = 64 };

typedef enum ls_clicks_scale {
    LS_CLICKS_AS_IS,
    LS_CLICKS_LOG,     /* log(1 + x), and 0 of what is below 0: of counts */
    LS_CLICKS_STANDARD /* less the mean of the column, divided by its standard deviation */
} ls_clicks_scale;

/* As the key data.clicks has it:
 *
 *     {clicked: income, positive: ">50K", ids: [job, city], numbers: [age], scale: standard}
 */
struct ls_clicks_wanted {
    char names[LS_CSV_COLUMNS][LS_CLICKS_NAME]; /* clicked, then ids, then numbers */
    int nids, nnumbers;
    char positive[LS_CLICKS_NAME]; /* the text that stands for 1; "": the column has 1 and 0 */
    ls_clicks_scale scale;
    int64_t hash; /* ids of a column; 0: as many as there are texts */
};

/* text: a tree (base/yaml.h) that begins in this line of the file. */
ls_status ls_clicks_read(const char *text, const char *file, int line, ls_clicks_wanted *w_p,
                         ls_error *);

#endif
