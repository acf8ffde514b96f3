/* run_model.h - a run's model as a published one: its architecture, weights, tokenizer and chat
 * template.
 *
 * Ids of tokens, the greatest context and the template are those of the model that the run began
 * with (published_record.h).
 */
#ifndef LS_STORAGE_RUN_MODEL_H
#define LS_STORAGE_RUN_MODEL_H

#include "config/config.h"
#include "model/model.h"
#include "weights/model_text.h"
#include "weights/write_model.h"

typedef struct ls_run_model {
    char *path; /* of the checkpoint */
    ls_config config;
    ls_architecture arch;
    ls_model model;
    float *params;      /* [nfloats] */
    float *frozen;      /* [frozen_floats] NULL: it has none */
    ls_model_text text; /* its tokenizer is NULL: the run has none */
    bool merges;        /* adapters are added to the weights, with `compute` */
    ls_compute compute;
} ls_run_model;

typedef struct ls_run_model_options {
    bool ema;   /* the average of the weights (optim.ema) */
    bool merge; /* adds the adapters (lora.*) to the weights */
} ls_run_model_options;

/* path: a run or a checkpoint. LS_EINVAL: its model has no published form, it has adapters that are
 * not merged, or has none to merge, or files are damaged. */
ls_status ls_run_model_open(const char *path, ls_run_model_options, ls_run_model *r_p, ls_error *);
void ls_run_model_close(ls_run_model *);

ls_model_source ls_source_of_run(const ls_run_model *);

#endif
