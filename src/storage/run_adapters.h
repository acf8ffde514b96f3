/* run_adapters.h - the adapters of a run (lora.*), for programs that load them beside their base
 * model. */
#ifndef LS_STORAGE_RUN_ADAPTERS_H
#define LS_STORAGE_RUN_ADAPTERS_H

#include "config/config.h"
#include "model/model.h"
#include "weights/architecture.h"

typedef struct ls_run_adapters {
    char *checkpoint;
    ls_config config;
    ls_model model;
    float *params; /* [nfloats] */
} ls_run_adapters;

/* Does the run or checkpoint have adapters? LS_EINVAL, LS_EIO: there is no good checkpoint. */
ls_status ls_run_has_adapters(const char *from, bool *has_p, ls_error *);

/* from: a run or a checkpoint. ema: the average of the weights (optim.ema). LS_EINVAL: it has no
 * adapters. Close it also after a failure. */
ls_status ls_run_adapters_open(const char *from, bool ema, ls_run_adapters *r_p, ls_error *);
void ls_run_adapters_close(ls_run_adapters *);

/* The architecture of the base model, in the family that its files have. LS_EINVAL: no family has
 * all of its parts. */
ls_status ls_run_adapters_architecture(const ls_run_adapters *, ls_architecture *a_p, ls_error *);

bool ls_adapter_is_a(const ls_param *); /* the matrix A, whose rows are its rank */
/* The name of the parameter's layer, without ".lora_A.weight" or ".weight". */
void ls_adapter_layer(const ls_param *, char name[LS_NAME]);

#endif
