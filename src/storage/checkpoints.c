/* checkpoints.c - see checkpoints.h. */
#include "storage/checkpoints.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

static char *join(const char *folder, const char *name) { return ls_format("%s/%s", folder, name); }

/* ---- listing ---- */

int64_t ls_checkpoints_step_of(const char *name) {
    char *end = NULL;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9') return -1;
    errno = 0;
    long long step = strtoll(name + 5, &end, 10);
    return *end || errno ? -1 : step;
}

ls_status ls_checkpoints_below(const char *folder, int64_t below, int64_t *step_p, ls_error *e) {
    DIR *d = opendir(folder);
    int64_t newest = -1;
    if (!d && errno != ENOENT)
        return ls_fail(e, LS_EIO, "%s: can't be read: %s", folder, strerror(errno));
    errno = 0;
    for (struct dirent *f; d && (f = readdir(d));) {
        int64_t step = ls_checkpoints_step_of(f->d_name);
        if (step < below && step > newest) newest = step;
        errno = 0;
    }
    int failed = d ? errno : 0;
    if (d) closedir(d);
    if (failed) return ls_fail(e, LS_EIO, "%s: can't be read: %s", folder, strerror(failed));
    *step_p = newest;
    return LS_OK;
}

/* ---- pruning ---- */

static void remove_in(const char *folder, const char *name) {
    char *path = join(folder, name);
    ls_file_remove_tree(path, NULL);
    free(path);
}

/* Removes the partly written checkpoints of killed programs: no other program writes now. */
static void remove_partial(const char *folder) {
    DIR *d = opendir(folder);
    for (struct dirent *f; d && (f = readdir(d));)
        if (strncmp(f->d_name, LS_CHECKPOINT_HIDDEN, sizeof LS_CHECKPOINT_HIDDEN - 1) == 0)
            remove_in(folder, f->d_name);
    if (d) closedir(d);
}

/* Removes the checkpoints up to `newest`, which is good, except the newest `keep` and `best`. Later
 * ones were skipped when the run resumed, and do not count. A failure to remove one does not make
 * the new checkpoint fail. */
static void remove_old(const char *folder, int64_t newest, int64_t keep, int64_t best) {
    int64_t step = newest + 1;
    for (int64_t i = 0; keep > 0; i++) {
        if (ls_checkpoints_below(folder, step, &step, NULL) != LS_OK || step < 0) return;
        char *name = ls_format("step-%lld", (long long)step);
        if (i >= keep && step != best) remove_in(folder, name);
        free(name);
    }
}

/* The links are for people: a checkpoint is complete without them, and the program reads none. */
static void link_to(const char *folder, const char *link_name, const char *name) {
    char *link = join(folder, link_name), *fresh = ls_format("%s/.%s", folder, link_name);
    unlink(fresh);
    if (symlink(name, fresh) != 0 || rename(fresh, link) != 0) {
        ls_log("%s: can't be linked to %s, which is complete: %s", link, name, strerror(errno));
        unlink(fresh);
        unlink(link); /* no link is better than a wrong one */
    }
    free(link);
    free(fresh);
}

/* best 0: none is retained, so an earlier link is removed with its checkpoint. */
static void link_best(const char *folder, int64_t best) {
    char *name = ls_format("step-%lld", (long long)best), *link = join(folder, "best"), to[8];
    if (best)
        link_to(folder, "best", name);
    else if (readlink(link, to, sizeof to) > 0 && !ls_file_is_dir(link))
        unlink(link);
    free(name);
    free(link);
}

void ls_checkpoints_tidy(const char *folder, int64_t newest, int64_t keep, int64_t best) {
    char *name = ls_format("step-%lld", (long long)newest);
    link_to(folder, "latest", name);
    free(name);
    remove_partial(folder);
    if (best) link_best(folder, best);
    remove_old(folder, newest, keep, best);
    if (!best) link_best(folder, 0);
}
