/* table_blocks.h - tables (ls_param.rows) in blocks of rows.
 *
 * Workers that share no memory divide tables by blocks: block b of n workers is at worker b % n.
 * Rows that are read often are often neighbours, since ids are numbered in the order in which they
 * first appear; blocks spread them. A block of a large table has enough rows for each number of a
 * row, over all rows of the block, to fill whole pages of memory. */
#ifndef LS_MODEL_TABLE_BLOCKS_H
#define LS_MODEL_TABLE_BLOCKS_H

#include "model/model.h"

typedef struct ls_table_block {
    int param;
    int64_t first, end; /* rows of its table */
    int64_t number;     /* among those of all tables, which have one after the other */
} ls_table_block;

/* Rows of a block of the parameter's table; the last one may have fewer. */
int64_t ls_table_block_rows(const ls_param *);
/* Blocks of all tables of the model. */
int64_t ls_table_blocks(const ls_model *);
/* The number of a table's first block. */
int64_t ls_table_blocks_before(const ls_model *, int param);
/* Steps from block to block; *b begins as LS_TABLE_BLOCKS. False: there are no more. */
#define LS_TABLE_BLOCKS ((ls_table_block){.param = -1, .number = -1})
bool ls_table_block_next(const ls_model *, ls_table_block *b);

#endif
