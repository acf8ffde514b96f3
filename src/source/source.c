/* source.c - see source.h; the table of formats. */
#include "source/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/guard.h"
#include "base/nearest.h"
#include "source/csv_rules.h"
#include "source/fetch.h"
#include "source/format.h"
#include "source/image.h"
#include "source/index.h"
#include "source/note.h"
#include "source/numbering.h"
#include "source/pixel_cache.h"
#include "tensor/dtype.h"

/* In the order in which they are asked. */
static const ls_data_format *const formats[] = {
    &ls_format_idx,    &ls_format_npy,       &ls_format_cifar,    &ls_format_tokens,
    &ls_format_csv,    &ls_format_jsonl,     &ls_format_tfrecord, &ls_format_mds,
    &ls_format_images, &ls_format_webdataset};
enum { NFORMATS = sizeof formats / sizeof *formats };

/* ---- which format ---- */

static bool ends_in(const char *name, size_t n, const char *suffix) {
    size_t m = strlen(suffix);
    return n >= m && strncmp(name + n - m, suffix, m) == 0;
}

static bool is_named(const ls_data_format *f, const char *name) {
    for (int i = 0; f->suffixes[i]; i++)
        if (ends_in(name, strlen(name), f->suffixes[i])) return true;
    return false;
}

static const ls_data_format *recognize(ls_first_file *file) {
    for (int named = 1; named >= 0; named--)
        for (int i = 0; i < NFORMATS; i++) {
            const ls_data_format *f = formats[i];
            file->named = is_named(f, file->name);
            if (file->named != (named == 1)) continue;
            if (f->recognizes ? f->recognizes(file) : file->named) return f;
        }
    return NULL;
}

/* The name without directories, trailing slashes and the packing's suffix; the caller frees it. */
static char *name_of(const char *path) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    if (ends_in(path, n, ".gz"))
        n -= 3;
    else if (ends_in(path, n, ".zst"))
        n -= 4;
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    return ls_format("%.*s", (int)(n - begin), path + begin);
}

static void list_formats(ls_buf *b) {
    for (int i = 0; i < NFORMATS; i++)
        ls_buf_printf(b, "%s%s", i == 0 ? "" : i + 1 < NFORMATS ? ", " : " or ", formats[i]->name);
}

/* asks_csv: a file of no known format is CSV. */
static ls_status by_contents(const char *path, bool asks_csv, const ls_data_format **f_p,
                             ls_error *e) {
    uint8_t *first = ls_alloc(LS_PLAIN_FIRST);
    char *name = name_of(path);
    ls_first_file file = {.path = path, .name = name, .bytes = first};
    file.is_dir = ls_file_is_dir(path);
    ls_status s = file.is_dir ? LS_OK : ls_plain_first(path, first, &file.nbytes, &file.size, e);
    const ls_data_format *f = s == LS_OK ? recognize(&file) : NULL;
    if (s == LS_OK && !f && asks_csv && !file.is_dir) f = &ls_format_csv;
    if (s == LS_OK && !f) {
        ls_buf b = {0};
        list_formats(&b);
        s = ls_fail(e, LS_EINVAL,
                    "%s: neither its name nor its first bytes are those of a known format; name "
                    "the format: %s",
                    path, b.data);
        ls_buf_free(&b);
    }
    free(name);
    free(first);
    if (s == LS_OK) *f_p = f;
    return s;
}

static ls_status by_name(const char *name, const ls_data_format **f_p, ls_error *e) {
    const char *meant = NULL;
    for (int i = 0; i < NFORMATS; i++) {
        if (strcmp(formats[i]->name, name) == 0) {
            *f_p = formats[i];
            return LS_OK;
        }
        if (!meant && ls_is_near(name, formats[i]->name)) meant = formats[i]->name;
    }
    ls_buf b = {0};
    list_formats(&b);
    ls_status s =
        ls_fail(e, LS_EINVAL, "there is no data format '%s'%s%s%s; use %s", name,
                meant ? " (did you mean '" : "", meant ? meant : "", meant ? "'?)" : "", b.data);
    ls_buf_free(&b);
    return s;
}

/* ---- open ---- */

static void count_files(const ls_files *files, ls_source *s) {
    s->nfiles = files->n;
    for (size_t i = 0; i < files->n; i++) {
        struct stat st;
        if (stat(files->paths[i], &st) == 0) s->file_nbytes += (uint64_t)st.st_size;
    }
}

/* Another version of a decoder may give other pixels of the same file, and earlier versions of this
 * program turned no image upright. */
static void add_decoders(ls_source *s) {
    static const char turned[] = "turned";
    const char *decoders = ls_image_decoders();
    ls_hasher *h = ls_hasher_new();
    ls_hasher_add(h, &s->hash, sizeof s->hash);
    ls_hasher_add(h, decoders, strlen(decoders));
    if (s->turned) ls_hasher_add(h, turned, strlen(turned));
    s->hash = ls_hasher_finish(h);
}

ls_status ls_source_refuse(const ls_error *damage, ls_error *e) {
    if (e) *e = *damage;
    if (damage->code != LS_EINVAL || strstr(damage->msg, "; ")) return damage->code;
    return ls_fail(e, LS_EINVAL,
                   "%s; repair the file, or skip damaged records (--skip-damaged, data.damaged: "
                   "skip)",
                   damage->msg);
}

ls_status ls_source_leave_out(ls_source *s, const ls_source_options *o, const ls_error *why,
                              ls_error *e) {
    if (why->code != LS_EINVAL || !o->skip_damaged) return ls_source_refuse(why, e);
    ls_damage_add(&s->damage, why->msg);
    return LS_OK;
}

/* Bytes that were lost are zeros to a reader: whatever it says then does not count. */
static ls_status check_files(const ls_source *s, ls_error *e) {
    LS_TRY(ls_source_verify(s, e));
    return ls_guard_check(e);
}

static ls_status read_checked(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    ls_error own = {0};
    ls_status status = s->read_record(s, i, sample, &own);
    if (status == LS_OK && ls_guard_check(NULL) == LS_OK) return LS_OK;
    LS_TRY(check_files(s, e));
    return ls_source_refuse(&own, e);
}

static ls_status open_once(const ls_data_format *f, const ls_files *files,
                           const ls_source_options *o, ls_source **s_p, ls_error *e) {
    ls_error own = {0};
    ls_source *s = NULL;
    ls_status status = f->open(files, o, &s, &own);
    if (ls_guard_check(e) != LS_OK) {
        ls_source_close(s);
        return LS_EIO;
    }
    if (status == LS_OK && s->count == 0) {
        status = ls_fail(&own, LS_EINVAL, "%s: has no samples", files->paths[0]);
        ls_source_close(s);
    }
    if (status != LS_OK) {
        if (e) *e = own;
        return status;
    }
    s->format = f->name;
    ls_damage_note(&s->damage, files->paths[0]);
    if (s->nfiles == 0) count_files(files, s);
    *s_p = s;
    return LS_OK;
}

/* By the index, if there is one and what it says holds. */
static ls_status open_indexed(const ls_data_format *f, const ls_files *files,
                              const ls_source_options *options, ls_source **s_p, ls_error *e) {
    ls_source_options o = *options;
    ls_source *s = NULL;
    ls_index *x = o.index = ls_index_open(f->name, files, options);
    ls_status status = LS_EINVAL;
    if (ls_index_is_known(x)) {
        status = open_once(f, files, &o, &s, NULL);
        if (status != LS_OK) ls_index_forget(x);
    }
    if (status != LS_OK) status = open_once(f, files, &o, &s, e);
    if (status != LS_OK) {
        ls_index_free(x);
        return status;
    }
    ls_index_save(x, s);
    s->index = x;
    s->read_record = s->read;
    s->read = read_checked;
    *s_p = s;
    return LS_OK;
}

static ls_status open_files(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                            ls_error *e) {
    if (files->n == 0) return ls_fail(e, LS_EINVAL, "a file of data is missing");
    const ls_data_format *f = NULL;
    ls_source *s = NULL;
    if (o->ratings)
        f = &ls_format_ratings;
    else if (o->clicks)
        f = &ls_format_clicks;
    else if (o->format)
        LS_TRY(by_name(o->format, &f, e));
    else
        LS_TRY(by_contents(files->paths[0], o->csv != NULL, &f, e));
    if ((o->missing || o->csv) && !f->is_table)
        return ls_fail(
            e, LS_EINVAL,
            "%s: data.missing, data.columns, data.na and data.csv are for CSV files; this "
            "is %s: remove them",
            files->paths[0], f->name);
    LS_TRY(open_indexed(f, files, o, &s, e));
    if (s->decodes) add_decoders(s);
    if (s->decodes) s->pixels = ls_pixel_cache_open(s, o, files->paths[0]);
    *s_p = s;
    return LS_OK;
}

static ls_status open_local(const char *paths, const ls_source_options *o, ls_source **s_p,
                            ls_error *e) {
    ls_files files = {0};
    LS_TRY(ls_files_find(paths, &files, e));
    ls_status s = open_files(&files, o, s_p, e);
    ls_files_free(&files);
    return s;
}

ls_status ls_source_open(const char *paths, const ls_source_options *options, ls_source **s_p,
                         ls_error *e) {
    ls_source_options o = options ? *options : (ls_source_options){0};
    uint64_t most = o.most_nbytes ? o.most_nbytes : LS_FETCH_NBYTES;
    char *local = NULL, *labels = NULL;
    LS_TRY(ls_fetch_paths(paths, o.cache, most, &local, e));
    ls_status s = o.labels ? ls_fetch_paths(o.labels, o.cache, most, &labels, e) : LS_OK;
    o.labels = labels;
    if (s == LS_OK) s = open_local(local, &o, s_p, e);
    free(local);
    free(labels);
    return s;
}

/* What its labels are, if one side has names and the other has numbers. */
static void compare_labels(ls_source *s, const ls_numbering *numbering, const char *what) {
    static const char unlike[] =
        "the labels of data.val_path have names, and those of the training "
        "data are numbers; give both the same";
    const ls_numbered *label = NULL;
    ls_field *f = NULL;
    for (size_t i = 0; numbering && i < numbering->n; i++)
        if (numbering->list[i].text && strcmp(numbering->list[i].field, "label") == 0)
            label = &numbering->list[i];
    for (int i = 0; i < s->nfields; i++)
        if (strcmp(s->fields[i].name, "label") == 0) f = &s->fields[i];
    for (int i = 0; f && !label && i < s->nclasses; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        if (strcmp(s->classes[i], number) != 0) f->trouble = unlike;
    }
    if (f && !s->classes && label)
        ls_note("%s: its labels are numbers, and count the classes of the training data in the "
                "order of their names: 0 is '%.60s'",
                what, label->in.n ? label->in.names[0] : "");
}

ls_status ls_source_follow(ls_source *s, const ls_numbering *numbering, const char *what,
                           ls_error *e) {
    uint64_t ndamaged = s->damage.n;
    if (numbering && numbering->n && s->follow) LS_TRY(s->follow(s, numbering, what, e));
    if (s->damage.n != ndamaged) ls_damage_note(&s->damage, what); /* rows were read again */
    compare_labels(s, numbering, what);
    return LS_OK;
}

void ls_source_close(ls_source *s) {
    if (!s) return;
    ls_index *x = s->index;
    ls_pixel_cache_close(s->pixels);
    s->close(s);
    ls_index_free(x);
}

ls_status ls_source_verify(const ls_source *s, ls_error *e) {
    for (int k = 0; k < s->nparts; k++) LS_TRY(ls_source_verify(s->parts[k], e));
    return ls_index_verify(s->index, e);
}

bool ls_source_in_records(const char *format) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i]->name, format) == 0) return formats[i]->in_records;
    return false;
}

/* ---- fields ---- */

const ls_field *ls_source_field(const ls_source *s, const char *name) {
    for (int i = 0; i < s->nfields; i++)
        if (strcmp(s->fields[i].name, name) == 0) return &s->fields[i];
    return NULL;
}

ls_status ls_source_draw(const ls_source *s, uint64_t i, const ls_draw *d, void *sample,
                         ls_error *e) {
    return s->draw ? s->draw(s, i, d, sample, e) : s->read(s, i, sample, e);
}

ls_status ls_source_sample(const void *source, const ls_draw *d, size_t nbytes, void *sample,
                           ls_error *e) {
    const ls_source *s = source;
    (void)nbytes;
    return ls_source_draw(s, d->sample, d, sample, e);
}

bool ls_field_is_image(const ls_field *f) {
    return f->type == LS_U8 && f->ndims == 3 && (f->dims[2] == 1 || f->dims[2] == 3);
}

size_t ls_field_count(const ls_field *f, const void *sample) {
    size_t n = f->nbytes / ls_dtype_size(f->type), i = 0;
    const char *at = (const char *)sample + f->offset;
    if (!f->is_list) return n;
    for (; i < n; i++) {
        int32_t x = 0;
        int64_t y = 0;
        if (f->type == LS_I32) memcpy(&x, at + i * sizeof x, sizeof x);
        if (f->type == LS_I64) memcpy(&y, at + i * sizeof y, sizeof y);
        if (x == INT32_MIN || y == INT64_MIN) break;
    }
    return i;
}

void ls_field_end(const ls_field *f, void *sample, size_t n) {
    static const int32_t end32 = INT32_MIN;
    static const int64_t end64 = INT64_MIN;
    size_t size = ls_dtype_size(f->type);
    if (n * size < f->nbytes)
        memcpy((char *)sample + f->offset + n * size,
               size == sizeof end64 ? (const void *)&end64 : &end32, size);
}

ls_status ls_source_add_field(ls_source *s, const char *what, const ls_field *like, ls_error *e) {
    if (s->nfields == LS_SOURCE_FIELDS)
        return ls_fail(e, LS_EINVAL, "%s: has more than %d fields, the limit", what,
                       LS_SOURCE_FIELDS);
    if (like->ndims > LS_FIELD_DIMS)
        return ls_fail(e, LS_EINVAL, "%s: field %s has %d dimensions, at most %d are possible",
                       what, like->name, like->ndims, LS_FIELD_DIMS);
    ls_field f = *like;
    f.offset = (s->nbytes + LS_FIELD_ALIGN - 1) / LS_FIELD_ALIGN * LS_FIELD_ALIGN;
    f.nbytes = ls_dtype_size(f.type);
    for (int i = 0; i < f.ndims; i++) {
        if (f.dims[i] < 1)
            return ls_fail(e, LS_EINVAL,
                           "%s: field %s has a dimension of %lld, at least 1 is needed", what,
                           f.name, (long long)f.dims[i]);
        if ((uint64_t)f.dims[i] > LS_SAMPLE_NBYTES / f.nbytes)
            return ls_fail(e, LS_EINVAL, "%s: a sample has more than %zu MB, the limit", what,
                           LS_SAMPLE_NBYTES >> 20);
        f.nbytes *= (size_t)f.dims[i];
    }
    if (f.offset + f.nbytes > LS_SAMPLE_NBYTES)
        return ls_fail(e, LS_EINVAL, "%s: a sample has more than %zu MB, the limit", what,
                       LS_SAMPLE_NBYTES >> 20);
    s->fields[s->nfields++] = f;
    s->nbytes = f.offset + f.nbytes;
    return LS_OK;
}

int ls_source_classes(const ls_source *s, const char *field, char *const **names_p) {
    for (size_t i = 0; s->numbering && i < s->numbering->n; i++) {
        const ls_numbered *c = &s->numbering->list[i];
        if (!c->text || strcmp(c->field, field) != 0) continue;
        *names_p = c->in.names;
        return c->in.n;
    }
    *names_p = s->classes;
    return s->classes && strcmp(field, "label") == 0 ? s->nclasses : 0;
}

void ls_source_put_name(const ls_source *s, uint64_t i, ls_buf *b) {
    if (s->put_name) s->put_name(s, i, b);
}

ls_record_at ls_source_record(const ls_source *s, uint64_t i) {
    return s->record ? s->record(s, i) : (ls_record_at){i, i};
}

size_t ls_source_part(const uint64_t *begins, size_t nparts, uint64_t i) {
    size_t low = 0, high = nparts; /* begins[low] <= i < begins[high] */
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (begins[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- sources over others ---- */

static const ls_source *under(const ls_source *s) { return ((const ls_source_over *)s)->from; }

ls_status ls_source_over_read(const ls_source_over *o, uint64_t i, const ls_draw *d, void *sample,
                              ls_error *e) {
    return d ? ls_source_draw(o->from, i, d, sample, e) : o->from->read(o->from, i, sample, e);
}

static ls_status read_undrawn(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    return s->draw(s, i, NULL, sample, e);
}

static void put_name_under(const ls_source *s, uint64_t i, ls_buf *b) {
    ls_source_put_name(under(s), i, b);
}

static ls_record_at record_under(const ls_source *s, uint64_t i) {
    return ls_source_record(under(s), i);
}

static void close_over(ls_source *s) {
    ls_source_close(((ls_source_over *)s)->from);
    free(s);
}

void ls_source_over_open(ls_source_over *o, ls_source *from, ls_source_change *change) {
    o->source = *from; /* count, hash, classes: those belong to `from` */
    o->source.index = NULL;
    o->source.pixels = NULL;
    o->source.follow = NULL;
    o->source.nparts = 0;
    o->source.read = read_undrawn;
    o->source.draw = change;
    if (from->put_name) o->source.put_name = put_name_under;
    o->source.record = record_under;
    o->source.close = close_over;
    o->source.nfields = 0;
    o->source.nbytes = 0;
    o->from = from;
}
