/* table_inside.h - what the files of a table share; see lockstep/table.h. */
#ifndef LS_TABLE_TABLE_INSIDE_H
#define LS_TABLE_TABLE_INSIDE_H

#include "base/mem.h"
#include "table/exchange.h"
#include "table/owned_rows.h"
#include "table/row_sums.h"
#include "tensor/kernels.h"

struct ls_table {
    ls_group *group;
    ls_table_config c; /* without defaults; the name is the table's own */
    const ls_kernels *kernels;
    int first, end; /* this worker's virtual workers */
    int64_t clock;
    ls_rows rows;
    ls_id_map admitted;  /* how often ids have been added that have no row yet (config.admit) */
    ls_gradients *added; /* [end - first] of each virtual worker */
    ls_exchange exchange;
    ls_id_map scratch;
    ls_sums outgoing, incoming;
    ls_table_room ids, order, sent, got, values, reply; /* of a read */
};

/* The settings that a saved table must share with the one that loads it, as "NAME VALUE, ...". */
void ls_table_describe(const ls_table_config *, ls_buf *text);
/* LS_EINVAL: the table is NULL. */
ls_status ls_table_check(const ls_table *, const char *function, ls_error *);

#endif
