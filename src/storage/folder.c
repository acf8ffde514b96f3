/* folder.c - see folder.h. */
#include "storage/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/transcript.h"
#include "config/differences.h"
#include "config/needs.h"
#include "config/relations.h"
#include "dataset/data_files.h"
#include "dataset/published_record.h"
#include "dataset/reference.h"
#include "source/ids.h"
#include "storage/best.h"
#include "storage/checkpoint.h"
#include "storage/checkpoints.h"
#include "storage/frozen_file.h"
#include "storage/old_run.h"
#include "storage/room.h"

/* A file server gives up the locks of a lost host after a minute and a half. */
static const double LOST_HOST_S = 120, SOON_S = 5;
enum { MOST_TRIES = 1000 };

/* Files of a run that a start makes: bits of notes->made. */
enum {
    CONFIG,
    TOKENIZER,
    TOKENS,
    RECORD,
    REFERENCE,
    SAMPLES,
    IDS,
    FROZEN,
    ORIGIN,
    METRICS,
    LOG,
    OLD_LOG,
    NFILES
};
static const char *const names[] = {
    [CONFIG] = "config.yaml",    [TOKENIZER] = "tokenizer.json",  [TOKENS] = "tokens.bin",
    [RECORD] = LS_CORPUS_RECORD, [REFERENCE] = LS_REFERENCE_FILE, [SAMPLES] = LS_DATA_RECORD,
    [IDS] = LS_IDS_FILE,         [FROZEN] = LS_FROZEN_FILE,       [ORIGIN] = LS_PUBLISHED_RECORD,
    [METRICS] = "metrics.jsonl", [LOG] = LS_FOLDER_LOG,           [OLD_LOG] = LS_FOLDER_LOG ".1"};
static const char CHECKPOINTS[] = "checkpoints";

/* ---- from view to view ---- */

ls_folder_phase ls_folder_phase_of(const ls_folder_state *s) {
    return (ls_folder_phase)atomic_load(&s->phase);
}

static void raise_phase(ls_folder_state *s, int phase) {
    int was = atomic_load(&s->phase);
    while (was < phase && !atomic_compare_exchange_weak(&s->phase, &was, phase)) {
    }
}

void ls_folder_set_begun(ls_folder_state *s) { raise_phase(s, LS_FOLDER_BEGUN); }
void ls_folder_set_made(ls_folder_state *s) { raise_phase(s, LS_FOLDER_MADE); }

static char *in_run(const ls_folder_run *r, const char *name) {
    return ls_format("%s/%s", r->dir, name);
}

static bool has(const ls_folder_run *r, const char *name) {
    return ls_file_exists_in(r->dir, name);
}

/* ---- what is on disk ---- */

typedef struct found {
    enum { IS_MISSING, IS_EMPTY, IS_RUN, IS_OTHER } what;
    bool has_lock, has_checkpoints;
    char name[NAME_MAX + 1]; /* of some file in it; "": none */
} found;

/* A start that was killed leaves the lock, and maybe an incomplete file. */
static bool is_ignored(const char *name) {
    static const char *const nothing[] = {".", "..", "lock"};
    if (strncmp(name, LS_FILE_FRESH, strlen(LS_FILE_FRESH)) == 0) return true;
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        if (strcmp(name, nothing[i]) == 0) return true;
    return false;
}

static ls_status inspect(const ls_folder_run *r, found *f_p, ls_error *e) {
    found f = {.what = IS_MISSING};
    bool has_config = false;
    DIR *d = opendir(r->dir);
    if (!d && errno != ENOENT)
        return ls_fail(e, LS_EIO, "%s: can't be opened: %s", r->dir, strerror(errno));
    if (d) f.what = IS_EMPTY;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        f.has_lock = f.has_lock || strcmp(entry->d_name, "lock") == 0;
        has_config = has_config || strcmp(entry->d_name, names[CONFIG]) == 0;
        f.has_checkpoints = f.has_checkpoints || strcmp(entry->d_name, CHECKPOINTS) == 0;
        if (is_ignored(entry->d_name)) continue;
        f.what = IS_OTHER;
        snprintf(f.name, sizeof f.name, "%s", entry->d_name);
    }
    if (d) closedir(d);
    if (has_config && (f.has_lock || f.has_checkpoints)) f.what = IS_RUN;
    *f_p = f;
    return LS_OK;
}

static ls_status check_config(const ls_folder_run *r, ls_error *e) {
    char *path = in_run(r, names[CONFIG]), *unused = NULL;
    ls_config was;
    ls_status s = ls_config_read_saved(path, &was, e);
    if (s == LS_OK) s = ls_config_compatible(&was, r->config, &unused, e);
    free(unused);
    free(path);
    return s;
}

/* Says what it means that keys have other values than in the checkpoint, or, without one, than when
 * the run began. */
static void log_changes(const ls_folder_run *r, const char *checkpoint) {
    char *path = ls_format("%s/%s", checkpoint ? checkpoint : r->dir, names[CONFIG]), *note = NULL;
    ls_config *was = LS_NEW(ls_config);
    if (ls_config_read(path, was, NULL) == LS_OK &&
        ls_config_compatible(was, r->config, &note, NULL) == LS_OK && note)
        ls_log("%s", note);
    free(note);
    free(was);
    free(path);
}

/* As inspect(), but a directory that an earlier view began and locked still belongs to the run if
 * other programs have put files there since. */
static ls_status inspect_to_follow(const ls_folder_run *r, bool follows, found *f_p, ls_error *e) {
    LS_TRY(inspect(r, f_p, e));
    if (follows && f_p->what == IS_OTHER && f_p->has_lock) f_p->what = IS_EMPTY;
    return LS_OK;
}

/* Does this run take the place of the one that is there? */
static bool replaces(const ls_folder_run *r, bool resumes, const found *f) {
    if (f->what != IS_RUN) return false;
    if (!resumes) return r->overwrites || ls_old_run_is_unsaved(r->dir);
    return check_config(r, NULL) != LS_OK && ls_old_run_is_unsaved(r->dir);
}

/* May this run use the directory? */
static ls_status check_found(const ls_folder_run *r, bool resumes, const found *f, ls_error *e) {
    if (f->what == IS_OTHER && f->has_lock && f->has_checkpoints)
        return ls_fail(e, LS_EINVAL,
                       "%s: %s is missing; each checkpoint of the run has a copy of it, e.g. "
                       "%s/latest/%s",
                       r->dir, names[CONFIG], CHECKPOINTS, names[CONFIG]);
    if (f->what == IS_OTHER)
        return ls_fail(e, LS_EINVAL,
                       "%s: is neither empty nor a run directory (it contains '%.100s'); choose "
                       "another one with -o",
                       r->dir, f->name);
    if (replaces(r, resumes, f)) return LS_OK;
    if (f->what == IS_RUN && !resumes)
        return ls_fail(e, LS_EINVAL,
                       "%s: exists already; continue it with --resume, choose another directory "
                       "with -o, or replace it with --overwrite",
                       r->dir);
    return f->what == IS_RUN ? check_config(r, e) : LS_OK;
}

/* The most that are on disk at a time, of those that are certain: the newest, one that is being
 * written, and the best, which has a checkpoint of its own where it is sought. By time a short run
 * has none, so these count only if they are asked for; loop.c leaves room for the last one. */
static int64_t most_checkpoints(const ls_config *c) {
    int64_t most = c->checkpoint.keep + 1, every = c->checkpoint.every;
    int64_t due = every > 0 ? (c->train.steps + every - 1) / every : 1;
    if (c->checkpoint.minutes > 0 && ls_config_is_written(c, "checkpoint.minutes")) due = most;
    if (ls_best_is_retained(c) && c->train.eval_every > 0) most++;
    if (ls_best_is_sought(c) && c->train.eval_every > 0) due++;
    return due < most ? due : most;
}

static int64_t checkpoints_there(const ls_folder_run *r) {
    char *folder = in_run(r, CHECKPOINTS);
    int64_t n = 0, step = INT64_MAX;
    while (ls_checkpoints_below(folder, step, &step, NULL) == LS_OK && step >= 0) n++;
    free(folder);
    return n;
}

/* checkpoints: how many more. */
static ls_status check_room(const ls_folder_run *r, int64_t checkpoints, double more, ls_error *e) {
    int64_t ntokens = ls_config_has_corpus(r->config) ? r->config->model.vocab : 0;
    ls_room_wanted w = {.checkpoint =
                            ls_room_checkpoint_nbytes(r->plan, ntokens, r->config_text->len),
                        .checkpoints = checkpoints,
                        .more = more,
                        .file = ls_room_file_nbytes(r->plan)};
    if (!ls_frozen_file_is_saved(r->dir, r->model)) /* the run's, and that of the checkpoints */
        w.frozen = 2 * (double)r->model->frozen_count * sizeof(float);
    return ls_room_check(r->dir, &w, e);
}

ls_status ls_folder_check_room(const ls_folder *f, int64_t checkpoints, ls_error *e) {
    return check_room(&f->run, checkpoints, 0, e);
}

/* Checkpoints that a run which has some already will still add. */
static int64_t checkpoints_to_come(const ls_folder_run *r) {
    int64_t n = most_checkpoints(r->config) - checkpoints_there(r);
    return n > 1 ? n : 1;
}

static ls_status check_writable(const char *path, ls_error *e) {
    struct stat st;
    bool is_dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (!is_dir || euidaccess(path, W_OK | X_OK) == 0)
        return LS_OK; /* other errors show when it is read */
    return ls_fail(e, LS_EIO, "%s: can't be written: %s", path, strerror(errno));
}

/* A complete run writes no further checkpoint; whether its last one is good is checked later. */
static ls_status check_disk(const ls_folder_run *r, ls_error *e) {
    char *checkpoints = in_run(r, CHECKPOINTS), *path = NULL;
    int64_t step = 0;
    ls_status s = check_writable(r->dir, e);
    if (s == LS_OK) s = check_writable(checkpoints, e);
    if (s == LS_OK && ls_checkpoint_newest(r->dir, &path, &step, NULL) != LS_OK) step = 0;
    if (s == LS_OK && step < r->config->train.steps)
        s = check_room(r, checkpoints_to_come(r), 0, e);
    free(path);
    free(checkpoints);
    return s;
}

ls_status ls_folder_check(const ls_folder_run *r, ls_error *e) {
    return ls_file_exists(r->dir) ? check_disk(r, e)
                                  : check_room(r, most_checkpoints(r->config), 0, e);
}

/* ---- directories ---- */

/* The topmost part of the path that does not exist; NULL: all of it exists. */
static char *missing_part(const char *dir) {
    char *p = ls_strdup(dir);
    for (char *s = p + (*p == '/'); *s || s > p; s++) {
        char c = *s;
        if (c != '/' && c != 0) continue;
        *s = 0;
        if (!ls_file_exists(p)) return p;
        *s = c;
        if (!c) break;
    }
    free(p);
    return NULL;
}

/* Removes the directories that this process made, if they are empty. */
static void remove_dirs(ls_folder *f) {
    char *p = ls_strdup(f->run.dir);
    size_t least = f->made_from ? strlen(f->made_from) : SIZE_MAX;
    while (strlen(p) >= least && rmdir(p) == 0) {
        char *slash = strrchr(p, '/');
        if (!slash) break;
        *slash = 0;
    }
    free(p);
    free(f->made_from);
    f->made_from = NULL;
}

/* ---- opening ---- */

static ls_folder *new_folder(const ls_folder_run *r, ls_error *e) {
    void *p = mmap(NULL, sizeof(ls_folder_notes), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        ls_fail(e, LS_ENOMEM, "no shared memory: %s", strerror(errno));
        return NULL;
    }
    ls_folder *f = LS_NEW(ls_folder);
    *f = (ls_folder){.run = *r, .lock = LS_LOCK_NONE, .notes = p};
    f->notes->step = -1;
    return f;
}

static void free_folder(ls_folder *f) {
    ls_lock_drop(&f->lock);
    munmap(f->notes, sizeof *f->notes);
    ls_buf_free(&f->published);
    free(f->made_from);
    free(f);
}

static void note_place(ls_folder *f) {
    struct stat st;
    if (stat(f->run.dir, &st) != 0) return;
    f->notes->device = st.st_dev;
    f->notes->inode = st.st_ino;
    if (f->run.state) atomic_store(&f->run.state->device, st.st_dev);
}

/* What a process that was killed last saw of its workers: the next one may write no such file. */
static void remove_states(const ls_folder_run *r) {
    char *path = in_run(r, "workers.json");
    unlink(path);
    free(path);
}

/* Checks again what is on disk, now that the lock is held. */
static ls_status inspect_again(ls_folder *f, bool follows, ls_error *e) {
    found now;
    LS_TRY(inspect_to_follow(&f->run, follows, &now, e));
    LS_TRY(check_found(&f->run, f->run.resumes || follows, &now, e));
    LS_TRY(check_disk(&f->run, e));
    ls_file_remove_left(f->run.dir);
    remove_states(&f->run);
    note_place(f);
    bool trained = follows && ls_folder_phase_of(f->run.state) == LS_FOLDER_MADE;
    f->notes->old = !follows && replaces(&f->run, f->run.resumes, &now);
    f->notes->fresh = f->notes->old || (now.what == IS_EMPTY && !trained);
    if (f->notes->old)
        ls_log("%s: %s; the new run takes its place", f->run.dir,
               ls_old_run_is_unsaved(f->run.dir) ? "has a run without a checkpoint"
                                                 : "has a run, which is removed (--overwrite)");
    else if (f->notes->fresh && f->run.resumes && !follows)
        ls_log("%s: %s; a new run begins there", f->run.dir,
               f->made_from ? "does not exist yet" : "is empty");
    return LS_OK;
}

/* A directory that was removed is made again where it was, and not below a mount point whose file
 * system is gone: mounted again, that would hide what was written meanwhile. */
static ls_status check_mounted(const ls_folder *f, ls_error *e) {
    struct stat st;
    unsigned long long device = f->notes->device;
    if (!device && f->run.state) device = atomic_load(&f->run.state->device);
    char *there = ls_file_existing(f->run.dir);
    bool known = device && stat(there, &st) == 0;
    free(there);
    if (!known || st.st_dev == device) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: its file system is no longer mounted there; mount it again: nothing is "
                   "written elsewhere",
                   f->run.dir);
}

/* On failure, nothing but empty directories has been made, and they are removed. */
static ls_status lock_once(ls_folder *f, bool follows, ls_error *e) {
    const ls_folder_run *r = &f->run;
    found before;
    if (follows) LS_TRY(check_mounted(f, e));
    LS_TRY(inspect_to_follow(r, follows, &before, e));
    if (before.has_lock && !follows) LS_TRY(ls_lock_look(r->dir, e));
    LS_TRY(check_found(r, r->resumes || follows, &before, e));
    f->made_from = missing_part(r->dir);
    ls_status s = ls_file_make_dirs(r->dir, e);
    if (s == LS_OK) s = ls_lock_take(r->dir, follows ? LOST_HOST_S : 0, &f->lock, e);
    if (s == LS_OK) s = inspect_again(f, follows, e);
    if (s == LS_OK) return LS_OK;
    ls_lock_remove(&f->lock, r->dir);
    remove_dirs(f);
    return s;
}

ls_status ls_folder_open(const ls_folder_run *r, bool follows, ls_folder **f_p, ls_error *e) {
    ls_folder *f = new_folder(r, e);
    if (!f) return LS_ENOMEM;
    ls_status s = LS_EIO;
    for (int i = 0; s != LS_OK && i < MOST_TRIES; i++) {
        s = lock_once(f, follows, e);
        /* A start that failed may have removed the directory meanwhile. */
        if (s != LS_EIO || ls_file_exists(r->dir)) break;
    }
    if (s == LS_OK)
        *f_p = f;
    else
        free_folder(f);
    return s;
}

ls_status ls_folder_hold(const ls_folder_run *r, ls_folder **f_p, ls_error *e) {
    ls_folder *f = new_folder(r, e);
    if (!f) return LS_ENOMEM;
    ls_status s = ls_lock_take(r->dir, SOON_S, &f->lock, e);
    if (s == LS_OK)
        *f_p = f;
    else
        free_folder(f);
    return s;
}

/* ---- filling ---- */

static ls_status write_config(const ls_folder_run *r, ls_error *e) {
    char *path = in_run(r, names[CONFIG]);
    ls_status s = ls_file_replace(path, r->config_text->data, r->config_text->len, e);
    free(path);
    return s;
}

/* Writes the config and the files of the data set if they are missing. */
static ls_status write_files(ls_folder *f, const ls_dataset *d, ls_error *e) {
    const ls_folder_run *r = &f->run;
    for (int i = 0; i < METRICS; i++)
        if (!has(r, names[i])) f->notes->made |= 1u << i;
    if (!has(r, names[CONFIG])) LS_TRY(write_config(r, e));
    return ls_dataset_save(d, r->dir, e);
}

/* Syncs new directories, so that they outlive a crash. Those above may not be open to this user. */
static ls_status sync_dirs(const ls_folder *f, ls_error *e) {
    char *p = ls_strdup(f->run.dir), *slash = NULL;
    ls_status s = ls_file_sync_dir(p, e);
    size_t least = f->made_from ? strlen(f->made_from) : SIZE_MAX;
    while (strlen(p) >= least && (slash = strrchr(p, '/')) && slash > p) {
        *slash = 0;
        (void)ls_file_sync_dir(p, NULL);
    }
    free(p);
    return s;
}

static ls_status make_checkpoints(ls_folder *f, ls_error *e) {
    char *path = in_run(&f->run, CHECKPOINTS);
    if (!ls_file_exists(path)) f->notes->made_checkpoints = true;
    ls_status s = ls_file_make_dirs(path, e);
    free(path);
    return s;
}

static bool was_made(const ls_folder_run *r) { return r->made && r->made->ntrain > 0; }

static ls_status make_data(const ls_folder_run *r, ls_dataset *d_p, ls_error *e) {
    if (!was_made(r)) return ls_dataset_make(d_p, r->config, r->model, e);
    *d_p = ls_dataset_of_text(r->made, r->config);
    *r->made = (ls_corpus){0};
    return LS_OK;
}

/* Writes the missing files from those that the config names. */
static ls_status write_missing(ls_folder *f, ls_error *e) {
    const ls_folder_run *r = &f->run;
    ls_dataset d;
    LS_TRY(make_data(r, &d, e));
    ls_status s = f->notes->old ? ls_old_run_remove(r->dir, e) : LS_OK;
    if (s == LS_OK) f->notes->old = false;
    if (s == LS_OK) s = ls_file_make_dirs(r->dir, e);
    if (s == LS_OK) s = check_room(r, checkpoints_to_come(r), ls_dataset_saved_nbytes(&d), e);
    if (s == LS_OK) s = write_files(f, &d, e);
    if (s == LS_OK) s = ls_frozen_file_make(r->dir, r->model, r->config, e);
    if (s == LS_OK) s = ls_published_record_make(r->dir, r->config, e);
    if (s == LS_OK) s = make_checkpoints(f, e);
    if (s == LS_OK) s = sync_dirs(f, e);
    ls_dataset_free(&d);
    return s;
}

bool ls_folder_has_data(const char *dir, const ls_config *c, const ls_model *m) {
    return ls_dataset_is_saved(dir, c) && ls_frozen_file_is_saved(dir, m);
}

static bool is_complete(const ls_folder_run *r) {
    return has(r, names[CONFIG]) && ls_folder_has_data(r->dir, r->config, r->model);
}

/* Checkpoints of older runs have no copy of published.json. */
static ls_status restore_published(const ls_folder_run *r, const char *checkpoint, ls_error *e) {
    bool copied = false;
    LS_TRY(ls_data_file_copy(r->dir, checkpoint, LS_PUBLISHED_RECORD, &copied, e));
    return checkpoint ? LS_OK : ls_published_record_make(r->dir, r->config, e);
}

/* Restores deleted files. */
static ls_status restore(const ls_folder_run *r, const char *checkpoint, ls_error *e) {
    LS_TRY(ls_file_make_dirs(r->dir, e));
    LS_TRY(ls_dataset_restore(r->dir, checkpoint, r->config, r->model, e));
    LS_TRY(ls_frozen_file_restore(r->dir, checkpoint, r->model, r->config, e));
    LS_TRY(restore_published(r, checkpoint, e));
    return has(r, names[CONFIG]) ? LS_OK : write_config(r, e);
}

/* Once in a process: later the file may be another one. */
static ls_status note_published(ls_folder *f, ls_error *e) {
    if (f->published.len || !has(&f->run, names[ORIGIN])) return LS_OK;
    char *path = in_run(&f->run, names[ORIGIN]);
    ls_status s = ls_file_read(path, LS_PUBLISHED_NBYTES, &f->published, e);
    free(path);
    return s;
}

/* checkpoint NULL: the run was killed before its first one, maybe before all of its files were
 * written. */
static ls_status start_from(const ls_folder_run *r, const char *checkpoint, ls_error *e) {
    if (!checkpoint) {
        ls_log("%s: has no checkpoint yet; beginning again", r->dir);
        return LS_OK;
    }
    LS_TRY(ls_checkpoint_check_order(checkpoint, r->config, e));
    ls_log("continuing from %s", checkpoint);
    return LS_OK;
}

static bool lacks_files(const ls_folder *f) { return f->notes->old || !is_complete(&f->run); }

ls_status ls_folder_fill(ls_folder *f, ls_error *e) {
    bool lacks = f->notes->fresh && was_made(&f->run) && lacks_files(f);
    return lacks ? write_missing(f, e) : LS_OK;
}

ls_status ls_folder_take_up(ls_folder *f, ls_error *e) {
    ls_folder_notes *n = f->notes;
    char *path = NULL;
    int64_t step = 0;
    ls_status s = LS_OK;
    if (n->fresh) {
        if (lacks_files(f)) s = write_missing(f, e);
    } else {
        ls_frozen_file_repair(f->run.dir, f->run.model, f->run.config);
        LS_TRY(ls_checkpoint_newest_good(f->run.dir, &path, &step, e));
        s = start_from(&f->run, path, e);
        if (s == LS_OK && !ls_best_is_over(f->run.dir, f->run.config, step))
            log_changes(&f->run, path);
        if (s == LS_OK) s = restore(&f->run, path, e);
        if (s == LS_OK && !path)
            s = ls_frozen_file_make(f->run.dir, f->run.model, f->run.config, e);
    }
    free(path);
    n->step = step;
    return s == LS_OK ? note_published(f, e) : s;
}

/* ---- views that follow ---- */

static void log_new_directory(const ls_folder_run *r) {
    ls_log("%s: was removed; it is created again, without the checkpoints and metrics so far",
           r->dir);
}

static bool is_same_place(const ls_folder *f) {
    struct stat st;
    return stat(f->run.dir, &st) == 0 && st.st_dev == f->notes->device &&
           st.st_ino == f->notes->inode;
}

/* Takes the lock again if the directory, or only the lock in it, was removed. */
static ls_status lock_again(ls_folder *f, ls_error *e) {
    const ls_folder_run *r = &f->run;
    ls_lock fresh = LS_LOCK_NONE;
    if (ls_lock_is_held(&f->lock, r->dir)) return LS_OK;
    bool same = is_same_place(f);
    if (!same && has(r, names[CONFIG]))
        return ls_fail(e, LS_EINVAL, "%s: is now the directory of another run", r->dir);
    if (!same) LS_TRY(check_mounted(f, e));
    LS_TRY(ls_file_make_dirs(r->dir, e));
    LS_TRY(ls_lock_take(r->dir, SOON_S, &fresh, e));
    ls_lock_drop(&f->lock);
    f->lock = fresh;
    note_place(f);
    if (!same) log_new_directory(r);
    return LS_OK;
}

/* If there is no state in memory: starts from the newest checkpoint, or from step 0. */
static ls_status find_start(ls_folder *f, ls_error *e) {
    const ls_folder_run *r = &f->run;
    char *path = NULL;
    LS_TRY(check_config(r, e));
    ls_status s = ls_checkpoint_newest_good(r->dir, &path, &f->notes->step, e);
    if (s == LS_OK) s = start_from(r, path, e);
    free(path);
    if (s == LS_OK || atomic_load(&r->state->step) > 0) return s;
    f->notes->step = 0;
    return LS_OK;
}

static ls_status restore_newest(const ls_folder_run *r, ls_error *e) {
    char *path = NULL;
    int64_t step = 0;
    if (ls_checkpoint_newest_good(r->dir, &path, &step, NULL) != LS_OK) path = NULL;
    ls_status s = restore(r, path, e);
    free(path);
    return s;
}

ls_status ls_folder_follow(ls_folder *f, ls_error *e) {
    f->notes->step = ls_store_trained(f->run.store);
    LS_TRY(lock_again(f, e));
    if (!is_complete(&f->run)) LS_TRY(restore_newest(&f->run, e));
    LS_TRY(note_published(f, e));
    return f->notes->step < 0 ? find_start(f, e) : LS_OK;
}

ls_status ls_folder_repair(ls_folder *f, const ls_dataset *d, const ls_frozen_value *frozen,
                           ls_error *e) {
    const ls_folder_run *r = &f->run;
    LS_TRY(lock_again(f, e));
    LS_TRY(write_files(f, d, e));
    if (f->published.len) LS_TRY(ls_data_file_write(r->dir, names[ORIGIN], &f->published, e));
    if (!frozen || ls_frozen_file_is_saved(r->dir, r->model)) return LS_OK;
    return ls_frozen_file_save(r->dir, r->model, frozen, e);
}

/* ---- training begins, and ends ---- */

ls_status ls_folder_begin_training(ls_folder *f, bool *old_p, ls_error *e) {
    const ls_folder_run *r = &f->run;
    *old_p = !f->notes->fresh || f->notes->stays;
    if (*old_p) return write_config(r, e);
    for (int i = METRICS; i < NFILES; i++)
        if (!has(r, names[i])) f->notes->made |= 1u << i;
    return LS_OK;
}

void ls_folder_stay(ls_folder *f) { f->notes->stays = true; }

/* Removes the files that this run made, and partly written copies that a killed process left. */
static void remove_files(const ls_folder *f) {
    for (int i = 0; i < NFILES; i++) {
        if (!(f->notes->made & 1u << i)) continue;
        char *path = in_run(&f->run, names[i]), *half = ls_file_only_fresh_name(path);
        unlink(path);
        free(path);
        free(half);
    }
    char *checkpoints = in_run(&f->run, CHECKPOINTS);
    if (f->notes->made_checkpoints) rmdir(checkpoints);
    free(checkpoints);
}

void ls_folder_close(ls_folder *f, bool abandon) {
    if (!f) return;
    bool removes = abandon && f->notes->fresh && !f->notes->stays;
    if (removes && ls_lock_is_held(&f->lock, f->run.dir)) {
        ls_transcript_end(); /* else a message would make the file again */
        remove_files(f);
        ls_lock_remove(&f->lock, f->run.dir);
        remove_dirs(f);
    }
    free_folder(f);
}
