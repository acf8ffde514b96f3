/* row_update.h - how an optimizer changes one row. */
#ifndef LS_TABLE_ROW_UPDATE_H
#define LS_TABLE_ROW_UPDATE_H

#include "table/rows.h"

/* What all rows of one update have in common. */
typedef struct ls_row_update {
    const ls_table_config *c;
    float lr, eps, decay, beta1, beta2, rest1, rest2; /* rest: 1 - beta */
} ls_row_update;

/* The update at this clock, at rate lr. The config has no defaults left. */
ls_row_update ls_row_update_at(const ls_table_config *, int64_t clock, double lr);

/* Changes the row by the sum of its gradients g [width], which is overwritten. */
void ls_row_update_run(const ls_row_update *, const ls_row *, float *g);

#endif
