/* read_jsonl.c - JSON lines: an object a line is a sample, its members are fields (features.h).
 *
 * A member is a number, true or false (1 and 0), a text, or an array of numbers, which may be
 * nested; each object has the members of the first one, in any order, with the same shapes. A field
 * whose numbers are all written as integers is i32, else f32; arrays of integers may have different
 * lengths: they are a list (source.h). All lines are read when the source is
 * opened; afterwards a line is found by its offset.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "source/features.h"
#include "source/format.h"
#include "source/index.h"
#include "source/number.h"
#include "source/places.h"

enum { LONGEST_LINE = 256 << 20 };

typedef struct jsonl_source {
    ls_source base;
    ls_places places;
    ls_features members;
} jsonl_source;

/* One line of a file. */
typedef struct line {
    const char *path, *text; /* [nbytes] */
    size_t nbytes, next;     /* offset of the next line */
    uint64_t number;         /* from 1; 0: only its offset is known */
    uint64_t at;
} line;

static ls_status refuse(const line *l, const char *name, const char *wrong, ls_error *e) {
    if (l->number)
        return ls_fail(e, LS_EINVAL, "%s:%llu: '%s' %s", l->path, (unsigned long long)l->number,
                       name, wrong);
    return ls_fail(e, LS_EINVAL, "%s: the line at byte %llu: '%s' %s", l->path,
                   (unsigned long long)l->at, name, wrong);
}

/* The line at offset `at`, without its line break. */
static line find_line(const ls_plain *file, uint64_t at, uint64_t number) {
    const char *text = (const char *)file->data + at;
    size_t rest = file->nbytes - at;
    const char *end = memchr(text, '\n', rest);
    size_t n = end ? (size_t)(end - text) : rest;
    line l = {.path = file->path, .text = text, .number = number, .at = at};
    l.next = at + n + (end != NULL);
    while (n && strchr(" \t\r", text[n - 1]) && text[n - 1]) n--;
    l.nbytes = n;
    return l;
}

static ls_status parse_line(const line *l, ls_json **j_p, ls_error *e) {
    if (l->nbytes > LONGEST_LINE)
        return ls_fail(e, LS_EINVAL, "%s:%llu: the line is over %d MB", l->path,
                       (unsigned long long)l->number, LONGEST_LINE >> 20);
    ls_error why = {0};
    ls_json *j = NULL;
    if (ls_json_parse(l->text, l->nbytes, "", &j, &why) != LS_OK) {
        const char *reason = strstr(why.msg, "is not valid JSON");
        return ls_fail(e, LS_EINVAL, "%s:%llu: %s", l->path, (unsigned long long)l->number,
                       reason ? reason : why.msg);
    }
    if (!ls_json_is_object(j)) {
        ls_json_free(j);
        return ls_fail(e, LS_EINVAL, "%s:%llu: is not a JSON object", l->path,
                       (unsigned long long)l->number);
    }
    *j_p = j;
    return LS_OK;
}

/* Sets the shape of a member from its first value. */
static const char *set_shape(ls_feature *f, const ls_json *value) {
    f->text = ls_json_text(value) != NULL;
    f->spelled = !f->text;
    f->integers = true;
    while (ls_json_is_array(value)) {
        size_t n = ls_json_count(value);
        if (n == 0 && f->ndims) return "is an empty array";
        if (f->ndims == LS_FIELD_DIMS) return "is an array of too many dimensions";
        if (n > LS_SAMPLE_NBYTES / f->count) return "is too large";
        f->dims[f->ndims++] = (int64_t)n;
        f->count *= n;
        if (n == 0) return NULL;
        value = ls_json_at(value, 0);
    }
    if (ls_json_is_object(value))
        return "has objects, which are no samples; conversations are for data.format: chat";
    return NULL;
}

/* The values of one member, on their way to a sample or into what is known about the member. */
typedef struct values {
    ls_feature *learn;   /* NULL: known already */
    const ls_feature *f; /* its shape */
    void *sample;        /* NULL: values are only checked */
    size_t n;            /* values so far */
} values;

static const char *add_number(values *v, const ls_json *value) {
    double x = 0;
    int64_t whole = 0;
    if (ls_json_is_bool(value))
        x = ls_json_is_true(value);
    else if (!ls_json_number(value, &x))
        return "has no number where one is expected";
    else if (v->learn && !ls_json_integer(value, &whole))
        v->learn->integers = false;
    if (fabs(x) > (double)FLT_MAX) return "has a number that no f32 can hold";
    if (v->learn) v->learn->whole = v->learn->whole && ls_number_is_i32(x);
    if (v->learn && x <= INT32_MIN) v->learn->has_least = true;
    if (v->sample && v->f->as == LS_I32 && !ls_number_is_i32(x)) return "has no integer";
    if (v->sample && v->n == v->f->count) return "has more numbers than when the file was opened";
    if (v->sample) ls_feature_store(v->f, v->sample, v->n, x);
    v->n++;
    return NULL;
}

/* Numbers that a list may have: integers above the least i32, which ends a list. */
static bool has_ids(const ls_json *list) {
    for (size_t i = 0; i < ls_json_count(list); i++) {
        int64_t x = 0;
        const ls_json *value = ls_json_at(list, i);
        if (ls_json_is_bool(value) || !ls_json_integer(value, &x)) return false;
        if (x <= INT32_MIN || x > INT32_MAX) return false;
    }
    return true;
}

/* May a member be a list, whose array has another length than the first one? */
static bool can_be_list(const ls_feature *f, const ls_json *value) {
    return f->ndims == 1 && f->integers && f->whole && !f->has_least && has_ids(value);
}

/* Arrays are nested at most LS_FIELD_DIMS deep. */
static const char *add_values(values *v, const ls_json *value, int dim) {
    if (dim == v->f->ndims) return add_number(v, value);
    size_t n = (size_t)v->f->dims[dim];
    if (!ls_json_is_array(value)) return "has another shape than in the first line";
    if (v->f->is_list || ls_json_count(value) != n) {
        if (!can_be_list(v->f, value))
            return v->f->is_list ? "is no list of integers, but is one in other lines"
                                 : "has another shape than in the first line";
        n = ls_json_count(value);
        if (v->learn && !ls_feature_grow(v->learn, n)) return "is too large";
        if (v->sample) ls_feature_end(v->f, v->sample, n < v->f->count ? n : v->f->count);
    }
    const char *wrong = NULL;
    for (size_t i = 0; !wrong && i < n; i++) wrong = add_values(v, ls_json_at(value, i), dim + 1);
    return wrong;
}

static const char *add_text(values *v, const ls_json *value) {
    const char *text = ls_json_text(value);
    if (!text) return "is no text, but is one in the first line";
    if (v->learn) ls_classes_add(&v->learn->classes, text, strlen(text));
    if (!v->sample) return NULL;
    int code = ls_classes_find(&v->f->classes, text, strlen(text));
    if (code < 0) return "has changed since the file was opened";
    ls_feature_store(v->f, v->sample, 0, code);
    return NULL;
}

static const char *add_member(values *v, const ls_json *value) {
    return v->f->text ? add_text(v, value) : add_values(v, value, 0);
}

/* Compares the object with the members, and checks all values. */
static ls_status check_object(jsonl_source *s, const line *l, const ls_json *object, ls_error *e) {
    const char *name = NULL;
    const ls_json *value = NULL;
    size_t n = 0;
    for (void *it = NULL; (it = ls_json_next(object, it, &name, &value)); n++) {
        const ls_feature *f = ls_features_find(&s->members, name);
        if (!f) return refuse(l, name, "is not in the first line", e);
        const char *wrong = add_member(&(values){.f = f}, value);
        if (wrong) return refuse(l, name, wrong, e);
    }
    for (size_t i = 0; n != s->members.n && i < s->members.n; i++)
        if (!ls_json_get(object, s->members.list[i].name))
            return refuse(l, s->members.list[i].name, "is missing", e);
    return LS_OK;
}

static ls_status add_members(jsonl_source *s, const line *l, const ls_json *object, ls_error *e) {
    const char *name = NULL;
    const ls_json *value = NULL;
    for (void *it = NULL; (it = ls_json_next(object, it, &name, &value));) {
        const char *wrong = set_shape(ls_features_add(&s->members, name, strlen(name)), value);
        if (wrong) return refuse(l, name, wrong, e);
    }
    return LS_OK;
}

static ls_status index_object(jsonl_source *s, const line *l, const ls_json *object, ls_error *e) {
    ls_status status = LS_OK;
    if (s->places.n == 0) {
        ls_features_free(&s->members); /* those of a damaged line before */
        status = add_members(s, l, object, e);
    }
    if (status == LS_OK) status = check_object(s, l, object, e);
    if (status != LS_OK) return status;
    for (size_t i = 0; i < s->members.n; i++) {
        ls_feature *f = &s->members.list[i];
        add_member(&(values){.f = f, .learn = f}, ls_json_get(object, f->name));
    }
    ls_places_add(&s->places, l->at);
    return LS_OK;
}

static ls_status index_line(jsonl_source *s, const line *l, ls_error *e) {
    ls_json *object = NULL;
    LS_TRY(parse_line(l, &object, e));
    ls_status status = index_object(s, l, object, e);
    ls_json_free(object);
    return status;
}

static ls_status index_file(jsonl_source *s, const ls_source_options *o, ls_error *e) {
    const ls_plain *file = &s->places.files[s->places.nfiles - 1];
    line l = {0};
    for (uint64_t number = 1; l.next < file->nbytes; number++) {
        ls_error why = {0};
        l = find_line(file, l.next, number);
        if (l.nbytes == 0 || index_line(s, &l, &why) == LS_OK) continue;
        LS_TRY(ls_places_damaged(&s->places, &s->base, o, &why, e));
    }
    return LS_OK;
}

static ls_status read_object(const ls_source *source, uint64_t i, void *sample, ls_error *e) {
    const jsonl_source *s = (const jsonl_source *)source;
    ls_sample_place place = ls_places_find(&s->places, i);
    line l = find_line(place.file, place.at, 0);
    ls_json *object = NULL;
    LS_TRY(parse_line(&l, &object, e));
    ls_status status = LS_OK;
    for (size_t k = 0; status == LS_OK && k < s->members.n; k++) {
        const ls_feature *f = &s->members.list[k];
        if (f->left_out) continue;
        const char *wrong =
            add_member(&(values){.f = f, .sample = sample}, ls_json_get(object, f->name));
        if (wrong) status = refuse(&l, f->name, wrong, e);
    }
    ls_json_free(object);
    return status;
}

static void close_jsonl(ls_source *source) {
    jsonl_source *s = (jsonl_source *)source;
    ls_places_close(&s->places);
    ls_features_free(&s->members);
    free(s);
}

/* What an index knows of the members, instead of reading the lines. */
static ls_status take_index(jsonl_source *s, ls_bytes *in, ls_error *e) {
    ls_places_take(&s->places, &s->base, in);
    ls_features_take(&s->members, in);
    for (size_t i = 0; i < s->members.n; i++)
        if (!s->members.list[i].text && !s->members.list[i].spelled) in->bad = true;
    return in->bad ? ls_fail(e, LS_EINVAL, "the index is damaged") : LS_OK;
}

static ls_status index_files(jsonl_source *s, const ls_files *files, const ls_source_options *o,
                             ls_error *e) {
    bool known = ls_index_is_known(o->index);
    for (size_t i = 0; i < files->n; i++) {
        LS_TRY(ls_places_open(&s->places, files->paths[i], o, e));
        if (!known) LS_TRY(index_file(s, o, e));
    }
    if (known) LS_TRY(take_index(s, ls_index_in(o->index), e));
    if (s->places.n == 0) return ls_fail(e, LS_EINVAL, "%s: has no objects", files->paths[0]);
    ls_buf *out = known ? NULL : ls_index_out(o->index);
    if (out) {
        ls_places_put(&s->places, &s->base, out);
        ls_features_put(&s->members, out);
    }
    return ls_features_finish(&s->members, &s->base, files->paths[0], e);
}

static ls_status open_jsonl(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                            ls_error *e) {
    jsonl_source *s = LS_NEW(jsonl_source);
    s->base = (ls_source){.format = "jsonl", .read = read_object, .close = close_jsonl};
    ls_status status = index_files(s, files, o, e);
    if (status != LS_OK) {
        close_jsonl(&s->base);
        return status;
    }
    s->base.count = s->places.n;
    s->base.hash = ls_places_hash(&s->places);
    *s_p = &s->base;
    return LS_OK;
}

const ls_data_format ls_format_jsonl = {
    .name = "jsonl",
    .in_records = true,
    .suffixes = {".jsonl", ".ndjson"},
    .open = open_jsonl,
};
