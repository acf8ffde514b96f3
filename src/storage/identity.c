/* identity.c - see identity.h. */
#include "storage/identity.h"

#include "base/file.h"
#include "dataset/corpus_record.h"
#include "dataset/data_record.h"
#include "storage/lock.h"

static ls_status data_of(const char *dir, const ls_config *c, ls_hash *h_p, bool *there_p,
                         ls_error *e) {
    if (ls_config_has_corpus(c)) {
        ls_corpus_record r;
        LS_TRY(ls_corpus_record_read(dir, &r, there_p, e));
        if (*there_p) *h_p = r.tokens;
        return LS_OK;
    }
    ls_data_record r;
    LS_TRY(ls_data_record_read(dir, &r, there_p, e));
    if (*there_p) *h_p = ls_data_record_identity(&r);
    return LS_OK;
}

ls_status ls_identity_write(const char *dir, const ls_config *c, ls_buf *out, ls_error *e) {
    char run[LS_LOCK_NUMBER], text[LS_HASH_TEXT];
    ls_hash data;
    bool there = false;
    LS_TRY(ls_lock_run(dir, run, e));
    if (*run) LS_TRY(data_of(dir, c, &data, &there, e));
    if (!there) return LS_OK;
    ls_hash_text(data, text);
    ls_buf_printf(out, "run %s\ndata %s\n", run, text);
    return LS_OK;
}

ls_status ls_identity_require(const char *dir, ls_error *e) {
    char run[LS_LOCK_NUMBER];
    LS_TRY(ls_lock_run(dir, run, e));
    if (*run) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: %s; name the directory of the run with -o, the same on all hosts, on a "
                   "shared file system",
                   dir, ls_file_exists(dir) ? "has no run" : "does not exist on this host");
}

ls_status ls_identity_of_run(const char *dir, const ls_config *c, ls_buf *out, ls_error *e) {
    size_t before = out->len;
    LS_TRY(ls_identity_require(dir, e));
    LS_TRY(ls_identity_write(dir, c, out, e));
    if (out->len > before) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s/%s: is missing; resuming the run (--resume) restores it", dir,
                   ls_config_has_corpus(c) ? LS_CORPUS_RECORD : LS_DATA_RECORD);
}

ls_status ls_identity_check(const char *dir, const ls_config *c, const ls_model *m, ls_buf *out,
                            ls_error *e) {
    ls_dataset d;
    LS_TRY(ls_identity_require(dir, e));
    LS_TRY(ls_dataset_open(&d, dir, c, m, e));
    ls_dataset_free(&d);
    return ls_identity_of_run(dir, c, out, e);
}
