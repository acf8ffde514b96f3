/* checkpoint_find.c - finds checkpoints of a run: see checkpoint.h. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "storage/belongs.h"
#include "storage/checkpoint.h"
#include "storage/checkpoints.h"
#include "storage/manifest.h"
#include "storage/unsaved.h"

char *ls_checkpoint_path(const char *run, int64_t step) {
    return ls_format("%s/checkpoints/step-%lld", run, (long long)step);
}

ls_status ls_checkpoint_newest(const char *run, char **path_p, int64_t *step_p, ls_error *e) {
    int64_t step = -1;
    ls_status s = ls_checkpoint_below(run, INT64_MAX, &step, e);
    if (s == LS_OK && step < 0) s = ls_unsaved_fail(run, e);
    LS_TRY(s);
    *path_p = ls_checkpoint_path(run, step);
    if (step_p) *step_p = step;
    return LS_OK;
}

static ls_status check_good(const char *run, const char *path, ls_error *e) {
    ls_checkpoint_info i;
    LS_TRY(ls_checkpoint_read_back(path, &i, e));
    return ls_belongs_check(run, path, e);
}

static void log_skipped(const ls_error *why, int n) {
    for (int i = 0; i < n; i++) ls_log("skipping a checkpoint: %s", why[i].msg);
}

ls_status ls_checkpoint_newest_good(const char *run, char **path_p, int64_t *step_p, ls_error *e) {
    char *path = NULL;
    int64_t step = INT64_MAX;
    ls_error *why = NULL; /* [n] those that are skipped */
    int n = 0;
    ls_status s;
    while ((s = ls_checkpoint_below(run, step, &step, e)) == LS_OK && step >= 0) {
        path = ls_checkpoint_path(run, step);
        why = ls_realloc(why, (size_t)(n + 1) * sizeof *why);
        if (check_good(run, path, &why[n]) == LS_OK) break;
        n++;
        free(path);
        path = NULL;
    }
    if (path) log_skipped(why, n);
    if (s == LS_OK && !path && n)
        s = ls_fail(e, LS_EINVAL, "%s: has no good checkpoint; %s%s", run,
                    n > 1 ? "the newest: " : "", why[0].msg);
    free(why);
    LS_TRY(s);
    *path_p = path;
    *step_p = path ? step : 0;
    return LS_OK;
}

/* RUN/checkpoints/latest of a run without checkpoints -> RUN: free() it. Else NULL. */
static char *run_without(const char *path) {
    static const char folder[] = "/checkpoints/";
    char *run = ls_strdup(path), *at = strstr(run, folder);
    int64_t step = 0;
    for (char *next = at; next && (next = strstr(next + 1, folder));) at = next;
    if (at) *at = 0;
    if (at && ls_unsaved_is_run(run) && ls_checkpoint_below(run, INT64_MAX, &step, NULL) == LS_OK &&
        step < 0)
        return run;
    free(run);
    return NULL;
}

static ls_status fail_missing(const char *path, ls_error *e) {
    char *run = run_without(path);
    ls_status s = run ? ls_unsaved_fail(run, e) : ls_fail(e, LS_EIO, "%s: does not exist", path);
    free(run);
    return s;
}

ls_status ls_checkpoint_resolve(const char *path, char **path_p, ls_error *e) {
    LS_TRY(ls_file_check_allowed(path, e));
    bool is_checkpoint = ls_file_exists_in(path, LS_MANIFEST_FILE), exists = ls_file_exists(path);
    if (ls_unsaved_is_run(path)) {
        LS_TRY(ls_checkpoint_newest(path, path_p, NULL, e));
        ls_checkpoint_info i;
        ls_status s = ls_belongs_check(path, *path_p, e);
        if (s == LS_OK || ls_checkpoint_read_back(*path_p, &i, NULL) != LS_OK)
            return LS_OK; /* readers say what is damaged */
        free(*path_p);
        *path_p = NULL;
        return s;
    }
    if (!exists) return fail_missing(path, e);
    if (!is_checkpoint && ls_file_exists_in(path, "adapter_config.json"))
        return ls_fail(e, LS_EIO,
                       "%s: is an adapter of peft's, without the model: `lockstep serve MODEL "
                       "--adapter NAME=%s` uses it, and model.adapter trains it further",
                       path, path);
    if (!is_checkpoint)
        return ls_fail(e, LS_EIO,
                       "%s: is neither a run nor a complete checkpoint (it has no " LS_MANIFEST_FILE
                       ")",
                       path);
    *path_p = ls_strdup(path);
    return LS_OK;
}

bool ls_checkpoint_val(const char *run, int64_t step, int64_t nsamples, double *loss_p) {
    char *path = ls_checkpoint_path(run, step);
    ls_manifest m = {0};
    bool good = ls_manifest_read(path, &m, NULL) == LS_OK && m.step == step &&
                ls_manifest_val_loss(&m, nsamples, loss_p);
    ls_manifest_free(&m);
    free(path);
    return good;
}

int64_t ls_checkpoint_best(const char *run, int64_t newest, int64_t nsamples, double *loss_p) {
    int64_t best = 0, step = newest + 1;
    double loss = 0, lowest = 0;
    while (ls_checkpoint_below(run, step, &step, NULL) == LS_OK && step > 0) {
        if (!ls_checkpoint_val(run, step, nsamples, &loss) || (best && loss > lowest)) continue;
        best = step;
        lowest = loss;
    }
    if (best) *loss_p = lowest;
    return best;
}

ls_status ls_checkpoint_below(const char *run, int64_t below, int64_t *step_p, ls_error *e) {
    char *folder = ls_format("%s/checkpoints", run);
    ls_status s = ls_checkpoints_below(folder, below, step_p, e);
    free(folder);
    return s;
}

char *ls_checkpoint_run(const char *path) {
    static const char folder[] = "/checkpoints";
    enum { N = sizeof folder - 1 };
    char *real = realpath(path, NULL), *slash = real ? strrchr(real, '/') : NULL;
    bool is_inside = slash && slash >= real + N && memcmp(slash - N, folder, N) == 0;
    if (is_inside) slash[-N] = 0;
    char *run = ls_strdup(is_inside ? real : path);
    free(real);
    return run;
}
