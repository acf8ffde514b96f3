/* read_mds.c - MDS, version 2 (mosaicml-streaming): index.json and the shards that it lists, plain
 * or packed by gzip or zstd.
 *
 * A shard: n as a uint32, n + 1 offsets as uint32, a copy of the columns' description, the samples.
 * A sample: the lengths of its columns of varying length as uint32, then all columns' bytes. The
 * number of samples and the bytes of a shard must be those of index.json. Its hashes are not
 * checked. Shards lie in the directory of index.json or below it.
 */
#include <stdlib.h>
#include <string.h>

#include "source/features.h"
#include "source/format.h"
#include "source/formats/mds_column.h"
#include "source/images/image_set.h"
#include "source/index.h"
#include "source/pixel_cache.h"
#include "source/places.h"

enum { MOST_INDEX = 256 << 20, MOST_COLUMNS = 256 };

typedef struct mds_source {
    ls_records r;
    ls_features features;
    ls_mds_column *columns; /* [ncolumns] one for each feature */
    size_t ncolumns;
    ls_image_set images; /* checks them while shards are indexed */
} mds_source;

/* ---- index.json ---- */

/* A path that stays within its directory. */
static bool is_inside(const char *name) {
    if (!*name || *name == '/') return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t n = strcspn(part, "/");
        if (n == 2 && memcmp(part, "..", 2) == 0) return false;
    }
    return true;
}

static const char *text_at(const ls_json *array, size_t i) {
    return ls_json_text(ls_json_at(array, i));
}

static ls_status add_column(mds_source *s, const ls_json *shard, size_t i, const char *path,
                            ls_error *e) {
    const char *name = text_at(ls_json_get(shard, "column_names"), i);
    const char *encoding = text_at(ls_json_get(shard, "column_encodings"), i);
    if (!name || !encoding)
        return ls_fail(e, LS_EINVAL, "%s: column %zu has no name or no encoding", path, i + 1);
    const char *wrong = ls_mds_column_parse(encoding, &s->columns[i]);
    s->columns[i].unturned = s->images.way && s->images.way->unturned;
    if (wrong)
        return ls_fail(e, LS_EINVAL, "%s: the encoding of '%s', '%s', %s", path, name, encoding,
                       wrong);
    if (ls_features_find(&s->features, name))
        return ls_fail(e, LS_EINVAL, "%s: two columns are named '%s'", path, name);
    int64_t nbytes = 0;
    ls_json_integer(ls_json_at(ls_json_get(shard, "column_sizes"), i), &nbytes);
    if (nbytes < 0 || (size_t)nbytes != s->columns[i].nbytes) {
        if (s->columns[i].kind != LS_MDS_OTHER || nbytes < 0)
            return ls_fail(e, LS_EINVAL, "%s: '%s' has %lld bytes, its encoding, %s, has %zu", path,
                           name, (long long)nbytes, encoding, s->columns[i].nbytes);
        s->columns[i].nbytes = (size_t)nbytes;
    }
    ls_features_add(&s->features, name, strlen(name));
    return LS_OK;
}

/* The first shard has the columns; the others must have the same. */
static ls_status read_columns(mds_source *s, const ls_json *first, const ls_json *shard,
                              const char *path, ls_error *e) {
    static const char *const keys[] = {"column_names", "column_encodings"};
    size_t n = ls_json_count(ls_json_get(shard, keys[0]));
    if (n == 0 || n > MOST_COLUMNS)
        return ls_fail(e, LS_EINVAL, "%s: a shard has %zu columns, 1 to %d are possible", path, n,
                       MOST_COLUMNS);
    if (shard == first) {
        s->columns = LS_NEW_ARRAY(ls_mds_column, n);
        s->ncolumns = n;
        for (size_t i = 0; i < n; i++) LS_TRY(add_column(s, shard, i, path, e));
        return LS_OK;
    }
    bool same = n == s->features.n;
    for (size_t i = 0; same && i < 2 * n; i++) {
        const char *a = text_at(ls_json_get(first, keys[i / n]), i % n);
        const char *b = text_at(ls_json_get(shard, keys[i / n]), i % n);
        same = a && b && strcmp(a, b) == 0;
    }
    if (same) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: its shards have different columns", path);
}

static bool can_unpack(const ls_json *shard) {
    const char *packing = ls_json_text(ls_json_get(shard, "compression"));
    return !packing || strncmp(packing, "gz", 2) == 0 || strncmp(packing, "zstd", 4) == 0;
}

/* The path of the shard's file, which the caller frees: the plain one if it exists. */
static ls_status find_shard(const ls_json *shard, const char *index, char **path_p, ls_error *e) {
    static const char *const keys[] = {"raw_data", "zip_data"};
    const char *slash = strrchr(index, '/');
    int n = slash ? (int)(slash - index) + 1 : 0;
    char *path = NULL;
    for (int i = 0; i < 2; i++) {
        const char *name = ls_json_text(ls_json_get(ls_json_get(shard, keys[i]), "basename"));
        if (!name) continue;
        if (!is_inside(name)) {
            free(path);
            return ls_fail(e, LS_EINVAL, "%s: the shard '%s' is outside the directory", index,
                           name);
        }
        if (path && (ls_file_exists(path) || !can_unpack(shard))) break;
        free(path);
        path = ls_format("%.*s%s", n, index, name);
    }
    if (!path) return ls_fail(e, LS_EINVAL, "%s: a shard has no basename", index);
    if (!can_unpack(shard) && !ls_file_exists(path)) {
        free(path);
        return ls_fail(e, LS_EINVAL, "%s: shards packed by %s can't be read; unpack them", index,
                       ls_json_text(ls_json_get(shard, "compression")));
    }
    *path_p = path;
    return LS_OK;
}

/* ---- samples ---- */

static uint32_t word_at(const uint8_t *data, size_t at) {
    uint32_t word;
    memcpy(&word, data + at, sizeof word);
    return word;
}

/* Finds the values of the sample whose bytes are [data, data + nbytes). */
static ls_status find_values(const mds_source *s, ls_sample_place place, ls_mds_value *values,
                             ls_error *e) {
    const ls_plain *file = place.file;
    uint64_t sample = place.at / 4 - 1;
    size_t at = word_at(file->data, place.at), end = word_at(file->data, place.at + 4);
    size_t next = at; /* offset of the next length */
    for (size_t i = 0; i < s->features.n; i++) at += s->columns[i].nbytes ? 0 : 4;
    const char *wrong = at > end || end > file->nbytes ? "is cut off" : NULL;
    for (size_t i = 0; i < s->features.n; i++) {
        size_t nbytes = wrong ? 0 : s->columns[i].nbytes;
        if (!wrong && nbytes == 0) {
            nbytes = word_at(file->data, next);
            next += 4;
        }
        if (!wrong && nbytes > end - at) wrong = "is cut off";
        if (!wrong)
            wrong = ls_mds_column_value(&s->columns[i], file->data + at, nbytes, &values[i]);
        if (wrong)
            return ls_fail(e, LS_EINVAL, "%s: sample %llu: '%s' %s", file->path,
                           (unsigned long long)sample, s->features.list[i].name, wrong);
        at += nbytes;
    }
    if (at == end) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: sample %llu has %zu bytes more than its columns", file->path,
                   (unsigned long long)sample, end - at);
}

/* Bytes that are images in the first sample are images in all. */
static ls_status find_images(mds_source *s, ls_sample_place place, ls_mds_value *values,
                             ls_error *e) {
    for (size_t i = 0; i < s->features.n; i++) {
        ls_mds_column *c = &s->columns[i];
        if (c->kind != LS_MDS_BYTES || !ls_image_recognize(values[i].data, values[i].nbytes))
            continue;
        c->kind = LS_MDS_IMAGE;
        LS_TRY(find_values(s, place, values, e));
    }
    return LS_OK;
}

/* Decodes the images, so that all damage is found. */
static ls_status check_images(mds_source *s, ls_sample_place place, const ls_mds_value *values,
                              ls_error *e) {
    for (size_t i = 0; i < s->features.n; i++) {
        ls_image_seen seen;
        if (s->columns[i].kind != LS_MDS_IMAGE || s->features.list[i].left_out) continue;
        char *name = ls_format("%s: sample %llu: '%s'", place.file->path,
                               (unsigned long long)(place.at / 4 - 1), s->features.list[i].name);
        ls_status status =
            ls_image_set_check(&s->images, name, values[i].data, values[i].nbytes, &seen, e);
        free(name);
        if (status != LS_OK) return status;
    }
    return LS_OK;
}

static ls_status index_sample(mds_source *s, ls_sample_place place, ls_mds_value *values,
                              ls_error *e) {
    LS_TRY(find_values(s, place, values, e));
    if (s->r.places.n == 0) LS_TRY(find_images(s, place, values, e));
    if (s->images.decodes) LS_TRY(check_images(s, place, values, e));
    for (size_t i = 0; i < s->features.n; i++) {
        ls_feature *f = &s->features.list[i];
        if (s->r.places.n == 0) ls_mds_column_start(&s->columns[i], &values[i], f);
        ls_mds_column_learn(&s->columns[i], &values[i], f);
    }
    ls_places_add(&s->r.places, place.at);
    return LS_OK;
}

/* The table of offsets must be within the file, and in order. */
static ls_status check_table(const ls_plain *file, uint64_t n, ls_error *e) {
    uint64_t table = 4 * (n + 2);
    if (file->nbytes < table || word_at(file->data, 0) != n)
        return ls_fail(e, LS_EINVAL, "%s: has another number of samples than its index.json, %llu",
                       file->path, (unsigned long long)n);
    uint64_t before = table;
    for (uint64_t i = 0; i <= n; i++) {
        uint64_t at = word_at(file->data, 4 * (i + 1));
        if (at < before || at > file->nbytes)
            return ls_fail(e, LS_EINVAL, "%s: sample %llu is at byte %llu, outside %llu to %zu",
                           file->path, (unsigned long long)i, (unsigned long long)at,
                           (unsigned long long)before, file->nbytes);
        before = at;
    }
    if (before == file->nbytes) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: has %llu bytes after its last sample", file->path,
                   (unsigned long long)(file->nbytes - before));
}

static ls_status check_shard(const ls_json *shard, const ls_plain *file, int64_t *n_p,
                             ls_error *e) {
    int64_t nbytes = -1, n = -1;
    ls_json_integer(ls_json_get(ls_json_get(shard, "raw_data"), "bytes"), &nbytes);
    ls_json_integer(ls_json_get(shard, "samples"), &n);
    if (nbytes < 0 || (uint64_t)nbytes != file->nbytes)
        return ls_fail(e, LS_EINVAL, "%s: has %zu bytes, by its index.json %lld", file->path,
                       file->nbytes, (long long)nbytes);
    if (n < 0 || n > UINT32_MAX)
        return ls_fail(e, LS_EINVAL, "%s: has %lld samples by its index.json", file->path,
                       (long long)n);
    *n_p = n;
    return check_table(file, (uint64_t)n, e);
}

static ls_status index_shard(mds_source *s, const ls_json *shard, const char *index,
                             const ls_source_options *o, ls_error *e) {
    char *path = NULL;
    int64_t n = 0;
    LS_TRY(find_shard(shard, index, &path, e));
    ls_status status = ls_places_open(&s->r.places, path, o, e);
    free(path);
    if (status != LS_OK) return status;
    const ls_plain *file = &s->r.places.files[s->r.places.nfiles - 1];
    s->r.base.nfiles++;
    s->r.base.file_nbytes += file->file_nbytes;
    LS_TRY(check_shard(shard, file, &n, e));
    if (ls_index_is_known(o->index)) return LS_OK;
    ls_mds_value *values = LS_NEW_ARRAY(ls_mds_value, s->features.n);
    for (int64_t i = 0; status == LS_OK && i < n; i++) {
        ls_error why = {0};
        ls_sample_place place = {.file = file, .at = 4 * (uint64_t)(i + 1)};
        if (index_sample(s, place, values, &why) != LS_OK)
            status = ls_places_damaged(&s->r.places, &s->r.base, o, &why, e);
    }
    free(values);
    return status;
}

static ls_status read_sample(const ls_source *source, uint64_t i, void *sample, ls_error *e) {
    const mds_source *s = (const mds_source *)source;
    ls_sample_place place = ls_places_find(&s->r.places, i);
    ls_mds_value values[MOST_COLUMNS];
    LS_TRY(find_values(s, place, values, e));
    for (size_t k = 0; k < s->features.n; k++) {
        const ls_feature *f = &s->features.list[k];
        char *to = (char *)sample + f->offset;
        bool image = s->columns[k].kind == LS_MDS_IMAGE && !f->left_out;
        if (f->left_out || (image && ls_pixel_cache_get(source->pixels, i, f->offset, to)))
            continue;
        if (ls_mds_column_store(&s->columns[k], &values[k], f, sample)) {
            if (image) ls_pixel_cache_put(source->pixels, i, f->offset, to);
            continue;
        }
        return ls_fail(e, LS_EINVAL, "%s: sample %llu: '%s' is damaged", place.file->path,
                       (unsigned long long)(place.at / 4 - 1), f->name);
    }
    return LS_OK;
}

static void close_mds(ls_source *source) {
    mds_source *s = (mds_source *)source;
    ls_places_close(&s->r.places);
    for (size_t i = 0; i < s->ncolumns; i++) ls_image_sizes_free(&s->columns[i].sizes);
    ls_features_free(&s->features);
    free(s->columns);
    ls_image_set_free(&s->images);
    free(s);
}

/* ---- opening ---- */

/* What an index knows of the columns, instead of reading the samples: that of another index.json,
 * or one that does not fit the columns, is refused. */
static ls_status take_index(mds_source *s, ls_hash text, ls_bytes *in, ls_error *e) {
    ls_hash hash;
    size_t n = s->features.n;
    ls_bytes_take(in, &hash, sizeof hash);
    ls_places_take(&s->r.places, &s->r.base, in);
    ls_features_take(&s->features, in);
    if (!ls_hash_same(hash, text) || s->features.n != n) in->bad = true;
    for (size_t i = 0; i < n && !in->bad; i++) {
        ls_mds_column *c = &s->columns[i];
        bool image = ls_bytes_take_u64(in, 1);
        ls_image_sizes_take(&c->sizes, in);
        if (image && c->kind == LS_MDS_BYTES) c->kind = LS_MDS_IMAGE;
        if (image != (c->kind == LS_MDS_IMAGE) || !ls_mds_column_fits(c, &s->features.list[i]))
            in->bad = true;
    }
    for (uint64_t i = 0; i < s->r.places.n && !in->bad; i++) {
        ls_sample_place place = ls_places_find(&s->r.places, i);
        uint64_t nsamples = word_at(place.file->data, 0);
        if (place.at % 4 != 0 || place.at < 4 || place.at / 4 > nsamples) in->bad = true;
    }
    return in->bad ? ls_fail(e, LS_EINVAL, "the index is damaged") : LS_OK;
}

/* text: the hash of index.json. */
static ls_status read_shards(mds_source *s, const ls_json *index, ls_hash text, const char *path,
                             const ls_source_options *o, ls_error *e) {
    const ls_json *shards = ls_json_get(index, "shards");
    int64_t version = 0;
    ls_json_integer(ls_json_get(index, "version"), &version);
    if (version != 2 || !ls_json_is_array(shards))
        return ls_fail(e, LS_EINVAL, "%s: is not an index of MDS version 2", path);
    for (size_t i = 0; i < ls_json_count(shards); i++) {
        const ls_json *shard = ls_json_at(shards, i);
        const char *format = ls_json_text(ls_json_get(shard, "format"));
        if (!format || strcmp(format, "mds") != 0)
            return ls_fail(e, LS_EINVAL, "%s: shard %zu has the format '%s', not mds", path, i,
                           format ? format : "");
        LS_TRY(read_columns(s, ls_json_at(shards, 0), shard, path, e));
        LS_TRY(index_shard(s, shard, path, o, e));
    }
    for (size_t i = 0; i < s->features.n; i++) ls_image_sizes_end(&s->columns[i].sizes);
    if (ls_index_is_known(o->index)) LS_TRY(take_index(s, text, ls_index_in(o->index), e));
    if (s->r.places.n == 0) return ls_fail(e, LS_EINVAL, "%s: has no samples", path);
    ls_buf *out = ls_index_is_known(o->index) ? NULL : ls_index_out(o->index);
    if (out) {
        ls_bytes_put(out, &text, sizeof text);
        ls_places_put(&s->r.places, &s->r.base, out);
        ls_features_put(&s->features, out);
        for (size_t i = 0; i < s->features.n; i++) {
            ls_bytes_put_u64(out, s->columns[i].kind == LS_MDS_IMAGE);
            ls_image_sizes_put(&s->columns[i].sizes, out);
        }
    }
    for (size_t i = 0; i < s->features.n; i++)
        LS_TRY(ls_mds_column_fit(&s->columns[i], s->images.way, &s->features.list[i], path,
                                 &s->r.base, e));
    return ls_features_finish(&s->features, o->named, &s->r.base, path, e);
}

static ls_status read_index(mds_source *s, const char *path, const ls_source_options *o,
                            ls_error *e) {
    ls_buf text = {0};
    ls_json *index = NULL;
    LS_TRY(ls_file_read(path, MOST_INDEX, &text, e));
    ls_status status = ls_json_parse(text.data, text.len, path, &index, e);
    if (status == LS_OK)
        status = read_shards(s, index, ls_hash_bytes(text.data, text.len), path, o, e);
    if (index) ls_json_free(index);
    ls_buf_free(&text);
    return status;
}

static ls_status open_mds(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                          ls_error *e) {
    if (files->n > 1)
        return ls_fail(e, LS_EINVAL, "%s: one MDS data set at a time can be opened",
                       files->paths[1]);
    const char *path = files->paths[0];
    char *index = ls_file_is_dir(path) ? ls_format("%s/index.json", path) : ls_strdup(path);
    mds_source *s = LS_NEW(mds_source);
    s->r.features = &s->features;
    ls_records_begin(&s->r, (ls_source){.format = "mds", .read = read_sample, .close = close_mds});
    s->images.way = o->images;
    s->images.decodes = o->skip_damaged;
    ls_status status = read_index(s, index, o, e);
    free(index);
    for (size_t i = 0; status == LS_OK && i < s->features.n; i++)
        if (s->columns[i].kind == LS_MDS_IMAGE && !s->features.list[i].left_out)
            s->r.base.decodes = true;
    return ls_records_end(&s->r, status, s_p);
}

/* A directory with an index.json, or that file. */
static bool recognizes(const ls_first_file *file) {
    if (!file->is_dir) return strcmp(file->name, "index.json") == 0;
    return ls_file_exists_in(file->path, "index.json");
}

const ls_data_format ls_format_mds = {
    .name = "mds",
    .in_records = true,
    .suffixes = {"index.json"},
    .recognizes = recognizes,
    .open = open_mds,
};
