/* part.c - see part.h. */
#include "storage/part.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

typedef struct work {
    const ls_plan *plan;
    const ls_part_file *files;
    ls_safetensors there[LS_PART_FILES]; /* the files as they are on disk */
    ls_file out[LS_PART_FILES];          /* fd -1: the files are only read */
    ls_hasher *hasher;                   /* of the current worker */
} work;

static char *note_of(const char *folder, int worker) {
    return ls_format("%s/part-%d", folder, worker);
}

static ls_status close_all(work *w, ls_status s, ls_error *e) {
    for (int i = 0; i < LS_PART_FILES; i++) {
        ls_safetensors_close(&w->there[i]);
        if (w->out[i].fd >= 0 && s == LS_OK)
            s = ls_file_close(&w->out[i], e);
        else if (w->out[i].fd >= 0)
            ls_file_discard(&w->out[i]);
    }
    return s;
}

static ls_status open_all(work *w, bool writes, ls_error *e) {
    ls_status s = LS_OK;
    for (int i = 0; i < LS_PART_FILES; i++) w->out[i].fd = -1;
    for (int i = 0; s == LS_OK && i < LS_PART_FILES; i++) {
        s = ls_safetensors_open(w->files[i].path, &w->there[i], e);
        if (s == LS_OK && writes) s = ls_file_open(w->files[i].path, &w->out[i], e);
    }
    return s == LS_OK ? LS_OK : close_all(w, s, e);
}

/* Writes, or reads, elements [first, end) of a tensor, and hashes them. */
static ls_status put(work *w, int file, const ls_tensor *t, size_t first, size_t end, ls_error *e) {
    const ls_safetensors *there = &w->there[file];
    const ls_tensor *place = ls_safetensors_find(there, t->name);
    size_t nbytes = (end - first) * sizeof(float);
    if (!place || place->count != t->count)
        return ls_fail(e, LS_EINVAL, "%s: belongs to another checkpoint", w->files[file].path);
    bool writes = w->out[file].fd >= 0;
    const float *data = (const float *)(writes ? t->data : place->data) + first;
    size_t at = (size_t)((const uint8_t *)place->data - there->map.data) + first * sizeof(float);
    if (writes) LS_TRY(ls_file_put_at(&w->out[file], data, nbytes, at, e));
    ls_hasher_add(w->hasher, data, nbytes);
    return LS_OK;
}

/* A state may have fewer elements than its parameter, which then has one owner. */
static size_t at_most(size_t n, size_t most) { return n < most ? n : most; }

int ls_part_nholders(const ls_plan *p) {
    if (p->share.islands || p->share.divides) return p->share.nworkers;
    return p->share.shards_moments ? p->share.nshards : 1;
}

/* The part of a parameter that lies in elements `own` of the flat buffers. */
static ls_status put_param(work *w, int param, int bucket, ls_range own, ls_error *e) {
    const ls_param *p = &w->plan->share.model->params[param];
    int island = w->plan->share.buckets[bucket].island;
    size_t base = ls_share_base(&w->plan->share, bucket);
    own.first -= base;
    own.end -= base;
    size_t first = own.first > p->offset ? own.first : p->offset;
    size_t end = own.end < p->offset + p->count ? own.end : p->offset + p->count;
    if (p->frozen || p->window.rows || first >= end) return LS_OK;
    for (int i = 0; i < LS_PART_FILES; i++) {
        const ls_part_file *f = &w->files[i];
        for (int k = f->tensors->from[param]; k < f->tensors->from[param + 1]; k++) {
            const ls_tensor *t = &f->tensors->list[k];
            if (!f->tensors->vws[k] && f->tensors->replica[k] == island)
                LS_TRY(put(w, i, t, at_most(first - p->offset, t->count),
                           at_most(end - p->offset, t->count), e));
        }
    }
    return LS_OK;
}

/* The blocks of tables, with their states, that a worker has. */
static ls_status put_tables(work *w, int worker, ls_error *e) {
    const ls_model *m = w->plan->share.model;
    ls_table_block b = LS_TABLE_BLOCKS;
    while (ls_table_block_next(m, &b)) {
        if (b.number % w->plan->share.nworkers != worker) continue;
        for (int i = 0; i < LS_PART_FILES; i++) {
            const ls_state_tensors *f = w->files[i].tensors;
            for (int k = f->from[b.param]; k < f->from[b.param + 1]; k++) {
                size_t each = f->list[k].count / (size_t)m->params[b.param].window.rows;
                LS_TRY(put(w, i, &f->list[k], (size_t)b.first * each, (size_t)b.end * each, e));
            }
        }
    }
    return LS_OK;
}

/* The errors of the virtual workers that a worker runs. */
static ls_status put_errors(work *w, int worker, ls_error *e) {
    for (int i = 0; i < LS_PART_FILES; i++) {
        const ls_state_tensors *t = w->files[i].tensors;
        for (size_t k = 0; k < t->n; k++)
            if (t->vws[k] && ls_share_runs_vw(&w->plan->share, worker, t->vws[k] - 1))
                LS_TRY(put(w, i, &t->list[k], 0, t->list[k].count, e));
    }
    return LS_OK;
}

static ls_status put_worker(work *w, int worker, ls_hash *hash_p, ls_error *e) {
    const ls_plan *p = w->plan;
    ls_status s = LS_OK;
    w->hasher = ls_hasher_new();
    for (int k = 0; k < p->share.nbuckets && worker < ls_part_nholders(p); k++) {
        ls_range own = ls_share_owned(&p->share, k, worker);
        for (int i = 0; s == LS_OK && i < p->share.model->nparams; i++)
            s = put_param(w, i, k, own, e);
    }
    if (s == LS_OK) s = put_tables(w, worker, e);
    if (s == LS_OK) s = put_errors(w, worker, e);
    *hash_p = ls_hasher_finish(w->hasher);
    return s;
}

/* A note asserts that the data is on disk, so it is written after all of it. */
static ls_status write_notes(const char *folder, int first, int n, const ls_hash *hashes,
                             ls_error *e) {
    char text[LS_HASH_TEXT];
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < n; i++) {
        char *path = note_of(folder, first + i);
        ls_hash_text(hashes[i], text);
        s = ls_file_write(path, text, sizeof text - 1, e);
        free(path);
    }
    return s;
}

ls_status ls_part_write(const char *folder, const ls_part_file *files, const ls_plan *p, int first,
                        int end, ls_error *e) {
    work w = {.plan = p, .files = files};
    LS_TRY(open_all(&w, true, e));
    ls_hash *hashes = LS_NEW_ARRAY(ls_hash, (size_t)(end - first));
    ls_status s = LS_OK;
    for (int i = first; s == LS_OK && i < end; i++) s = put_worker(&w, i, &hashes[i - first], e);
    s = close_all(&w, s, e);
    if (s == LS_OK) s = write_notes(folder, first, end - first, hashes, e);
    free(hashes);
    return s;
}

static ls_status check_worker(work *w, const char *folder, int worker, ls_error *e) {
    char *path = note_of(folder, worker), text[LS_HASH_TEXT];
    ls_buf note = {0};
    ls_hash hash;
    ls_status s = ls_file_read(path, LS_HASH_TEXT, &note, e);
    if (s == LS_OK) s = put_worker(w, worker, &hash, e);
    if (s == LS_OK) {
        ls_hash_text(hash, text);
        if (!note.data || strcmp(note.data, text) != 0)
            s = ls_fail(e, LS_EIO, "%s: the data on disk differ from what worker %d wrote", folder,
                        worker);
    }
    if (s == LS_OK) unlink(path);
    ls_buf_free(&note);
    free(path);
    return s;
}

ls_status ls_part_check(const char *folder, const ls_part_file *files, const ls_plan *p, int end,
                        ls_error *e) {
    work w = {.plan = p, .files = files};
    for (int i = 0; i < LS_PART_FILES; i++) ls_file_forget(files[i].path);
    LS_TRY(open_all(&w, false, e));
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < end; i++) s = check_worker(&w, folder, i, e);
    return close_all(&w, s, e);
}
