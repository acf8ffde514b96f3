/* column_rules.h - what becomes of missing values in each column, as data.missing says. */
#ifndef LS_SOURCE_TABLES_COLUMN_RULES_H
#define LS_SOURCE_TABLES_COLUMN_RULES_H

#include "source/features.h"
#include "source/tables/csv_rules.h"

typedef struct ls_column_rule {
    ls_missing missing;
    bool own; /* it is for this column alone: texts, too, have missing values */
} ls_column_rule;

typedef struct ls_column_rules {
    const ls_csv_rules *rules;
    ls_missing other; /* of columns that no rule names */
    bool may_lack;    /* columns that the rules name may be absent */
    const char *what; /* names the file in messages */
} ls_column_rules;

/* The rule of each column; the caller frees *of_p [columns->n]. LS_EINVAL: there is no column of a
 * name in the rules, or in data.csv's texts; the message lists the columns. */
ls_status ls_column_rules_find(const ls_features *columns, const ls_column_rules *,
                               ls_column_rule **of_p, ls_error *);

#endif
