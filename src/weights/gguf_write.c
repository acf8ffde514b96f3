/* gguf_write.c - see gguf_write.h. */
#include "weights/gguf_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/round_up.h"
#include "weights/blocks.h"

enum { ALIGNMENT = 32 };

static void put_u32(ls_buf *b, uint32_t v) { ls_buf_append(b, &v, sizeof v); }
static void put_u64(ls_buf *b, uint64_t v) { ls_buf_append(b, &v, sizeof v); }
static void put_text(ls_buf *b, const char *text, size_t n) {
    put_u64(b, n);
    ls_buf_append(b, text, n);
}

/* ---- key-value pairs ---- */

static void put_key(ls_gguf_writer *w, const char *key) {
    put_text(&w->values, key, strlen(key));
    w->nvalues++;
}

/* A value with its kind; of an array the length, too. */
static void put_value(ls_gguf_writer *w, const char *key, ls_gguf_kind kind, const void *value) {
    put_key(w, key);
    put_u32(&w->values, kind);
    ls_buf_append(&w->values, value, ls_gguf_kind_nbytes(kind));
}

static void put_array(ls_gguf_writer *w, const char *key, ls_gguf_kind kind, size_t n) {
    put_key(w, key);
    put_u32(&w->values, LS_GGUF_ARRAY);
    put_u32(&w->values, kind);
    put_u64(&w->values, n);
}

void ls_gguf_put_u32(ls_gguf_writer *w, const char *key, uint32_t value) {
    put_value(w, key, LS_GGUF_U32, &value);
}

void ls_gguf_put_f32(ls_gguf_writer *w, const char *key, float value) {
    put_value(w, key, LS_GGUF_F32, &value);
}

void ls_gguf_put_bool(ls_gguf_writer *w, const char *key, bool value) {
    uint8_t byte = value;
    put_value(w, key, LS_GGUF_BOOL, &byte);
}

void ls_gguf_put_text(ls_gguf_writer *w, const char *key, const char *text) {
    put_key(w, key);
    put_u32(&w->values, LS_GGUF_TEXT);
    put_text(&w->values, text, strlen(text));
}

void ls_gguf_put_i32s(ls_gguf_writer *w, const char *key, const int32_t *values, size_t n) {
    put_array(w, key, LS_GGUF_I32, n);
    ls_buf_append(&w->values, values, n * sizeof *values);
}

void ls_gguf_put_f32s(ls_gguf_writer *w, const char *key, const float *values, size_t n) {
    put_array(w, key, LS_GGUF_F32, n);
    ls_buf_append(&w->values, values, n * sizeof *values);
}

void ls_gguf_put_texts(ls_gguf_writer *w, const char *key, const ls_gguf_text *texts, size_t n) {
    put_array(w, key, LS_GGUF_TEXT, n);
    for (size_t i = 0; i < n; i++) put_text(&w->values, texts[i].data, texts[i].n);
}

void ls_gguf_put_value(ls_gguf_writer *w, const ls_gguf_value *v) {
    if (v->is_array) {
        put_array(w, v->key, v->kind, v->n);
    } else {
        put_key(w, v->key);
        put_u32(&w->values, v->kind);
    }
    ls_buf_append(&w->values, v->data, v->nbytes);
}

/* ---- tensors ---- */

static size_t padded(size_t n) { return ls_round_up(n, ALIGNMENT); }

void ls_gguf_put_tensor(ls_gguf_writer *w, const char *name, ls_block_type type, int ndims,
                        const int64_t *dims) {
    int64_t count = 1;
    put_text(&w->tensors, name, strlen(name));
    put_u32(&w->tensors, (uint32_t)ndims);
    for (int i = 0; i < ndims; i++) {
        put_u64(&w->tensors, (uint64_t)dims[i]);
        count *= dims[i];
    }
    put_u32(&w->tensors, ls_block_of(type)->gguf);
    put_u64(&w->tensors, w->data);
    w->ends = ls_grow(w->ends, w->ntensors, sizeof *w->ends);
    w->ends[w->ntensors++] = w->data + ls_block_nbytes(type, count);
    w->data = padded(w->data + ls_block_nbytes(type, count));
}

/* ---- the file ---- */

static ls_status put_zeros(ls_gguf_writer *w, size_t n, ls_error *e) {
    static const char zeros[ALIGNMENT];
    return ls_file_put(&w->file, zeros, n, e);
}

ls_status ls_gguf_begin(ls_gguf_writer *w, const char *path, ls_error *e) {
    ls_buf header = {0};
    LS_TRY(ls_file_create(path, &w->file, e));
    w->is_open = true;
    ls_buf_append(&header, "GGUF", 4);
    put_u32(&header, 3);
    put_u64(&header, w->ntensors);
    put_u64(&header, w->nvalues);
    ls_buf_append(&header, w->values.data, w->values.len);
    ls_buf_append(&header, w->tensors.data, w->tensors.len);
    ls_status s = ls_file_put(&w->file, header.data, header.len, e);
    if (s == LS_OK) s = put_zeros(w, padded(header.len) - header.len, e);
    ls_buf_free(&header);
    return s;
}

ls_status ls_gguf_add(ls_gguf_writer *w, const void *data, size_t nbytes, ls_error *e) {
    assert(w->next < w->ntensors && nbytes <= w->ends[w->next] - w->at);
    LS_TRY(ls_file_put(&w->file, data, nbytes, e));
    w->at += nbytes;
    if (w->at < w->ends[w->next]) return LS_OK;
    size_t pad = padded(w->at) - w->at;
    w->next++;
    w->at += pad;
    return put_zeros(w, pad, e);
}

ls_status ls_gguf_end(ls_gguf_writer *w, ls_error *e) {
    assert(w->at == w->data);
    w->is_open = false;
    return ls_file_close(&w->file, e);
}

void ls_gguf_writer_free(ls_gguf_writer *w) {
    if (w->is_open) ls_file_discard(&w->file);
    ls_buf_free(&w->values);
    ls_buf_free(&w->tensors);
    free(w->ends);
    *w = (ls_gguf_writer){0};
}
