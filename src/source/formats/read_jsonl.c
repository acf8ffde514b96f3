/* read_jsonl.c - JSON lines: an object a line is a sample, its members are fields
 * (json_members.h). All lines are read when the source is opened; afterwards a line is found by its
 * offset.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "source/format.h"
#include "source/formats/json_members.h"
#include "source/index.h"
#include "source/places.h"

enum { LONGEST_LINE = 256 << 20 };

typedef struct jsonl_source {
    ls_records r;
    ls_json_members members;
    char *ends; /* [places.nfiles] what ends a line of each file */
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
static line find_line(const ls_plain *file, char end_of_line, uint64_t at, uint64_t number) {
    const char *text = (const char *)file->data + at;
    size_t rest = file->nbytes - at;
    const char *end = memchr(text, end_of_line, rest);
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
    if (ls_json_parse(l->text, l->nbytes, "", &j, &why) != LS_OK)
        return ls_fail(e, LS_EINVAL, "%s:%llu: %s", l->path, (unsigned long long)l->number,
                       why.msg);
    if (!ls_json_is_object(j)) {
        ls_json_free(j);
        return ls_fail(e, LS_EINVAL, "%s:%llu: is not a JSON object", l->path,
                       (unsigned long long)l->number);
    }
    *j_p = j;
    return LS_OK;
}

static ls_status fail_wrong(const line *l, ls_json_wrong *wrong, ls_error *e) {
    ls_status status = refuse(l, wrong->name, wrong->why, e);
    free(wrong->name);
    return status;
}

static ls_status index_object(jsonl_source *s, const line *l, const ls_json *object, ls_error *e) {
    ls_json_wrong wrong = ls_json_members_add(&s->members, object, s->r.places.n == 0);
    if (wrong.why) return fail_wrong(l, &wrong, e);
    ls_places_add(&s->r.places, l->at);
    return LS_OK;
}

static ls_status index_line(jsonl_source *s, const line *l, ls_error *e) {
    ls_json *object = NULL;
    LS_TRY(parse_line(l, &object, e));
    ls_status status = index_object(s, l, object, e);
    ls_json_free(object);
    return status;
}

/* A file without LF has lines that end in CR, which no JSON text has but for space. */
static char line_end(const ls_plain *file) {
    bool lf = file->nbytes == 0 || memchr(file->data, '\n', file->nbytes);
    return lf ? '\n' : '\r';
}

static ls_status index_file(jsonl_source *s, size_t i, const ls_source_options *o, ls_error *e) {
    const ls_plain *file = &s->r.places.files[i];
    line l = {.next = ls_utf8_mark((const char *)file->data, file->nbytes)};
    ls_places_begin(&s->r.places, i);
    for (uint64_t number = 1; l.next < file->nbytes; number++) {
        ls_error why = {0};
        l = find_line(file, s->ends[i], l.next, number);
        if (l.nbytes == 0 || index_line(s, &l, &why) == LS_OK) continue;
        LS_TRY(ls_places_damaged(&s->r.places, &s->r.base, o, &why, e));
    }
    return LS_OK;
}

static void count_file(jsonl_source *s, size_t i) {
    const ls_plain *file = &s->r.places.files[i];
    line l = {.next = ls_utf8_mark((const char *)file->data, file->nbytes)};
    for (uint64_t number = 1; l.next < file->nbytes; number++) {
        ls_error why = {0};
        ls_json *object = NULL;
        l = find_line(file, s->ends[i], l.next, number);
        if (l.nbytes == 0 || parse_line(&l, &object, &why) != LS_OK) continue;
        ls_json_members_count(&s->members, object);
        ls_json_free(object);
    }
}

static ls_status read_object(const ls_source *source, uint64_t i, void *sample, ls_error *e) {
    const jsonl_source *s = (const jsonl_source *)source;
    ls_sample_place place = ls_places_find(&s->r.places, i);
    line l = find_line(place.file, s->ends[place.file - s->r.places.files], place.at, 0);
    ls_json *object = NULL;
    LS_TRY(parse_line(&l, &object, e));
    ls_json_wrong wrong = ls_json_members_store(&s->members, object, sample);
    ls_json_free(object);
    return wrong.why ? fail_wrong(&l, &wrong, e) : LS_OK;
}

static void close_jsonl(ls_source *source) {
    jsonl_source *s = (jsonl_source *)source;
    ls_places_close(&s->r.places);
    ls_json_members_free(&s->members);
    free(s->ends);
    free(s);
}

/* What an index knows of the members, instead of reading the lines. */
static ls_status take_index(jsonl_source *s, ls_bytes *in, ls_error *e) {
    ls_places_take(&s->r.places, &s->r.base, in);
    ls_json_members_take(&s->members, in);
    return in->bad ? ls_fail(e, LS_EINVAL, "the index is damaged") : LS_OK;
}

static ls_status index_lines(jsonl_source *s, const ls_source_options *o, ls_error *e) {
    size_t n = s->r.places.nfiles;
    for (size_t i = 0; o->skip_damaged && i < n; i++) count_file(s, i);
    if (o->skip_damaged) ls_json_members_decide(&s->members);
    for (size_t i = 0; i < n; i++) LS_TRY(index_file(s, i, o, e));
    return LS_OK;
}

static ls_status index_files(jsonl_source *s, const ls_files *files, const ls_source_options *o,
                             ls_error *e) {
    bool known = ls_index_is_known(o->index);
    s->ends = LS_NEW_ARRAY(char, files->n);
    for (size_t i = 0; i < files->n; i++) {
        LS_TRY(ls_places_open(&s->r.places, files->paths[i], o, e));
        s->ends[i] = line_end(&s->r.places.files[i]);
    }
    LS_TRY(known ? take_index(s, ls_index_in(o->index), e) : index_lines(s, o, e));
    if (s->r.places.n == 0) return ls_fail(e, LS_EINVAL, "%s: has no objects", files->paths[0]);
    ls_buf *out = known ? NULL : ls_index_out(o->index);
    if (out) {
        ls_places_put(&s->r.places, &s->r.base, out);
        ls_features_put(&s->members.features, out);
    }
    return ls_features_finish(&s->members.features, o->named, &s->r.base, files->paths[0], e);
}

static ls_status open_jsonl(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                            ls_error *e) {
    jsonl_source *s = LS_NEW(jsonl_source);
    s->r.features = &s->members.features;
    s->r.places.holes = LS_HOLES_REFUSED;
    ls_records_begin(&s->r,
                     (ls_source){.format = "jsonl", .read = read_object, .close = close_jsonl});
    ls_status status = index_files(s, files, o, e);
    return ls_records_end(&s->r, status, s_p);
}

const ls_data_format ls_format_jsonl = {
    .name = "jsonl",
    .in_records = true,
    .suffixes = {".jsonl", ".ndjson"},
    .open = open_jsonl,
};
