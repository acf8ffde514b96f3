/* owned_rows.h - the rows that one worker has: their values, the optimizer's numbers, and their
 * age.
 *
 * A row is at a slot. Where ids are limited (`rows` of the config), its slot follows from the id;
 * else a map has it. Slots are in segments of memory, which are taken when they are needed. A row
 * that is not there, or has expired, has its initial values.
 */
#ifndef LS_TABLE_OWNED_ROWS_H
#define LS_TABLE_OWNED_ROWS_H

#include "lockstep/table.h"
#include "table/id_map.h"

typedef struct ls_row_segment {
    float *values;  /* [LS_SEGMENT_ROWS][width] */
    float *states;  /* [LS_SEGMENT_ROWS][nstates] */
    uint32_t *ages; /* [LS_SEGMENT_ROWS] */
    uint64_t *ids;  /* [LS_SEGMENT_ROWS]; NULL: they follow from the slot */
} ls_row_segment;

enum { LS_SEGMENT_ROWS = 1 << 16 };

typedef struct ls_rows {
    const ls_table_config *c;
    int worker, nworkers;
    int nstates; /* of the optimizer, a row */
    ls_id_map map;
    ls_row_segment *segments;
    size_t nsegments;
    size_t end;     /* slots that were ever used: [0, end) */
    uint32_t *free; /* [nfree] slots of rows that have expired */
    size_t nfree, free_capacity;
    size_t count; /* rows that are there */
    size_t swept; /* where the search for expired rows goes on */
} ls_rows;

typedef struct ls_row {
    float *values; /* [width] */
    uint32_t *age; /* the clock after the latest change; 0: the row is not there */
    float *states; /* [nstates] */
} ls_row;

void ls_rows_init(ls_rows *, const ls_table_config *, int worker, int nworkers);
void ls_rows_free(ls_rows *);

/* The worker that has a row. */
int ls_rows_owner(const ls_rows *, uint64_t id);
/* Is the id one of the table's? */
bool ls_rows_can_have(const ls_rows *, uint64_t id);

/* out [n][width]: the values of own rows after `clock` updates. */
void ls_rows_read(const ls_rows *, const uint64_t *ids, size_t n, int64_t clock, float *out);

/* Memory for these rows [n], of which some may be there. LS_ENOMEM: nothing has changed. */
ls_status ls_rows_reserve(ls_rows *, const uint64_t *ids, size_t n, ls_error *);
/* The row of an id at this clock, which has memory: as it was, or new, with its initial values and
 * states of 0. The caller sets its age. */
ls_row ls_rows_take(ls_rows *, uint64_t id, int64_t clock);
/* Is the row there at this clock? */
bool ls_rows_has(const ls_rows *, uint64_t id, int64_t clock);
/* Begins to fetch a row that is needed soon, and has memory. */
void ls_rows_prefetch(const ls_rows *, uint64_t id);
/* Begins to fetch the entry of the map that finds the row. */
void ls_rows_prefetch_map(const ls_rows *, uint64_t id);

/* Takes the memory of some rows that have expired at this clock: all, in 64 calls. */
void ls_rows_sweep(ls_rows *, int64_t clock);

/* The row at a slot below `end`; false: there is none, or it has expired. */
bool ls_rows_at(const ls_rows *, size_t slot, int64_t clock, uint64_t *id_p, ls_row *row_p);

#endif
