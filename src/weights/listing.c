/* listing.c - see listing.h. */
#include "weights/listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "weights/blocks.h"

static void add(ls_weights_listing *l, ls_weights_row r) {
    l->rows = ls_grow(l->rows, l->n, sizeof *l->rows);
    l->rows[l->n++] = r;
}

static void list_model(ls_weights_listing *l) {
    const ls_weights *w = &l->model;
    for (size_t i = 0; i < w->n; i++) {
        const ls_weight *t = &w->list[i];
        ls_weights_row r = {
            .name = t->id.name, .type = ls_block_of(t->type)->name, .nbytes = t->nbytes};
        r.ndims = t->id.ndims;
        for (int d = 0; d < r.ndims; d++) r.dims[d] = t->id.dims[d];
        if (w->is_gguf) r.stored = t->id.gguf;
        add(l, r);
    }
    if (w->is_gguf) l->keys = &w->gguf;
    l->format = w->is_gguf ? "GGUF" : "safetensors";
}

static void list_gguf(ls_weights_listing *l) {
    for (size_t i = 0; i < l->gguf.ntensors; i++) {
        const ls_gguf_tensor *t = &l->gguf.tensors[i];
        ls_weights_row r = {
            .name = t->name, .type = ls_gguf_type_of(t->type)->name, .nbytes = t->nbytes};
        r.ndims = t->ndims;
        for (int d = 0; d < r.ndims; d++) r.dims[d] = t->dims[t->ndims - 1 - d];
        add(l, r);
    }
    l->keys = &l->gguf;
    l->format = "GGUF";
}

static void list_file(ls_weights_listing *l) {
    for (size_t i = 0; i < l->file.n; i++) {
        const ls_tensor *t = &l->file.tensors[i];
        ls_weights_row r = {.name = t->name, .type = t->dtype, .ndims = t->ndims};
        memcpy(r.dims, t->dims, sizeof r.dims);
        if (t->type != LS_NBLOCK_TYPES) r.nbytes = ls_tensor_nbytes(t);
        add(l, r);
    }
    l->format = "safetensors";
}

static bool is_safetensors(const char *path) {
    size_t n = strlen(path);
    return n > 12 && strcmp(path + n - 12, ".safetensors") == 0 && !ls_file_is_dir(path);
}

ls_status ls_weights_list(const char *path, ls_weights_listing *l, ls_error *why, ls_error *e) {
    *l = (ls_weights_listing){.path = path};
    if (is_safetensors(l->path)) {
        LS_TRY(ls_safetensors_open_any(l->path, &l->file, e));
        list_file(l);
        return LS_OK;
    }
    ls_status s = ls_weights_open(l->path, &l->model, why);
    if (s == LS_OK) {
        list_model(l);
        return LS_OK;
    }
    if (!ls_gguf_is(l->path) || ls_gguf_open(l->path, &l->gguf, NULL) != LS_OK) {
        *e = *why;
        return s;
    }
    list_gguf(l);
    return LS_OK;
}

void ls_weights_listing_free(ls_weights_listing *l) {
    ls_weights_close(&l->model);
    ls_gguf_close(&l->gguf);
    ls_safetensors_close(&l->file);
    free(l->rows);
}

size_t ls_weights_listing_nbytes(const ls_weights_listing *l) {
    size_t nbytes = 0;
    for (size_t i = 0; i < l->n; i++) nbytes += l->rows[i].nbytes;
    return nbytes;
}
