/* weights.c - see weights.h. */
#include "weights/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/guard.h"
#include "weights/blocks.h"
#include "weights/config_json.h"
#include "weights/gguf_model.h"

/* ---- the tensors that the architecture needs ---- */

static int by_name(const void *a, const void *b) {
    const ls_weight *const *x = a, *const *y = b;
    return strcmp((*x)->id.name, (*y)->id.name);
}

static void list_names(ls_weights *w) {
    w->n = (size_t)ls_name_count(&w->arch);
    w->list = LS_NEW_ARRAY(ls_weight, w->n);
    w->by_name = LS_NEW_ARRAY(ls_weight *, w->n);
    for (size_t i = 0; i < w->n; i++) {
        ls_name_at(&w->arch, (int)i, &w->list[i].id);
        w->by_name[i] = &w->list[i];
    }
    qsort(w->by_name, w->n, sizeof *w->by_name, by_name);
}

static ls_weight *find(const ls_weights *w, const char *name) {
    ls_weight key, *at = &key;
    if (strlen(name) >= sizeof key.id.name) return NULL;
    memcpy(key.id.name, name, strlen(name) + 1);
    ls_weight **found = bsearch(&at, w->by_name, w->n, sizeof *w->by_name, by_name);
    return found ? *found : NULL;
}

const ls_weight *ls_weights_find(const ls_weights *w, const char *name) { return find(w, name); }

const ls_weight *ls_weights_find_param(const ls_weights *w, const char *param, int expert) {
    const ls_weight *same = find(w, param);
    if (same && expert < 0) return same;
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].id.expert == expert && strcmp(w->list[i].id.param, param) == 0)
            return &w->list[i];
    return NULL;
}

static void put_dims(ls_buf *b, int ndims, const int64_t *dims) {
    ls_buf_printf(b, "[");
    for (int i = 0; i < ndims; i++) ls_buf_printf(b, "%s%lld", i ? ", " : "", (long long)dims[i]);
    ls_buf_printf(b, "]");
}

/* dims: outermost first, as those of the weight. */
static ls_status check_dims(const ls_weights *w, const ls_weight *t, const char *stored, int ndims,
                            const int64_t *dims, ls_error *e) {
    const int together = w->is_gguf && t->id.expert >= 0; /* a tensor of all experts */
    const int n = together + t->id.ndims;
    int64_t want[3] = {w->arch.experts};
    for (int i = 0; i < t->id.ndims; i++)
        want[together + i] = t->order == LS_ROWS_TRANSPOSED ? t->id.dims[1 - i]
                             : i == 0                       ? t->id.rows
                                                            : t->id.dims[i];
    bool same = ndims == n;
    for (int i = 0; same && i < ndims; i++) same = dims[i] == want[i];
    if (same) return LS_OK;
    ls_buf text = {0};
    put_dims(&text, ndims, dims);
    ls_buf_printf(&text, "; the architecture needs ");
    put_dims(&text, n, want);
    ls_status s = ls_fail(e, LS_EINVAL, "%s: tensor '%s' is %s", w->path, stored, text.data);
    ls_buf_free(&text);
    return s;
}

static ls_status fail_missing(const ls_weights *w, const char *name, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%s: has no tensor '%s', which a model of the family %s needs",
                   w->path, name, ls_family_name(w->arch.family));
}

static ls_status fail_unknown(const ls_weights *w, const char *name, ls_error *e) {
    return ls_fail(e, LS_EINVAL,
                   "%s: has a tensor '%s', which no model of the family %s with this config has",
                   w->path, name, ls_family_name(w->arch.family));
}

static ls_status fail_type(const ls_weights *w, const char *name, const char *type, ls_error *e) {
    ls_buf types = {0};
    for (int i = 0; i < LS_NBLOCK_TYPES; i++)
        ls_buf_printf(&types, "%s%s", i ? ", " : "", ls_block_of((ls_block_type)i)->name);
    ls_status s = ls_fail(e, LS_EINVAL,
                          "%s: tensor '%s' is of type %s, which can't be read; take a file of this "
                          "model in one of the types %s",
                          w->path, name, type, types.data);
    ls_buf_free(&types);
    return s;
}

static bool has_tensor(const ls_weights *w, const ls_name *id) {
    if (w->is_gguf) return ls_gguf_find_tensor(&w->gguf, id->gguf);
    char *prefixed = ls_format("transformer.%s", id->file); /* GPT-2's may be */
    bool has = ls_shards_find(&w->shards, id->file) || ls_shards_find(&w->shards, prefixed);
    free(prefixed);
    return has;
}

/* Before names are listed: a config may ask for a million of them. */
static ls_status check_present(const ls_weights *w, ls_error *e) {
    ls_name id;
    for (int i = 0; ls_name_at(&w->arch, i, &id); i++)
        if (!has_tensor(w, &id)) return fail_missing(w, w->is_gguf ? id.gguf : id.file, e);
    return LS_OK;
}

/* The tensor's rows of those that the file's has. */
static void take_rows(ls_weight *t) {
    if (t->id.rows == t->id.dims[0]) return;
    t->data += ls_block_nbytes(t->type, t->id.first * t->id.dims[1]);
    t->nbytes = ls_block_nbytes(t->type, t->id.dims[0] * t->id.dims[1]);
}

/* ---- GGUF ---- */

static ls_status bind_gguf_tensor(const ls_weights *w, ls_weight *t, const ls_gguf_tensor *from,
                                  ls_error *e) {
    int64_t dims[LS_GGUF_MAX_DIMS];
    for (int i = 0; i < from->ndims; i++) dims[i] = from->dims[from->ndims - 1 - i];
    t->order = t->id.order;
    LS_TRY(check_dims(w, t, from->name, from->ndims, dims, e));
    if (!ls_block_of_gguf(from->type, &t->type))
        return fail_type(w, from->name, ls_gguf_type_of(from->type)->name, e);
    t->data = from->data;
    t->nbytes = from->nbytes;
    take_rows(t);
    if (t->id.expert < 0) return LS_OK;
    t->nbytes /= (size_t)w->arch.experts;
    t->data += (size_t)t->id.expert * t->nbytes;
    return LS_OK;
}

static ls_status bind_norms(ls_weights *w, ls_error *e) {
    const ls_gguf_value *v = ls_gguf_find(&w->gguf, LS_GGUF_NORMS);
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        w->list[i].norms_at = n;
        if (w->list[i].order == LS_ROWS_PLUS_ONE) n += (size_t)w->list[i].id.dims[0];
    }
    if (v && !(v->is_array && v->kind == LS_GGUF_F32 && v->n == n))
        return ls_fail(e, LS_EINVAL,
                       "%s: " LS_GGUF_NORMS
                       " must be an array of %zu f32, the weights of all norms",
                       w->path, n);
    w->norms = v;
    return LS_OK;
}

static ls_status bind_gguf(ls_weights *w, ls_error *e) {
    const ls_gguf *g = &w->gguf;
    bool *used = LS_NEW_ARRAY(bool, g->ntensors);
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < w->n; i++) {
        const ls_gguf_tensor *t = ls_gguf_find_tensor(g, w->list[i].id.gguf);
        used[t - g->tensors] = true;
        s = bind_gguf_tensor(w, &w->list[i], t, e);
    }
    for (size_t i = 0; s == LS_OK && i < g->ntensors; i++)
        if (!used[i] && !ls_gguf_is_rotation(g->tensors[i].name))
            s = fail_unknown(w, g->tensors[i].name, e);
    free(used);
    return s == LS_OK ? bind_norms(w, e) : s;
}

/* ---- safetensors ---- */

/* Some programs save the head of a tied model as well: it must be the embedding. */
static ls_status check_tied(const ls_weights *w, const ls_tensor *head, ls_error *e) {
    const ls_weight *t = &w->list[0]; /* the embedding is the first */
    LS_TRY(check_dims(w, t, head->name, head->ndims, head->dims, e));
    if (head->type == t->type && memcmp(head->data, t->data, t->nbytes) == 0) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: tie_word_embeddings is true, but tensor '%s' differs from '%s'", w->path,
                   head->name, t->id.name);
}

static ls_status bind_part(const ls_weights *w, const ls_tensor *from, ls_weight *t, ls_error *e) {
    if (t->data)
        return ls_fail(e, LS_EINVAL, "%s: tensor '%s' is there twice: with and without a prefix",
                       w->path, from->name);
    LS_TRY(check_dims(w, t, from->name, from->ndims, from->dims, e));
    if (from->type == LS_NBLOCK_TYPES) return fail_type(w, from->name, from->dtype, e);
    t->type = from->type;
    t->data = from->data;
    t->nbytes = ls_tensor_nbytes(from);
    take_rows(t);
    return LS_OK;
}

static ls_status bind_tensor(ls_weights *w, const ls_tensor *from, const ls_tensor **head_p,
                             ls_error *e) {
    const char *name = ls_name_canonical(&w->arch, from->name);
    if (ls_name_is_derived(&w->arch, name)) return LS_OK;
    if (w->arch.tied && strcmp(name, "lm_head.weight") == 0) {
        *head_p = from;
        return LS_OK;
    }
    char part[LS_NAME_MOST];
    for (int k = 0; k == 0 || ls_name_part(&w->arch, name, k, part); k++) {
        if (k == 0 && !ls_name_part(&w->arch, name, k, part)) return fail_unknown(w, name, e);
        ls_weight *t = find(w, part);
        if (!t || strcmp(t->id.file, name) != 0) return fail_unknown(w, from->name, e);
        LS_TRY(bind_part(w, from, t, e));
    }
    return LS_OK;
}

static ls_status bind_shards(ls_weights *w, ls_error *e) {
    const ls_tensor *head = NULL;
    for (size_t i = 0; i < w->shards.n; i++) LS_TRY(bind_tensor(w, w->shards.tensors[i], &head, e));
    return head ? check_tied(w, head, e) : LS_OK;
}

/* ---- opening ---- */

static ls_status open_gguf(ls_weights *w, const char *path, ls_error *e) {
    w->is_gguf = true;
    LS_TRY(ls_gguf_open(path, &w->gguf, e));
    return ls_gguf_read_architecture(&w->gguf, &w->arch, e);
}

/* config.json beside a GGUF file says the same, and perhaps the family more precisely. */
static ls_status join_config(ls_weights *w, const ls_architecture *config, ls_error *e) {
    char *difference = ls_architecture_difference(config, &w->arch);
    if (!difference) {
        ls_generation generation = w->arch.generation;
        w->arch = *config;
        w->arch.generation = generation;
        return LS_OK;
    }
    ls_status s =
        ls_fail(e, LS_EINVAL, "%s: " LS_WEIGHTS_CONFIG " differs from " LS_WEIGHTS_GGUF ": %s",
                w->path, difference);
    free(difference);
    return s;
}

static ls_status fail_no_weights(const char *folder, ls_error *e) {
    bool has = ls_file_exists_in(folder, "pytorch_model.bin");
    if (ls_file_exists_in(folder, "config.yaml"))
        return ls_fail(e, LS_EINVAL,
                       "%s: is a run, not a published model: a new run begins with it by "
                       "train.from, `lockstep ckpt show` lists its tensors, `lockstep export` "
                       "makes a published model of it",
                       folder);
    return ls_fail(e, LS_EINVAL,
                   "%s: has no " LS_SHARDS_ONE ", no " LS_SHARDS_INDEX " and no " LS_WEIGHTS_GGUF
                   "%s",
                   folder, has ? "; pytorch_model.bin can't be read, save it as safetensors" : "");
}

static ls_status open_files(ls_weights *w, const char *config, const char *gguf, ls_error *e) {
    ls_architecture arch;
    bool has_gguf = ls_file_exists(gguf), has_shards = ls_shards_exist(w->path);
    if (has_gguf && has_shards)
        return ls_fail(e, LS_EINVAL,
                       "%s: has both " LS_WEIGHTS_GGUF
                       " and safetensors files; remove what is not meant",
                       w->path);
    if (!has_gguf && !has_shards) return fail_no_weights(w->path, e);
    LS_TRY(ls_config_json_load(config, &arch, e));
    if (has_gguf) {
        LS_TRY(open_gguf(w, gguf, e));
        return join_config(w, &arch, e);
    }
    w->arch = arch;
    return ls_shards_open(w->path, &w->shards, e);
}

static ls_status open_folder(ls_weights *w, ls_error *e) {
    char *config = ls_format("%s/" LS_WEIGHTS_CONFIG, w->path);
    char *gguf = ls_format("%s/" LS_WEIGHTS_GGUF, w->path);
    char *generation = ls_format("%s/" LS_WEIGHTS_GENERATION, w->path);
    ls_status s = open_files(w, config, gguf, e);
    if (s == LS_OK) s = ls_generation_json_load(generation, &w->arch, e);
    free(config);
    free(gguf);
    free(generation);
    return s;
}

static ls_status open_path(ls_weights *w, ls_error *e) {
    LS_TRY(ls_kernels_pick(&w->kernels, e));
    LS_TRY(ls_file_check_allowed(w->path, e));
    if (!ls_file_exists(w->path))
        return ls_fail(e, LS_EIO,
                       "%s: can't be opened: No such file or directory; models are not downloaded: "
                       "name a directory "
                       "or a GGUF file of this host",
                       w->path);
    LS_TRY(ls_file_is_dir(w->path) ? open_folder(w, e) : open_gguf(w, w->path, e));
    LS_TRY(check_present(w, e));
    list_names(w);
    LS_TRY(w->is_gguf ? bind_gguf(w, e) : bind_shards(w, e));
    return ls_guard_check(e);
}

ls_status ls_weights_open(const char *path, ls_weights *w_p, ls_error *e) {
    ls_weights w = {.path = ls_strdup(path)};
    ls_status s = open_path(&w, e);
    if (s == LS_OK)
        *w_p = w;
    else
        ls_weights_close(&w);
    return s;
}

void ls_weights_close(ls_weights *w) {
    free(w->list);
    free(w->by_name);
    ls_gguf_close(&w->gguf);
    ls_shards_close(&w->shards);
    free(w->path);
    *w = (ls_weights){0};
}

/* ---- reading ---- */

enum { TILE_ROWS = 16, TILE = LS_BLOCK_MOST };

/* Rows [first, end) of [in, out] from a file's [out, in]: columns there. */
static void read_transposed(const ls_weights *w, const ls_weight *t, int64_t first, int64_t end,
                            float *out) {
    int64_t in = t->id.dims[0], n_out = t->id.dims[1];
    float tile[TILE_ROWS][TILE];
    for (int64_t i = first; i < end; i += TILE) {
        int64_t n = end - i < TILE ? end - i : TILE;
        for (int64_t o = 0; o < n_out; o += TILE_ROWS) {
            int64_t rows = n_out - o < TILE_ROWS ? n_out - o : TILE_ROWS;
            for (int64_t r = 0; r < rows; r++)
                ls_block_read(w->kernels, t->type, t->data, (o + r) * in + i, n, tile[r]);
            for (int64_t k = 0; k < n; k++)
                for (int64_t r = 0; r < rows; r++)
                    out[(i - first + k) * n_out + o + r] = tile[r][k];
        }
    }
}

/* out [n]: from 1 + an element to the element, which the file may have as well. A tensor that has
 * been changed since is right. */
static void read_plus_one(const ls_weights *w, size_t norms_at, int64_t n, float *out) {
    for (int64_t i = 0; i < n; i++) {
        float stored = out[i], whole;
        out[i] = stored - 1;
        if (!w->norms) continue;
        memcpy(&whole, w->norms->data + (norms_at + (size_t)i) * sizeof whole, sizeof whole);
        if (whole + 1 - stored == 0) out[i] = whole;
    }
}

ls_status ls_weights_rows(const ls_weights *w, const ls_weight *t, int64_t first, int64_t end,
                          float *out, ls_error *e) {
    int64_t width = t->id.ndims > 1 ? t->id.dims[1] : 1;
    switch (t->order) {
    case LS_ROWS_SAME:
        ls_block_read(w->kernels, t->type, t->data, first * width, (end - first) * width, out);
        break;
    case LS_ROWS_PAIRS:
        for (int64_t i = first; i < end; i++, out += width)
            ls_block_read(w->kernels, t->type, t->data,
                          ls_name_pair_row(w->arch.head_dim, i) * width, width, out);
        break;
    case LS_ROWS_TRANSPOSED: read_transposed(w, t, first, end, out); break;
    case LS_ROWS_PLUS_ONE:
        ls_block_read(w->kernels, t->type, t->data, first * width, (end - first) * width, out);
        read_plus_one(w, t->norms_at + (size_t)first, end - first, out);
        break;
    }
    return ls_guard_check(e);
}

/* ---- summary ---- */

size_t ls_weights_nbytes(const ls_weights *w) {
    size_t nbytes = 0;
    for (size_t i = 0; i < w->n; i++) nbytes += w->list[i].nbytes;
    return nbytes;
}

void ls_weights_put_types(const ls_weights *w, ls_buf *out) {
    size_t counts[LS_NBLOCK_TYPES] = {0};
    const char *separator = "";
    for (size_t i = 0; i < w->n; i++) counts[w->list[i].type]++;
    for (;;) {
        int most = 0;
        for (int t = 1; t < LS_NBLOCK_TYPES; t++)
            if (counts[t] > counts[most]) most = t;
        if (counts[most] == 0) return;
        ls_buf_printf(out, "%s%zu %s", separator, counts[most],
                      ls_block_of((ls_block_type)most)->name);
        counts[most] = 0;
        separator = ", ";
    }
}

char *ls_model_file(const ls_weights *w, const char *name) {
    char *path = ls_file_is_dir(w->path) ? ls_format("%s/%s", w->path, name) : NULL;
    if (path && ls_file_exists(path)) return path;
    free(path);
    return NULL;
}
