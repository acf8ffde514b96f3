/* frozen_file.c - see frozen_file.h. */
#include "storage/frozen_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "model/frozen.h"
#include "source/guard.h"
#include "storage/checkpoint.h"
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

ls_status ls_frozen_file_open(const char *folder, const ls_model *m, ls_frozen_file *f_p,
                              ls_error *e) {
    ls_frozen_file f = {.path = path_in(folder)};
    f.values = LS_NEW_ARRAY(ls_frozen_value, (size_t)m->nparams);
    ls_status s = ls_safetensors_open_stored(f.path, &f.file, e);
    if (s == LS_OK && stat(f.path, &f.opened) != 0)
        s = ls_fail(e, LS_EIO, "%s: can't be read: %s", f.path, strerror(errno));
    if (s == LS_OK) s = find_values(&f, m, e);
    if (s == LS_OK) f.hash = ls_hash_bytes(f.file.map.data, f.file.map.nbytes);
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

static bool is_same_file(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static ls_status hash_of(const char *path, ls_hash *h_p, ls_error *e) {
    ls_mapped map;
    LS_TRY(ls_file_map(path, &map, e));
    *h_p = ls_hash_bytes(map.data, map.nbytes);
    ls_file_unmap(&map);
    return LS_OK;
}

/* A file that is missing is restored before the next checkpoint. */
ls_status ls_frozen_file_verify(ls_frozen_file *f, ls_error *e) {
    struct stat now;
    ls_hash there;
    if (!f->values || stat(f->path, &now) != 0 || is_same_file(&now, &f->opened)) return LS_OK;
    LS_TRY(hash_of(f->path, &there, e));
    if (ls_hash_same(there, f->hash)) {
        f->opened = now;
        return LS_OK;
    }
    return ls_fail(
        e, LS_EINVAL,
        "%s: is not the file that this run opened; put that back and go on with --resume", f->path);
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
    char *path = path_in(run), *fresh = ls_format("%s.new", path);
    ls_tensor *list = LS_NEW_ARRAY(ls_tensor, (size_t)m->nparams);
    size_t n = 0;
    for (int wide = 1; wide >= 0; wide--) /* f32 first, which has to be aligned to 4 bytes */
        for (int i = 0; i < m->nparams; i++)
            if (m->params[i].frozen && (values[i].type == LS_BLOCK_F32) == wide)
                list[n++] = ls_state_frozen_tensor(&m->params[i], values[i]);
    unlink(fresh); /* left by a killed program */
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

/* Those of a published model stay as its files have them. */
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

static ls_status copy(const char *from, const char *to, ls_error *e) {
    ls_mapped map;
    LS_TRY(ls_file_map(from, &map, e));
    ls_status s = ls_file_write(to, map.data, map.nbytes, e);
    ls_file_unmap(&map);
    return s;
}

ls_status ls_frozen_file_link(const char *from, const char *to, ls_error *e) {
    char *source = path_in(from), *target = path_in(to);
    ls_status s = link(source, target) == 0 ? LS_OK : copy(source, target, e);
    free(source);
    free(target);
    return s;
}

/* Is the run's file that of the checkpoint? */
static ls_status compare(const char *run, const char *checkpoint, ls_error *e) {
    char *own = path_in(run), *other = path_in(checkpoint);
    struct stat a, b;
    ls_hash x = {0, 0}, y = {0, 1};
    bool linked = stat(own, &a) == 0 && stat(other, &b) == 0 && is_same_file(&a, &b);
    ls_status s = linked ? LS_OK : hash_of(own, &x, e);
    if (s == LS_OK && !linked) s = hash_of(other, &y, e);
    if (s == LS_OK && !linked && !ls_hash_same(x, y))
        s = ls_fail(e, LS_EINVAL,
                    "%s: is not the file that this run was trained with, as %s has it; remove it: "
                    "--resume restores it",
                    own, other);
    free(own);
    free(other);
    return s;
}

ls_status ls_frozen_file_restore(const char *run, const char *checkpoint, const ls_model *m,
                                 const ls_config *c, ls_error *e) {
    bool there = ls_frozen_file_is_saved(run, m);
    if (m->frozen_count == 0) return LS_OK;
    if (there) return checkpoint ? compare(run, checkpoint, e) : LS_OK;
    if (!checkpoint) return ls_frozen_file_make(run, m, c, e);
    LS_TRY(ls_frozen_file_link(checkpoint, run, e));
    ls_log("%s/" LS_FROZEN_FILE ": was missing; restored from %s", run, checkpoint);
    return LS_OK;
}
