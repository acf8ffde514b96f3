/* safetensors.c - see safetensors.h. */
#include "weights/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/json.h"
#include "base/output.h"
#include "weights/blocks.h"

enum { MAX_HEADER = 64 << 20 };

/* Types of the format, but for those of less than a byte. What is not of a type of blocks.h can be
 * listed, but not read. */
static const struct {
    const char *name;
    size_t nbytes; /* of an element */
    ls_block_type type;
} dtypes[] = {
    {"F32", 4, LS_BLOCK_F32},        {"F16", 2, LS_BLOCK_F16},
    {"BF16", 2, LS_BLOCK_BF16},      {"F64", 8, LS_NBLOCK_TYPES},
    {"I64", 8, LS_NBLOCK_TYPES},     {"I32", 4, LS_NBLOCK_TYPES},
    {"I16", 2, LS_NBLOCK_TYPES},     {"I8", 1, LS_NBLOCK_TYPES},
    {"U64", 8, LS_NBLOCK_TYPES},     {"U32", 4, LS_NBLOCK_TYPES},
    {"U16", 2, LS_NBLOCK_TYPES},     {"U8", 1, LS_NBLOCK_TYPES},
    {"BOOL", 1, LS_NBLOCK_TYPES},    {"F8_E4M3", 1, LS_NBLOCK_TYPES},
    {"F8_E5M2", 1, LS_NBLOCK_TYPES}, {"F8_E8M0", 1, LS_NBLOCK_TYPES},
    {"C64", 8, LS_NBLOCK_TYPES},
};
enum { NDTYPES = sizeof dtypes / sizeof *dtypes };

static bool is_blocks(ls_block_type type) {
    return type != LS_NBLOCK_TYPES && ls_block_elements(type) > 1;
}

static int dtype_of_name(const char *name) {
    for (int i = 0; name && i < NDTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0) return i;
    return -1;
}

static int dtype_of_type(ls_block_type type) {
    if (is_blocks(type)) return dtype_of_name("U8");
    for (int i = 0; i < NDTYPES; i++)
        if (dtypes[i].type == type) return i;
    abort(); /* our own bug */
}

/* The type in the file: what can't be read as numbers has its name alone. */
static int dtype_of(const ls_tensor *t) {
    return t->type == LS_NBLOCK_TYPES ? dtype_of_name(t->dtype) : dtype_of_type(t->type);
}

size_t ls_tensor_nbytes(const ls_tensor *t) {
    if (t->type == LS_NBLOCK_TYPES) return t->count * dtypes[dtype_of(t)].nbytes;
    return ls_block_nbytes(t->type, (int64_t)t->count);
}

void ls_tensor_read(const ls_tensor *t, size_t first, size_t n, float *out) {
    ls_block_read(ls_kernels_at(0), t->type, t->data, (int64_t)first, (int64_t)n, out);
}

/* ---- writing ---- */

static void header_of(const ls_tensor *t, size_t n, ls_buf *out) {
    ls_json *header = ls_json_new_object(), *meta = ls_json_new_object();
    ls_json_set_text(meta, "format", "pt");
    ls_json_set(header, "__metadata__", meta);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        ls_json *entry = ls_json_new_object(), *shape = ls_json_new_array();
        ls_json *offsets = ls_json_new_array();
        bool blocks = is_blocks(t[i].type);
        for (int d = 0; d < t[i].ndims; d++) {
            int64_t dim = t[i].dims[d];
            if (blocks && d == t[i].ndims - 1) dim = (int64_t)ls_block_nbytes(t[i].type, dim);
            ls_json_push(shape, ls_json_new_integer(dim));
        }
        if (blocks) ls_json_set_text(meta, t[i].name, ls_block_of(t[i].type)->name);
        ls_json_push(offsets, ls_json_new_integer((int64_t)at));
        at += ls_tensor_nbytes(&t[i]);
        ls_json_push(offsets, ls_json_new_integer((int64_t)at));
        ls_json_set_text(entry, "dtype", dtypes[dtype_of(&t[i])].name);
        ls_json_set(entry, "shape", shape);
        ls_json_set(entry, "data_offsets", offsets);
        ls_json_set(header, t[i].name, entry);
    }
    ls_json_write(header, 0, out);
    ls_json_free(header);
    while (out->len % 8) ls_buf_append(out, " ", 1); /* so that the data is aligned */
}

static ls_status put_header(ls_file *f, const ls_tensor *t, size_t n, size_t *nbytes_p,
                            ls_error *e) {
    ls_buf header = {0};
    header_of(t, n, &header);
    uint64_t length = header.len;
    ls_status s = ls_file_put(f, &length, sizeof length, e);
    if (s == LS_OK) s = ls_file_put(f, header.data, header.len, e);
    *nbytes_p = sizeof length + header.len;
    ls_buf_free(&header);
    return s;
}

static ls_status close_file(ls_file *f, ls_status s, ls_error *e) {
    if (s == LS_OK) return ls_file_close(f, e);
    ls_file_discard(f);
    return s;
}

ls_status ls_safetensors_create(const char *path, const ls_tensor *t, size_t n, ls_file *f_p,
                                ls_error *e) {
    ls_file f;
    size_t nbytes = 0;
    LS_TRY(ls_file_create(path, &f, e));
    ls_status s = put_header(&f, t, n, &nbytes, e);
    if (s != LS_OK) return close_file(&f, s, e);
    *f_p = f;
    return LS_OK;
}

ls_status ls_safetensors_write(const char *path, const ls_tensor *t, size_t n, ls_error *e) {
    ls_file f;
    LS_TRY(ls_safetensors_create(path, t, n, &f, e));
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < n; i++)
        s = ls_file_put(&f, t[i].data, ls_tensor_nbytes(&t[i]), e);
    return close_file(&f, s, e);
}

/* A tensor's values in f32, a part after the other. */
static ls_status put_wide(ls_output *o, const ls_tensor *t, ls_error *e) {
    enum { PART = 1 << 16 };
    ls_status s = LS_OK;
    if (t->type == LS_BLOCK_F32) return ls_output_put(o, t->data, ls_tensor_nbytes(t), e);
    float *part = LS_NEW_ARRAY(float, PART);
    for (size_t i = 0; s == LS_OK && i < t->count; i += PART) {
        size_t n = t->count - i < PART ? t->count - i : PART;
        ls_tensor_read(t, i, n, part);
        s = ls_output_put(o, part, n * sizeof *part, e);
    }
    free(part);
    return s;
}

ls_status ls_safetensors_write_wide(const char *path, const ls_tensor *t, size_t n, ls_error *e) {
    ls_tensor *wide = LS_NEW_ARRAY(ls_tensor, n);
    ls_output *o = NULL;
    ls_buf header = {0};
    for (size_t i = 0; i < n; i++) {
        wide[i] = t[i];
        wide[i].type = LS_BLOCK_F32;
    }
    header_of(wide, n, &header);
    free(wide);
    uint64_t length = header.len;
    ls_status s = ls_output_open(path, &o, e);
    if (s == LS_OK) s = ls_output_put(o, &length, sizeof length, e);
    if (s == LS_OK) s = ls_output_put(o, header.data, header.len, e);
    for (size_t i = 0; s == LS_OK && i < n; i++) s = put_wide(o, &t[i], e);
    ls_buf_free(&header);
    if (s == LS_OK) return ls_output_end(o, e);
    ls_output_drop(o);
    return s;
}

ls_status ls_safetensors_reserve(const char *path, const ls_tensor *t, size_t n, ls_error *e) {
    ls_file f;
    size_t nbytes = 0;
    LS_TRY(ls_file_create(path, &f, e));
    ls_status s = put_header(&f, t, n, &nbytes, e);
    for (size_t i = 0; i < n; i++) nbytes += ls_tensor_nbytes(&t[i]);
    if (s == LS_OK) s = ls_file_extend(&f, nbytes, e);
    return close_file(&f, s, e);
}

/* ---- reading ---- */

typedef enum accepted { F32_ONLY, STORED, ANY } accepted; /* types that a reader takes */

typedef struct reader {
    const char *path;
    const unsigned char *data; /* after the header */
    size_t nbytes;             /* of data */
    accepted types;
    const ls_json *metadata; /* may be NULL */
    ls_safetensors *out;
} reader;

static ls_status read_shape(const reader *r, const ls_json *shape, size_t size, ls_tensor *t,
                            ls_error *e) {
    if (!ls_json_is_array(shape) || ls_json_count(shape) > LS_TENSOR_MAX_DIMS)
        return ls_fail(e, LS_EINVAL, "%s: tensor '%s' has no shape of at most %d dimensions",
                       r->path, t->name, LS_TENSOR_MAX_DIMS);
    t->ndims = (int)ls_json_count(shape);
    t->count = 1;
    for (int d = 0; d < t->ndims; d++) {
        int64_t dim = -1;
        size_t most = (size_t)INT64_MAX / size;
        if (!ls_json_integer(ls_json_at(shape, (size_t)d), &dim) || dim < 0 ||
            (dim > 0 && t->count > most / (size_t)dim))
            return ls_fail(e, LS_EINVAL, "%s: tensor '%s' has an impossible shape", r->path,
                           t->name);
        t->dims[d] = dim;
        t->count *= (size_t)dim;
    }
    return LS_OK;
}

/* The size of an element, which also the shape is checked against. */
static ls_status read_dtype(const reader *r, const ls_json *entry, ls_tensor *t, size_t *size_p,
                            ls_error *e) {
    const char *name = ls_json_text(ls_json_get(entry, "dtype"));
    int i = dtype_of_name(name);
    if (i < 0 || (r->types == F32_ONLY && dtypes[i].type != LS_BLOCK_F32))
        return ls_fail(
            e, LS_EINVAL, "%s: tensor '%s' is %s%s", r->path, t->name, name ? name : "of no dtype",
            r->types == F32_ONLY ? "; only F32 can be read" : ", a type that is not known here");
    t->dtype = dtypes[i].name;
    t->type = dtypes[i].type;
    *size_p = dtypes[i].nbytes;
    return LS_OK;
}

/* Rows of bytes become rows of the blocks that the metadata say. Other types are refused. */
static ls_status find_blocks(const reader *r, ls_tensor *t, ls_error *e) {
    const char *name = ls_json_text(ls_json_get(r->metadata, t->name));
    ls_block_type type = LS_NBLOCK_TYPES;
    if (t->type != LS_NBLOCK_TYPES) return LS_OK;
    if (strcmp(t->dtype, "U8") != 0 || !name || !ls_block_named(name, &type) || !is_blocks(type))
        return ls_fail(e, LS_EINVAL, "%s: tensor '%s' is %s, and no blocks of a known type",
                       r->path, t->name, t->dtype);
    int64_t nbytes = (int64_t)ls_block_nbytes(type, ls_block_elements(type));
    int64_t *row = t->ndims ? &t->dims[t->ndims - 1] : NULL;
    if (!row || *row % nbytes || (uintptr_t)t->data % 2)
        return ls_fail(e, LS_EINVAL, "%s: tensor '%s' has no whole blocks of %s", r->path, t->name,
                       name);
    *row = *row / nbytes * ls_block_elements(type);
    t->count = t->count / (size_t)nbytes * (size_t)ls_block_elements(type);
    t->type = type;
    return LS_OK;
}

static bool is_aligned(const ls_tensor *t) {
    return t->count == 0 || (uintptr_t)t->data % dtypes[dtype_of(t)].nbytes == 0;
}

static ls_status read_tensor(const reader *r, const char *name, const ls_json *entry, ls_error *e) {
    ls_tensor t = {0};
    size_t size = 0;
    if (strlen(name) >= sizeof t.name)
        return ls_fail(e, LS_EINVAL, "%s: a tensor's name is over %zu bytes", r->path,
                       sizeof t.name - 1);
    snprintf(t.name, sizeof t.name, "%s", name);
    LS_TRY(read_dtype(r, entry, &t, &size, e));
    LS_TRY(read_shape(r, ls_json_get(entry, "shape"), size, &t, e));
    const ls_json *offsets = ls_json_get(entry, "data_offsets");
    int64_t begin = -1, end = -1;
    if (ls_json_count(offsets) != 2 || !ls_json_integer(ls_json_at(offsets, 0), &begin) ||
        !ls_json_integer(ls_json_at(offsets, 1), &end) || begin < 0 || end < begin ||
        (uint64_t)end > r->nbytes || (size_t)(end - begin) != t.count * size)
        return ls_fail(e, LS_EINVAL,
                       "%s: tensor '%s' lies outside the file's %zu bytes of data, or has another "
                       "size than its shape; the file is truncated or damaged",
                       r->path, name, r->nbytes);
    t.data = r->data + begin;
    if (r->types != ANY && !is_aligned(&t))
        return ls_fail(e, LS_EINVAL, "%s: tensor '%s' is not aligned to its elements of %zu bytes",
                       r->path, name, size);
    if (r->types == STORED) LS_TRY(find_blocks(r, &t, e));
    r->out->tensors[r->out->n++] = t;
    return LS_OK;
}

static int by_place(const void *a, const void *b) {
    const ls_tensor *x = a, *y = b;
    const char *at = x->data, *other = y->data;
    if (at != other) return at < other ? -1 : 1;
    return (x->count > 0) - (y->count > 0); /* the empty ones first */
}

/* The format requires data without gaps or overlaps. */
static ls_status check_places(const reader *r, ls_error *e) {
    ls_safetensors *s = r->out;
    qsort(s->tensors, s->n, sizeof *s->tensors, by_place);
    const unsigned char *at = r->data;
    for (size_t i = 0; i < s->n; i++) {
        const ls_tensor *t = &s->tensors[i];
        if (t->data != at)
            return ls_fail(e, LS_EINVAL, "%s: tensor '%s' overlaps another or leaves a gap",
                           r->path, t->name);
        at += ls_tensor_nbytes(t);
    }
    if (at != r->data + r->nbytes)
        return ls_fail(e, LS_EINVAL, "%s: has %zu bytes that belong to no tensor", r->path,
                       (size_t)(r->data + r->nbytes - at));
    return LS_OK;
}

/* Other programs write headers of any length, after which elements begin at any byte. */
static void copy_unaligned(ls_safetensors *s) {
    for (size_t i = 0; i < s->n; i++) {
        ls_tensor *t = &s->tensors[i];
        if (is_aligned(t)) continue;
        size_t nbytes = ls_tensor_nbytes(t);
        s->copies = ls_grow(s->copies, s->ncopies, sizeof *s->copies);
        s->copies[s->ncopies] = ls_alloc(nbytes);
        t->data = memcpy(s->copies[s->ncopies++], t->data, nbytes);
    }
}

int ls_tensor_by_name(const void *a, const void *b) {
    return strcmp((*(const ls_tensor *const *)a)->name, (*(const ls_tensor *const *)b)->name);
}

static void sort_names(ls_safetensors *s) {
    s->by_name = LS_NEW_ARRAY(const ls_tensor *, s->n);
    for (size_t i = 0; i < s->n; i++) s->by_name[i] = &s->tensors[i];
    qsort(s->by_name, s->n, sizeof *s->by_name, ls_tensor_by_name);
}

static ls_status read_header(reader *r, const ls_json *header, ls_error *e) {
    if (!ls_json_is_object(header))
        return ls_fail(e, LS_EINVAL, "%s: its header is not a JSON object", r->path);
    r->out->tensors = LS_NEW_ARRAY(ls_tensor, ls_json_count(header));
    const char *name = NULL;
    const ls_json *entry = NULL;
    r->metadata = ls_json_get(header, "__metadata__");
    for (void *it = NULL; (it = ls_json_next(header, it, &name, &entry));)
        if (strcmp(name, "__metadata__") != 0) LS_TRY(read_tensor(r, name, entry, e));
    LS_TRY(check_places(r, e));
    if (r->types == ANY) copy_unaligned(r->out);
    sort_names(r->out);
    return LS_OK;
}

static ls_status open_file(const char *path, accepted types, ls_safetensors *s_p, ls_error *e) {
    ls_safetensors s = {0};
    LS_TRY(ls_file_map(path, &s.map, e));
    uint64_t length = 0;
    if (s.map.nbytes >= sizeof length) memcpy(&length, s.map.data, sizeof length);
    if (length < 2 || length > MAX_HEADER || length > s.map.nbytes - sizeof length) {
        ls_safetensors_close(&s);
        return ls_fail(e, LS_EINVAL, "%s: is not a safetensors file, or is truncated", path);
    }
    const char *text = (const char *)s.map.data + sizeof length;
    ls_json *header = NULL;
    ls_status status = ls_json_parse(text, length, path, &header, e);
    reader r = {.path = path, .types = types, .out = &s};
    r.data = s.map.data + sizeof length + length;
    r.nbytes = s.map.nbytes - sizeof length - length;
    if (status == LS_OK) status = read_header(&r, header, e);
    ls_json_free(header);
    if (status == LS_OK) status = ls_guard_check(e);
    if (status == LS_OK)
        *s_p = s;
    else
        ls_safetensors_close(&s);
    return status;
}

ls_status ls_safetensors_open(const char *path, ls_safetensors *s_p, ls_error *e) {
    return open_file(path, F32_ONLY, s_p, e);
}

ls_status ls_safetensors_open_stored(const char *path, ls_safetensors *s_p, ls_error *e) {
    return open_file(path, STORED, s_p, e);
}

ls_status ls_safetensors_open_any(const char *path, ls_safetensors *s_p, ls_error *e) {
    return open_file(path, ANY, s_p, e);
}

void ls_safetensors_close(ls_safetensors *s) {
    for (size_t i = 0; i < s->ncopies; i++) free(s->copies[i]);
    free(s->copies);
    free(s->by_name);
    free(s->tensors);
    ls_file_unmap(&s->map);
    *s = (ls_safetensors){0};
}

const ls_tensor *ls_safetensors_find(const ls_safetensors *s, const char *name) {
    ls_tensor key = {0};
    if (s->n == 0 || strlen(name) >= sizeof key.name) return NULL;
    snprintf(key.name, sizeof key.name, "%s", name);
    const ls_tensor *at = &key,
                    **found = bsearch(&at, s->by_name, s->n, sizeof *s->by_name, ls_tensor_by_name);
    return found ? *found : NULL;
}
