/* adapt.c - see adapt.h. */
#include "source/adapt.h"

#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "source/finite.h"
#include "source/real.h"

typedef struct adapted {
    ls_source_over over;                  /* its fields are those that are wanted */
    const ls_field *of[LS_SOURCE_FIELDS]; /* the field in `from` of each of them */
    int classes[LS_SOURCE_FIELDS];
    bool padded[LS_SOURCE_FIELDS];
    int ignored[LS_SOURCE_FIELDS];
    bool is_list[LS_SOURCE_FIELDS]; /* these fields may have fewer or more numbers in `from` */
    bool cuts;
    bool same;   /* samples need no change: they are read in place */
    char what[]; /* a path */
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

static bool can_convert(const ls_field *has, ls_dtype to) {
    ls_dtype from = has->type;
    if (from == to) return true;
    if (to == LS_F32) return ls_dtype_is_whole(from) || ls_is_real(from);
    return ls_dtype_is_whole(to) && (ls_dtype_is_whole(from) || (from == LS_F32 && has->is_whole));
}

float ls_adapt_real(ls_dtype t, const uint8_t *p) {
    uint64_t u64 = 0;
    if (ls_is_real(t)) return (float)ls_real_at(t, p);
    if (t != LS_U64) return (float)ls_whole_at(t, p);
    memcpy(&u64, p, sizeof u64);
    return (float)u64;
}

/* Values beyond the range of an int64 are its largest one, and so are those of an f32 that other
 * whole numbers were rounded to; they are refused. */
static int64_t whole_at(ls_dtype t, const uint8_t *p) {
    static const float exact = 1 << 24;
    if (t != LS_F32) return ls_whole_at(t, p);
    float real = ls_adapt_real(t, p);
    return real > -exact && real < exact ? (int64_t)real : INT64_MAX;
}

/* ---- reading ---- */

static ls_status fail_range(const adapted *a, uint64_t i, int k, int64_t v, ls_error *e) {
    const ls_field *f = &a->over.source.fields[k];
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
    ls_dtype t = a->over.source.fields[k].type;
    if (a->classes[k] && a->padded[k]) return v >= INT32_MIN && v < a->classes[k];
    if (a->classes[k]) return v >= 0 && v < a->classes[k];
    if (t == LS_BOOL) return v == 0 || v == 1;
    return v < INT64_MAX && ls_whole_at(t, &v) == v;
}

static ls_status fail_length(const adapted *a, uint64_t i, int k, size_t n, ls_error *e) {
    const ls_field *f = &a->over.source.fields[k];
    return ls_fail(e, LS_EINVAL,
                   "%s: sample %llu: '%s' has %zu numbers, and the model takes %lld; let its input "
                   "have more, or set data.lists: cut",
                   a->what, (unsigned long long)i, f->name, n, (long long)f->dims[0]);
}

/* Converts a list, field k of sample i, which begins at `given`. */
static ls_status convert_list(const adapted *a, uint64_t i, int k, const uint8_t *given,
                              uint8_t *to, ls_error *e) {
    const ls_field *f = &a->over.source.fields[k], *has = a->of[k];
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
    const ls_field *f = &a->over.source.fields[k];
    ls_dtype t = a->of[k]->type;
    size_t size = ls_dtype_size(t), each = ls_dtype_size(f->type), n = f->nbytes / each;
    if (t == f->type && !a->classes[k]) {
        memcpy(to, from, f->nbytes);
        return LS_OK;
    }
    for (size_t j = 0; j < n; j++, from += size, to += each) {
        if (f->type == LS_F32) {
            float real = ls_adapt_real(t, from);
            memcpy(to, &real, sizeof real);
            continue;
        }
        int64_t v = number_of(a, k, t, from);
        if (!is_in_range(a, k, v)) return fail_range(a, i, k, v, e);
        memcpy(to, &v, each);
    }
    return LS_OK;
}

static ls_status read_same(const adapted *a, uint64_t i, const ls_draw *d, uint8_t *sample,
                           ls_error *e) {
    LS_TRY(ls_source_over_read(&a->over, i, d, sample, e));
    for (int k = 0; k < a->over.source.nfields; k++) {
        uint8_t *at = sample + a->over.source.fields[k].offset;
        if (a->classes[k]) LS_TRY(convert(a, i, k, at, at, e));
    }
    return LS_OK;
}

static ls_status read_fields(const ls_source *s, uint64_t i, const ls_draw *d, void *sample,
                             ls_error *e) {
    const adapted *a = (const adapted *)s;
    if (a->same) return read_same(a, i, d, sample, e);
    uint8_t *given = ls_alloc(a->over.from->nbytes), *to = sample;
    ls_status status = ls_source_over_read(&a->over, i, d, given, e);
    for (int k = 0; status == LS_OK && k < s->nfields; k++) {
        uint8_t *at = to + s->fields[k].offset;
        status = a->is_list[k] ? convert_list(a, i, k, given, at, e)
                               : convert(a, i, k, given + a->of[k]->offset, at, e);
    }
    free(given);
    return status;
}

static ls_status draw_adapted(const ls_source *s, uint64_t i, const ls_draw *d, void *sample,
                              ls_error *e) {
    const adapted *a = (const adapted *)s;
    LS_TRY(read_fields(s, i, d, sample, e));
    return ls_finite_check(a->over.from, i, s->fields, s->nfields, sample, e);
}

/* ---- making ---- */

static void put_name(const ls_field *f, ls_buf *b) {
    ls_buf_printf(b, "'");
    ls_buf_escape(b, LS_ESCAPE_LINE, f->name, strlen(f->name));
    ls_buf_printf(b, "'");
}

static ls_status fail_missing(const adapted *a, const ls_field *f, ls_error *e) {
    ls_buf b = {0};
    for (int i = 0; i < a->over.from->nfields; i++) {
        ls_buf_printf(&b, "%s", i ? ", " : "");
        put_name(&a->over.from->fields[i], &b);
        ls_buf_printf(&b, " ");
        ls_field_put_shape(&a->over.from->fields[i], &b);
    }
    const char *format = a->over.from->format ? a->over.from->format : "";
    bool label = strcmp(f->name, "label") == 0, images = strcmp(format, "images") == 0;
    bool separate = strcmp(format, "idx") == 0 || strcmp(format, "npy") == 0;
    ls_status s = ls_fail(
        e, LS_EINVAL, "%s: has no field '%s', which the model reads; its fields are %.200s%s",
        a->what, f->name, b.data ? b.data : "none",
        label && images     ? "; name a directory that has a directory of images for each class"
        : label && separate ? "; name the file of labels by data.labels (eval: --labels)"
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
    const ls_field *f = &a->over.source.fields[k];
    bool wants = a->padded[k] && f->type == LS_I32 && f->ndims == 1 && ls_dtype_is_whole(has->type);
    return wants && (has->is_list || (ndims_of(has) <= 1 && !has_dims_of(has, f)));
}

static ls_status find_fields(adapted *a, int *missing_p, ls_error *e) {
    ls_source *s = &a->over.source;
    a->same = a->over.from->nbytes <= s->nbytes && a->over.from->nfields == s->nfields;
    for (int k = 0; k < s->nfields; k++) {
        const ls_field *f = &s->fields[k], *has = ls_source_field(a->over.from, f->name);
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
    adapted *a = ls_alloc(sizeof *a + strlen(w->what) + 1);
    strcpy(a->what, w->what);
    ls_source_over_open(&a->over, from, draw_adapted);
    a->over.source.nfields = w->nfields;
    a->over.source.nbytes = w->nbytes;
    memcpy(a->over.source.fields, w->fields, (size_t)w->nfields * sizeof *w->fields);
    memcpy(a->classes, w->classes, (size_t)w->nfields * sizeof *w->classes);
    for (int i = 0; i < w->nfields; i++) {
        a->padded[i] = w->padded && w->padded[i];
        a->ignored[i] = w->ignored ? w->ignored[i] : 0;
    }
    a->cuts = w->cuts;
    ls_status s = find_fields(a, w->missing_p, e);
    if (s == LS_OK)
        *s_p = &a->over.source;
    else
        ls_source_close(&a->over.source);
    return s;
}
