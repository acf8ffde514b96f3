/* row_tables.h - where the tables of a process lie, and which blocks of them it has (model.sparse).
 *
 * Tables and their states have addresses for all of their rows. Workers that share memory have all
 * rows in it. Others divide the blocks of rows (model/table_blocks.h): the pages of blocks that are
 * elsewhere are never touched, or were returned to the system, so that they take no memory. */
#ifndef LS_TABLE_ROW_TABLES_H
#define LS_TABLE_ROW_TABLES_H

#include <stdatomic.h>

#include "plan/plan.h"

/* A step's rows are complete in the tables if begun == steps. While they are written, begun is
 * steps + 1. -1: there are no rows. */
typedef struct ls_row_marks {
    atomic_llong steps, begun;
    atomic_llong view; /* the latest whose workers have divided the blocks */
} ls_row_marks;

typedef struct ls_row_tables {
    float *values;       /* [ls_optim_tables_floats()] */
    unsigned char *here; /* [ls_table_blocks()] 1: the block is in this memory; 0: it is clear */
    ls_row_marks *marks;
} ls_row_tables;

/* Bytes of tables, states and marks; 0: the model has no tables. */
size_t ls_row_tables_nbytes(const ls_plan *);
/* In memory of that many bytes that begins a page. */
ls_row_tables ls_row_tables_in(void *memory, const ls_plan *);

/* Clears a block, and returns its whole pages to the system. */
void ls_row_tables_drop(const ls_row_tables *, const ls_plan *, const ls_table_block *);

#endif
