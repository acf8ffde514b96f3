/* mds_column.c - see mds_column.h. Encodings are those of mosaicml-streaming 0.13. */
#include "source/formats/mds_column.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "source/images/fit.h"
#include "source/number.h"

static const struct {
    const char *name;
    ls_mds_kind kind;
    ls_dtype type;
    const char *why;
} encodings[] = {
    {"int", LS_MDS_NUMBER, LS_I64, NULL},
    {"uint8", LS_MDS_NUMBER, LS_U8, NULL},
    {"int8", LS_MDS_NUMBER, LS_I8, NULL},
    {"uint16", LS_MDS_NUMBER, LS_U16, NULL},
    {"int16", LS_MDS_NUMBER, LS_I16, NULL},
    {"float16", LS_MDS_NUMBER, LS_F16, NULL},
    {"uint32", LS_MDS_NUMBER, LS_U32, NULL},
    {"int32", LS_MDS_NUMBER, LS_I32, NULL},
    {"float32", LS_MDS_NUMBER, LS_F32, NULL},
    {"uint64", LS_MDS_NUMBER, LS_U64, NULL},
    {"int64", LS_MDS_NUMBER, LS_I64, NULL},
    {"float64", LS_MDS_NUMBER, LS_F64, NULL},
    {"str_int", LS_MDS_SPELLED, LS_F32, NULL},
    {"str_float", LS_MDS_SPELLED, LS_F32, NULL},
    {"str", LS_MDS_TEXT, LS_F32, NULL},
    {"bytes", LS_MDS_BYTES, LS_U8, NULL},
    {"ndarray", LS_MDS_ARRAY, LS_U8, NULL},
    {"pil", LS_MDS_PIXELS, LS_U8, NULL},
    {"jpeg", LS_MDS_IMAGE, LS_U8, NULL},
    {"png", LS_MDS_IMAGE, LS_U8, NULL},
    {"pkl", LS_MDS_OTHER, LS_U8, "pickled objects are programs, which are not run"},
    {"json", LS_MDS_OTHER, LS_U8, "its encoding, json, has no fixed shape"},
    {"str_decimal", LS_MDS_OTHER, LS_U8, "its encoding, str_decimal, is not supported"},
    {"jpeg_array", LS_MDS_OTHER, LS_U8, "its encoding, a list of images, is not supported"},
    {"jpegarray", LS_MDS_OTHER, LS_U8, "its encoding, a list of images, is not supported"},
    {"list[pil]", LS_MDS_OTHER, LS_U8, "its encoding, a list of images, is not supported"},
    {"list[jpeg]", LS_MDS_OTHER, LS_U8, "its encoding, a list of images, is not supported"},
    {"list[png]", LS_MDS_OTHER, LS_U8, "its encoding, a list of images, is not supported"},
};
enum { NENCODINGS = sizeof encodings / sizeof *encodings };

/* The byte that names the type of an array's values. */
static const struct {
    const char *name;
    int code;
    ls_dtype type;
} array_types[] = {
    {"uint8", 8, LS_U8},   {"int8", 9, LS_I8},      {"uint16", 16, LS_U16},
    {"int16", 17, LS_I16}, {"float16", 18, LS_F16}, {"uint32", 32, LS_U32},
    {"int32", 33, LS_I32}, {"float32", 34, LS_F32}, {"uint64", 64, LS_U64},
    {"int64", 65, LS_I64}, {"float64", 66, LS_F64},
};
enum { NARRAY_TYPES = sizeof array_types / sizeof *array_types };

/* Values of a shape; 0: over LS_SAMPLE_NBYTES, or a dimension is not positive. */
static size_t count_of(const int64_t *dims, int ndims) {
    size_t count = 1;
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 1 || (uint64_t)dims[i] > LS_SAMPLE_NBYTES / count) return 0;
        count *= (size_t)dims[i];
    }
    return count;
}

/* "dtype" or "dtype:2,3". */
static const char *parse_array(const char *text, ls_mds_column *c) {
    size_t n = strcspn(text, ":");
    for (int i = 0; i < NARRAY_TYPES && !c->has_type; i++) {
        c->has_type = strlen(array_types[i].name) == n && memcmp(array_types[i].name, text, n) == 0;
        c->type = array_types[i].type;
    }
    if (!c->has_type) return "is an array of an unknown type";
    if (!text[n]) return NULL;
    for (const char *s = text + n; *s; c->ndims++) {
        char *end = NULL;
        if (c->ndims == LS_FIELD_DIMS) return "is an array of too many dimensions";
        if (s[1] < '0' || s[1] > '9') return "is an array of an unknown shape";
        c->dims[c->ndims] = strtoll(s + 1, &end, 10);
        if (*end && *end != ',') return "is an array of an unknown shape";
        s = end;
    }
    c->has_dims = true;
    size_t count = count_of(c->dims, c->ndims);
    if (count == 0) return "is an array of an impossible size";
    c->nbytes = count * ls_dtype_size(c->type);
    return NULL;
}

const char *ls_mds_column_parse(const char *encoding, ls_mds_column *c_p) {
    size_t n = strcspn(encoding, ":");
    for (int i = 0; i < NENCODINGS; i++) {
        if (strlen(encodings[i].name) != n || memcmp(encodings[i].name, encoding, n) != 0) continue;
        ls_mds_column c = {encodings[i].kind, .type = encodings[i].type, .why = encodings[i].why};
        c.integers = strcmp(encoding, "str_int") == 0;
        const char *wrong = NULL;
        if (c.kind == LS_MDS_NUMBER) c.nbytes = ls_dtype_size(c.type);
        if (c.kind == LS_MDS_ARRAY && encoding[n])
            wrong = parse_array(encoding + n + 1, &c);
        else if (encoding[n])
            wrong = "is an encoding that is not known";
        if (!wrong) *c_p = c;
        return wrong;
    }
    return "is an encoding that is not known";
}

/* ---- values ---- */

/* Reads the type of an array from its first byte. */
static const char *find_type(ls_mds_value *v) {
    if (v->nbytes == 0) return "is cut off";
    int code = *v->data++;
    v->nbytes--;
    for (int i = 0; i < NARRAY_TYPES; i++) {
        v->type = array_types[i].type;
        if (array_types[i].code == code) return NULL;
    }
    return "has values of an unknown type";
}

/* Reads the shape of an array: a byte with the number of dimensions and the logarithm of the bytes
 * of each, then the dimensions. */
static const char *find_dims(ls_mds_value *v) {
    if (v->nbytes == 0) return "is cut off";
    int code = *v->data, width = 1 << (code & 3);
    v->ndims = code >> 2;
    if (v->ndims > LS_FIELD_DIMS) return "has too many dimensions";
    size_t head = 1 + (size_t)(v->ndims * width);
    if (v->nbytes < head) return "is cut off";
    for (int i = 0; i < v->ndims; i++) {
        uint64_t dim = 0;
        memcpy(&dim, v->data + 1 + i * width, (size_t)width);
        if (dim > LS_SAMPLE_NBYTES) return "has an impossible size";
        v->dims[i] = (int64_t)dim;
    }
    v->data += head;
    v->nbytes -= head;
    return NULL;
}

static const char *find_array(const ls_mds_column *c, ls_mds_value *v) {
    v->ndims = c->ndims;
    memcpy(v->dims, c->dims, sizeof v->dims);
    const char *wrong = c->has_type ? NULL : find_type(v);
    if (!wrong && !c->has_dims) wrong = find_dims(v);
    if (wrong) return wrong;
    size_t count = count_of(v->dims, v->ndims);
    bool is_empty = count == 0 && v->ndims == 1 && v->dims[0] == 0;
    if ((count == 0 && !is_empty) || count * ls_dtype_size(v->type) != v->nbytes)
        return "has another size than its shape";
    return NULL;
}

static void set_image_dims(ls_mds_value *v, uint32_t height, uint32_t width, uint32_t channels) {
    v->ndims = 3;
    v->dims[0] = height;
    v->dims[1] = width;
    v->dims[2] = channels;
}

/* Width, height and the mode's length, each a uint32; the mode; the pixels. */
static const char *find_pixels(ls_mds_value *v) {
    uint32_t head[3];
    if (v->nbytes < sizeof head) return "is cut off";
    memcpy(head, v->data, sizeof head);
    const char *mode = (const char *)v->data + sizeof head;
    v->data += sizeof head;
    v->nbytes -= sizeof head;
    if (head[2] > v->nbytes) return "is cut off";
    bool gray = head[2] == 1 && mode[0] == 'L', rgb = head[2] == 3 && memcmp(mode, "RGB", 3) == 0;
    if (!gray && !rgb) return "is an image that is neither 8-bit gray nor RGB";
    v->data += head[2];
    v->nbytes -= head[2];
    set_image_dims(v, head[1], head[0], gray ? 1 : 3);
    size_t count = count_of(v->dims, v->ndims);
    return count == 0 || count != v->nbytes ? "has another size than its pixels" : NULL;
}

static const char *find_image(const ls_mds_column *c, ls_mds_value *v) {
    ls_image_seen seen;
    if (ls_image_fit_inspect(c->unturned, v->data, v->nbytes, &seen, NULL) != LS_OK)
        return "is no JPEG or PNG image that can be read";
    ls_image_shape s = seen.shape;
    set_image_dims(v, (uint32_t)s.height, (uint32_t)s.width, (uint32_t)s.channels);
    v->turned = seen.turned;
    return NULL;
}

static const char *find_text(const ls_mds_value *v) {
    const char *text = (const char *)v->data;
    if (v->nbytes && memchr(text, 0, v->nbytes)) return "has a zero byte";
    return ls_utf8_is_valid(text, v->nbytes) ? NULL : "is not UTF-8";
}

const char *ls_mds_column_value(const ls_mds_column *c, const uint8_t *data, size_t nbytes,
                                ls_mds_value *v_p) {
    *v_p = (ls_mds_value){.type = c->type, .data = data, .nbytes = nbytes};
    switch (c->kind) {
    case LS_MDS_SPELLED:
        if (!ls_number_parse((const char *)data, nbytes, &v_p->number)) return "is not a number";
        v_p->is_whole = ls_number_parse_whole((const char *)data, nbytes, &v_p->whole);
        return !ls_number_is_f32(v_p->number) ? "is a number that no f32 can hold" : NULL;
    case LS_MDS_TEXT: return find_text(v_p);
    case LS_MDS_BYTES:
        v_p->ndims = 1;
        v_p->dims[0] = (int64_t)nbytes;
        return NULL;
    case LS_MDS_ARRAY: return find_array(c, v_p);
    case LS_MDS_PIXELS: return find_pixels(v_p);
    case LS_MDS_IMAGE: return find_image(c, v_p);
    case LS_MDS_NUMBER:
    case LS_MDS_OTHER: break;
    }
    return NULL;
}

/* ---- features ---- */

static bool same_shape(const ls_mds_value *v, const ls_feature *f) {
    return v->type == f->type && v->ndims == f->ndims &&
           memcmp(v->dims, f->dims, sizeof v->dims) == 0;
}

static bool has_images(const ls_mds_column *c) {
    return c->kind == LS_MDS_IMAGE || c->kind == LS_MDS_PIXELS;
}

static ls_image_shape shape_of(const ls_mds_value *v) {
    return (ls_image_shape){(int)v->dims[0], (int)v->dims[1], (int)v->dims[2]};
}

void ls_mds_column_start(const ls_mds_column *c, const ls_mds_value *v, ls_feature *f) {
    f->type = v->type;
    if (has_images(c)) return; /* until ls_mds_column_fit() */
    f->ndims = v->ndims;
    memcpy(f->dims, v->dims, sizeof f->dims);
    f->count = count_of(v->dims, v->ndims);
    f->text = c->kind == LS_MDS_TEXT;
    f->spelled = c->kind == LS_MDS_SPELLED;
    f->integers = f->wide = c->integers;
    bool is_empty = v->ndims == 1 && v->dims[0] == 0; /* others may be longer */
    if (f->count == 0 && !is_empty) f->left_out = "it is empty, or too large";
    if (c->kind == LS_MDS_OTHER) f->left_out = c->why;
}

/* The least integer ends a list, so it can't be in one. */
static bool has_least(const ls_mds_value *v) {
    for (int64_t i = 0; i < v->dims[0]; i++) {
        int32_t x = 0;
        int64_t y = 0;
        if (v->type == LS_I32) memcpy(&x, v->data + (size_t)i * sizeof x, sizeof x);
        if (v->type == LS_I64) memcpy(&y, v->data + (size_t)i * sizeof y, sizeof y);
        if (x == INT32_MIN || y == INT64_MIN) return true;
    }
    return false;
}

static bool is_integers(const ls_mds_column *c, const ls_mds_value *v) {
    return c->kind == LS_MDS_ARRAY && v->ndims == 1 && (v->type == LS_I32 || v->type == LS_I64);
}

/* May the value be a list, of another length than others? */
static bool can_be_list(const ls_mds_column *c, const ls_mds_value *v, const ls_feature *f) {
    return is_integers(c, v) && f->ndims == 1 && v->type == f->type && !has_least(v);
}

void ls_mds_column_learn(ls_mds_column *c, const ls_mds_value *v, ls_feature *f) {
    if (f->left_out) return;
    if (has_images(c)) {
        ls_image_sizes_add(&c->sizes, (ls_image_seen){shape_of(v), v->turned});
        return;
    }
    if (is_integers(c, v) && has_least(v)) f->has_least = true;
    if (f->text) {
        ls_classes_add(&f->classes, (const char *)v->data, v->nbytes);
        return;
    }
    if (f->spelled) {
        f->integers = f->integers && v->is_whole;
        f->whole = f->whole && ls_number_is_i32(v->number);
    } else if (f->is_list || !same_shape(v, f)) {
        if (can_be_list(c, v, f) && ls_feature_grow(f, (size_t)v->dims[0])) return;
        f->left_out = "its shape varies";
    } else if (f->ndims == 0) {
        f->whole = f->whole && ls_feature_fits_i32(f, v->data);
    }
}

ls_status ls_mds_column_fit(ls_mds_column *c, const ls_image_way *way, ls_feature *f,
                            const char *what, ls_source *s, ls_error *e) {
    if (!has_images(c) || f->left_out) return LS_OK;
    ls_image_case x = {way, &c->sizes, f->name, what};
    LS_TRY(ls_image_fit_decide(&x, &c->fit, s, e));
    ls_feature_set_image(f, c->fit.shape);
    s->fits = true;
    return LS_OK;
}

bool ls_mds_column_store(const ls_mds_column *c, const ls_mds_value *v, const ls_feature *f,
                         void *sample) {
    if (f->text) {
        int code = ls_classes_find(&f->classes, (const char *)v->data, v->nbytes);
        if (code >= 0) ls_feature_store(f, sample, 0, code);
        return code >= 0;
    }
    if (f->spelled && v->is_whole)
        ls_feature_store_whole(f, sample, 0, v->whole);
    else if (f->spelled)
        ls_feature_store(f, sample, 0, v->number);
    if (f->spelled) return true;
    uint8_t *out = (uint8_t *)sample + f->offset;
    if (c->kind == LS_MDS_IMAGE)
        return ls_image_fit_decode(&c->fit, v->data, v->nbytes, out, NULL) == LS_OK;
    if (c->kind == LS_MDS_PIXELS)
        return ls_image_fit_pixels(&c->fit, v->data, shape_of(v), out, NULL) == LS_OK;
    bool is_list = f->is_list && can_be_list(c, v, f) && (size_t)v->dims[0] <= f->count;
    if (!is_list && !same_shape(v, f)) return false;
    ls_feature_copy(f, sample, v->data, is_list ? (size_t)v->dims[0] : f->count);
    return true;
}

bool ls_mds_column_fits(const ls_mds_column *c, const ls_feature *f) {
    if (f->left_out) return true;
    bool plain = !f->text && !f->spelled;
    switch (c->kind) {
    case LS_MDS_TEXT: return f->text;
    case LS_MDS_SPELLED: return f->spelled && f->ndims == 0;
    case LS_MDS_NUMBER: return plain && f->type == c->type && f->ndims == 0;
    case LS_MDS_BYTES: return plain && f->type == LS_U8 && f->ndims == 1;
    case LS_MDS_ARRAY: return plain;
    case LS_MDS_PIXELS:
    case LS_MDS_IMAGE: return plain && f->type == LS_U8 && f->ndims == 0 && c->sizes.n;
    case LS_MDS_OTHER: break;
    }
    return false;
}
