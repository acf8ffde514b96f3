/* room.c - see room.h. */
#include "storage/room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "share/codes.h"

/* The largest sizes seen: bytes of a header per tensor, of a tokenizer per token. */
enum { NBYTES_TENSOR = 160, NBYTES_TOKEN = 64 };

/* The tensors of a file, and their elements. */
typedef struct amount {
    double tensors, floats;
} amount;

static void add(amount *a, double tensors, size_t count) {
    a->tensors += tensors;
    a->floats += tensors * (double)count;
}

/* A parameter's weights and states, and those of replicas (ls_state_optimizer()). */
static void add_param(amount *a, const ls_plan *p, const ls_param *param) {
    const ls_optim *o = &p->share.optim;
    ls_param whole = param->window.rows ? ls_param_whole(param) : *param;
    int replicas = p->share.islands, nstates = ls_optim_nflats(o) - 1;
    add(a, 1 + replicas, whole.count);
    for (int i = 0; i < nstates; i++) {
        size_t count = ls_optim_state_param(o, &whole, i).count;
        if (replicas ? ls_optim_outer_state_name(o, i) : ls_optim_state_name(o, param, i))
            add(a, 1, count);
        if (replicas && ls_optim_state_name(o, param, i)) add(a, replicas, count);
    }
    if (param->window.rows && ls_optim_sees(o))
        add(a, 1, (size_t)whole.dims[0] * ls_optim_row_floats(o, param, nstates + 1));
}

/* What encoding has lost of each virtual worker's gradients, and the factors that stand with it. */
static void add_errors(amount *a, const ls_plan *p) {
    const ls_model *m = p->share.model;
    if (!p->share.has_errors) return;
    for (int i = 0; i < m->nparams; i++) {
        const ls_code_piece *factor = ls_share_factor_of(&p->share, &m->params[i]);
        if (m->params[i].frozen) continue;
        add(a, p->share.V, m->params[i].count);
        if (factor) add(a, p->share.V, factor->nfactor);
    }
}

double ls_room_checkpoint_nbytes(const ls_plan *p, int64_t ntokens, size_t config_nbytes) {
    const ls_model *m = p->share.model;
    amount all = {0};
    for (int i = 0; i < m->nparams; i++)
        if (!m->params[i].frozen) add_param(&all, p, &m->params[i]);
    add_errors(&all, p);
    return all.floats * sizeof(float) + all.tensors * NBYTES_TENSOR +
           (double)NBYTES_TOKEN * (double)ntokens + (double)config_nbytes;
}

double ls_room_file_nbytes(const ls_plan *p) {
    const ls_model *m = p->share.model;
    const ls_optim *o = &p->share.optim;
    double weights = 0, states = 0;
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *param = &m->params[i];
        if (param->frozen || param->window.rows) continue;
        weights += (double)param->count;
        for (int k = 0; k < ls_optim_nflats(o) - 1 && !p->share.islands; k++)
            if (ls_optim_state_name(o, param, k))
                states += (double)ls_optim_state_param(o, param, k).count;
    }
    return (weights > states ? weights : states) * sizeof(float);
}

static ls_status check_file(const char *dir, double nbytes, ls_error *e) {
    struct rlimit r;
    if (getrlimit(RLIMIT_FSIZE, &r) != 0 || r.rlim_cur == RLIM_INFINITY) return LS_OK;
    if (nbytes <= (double)r.rlim_cur) return LS_OK;
    return ls_fail(
        e, LS_EIO,
        "%s: a file of a checkpoint takes %.2f MB, and `ulimit -f` allows %.2f MB: raise "
        "it",
        dir, nbytes / 1e6, (double)r.rlim_cur / 1e6);
}

ls_status ls_room_check(const char *dir, const ls_room_wanted *w, ls_error *e) {
    struct statvfs v;
    LS_TRY(check_file(dir, w->file, e));
    char *there = ls_file_existing(dir);
    int failed = statvfs(there, &v) != 0 ? errno : 0;
    free(there);
    if (failed == ENOSYS || failed == EPERM) return LS_OK; /* a filter of system calls refuses it */
    if (failed)
        return ls_fail(e, LS_EIO, "%s: can't get its free space: %s", dir, strerror(failed));
    double room = (double)(geteuid() == 0 ? v.f_bfree : v.f_bavail) * (double)v.f_frsize;
    double nbytes = (double)w->checkpoints * w->checkpoint + w->frozen;
    if (v.f_blocks == 0 || nbytes + w->more <= room) return LS_OK;
    if (w->checkpoints > 1)
        return ls_fail(e, LS_EIO,
                       "%s: has room for %.1f MB, and %lld checkpoints, which are there at one "
                       "time, take %.1f MB: make room there, set a lower checkpoint.keep or a "
                       "longer checkpoint.every, or choose another directory with -o",
                       dir, room / 1e6, (long long)w->checkpoints, nbytes / 1e6);
    if (w->more > 0)
        return ls_fail(e, LS_EIO,
                       "%s: has room for %.1f MB; a checkpoint takes %.1f MB and the tokens of the "
                       "text %.1f: make room there, or choose another directory with -o",
                       dir, room / 1e6, nbytes / 1e6, w->more / 1e6);
    return ls_fail(e, LS_EIO,
                   "%s: has room for %.1f MB, and a checkpoint takes %.1f MB: make room there, or "
                   "choose another directory with -o",
                   dir, room / 1e6, nbytes / 1e6);
}
