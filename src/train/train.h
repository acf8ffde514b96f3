/* train.h - a training run from its config to its last checkpoint. */
#ifndef LS_TRAIN_TRAIN_H
#define LS_TRAIN_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

struct ls_mllog_request;

typedef struct ls_train_options {
    const char *config;      /* path */
    const char *const *sets; /* [nsets] "key=value", after the file */
    int nsets;
    int nworkers;    /* 0: one per core, at most one per virtual worker */
    const char *run; /* the run directory */
    /* Between hosts: where this one listens for others, or the first host's address; NULL: this
     * host is alone. */
    const char *listen, *join;
    int hosts; /* the first one waits until there are this many, with itself; 0: at once */
    const char *command;     /* the command line, as the run records it; NULL: not known */
    const char *again;       /* the command that continues this run, to be printed; NULL: none */
    const char *again_first; /* and if this host has taken the first one's place */
    int64_t until;           /* stop after this step, with a checkpoint; 0: after the last one */
    bool resume;             /* continue from the newest checkpoint, if there is one */
    bool overwrite;          /* replace a run that is there, with its checkpoints */
    const char *trace;       /* FILE.json or FILE.svg: a timeline of some steps; NULL: none */
    int64_t trace_steps;     /* how many; 0: 3 */
    const struct ls_mllog_request *mllog; /* a log (report/mllog.h); NULL: none */
    int64_t began_ns;                     /* ls_clock_ns() when the program began; 0: now */
    /* Decides compress.kind auto (perf/choose_code.h); NULL: it is refused. */
    ls_status (*choose)(ls_config *, int nworkers, int hosts, ls_error *);
    /* Decides parallel.mesh auto (perf/mesh_search.h); NULL: it is refused. */
    ls_status (*choose_mesh)(ls_config *, int nworkers, bool distributed, ls_error *);
} ls_train_options;

/* Trains; prints progress on standard error and a summary on standard output. LS_OK also when an
 * interrupt ended the run before its last step, with a checkpoint: then *unfinished_p. */
ls_status ls_train(const ls_train_options *, bool *unfinished_p, ls_error *);

#endif
