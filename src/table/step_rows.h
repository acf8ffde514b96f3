/* step_rows.h - tables of which each step touches only a few rows (model.sparse).
 *
 * The workers of a host have one copy of the tables and of their optimizer states, in memory that
 * outlives them. Workers that share no memory divide tables by blocks (row_tables.h). The model has
 * windows of tables (ls_param.rows), with room for the different ids of a batch: ordinary
 * parameters, whose gradients are summed, sharded and updated like all others.
 *
 * In a step all workers find the ids of the whole batch, each by itself, since a batch is a
 * function of the step; the first appearance of an id decides its slot in the window. Layers read
 * rows from the tables, or, where workers do not share all memory, from what this worker has
 * fetched for its samples. Each worker
 *   - before the step copies the rows of the slots that it owns to its window,
 *   - after its update copies them back;
 * then all workers wait for each other. Rows that no sample has are not touched, neither by weight
 * decay nor by the decay of moments. Rows of other workers' tables are sent in messages, whose
 * bytes grow with the rows of the batch.
 *
 * So a row is updated once a step, whatever happens to the workers: until a step is decided, the
 * tables are those before it. The update of a decided step is finished in the windows by the
 * surviving workers (state/store_repair.h), and copying rows back can be repeated, as long as no
 * window has rows of the next step. The marks of the tables say which steps they have had; the next
 * view moves blocks to where they now belong, and copies the rows of a step that the tables
 * lack. */
#ifndef LS_TABLE_STEP_ROWS_H
#define LS_TABLE_STEP_ROWS_H

#include "data/loader.h"
#include "lockstep/group.h"
#include "optim/flat.h"
#include "table/row_tables.h"

typedef struct ls_step_rows ls_step_rows;

typedef struct ls_step_rows_config {
    const ls_plan *plan; /* with its model, which has windows; must outlive the rows */
    const ls_flat *flat; /* the worker's buffers, with the windows; likewise */
    ls_group *group;
    uint64_t seed;          /* of initial values */
    ls_loader_config batch; /* of a step */
    /* [ls_row_tables_nbytes()] which outlives workers, and which those of the host have in common;
     * NULL: each worker has memory of its own */
    void *memory;
    int first;        /* the first worker that has this memory */
    bool distributed; /* other workers have tables in other memory */
} ls_step_rows_config;

/* Collective. */
ls_status ls_step_rows_open(const ls_step_rows_config *, ls_step_rows **r_p, ls_error *);
void ls_step_rows_free(ls_step_rows *); /* NULL is fine, here and below: there are no tables */
/* For executors and inferences. */
const ls_layer_rows *ls_step_rows_of_layers(const ls_step_rows *);

/* Sets this worker's part of the tables to initial values. */
void ls_step_rows_draw(ls_step_rows *);
/* What loading fills: the tables of this memory, if the worker is the first that has it. */
typedef struct ls_rows_part {
    float *tables;               /* [ls_optim_tables_floats()]; NULL: nothing */
    const unsigned char *blocks; /* [ls_table_blocks()] those that are not 0; NULL: all */
} ls_rows_part;
ls_rows_part ls_step_rows_fill(ls_step_rows *);
/* Collective, when a view begins: the tables have had its steps afterwards. */
typedef struct ls_step_rows_view {
    ls_group *group; /* in each view of as many workers, with the same numbers */
    int64_t number, steps;
    bool found;   /* earlier workers have left the tables; else they are drawn, or read */
    bool *lost_p; /* set if it fails since no worker has some rows */
} ls_step_rows_view;
ls_status ls_step_rows_take_up(ls_step_rows *, const ls_step_rows_view *, ls_error *);
/* Collective if workers do not share all memory, before and after the step that follows `steps`
 * others. all: the worker reads rows of all samples, not only of its own. */
ls_status ls_step_rows_begin(ls_step_rows *, int64_t steps, bool all, ls_error *);
ls_status ls_step_rows_end(ls_step_rows *, int64_t steps, ls_error *);

/* Do workers share no memory? Then rows of other samples than a step's are fetched before layers
 * read them: an ls_infer_fetch(), which needs all workers. Those that have no more samples call
 * serve() until all do; it returns `own`, unless that is LS_OK and it fails. */
bool ls_step_rows_are_distributed(const ls_step_rows *);
ls_status ls_step_rows_fetch(void *rows, int64_t n, const void *samples, ls_error *);
ls_status ls_step_rows_serve(ls_step_rows *, ls_status own, ls_error *);

/* Collective: worker 0 gets all tables (NULL: there are none). Drop returns the memory of rows that
 * are others'. */
ls_status ls_step_rows_collect(ls_step_rows *, ls_error *);
float *ls_step_rows_tables(const ls_step_rows *);
ls_status ls_step_rows_drop_collected(ls_step_rows *, ls_error *);

#endif
