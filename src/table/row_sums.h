/* row_sums.h - gradients of rows: one sum for each row, and how sums of virtual workers are
 * summed. */
#ifndef LS_TABLE_ROW_SUMS_H
#define LS_TABLE_ROW_SUMS_H

#include "table/id_map.h"

/* What is sent before a row: whose gradients they are. */
typedef struct ls_sum_head {
    uint64_t id;
    uint32_t count; /* gradients in the sum */
    int32_t first;  /* the first of the virtual workers that it may have gradients of */
} ls_sum_head;

/* A list of sums. {0}: empty. */
typedef struct ls_sums {
    ls_sum_head *heads; /* [n] */
    float *rows;        /* [n][width] */
    size_t n, capacity, width;
} ls_sums;

void ls_sums_free(ls_sums *);
/* Room for n sums in all. LS_ENOMEM: nothing has changed. */
ls_status ls_sums_reserve(ls_sums *, size_t n, ls_error *);

/* The sums of one virtual worker: one for each row. */
typedef struct ls_gradients {
    ls_sums sums;
    ls_id_map places; /* in `sums`, by id */
    int virtual_worker;
} ls_gradients;

void ls_gradients_free(ls_gradients *);
void ls_gradients_clear(ls_gradients *); /* retains the memory */
/* Adds gradients [n][width] of the rows ids [n]. LS_ENOMEM: nothing is added. */
ls_status ls_gradients_add(ls_gradients *, const int64_t *ids, size_t n, const float *gradients,
                           ls_error *);

/* Adds up sums of the same row by the tree over V virtual workers, as far as the tree's nodes lie
 * in [first, end). The sums of each row are ordered by `first`. The list then has one sum for each
 * node that remains, the rows in the order in which they first occurred. map: scratch. */
ls_status ls_sums_fold(ls_sums *, ls_id_map *map, int V, int first, int end, ls_error *);

#endif
