/* folder.c - see folder.h. */
#include "train/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "train/checkpoint.h"
#include "train/metrics.h"

/* A file server gives up the locks of a lost host after a minute and a half. */
enum { LOCK_LOOK_US = 50000, LOCK_LOOKS = 120 * 1000000 / LOCK_LOOK_US, FEW_LOOKS = 100 };

static char *in_run(const ls_run *r, const char *name) { return ls_format("%s/%s", r->dir, name); }

static ls_status write_config(const ls_run *r, ls_error *e) {
    char *path = in_run(r, "config.yaml");
    ls_status s = ls_file_replace(path, r->config_text.data, r->config_text.len, e);
    free(path);
    return s;
}

/* Of the view before, on another host, that may still be ending, or is cut off. */
static void wait_for_lock(const ls_folder *f, int looks) {
    for (int i = 0; i < looks && flock(f->lock, LOCK_EX | LOCK_NB) != 0; i++) {
        if (i == LOCK_LOOKS / 60)
            ls_log("%s: waiting for a worker of the view before to let go of it", f->run->dir);
        usleep(LOCK_LOOK_US);
    }
}

/* One program a run at a time; the lock goes with the process. */
static ls_status take_lock(ls_folder *f, int looks, ls_error *e) {
    const char *dir = f->run->dir;
    f->lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->lock < 0) return ls_fail(e, LS_EIO, "%s: can't be opened: %s", dir, strerror(errno));
    wait_for_lock(f, looks);
    if (flock(f->lock, LOCK_EX | LOCK_NB) == 0) return LS_OK;
    close(f->lock);
    f->lock = -1;
    return ls_fail(e, LS_EINVAL, "%s: is in use by another lockstep", dir);
}

/* Of the first view's folder nobody else is to be waited for. */
static int looks(const ls_run *r) { return r->survival.view.id.number > 1 ? LOCK_LOOKS : 0; }

/* ---- a new one ---- */

/* Config, tokenizer and tokens: those that are missing. */
static ls_status write_files(const ls_run *r, const ls_corpus *c, ls_error *e) {
    char *config = in_run(r, "config.yaml");
    ls_status s = ls_file_exists(config) ? LS_OK : write_config(r, e);
    free(config);
    return s == LS_OK ? ls_corpus_save(c, r->dir, e) : s;
}

static ls_status fill(const ls_run *r, const ls_corpus *c, ls_error *e) {
    char *checkpoints = in_run(r, "checkpoints");
    ls_status s = ls_file_make_dirs(checkpoints, e);
    free(checkpoints);
    if (s == LS_OK) s = write_files(r, c, e);
    if (s != LS_OK) ls_file_remove_tree(r->dir, NULL);
    return s;
}

ls_status ls_folder_create(ls_folder *f_p, const ls_run *r, ls_error *e) {
    *f_p = (ls_folder){.run = r, .lock = -1};
    if (ls_file_exists(r->dir))
        return ls_fail(e, LS_EINVAL,
                       "%s: exists already; go on from it with --resume, or choose another folder "
                       "with -o",
                       r->dir);
    if (r->store) ls_store_set(r->store, LS_STORE_FOLDER_BEGUN, 1);
    ls_corpus c;
    LS_TRY(ls_corpus_make(&c, &r->config, e));
    ls_status s = fill(r, &c, e);
    ls_corpus_free(&c);
    if (s != LS_OK) return s;
    f_p->fresh = true;
    return take_lock(f_p, looks(r), e);
}

/* ---- an old one ---- */

static ls_status check_config(const ls_run *r, ls_error *e) {
    char *path = in_run(r, "config.yaml"), *note = NULL;
    ls_config was;
    ls_status s = ls_config_read(path, &was, e);
    if (s == LS_OK) s = ls_config_compatible(&was, &r->config, &note, e);
    if (note) ls_log("%s", note);
    free(note);
    free(path);
    return s;
}

/* From the text. */
static ls_status write_missing(const ls_run *r, ls_error *e) {
    ls_corpus c;
    LS_TRY(ls_corpus_make(&c, &r->config, e));
    ls_status s = ls_file_make_dirs(r->dir, e);
    if (s == LS_OK) s = write_files(r, &c, e);
    ls_corpus_free(&c);
    return s;
}

/* Killed before its first checkpoint, maybe before all of its files were there. */
static ls_status begin_again(const ls_run *r, ls_error *e) {
    ls_log("%s: has no checkpoint yet; beginning again", r->dir);
    return ls_corpus_is_saved(r->dir) ? LS_OK : write_missing(r, e);
}

ls_status ls_folder_reopen(ls_folder *f_p, const ls_run *r, ls_error *e) {
    *f_p = (ls_folder){.run = r, .lock = -1};
    if (!ls_file_exists(r->dir)) {
        ls_log("%s: does not exist yet; this run begins it", r->dir);
        return ls_folder_create(f_p, r, e);
    }
    LS_TRY(check_config(r, e));
    LS_TRY(take_lock(f_p, looks(r), e));
    char *path = NULL;
    LS_TRY(ls_checkpoint_newest_good(r->dir, &path, &f_p->step, e));
    if (!path) return begin_again(r, e);
    ls_log("going on from %s", path);
    free(path);
    return LS_OK;
}

/* ---- one that this run has made ---- */

/* Where nothing is kept in memory: the newest checkpoint, or the run's beginning. */
static ls_status find_start(ls_folder *f, ls_error *e) {
    char *path = NULL;
    ls_status s = ls_checkpoint_newest_good(f->run->dir, &path, &f->step, e);
    free(path);
    if (s == LS_OK || ls_store_get(f->run->store, LS_STORE_FOLDER_STEP) > 0) return s;
    f->step = 0;
    return LS_OK;
}

static void tell_made_again(const ls_run *r) {
    ls_log("%s: was taken away; it is made again, without the checkpoints and metrics so far",
           r->dir);
}

/* Half made, it is made anew; taken away since, it is made again. */
ls_status ls_folder_enter(ls_folder *f_p, const ls_run *r, ls_error *e) {
    if (!ls_store_get(r->store, LS_STORE_FOLDER_MADE)) {
        LS_TRY(ls_file_remove_tree(r->dir, e));
        return ls_folder_create(f_p, r, e);
    }
    *f_p = (ls_folder){.run = r, .lock = -1};
    f_p->step = ls_store_steps(r->store);
    if (!ls_corpus_is_saved(r->dir)) {
        LS_TRY(write_missing(r, e));
        tell_made_again(r);
    }
    LS_TRY(take_lock(f_p, looks(r), e));
    return f_p->step < 0 ? find_start(f_p, e) : LS_OK;
}

ls_status ls_folder_hold(ls_folder *f_p, const ls_run *r, ls_error *e) {
    *f_p = (ls_folder){.run = r, .lock = -1};
    return take_lock(f_p, FEW_LOOKS, e);
}

static bool is_held(const ls_folder *f) {
    struct stat held, there;
    return fstat(f->lock, &held) == 0 && stat(f->run->dir, &there) == 0 &&
           held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

static ls_status make_again(ls_folder *f, ls_error *e) {
    ls_folder fresh = {.run = f->run, .lock = -1};
    char *config = in_run(f->run, "config.yaml");
    bool of_another = ls_file_exists(config);
    free(config);
    if (of_another)
        return ls_fail(e, LS_EINVAL, "%s: is the folder of another run now", f->run->dir);
    LS_TRY(ls_file_make_dirs(f->run->dir, e));
    LS_TRY(take_lock(&fresh, looks(f->run), e));
    close(f->lock);
    f->lock = fresh.lock;
    tell_made_again(f->run);
    return LS_OK;
}

ls_status ls_folder_mend(ls_folder *f, const ls_corpus *c, ls_error *e) {
    if (!is_held(f)) LS_TRY(make_again(f, e));
    return write_files(f->run, c, e);
}

/* ---- all ---- */

/* Lines of a view before this one stay, also where some steps have to be done again. */
ls_status ls_folder_keep(ls_folder *f, ls_logged *logged_p, ls_error *e) {
    bool fresh = f->fresh, follows = f->run->store && f->run->survival.view.id.number > 1;
    f->fresh = false;
    *logged_p = (ls_logged){0};
    if (fresh) return LS_OK;
    LS_TRY(write_config(f->run, e));
    return ls_metrics_cut(f->run->dir, follows ? INT64_MAX : f->step, logged_p, e);
}

void ls_folder_close(ls_folder *f) {
    if (f->fresh) ls_file_remove_tree(f->run->dir, NULL);
    if (f->lock >= 0) close(f->lock);
    *f = (ls_folder){.lock = -1};
}

char *ls_folder_checkpoint(const ls_run *r, int64_t step) {
    return ls_format("%s/checkpoints/step-%lld", r->dir, (long long)step);
}
