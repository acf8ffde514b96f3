/* inputs.c - see inputs.h. */
#include "train/inputs.h"

#include "base/guard.h"

/* A file's state tells more than that its pages are lost. */
ls_status ls_inputs_check(ls_dataset *data, ls_frozen_file *f, ls_error *e) {
    if (data) LS_TRY(ls_dataset_verify(data, e));
    LS_TRY(ls_frozen_file_verify(f, e));
    return ls_guard_check(e);
}
