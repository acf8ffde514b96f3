/* row_inside.h - what the files of step_rows.h share. */
#ifndef LS_TABLE_ROW_INSIDE_H
#define LS_TABLE_ROW_INSIDE_H

#include "table/exchange.h"
#include "table/row_tables.h"
#include "table/step_rows.h"

/* The rows of a window, in the order of their slots. */
typedef struct ls_row_window {
    int param;
    int32_t *ids;    /* [rows of the window] */
    bool *wanted;    /* [rows of the window] the worker's own samples have them */
    int32_t *occurs; /* [rows of the window] how often the batch has their ids */
    float *seen;     /* [rows of the window] fetched ones: ls_optim_seen.count before the step */
    size_t seen_at;  /* of the ls_optim_seen of the table's rows, in a buffer of all tables */
    int64_t n;
    int64_t first_block, block_rows;    /* of its table */
    size_t floats[LS_OPTIM_STATES + 1]; /* of a row, in each buffer; 0: it has no such state */
    size_t at[LS_OPTIM_STATES + 1];     /* of the table, in a buffer of all tables */
} ls_row_window;

/* A message to or from each worker, in the order of workers. */
typedef struct ls_row_post {
    ls_table_room floats;
    size_t *counts; /* [workers] floats */
    size_t *places; /* [workers] where the next of them goes */
} ls_row_post;

struct ls_step_rows {
    const ls_plan *plan;
    const ls_flat *flat;
    ls_group *group; /* of the view */
    int worker, nworkers;
    uint64_t seed;
    ls_row_tables t;
    void *own; /* memory of t that is this worker's; else NULL */
    size_t own_nbytes;
    ls_row_window *windows; /* [nwindows] */
    int nwindows, nflats;
    int32_t *slots; /* [table_rows] */
    ls_loader_config batch;
    char *sample;
    ls_layer_rows layers;
    int *memory_of;         /* [workers] the first worker that has the same memory */
    unsigned char *mine;    /* [ls_table_blocks()] 1: its worker has this memory */
    bool distributed;       /* workers do not share all memory */
    bool sees;              /* ls_optim_sees() */
    int64_t written;        /* the steps that are complete when rows are next written to tables */
    float *fetched;         /* [nfloats]; NULL: workers share all memory */
    ls_row_post out, in;    /* } */
    ls_exchange asked;      /* } rows, by their numbers among those of all tables */
    ls_table_room ask, get; /* } these numbers */
    size_t *next;           /* } [workers] where the next of `ask` goes */
};

enum { LS_NO_SLOT = -1 };

static inline const ls_param *ls_row_param(const ls_step_rows *r, const ls_row_window *w) {
    return &r->plan->share.model->params[w->param];
}

/* The worker that has a row of a window's table; does it have the memory of this one? */
static inline int ls_row_home(const ls_step_rows *r, const ls_row_window *w, int64_t id) {
    return (int)((w->first_block + id / w->block_rows) % r->nworkers);
}
static inline bool ls_row_is_near(const ls_step_rows *r, int worker) {
    return r->memory_of[worker] == r->memory_of[r->worker];
}

/* ---- row_policy.c: rows that are not always trained, or do not stay forever ---- */

/* Is a row that is near, and whose slot this is, trained in the step that r->written counts? */
bool ls_row_is_trained(const ls_step_rows *, const ls_row_window *, int64_t slot);
/* Before a step: the gradients of wanted rows that are not trained yet are dropped. */
void ls_rows_drop_gradients(ls_step_rows *);
/* After a step's rows are in the tables: notes that they were seen, and resets this worker's rows
 * that no sample has had for long. Can be repeated. */
ls_status ls_rows_note_seen(ls_step_rows *, ls_error *);
ls_optim_seen ls_row_seen(const ls_step_rows *, const ls_row_window *, int64_t id);

/* ---- step_rows.c ---- */

/* Calls f for each sample of a step's batch. */
typedef void ls_row_sample(ls_step_rows *, const char *sample, int vw, void *arg);
ls_status ls_rows_each_sample(ls_step_rows *, int64_t step, ls_row_sample *f, void *arg,
                              ls_error *);

/* ---- row_exchange.c ---- */

/* Collective if `distributed`: rows of the step go from tables to the windows of the workers that
 * update them, and back. */
ls_status ls_rows_to_windows(ls_step_rows *, ls_error *);
ls_status ls_rows_to_tables(ls_step_rows *, ls_error *);
/* Collective if `distributed`: fetches the wanted rows of all windows. active: else the worker only
 * answers others, and *others_p says whether any has asked. */
ls_status ls_rows_fetch(ls_step_rows *, bool active, bool *others_p, ls_error *);

/* ---- row_blocks.c ---- */

/* Collective: each block is at its worker afterwards, with the rows after the view's steps, unless
 * *again_p: those of the last step have to be written once more. */
ls_status ls_row_blocks_settle(ls_step_rows *, const ls_step_rows_view *, bool *again_p,
                               ls_error *);
/* Collective: returns the memory of blocks that belong to other workers. */
ls_status ls_row_blocks_tidy(ls_step_rows *, ls_error *);
/* Collective: worker 0 gets all blocks. */
ls_status ls_row_blocks_collect(ls_step_rows *, ls_error *);

#endif
