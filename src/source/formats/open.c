/* open.c - see open.h; the table of formats. */
#include "source/formats/open.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_kind.h"
#include "base/guard.h"
#include "base/nearest.h"
#include "source/fetch.h"
#include "source/format.h"
#include "source/images/image.h"
#include "source/index.h"
#include "source/pixel_cache.h"
#include "source/tables/csv_rules.h"

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

/* Files of other programs, and images that are not decoded. */
static ls_status refuse_other(const char *path, const uint8_t *first, size_t n, bool asks_csv,
                              ls_error *e) {
    const ls_file_kind *kind = ls_file_kind_of(path, first, n);
    const char *name = NULL, *converter = NULL;
    if (kind && kind->is_table && asks_csv) return LS_OK;
    if (kind)
        return ls_fail(e, LS_EINVAL, "%s: is %s, which is not read; %s", path, kind->name,
                       kind->makes);
    bool binary = n && memchr(first, 0, n); /* "BM" may begin a text, too */
    if (!binary || !ls_image_is_other(first, n, &name, &converter)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: is %s, and images are JPEG or PNG: convert it, e.g. %s", path,
                   name, converter);
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
    bool by_name_alone = f && !f->recognizes; /* a spreadsheet may be named t.csv */
    if (s == LS_OK && !file.is_dir && (!f || by_name_alone))
        s = refuse_other(path, first, file.nbytes, asks_csv, e);
    if (s == LS_OK && !f && asks_csv && !file.is_dir) f = &ls_format_csv;
    if (s == LS_OK && !f) {
        ls_buf b = {0};
        list_formats(&b);
        s = ls_fail(e, LS_EINVAL,
                    "%s: neither its name nor its first bytes are those of a known format; name "
                    "the format: %s; or text, for a language model",
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

/* Adds the decoders to what identifies the data: another version of a decoder may give other
 * pixels, and earlier versions of this program turned no image upright. */
static void add_decoders(ls_source *s) {
    static const char turned[] = "turned";
    const char *decoders = ls_image_decoders();
    ls_hasher *h = ls_hasher_new();
    ls_hasher_add(h, &s->hash, sizeof s->hash);
    ls_hasher_add(h, decoders, strlen(decoders));
    if (s->turned) ls_hasher_add(h, turned, strlen(turned));
    s->hash = ls_hasher_finish(h);
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
    ls_buf decides = {0};
    ls_bytes_put_text(&decides, ls_image_decoders()); /* they decide what is damaged */
    ls_csv_rules_put(o.csv, &decides);
    ls_bytes_put_u64(&decides, o.images && o.images->unturned); /* it decides the sizes of images */
    ls_index *x = o.index = ls_index_open(f->name, files, options, &decides);
    ls_buf_free(&decides);
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

/* Refuses what the format can't do of data.missing, data.columns, data.na and data.csv. */
static ls_status check_tables(const ls_data_format *f, const char *path, const ls_source_options *o,
                              ls_error *e) {
    if (f->is_table || (!o->missing && !o->csv)) return LS_OK;
    bool columns = o->csv && o->csv->columns, form = ls_csv_rules_are_of_csv(o->csv);
    if (f->has_columns ? !form : f->has_missing && !form && !columns) return LS_OK;
    const char *are = f->has_columns ? "data.na and data.csv are for CSV files"
                      : f->has_missing
                          ? "data.columns is for CSV and JSON, data.na and data.csv are "
                            "for CSV files"
                          : "data.missing is for CSV, JSON, .npy and IDX, data.columns "
                            "for CSV and JSON, data.na and data.csv are for CSV files";
    return ls_fail(e, LS_EINVAL, "%s: %s; this is %s: remove them", path, are, f->name);
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
    LS_TRY(check_tables(f, files->paths[0], o, e));
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

bool ls_source_in_records(const char *format) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i]->name, format) == 0) return formats[i]->in_records;
    return false;
}
