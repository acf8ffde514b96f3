/* record_advice.c - see record_advice.h. */
#include "dataset/record_advice.h"

#include "base/file.h"

ls_status ls_record_advise(const char *dir, ls_status s, ls_error *e) {
    if (s != LS_EINVAL || !e || ls_file_exists_in(dir, LS_MANIFEST_FILE)) return s;
    const ls_error why = *e;
    return ls_fail(e, s, "%.380s; remove it: --resume takes the copy of a checkpoint", why.msg);
}
