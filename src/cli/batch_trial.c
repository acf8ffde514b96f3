/* batch_trial.c - see batch_trial.h. */
#include "cli/batch_trial.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/json.h"
#include "base/log.h"
#include "base/name.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/tune_metric.h"
#include "config/relations.h"
#include "config/writer.h"
#include "report/history.h"
#include "storage/belongs.h"
#include "storage/checkpoint.h"
#include "storage/lock.h"
#include "train/layout.h"

static const char PROGRAM[] = "/proc/self/exe";
static const double LIMIT_S = 1e8;
enum { MOST_CONFIG = 4 << 20, LOOK_US = 20000 };
static const int64_t QUIET_WAIT_NS = (int64_t)2 * 1000 * 1000 * 1000;
static const int64_t MOST_WAIT_NS = (int64_t)120 * 1000 * 1000 * 1000;

/* ---- files ---- */

ls_status cli_trial_open(const cli_trial *t, const ls_config *c, ls_error *e) {
    char *path = ls_format("%s.yaml", t->dir), *note = NULL;
    ls_buf text = {0};
    ls_config was;
    ls_status s = LS_OK;
    ls_config_write(c, &text);
    if (!ls_file_exists(path)) {
        s = ls_file_replace(path, text.data, text.len, e);
    } else {
        s = ls_config_read(path, &was, e);
        const char *key = s == LS_OK ? ls_config_find_fixed(&was, c) : NULL;
        if (key)
            s = ls_fail(e, LS_EINVAL,
                        "%s: is of an earlier command with another %s; choose another directory "
                        "with -o, or remove it",
                        path, key);
    }
    free(note);
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
ls_status cli_trial_begin_with(const cli_trial *t, const char *checkpoint, ls_error *e) {
    const char *slash = strrchr(checkpoint, '/');
    char *config = ls_format("%s/config.yaml", t->dir), *own = ls_format("%s.yaml", t->dir);
    char *place = ls_format("%s/checkpoints/%s", t->dir, slash ? slash + 1 : checkpoint);
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

/* ---- workers ---- */

static bool can_have(const ls_config *c, int n) {
    ls_layout l;
    if (n > ls_config_most_workers(c)) return false;
    if (c->parallel.mesh == LS_MESH_AUTO) return true;
    if (ls_layout_make(c, n, NULL, &l, NULL) != LS_OK) return false;
    ls_layout_free(&l);
    return true;
}

int cli_trial_workers(const ls_config *c, int share, int most) {
    for (int n = share; n > 0; n--)
        if (can_have(c, n)) return n;
    for (int n = share + 1; n <= most; n++)
        if (can_have(c, n)) return n;
    return share;
}

/* ---- processes ---- */

static ls_status fail_child(const ls_buf *err, const char *what, int code, ls_error *e) {
    const char *end = err->data ? err->data + err->len : "", *begin = end;
    while (err->data && begin > err->data && (begin == end || begin[-1] != '\n')) begin--;
    int n = (int)strcspn(begin, "\n");
    return ls_fail(e, LS_EINVAL, "%s failed with exit code %d: %.*s", what, code, n < 300 ? n : 300,
                   begin);
}

/* codes: besides 0, this exit code is good. */
static ls_status run_child(char *const *argv, const char *what, int good, ls_buf *out,
                           ls_error *e) {
    ls_buf err = {0};
    int code = 0;
    ls_status s = cli_child_run(argv, LIMIT_S, out, &err, &code, e);
    if (s == LS_EABORT)
        ls_fail(e, LS_EABORT, "interrupted; the same command continues");
    else if (s == LS_OK && code != 0 && code != good)
        s = fail_child(&err, what, code, e);
    ls_buf_free(&err);
    return s;
}

/* A training of a command that was killed ends with a checkpoint, after the step in flight. */
static ls_status wait_for_earlier(const cli_trial *t, ls_error *e) {
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

/* The newest checkpoint's step; 0: there is none. */
static int64_t trial_steps(const cli_trial *t) {
    char *path = NULL;
    int64_t step = 0;
    if (ls_checkpoint_newest(t->dir, &path, &step, NULL) != LS_OK) step = 0;
    free(path);
    return step;
}

bool cli_trial_is_trained(const cli_trial *t, int64_t until) {
    return trial_steps(t) >= until && !ls_history_lacks_evaluation(t->dir, until);
}

/* The words of a command line, and the texts that they are made of. */
typedef struct command {
    char *config, *step, *workers;
    const char *words[12 + CLI_TRIAL_OPTIONS];
} command;

static void command_make(command *c, const char *program, const cli_trial *t, int64_t until) {
    int n = 0;
    *c = (command){.config = ls_format("%s.yaml", t->dir),
                   .step = ls_format("%lld", (long long)until),
                   .workers = ls_format("%lld", (long long)t->workers)};
    const char *const first[] = {program, "train",    c->config, "-o",
                                 t->dir,  "--resume", "--until", c->step};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) c->words[n++] = first[i];
    for (int i = 0; i < t->nmore; i++) c->words[n++] = t->more[i];
    if (!t->workers) return;
    c->words[n++] = "-n";
    c->words[n++] = c->workers;
}

static void command_free(command *c) {
    free(c->config);
    free(c->step);
    free(c->workers);
}

ls_status cli_trial_train(const cli_trial *t, int64_t until, ls_error *e) {
    char *what = ls_format("training %s", t->dir);
    command c;
    ls_buf out = {0};
    command_make(&c, PROGRAM, t, until);
    ls_status s = wait_for_earlier(t, e);
    if (s == LS_OK && !cli_trial_is_trained(t, until))
        s = run_child((char *const *)(uintptr_t)c.words, what, CLI_UNFINISHED, &out, e);
    if (s == LS_OK && trial_steps(t) < until)
        s = ls_fail(e, LS_EINVAL, "%s: ended before step %lld", t->dir, (long long)until);
    ls_buf_free(&out);
    command_free(&c);
    free(what);
    return s;
}

ls_status cli_trial_start(const cli_trial *t, int64_t until, cli_pool *p, int tag, ls_error *e) {
    char *output = ls_format("%s.log", t->dir);
    command c;
    command_make(&c, ls_name(), t, until);
    ls_status s = wait_for_earlier(t, e);
    if (s == LS_OK) s = cli_pool_start(p, (char *const *)(uintptr_t)c.words, output, tag, e);
    command_free(&c);
    free(output);
    return s;
}

/* last: the last line of its output. */
static ls_status fail_ended(const cli_trial *t, int code, const char *last, ls_error *e) {
    if (code == 0 || code == CLI_UNFINISHED)
        return ls_fail(e, LS_EINVAL, "%s: was stopped; the same command continues", t->dir);
    if (code > 128)
        return ls_fail(e, LS_EINVAL,
                       "training %s was killed by signal %d; the same command continues", t->dir,
                       code - 128);
    return ls_fail(e, LS_EINVAL, "training %s failed with exit code %d: %.300s (%s.log)", t->dir,
                   code, last, t->dir);
}

ls_status cli_trial_check(const cli_trial *t, int64_t until, int code, bool *diverged_p,
                          ls_error *e) {
    bool good = code == 0 || code == CLI_UNFINISHED;
    if (good && trial_steps(t) >= until) return LS_OK;
    char *output = ls_format("%s.log", t->dir), *last = cli_tune_last_line(output);
    *diverged_p = !good && strstr(last, CLI_TRIAL_DIVERGED);
    ls_status s = *diverged_p ? LS_OK : fail_ended(t, code, last, e);
    free(output);
    free(last);
    return s;
}

ls_status cli_trial_evaluate(const cli_trial *t, int64_t step, double *loss_p, ls_error *e) {
    char *checkpoint = ls_checkpoint_path(t->dir, step);
    char *argv[] = {(char *)(uintptr_t)PROGRAM, (char *)(uintptr_t) "eval", checkpoint,
                    (char *)(uintptr_t) "--json", NULL};
    ls_buf out = {0};
    ls_json *j = NULL;
    ls_status s = LS_OK;
    if (!ls_file_exists(checkpoint))
        s = ls_fail(e, LS_EINVAL,
                    "%s: is gone: another command has trained further; remove %s, and start again",
                    checkpoint, t->dir);
    if (s == LS_OK) s = run_child(argv, "lockstep eval", 0, &out, e);
    if (s == LS_OK) s = ls_json_parse(out.data ? out.data : "", out.len, "its output", &j, e);
    if (s == LS_OK && !ls_json_number(ls_json_get(ls_json_get(j, "model"), "loss"), loss_p))
        s = ls_fail(e, LS_EINVAL, "%s: lockstep eval prints no loss", t->dir);
    ls_json_free(j);
    ls_buf_free(&out);
    free(checkpoint);
    return s;
}
