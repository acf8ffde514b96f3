/* read_jsonl.c - JSON: an object is a sample, its members are fields (json_members.h). Objects are
 * one a line, elements of an array, or over several lines each (json_records.h). All are read when
 * the source is opened; afterwards an object is found by its offset.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_records.h"
#include "base/plural.h"
#include "source/format.h"
#include "source/formats/json_members.h"
#include "source/index.h"
#include "source/note.h"
#include "source/places.h"

enum { LONGEST = 256 << 20 };

typedef struct jsonl_source {
    ls_records r;
    ls_json_members members;
    ls_json_records *forms; /* [places.nfiles] how objects follow each other in each file */
    ls_csv_rules rules;     /* which members are read, and their missing values */
    ls_missing missing;     /* of members without a rule of their own */
    bool follows, skips_damaged;
} jsonl_source;

/* One object of a file. */
typedef struct record {
    const char *path, *text; /* [nbytes] */
    size_t nbytes;
    uint64_t at;               /* offset in the file */
    const ls_json_records *in; /* the cursor; NULL: only the offset is known */
} record;

/* Prefixes a message with the place of the object. */
static ls_status fail_at(const record *x, const char *why, ls_error *e) {
    if (x->in) return ls_json_records_fail(x->in, x->path, why, e);
    return ls_fail(e, LS_EINVAL, "%s: the object at byte %llu: %s", x->path,
                   (unsigned long long)x->at, why);
}

static ls_status refuse(const record *x, const char *name, const char *wrong, ls_error *e) {
    char *why = ls_format("'%s' %s", name, wrong);
    ls_status s = fail_at(x, why, e);
    free(why);
    return s;
}

static record record_of(const ls_plain *file, const ls_json_records *c) {
    return (record){.path = file->path,
                    .text = c->text,
                    .nbytes = c->n,
                    .at = (uint64_t)(c->text - (const char *)file->data),
                    .in = c};
}

static ls_json_records begin(const ls_plain *file) {
    return ls_json_records_of((const char *)file->data, file->nbytes);
}

static ls_status parse(const record *x, ls_json **j_p, ls_error *e) {
    if (x->nbytes > LONGEST) {
        char *why = ls_format("is over %d MB", LONGEST >> 20);
        ls_status s = fail_at(x, why, e);
        free(why);
        return s;
    }
    ls_error why = {0};
    ls_json *j = NULL;
    if (ls_json_parse(x->text, x->nbytes, "", &j, &why) != LS_OK) return fail_at(x, why.msg, e);
    if (!ls_json_is_object(j)) {
        ls_json_free(j);
        return fail_at(x, "is not a JSON object", e);
    }
    *j_p = j;
    return LS_OK;
}

static ls_status fail_wrong(const record *x, ls_json_wrong *wrong, ls_error *e) {
    char *why = ls_format("%s%s", wrong->why,
                          wrong->missing
                              ? "; write a value, or set data.missing (--missing) to drop, which "
                                "leaves such objects out, or mean"
                              : "");
    ls_status status = refuse(x, wrong->name, why, e);
    free(why);
    free(wrong->name);
    return status;
}

static ls_status index_object(jsonl_source *s, const record *x, const ls_json *object,
                              ls_error *e) {
    ls_json_wrong wrong = ls_json_members_add(&s->members, object, s->r.places.n == 0);
    if (wrong.why) return fail_wrong(x, &wrong, e);
    s->r.base.nmissing += wrong.missing;
    if (wrong.missing)
        ls_places_leave_out(&s->r.places);
    else
        ls_places_add(&s->r.places, x->at);
    return LS_OK;
}

static ls_status index_record(jsonl_source *s, const record *x, ls_error *e) {
    ls_json *object = NULL;
    LS_TRY(parse(x, &object, e));
    ls_status status = index_object(s, x, object, e);
    ls_json_free(object);
    return status;
}

static ls_status index_file(jsonl_source *s, size_t i, const ls_source_options *o, ls_error *e) {
    const ls_plain *file = &s->r.places.files[i];
    ls_json_records c = begin(file);
    ls_error why = {0};
    ls_places_begin(&s->r.places, i);
    while (ls_json_records_next(&c)) {
        record x = record_of(file, &c);
        why = (ls_error){0};
        if (index_record(s, &x, &why) == LS_OK) continue;
        LS_TRY(ls_places_damaged(&s->r.places, &s->r.base, o, &why, e));
    }
    if (!c.wrong) return LS_OK;
    ls_json_records_fail(&c, file->path, c.wrong, &why);
    return ls_places_damaged(&s->r.places, &s->r.base, o, &why, e);
}

static void count_file(jsonl_source *s, size_t i) {
    const ls_plain *file = &s->r.places.files[i];
    ls_json_records c = begin(file);
    while (ls_json_records_next(&c)) {
        record x = record_of(file, &c);
        ls_error why = {0};
        ls_json *object = NULL;
        if (parse(&x, &object, &why) != LS_OK) continue;
        ls_json_members_count(&s->members, object);
        ls_json_free(object);
    }
}

static ls_status read_object(const ls_source *source, uint64_t i, void *sample, ls_error *e) {
    const jsonl_source *s = (const jsonl_source *)source;
    ls_sample_place place = ls_places_find(&s->r.places, i);
    const char *text = (const char *)place.file->data + place.at;
    const ls_json_records *form = &s->forms[place.file - s->r.places.files];
    record x = {.path = place.file->path,
                .text = text,
                .nbytes = ls_json_record_length(form, text),
                .at = place.at};
    ls_json *object = NULL;
    LS_TRY(parse(&x, &object, e));
    ls_json_wrong wrong = ls_json_members_store(&s->members, object, sample);
    ls_json_free(object);
    return wrong.why ? fail_wrong(&x, &wrong, e) : LS_OK;
}

static void close_jsonl(ls_source *source) {
    jsonl_source *s = (jsonl_source *)source;
    ls_places_close(&s->r.places);
    ls_json_members_free(&s->members);
    ls_csv_rules_free(&s->rules);
    free(s->forms);
    free(s);
}

/* What an index knows of the members, instead of reading the lines. */
static ls_status take_index(jsonl_source *s, ls_bytes *in, ls_error *e) {
    ls_places_take(&s->r.places, &s->r.base, in);
    ls_json_members_take(&s->members, in);
    s->r.base.nmissing = ls_bytes_take_u64(in, UINT64_MAX);
    return in->bad ? ls_fail(e, LS_EINVAL, "the index is damaged") : LS_OK;
}

static void put_index(const jsonl_source *s, ls_buf *out) {
    ls_places_put(&s->r.places, &s->r.base, out);
    ls_features_put(&s->members.features, out);
    ls_bytes_put_u64(out, s->r.base.nmissing);
}

/* Now that the members are known: which are read, and their rules. */
static ls_status apply_rules(jsonl_source *s, const ls_source_options *o, ls_error *e) {
    ls_features *f = &s->members.features;
    const char *what = s->r.places.files[0].path;
    LS_TRY(ls_features_choose(f, s->rules.columns, s->follows, what, e));
    ls_features_pass_over(f, o->unread);
    free(s->members.of);
    s->members.of = NULL;
    return ls_column_rules_find(f, &(ls_column_rules){&s->rules, s->missing, s->follows, what},
                                &s->members.of, e);
}

static ls_status index_all_files(jsonl_source *s, const ls_source_options *o, ls_error *e) {
    for (size_t i = 0; i < s->r.places.nfiles; i++) LS_TRY(index_file(s, i, o, e));
    ls_json_members_finish(&s->members);
    return LS_OK;
}

/* The first object says what the members are, or, where objects may lack some, all objects. */
static ls_status index_all(jsonl_source *s, const ls_source_options *o, ls_error *e) {
    bool all = o->skip_damaged || o->unread || o->csv || s->missing != LS_MISSING_REFUSE;
    for (size_t i = 0; all && i < s->r.places.nfiles; i++) count_file(s, i);
    if (all && s->members.features.n) {
        LS_TRY(apply_rules(s, o, e));
        s->members.keeps_rare = !o->skip_damaged;
        ls_json_members_decide(&s->members);
    }
    return index_all_files(s, o, e);
}

/* Members without a value in a file that follows another: of numbers the mean stands for it. */
static void fill_empty(jsonl_source *s) {
    for (size_t i = 0; s->follows && i < s->members.features.n; i++) {
        ls_feature *f = &s->members.features.list[i];
        if (s->members.of[i].missing != LS_MISSING_MEAN || f->unchosen) continue;
        if (!ls_json_member_is_empty(f)) continue;
        f->spelled = true;
        f->integers = f->wide = false;
        f->left_out = NULL;
        f->nmissing = s->r.places.n;
    }
}

static ls_status fail_empty(const jsonl_source *s, const char *path, ls_error *e) {
    if (!s->r.base.nmissing) return ls_fail(e, LS_EINVAL, "%s: has no objects", path);
    return ls_fail(e, LS_EINVAL,
                   "%s: each of its %llu objects lacks a value, and data.missing leaves such "
                   "objects out",
                   path, (unsigned long long)s->r.base.nmissing);
}

static ls_status index_files(jsonl_source *s, const ls_files *files, const ls_source_options *o,
                             ls_error *e) {
    bool known = ls_index_is_known(o->index);
    s->forms = LS_NEW_ARRAY(ls_json_records, files->n);
    for (size_t i = 0; i < files->n; i++) {
        LS_TRY(ls_places_open(&s->r.places, files->paths[i], o, e));
        s->forms[i] = begin(&s->r.places.files[i]);
    }
    LS_TRY(known ? take_index(s, ls_index_in(o->index), e) : index_all(s, o, e));
    if (known) LS_TRY(apply_rules(s, o, e));
    if (s->r.places.n == 0) return fail_empty(s, files->paths[0], e);
    if (s->r.base.nmissing)
        ls_note("%s: %llu object%s without a value left out", files->paths[0],
                (unsigned long long)s->r.base.nmissing, ls_plural((int64_t)s->r.base.nmissing));
    ls_buf *out = known ? NULL : ls_index_out(o->index);
    if (out) put_index(s, out);
    if (s->members.of) fill_empty(s);
    return ls_features_finish(&s->members.features, o->named, &s->r.base, files->paths[0], e);
}

/* Numbers for which a mean stands may be absent from all objects of a file that follows. */
static void add_absent(jsonl_source *s, const ls_numbering *numbering) {
    for (size_t i = 0; i < numbering->n; i++) {
        const char *name = numbering->list[i].name;
        bool own = false;
        if (!numbering->list[i].fills || ls_features_find(&s->members.features, name) ||
            ls_csv_rules_missing(&s->rules, name, s->missing, &own) != LS_MISSING_MEAN)
            continue;
        ls_feature *f = ls_features_add(&s->members.features, name, strlen(name));
        f->spelled = true;
        f->nmissing = s->r.places.n;
    }
}

/* Leaves out objects with texts that the numbering does not have: all are read again. */
static ls_status leave_out_unknown(jsonl_source *s, const ls_numbering *numbering, const char *what,
                                   ls_error *e) {
    ls_source_options o = {.skip_damaged = true};
    if (!s->skips_damaged || !ls_features_have_unknown(&s->members.features, numbering))
        return LS_OK;
    ls_places_forget(&s->r.places);
    s->r.base.damage = (ls_damage){0};
    s->r.base.nmissing = 0;
    ls_json_members_forget(&s->members);
    s->members.known = numbering;
    ls_status status = index_all_files(s, &o, e);
    s->members.known = NULL;
    LS_TRY(status);
    if (s->r.places.n == 0) return ls_fail(e, LS_EINVAL, "%s: has no objects", what);
    s->r.base.count = s->r.places.n;
    if (s->members.of) fill_empty(s);
    return LS_OK;
}

static ls_status follow(ls_source *source, const ls_numbering *numbering, const char *what,
                        ls_error *e) {
    jsonl_source *s = (jsonl_source *)source;
    LS_TRY(leave_out_unknown(s, numbering, what, e));
    add_absent(s, numbering);
    return ls_features_follow(&s->members.features, numbering, source, what, e);
}

static ls_status open_jsonl(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                            ls_error *e) {
    jsonl_source *s = LS_NEW(jsonl_source);
    s->rules = ls_csv_rules_copy(o->csv);
    s->missing = o->missing;
    s->follows = o->follows;
    s->skips_damaged = o->skip_damaged;
    s->r.places.holes = LS_HOLES_REFUSED;
    ls_records_begin(
        &s->r, (ls_source){
                   .format = "jsonl", .read = read_object, .follow = follow, .close = close_jsonl});
    ls_status status = index_files(s, files, o, e);
    return ls_records_end(&s->r, status, s_p);
}

/* A data set of MosaicML's streaming has an index.json. */
static bool recognizes(const ls_first_file *f) {
    return f->named && strcmp(f->name, "index.json") != 0;
}

const ls_data_format ls_format_jsonl = {
    .name = "jsonl",
    .in_records = true,
    .has_columns = true,
    .recognizes = recognizes,
    .suffixes = {".jsonl", ".ndjson", ".json"},
    .open = open_jsonl,
};
