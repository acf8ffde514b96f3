/* trial.c - see trial.h. */
#include "search/trial.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/log.h"
#include "config/differences.h"
#include "config/write_config.h"
#include "report/history.h"
#include "report/run_status.h"
#include "storage/belongs.h"
#include "storage/checkpoint.h"
#include "storage/lock.h"

enum { MOST_CONFIG = 4 << 20, LOOK_US = 20000 };
static const int64_t QUIET_WAIT_NS = (int64_t)2 * 1000 * 1000 * 1000;
static const int64_t MOST_WAIT_NS = (int64_t)120 * 1000 * 1000 * 1000;

/* ---- files ---- */

ls_status ls_trial_open(const ls_trial *t, ls_error *e) {
    char *path = ls_format("%s.yaml", t->dir);
    ls_buf text = {0};
    ls_config was;
    ls_status s = LS_OK;
    ls_config_write(t->config, &text);
    if (!ls_file_exists(path)) {
        s = ls_file_replace(path, text.data, text.len, e);
    } else {
        s = ls_config_read(path, &was, e);
        const char *key = s == LS_OK ? ls_config_find_fixed(&was, t->config) : NULL;
        if (key)
            s = ls_fail(e, LS_EINVAL,
                        "%s: is of an earlier command with another %s; choose another directory "
                        "with -o, or remove it",
                        path, key);
    }
    free(path);
    ls_buf_free(&text);
    return s;
}

/* Files of checkpoints are never changed, so they can be shared; else they are copied. */
static ls_status copy_file(const char *from, const char *to, ls_error *e) {
    ls_mapped m;
    if (link(from, to) == 0 || errno == EEXIST) return LS_OK;
    LS_TRY(ls_file_map(from, &m, e));
    ls_status s = ls_file_replace(to, m.data, m.nbytes, e);
    if (s == LS_OK) s = ls_guard_check(e);
    ls_file_unmap(&m);
    return s;
}

static ls_status copy_files(const char *from, const char *to, ls_error *e) {
    ls_status s = ls_file_make_dirs(to, e);
    DIR *d = s == LS_OK ? opendir(from) : NULL;
    if (s == LS_OK && !d) s = ls_fail(e, LS_EIO, "%s: can't be opened: %s", from, strerror(errno));
    for (struct dirent *entry; s == LS_OK && (entry = readdir(d));) {
        char *a = ls_format("%s/%s", from, entry->d_name);
        char *b = ls_format("%s/%s", to, entry->d_name);
        if (entry->d_name[0] != '.') s = copy_file(a, b, e);
        free(a);
        free(b);
    }
    if (d) closedir(d);
    return s;
}

/* The checkpoint's config is another one than the branch's: the branch has a copy (belongs.h). */
static ls_status copy_config(const char *checkpoint, const char *dir, ls_error *e) {
    char *from = ls_format("%s/config.yaml", checkpoint), *to = ls_format("%s/" LS_BEGAN_FILE, dir);
    ls_status s = copy_file(from, to, e);
    free(from);
    free(to);
    return s;
}

/* A run directory with a config and a checkpoint is that of a run, which can be resumed. */
ls_status ls_trial_begin_with(const ls_trial *t, const char *checkpoint, ls_error *e) {
    char *config = ls_format("%s/config.yaml", t->dir), *own = ls_format("%s.yaml", t->dir);
    char *place = ls_format("%s/checkpoints/%s", t->dir, ls_file_name(checkpoint));
    char *hidden = ls_format("%s/checkpoints/.copy", t->dir);
    ls_buf text = {0};
    ls_status s = LS_OK;
    if (!ls_file_exists(config)) {
        s = ls_file_remove_tree(hidden, e);
        if (s == LS_OK && !ls_file_exists(place)) s = copy_files(checkpoint, hidden, e);
        if (s == LS_OK && !ls_file_exists(place)) s = ls_file_rename(hidden, place, e);
        if (s == LS_OK) s = copy_config(place, t->dir, e);
        if (s == LS_OK) s = ls_file_read(own, MOST_CONFIG, &text, e);
        if (s == LS_OK) s = ls_file_replace(config, text.data, text.len, e);
    }
    ls_buf_free(&text);
    free(hidden);
    free(place);
    free(own);
    free(config);
    return s;
}

/* ---- how far it is ---- */

ls_status ls_trial_wait_for_earlier(const ls_trial *t, ls_error *e) {
    int64_t began = ls_clock_ns();
    bool logged = false;
    while (ls_lock_look(t->dir, e) != LS_OK) {
        int64_t waited = ls_clock_ns() - began;
        if (waited > MOST_WAIT_NS) return e->code;
        if (waited > QUIET_WAIT_NS && !logged) ls_log("%s; waiting for it to end", e->msg);
        logged = waited > QUIET_WAIT_NS;
        usleep(LOOK_US);
    }
    return LS_OK;
}

int64_t ls_trial_step(const ls_trial *t) {
    char *path = NULL;
    int64_t step = 0;
    if (ls_checkpoint_newest(t->dir, &path, &step, NULL) != LS_OK) step = 0;
    free(path);
    return step;
}

int64_t ls_trial_now(const ls_trial *t) {
    ls_run_status s;
    ls_run_status_read_end(t->dir, NULL, NULL, "", &s);
    int64_t step = s.step;
    ls_run_status_free(&s);
    return step;
}

bool ls_trial_is_trained(const ls_trial *t) {
    return ls_trial_step(t) >= t->until && !ls_history_lacks_evaluation(t->dir, t->until);
}

/* ---- its metric ---- */

typedef struct reading {
    const char *metric;
    int64_t step;
    double value;
    bool found;
    ls_buf others; /* names of the step's numbers */
} reading;

static void list_numbers(reading *r, const ls_json *line) {
    const char *key = NULL;
    const ls_json *value = NULL;
    double x = 0;
    for (void *it = NULL; (it = ls_json_next(line, it, &key, &value));)
        if (strncmp(key, "val_", 4) == 0 && ls_json_number(value, &x))
            ls_buf_printf(&r->others, "%s%s", r->others.len ? ", " : "", key);
}

static void add_line(void *arg, int64_t step, const ls_json *line) {
    reading *r = arg;
    if (step != r->step) return;
    const ls_json *value = ls_json_get(line, r->metric);
    list_numbers(r, line);
    if (ls_json_is_null(value)) r->value = NAN;
    if (ls_json_is_null(value) || ls_json_number(value, &r->value)) r->found = true;
}

ls_status ls_trial_metric(const ls_trial *t, const char *metric, double *value_p, ls_error *e) {
    reading r = {.metric = metric, .step = t->until};
    ls_status s = ls_history_scan(t->dir, add_line, &r, e);
    if (s == LS_OK && !r.found)
        s = ls_fail(e, LS_EINVAL,
                    "metric %s: is in no line of step %lld of %s/metrics.jsonl, which has %s",
                    metric, (long long)t->until, t->dir,
                    r.others.len ? r.others.data : "no evaluation there");
    if (s == LS_OK) *value_p = r.value;
    ls_buf_free(&r.others);
    return s;
}
