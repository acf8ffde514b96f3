/* report_seeds.h - lockstep report --seeds */
#ifndef LS_CLI_REPORT_SEEDS_H
#define LS_CLI_REPORT_SEEDS_H

#include "config/config.h"

typedef struct cli_seeds {
    int n;              /* seeds, from train.seed on */
    const char *target; /* "val_loss<=2.5" */
    const char *dir;    /* of the trainings, which continue where they were */
    const char *mllog;  /* a directory that gets each training's log; NULL: none */
    const char *name;   /* of the benchmark, in these logs */
    int64_t workers;    /* 0: as many as `lockstep train` takes */
    bool json;
} cli_seeds;

/* LS_EABORT: interrupted; LS_EINVAL: too few seeds reach the target. */
ls_status cli_seeds_run(const cli_seeds *, const ls_config *, ls_error *);

#endif
