/* gguf.c - see gguf.h.
 *
 * A file: "GGUF", u32 version, u64 tensors, u64 key-values; the key-values: key, u32 kind, value;
 * the tensors: name, u32 ndims, u64 dims, u32 type, u64 offset; padding; data. A text is a u64
 * length and bytes; an array a u32 kind, a u64 length and elements.
 */
#include "weights/gguf.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_kind.h"
#include "base/guard.h"
#include "base/utf8.h"
#include "tensor/dtype.h"
#include "weights/blocks.h"

enum {
    HEADER = 24,
    LEAST_VALUE = 13,
    LEAST_TENSOR = 24,
    MOST_NAME = 65535,
    MOST_ALIGNMENT = 1 << 20
};

static const struct {
    const char *name;
    ls_dtype type; /* LS_NDTYPES: of no fixed size */
} kinds[LS_NGGUF_KINDS] = {
    [LS_GGUF_U8] = {"u8", LS_U8},          [LS_GGUF_I8] = {"i8", LS_I8},
    [LS_GGUF_U16] = {"u16", LS_U16},       [LS_GGUF_I16] = {"i16", LS_I16},
    [LS_GGUF_U32] = {"u32", LS_U32},       [LS_GGUF_I32] = {"i32", LS_I32},
    [LS_GGUF_F32] = {"f32", LS_F32},       [LS_GGUF_BOOL] = {"bool", LS_BOOL},
    [LS_GGUF_TEXT] = {"text", LS_NDTYPES}, [LS_GGUF_ARRAY] = {"array", LS_NDTYPES},
    [LS_GGUF_U64] = {"u64", LS_U64},       [LS_GGUF_I64] = {"i64", LS_I64},
    [LS_GGUF_F64] = {"f64", LS_F64},
};

const char *ls_gguf_kind_name(ls_gguf_kind k) { return kinds[k].name; }
size_t ls_gguf_kind_nbytes(ls_gguf_kind k) { return ls_dtype_size(kinds[k].type); }

/* ---- reading forward ---- */

typedef struct cursor {
    ls_gguf *g;
    size_t at;
    ls_error *e;
} cursor;

static ls_status fail_short(const cursor *c, const char *what) {
    return ls_fail(
        c->e, LS_EINVAL,
        "%s: byte %zu: %s goes beyond the end of the file (%zu bytes); it is truncated or "
        "damaged",
        c->g->path, c->at, what, c->g->nbytes);
}

/* The next nbytes; NULL: the file has fewer. */
static const uint8_t *take(cursor *c, uint64_t nbytes) {
    if (nbytes > c->g->nbytes - c->at) return NULL;
    const uint8_t *p = c->g->data + c->at;
    c->at += nbytes;
    return p;
}

static ls_status take_u32(cursor *c, const char *what, uint32_t *value_p) {
    const uint8_t *p = take(c, sizeof *value_p);
    if (!p) return fail_short(c, what);
    memcpy(value_p, p, sizeof *value_p);
    return LS_OK;
}

static ls_status take_u64(cursor *c, const char *what, uint64_t *value_p) {
    const uint8_t *p = take(c, sizeof *value_p);
    if (!p) return fail_short(c, what);
    memcpy(value_p, p, sizeof *value_p);
    return LS_OK;
}

/* A key or a tensor's name: not empty, UTF-8, without a zero byte. */
static ls_status take_name(cursor *c, const char *what, char **name_p) {
    size_t at = c->at;
    uint64_t n = 0;
    LS_TRY(take_u64(c, what, &n));
    const char *p = (const char *)take(c, n);
    if (!p) return fail_short(c, what);
    if (n == 0 || n > MOST_NAME || memchr(p, 0, n) || !ls_utf8_is_valid(p, n))
        return ls_fail(c->e, LS_EINVAL,
                       "%s: byte %zu: %s of %" PRIu64 " bytes; it must be UTF-8, of 1 to %d bytes",
                       c->g->path, at, what, n, MOST_NAME);
    char *name = ls_alloc(n + 1);
    memcpy(name, p, n);
    *name_p = name;
    return LS_OK;
}

/* ---- key-value pairs ---- */

static ls_status fail_kind(const cursor *c, const ls_gguf_value *v, uint32_t kind) {
    return ls_fail(c->e, LS_EINVAL, "%s: byte %zu: key '%s' has a value of the unknown kind %u",
                   c->g->path, c->at, v->key, kind);
}

static ls_status fail_value(const cursor *c, const ls_gguf_value *v) {
    return ls_fail(
        c->e, LS_EINVAL,
        "%s: byte %zu: the value of key '%s' goes beyond the end of the file (%zu bytes); "
        "it is truncated or damaged",
        c->g->path, c->at, v->key, c->g->nbytes);
}

/* The texts of an array, or the one that a value is. */
static ls_status take_texts(cursor *c, ls_gguf_value *v) {
    size_t begin = c->at;
    if (v->n > (c->g->nbytes - c->at) / sizeof(uint64_t)) return fail_value(c, v);
    v->data = c->g->data + begin;
    if (v->is_array) v->texts = LS_NEW_ARRAY(size_t, v->n);
    for (size_t i = 0; i < v->n; i++) {
        const uint8_t *p = take(c, sizeof(uint64_t));
        uint64_t n = 0;
        if (!p) return fail_value(c, v);
        memcpy(&n, p, sizeof n);
        if (v->texts) v->texts[i] = c->at - begin;
        if (!take(c, n)) return fail_value(c, v);
    }
    v->nbytes = c->at - begin;
    return LS_OK;
}

static ls_status take_elements(cursor *c, ls_gguf_value *v) {
    if (v->kind == LS_GGUF_TEXT) return take_texts(c, v);
    size_t size = ls_gguf_kind_nbytes(v->kind);
    if (v->n > (c->g->nbytes - c->at) / size) return fail_value(c, v);
    v->nbytes = v->n * size;
    v->data = take(c, v->nbytes);
    if (v->kind == LS_GGUF_BOOL)
        for (size_t i = 0; i < v->n; i++)
            if (v->data[i] > 1)
                return ls_fail(c->e, LS_EINVAL,
                               "%s: byte %zu: key '%s' has a bool that is neither 0 nor 1",
                               c->g->path, c->at - v->nbytes + i, v->key);
    return LS_OK;
}

static ls_status take_value(cursor *c, ls_gguf_value *v) {
    uint32_t kind = 0;
    uint64_t n = 1;
    LS_TRY(take_name(c, "a key", &v->key));
    LS_TRY(take_u32(c, "the kind of a value", &kind));
    v->is_array = kind == LS_GGUF_ARRAY;
    if (v->is_array) {
        LS_TRY(take_u32(c, "the kind of an array", &kind));
        LS_TRY(take_u64(c, "the length of an array", &n));
    }
    if (kind >= LS_NGGUF_KINDS || kind == LS_GGUF_ARRAY) return fail_kind(c, v, kind);
    v->kind = (ls_gguf_kind)kind;
    v->n = n;
    return take_elements(c, v);
}

/* ---- tensors ---- */

static ls_status check_count(const cursor *c, uint64_t n, size_t least, const char *what) {
    if (n <= (c->g->nbytes - c->at) / least) return LS_OK;
    return ls_fail(c->e, LS_EINVAL,
                   "%s: byte %zu: says that %" PRIu64
                   " %s follow, more than fit in its %zu bytes; it "
                   "is truncated or damaged",
                   c->g->path, c->at, n, what, c->g->nbytes);
}

static ls_status fail_shape(const cursor *c, const ls_gguf_tensor *t) {
    return ls_fail(c->e, LS_EINVAL, "%s: byte %zu: tensor '%s' has an impossible shape", c->g->path,
                   c->at, t->name);
}

/* Each dim is at least 1, and count * 64 doesn't overflow: elements take at most 8 bytes. */
static ls_status take_dims(cursor *c, ls_gguf_tensor *t) {
    uint32_t ndims = 0;
    LS_TRY(take_u32(c, "a tensor's number of dimensions", &ndims));
    if (ndims > LS_GGUF_MAX_DIMS) return fail_shape(c, t);
    t->ndims = (int)ndims;
    t->count = 1;
    for (int i = 0; i < t->ndims; i++) {
        uint64_t dim = 0;
        LS_TRY(take_u64(c, "a tensor's dimension", &dim));
        if (dim == 0 || dim > (uint64_t)(INT64_MAX / 64 / t->count)) return fail_shape(c, t);
        t->dims[i] = (int64_t)dim;
        t->count *= t->dims[i];
    }
    return LS_OK;
}

/* *offset_p: from the beginning of the data. */
static ls_status take_tensor(cursor *c, ls_gguf_tensor *t, uint64_t *offset_p) {
    LS_TRY(take_name(c, "a tensor's name", &t->name));
    LS_TRY(take_dims(c, t));
    LS_TRY(take_u32(c, "a tensor's type", &t->type));
    LS_TRY(take_u64(c, "a tensor's offset", offset_p));
    const ls_gguf_type *type = ls_gguf_type_of(t->type);
    if (!type)
        return ls_fail(c->e, LS_EINVAL, "%s: byte %zu: tensor '%s' has the unknown type %u",
                       c->g->path, c->at, t->name, t->type);
    int64_t row = t->ndims ? t->dims[0] : 1;
    if (row % type->elements)
        return ls_fail(
            c->e, LS_EINVAL,
            "%s: byte %zu: tensor '%s' has rows of %lld elements, %s takes a multiple of "
            "%d",
            c->g->path, c->at, t->name, (long long)row, type->name, type->elements);
    t->nbytes = (size_t)(t->count / type->elements) * (size_t)type->nbytes;
    return LS_OK;
}

static size_t padded(size_t at, size_t alignment) {
    return (at + alignment - 1) & ~(alignment - 1);
}

/* Tensors lie one after the other. */
static ls_status place_tensors(cursor *c, const uint64_t *offsets) {
    ls_gguf *g = c->g;
    size_t begin = padded(c->at, g->alignment), at = 0;
    for (size_t i = 0; i < g->ntensors; i++) {
        ls_gguf_tensor *t = &g->tensors[i];
        if (offsets[i] != at)
            return ls_fail(c->e, LS_EINVAL,
                           "%s: tensor '%s' begins at byte %" PRIu64 " of the data, not at %zu: "
                           "tensors overlap or leave a gap",
                           g->path, t->name, offsets[i], at);
        if (begin > g->nbytes || at > g->nbytes - begin || t->nbytes > g->nbytes - begin - at)
            return ls_fail(
                c->e, LS_EINVAL,
                "%s: tensor '%s' needs bytes %zu to %zu, the file has %zu; it is truncated",
                g->path, t->name, begin + at, begin + at + t->nbytes, g->nbytes);
        t->data = g->data + begin + at;
        at = padded(at + t->nbytes, g->alignment);
    }
    return LS_OK;
}

/* ---- look-up ---- */

static int by_key(const void *a, const void *b, void *values) {
    const ls_gguf_value *v = values;
    return strcmp(v[*(const size_t *)a].key, v[*(const size_t *)b].key);
}

static int by_name(const void *a, const void *b, void *tensors) {
    const ls_gguf_tensor *t = tensors;
    return strcmp(t[*(const size_t *)a].name, t[*(const size_t *)b].name);
}

static size_t *sorted(size_t n, void *array, int (*compare)(const void *, const void *, void *)) {
    size_t *order = LS_NEW_ARRAY(size_t, n);
    for (size_t i = 0; i < n; i++) order[i] = i;
    qsort_r(order, n, sizeof *order, compare, array);
    return order;
}

static ls_status sort_values(ls_gguf *g, ls_error *e) {
    size_t *order = g->values_by_key = sorted(g->nvalues, g->values, by_key);
    for (size_t i = 1; i < g->nvalues; i++)
        if (by_key(&order[i - 1], &order[i], g->values) == 0)
            return ls_fail(e, LS_EINVAL, "%s: key '%s' occurs twice", g->path,
                           g->values[order[i]].key);
    return LS_OK;
}

static ls_status sort_tensors(ls_gguf *g, ls_error *e) {
    size_t *order = g->tensors_by_name = sorted(g->ntensors, g->tensors, by_name);
    for (size_t i = 1; i < g->ntensors; i++)
        if (by_name(&order[i - 1], &order[i], g->tensors) == 0)
            return ls_fail(e, LS_EINVAL, "%s: tensor '%s' occurs twice", g->path,
                           g->tensors[order[i]].name);
    return LS_OK;
}

const ls_gguf_value *ls_gguf_find(const ls_gguf *g, const char *key) {
    for (size_t low = 0, high = g->nvalues; low < high;) {
        size_t middle = low + (high - low) / 2;
        const ls_gguf_value *v = &g->values[g->values_by_key[middle]];
        int order = strcmp(key, v->key);
        if (order == 0) return v;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const ls_gguf_tensor *ls_gguf_find_tensor(const ls_gguf *g, const char *name) {
    for (size_t low = 0, high = g->ntensors; low < high;) {
        size_t middle = low + (high - low) / 2;
        const ls_gguf_tensor *t = &g->tensors[g->tensors_by_name[middle]];
        int order = strcmp(name, t->name);
        if (order == 0) return t;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- the file ---- */

static ls_status take_header(cursor *c, uint64_t *ntensors_p, uint64_t *nvalues_p) {
    ls_gguf *g = c->g;
    if (g->nbytes < HEADER || memcmp(g->data, "GGUF", 4) != 0) {
        bool begins = g->nbytes >= 4 && memcmp(g->data, "GGUF", 4) == 0;
        const ls_file_kind *kind = begins ? NULL : ls_file_kind_of(g->path, g->data, g->nbytes);
        return ls_fail(c->e, LS_EINVAL, "%s: is %s%snot a GGUF file%s", g->path,
                       kind ? kind->name : "", kind ? ", " : "",
                       kind ? "; weights are read from GGUF and safetensors files" : "");
    }
    c->at = 4;
    LS_TRY(take_u32(c, "the version", &g->version));
    if ((g->version & 0xffff) == 0)
        return ls_fail(c->e, LS_EINVAL,
                       "%s: is a big-endian GGUF file; only little-endian ones can be "
                       "read",
                       g->path);
    if (g->version != 2 && g->version != 3)
        return ls_fail(c->e, LS_EINVAL, "%s: is a GGUF file of version %u; 2 and 3 can be read",
                       g->path, g->version);
    LS_TRY(take_u64(c, "the number of tensors", ntensors_p));
    return take_u64(c, "the number of keys", nvalues_p);
}

static ls_status find_alignment(ls_gguf *g, ls_error *e) {
    const ls_gguf_value *v = ls_gguf_find(g, "general.alignment");
    int64_t alignment = 32;
    if (v && (v->is_array || v->kind != LS_GGUF_U32 || !ls_gguf_integer(v, 0, &alignment) ||
              alignment < 8 || alignment > MOST_ALIGNMENT || alignment & (alignment - 1)))
        return ls_fail(e, LS_EINVAL,
                       "%s: general.alignment must be a power of two from 8 to %d, as u32", g->path,
                       MOST_ALIGNMENT);
    g->alignment = (size_t)alignment;
    return LS_OK;
}

static ls_status read_tensors(cursor *c, uint64_t n) {
    ls_gguf *g = c->g;
    LS_TRY(check_count(c, n, LEAST_TENSOR, "tensors"));
    uint64_t *offsets = LS_NEW_ARRAY(uint64_t, n);
    g->tensors = LS_NEW_ARRAY(ls_gguf_tensor, n);
    ls_status s = LS_OK;
    for (g->ntensors = 0; s == LS_OK && g->ntensors < n; g->ntensors++)
        s = take_tensor(c, &g->tensors[g->ntensors], &offsets[g->ntensors]);
    if (s == LS_OK) s = sort_tensors(g, c->e);
    if (s == LS_OK) s = place_tensors(c, offsets);
    free(offsets);
    return s;
}

static ls_status read_file(ls_gguf *g, ls_error *e) {
    cursor c = {g, 0, e};
    uint64_t ntensors = 0, nvalues = 0;
    LS_TRY(take_header(&c, &ntensors, &nvalues));
    LS_TRY(check_count(&c, nvalues, LEAST_VALUE, "keys"));
    g->values = LS_NEW_ARRAY(ls_gguf_value, nvalues);
    while (g->nvalues < nvalues) LS_TRY(take_value(&c, &g->values[g->nvalues++]));
    LS_TRY(sort_values(g, e));
    LS_TRY(find_alignment(g, e));
    LS_TRY(read_tensors(&c, ntensors));
    return ls_guard_check(e);
}

ls_status ls_gguf_open(const char *path, ls_gguf *g_p, ls_error *e) {
    ls_gguf g = {0};
    int fd = -1;
    struct stat st;
    const void *data = NULL;
    LS_TRY(ls_file_open_regular(path, &fd, &st, e));
    ls_status s = ls_guard_map(fd, path, (size_t)st.st_size, &data, e);
    close(fd);
    if (s != LS_OK) return s;
    g.path = ls_strdup(path);
    g.data = data;
    g.nbytes = (size_t)st.st_size;
    s = read_file(&g, e);
    if (s == LS_OK)
        *g_p = g;
    else
        ls_gguf_close(&g);
    return s;
}

void ls_gguf_close(ls_gguf *g) {
    for (size_t i = 0; i < g->nvalues; i++) {
        free(g->values[i].key);
        free(g->values[i].texts);
    }
    for (size_t i = 0; i < g->ntensors; i++) free(g->tensors[i].name);
    free(g->values);
    free(g->tensors);
    free(g->values_by_key);
    free(g->tensors_by_name);
    free(g->path);
    ls_guard_unmap(g->data, g->nbytes);
    *g = (ls_gguf){0};
}

bool ls_gguf_is(const char *path) {
    char magic[4] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    ssize_t n = read(fd, magic, sizeof magic);
    close(fd);
    return n == (ssize_t)sizeof magic && memcmp(magic, "GGUF", sizeof magic) == 0;
}

/* ---- values ---- */

bool ls_gguf_integer(const ls_gguf_value *v, size_t i, int64_t *value_p) {
    ls_dtype type = kinds[v->kind].type;
    if (i >= v->n || type == LS_BOOL || !ls_dtype_is_whole(type)) return false;
    const uint8_t *at = v->data + i * ls_gguf_kind_nbytes(v->kind);
    *value_p = ls_whole_at(type, at);
    if (v->kind != LS_GGUF_U64) return true;
    return (at[7] & 0x80) == 0; /* it fits */
}

bool ls_gguf_number(const ls_gguf_value *v, size_t i, double *value_p) {
    int64_t integer = 0;
    float f32 = 0;
    if (i >= v->n) return false;
    if (v->kind == LS_GGUF_F64) {
        memcpy(value_p, v->data + i * sizeof *value_p, sizeof *value_p);
        return true;
    }
    if (v->kind == LS_GGUF_F32) {
        memcpy(&f32, v->data + i * sizeof f32, sizeof f32);
        *value_p = (double)f32;
        return true;
    }
    if (!ls_gguf_integer(v, i, &integer)) return false;
    *value_p = (double)integer;
    return true;
}

bool ls_gguf_bool(const ls_gguf_value *v, size_t i, bool *value_p) {
    if (i >= v->n || v->kind != LS_GGUF_BOOL) return false;
    *value_p = v->data[i] != 0;
    return true;
}

bool ls_gguf_text_at(const ls_gguf_value *v, size_t i, ls_gguf_text *text_p) {
    if (i >= v->n || v->kind != LS_GGUF_TEXT) return false;
    const uint8_t *begin = v->data + (v->texts ? v->texts[i] : sizeof(uint64_t));
    uint64_t n = 0;
    memcpy(&n, begin - sizeof n, sizeof n);
    *text_p = (ls_gguf_text){(const char *)begin, n};
    return true;
}

bool ls_gguf_is_text(const ls_gguf_value *v, const char *text) {
    ls_gguf_text t;
    return !v->is_array && ls_gguf_text_at(v, 0, &t) && t.n == strlen(text) &&
           memcmp(t.data, text, t.n) == 0;
}
