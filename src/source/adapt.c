/* adapt.c - see adapt.h. */
#include "source/adapt.h"

#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "tensor/dtype.h"

typedef struct adapted {
    ls_source source; /* its fields are those that are wanted */
    ls_source *from;
    const ls_field *of[LS_SOURCE_FIELDS]; /* the field in `from` of each of them */
    int classes[LS_SOURCE_FIELDS];
    bool padded[LS_SOURCE_FIELDS];
    int ignored[LS_SOURCE_FIELDS];
    bool is_list[LS_SOURCE_FIELDS]; /* these fields may have fewer or more numbers in `from` */
    bool cuts;
    bool same; /* samples need no change: they are read in place */
    char *what;
} adapted;

/* ---- shapes ---- */

static int ndims_of(const ls_field *f) {
    int n = f->ndims;
    while (n > 0 && f->dims[n - 1] == 1) n--;
    return n;
}

static bool has_dims_of(const ls_field *a, const ls_field *b) {
    int n = ndims_of(a);
    bool same = n == ndims_of(b);
    for (int i = 0; same && i < n; i++) same = a->dims[i] == b->dims[i];
    return same;
}

void ls_field_put_shape(const ls_field *f, ls_buf *b) {
    ls_buf_printf(b, "%s", ls_dtype_name(f->type));
    if (f->is_list) {
        ls_buf_printf(b, " list of at most %lld", (long long)f->dims[0]);
        return;
    }
    for (int i = 0; i < f->ndims; i++)
        ls_buf_printf(b, "%s%lld%s", i ? ", " : " [", (long long)f->dims[i],
                      i + 1 == f->ndims ? "]" : "");
}

/* ---- values ---- */

static bool is_real(ls_dtype t) { return t == LS_F32 || t == LS_F64; }

static bool is_whole(ls_dtype t) {
    return t == LS_BOOL || t == LS_U8 || t == LS_I8 || t == LS_U16 || t == LS_I16 || t == LS_U32 ||
           t == LS_I32 || t == LS_U64 || t == LS_I64;
}

static bool can_convert(const ls_field *has, ls_dtype to) {
    ls_dtype from = has->type;
    if (from == to) return true;
    if (to == LS_F32) return is_whole(from) || is_real(from);
    return is_whole(to) && (is_whole(from) || (from == LS_F32 && has->is_whole));
}

typedef union value {
    uint8_t u8;
    int8_t i8;
    uint16_t u16;
    int16_t i16;
    uint32_t u32;
    int32_t i32;
    uint64_t u64;
    int64_t i64;
    float f32;
    double f64;
} value;

static value value_at(ls_dtype t, const uint8_t *p) {
    value v = {0};
    memcpy(&v, p, ls_dtype_size(t));
    return v;
}

static float real_at(ls_dtype t, const uint8_t *p) {
    value v = value_at(t, p);
    switch (t) {
    case LS_U8:
    case LS_BOOL: return (float)v.u8;
    case LS_I8: return (float)v.i8;
    case LS_U16: return (float)v.u16;
    case LS_I16: return (float)v.i16;
    case LS_U32: return (float)v.u32;
    case LS_I32: return (float)v.i32;
    case LS_U64: return (float)v.u64;
    case LS_I64: return (float)v.i64;
    case LS_F64: return (float)v.f64;
    default: return v.f32;
    }
}

/* Values beyond the range of an int64 are its largest one, and so are those of an f32 that other whole
 * numbers were rounded to; they are refused. */
static int64_t whole_at(ls_dtype t, const uint8_t *p) {
    static const float exact = 1 << 24;
    value v = value_at(t, p);
    switch (t) {
    case LS_F32: return v.f32 > -exact && v.f32 < exact ? (int64_t)v.f32 : INT64_MAX;
    case LS_U8:
    case LS_BOOL: return v.u8;
    case LS_I8: return v.i8;
    case LS_U16: return v.u16;
    case LS_I16: return v.i16;
    case LS_U32: return v.u32;
    case LS_I32: return v.i32;
    case LS_U64: return v.u64 > INT64_MAX ? INT64_MAX : (int64_t)v.u64;
    default: return v.i64;
    }
}

/* ---- reading ---- */

static ls_status fail_range(const adapted *a, uint64_t i, int k, int64_t v, ls_error *e) {
    const ls_field *f = &a->source.fields[k];
    if (a->classes[k])
        return ls_fail(e, LS_EINVAL,
                       "%s: sample %llu: '%s' is %lld, and the model takes 0 to %d%s; correct the "
                       "data, or let the model have more classes",
                       a->what, (unsigned long long)i, f->name, (long long)v, a->classes[k] - 1,
                       a->padded[k] ? ", and -1 for none" : "");
    if (v == INT64_MAX && a->of[k]->type == LS_F32)
        return ls_fail(
            e, LS_EINVAL,
            "%s: sample %llu: '%s' is 16777216 or more, which an f32 can't hold exactly, "
            "and the model reads %s; write it as a list, [N], or as an integer of JSON",
            a->what, (unsigned long long)i, f->name, ls_dtype_name(f->type));
    return ls_fail(e, LS_EINVAL, "%s: sample %llu: '%s' is %lld, out of the range of %s", a->what,
                   (unsigned long long)i, f->name, (long long)v, ls_dtype_name(f->type));
}

/* A number of a field, of which one may stand for none. */
static int64_t number_of(const adapted *a, int k, ls_dtype t, const uint8_t *at) {
    int64_t v = whole_at(t, at);
    return a->padded[k] && a->ignored[k] && v == a->ignored[k] ? -1 : v;
}

static bool is_in_range(const adapted *a, int k, int64_t v) {
    if (a->classes[k] && a->padded[k]) return v >= INT32_MIN && v < a->classes[k];
    if (a->classes[k]) return v >= 0 && v < a->classes[k];
    switch (a->source.fields[k].type) {
    case LS_BOOL: return v == 0 || v == 1;
    case LS_U8: return v >= 0 && v <= UINT8_MAX;
    case LS_I8: return v >= INT8_MIN && v <= INT8_MAX;
    case LS_U16: return v >= 0 && v <= UINT16_MAX;
    case LS_I16: return v >= INT16_MIN && v <= INT16_MAX;
    case LS_U32: return v >= 0 && v <= UINT32_MAX;
    case LS_I32: return v >= INT32_MIN && v <= INT32_MAX;
    case LS_U64: return v >= 0 && v < INT64_MAX;
    default: return v < INT64_MAX;
    }
}

static void put_whole(size_t nbytes, int64_t v, uint8_t *to) {
    uint8_t u8 = (uint8_t)v;
    uint16_t u16 = (uint16_t)v;
    uint32_t u32 = (uint32_t)v;
    const void *from = nbytes == 1   ? (const void *)&u8
                       : nbytes == 2 ? (const void *)&u16
                       : nbytes == 4 ? (const void *)&u32
                                     : &v;
    memcpy(to, from, nbytes);
}

static ls_status fail_length(const adapted *a, uint64_t i, int k, size_t n, ls_error *e) {
    const ls_field *f = &a->source.fields[k];
    return ls_fail(e, LS_EINVAL,
                   "%s: sample %llu: '%s' has %zu numbers, and the model takes %lld; let its input "
                   "have more, or set data.lists: cut",
                   a->what, (unsigned long long)i, f->name, n, (long long)f->dims[0]);
}

/* Converts a list, field k of sample i, which begins at `given`. */
static ls_status convert_list(const adapted *a, uint64_t i, int k, const uint8_t *given,
                              uint8_t *to, ls_error *e) {
    const ls_field *f = &a->source.fields[k], *has = a->of[k];
    size_t size = ls_dtype_size(has->type), most = f->nbytes / sizeof(int32_t),
           n = ls_field_count(has, given);
    if (n > most && !a->cuts) return fail_length(a, i, k, n, e);
    if (n > most) n = most;
    memset(to, 0xff, f->nbytes); /* -1 */
    for (size_t j = 0; j < n; j++) {
        int64_t v = number_of(a, k, has->type, given + has->offset + j * size);
        if (!is_in_range(a, k, v)) return fail_range(a, i, k, v, e);
        int32_t whole = (int32_t)v;
        memcpy(to + j * sizeof whole, &whole, sizeof whole);
    }
    return LS_OK;
}

/* Converts field k of sample i. */
static ls_status convert(const adapted *a, uint64_t i, int k, const uint8_t *from, uint8_t *to,
                         ls_error *e) {
    const ls_field *f = &a->source.fields[k];
    ls_dtype t = a->of[k]->type;
    size_t size = ls_dtype_size(t), each = ls_dtype_size(f->type), n = f->nbytes / each;
    if (t == f->type && !a->classes[k]) {
        memcpy(to, from, f->nbytes);
        return LS_OK;
    }
    for (size_t j = 0; j < n; j++, from += size, to += each) {
        if (f->type == LS_F32) {
            float real = real_at(t, from);
            memcpy(to, &real, sizeof real);
            continue;
        }
        int64_t v = number_of(a, k, t, from);
        if (!is_in_range(a, k, v)) return fail_range(a, i, k, v, e);
        put_whole(each, v, to);
    }
    return LS_OK;
}

/* d NULL: not for training. */
static ls_status read_from(const adapted *a, uint64_t i, const ls_draw *d, uint8_t *sample,
                           ls_error *e) {
    return d ? ls_source_draw(a->from, i, d, sample, e) : a->from->read(a->from, i, sample, e);
}

static ls_status read_same(const adapted *a, uint64_t i, const ls_draw *d, uint8_t *sample,
                           ls_error *e) {
    LS_TRY(read_from(a, i, d, sample, e));
    for (int k = 0; k < a->source.nfields; k++) {
        uint8_t *at = sample + a->source.fields[k].offset;
        if (a->classes[k]) LS_TRY(convert(a, i, k, at, at, e));
    }
    return LS_OK;
}

static ls_status draw_adapted(const ls_source *s, uint64_t i, const ls_draw *d, void *sample,
                              ls_error *e) {
    const adapted *a = (const adapted *)s;
    if (a->same) return read_same(a, i, d, sample, e);
    uint8_t *given = ls_alloc(a->from->nbytes), *to = sample;
    ls_status status = read_from(a, i, d, given, e);
    for (int k = 0; status == LS_OK && k < s->nfields; k++) {
        uint8_t *at = to + s->fields[k].offset;
        status = a->is_list[k] ? convert_list(a, i, k, given, at, e)
                               : convert(a, i, k, given + a->of[k]->offset, at, e);
    }
    free(given);
    return status;
}

static ls_status read_adapted(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    return draw_adapted(s, i, NULL, sample, e);
}

static void put_sample_name(const ls_source *s, uint64_t i, ls_buf *b) {
    ls_source_put_name(((const adapted *)s)->from, i, b);
}

static ls_record_at record_of(const ls_source *s, uint64_t i) {
    return ls_source_record(((const adapted *)s)->from, i);
}

static void close_adapted(ls_source *s) {
    adapted *a = (adapted *)s;
    ls_source_close(a->from);
    free(a->what);
    free(a);
}

/* ---- making ---- */

static void put_name(const ls_field *f, ls_buf *b) {
    ls_buf_printf(b, "'");
    ls_buf_escape(b, LS_ESCAPE_LINE, f->name, strlen(f->name));
    ls_buf_printf(b, "'");
}

static ls_status fail_missing(const adapted *a, const ls_field *f, ls_error *e) {
    ls_buf b = {0};
    for (int i = 0; i < a->from->nfields; i++) {
        ls_buf_printf(&b, "%s", i ? ", " : "");
        put_name(&a->from->fields[i], &b);
        ls_buf_printf(&b, " ");
        ls_field_put_shape(&a->from->fields[i], &b);
    }
    const char *format = a->from->format ? a->from->format : "";
    bool label = strcmp(f->name, "label") == 0, images = strcmp(format, "images") == 0;
    bool apart = strcmp(format, "idx") == 0 || strcmp(format, "npy") == 0;
    ls_status s = ls_fail(
        e, LS_EINVAL, "%s: has no field '%s', which the model reads; its fields are %.200s%s",
        a->what, f->name, b.data ? b.data : "none",
        label && images  ? "; name a directory that has a directory of images for each class"
        : label && apart ? "; name the file of labels by data.labels, if there is one"
                         : "");
    ls_buf_free(&b);
    return s;
}

static ls_status fail_shape(const adapted *a, const ls_field *has, const ls_field *f, ls_error *e) {
    ls_buf b = {0}, w = {0};
    ls_field_put_shape(has, &b);
    ls_field_put_shape(f, &w);
    ls_status s = ls_fail(e, LS_EINVAL, "%s: field '%s' is %s; the model's input '%s' is %s",
                          a->what, f->name, b.data, f->name, w.data);
    ls_buf_free(&b);
    ls_buf_free(&w);
    return s;
}

/* May field k have fewer or more numbers than `has`? */
static bool is_list_of(const adapted *a, int k, const ls_field *has) {
    const ls_field *f = &a->source.fields[k];
    bool wants = a->padded[k] && f->type == LS_I32 && f->ndims == 1 && is_whole(has->type);
    return wants && (has->is_list || (ndims_of(has) <= 1 && !has_dims_of(has, f)));
}

static ls_status find_fields(adapted *a, int *missing_p, ls_error *e) {
    ls_source *s = &a->source;
    a->same = a->from->nbytes <= s->nbytes && a->from->nfields == s->nfields;
    for (int k = 0; k < s->nfields; k++) {
        const ls_field *f = &s->fields[k], *has = ls_source_field(a->from, f->name);
        if (!has && missing_p) *missing_p = k;
        if (!has) return fail_missing(a, f, e);
        if (has->trouble) return ls_fail(e, LS_EINVAL, "%s", has->trouble);
        a->is_list[k] = is_list_of(a, k, has);
        bool fits = !has->is_list && has_dims_of(has, f) && can_convert(has, f->type);
        if (!fits && !a->is_list[k]) return fail_shape(a, has, f, e);
        a->of[k] = has;
        bool is_same = !a->is_list[k] && has->type == f->type && has->offset == f->offset;
        a->same = a->same && is_same;
    }
    return LS_OK;
}

ls_status ls_adapt(ls_source *from, const ls_adapt_wanted *w, ls_source **s_p, ls_error *e) {
    adapted *a = LS_NEW(adapted);
    a->source = *from; /* count, hash, classes: those belong to `from` */
    a->source.index = NULL;
    a->source.pixels = NULL;
    a->source.follow = NULL;
    a->source.nparts = 0;
    a->source.read = read_adapted;
    a->source.draw = draw_adapted;
    if (from->put_name) a->source.put_name = put_sample_name;
    a->source.record = record_of;
    a->source.close = close_adapted;
    a->source.nfields = w->nfields;
    a->source.nbytes = w->nbytes;
    memcpy(a->source.fields, w->fields, (size_t)w->nfields * sizeof *w->fields);
    memcpy(a->classes, w->classes, (size_t)w->nfields * sizeof *w->classes);
    for (int i = 0; i < w->nfields; i++) {
        a->padded[i] = w->padded && w->padded[i];
        a->ignored[i] = w->ignored ? w->ignored[i] : 0;
    }
    a->from = from;
    a->cuts = w->cuts;
    a->what = ls_strdup(w->what);
    ls_status s = find_fields(a, w->missing_p, e);
    if (s == LS_OK)
        *s_p = &a->source;
    else
        close_adapted(&a->source);
    return s;
}
