/* pretrained.c - see pretrained.h. */
#include "storage/pretrained.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/guard.h"
#include "base/intern.h"
#include "config/needs.h"
#include "model/frozen.h"
#include "model/tensor_part.h"
#include "networks/llama.h"
#include "storage/adapter_file.h"

enum { PART = 1 << 20 }; /* floats that are read at a time */

static ls_status make_absolute(ls_config *c, ls_error *e) {
    char *path = realpath(c->model.from, NULL);
    if (!path)
        return ls_fail(e, LS_EIO,
                       "model.from: %s: can't be opened: %s; models are not downloaded: "
                       "name a directory of this host (docs/guide/pretrained.md)",
                       c->model.from, strerror(errno));
    if (!ls_file_is_dir(path)) {
        free(path);
        return ls_fail(e, LS_EINVAL,
                       "model.from: %s: is a file, and a directory is needed: "
                       "`lockstep import %s -o models/NAME` makes one",
                       c->model.from, c->model.from);
    }
    bool is_short = strlen(path) < LS_CONFIG_TEXT;
    if (is_short) c->model.from = ls_intern(path);
    free(path);
    return is_short ? LS_OK
                    : ls_fail(e, LS_EINVAL, "model.from: the path is longer than %d bytes",
                              LS_CONFIG_TEXT - 1);
}

/* A run that continues has the keys that it took from the model, which need not be there any more;
 * its context is not one of them. */
static void take_up(ls_config *c, const char *run) {
    char *path = ls_format("%s/config.yaml", run), *from = realpath(c->model.from, NULL);
    ls_config *was = LS_NEW(ls_config);
    bool read = ls_config_read(path, was, NULL) == LS_OK && *was->model.from;
    if (read && (!from || strcmp(from, was->model.from) == 0)) {
        was->model.context = c->model.context;
        if (*c->model.adapter && !c->lora.rank) c->lora = was->lora;
        c->model = was->model;
    }
    free(was);
    free(from);
    free(path);
}

ls_status ls_pretrained_resolve(ls_config *c, const char *run, ls_error *e) {
    if (!*c->model.from) return LS_OK;
    if (run && ls_file_exists_in(run, "config.yaml")) {
        take_up(c, run);
        return LS_OK;
    }
    LS_TRY(make_absolute(c, e));
    LS_TRY(ls_llama_adopt(c, e));
    LS_TRY(ls_adapter_file_adopt(c, e));
    return ls_config_check_needs(c, true, c->model.from, e);
}

/* ---- weights ---- */

typedef struct reading {
    const ls_train_state *s;
    const ls_weights *w;
    float *to;   /* the buffer of trained parameters, or that of frozen ones */
    float *part; /* [rows of PART floats, at least one row] */
} reading;

/* The tensors that a parameter is made of: one, or one for each expert. */
static int parts_of(const ls_param *p) { return p->ndims == 3 ? (int)p->dims[0] : 1; }

/* Does it have rows or columns of a tensor? A slice of experts has whole tensors. */
static bool is_cut(const ls_param *p) { return p->cut.part.all && p->ndims < 3; }

static int64_t length_of(const ls_param *p, int dim) {
    return is_cut(p) ? ls_tensor_part_dim(p, dim) : p->dims[dim];
}

/* GPT-2 has learned a vector for each position: a shorter context takes the first of them. */
static bool fits(const ls_weight *w, const ls_param *p) {
    bool positions = strcmp(p->name, "wpe.weight") == 0 && w->id.dims[0] > p->dims[0];
    int d = p->ndims == 3;
    return (w->id.dims[0] == length_of(p, d) || positions) &&
           (p->ndims == 1 || w->id.dims[1] == length_of(p, d + 1));
}

static ls_status find(const ls_weights *files, const ls_param *p, int part, const ls_weight **w_p,
                      ls_error *e) {
    char name[LS_NAME];
    ls_tensor_part_name(p, name);
    const ls_weight *w =
        ls_weights_find_param(files, name, p->ndims == 3 ? (int)p->cut.part.first + part : -1);
    if (!w || !fits(w, p))
        return ls_fail(e, LS_EINVAL, "%s: has no tensor '%s' of the model's shape", files->path,
                       p->name);
    *w_p = w;
    return LS_OK;
}

/* A parameter that is a slice of a tensor, and where it is read to. */
typedef struct slice {
    const ls_weights *files;
    const ls_weight *w; /* the tensor */
    const ls_param *p;
    float *room; /* [rows of PART floats, at least one row] of the tensor */
    float *out;  /* [count] */
} slice;

/* Copies what the slice has of the tensor's rows [first, end). */
static ls_status read_some(const slice *s, int64_t first_row, int64_t end_row, ls_error *e) {
    size_t width = s->w->id.ndims > 1 ? (size_t)s->w->id.dims[1] : 1;
    size_t first = (size_t)first_row * width, end = (size_t)end_row * width;
    LS_TRY(ls_weights_rows(s->files, s->w, first_row, end_row, s->room, e));
    for (size_t i = 0; i < s->p->count;) {
        size_t at = 0, n = ls_tensor_part_run(s->p, i, &at);
        size_t a = at > first ? at : first, b = at + n < end ? at + n : end;
        if (a < b) memcpy(s->out + i + (a - at), s->room + (a - first), (b - a) * sizeof *s->out);
        i += n;
    }
    return LS_OK;
}

/* out [count] = a parameter that is a slice of a tensor. */
static ls_status read_slice(const ls_weights *files, const ls_param *p, float *out, ls_error *e) {
    slice s = {.files = files, .p = p, .out = out};
    LS_TRY(find(files, p, 0, &s.w, e));
    int64_t rows = s.w->id.dims[0], width = s.w->id.ndims > 1 ? s.w->id.dims[1] : 1;
    int64_t most = width < PART ? PART / width : 1;
    s.room = LS_NEW_ARRAY(float, (size_t)(most * width));
    ls_status status = LS_OK;
    for (int64_t i = 0; status == LS_OK && i < rows; i += most)
        status = read_some(&s, i, rows - i < most ? rows : i + most, e);
    free(s.room);
    return status;
}

/* Part `part`, all of it from `offset` on in the flat buffer. */
static ls_status read_part(const reading *r, const ls_param *p, int part, size_t offset,
                           ls_error *e) {
    const ls_weight *w = NULL;
    size_t row = p->ndims > 1 ? (size_t)p->dims[p->ndims - 1] : 1;
    size_t rows = p->count / (size_t)parts_of(p) / row;
    LS_TRY(find(r->w, p, part, &w, e));
    size_t most = row < PART ? PART / row : 1;
    for (size_t i = 0; i < rows; i += most) {
        size_t end = rows - i < most ? rows : i + most;
        size_t first = offset + i * row, last = offset + end * row;
        if (!ls_state_put(r->s, r->to, first, last, NULL)) continue;
        LS_TRY(ls_weights_rows(r->w, w, (int64_t)i, (int64_t)end, r->part, e));
        ls_state_put(r->s, r->to, first, last, r->part);
    }
    return LS_OK;
}

static ls_status read_param(const reading *r, const ls_param *p, ls_error *e) {
    int parts = parts_of(p);
    if (is_cut(p) && ls_state_put(r->s, r->to, p->offset, p->offset + p->count, NULL)) {
        float *x = LS_NEW_ARRAY(float, p->count);
        ls_status s = read_slice(r->w, p, x, e);
        if (s == LS_OK) ls_state_put(r->s, r->to, p->offset, p->offset + p->count, x);
        free(x);
        return s;
    }
    for (int i = 0; !is_cut(p) && i < parts; i++)
        LS_TRY(read_part(r, p, i, p->offset + p->count / (size_t)parts * (size_t)i, e));
    return LS_OK;
}

/* Reads the trained parameters, or the frozen ones. */
static ls_status read_all(const char *path, const ls_train_state *s, bool frozen, float *to,
                          ls_error *e) {
    const ls_model *m = s->model;
    ls_weights w = {0};
    LS_TRY(ls_weights_open(path, &w, e));
    size_t widest = PART;
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].ndims > 1 && (size_t)m->params[i].dims[m->params[i].ndims - 1] > widest)
            widest = (size_t)m->params[i].dims[m->params[i].ndims - 1];
    reading r = {s, &w, to, LS_NEW_ARRAY(float, widest)};
    ls_status status = LS_OK;
    for (int i = 0; status == LS_OK && i < m->nparams; i++)
        if (m->params[i].frozen == frozen && !m->params[i].adapter)
            status = read_param(&r, &m->params[i], e);
    free(r.part);
    ls_weights_close(&w);
    return status;
}

ls_status ls_pretrained_load(const char *path, const ls_train_state *s, ls_error *e) {
    return read_all(path, s, false, s->flat.of[0], e);
}

ls_status ls_pretrained_load_frozen(const char *path, const ls_model *m, float *buffer,
                                    ls_error *e) {
    return read_all(path, &(ls_train_state){.model = m}, true, buffer, e);
}

/* ---- as the files have them ---- */

/* The rows of a file of pairs, in canonical order. */
static void *order_rows(const ls_weights *files, const ls_weight *w) {
    size_t row = ls_block_nbytes(w->type, w->id.dims[1]);
    char *copy = ls_alloc(w->nbytes);
    for (int64_t i = 0; i < w->id.dims[0]; i++)
        memcpy(copy + (size_t)i * row,
               w->data + (size_t)ls_name_pair_row(files->arch.head_dim, i) * row, row);
    return copy;
}

/* Copies the parts of a parameter behind each other: as they are stored, if all are of one type
 * that products read; else in f32. */
static ls_status open_parts(ls_pretrained *f, const ls_model *m, int i, ls_error *e) {
    const ls_param *p = &m->params[i];
    int parts = parts_of(p);
    const ls_weight *first = NULL, *w = NULL;
    LS_TRY(find(&f->files, p, 0, &first, e));
    bool as_is = ls_model_reads_stored(m, i) || first->type == LS_BLOCK_F32;
    for (int k = 1; k < parts; k++) {
        LS_TRY(find(&f->files, p, k, &w, e));
        as_is = as_is && w->type == first->type;
    }
    ls_block_type type = as_is ? first->type : LS_BLOCK_F32;
    size_t nbytes = ls_block_nbytes(type, (int64_t)p->count / parts);
    char *to = f->copies[i] = ls_alloc(nbytes * (size_t)parts);
    f->values[i] = (ls_frozen_value){.data = to, .type = type};
    for (int k = 0; k < parts; k++, to += nbytes) {
        LS_TRY(find(&f->files, p, k, &w, e));
        if (as_is)
            memcpy(to, w->data, nbytes);
        else
            LS_TRY(ls_weights_rows(&f->files, w, 0, p->dims[1], (float *)(void *)to, e));
    }
    return ls_guard_check(e);
}

ls_status ls_pretrained_open_param(ls_pretrained *f, const ls_model *m, int i, ls_error *e) {
    const ls_param *p = &m->params[i];
    const ls_weight *w = NULL;
    if (p->ndims == 3) return open_parts(f, m, i, e);
    LS_TRY(find(&f->files, p, 0, &w, e));
    if (is_cut(p)) {
        float *x = f->copies[i] = LS_NEW_ARRAY(float, p->count);
        f->values[i] = (ls_frozen_value){.data = x, .type = LS_BLOCK_F32};
        return read_slice(&f->files, p, x, e);
    }
    f->values[i] = (ls_frozen_value){.data = w->data, .type = w->type};
    bool as_is = ls_model_reads_stored(m, i) || w->type == LS_BLOCK_F32;
    bool whole = p->ndims > 1 && w->order == LS_ROWS_PAIRS;
    if (as_is && w->order == LS_ROWS_SAME) return LS_OK;
    if (as_is && whole) {
        f->copies[i] = order_rows(&f->files, w);
    } else {
        f->copies[i] = LS_NEW_ARRAY(float, p->count);
        LS_TRY(ls_weights_rows(&f->files, w, 0, p->dims[0], f->copies[i], e));
        f->values[i].type = LS_BLOCK_F32;
    }
    f->values[i].data = f->copies[i];
    return ls_guard_check(e);
}

void ls_pretrained_close_param(ls_pretrained *f, int i) {
    free(f->copies[i]);
    f->copies[i] = NULL;
    f->values[i] = (ls_frozen_value){0};
}

/* Its value, if the files have it in this type as a whole and in the model's order. */
static ls_status open_in_place(ls_pretrained *f, const ls_model *m, int i, ls_dtype type,
                               ls_error *e) {
    const ls_param *p = &m->params[i];
    const ls_weight *w = NULL;
    if (p->ndims == 3 || is_cut(p)) return LS_OK;
    LS_TRY(find(&f->files, p, 0, &w, e));
    if (w->type == ls_block_of_dtype(type) && w->order == LS_ROWS_SAME)
        f->values[i] = (ls_frozen_value){.data = w->data, .type = w->type};
    return LS_OK;
}

ls_status ls_pretrained_open_for(const char *path, const ls_model *m, ls_dtype type,
                                 ls_pretrained *p_p, ls_error *e) {
    ls_pretrained f = {.nparams = m->nparams};
    LS_TRY(ls_weights_open(path, &f.files, e));
    f.values = LS_NEW_ARRAY(ls_frozen_value, (size_t)m->nparams);
    f.copies = LS_NEW_ARRAY(void *, (size_t)m->nparams);
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < m->nparams; i++) {
        if (!m->params[i].frozen) continue;
        s = type == LS_F32 ? ls_pretrained_open_param(&f, m, i, e)
                           : open_in_place(&f, m, i, type, e);
    }
    if (s == LS_OK)
        *p_p = f;
    else
        ls_pretrained_close(&f);
    return s;
}

ls_status ls_pretrained_open(const char *path, const ls_model *m, ls_pretrained *p_p, ls_error *e) {
    return ls_pretrained_open_for(path, m, LS_F32, p_p, e);
}

void ls_pretrained_close(ls_pretrained *f) {
    for (int i = 0; f->copies && i < f->nparams; i++) free(f->copies[i]);
    free(f->copies);
    free(f->values);
    ls_weights_close(&f->files);
    *f = (ls_pretrained){0};
}

size_t ls_pretrained_nbytes(const ls_pretrained *f, const ls_model *m) {
    size_t nbytes = 0;
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].frozen && f->values[i].data)
            nbytes += ls_block_nbytes(f->values[i].type, (int64_t)m->params[i].count);
    return nbytes;
}
