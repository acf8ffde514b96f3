/* room.c - see room.h. */
#include "storage/room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"

/* The largest sizes seen: bytes of a header per tensor, of a tokenizer per token. */
enum { NBYTES_TENSOR = 160, NBYTES_TOKEN = 64 };

/* Trained weights and the optimizer's states in f32, and the text files. */
double ls_room_checkpoint_nbytes(const ls_model *m, const ls_optim *o, int64_t ntokens,
                                 size_t config_nbytes) {
    double flats = ls_optim_nflats(o);
    double count = (double)(m->count - m->frozen_count);
    return flats * (count * sizeof(float) + (double)NBYTES_TENSOR * m->nparams) +
           (double)NBYTES_TOKEN * (double)ntokens + (double)config_nbytes;
}

/* The directory, or its nearest parent that exists. */
static char *existing(const char *dir) {
    char *p = ls_strdup(dir);
    while (*p && access(p, F_OK) != 0) {
        char *slash = strrchr(p, '/');
        if (!slash) break;
        if (slash == p) slash++;
        if (!*slash) break;
        *slash = 0;
    }
    if (access(p, F_OK) == 0) return p;
    free(p);
    return ls_strdup(".");
}

ls_status ls_room_check(const char *dir, double nbytes, double more, ls_error *e) {
    struct statvfs v;
    char *there = existing(dir);
    int failed = statvfs(there, &v) != 0 ? errno : 0;
    free(there);
    if (failed)
        return ls_fail(e, LS_EIO, "%s: can't get its free space: %s", dir, strerror(failed));
    double room = (double)(geteuid() == 0 ? v.f_bfree : v.f_bavail) * (double)v.f_frsize;
    if (v.f_blocks == 0 || nbytes + more <= room) return LS_OK;
    if (more > 0)
        return ls_fail(e, LS_EIO,
                       "%s: has room for %.1f MB; a checkpoint takes %.1f MB and the tokens of the "
                       "text %.1f: make room there, or choose another directory with -o",
                       dir, room / 1e6, nbytes / 1e6, more / 1e6);
    return ls_fail(e, LS_EIO,
                   "%s: has room for %.1f MB, and a checkpoint takes %.1f MB: make room there, or "
                   "choose another directory with -o",
                   dir, room / 1e6, nbytes / 1e6);
}
