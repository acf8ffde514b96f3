/* record_advice.c - see record_advice.h. */
#include "dataset/record_advice.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"

ls_status ls_record_advise(const char *dir, ls_status s, ls_error *e) {
    if (s != LS_EINVAL || !e) return s;
    char *manifest = ls_format("%s/" LS_MANIFEST_FILE, dir);
    bool is_checkpoint = ls_file_exists(manifest);
    free(manifest);
    if (is_checkpoint) return s;
    const ls_error why = *e;
    return ls_fail(e, s, "%.380s; remove it: --resume takes the copy of a checkpoint", why.msg);
}
