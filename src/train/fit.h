/* fit.h - settings with which a run fits into a memory limit. None of them changes the bits. */
#ifndef LS_TRAIN_FIT_H
#define LS_TRAIN_FIT_H

#include "config/config.h"
#include "plan/memory.h"

/* Values for parallel.zero, recompute, recompute_layers, optimizer_state, accumulate and bucket_mb,
 * and for train.micro_batch. */
typedef struct ls_fit {
    int64_t zero, recompute, recompute_layers, micro_batch;
    ls_state_kind state;
    ls_accumulate_kind accumulate;
    double bucket_mb;
    size_t nbytes;  /* the peak of a worker */
    double compute; /* forward and backward, as a multiple of the plan without recompute */
    double sent;    /* bytes of a worker in a step, as a multiple of one model */
} ls_fit;

/* All fits that need `limit` bytes or less, the least costly first; the caller frees *fits_p.
 * accumulate and bucket_mb are those of the config if that is enough. */
ls_status ls_fit_find(const ls_config *, int nworkers, size_t limit, ls_fit **fits_p, int *n_p,
                      ls_error *);

/* Replaces settings that are "auto" by the numbers that compute least within
 * parallel.memory_limit_mb, or, if none is within it, by those that need least memory. Before, a
 * train.micro_batch that the program has chosen is lowered, if that brings a worker within it. */
ls_status ls_fit_auto(ls_config *c, int nworkers, ls_error *);

/* Is a worker within parallel.memory_limit_mb? If not: with parallel.fit auto the best fit is set
 * in *c, else LS_ENOMEM names the largest line and the settings that would be enough. */
ls_status ls_fit_limit(ls_config *c, int nworkers, ls_error *);

/* The same for workers on several hosts, which decide by what is the same on all of them: by `all`
 * workers, those of a launcher, or with 0, where others bring theirs, by the fewest that the run
 * may have. `here`: those of this host. LS_ENOMEM also if this host's threads need too much. */
ls_status ls_fit_limit_hosts(ls_config *, int here, int all, ls_error *);

/* Lowers a train.micro_batch that the program has chosen. False: it is none, or the smallest. */
bool ls_fit_lower_micro(ls_config *);

/* Appends the settings that differ from the config, as --set takes them. */
void ls_fit_text(const ls_config *, const ls_fit *, ls_buf *out);

#endif
