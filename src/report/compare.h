/* compare.h - compares runs: the keys in which their configs differ, their curves, and the first
 * step at which their bits differ.
 *
 * Two runs must have the same bits if no key that affects the bits differs, they have the same
 * data, and their products in bf16 were summed in the same order. Then the lines of metrics.jsonl
 * (loss and norm of the gradient, of each step that both have) and the hashes of checkpoints of the
 * same step are equal. A number in a line has nine digits, so runs whose bits differ may have some
 * equal lines at first; checkpoints are exact.
 */
#ifndef LS_REPORT_COMPARE_H
#define LS_REPORT_COMPARE_H

#include "config/config.h"
#include "report/curves.h"
#include "report/history.h"
#include "storage/checkpoint_compare.h"

/* A step's line. */
typedef struct ls_compare_step {
    int64_t step;
    double loss, grad_norm; /* NaN: not in the line */
} ls_compare_step;

/* A run, and where its bits begin to differ from those of the first run. */
typedef struct ls_compare_run {
    const char *path;
    char *name; /* the end of the path, as far as it tells the runs apart */
    ls_config config;
    ls_compare_step *steps; /* [nsteps] */
    size_t nsteps;
    ls_series curve;      /* of the metric */
    double val_loss;      /* the lowest */
    int64_t val_step;     /* its step; 0: there is none */
    double last_val_loss; /* of the last evaluation */
    int64_t last_val_step;
    double seconds;              /* of all steps */
    int64_t workers[2];          /* fewest and most */
    ls_json *changed;            /* keys that changed when it was resumed, as of ls_ledger */
    bool same_config, same_data; /* as far as the bits go */
    bool same_changes, same_sums;
    /* The orders in which a run in bf16 has summed products (tensor/sum_order.h): an array of
     * objects, "step", from which one holds, and "sum", a text, or null for that of versions
     * which did not record it. Empty: not known, or not in bf16. */
    ls_json *sums;
    int64_t nlines;             /* steps that both have lines of */
    int64_t parted;             /* the first of these whose line differs; 0: none */
    double losses[2], norms[2]; /* in that line */
    ls_checkpoints_compared checkpoints;
} ls_compare_run;

typedef struct ls_comparison {
    ls_compare_run *runs; /* [n] */
    int n;
    const char *metric;
    ls_json *differences; /* as of ls_config_differences() */
} ls_comparison;

/* metric: a number in the lines of metrics.jsonl, of steps or evaluations, e.g. "loss" or
 * "val_loss". LS_EINVAL: a directory is no run, or no run has this metric. */
ls_status ls_compare_runs(const char *const *runs, int n, const char *metric, ls_comparison *c_p,
                          ls_error *);
void ls_compare_free(ls_comparison *);

/* Do the lines or the checkpoints of a run differ from those of the first run? */
bool ls_compare_parted(const ls_compare_run *);
/* Must the run have the bits of the first run? */
bool ls_compare_must_match(const ls_compare_run *);

/* Appends tables of the runs and of the differences of their configs, and for each run after the
 * first a sentence about its bits. */
void ls_compare_print(const ls_comparison *, ls_buf *out);
/* The curves of all runs; the names belong to the comparison. lines [n]. */
ls_curves ls_compare_curves(const ls_comparison *, ls_curve_line *lines);
/* The comparison as JSON (docs/reference/json.md). The caller frees it. */
ls_json *ls_compare_json(const ls_comparison *);

#endif
