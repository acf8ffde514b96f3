/* applications.h - RUN/applications.jsonl: how the gradients of an asynchronous run were applied.
 *
 * From it the run can be repeated, bit for bit, by one worker (replay.h):
 *
 *     {"begins": 0, "of": 100, "workers": 4, "sum": "blocks32", "shards": [4096, 10240]}
 *                                                            here workers begin, after 0 steps of
 *                                                            train.steps; where each shard ends;
 *                                                            the order of products in bf16
 *                                                            (tensor/sum_order.h), if there are any
 *     {"step": 3, "worker": 1, "base": [0, 1], "at": [2, 2]} the gradient of the batch of step 3,
 *                                                            counted from 1: the versions with
 *                                                            which it was computed, and those to
 *                                                            which it was applied, by shard
 *
 * Lines are in the order in which gradients were applied everywhere. When a checkpoint is made, all
 * of its steps have lines, and no later step has.
 */
#ifndef LS_ASYNC_APPLICATIONS_H
#define LS_ASYNC_APPLICATIONS_H

#include "async/gradient_board.h"

#define LS_APPLICATIONS_FILE "applications.jsonl"

/* Before a run resumes from step `steps`: cuts off the later lines, and one that is torn. */
ls_status ls_applications_cut(const char *run, int64_t steps, ls_error *);

/* How many steps from `first` on (counted from 0) have lines; 0 if the file can't be read. */
int64_t ls_applications_count(const char *run, int64_t first);

/* ---- writing ---- */

typedef struct ls_applications ls_applications;

/* The values of the line about shards. */
typedef struct ls_applications_begin {
    const ls_async_shard *shards; /* [nshards] */
    int nshards, nworkers;
    int64_t steps, of;
    const char *sum; /* the order of products in bf16; NULL: none is */
} ls_applications_begin;

/* The values of a step's line. */
typedef struct ls_applications_line {
    int64_t step; /* from 0 */
    int worker, nshards;
    const int64_t *base, *at; /* [nshards] */
} ls_applications_line;

/* Appends to the file, beginning with a line about shards. */
ls_status ls_applications_open(const char *run, const ls_applications_begin *,
                               ls_applications **a_p, ls_error *);
ls_status ls_applications_add(ls_applications *, const ls_applications_line *, ls_error *);
/* Call it before a checkpoint: syncs the added lines to the disk. */
ls_status ls_applications_sync(ls_applications *, ls_error *);
void ls_applications_close(ls_applications *); /* NULL is fine */

/* ---- reading ---- */

typedef struct ls_application {
    int64_t step; /* from 0 */
    int64_t base[LS_ASYNC_SHARDS], at[LS_ASYNC_SHARDS];
} ls_application;

/* A part of the log, from one line about shards to the next. */
typedef struct ls_applications_part {
    int64_t begins; /* steps complete */
    int64_t of;     /* train.steps, on which rates depend */
    int nshards;
    size_t ends[LS_ASYNC_SHARDS];
    ls_application *list; /* [n] */
    size_t n, room;
} ls_applications_part;

typedef struct ls_applications_read {
    ls_applications_part *parts; /* [n] */
    size_t n;
} ls_applications_read;

/* The run that is replayed. */
typedef struct ls_applications_run {
    const char *dir;
    int64_t steps;   /* the first of it, which are read */
    size_t nfloats;  /* elements of its model */
    const char *sum; /* as of ls_applications_begin, with which it is replayed */
} ls_applications_run;

/* LS_EINVAL: a line is missing or wrong, or steps have another `sum`. */
ls_status ls_applications_load(const ls_applications_run *, ls_applications_read *r_p, ls_error *);
void ls_applications_free(ls_applications_read *);

#endif
