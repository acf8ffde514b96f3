/* checkpoint_order.c - may a run continue from a checkpoint, by the order in which its products in
 * bf16 were summed: see checkpoint.h. */
#include <string.h>

#include "base/log.h"
#include "model/types.h"
#include "storage/checkpoint.h"
#include "storage/manifest.h"
#include "tensor/sum_order.h"

static ls_status fail_unknown(const char *path, const char *sum, ls_error *e) {
    return ls_fail(e, LS_EINVAL,
                   "%s: its run sums products in the order '%.40s' (sum in " LS_MANIFEST_FILE
                   "), which this version does not have; continue with the version that wrote it, "
                   "or begin a new run, which can take its weights (train.from)",
                   path, sum);
}

static void log_older(const char *path, const char *own, int64_t step) {
    ls_log("%s: was written by an older version, which summed products in bf16 in another order; "
           "from step %lld on the order is %s, so the bits will not be those that the older "
           "version would have computed; this is no error",
           path, (long long)step + 1, own);
}

ls_status ls_checkpoint_check_order(const char *path, const ls_config *c, ls_error *e) {
    const char *own = ls_sum_order(ls_config_compute(c));
    ls_manifest m;
    LS_TRY(ls_manifest_read(path, &m, e));
    const char *sum = ls_manifest_sum(&m);
    ls_status s = LS_OK;
    if (sum && (!own || strcmp(sum, own) != 0))
        s = fail_unknown(path, sum, e);
    else if (!sum && own && m.step < c->train.steps) /* else no step follows */
        log_older(path, own, m.step);
    ls_manifest_free(&m);
    return s;
}
