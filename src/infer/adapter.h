/* adapter.h - adapters that are loaded beside a model, so that texts with different ones are
 * computed together (layers/row_adapters.h).
 */
#ifndef LS_INFER_ADAPTER_H
#define LS_INFER_ADAPTER_H

#include "infer/generate.h"
#include "layers/row_adapters.h"

typedef struct ls_adapter {
    char *path;
    ls_row_adapter *of; /* [nparams of the model] by the number of the layer's weight */
    int64_t rank;       /* the largest */
    float *memory;      /* of their numbers, the host's */
    size_t nbytes;
    ls_device *device; /* that computes; NULL: cores do */
    void *there;       /* its copy, to which `of` then points */
} ls_adapter;

/* The adapter of a run or a checkpoint with lora.rank, or one of another program
 * (storage/adapter_file.h), for the model, which must outlive it, and for what computes it:
 * cores or its device. A text with it has the bits that the run has alone.
 *
 * Errors   LS_EINVAL: it is that of another model, was trained on other weights, computes in
 *          another type, or has more than adapters (lora.train). LS_EIO, LS_ENOMEM. */
ls_status ls_adapter_open(const ls_trained *, const char *path, ls_adapter *a_p, ls_error *);
/* After ls_trained_place(): the device has the numbers of an adapter that was opened before.
 * LS_ENOMEM, LS_EIO. */
ls_status ls_adapter_place(const ls_trained *, ls_adapter *, ls_error *);
void ls_adapter_close(ls_adapter *); /* of {0}, too */

#endif
