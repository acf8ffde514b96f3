/* csv_rules.h - what a config says about columns and the form of CSV files, in place of what would
 * be found: data.columns, data.na, data.missing, data.csv. */
#ifndef LS_SOURCE_TABLES_CSV_RULES_H
#define LS_SOURCE_TABLES_CSV_RULES_H

#include "base/mem.h"
#include "source/csv.h"
#include "source/options.h"

/* The texts of two trees (ls_config_tree), "" for none: `csv` is a map, e.g. {header: no,
 * separator: ";", quote: "'", decimal: ",", texts: [zip], skip: 2}; `missing` is one of columns,
 * e.g. {age: mean, "*": drop}. file and line: of both, for messages. Adds to *w. */
ls_status ls_csv_rules_read_csv(const char *csv, const char *file, int line, ls_csv_rules *w,
                                ls_error *);
ls_status ls_csv_rules_read_missing(const char *missing, const char *file, int line,
                                    ls_csv_rules *w, ls_error *);
/* Lists, one a line; "": none. The copies belong to the rules. */
ls_csv_rules ls_csv_rules_of(const char *columns, const char *na);
ls_csv_rules ls_csv_rules_copy(const ls_csv_rules *); /* NULL: nothing is wanted */
void ls_csv_rules_free(ls_csv_rules *);

/* Is anything asked that only CSV files have? NULL: nothing. */
bool ls_csv_rules_are_of_csv(const ls_csv_rules *);

/* Is the name one of the lines of a list? */
bool ls_csv_rules_has(const char *list, const char *name);
/* The rule of a column, `other` without one; *own_p: it has one of its own. */
ls_missing ls_csv_rules_missing(const ls_csv_rules *, const char *column, ls_missing other,
                                bool *own_p);
/* Appends all that changes what is read, for the key of an index. */
void ls_csv_rules_put(const ls_csv_rules *, ls_buf *);

#endif
