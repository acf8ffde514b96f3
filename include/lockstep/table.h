/* table.h - a table of rows of floats that a group of workers reads and updates, each worker with a
 * part of it: embeddings of users, items and words, or the parameters of any sparse model.
 *
 *     ls_table_config c = {.width = 16, .virtual_workers = 4, .optimizer = LS_ROW_ADAGRAD,
 *                          .bound = 0.05, .seed = 1};
 *     ls_table *t;
 *     ls_table_open(g, &c, &t, &e);
 *     for (each step) {
 *         ls_table_read(t, ids, n, rows, &e);              // rows [n][16]
 *         ...                                              // their gradients
 *         for (each own virtual worker v)
 *             ls_table_add(t, v, ids_of_v, n_of_v, gradients_of_v, &e);
 *         ls_table_update(t, 0.01, &e);
 *     }
 *     ls_table_save(t, "users", &e);
 *     ls_table_close(t);
 *
 * A row belongs to one worker, by its id. Only rows that are read travel, once for each worker that
 * reads them, and only gradients of rows that were added to.
 *
 * The same bits: a step's samples are cut for `virtual_workers` V virtual workers, and worker r of
 * n has those from r V / n to (r + 1) V / n (ls_table_virtual_workers()). A virtual worker's
 * gradients of a row are summed in the order in which they were added; the sums of virtual workers
 * are summed by a binary tree over 0 .. V - 1, in which those that have none are left out. So a
 * program whose virtual workers add the same gradients gets the same rows with any number of
 * workers, on any transport, whatever other rows they touch.
 *
 * A clock counts the updates. Reading changes nothing: it gives the rows after the latest update.
 *
 * Collective calls are made by all workers of the group, in the same order. Errors are those of
 * group.h; a collective call with a bad argument of one worker fails with LS_EINVAL on all, and the
 * table is as before.
 */
#ifndef LOCKSTEP_TABLE_H
#define LOCKSTEP_TABLE_H

#include "lockstep/group.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How an update changes the row w with the sum g of its gradients, at rate lr. Only rows with a
 * gradient change, also by weight decay, which is added first: g += weight_decay w. */
typedef enum ls_row_optimizer {
    /* w -= lr g */
    LS_ROW_SGD,
    /* Row-wise Adagrad, one number a row: G += mean(g^2); w -= lr' g / (sqrt(G) + eps), where lr'
     * = lr / (1 + t lr_decay) in the update at clock t. As in FBGEMM and TorchRec. */
    LS_ROW_ADAGRAD,
    /* Adam on the rows that have a gradient, with the corrections of clock t, as in PyTorch's
     * SparseAdam: m and v of a row, which change when the row does. Kingma & Ba, "Adam: a method
     * for stochastic optimization", ICLR 2015. */
    LS_ROW_ADAM
} ls_row_optimizer;

/* Must be the same on all workers. 0 is the default everywhere but `width`. */
typedef struct ls_table_config {
    const char *name LS_UNSET; /* for messages; NULL: "table" */
    int width LS_UNSET;        /* floats of a row, 1 to 65536 */
    /* ids are 0 .. rows - 1; 0: any numbers, and a row takes memory only once it has had a
     * gradient */
    int64_t rows LS_UNSET;
    /* V, at least the number of workers; 0: one for each worker, so that the bits depend on their
     * number */
    int virtual_workers LS_UNSET;
    ls_row_optimizer optimizer LS_UNSET;
    double eps LS_UNSET;                   /* 0: 1e-10 for Adagrad, 1e-8 for Adam */
    double beta1 LS_UNSET, beta2 LS_UNSET; /* of Adam; 0: 0.9, 0.999 */
    double lr_decay LS_UNSET;              /* of Adagrad */
    double weight_decay LS_UNSET;
    /* initial values are uniform in [-bound, bound): a function of seed and id */
    double bound LS_UNSET;
    uint64_t seed LS_UNSET;
    /* a row changes only from the update on in which its id has been added this number of times;
     * until then it has its initial values, and its gradients are dropped. 0, 1: at once */
    int64_t admit LS_UNSET;
    /* a row that this many updates have not changed gets its initial values, and gives its memory
     * back, in the next one; 0: never */
    int64_t keep LS_UNSET;
} ls_table_config;

typedef struct ls_table ls_table;

/* Collective. The group must outlive the table, and must have no other calls while a call of the
 * table runs.
 *
 * Errors   LS_EINVAL: a setting (named), or settings that differ between workers. */
ls_status ls_table_open(ls_group *g, const ls_table_config *config, ls_table **t_p, ls_error *e);
void ls_table_close(ls_table *t); /* NULL is fine; a closed table must not be used */

/* This worker's virtual workers: [*first_p, *end_p). */
void ls_table_virtual_workers(const ls_table *t, int *first_p, int *end_p);

/* Collective: rows [n][width] = the rows of ids [n], of which some may be equal; n may be 0, and
 * differ between workers. A row that was never changed has its initial values.
 *
 * Errors   LS_EINVAL: an id outside of the table.
 * Cost     Each worker sends the ids that it reads to their owners, 8 bytes each, equal ones once,
 *          and gets their rows, 4 width bytes each. */
ls_status ls_table_read(ls_table *t, const int64_t *ids, size_t n, float *rows, ls_error *e);

/* Adds gradients [n][width] of the rows ids [n] to those of a virtual worker of this worker. Not
 * collective, sends nothing. May be called any number of times before an update.
 *
 * Errors   LS_EINVAL: an id outside of the table, another worker's virtual worker. Nothing is
 *          added. */
ls_status ls_table_add(ls_table *t, int virtual_worker, const int64_t *ids, size_t n,
                       const float *gradients, ls_error *e);

/* Drops what was added since the latest update. Not collective. */
void ls_table_discard(ls_table *t);

/* Collective: sums what was added, changes the rows, and adds 1 to the clock.
 *
 * Errors   LS_EINVAL: lr differs between workers, or is not finite. LS_ENOMEM: no memory for new
 *          rows. In both cases no row has changed, and what was added is retained.
 * Cost     Each worker sends the sums of its rows to their owners, 16 + 4 width bytes each. */
ls_status ls_table_update(ls_table *t, double lr, ls_error *e);

/* The number of updates. */
int64_t ls_table_clock(const ls_table *t);
/* Rows that this worker has in memory. */
int64_t ls_table_count(const ls_table *t);

/* Collective: text [33], a hash of all rows, the optimizer's state and the clock, as 32 digits. It
 * is the same for any number of workers. */
ls_status ls_table_hash(ls_table *t, char text[33], ls_error *e);

/* Collective: writes the table to a new directory, which all workers must see: table.json, and a
 * file of safetensors for each worker. It appears whole, or not at all. What was added since the
 * latest update is not part of it.
 *
 * Errors   LS_EINVAL: the directory exists. LS_EIO: it can't be written. */
ls_status ls_table_save(ls_table *t, const char *dir, ls_error *e);

/* Collective: replaces all rows and the clock by those that any number of workers have saved. Drops
 * what was added.
 *
 * Errors   LS_EIO, LS_EINVAL: it can't be read, is damaged, or was saved with other settings
 *          (named). The table is as before. */
ls_status ls_table_load(ls_table *t, const char *dir, ls_error *e);

#ifdef __cplusplus
}
#endif
#endif
