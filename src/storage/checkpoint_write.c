/* checkpoint_write.c - writes checkpoints: see checkpoint.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "storage/checkpoint.h"
#include "storage/checkpoints.h"
#include "storage/frozen_file.h"
#include "storage/manifest.h"
#include "storage/part.h"

static char *join(const char *folder, const char *name) { return ls_format("%s/%s", folder, name); }

static ls_status write_tensors(const char *folder, const char *name, const ls_tensor *t, size_t n,
                               ls_json *files, ls_error *e) {
    char *path = join(folder, name);
    ls_status s = ls_safetensors_write(path, t, n, e);
    free(path);
    return s == LS_OK ? ls_manifest_list(folder, name, files, e) : s;
}

static ls_status write_text(const char *folder, const char *name, const ls_buf *text,
                            ls_json *files, ls_error *e) {
    char *path = join(folder, name);
    ls_status s = ls_file_write(path, text->data, text->len, e);
    free(path);
    return s == LS_OK ? ls_manifest_list(folder, name, files, e) : s;
}

/* Writes the files beside the tensors, the manifest last. Takes ownership of `files`, the list of
 * all. */
static ls_status write_rest(const char *folder, const ls_train_state *s, const ls_state_hashes *h,
                            const ls_checkpoint_extra *x, ls_json *files, ls_error *e) {
    ls_status status = write_text(folder, LS_CONFIG_FILE, x->config, files, e);
    for (int i = 0; status == LS_OK && i < x->data->n; i++)
        status = write_text(folder, x->data->names[i], &x->data->texts[i], files, e);
    if (status != LS_OK) {
        ls_json_free(files);
        return status;
    }
    LS_TRY(ls_manifest_write(folder, s, h, x, files, e));
    return ls_file_sync_dir(folder, e);
}

/* Adds the file of frozen parameters, and opens it. */
static ls_status add_frozen(const char *run, const char *folder, ls_hash want,
                            ls_safetensors *frozen_p, ls_json *files, ls_error *e) {
    LS_TRY(ls_frozen_file_give(run, folder, want, e));
    LS_TRY(ls_manifest_list(folder, LS_FROZEN_FILE, files, e));
    char *path = join(folder, LS_FROZEN_FILE);
    ls_status s = ls_safetensors_open_stored(path, frozen_p, e);
    free(path);
    return s;
}

static ls_status write_folder(const char *run, const char *folder, const ls_train_state *s,
                              const ls_checkpoint_extra *x, ls_error *e) {
    ls_state_tensors weights = ls_state_weights(s), states = ls_state_optimizer(s);
    ls_json *files = ls_json_new_array();
    ls_safetensors frozen = {0};
    ls_status status = write_tensors(folder, LS_WEIGHTS_FILE, weights.list, weights.n, files, e);
    if (status == LS_OK)
        status = write_tensors(folder, LS_OPTIMIZER_FILE, states.list, states.n, files, e);
    if (status == LS_OK && s->model->frozen_count)
        status = add_frozen(run, folder, x->frozen, &frozen, files, e);
    if (status == LS_OK) {
        ls_state_hashes h = {ls_state_hash_weights(weights.list, weights.n, &frozen),
                             ls_state_hash_optimizer(states.list, states.n, s->step, &s->scaler)};
        status = write_rest(folder, s, &h, x, files, e);
    } else {
        ls_json_free(files);
    }
    ls_safetensors_close(&frozen);
    ls_state_tensors_free(&weights);
    ls_state_tensors_free(&states);
    return status;
}

/* Reads from the disk, if the system drops its cache of the files. */
static ls_status read_back(const char *folder, const ls_data_files *data, ls_error *e) {
    static const char *const names[] = {LS_WEIGHTS_FILE, LS_OPTIMIZER_FILE, LS_CONFIG_FILE,
                                        LS_MANIFEST_FILE};
    enum { N = sizeof names / sizeof *names };
    ls_checkpoint_info i;
    for (int k = 0; k < N + data->n; k++) {
        char *path = join(folder, k < N ? names[k] : data->names[k - N]);
        ls_file_forget(path);
        free(path);
    }
    return ls_checkpoint_read_back(folder, &i, e);
}

/* Was it the best one before this step, and does it still exist? */
static bool is_known(const char *run, int64_t step, const ls_checkpoint_known *known) {
    if (!known || known->step <= 0 || known->step >= step) return false;
    char *path = ls_checkpoint_path(run, known->step), *manifest = join(path, LS_MANIFEST_FILE);
    bool there = ls_file_exists(manifest);
    free(manifest);
    free(path);
    return there;
}

/* The step of the best checkpoint, including this one; 0: none is retained. If two are equally
 * good, the earlier one is the best. */
static int64_t find_best(const char *run, int64_t step, const ls_checkpoint_extra *x) {
    ls_checkpoint_known best = {0};
    if (!x->best_samples) return 0;
    if (is_known(run, step, x->known)) {
        best = *x->known;
        if (x->val_samples == x->best_samples && x->val_loss < best.loss)
            best = (ls_checkpoint_known){step, x->val_loss};
    } else {
        best.step = ls_checkpoint_best(run, step, x->best_samples, &best.loss);
    }
    if (x->known) *x->known = best;
    return best.step;
}

/* Whoever continues from a checkpoint finds the lines of the steps before it, also when the machine
 * has stopped at once. Lines that can't be synced cost no checkpoint. */
static void sync_lines(const char *run) {
    static const char *const names[] = {"metrics.jsonl", "samples.jsonl"};
    ls_error why;
    bool good = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = join(run, names[i]);
        good = good && ls_file_sync_appended(path, &why) == LS_OK;
        free(path);
    }
    good = good && ls_file_sync_dir(run, &why) == LS_OK;
    if (!good) ls_log("%s; lines of it may be lost if the machine stops", why.msg);
}

/* A message names the checkpoint that is being written as RUN/checkpoints/step-N, which people
 * know, not by its hidden directory. */
static ls_status show(ls_status status, const char *hidden, int64_t step, ls_error *e) {
    char *at = status != LS_OK && e ? strstr(e->msg, hidden) : NULL;
    if (!at) return status;
    char *text = ls_format("%.*s%.*s/step-%lld%s", (int)(at - e->msg), e->msg,
                           (int)(strrchr(hidden, '/') - hidden), hidden, (long long)step,
                           at + strlen(hidden));
    snprintf(e->msg, sizeof e->msg, "%s", text);
    free(text);
    return status;
}

/* Called when all files are written: reads them back and renames the hidden directory. On failure,
 * also that of `status`, removes it. */
static ls_status publish(const char *run, const char *hidden, const ls_train_state *s,
                         const ls_checkpoint_extra *x, ls_status status, ls_error *e) {
    char *folder = join(run, "checkpoints");
    char *name = ls_format("step-%lld", (long long)s->step), *final = join(folder, name);
    if (status == LS_OK) status = read_back(hidden, x->data, e);
    if (status == LS_OK) sync_lines(run);
    if (status == LS_OK && ls_file_exists(final)) status = ls_file_remove_tree(final, e);
    if (status == LS_OK) status = ls_file_rename(hidden, final, e);
    if (status == LS_OK) status = ls_file_sync_dir(folder, e);
    if (status == LS_OK) {
        ls_checkpoints_tidy(folder, s->step, x->keep, find_best(run, s->step, x));
    } else {
        ls_checkpoint_drop(hidden);
    }
    free(folder);
    free(name);
    free(final);
    return show(status, hidden, s->step, e);
}

ls_status ls_checkpoint_write(const char *run, const ls_train_state *s,
                              const ls_checkpoint_extra *x, ls_error *e) {
    char *hidden =
        ls_format("%s/checkpoints/%s%lld", run, LS_CHECKPOINT_HIDDEN, (long long)s->step);
    ls_status status = ls_file_remove_tree(hidden, e); /* left by a killed run */
    if (status == LS_OK) status = ls_file_make_dirs(hidden, e);
    if (status == LS_OK) status = write_folder(run, hidden, s, x, e);
    status = publish(run, hidden, s, x, status, e);
    free(hidden);
    return status;
}

/* ---- writing by several processes ---- */

char *ls_checkpoint_hidden(const char *run, int64_t step, uint32_t attempt) {
    return ls_format("%s/checkpoints/%s%lld.%08x", run, LS_CHECKPOINT_HIDDEN, (long long)step,
                     attempt);
}

void ls_checkpoint_drop(const char *hidden) { ls_file_remove_tree(hidden, NULL); }

/* The two files of tensors. */
typedef struct tensor_files {
    char *paths[LS_PART_FILES];
    ls_state_tensors tensors[LS_PART_FILES];
    ls_part_file files[LS_PART_FILES];
} tensor_files;

static void files_of(const char *hidden, const ls_train_state *s, tensor_files *f) {
    f->paths[0] = join(hidden, LS_WEIGHTS_FILE);
    f->paths[1] = join(hidden, LS_OPTIMIZER_FILE);
    f->tensors[0] = ls_state_weights(s);
    f->tensors[1] = ls_state_optimizer(s);
    for (int i = 0; i < LS_PART_FILES; i++)
        f->files[i] = (ls_part_file){f->paths[i], &f->tensors[i]};
}

static void drop_files(tensor_files *f) {
    for (int i = 0; i < LS_PART_FILES; i++) {
        free(f->paths[i]);
        ls_state_tensors_free(&f->tensors[i]);
    }
}

ls_status ls_checkpoint_begin(const char *hidden, const ls_train_state *s, ls_error *e) {
    tensor_files f;
    ls_status status = ls_file_make_dirs(hidden, e);
    files_of(hidden, s, &f);
    for (int i = 0; status == LS_OK && i < LS_PART_FILES; i++)
        status = ls_safetensors_reserve(f.paths[i], f.tensors[i].list, f.tensors[i].n, e);
    if (status == LS_OK) status = ls_file_sync_dir(hidden, e);
    if (status != LS_OK) ls_checkpoint_drop(hidden);
    drop_files(&f);
    return show(status, hidden, s->step, e);
}

ls_status ls_checkpoint_part(const char *hidden, const ls_train_state *s, const ls_owners *o,
                             ls_error *e) {
    tensor_files f;
    files_of(hidden, s, &f);
    ls_status status = ls_part_write(hidden, f.files, o->plan, o->first, o->end, e);
    drop_files(&f);
    return show(status, hidden, s->step, e);
}

/* Hashes the tensors from the files, since no process has the whole state in memory. */
static ls_status complete(const char *run, const char *hidden, const ls_train_state *s,
                          const tensor_files *f, const ls_checkpoint_extra *x, ls_error *e) {
    ls_json *files = ls_json_new_array();
    ls_safetensors weights = {0}, states = {0}, frozen = {0};
    ls_status status = ls_manifest_list(hidden, LS_WEIGHTS_FILE, files, e);
    if (status == LS_OK) status = ls_manifest_list(hidden, LS_OPTIMIZER_FILE, files, e);
    if (status == LS_OK && s->model->frozen_count)
        status = add_frozen(run, hidden, x->frozen, &frozen, files, e);
    if (status == LS_OK) status = ls_safetensors_open(f->paths[0], &weights, e);
    if (status == LS_OK) status = ls_safetensors_open(f->paths[1], &states, e);
    if (status == LS_OK) {
        ls_state_hashes h = {
            ls_state_hash_weights(weights.tensors, weights.n, &frozen),
            ls_state_hash_optimizer(states.tensors, states.n, s->step, &s->scaler)};
        status = write_rest(hidden, s, &h, x, files, e);
    } else {
        ls_json_free(files);
    }
    ls_safetensors_close(&weights);
    ls_safetensors_close(&states);
    ls_safetensors_close(&frozen);
    return status;
}

ls_status ls_checkpoint_finish(const char *run, const char *hidden, const ls_train_state *s,
                               const ls_owners *o, const ls_checkpoint_extra *x, ls_error *e) {
    tensor_files f;
    files_of(hidden, s, &f);
    ls_status status = ls_part_check(hidden, f.files, o->plan, o->end, e);
    if (status == LS_OK) status = complete(run, hidden, s, &f, x, e);
    drop_files(&f);
    return publish(run, hidden, s, x, status, e);
}
