/* checkpoint.c - see checkpoint.h. */
#include "storage/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "model/safetensors.h"
#include "storage/corpus_record.h"
#include "storage/part.h"

enum { MAX_MANIFEST = 1 << 20 };

static const char WEIGHTS[] = "model.safetensors", OPTIMIZER[] = "optimizer.safetensors";
static const char TOKENIZER[] = "tokenizer.json", CONFIG[] = "config.yaml";
static const char MANIFEST[] = "manifest.json";
static const char HIDDEN[] = ".step-"; /* how the name of a folder begins while it is written */

/* ---- logical state ---- */

static int by_name(const void *a, const void *b) {
    return strcmp((*(const ls_tensor *const *)a)->name, (*(const ls_tensor *const *)b)->name);
}

/* Over tensors sorted by name: name, dims, data; before them the step, where it is not negative,
 * and the loss scale, where one is in use. */
static ls_hash hash_tensors(const ls_tensor *t, size_t n, int64_t step, const ls_scaler *scaler) {
    const ls_tensor **sorted = LS_NEW_ARRAY(const ls_tensor *, n);
    for (size_t i = 0; i < n; i++) sorted[i] = &t[i];
    qsort(sorted, n, sizeof *sorted, by_name);
    ls_hasher *h = ls_hasher_new();
    if (step >= 0) ls_hasher_add(h, &step, sizeof step);
    if (scaler && scaler->scale > 0) {
        const double scale[] = {scaler->scale, (double)scaler->good, (double)scaler->left,
                                (double)scaler->skipped};
        ls_hasher_add(h, scale, sizeof scale);
    }
    for (size_t i = 0; i < n; i++) {
        ls_hasher_add(h, sorted[i]->name, strlen(sorted[i]->name) + 1);
        int64_t ndims = sorted[i]->ndims;
        ls_hasher_add(h, &ndims, sizeof ndims);
        ls_hasher_add(h, sorted[i]->dims, (size_t)ndims * sizeof *sorted[i]->dims);
        ls_hasher_add(h, sorted[i]->data, sorted[i]->count * sizeof(float));
    }
    free(sorted);
    return ls_hasher_finish(h);
}

static ls_tensor tensor_of(const ls_param *p, const char *suffix, const float *flat) {
    ls_tensor t = {.ndims = p->ndims, .count = p->count, .data = flat + p->offset};
    snprintf(t.name, sizeof t.name, "%s%s", p->name, suffix);
    for (int d = 0; d < p->ndims; d++) t.dims[d] = p->dims[d];
    return t;
}

static ls_tensor *weights_of(const ls_train_state *s) {
    ls_tensor *t = LS_NEW_ARRAY(ls_tensor, (size_t)s->model->nparams);
    for (int i = 0; i < s->model->nparams; i++)
        t[i] = tensor_of(&s->model->params[i], "", s->params);
    return t;
}

static ls_tensor *moments_of(const ls_train_state *s) {
    ls_tensor *t = LS_NEW_ARRAY(ls_tensor, 2 * (size_t)s->model->nparams);
    for (int i = 0; i < s->model->nparams; i++) {
        t[2 * i] = tensor_of(&s->model->params[i], ".exp_avg", s->m);
        t[2 * i + 1] = tensor_of(&s->model->params[i], ".exp_avg_sq", s->v);
    }
    return t;
}

/* ---- writing ---- */

static char *join(const char *folder, const char *name) { return ls_format("%s/%s", folder, name); }

/* Adds name, size and hash of a written file to the manifest. */
static ls_status list_file(const char *folder, const char *name, ls_json *files, ls_error *e) {
    char *path = join(folder, name), text[LS_HASH_TEXT];
    ls_mapped m;
    ls_status s = ls_file_map(path, &m, e);
    free(path);
    if (s != LS_OK) return s;
    ls_hash_text(ls_hash_bytes(m.data, m.nbytes), text);
    ls_json *entry = ls_json_new_object();
    ls_json_set(entry, "name", ls_json_new_text(name));
    ls_json_set(entry, "bytes", ls_json_new_integer((int64_t)m.nbytes));
    ls_json_set(entry, "xxh3_128", ls_json_new_text(text));
    ls_json_push(files, entry);
    ls_file_unmap(&m);
    return LS_OK;
}

static ls_status write_tensors(const char *folder, const char *name, const ls_tensor *t, size_t n,
                               ls_json *files, ls_error *e) {
    char *path = join(folder, name);
    ls_status s = ls_safetensors_write(path, t, n, e);
    free(path);
    return s == LS_OK ? list_file(folder, name, files, e) : s;
}

static ls_status write_text(const char *folder, const char *name, const ls_buf *text,
                            ls_json *files, ls_error *e) {
    char *path = join(folder, name);
    ls_status s = ls_file_write(path, text->data, text->len, e);
    free(path);
    return s == LS_OK && files ? list_file(folder, name, files, e) : s;
}

static ls_json *manifest_of(const ls_train_state *s, ls_hash weights, ls_hash optimizer,
                            const ls_checkpoint_extra *x, ls_json *files) {
    ls_json *m = ls_json_new_object(), *model = ls_json_new_object();
    char text[LS_HASH_TEXT];
    const ls_gpt_config *c = &s->model->config;
    ls_json_set(m, "format", ls_json_new_text("lockstep checkpoint"));
    ls_json_set(m, "version", ls_json_new_integer(1));
    ls_json_set(m, "lockstep", ls_json_new_text(LS_VERSION));
    ls_json_set(m, "step", ls_json_new_integer(s->step));
    ls_json_set(model, "layers", ls_json_new_integer(c->layers));
    ls_json_set(model, "width", ls_json_new_integer(c->width));
    ls_json_set(model, "heads", ls_json_new_integer(c->heads));
    ls_json_set(model, "context", ls_json_new_integer(c->context));
    ls_json_set(model, "vocab", ls_json_new_integer(c->vocab));
    ls_json_set(m, "model", model);
    if (s->scaler.scale > 0) {
        ls_json *scaler = ls_json_new_object();
        snprintf(text, sizeof text, "%.17g", s->scaler.scale); /* exact; JSON numbers are not */
        ls_json_set(scaler, "scale", ls_json_new_text(text));
        ls_json_set(scaler, "good", ls_json_new_integer(s->scaler.good));
        ls_json_set(scaler, "left", ls_json_new_integer(s->scaler.left));
        ls_json_set(scaler, "skipped", ls_json_new_integer(s->scaler.skipped));
        ls_json_set(m, "loss_scale", scaler);
    }
    if (x->val_samples > 0) {
        snprintf(text, sizeof text, "%.17g", x->val_loss);
        ls_json_set(m, "val_loss", ls_json_new_text(text));
        ls_json_set(m, "val_samples", ls_json_new_integer(x->val_samples));
    }
    ls_hash_text(weights, text);
    ls_json_set(m, "weights_hash", ls_json_new_text(text));
    ls_hash_text(optimizer, text);
    ls_json_set(m, "optimizer_hash", ls_json_new_text(text));
    ls_json_set(m, "files", files);
    return m;
}

/* What is beside the tensors, the manifest last. Takes over `files`, which lists them. */
static ls_status write_rest(const char *folder, const ls_train_state *s, ls_hash weights,
                            ls_hash optimizer, const ls_checkpoint_extra *x, ls_json *files,
                            ls_error *e) {
    ls_buf text = {0};
    ls_status status = write_text(folder, TOKENIZER, x->tokenizer, files, e);
    if (status == LS_OK) status = write_text(folder, CONFIG, x->config, files, e);
    if (status == LS_OK && x->record)
        status = write_text(folder, LS_CORPUS_RECORD, x->record, files, e);
    ls_json *manifest = manifest_of(s, weights, optimizer, x, files);
    ls_json_write(manifest, 2, &text);
    ls_buf_append(&text, "\n", 1);
    if (status == LS_OK) status = write_text(folder, MANIFEST, &text, NULL, e);
    if (status == LS_OK) status = ls_file_sync_dir(folder, e);
    ls_buf_free(&text);
    ls_json_free(manifest);
    return status;
}

static ls_status write_folder(const char *folder, const ls_train_state *s,
                              const ls_checkpoint_extra *x, ls_error *e) {
    size_t n = (size_t)s->model->nparams;
    ls_tensor *weights = weights_of(s), *moments = moments_of(s);
    ls_json *files = ls_json_new_array();
    ls_status status = write_tensors(folder, WEIGHTS, weights, n, files, e);
    if (status == LS_OK) status = write_tensors(folder, OPTIMIZER, moments, 2 * n, files, e);
    if (status == LS_OK)
        status = write_rest(folder, s, hash_tensors(weights, n, -1, NULL),
                            hash_tensors(moments, 2 * n, s->step, &s->scaler), x, files, e);
    else
        ls_json_free(files);
    free(weights);
    free(moments);
    return status;
}

/* step-N -> N, or -1. */
static int64_t step_of(const char *name) {
    char *end = NULL;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9') return -1;
    errno = 0;
    long long step = strtoll(name + 5, &end, 10);
    return *end || errno ? -1 : step;
}

/* The newest step below `below` in the folder; -1: none. */
static ls_status newest_below(const char *folder, int64_t below, int64_t *step_p, ls_error *e) {
    DIR *d = opendir(folder);
    int64_t newest = -1;
    if (!d && errno != ENOENT)
        return ls_fail(e, LS_EIO, "%s: can't be read: %s", folder, strerror(errno));
    errno = 0;
    for (struct dirent *f; d && (f = readdir(d));) {
        int64_t step = step_of(f->d_name);
        if (step < below && step > newest) newest = step;
        errno = 0;
    }
    int failed = d ? errno : 0;
    if (d) closedir(d);
    if (failed) return ls_fail(e, LS_EIO, "%s: can't be read: %s", folder, strerror(failed));
    *step_p = newest;
    return LS_OK;
}

static void remove_in(const char *folder, const char *name) {
    char *path = join(folder, name);
    ls_file_remove_tree(path, NULL);
    free(path);
}

/* Removes what programs that were killed left half written: nobody else writes now. */
static void remove_half_written(const char *folder) {
    DIR *d = opendir(folder);
    for (struct dirent *f; d && (f = readdir(d));)
        if (strncmp(f->d_name, HIDDEN, sizeof HIDDEN - 1) == 0) remove_in(folder, f->d_name);
    if (d) closedir(d);
}

/* Of those up to `newest`, which is good, all but `keep` and `best` go. What is beyond it was
 * passed over when the run went on, and counts for nothing. Failing to is no failure of the
 * checkpoint. */
static void remove_old(const char *folder, int64_t newest, int64_t keep, int64_t best) {
    int64_t step = newest + 1;
    for (int64_t i = 0; keep > 0; i++) {
        if (newest_below(folder, step, &step, NULL) != LS_OK || step < 0) return;
        char *name = ls_format("step-%lld", (long long)step);
        if (i >= keep && step != best) remove_in(folder, name);
        free(name);
    }
}

/* For the user's eyes: a checkpoint is complete without it, and nothing reads it here. */
static void link_to(const char *folder, const char *link_name, const char *name) {
    char *link = join(folder, link_name), *fresh = ls_format("%s/.%s", folder, link_name);
    unlink(fresh);
    if (symlink(name, fresh) != 0 || rename(fresh, link) != 0) {
        ls_log("%s: can't be linked to %s, which is complete: %s", link, name, strerror(errno));
        unlink(fresh);
        unlink(link); /* rather none than one that is wrong */
    }
    free(link);
    free(fresh);
}

/* `best` is 0 where none is kept: then a link from before goes with its checkpoint. */
static void link_best(const char *folder, int64_t best) {
    char *name = ls_format("step-%lld", (long long)best), *link = join(folder, "best"), to[8];
    if (best)
        link_to(folder, "best", name);
    else if (readlink(link, to, sizeof to) > 0 && !ls_file_is_dir(link))
        unlink(link);
    free(name);
    free(link);
}

static ls_status verify(const char *path, ls_checkpoint_info *, ls_error *);

/* From the disk, as far as the system lets it go there. */
static ls_status read_back(const char *folder, ls_error *e) {
    static const char *const names[] = {WEIGHTS, OPTIMIZER,        TOKENIZER,
                                        CONFIG,  LS_CORPUS_RECORD, MANIFEST};
    ls_checkpoint_info i;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char *path = join(folder, names[k]);
        ls_file_forget(path);
        free(path);
    }
    return verify(folder, &i, e);
}

/* All is written: the hidden folder gets its name. On failure it is removed. */
static ls_status publish(const char *run, const char *hidden, const ls_train_state *s,
                         const ls_checkpoint_extra *x, ls_status status, ls_error *e) {
    char *folder = join(run, "checkpoints");
    char *name = ls_format("step-%lld", (long long)s->step), *final = join(folder, name);
    if (status == LS_OK) status = read_back(hidden, e);
    if (status == LS_OK && ls_file_exists(final)) status = ls_file_remove_tree(final, e);
    if (status == LS_OK) status = ls_file_rename(hidden, final, e);
    if (status == LS_OK) status = ls_file_sync_dir(folder, e);
    if (status == LS_OK) {
        link_to(folder, "latest", name);
        double loss = 0;
        int64_t best =
            x->best_samples ? ls_checkpoint_best(run, s->step, x->best_samples, &loss) : 0;
        remove_half_written(folder);
        if (best) link_best(folder, best);
        remove_old(folder, s->step, x->keep, best);
        if (!best) link_best(folder, 0);
    } else {
        ls_checkpoint_drop(hidden);
    }
    free(folder);
    free(name);
    free(final);
    return status;
}

ls_status ls_checkpoint_write(const char *run, const ls_train_state *s,
                              const ls_checkpoint_extra *x, ls_error *e) {
    char *hidden = ls_format("%s/checkpoints/%s%lld", run, HIDDEN, (long long)s->step);
    ls_status status = ls_file_remove_tree(hidden, e); /* of a run that was killed */
    if (status == LS_OK) status = ls_file_make_dirs(hidden, e);
    if (status == LS_OK) status = write_folder(hidden, s, x, e);
    status = publish(run, hidden, s, x, status, e);
    free(hidden);
    return status;
}

/* ---- writing by several ---- */

char *ls_checkpoint_hidden(const char *run, int64_t step, uint32_t attempt) {
    return ls_format("%s/checkpoints/%s%lld.%08x", run, HIDDEN, (long long)step, attempt);
}

void ls_checkpoint_drop(const char *hidden) { ls_file_remove_tree(hidden, NULL); }

/* The two files of tensors. */
typedef struct tensor_files {
    char *paths[LS_PART_FILES];
    ls_tensor *tensors[LS_PART_FILES];
    ls_part_file files[LS_PART_FILES];
} tensor_files;

static void files_of(const char *hidden, const ls_train_state *s, tensor_files *f) {
    f->paths[0] = join(hidden, WEIGHTS);
    f->paths[1] = join(hidden, OPTIMIZER);
    f->tensors[0] = weights_of(s);
    f->tensors[1] = moments_of(s);
    for (int i = 0; i < LS_PART_FILES; i++)
        f->files[i] = (ls_part_file){f->paths[i], f->tensors[i], 1 + i};
}

static void drop_files(tensor_files *f) {
    for (int i = 0; i < LS_PART_FILES; i++) {
        free(f->paths[i]);
        free(f->tensors[i]);
    }
}

ls_status ls_checkpoint_begin(const char *hidden, const ls_train_state *s, ls_error *e) {
    tensor_files f;
    ls_status status = ls_file_make_dirs(hidden, e);
    files_of(hidden, s, &f);
    for (int i = 0; status == LS_OK && i < LS_PART_FILES; i++) {
        size_t n = (size_t)s->model->nparams * (size_t)f.files[i].each;
        status = ls_safetensors_reserve(f.paths[i], f.tensors[i], n, e);
    }
    if (status == LS_OK) status = ls_file_sync_dir(hidden, e);
    if (status != LS_OK) ls_checkpoint_drop(hidden);
    drop_files(&f);
    return status;
}

ls_status ls_checkpoint_part(const char *hidden, const ls_train_state *s, const ls_plan *p,
                             int first, int end, ls_error *e) {
    tensor_files f;
    files_of(hidden, s, &f);
    ls_status status = ls_part_write(hidden, f.files, p, first, end, e);
    drop_files(&f);
    return status;
}

/* The rest is known from the files: nobody has all of the state in memory. */
static ls_status complete(const char *hidden, const ls_train_state *s, const tensor_files *f,
                          const ls_checkpoint_extra *x, ls_error *e) {
    ls_json *files = ls_json_new_array();
    ls_safetensors weights = {0}, moments = {0};
    ls_status status = list_file(hidden, WEIGHTS, files, e);
    if (status == LS_OK) status = list_file(hidden, OPTIMIZER, files, e);
    if (status == LS_OK) status = ls_safetensors_open(f->paths[0], &weights, e);
    if (status == LS_OK) status = ls_safetensors_open(f->paths[1], &moments, e);
    if (status == LS_OK)
        status =
            write_rest(hidden, s, hash_tensors(weights.tensors, weights.n, -1, NULL),
                       hash_tensors(moments.tensors, moments.n, s->step, &s->scaler), x, files, e);
    else
        ls_json_free(files);
    ls_safetensors_close(&weights);
    ls_safetensors_close(&moments);
    return status;
}

ls_status ls_checkpoint_finish(const char *run, const char *hidden, const ls_train_state *s,
                               const ls_plan *p, int end, const ls_checkpoint_extra *x,
                               ls_error *e) {
    tensor_files f;
    files_of(hidden, s, &f);
    ls_status status = ls_part_check(hidden, f.files, p, end, e);
    if (status == LS_OK) status = complete(hidden, s, &f, x, e);
    drop_files(&f);
    return publish(run, hidden, s, x, status, e);
}

/* ---- reading ---- */

char *ls_checkpoint_path(const char *run, int64_t step) {
    return ls_format("%s/checkpoints/step-%lld", run, (long long)step);
}

static ls_status none(const char *run, ls_error *e) {
    return ls_fail(e, LS_EIO, "%s: has no checkpoint yet; remove the folder and begin again", run);
}

ls_status ls_checkpoint_newest(const char *run, char **path_p, int64_t *step_p, ls_error *e) {
    char *folder = join(run, "checkpoints");
    int64_t step = -1;
    ls_status s = newest_below(folder, INT64_MAX, &step, e);
    free(folder);
    if (s == LS_OK && step < 0) s = none(run, e);
    LS_TRY(s);
    *path_p = ls_checkpoint_path(run, step);
    if (step_p) *step_p = step;
    return LS_OK;
}

ls_status ls_checkpoint_newest_good(const char *run, char **path_p, int64_t *step_p, ls_error *e) {
    char *folder = join(run, "checkpoints"), *path = NULL;
    int64_t below = INT64_MAX, step = -1;
    ls_error damage = {0};
    ls_checkpoint_info i;
    ls_status s;
    while ((s = newest_below(folder, below, &step, e)) == LS_OK && step >= 0) {
        path = ls_format("%s/step-%lld", folder, (long long)step);
        if (verify(path, &i, &damage) == LS_OK) break;
        ls_log("passed over: %s", damage.msg);
        free(path);
        path = NULL;
        below = step;
    }
    free(folder);
    LS_TRY(s);
    if (!path && below < INT64_MAX)
        return ls_fail(e, LS_EINVAL, "%s: has no checkpoint that is whole", run);
    *path_p = path;
    *step_p = path ? step : 0;
    return LS_OK;
}

ls_status ls_checkpoint_resolve(const char *path, char **path_p, ls_error *e) {
    char *manifest = join(path, MANIFEST), *folder = join(path, "checkpoints");
    bool is_checkpoint = ls_file_exists(manifest), is_run = ls_file_exists(folder);
    bool exists = ls_file_exists(path);
    free(manifest);
    free(folder);
    if (is_run) return ls_checkpoint_newest(path, path_p, NULL, e);
    if (!is_checkpoint)
        return ls_fail(e, LS_EIO, "%s: %s", path,
                       exists
                           ? "is neither a run nor a complete checkpoint (it has no manifest.json)"
                           : "does not exist");
    *path_p = ls_strdup(path);
    return LS_OK;
}

typedef struct opened {
    const char *path;
    ls_json *manifest;
    int64_t step;
    ls_scaler scaler; /* scale 0: none */
    ls_safetensors weights, optimizer;
} opened;

static ls_status check_file(const char *folder, const ls_json *entry, ls_error *e) {
    const char *name = ls_json_text(ls_json_get(entry, "name"));
    const char *want = ls_json_text(ls_json_get(entry, "xxh3_128"));
    int64_t nbytes = -1;
    if (!name || !want || strchr(name, '/') ||
        !ls_json_integer(ls_json_get(entry, "bytes"), &nbytes))
        return ls_fail(e, LS_EINVAL, "%s/%s: has a file entry without name, bytes or xxh3_128",
                       folder, MANIFEST);
    char *path = join(folder, name), got[LS_HASH_TEXT];
    ls_mapped m;
    ls_status s = ls_file_map(path, &m, e);
    if (s == LS_OK) {
        ls_hash_text(ls_hash_bytes(m.data, m.nbytes), got);
        if ((int64_t)m.nbytes != nbytes)
            s = ls_fail(e, LS_EINVAL,
                        "%s: is truncated or grown: %zu bytes, the manifest says %lld", path,
                        m.nbytes, (long long)nbytes);
        else if (strcmp(got, want) != 0)
            s = ls_fail(e, LS_EINVAL, "%s: is damaged: its hash is not the manifest's", path);
        ls_file_unmap(&m);
    }
    free(path);
    return s;
}

static ls_status read_scaler(opened *o, const char *path, ls_error *e) {
    const ls_json *j = ls_json_get(o->manifest, "loss_scale");
    const char *scale = ls_json_text(ls_json_get(j, "scale"));
    ls_scaler s = {.scale = scale ? strtod(scale, NULL) : 0};
    if (!j) return LS_OK;
    if (!(s.scale > 0) || !isfinite(s.scale) || !ls_json_integer(ls_json_get(j, "good"), &s.good) ||
        s.good < 0 || !ls_json_integer(ls_json_get(j, "left"), &s.left) || s.left < 0 ||
        !ls_json_integer(ls_json_get(j, "skipped"), &s.skipped) || s.skipped < 0 ||
        s.skipped > o->step)
        return ls_fail(e, LS_EINVAL, "%s: its loss_scale is not complete, or out of range", path);
    o->scaler = s;
    return LS_OK;
}

static ls_status read_manifest(opened *o, ls_error *e) {
    char *path = join(o->path, MANIFEST);
    ls_buf text = {0};
    ls_status s = ls_file_read(path, MAX_MANIFEST, &text, e);
    if (s == LS_OK) s = ls_json_parse(text.data ? text.data : "", text.len, path, &o->manifest, e);
    const ls_json *files = s == LS_OK ? ls_json_get(o->manifest, "files") : NULL;
    const char *format = s == LS_OK ? ls_json_text(ls_json_get(o->manifest, "format")) : NULL;
    int64_t version = 0;
    if (s == LS_OK && (!format || strcmp(format, "lockstep checkpoint") != 0 ||
                       !ls_json_integer(ls_json_get(o->manifest, "version"), &version) ||
                       version != 1 || !ls_json_is_array(files) ||
                       !ls_json_integer(ls_json_get(o->manifest, "step"), &o->step) || o->step < 0))
        s = ls_fail(e, LS_EINVAL, "%s: is not the manifest of a version 1 checkpoint", path);
    if (s == LS_OK) s = read_scaler(o, path, e);
    ls_buf_free(&text);
    free(path);
    return s;
}

bool ls_checkpoint_val(const char *run, int64_t step, int64_t nsamples, double *loss_p) {
    char *path = ls_checkpoint_path(run, step), *end = NULL;
    opened o = {.path = path};
    int64_t got = 0;
    ls_status s = read_manifest(&o, NULL);
    const char *text = s == LS_OK ? ls_json_text(ls_json_get(o.manifest, "val_loss")) : NULL;
    double loss = text ? strtod(text, &end) : 0;
    bool good = text && *text && !*end && isfinite(loss) && o.step == step &&
                ls_json_integer(ls_json_get(o.manifest, "val_samples"), &got) && got == nsamples;
    if (good) *loss_p = loss;
    ls_json_free(o.manifest);
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

static bool lists(const ls_json *files, const char *name) {
    for (size_t i = 0; i < ls_json_count(files); i++) {
        const char *listed = ls_json_text(ls_json_get(ls_json_at(files, i), "name"));
        if (listed && strcmp(listed, name) == 0) return true;
    }
    return false;
}

/* What is read is listed, and what is listed has its hash. */
static ls_status check_files(const opened *o, ls_error *e) {
    static const char *const needed[] = {WEIGHTS, OPTIMIZER, TOKENIZER, CONFIG};
    const ls_json *files = ls_json_get(o->manifest, "files");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!lists(files, needed[i]))
            return ls_fail(e, LS_EINVAL, "%s/%s: is not complete: it does not list %s", o->path,
                           MANIFEST, needed[i]);
    for (size_t i = 0; i < ls_json_count(files); i++)
        LS_TRY(check_file(o->path, ls_json_at(files, i), e));
    return LS_OK;
}

static void close_all(opened *o) {
    ls_safetensors_close(&o->weights);
    ls_safetensors_close(&o->optimizer);
    ls_json_free(o->manifest);
}

static ls_status open_all(const char *path, opened *o, ls_error *e) {
    *o = (opened){.path = path};
    char *weights = join(path, WEIGHTS), *optimizer = join(path, OPTIMIZER);
    ls_status s = read_manifest(o, e);
    if (s == LS_OK) s = check_files(o, e);
    if (s == LS_OK) s = ls_safetensors_open(weights, &o->weights, e);
    if (s == LS_OK) s = ls_safetensors_open(optimizer, &o->optimizer, e);
    free(weights);
    free(optimizer);
    if (s != LS_OK) close_all(o);
    return s;
}

/* What is owned of floats [first, first + count). */
static void copy_owned(const ls_train_state *s, float *flat, size_t first, const float *data,
                       size_t count) {
    const ls_bucket all = {.first = first, .end = first + count};
    for (int i = 0; i < (s->owned ? s->nowned : 1); i++) {
        const ls_bucket *b = s->owned ? &s->owned[i] : &all;
        size_t from = b->first > first ? b->first : first;
        size_t end = b->end < first + count ? b->end : first + count;
        if (from < end) memcpy(flat + from, data + (from - first), (end - from) * sizeof *flat);
    }
}

/* Copies the tensor NAME + suffix to its place in the flat buffer. */
static ls_status load_param(const opened *o, const ls_safetensors *from, const ls_param *p,
                            const char *suffix, const ls_train_state *s, float *flat, ls_error *e) {
    char name[LS_TENSOR_NAME];
    snprintf(name, sizeof name, "%s%s", p->name, suffix);
    const ls_tensor *t = ls_safetensors_find(from, name);
    if (!t)
        return ls_fail(e, LS_EINVAL,
                       "%s: has no tensor '%s'; it is of another architecture than the config",
                       o->path, name);
    bool same = t->ndims == p->ndims;
    for (int d = 0; same && d < p->ndims; d++) same = t->dims[d] == p->dims[d];
    if (!same)
        return ls_fail(e, LS_EINVAL,
                       "%s: tensor '%s' is [%lld, %lld], the config's model wants [%lld, %lld]; it "
                       "is of another architecture",
                       o->path, name, (long long)t->dims[0],
                       (long long)(t->ndims > 1 ? t->dims[1] : 1), (long long)p->dims[0],
                       (long long)(p->ndims > 1 ? p->dims[1] : 1));
    copy_owned(s, flat, p->offset, t->data, p->count);
    return LS_OK;
}

static ls_status load_state(const opened *o, ls_train_state *s, ls_error *e) {
    if (o->weights.n != (size_t)s->model->nparams)
        return ls_fail(e, LS_EINVAL,
                       "%s: has %zu tensors, the config's model %d; it is of another architecture",
                       o->path, o->weights.n, s->model->nparams);
    const ls_train_state whole = {0};
    for (int i = 0; i < s->model->nparams; i++) {
        const ls_param *p = &s->model->params[i];
        LS_TRY(load_param(o, &o->weights, p, "", s->all_params ? &whole : s, s->params, e));
        if (s->m) LS_TRY(load_param(o, &o->optimizer, p, ".exp_avg", s, s->m, e));
        if (s->v) LS_TRY(load_param(o, &o->optimizer, p, ".exp_avg_sq", s, s->v, e));
    }
    s->step = o->step;
    s->scaler = o->scaler;
    return LS_OK;
}

static ls_status load(const char *path, ls_train_state *s, ls_error *e) {
    opened o;
    LS_TRY(open_all(path, &o, e));
    ls_status status = load_state(&o, s, e);
    close_all(&o);
    return status;
}

static ls_status check_logical(const opened *o, const char *key, ls_hash got, ls_error *e) {
    char text[LS_HASH_TEXT];
    ls_hash_text(got, text);
    const char *want = ls_json_text(ls_json_get(o->manifest, key));
    if (!want || strcmp(want, text) != 0)
        return ls_fail(e, LS_EINVAL, "%s: %s in the manifest is %s, the tensors give %s", o->path,
                       key, want ? want : "missing", text);
    return LS_OK;
}

static ls_status verify(const char *path, ls_checkpoint_info *i_p, ls_error *e) {
    opened o;
    LS_TRY(open_all(path, &o, e));
    ls_checkpoint_info info = {.step = o.step, .ntensors = o.weights.n};
    info.weights = hash_tensors(o.weights.tensors, o.weights.n, -1, NULL);
    info.optimizer = hash_tensors(o.optimizer.tensors, o.optimizer.n, o.step, &o.scaler);
    for (size_t i = 0; i < o.weights.n; i++) info.count += o.weights.tensors[i].count;
    info.nbytes = o.weights.map.nbytes + o.optimizer.map.nbytes;
    ls_status s = check_logical(&o, "weights_hash", info.weights, e);
    if (s == LS_OK) s = check_logical(&o, "optimizer_hash", info.optimizer, e);
    close_all(&o);
    if (s == LS_OK) *i_p = info;
    return s;
}

static ls_status show(const char *path, ls_buf *out, ls_error *e) {
    opened o;
    LS_TRY(open_all(path, &o, e));
    size_t count = 0;
    for (size_t i = 0; i < o.weights.n; i++) count += o.weights.tensors[i].count;
    ls_buf_escape(out, LS_ESCAPE_LINE, path, strlen(path));
    ls_buf_printf(out, "\nstep %lld, %zu tensors, %zu parameters\n", (long long)o.step, o.weights.n,
                  count);
    for (size_t i = 0; i < o.weights.n; i++) {
        const ls_tensor *t = &o.weights.tensors[i];
        char name[4 * LS_TENSOR_NAME];
        ls_escape(LS_ESCAPE_LINE, t->name, strlen(t->name), name, sizeof name);
        ls_buf_printf(out, "  %-28s f32 [", name);
        for (int d = 0; d < t->ndims; d++)
            ls_buf_printf(out, "%s%lld", d ? ", " : "", (long long)t->dims[d]);
        ls_buf_printf(out, "]\n");
    }
    close_all(&o);
    return LS_OK;
}

/* ---- for readers ---- */

/* The newest good one before step-N at `path`: free() it. NULL: there is none. */
static char *older_good(const char *path) {
    char *real = realpath(path, NULL), *slash = real ? strrchr(real, '/') : NULL, *good = NULL;
    int64_t step = slash ? step_of(slash + 1) : -1;
    ls_checkpoint_info i;
    if (slash) *slash = 0;
    while (!good && step > 0 && newest_below(real, step, &step, NULL) == LS_OK && step >= 0) {
        good = ls_format("%s/step-%lld", real, (long long)step);
        if (verify(good, &i, NULL) == LS_OK) break;
        free(good);
        good = NULL;
    }
    free(real);
    return good;
}

/* To the error of a checkpoint that is not good: what there is instead. */
static ls_status name_older(const char *path, ls_status s, ls_error *e) {
    if (s == LS_OK || !e) return s;
    ls_error why = *e;
    char *good = older_good(path);
    if (good) ls_fail(e, s, "%.300s; an older checkpoint is good: %s", why.msg, good);
    free(good);
    return s;
}

ls_status ls_checkpoint_load(const char *path, ls_train_state *s, ls_error *e) {
    return name_older(path, load(path, s, e), e);
}

ls_status ls_checkpoint_verify(const char *path, ls_checkpoint_info *i_p, ls_error *e) {
    return name_older(path, verify(path, i_p, e), e);
}

ls_status ls_checkpoint_show(const char *path, ls_buf *out, ls_error *e) {
    return name_older(path, show(path, out, e), e);
}

ls_status ls_checkpoint_show_json(const char *path, ls_json **j_p, ls_error *e) {
    opened o;
    LS_TRY(open_all(path, &o, e));
    ls_json *j = ls_json_new_object(), *tensors = ls_json_new_array();
    size_t count = 0;
    for (size_t i = 0; i < o.weights.n; i++) {
        const ls_tensor *t = &o.weights.tensors[i];
        ls_json *tensor = ls_json_new_object(), *shape = ls_json_new_array();
        for (int d = 0; d < t->ndims; d++) ls_json_push(shape, ls_json_new_integer(t->dims[d]));
        ls_json_set(tensor, "name", ls_json_new_text(t->name));
        ls_json_set(tensor, "dtype", ls_json_new_text("f32"));
        ls_json_set(tensor, "shape", shape);
        ls_json_push(tensors, tensor);
        count += t->count;
    }
    ls_json_set(j, "checkpoint", ls_json_new_path(path));
    ls_json_set(j, "step", ls_json_new_integer(o.step));
    ls_json_set(j, "parameters", ls_json_new_integer((int64_t)count));
    ls_json_set(j, "tensors", tensors);
    close_all(&o);
    *j_p = j;
    return LS_OK;
}

ls_status ls_checkpoint_below(const char *run, int64_t below, int64_t *step_p, ls_error *e) {
    char *folder = join(run, "checkpoints");
    ls_status s = newest_below(folder, below, step_p, e);
    free(folder);
    return s;
}
