/* step_rows.h - tables of which a step touches few rows (model.sparse).
 *
 * A host has one copy of the tables and of their optimizer states, in memory that outlives its
 * workers. The model has windows of them (ls_param.rows), with room for the different ids of a
 * batch: ordinary parameters, whose gradients are summed, sharded and updated like all others.
 *
 * In a step all workers find the ids of the whole batch, each by itself, since a batch is a
 * function of the step; the first appearance of an id decides its slot in the window. Layers read
 * rows from the tables. Each worker
 *   - before the step copies the rows of the slots that it owns to its window,
 *   - after its update copies them back;
 * then all wait for each other. Rows that no sample has are not touched: not by weight decay, nor
 * by the decay of moments.
 *
 * So a row is updated once a step, whatever happens to the workers: until a step is decided, the
 * tables are those before it. The update of a decided step is finished in the windows by whoever is
 * left (exec/store_repair.h), and copying rows back can be repeated, as long as no window has rows
 * of the next step. `steps` says which steps the tables have had; the next view copies the rows of a
 * step that they lack. */
#ifndef LS_TRAIN_STEP_ROWS_H
#define LS_TRAIN_STEP_ROWS_H

#include "train/host.h"

struct ls_member;

typedef struct ls_step_rows ls_step_rows;

/* Bytes of the tables in the memory that the store carries; 0: the model has no windows. */
size_t ls_step_rows_nbytes(const ls_plan *);
/* Where they are, behind the run's notes: the tables, and the steps that they have had. */
float *ls_step_rows_tables(const ls_host *);
atomic_llong *ls_step_rows_steps(const ls_host *);

/* NULL: the model has no windows. m: its layout, worlds and data are there, and outlive it. */
ls_step_rows *ls_step_rows_new(const struct ls_member *m);
void ls_step_rows_free(ls_step_rows *); /* NULL is fine, here and below */
/* For executors and inferences. */
const ls_layer_rows *ls_step_rows_of_layers(const ls_step_rows *);

/* Sets this worker's part of the tables to initial values. */
void ls_step_rows_draw(ls_step_rows *);
/* Collective, when a view begins after `steps` steps: the tables have had them afterwards. found:
 * earlier workers have left them; else they are drawn, or read. */
ls_status ls_step_rows_take_up(ls_step_rows *, int64_t steps, bool found, ls_error *);
/* Before and (collective) after the step that follows `steps` others. */
ls_status ls_step_rows_begin(ls_step_rows *, int64_t steps, ls_error *);
ls_status ls_step_rows_end(ls_step_rows *, int64_t steps, ls_error *);

#endif
