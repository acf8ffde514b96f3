/* frozen_file.c - see frozen_file.h. */
#include "storage/frozen_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/guard.h"
#include "base/log.h"
#include "model/frozen.h"
#include "storage/checkpoint.h"
#include "storage/manifest.h"
#include "storage/pretrained.h"

static char *path_in(const char *folder) { return ls_format("%s/" LS_FROZEN_FILE, folder); }

/* ---- reading ---- */

static ls_status find_values(ls_frozen_file *f, const ls_model *m, ls_error *e) {
    size_t n = 0;
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (!p->frozen) continue;
        const ls_tensor *t = ls_safetensors_find(&f->file, p->name);
        bool same = t && t->ndims == p->ndims;
        for (int d = 0; same && d < p->ndims; d++) same = t->dims[d] == p->dims[d];
        if (!same)
            return ls_fail(e, LS_EINVAL, "%s: %s the frozen parameter '%s'", f->path,
                           t ? "has another shape of" : "does not have", p->name);
        f->values[i] = (ls_frozen_value){.data = t->data, .type = t->type};
        n++;
    }
    if (n == f->file.n) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: has %zu tensors, and the model %zu frozen parameters",
                   f->path, f->file.n, n);
}

static ls_status stamp_of(const char *path, ls_stamp *s_p, ls_error *e) {
    struct stat st;
    if (stat(path, &st) != 0)
        return ls_fail(e, LS_EIO, "%s: can't be read: %s", path, strerror(errno));
    *s_p = ls_stamp_of(&st);
    return LS_OK;
}

ls_status ls_frozen_file_open(const char *folder, const ls_model *m, ls_frozen_file *f_p,
                              ls_error *e) {
    ls_frozen_file f = {.path = path_in(folder)};
    f.values = LS_NEW_ARRAY(ls_frozen_value, (size_t)m->nparams);
    ls_status s = stamp_of(f.path, &f.opened, e);
    if (s == LS_OK) s = ls_safetensors_open_stored(f.path, &f.file, e);
    if (s == LS_OK) s = find_values(&f, m, e);
    if (s == LS_OK) f.hash = ls_hash_bytes(f.file.map.data, f.file.map.nbytes);
    if (s == LS_OK) s = ls_guard_check(e);
    if (s == LS_OK)
        *f_p = f;
    else
        ls_frozen_file_close(&f);
    return s;
}

void ls_frozen_file_close(ls_frozen_file *f) {
    ls_safetensors_close(&f->file);
    free(f->values);
    free(f->path);
    *f = (ls_frozen_file){0};
}

static const char ADVICE[] = "continue with --resume, which restores it";

static ls_status fail_other(const char *path, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%s: is not the file that this run opened; %s", path, ADVICE);
}

/* A file that has lost its name may have been written to before. */
static ls_status verify_mapped(const ls_frozen_file *f, ls_error *e) {
    ls_hash now = ls_hash_bytes(f->file.map.data, f->file.map.nbytes);
    LS_TRY(ls_guard_check(e));
    return ls_hash_same(now, f->hash) ? LS_OK : fail_other(f->path, e);
}

/* What was written to while it was read may have been put back since. A file that is missing is
 * restored before the next checkpoint. */
ls_status ls_frozen_file_verify(ls_frozen_file *f, ls_error *e) {
    struct stat st;
    ls_hash there;
    if (!f->values) return LS_OK;
    bool exists = stat(f->path, &st) == 0;
    ls_stamp now = exists ? ls_stamp_of(&st) : (ls_stamp){0};
    if (ls_stamp_same(&now, &f->opened)) return LS_OK;
    if (now.inode != f->opened.inode) LS_TRY(verify_mapped(f, e));
    if (!exists) return LS_OK;
    LS_TRY(ls_file_hash(f->path, &there, NULL, e));
    if (!ls_hash_same(there, f->hash)) return fail_other(f->path, e);
    if (ls_stamp_is_written(&f->opened, &now))
        return ls_fail(e, LS_EINVAL, "%s: was written to while this run read it; %s", f->path,
                       ADVICE);
    f->opened = now;
    return LS_OK;
}

void ls_frozen_file_doubt(ls_frozen_file *f) { f->opened.ctime_ns = 0; }

void ls_frozen_note_set(ls_frozen_note *n, ls_hash h) {
    atomic_store(&n->hi, h.hi);
    atomic_store(&n->lo, h.lo);
    atomic_store(&n->known, true);
}

ls_hash ls_frozen_note_get(const ls_frozen_note *n) {
    if (!n || !atomic_load(&n->known)) return (ls_hash){0};
    return (ls_hash){atomic_load(&n->hi), atomic_load(&n->lo)};
}

/* ---- writing ---- */

bool ls_frozen_file_is_saved(const char *run, const ls_model *m) {
    char *path = path_in(run);
    bool there = m->frozen_count == 0 || ls_file_exists(path);
    free(path);
    return there;
}

ls_status ls_frozen_file_save(const char *run, const ls_model *m, const ls_frozen_value *values,
                              ls_error *e) {
    char *path = path_in(run), *fresh = ls_file_only_fresh_name(path);
    ls_tensor *list = LS_NEW_ARRAY(ls_tensor, (size_t)m->nparams);
    size_t n = 0;
    for (int wide = 1; wide >= 0; wide--) /* f32 first, which has to be aligned to 4 bytes */
        for (int i = 0; i < m->nparams; i++)
            if (m->params[i].frozen && (values[i].type == LS_BLOCK_F32) == wide)
                list[n++] = ls_state_frozen_tensor(&m->params[i], values[i]);
    ls_status s = ls_safetensors_write(fresh, list, n, e);
    if (s == LS_OK) s = ls_file_rename(fresh, path, e);
    if (s == LS_OK) s = ls_file_sync_dir(run, e);
    free(list);
    free(fresh);
    free(path);
    return s;
}

ls_status ls_frozen_draw(const ls_model *m, const ls_config *c, float *buffer, ls_error *e) {
    for (int i = 0; i < m->nparams; i++) { /* of adapters: what the run begins with may lack them */
        const ls_param *p = &m->params[i];
        if (p->frozen && p->adapter)
            ls_model_init_param(m, (uint64_t)c->train.seed, i, 0, p->count, buffer + p->offset);
    }
    if (*c->train.from) return ls_checkpoint_load_frozen(c->train.from, m, buffer, e);
    if (*c->model.from) return ls_pretrained_load_frozen(c->model.from, m, buffer, e);
    ls_frozen_init(m, (uint64_t)c->train.seed, buffer);
    return LS_OK;
}

/* The values with which a run begins, in memory. */
typedef struct drawn {
    void *buffer;
    size_t nbytes;
    ls_frozen_value *values; /* [nparams] */
} drawn;

static void drawn_free(drawn *d) {
    free(d->values);
    ls_unmap(d->buffer, d->nbytes);
}

/* On failure there is nothing to free. */
static ls_status draw(const ls_model *m, const ls_config *c, drawn *d, ls_error *e) {
    *d = (drawn){.nbytes = m->frozen_floats * sizeof(float)};
    LS_TRY(ls_map(d->nbytes, "frozen parameters", &d->buffer, e));
    d->values = LS_NEW_ARRAY(ls_frozen_value, (size_t)m->nparams);
    ls_frozen_place(m, LS_F32, d->buffer, d->values);
    ls_status s = ls_frozen_draw(m, c, d->buffer, e);
    if (s != LS_OK) drawn_free(d);
    return s;
}

/* Saves the frozen values of a published model in the types that its files have. */
static ls_status make_pretrained(const char *run, const ls_model *m, const char *from,
                                 ls_error *e) {
    ls_pretrained f;
    LS_TRY(ls_pretrained_open(from, m, &f, e));
    ls_status s = ls_frozen_file_save(run, m, f.values, e);
    if (s == LS_OK) s = ls_guard_check(e);
    ls_pretrained_close(&f);
    return s;
}

ls_status ls_frozen_file_make(const char *run, const ls_model *m, const ls_config *c, ls_error *e) {
    drawn d;
    if (m->frozen_count == 0) return LS_OK;
    if (*c->model.from && !*c->train.from) return make_pretrained(run, m, c->model.from, e);
    LS_TRY(draw(m, c, &d, e));
    ls_status s = ls_frozen_file_save(run, m, d.values, e);
    drawn_free(&d);
    return s;
}

ls_status ls_frozen_write_all(const ls_train_state *state, const ls_frozen_value *values,
                              const ls_config *c, const char *path, ls_error *e) {
    drawn d = {0};
    ls_train_state all = *state;
    if (!values) LS_TRY(draw(state->model, c, &d, e));
    all.frozen = values ? values : d.values;
    ls_status s = ls_state_write_weights(&all, path, e);
    drawn_free(&d);
    return s;
}

/* ---- of checkpoints ---- */

static bool has_hash(const char *path, ls_hash want) {
    ls_hash h;
    return ls_file_hash(path, &h, NULL, NULL) == LS_OK && ls_hash_same(h, want);
}

/* Puts a copy, if it has this hash, into the place of `to`. */
static ls_status copy(const char *from, const char *to, ls_hash want, ls_error *e) {
    enum { PIECE = 256 << 10 };
    char *fresh = ls_file_only_fresh_name(to), *piece = ls_alloc(PIECE);
    ls_file f = {.fd = -1};
    ssize_t n = 0;
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    ls_hasher *hasher = ls_hasher_new();
    ls_status s = fd >= 0 ? ls_file_create(fresh, &f, e) : LS_EIO;
    while (s == LS_OK && ((n = read(fd, piece, PIECE)) > 0 || (n < 0 && errno == EINTR))) {
        if (n < 0) continue;
        ls_hasher_add(hasher, piece, (size_t)n);
        s = ls_file_put(&f, piece, (size_t)n, e);
    }
    if (fd < 0 || n < 0) s = ls_fail(e, LS_EIO, "%s: can't be read: %s", from, strerror(errno));
    bool right = ls_hash_same(ls_hasher_finish(hasher), want);
    if (s == LS_OK && !right) s = fail_other(from, e);
    if (s == LS_OK)
        s = ls_file_close(&f, e);
    else if (f.fd >= 0)
        ls_file_discard(&f);
    if (s == LS_OK) s = ls_file_rename(fresh, to, e);
    if (fd >= 0) close(fd);
    free(piece);
    free(fresh);
    return s;
}

static bool is_linked(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Puts a link to a good file, or a copy, into the place of a checkpoint's. */
static ls_status replace(const char *good, const char *path, ls_hash want, ls_error *e) {
    char *fresh = ls_file_only_fresh_name(path);
    ls_status s =
        link(good, fresh) == 0 ? ls_file_rename(fresh, path, e) : copy(good, path, want, e);
    free(fresh);
    if (s == LS_OK) ls_log("%s: was damaged; restored", path);
    return s;
}

/* The hash by which the checkpoint's manifest lists its file. */
static bool listed(const char *checkpoint, ls_hash *h_p) {
    ls_manifest m;
    if (ls_manifest_read(checkpoint, &m, NULL) != LS_OK) return false;
    bool good = ls_manifest_listed(&m, LS_FROZEN_FILE, h_p);
    ls_manifest_free(&m);
    return good;
}

/* Gives all checkpoints with a damaged file a good one. Most are links of one file: it is read
 * once. */
static void replace_damaged(const char *run, const char *good, ls_hash want) {
    int64_t step = INT64_MAX;
    char *right = ls_strdup(good);
    while (ls_checkpoint_below(run, step, &step, NULL) == LS_OK && step >= 0) {
        char *folder = ls_checkpoint_path(run, step), *path = path_in(folder);
        ls_hash has;
        ls_error e;
        bool ours = listed(folder, &has) && ls_hash_same(has, want);
        if (ours && !is_linked(path, right) && !has_hash(path, want) &&
            replace(right, path, want, &e) != LS_OK)
            ls_log("%s", e.msg);
        free(folder);
        if (ours) {
            free(right);
            right = path;
        } else {
            free(path);
        }
    }
    free(right);
}

/* Links the file of the newest checkpoint, unless it is the run's own, as in runs of older
 * versions. *damaged_p: it has another content. */
static bool link_newest(const char *run, const char *own, const char *target, ls_hash want,
                        bool *damaged_p) {
    int64_t step = -1;
    if (ls_checkpoint_below(run, INT64_MAX, &step, NULL) != LS_OK || step < 0) return false;
    char *folder = ls_checkpoint_path(run, step), *path = path_in(folder);
    bool linked = !is_linked(path, own) && link(path, target) == 0, good = linked;
    if (linked && !has_hash(target, want)) {
        good = false;
        *damaged_p = true;
        unlink(target);
    }
    free(path);
    free(folder);
    return good;
}

ls_status ls_frozen_file_give(const char *run, const char *checkpoint, ls_hash want, ls_error *e) {
    char *own = path_in(run), *target = path_in(checkpoint);
    bool damaged = false;
    ls_hash has;
    ls_status s = ls_file_hash(own, &has, NULL, e);
    if (s == LS_OK && !(want.hi | want.lo)) want = has; /* nobody has opened it */
    if (s == LS_OK && !ls_hash_same(has, want)) s = fail_other(own, e);
    if (s == LS_OK && !link_newest(run, own, target, want, &damaged))
        s = copy(own, target, want, e);
    if (s == LS_OK && damaged) replace_damaged(run, target, want);
    free(own);
    free(target);
    return s;
}

ls_status ls_frozen_file_restore(const char *run, const char *checkpoint, const ls_model *m,
                                 const ls_config *c, ls_error *e) {
    bool there = ls_frozen_file_is_saved(run, m);
    if (m->frozen_count == 0 || (there && !checkpoint)) return LS_OK;
    if (!checkpoint) return ls_frozen_file_make(run, m, c, e);
    char *own = path_in(run), *other = path_in(checkpoint);
    ls_hash want;
    ls_status s = ls_file_hash(other, &want, NULL, e);
    bool good = s == LS_OK && there && has_hash(own, want);
    if (s == LS_OK && !good) s = copy(other, own, want, e);
    if (s == LS_OK && !good)
        ls_log("%s: %s; restored from %s", own,
               there ? "is not the file that this run was trained with" : "was missing",
               checkpoint);
    free(own);
    free(other);
    return s;
}

/* ---- a run whose checkpoints have lost theirs ---- */

/* Makes the file again, from what the config names, if that gives the same. */
static ls_status make_again(const char *run, const ls_model *m, const ls_config *c, ls_hash want,
                            ls_error *e) {
    char *hidden = ls_format("%s/" LS_FILE_FRESH "frozen", run), *made = path_in(hidden);
    char *own = path_in(run);
    ls_status s = ls_file_make_dirs(hidden, e);
    if (s == LS_OK) s = ls_frozen_file_make(hidden, m, c, e);
    if (s == LS_OK) s = copy(made, own, want, e);
    if (s == LS_OK) ls_log("%s: was damaged; made again", own);
    (void)ls_file_remove_tree(hidden, NULL);
    free(own);
    free(made);
    free(hidden);
    return s;
}

/* The hash that the newest checkpoint lists whose manifest can be read, and the path of a file of a
 * checkpoint that has it; NULL: none has. free() it. */
static bool find_listed(const char *run, ls_hash *want_p, char **good_p) {
    int64_t step = INT64_MAX;
    bool found = false;
    *good_p = NULL;
    while (!*good_p && ls_checkpoint_below(run, step, &step, NULL) == LS_OK && step >= 0) {
        char *folder = ls_checkpoint_path(run, step), *path = path_in(folder);
        ls_hash has;
        if (listed(folder, &has) && (!found || ls_hash_same(has, *want_p))) {
            *want_p = has;
            found = true;
            if (has_hash(path, has)) *good_p = ls_strdup(path);
        }
        free(path);
        free(folder);
    }
    return found;
}

void ls_frozen_file_repair(const char *run, const ls_model *m, const ls_config *c) {
    ls_hash want;
    char *good = NULL, *own = path_in(run);
    ls_error e;
    if (m->frozen_count && find_listed(run, &want, &good)) {
        if (!good && !has_hash(own, want) && make_again(run, m, c, want, &e) != LS_OK)
            ls_log("%s", e.msg);
        if (!good && has_hash(own, want)) {
            char *fresh = ls_file_only_fresh_name(own);
            if (copy(own, fresh, want, &e) == LS_OK)
                replace_damaged(run, fresh, want);
            else
                ls_log("%s", e.msg);
            unlink(fresh);
            free(fresh);
        } else if (good) {
            replace_damaged(run, good, want);
        }
    }
    free(good);
    free(own);
}
